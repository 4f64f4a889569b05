"""A network mapped in one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from tilewright.api.arguments import seconds_of
from tilewright.api.mapping.machine import Machine
from tilewright.api.mapping.network import Network, NetworkDemands, network
from tilewright.api.mapping.question import Start
from tilewright.api.mapping.result import MappingDocument
from tilewright.api.solving import solve
from tilewright.formulation.stopping import Stop
from tilewright.foundation.loading import loading_within
from tilewright.solvers.observer import Observer


def map_network(
    model: Network | str | Path,
    machine: Machine | str | Path,
    objective: str = "energy",
    *,
    batch: int | None = None,
    method: str | None = None,
    stop: Stop | None = None,
    threads: int | None = None,
    seed: int = 0,
    warm_starts: Start | Sequence[Start] = (),
    observer: Observer | None = None,
    deterministic: bool = False,
    **demands: Unpack[NetworkDemands],
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
    with loading_within(seconds_of(stop)):
        what = model if isinstance(model, Network) else network(model, batch)
        question = what.on(machine, objective, **demands)
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
