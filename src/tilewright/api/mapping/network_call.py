"""A network mapped in one call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from tilewright.api.mapping.document import MappingDocument
from tilewright.api.mapping.layer import Network, network
from tilewright.api.mapping.machine import Machine
from tilewright.api.mapping.problem import Start
from tilewright.api.solving import solve
from tilewright.formulation.stopping import Stop
from tilewright.solvers.mapping.network_problem import Factors, Storage, Tiles
from tilewright.solvers.observer import Observer


def map_network(
    model: Network | str | Path,
    machine: Machine | str | Path,
    objective: str = "energy",
    *,
    batch: int | None = None,
    layers: Sequence[str] = (),
    all_operators: bool = False,
    constraints: Iterable[str] = (),
    cost_model: str | None = None,
    factors: Factors | None = None,
    storage: Storage | None = None,
    tiles: Tiles | None = None,
    then: Literal["energy", "cycles"] | None = None,
    pareto: bool = False,
    best: int | None = None,
    all_optimal: bool | int = False,
    method: str | None = None,
    stop: Stop | None = None,
    threads: int | None = None,
    seed: int = 0,
    warm_starts: Start | Sequence[Start] = (),
    observer: Observer | None = None,
    deterministic: bool = False,
) -> MappingDocument:
    """Find the best mapping of every distinct layer of a network, with a bound that proves how good it is.

    The same as ``solve(network(model, batch).on(machine, objective, …), …)``: `NetworkOnMachine` and `solve`
    explain the arguments.  Layers share the time of the call.

    Parameters
    ----------
    model : a network, a name that `models` lists, or a file
    machine : a machine, a preset's name or a file

    Raises
    ------
    InputError : for whatever is wrong with an argument, before anything is searched
    """
    what = model if isinstance(model, Network) else network(model, batch)
    question = what.on(
        machine,
        objective,
        layers=layers,
        all_operators=all_operators,
        constraints=constraints,
        cost_model=cost_model,
        factors=factors,
        storage=storage,
        tiles=tiles,
        then=then,
        pareto=pareto,
        best=best,
        all_optimal=all_optimal,
    )
    return solve(
        question,
        method=method,
        stop=stop,
        threads=threads,
        seed=seed,
        warm_starts=warm_starts,
        observer=observer,
        deterministic=deterministic,
    )
