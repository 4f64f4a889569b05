"""Layers on one machine, ready to be searched: whatever may be wrong with the question shows here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.demands.constraints import applicable, network_constraints
from tilewright.formulation.mapping.problem import LayerProblem, check_space, layer_problem
from tilewright.formulation.mapping.space import Alike
from tilewright.formulation.objective import Objective
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.selection import SelectedLayer

Factors = Literal["perfect", "imperfect"]
Storage = Literal["even", "uneven"]
Tiles = Literal["trip-counts", "every"]


class Statement(Protocol):
    """States the problem of a layer."""

    def __call__(self, alike: Alike | None = None) -> LayerProblem:
        """The problem; it shares tiles and tables with what is alike, if anything is said to be."""


@dataclass(frozen=True)
class NetworkProblem:
    """Find the best mapping of each of some layers on one machine.

    Parameters
    ----------
    cost_model : its name
    constraints : the user's demands as written, names in their proper case
    notes : what the user should know of them
    factors : of all layers; ``None`` for the cost model's own choice
    states : per layer, what states its problem
    storage, tiles : of all layers; ``None`` for the usual ones
    left_out : nodes of the network that compute and are in no layer, each with the reason
    """

    engine: Engine
    objective: Objective
    cost_model: str
    constraints: tuple[str, ...]
    notes: tuple[str, ...]
    factors: Factors | None
    layers: tuple[SelectedLayer, ...]
    states: tuple[Statement, ...]
    storage: Storage | None = None
    tiles: Tiles | None = None
    left_out: tuple[str, ...] = ()


def network_problem(
    layers: Sequence[SelectedLayer],
    engine: Engine,
    objective: Objective,
    constraints: Sequence[str] = (),
    model_name: str | None = None,
    factors: Factors | None = None,
    storage: Storage | None = None,
    tiles: Tiles | None = None,
) -> NetworkProblem:
    """Check a question about layers and a machine.

    Parameters
    ----------
    model_name : the cost model; by default the machine's own
    factors, storage, tiles : as in :func:`tilewright.formulation.mapping.problem.layer_problem`

    Raises
    ------
    InputError : for an unknown cost model, one that does not apply to a layer or to the factors, or a
        constraint that is malformed or names what no layer has
    """
    model_name = model_name or engine.cost_model
    check_cost_model(model_name, factors, storage, tiles)
    named = [(layer.name, layer.operator) for layer in layers]
    demands, notes = network_constraints(constraints, named, engine)
    kind = factors, storage, tiles
    states = [_state(layer, engine, objective, model_name, demands, kind) for layer in layers]
    return NetworkProblem(
        engine=engine,
        objective=objective,
        cost_model=model_name,
        constraints=demands,
        notes=tuple(notes),
        factors=factors,
        layers=tuple(layers),
        states=tuple(states),
        storage=storage,
        tiles=tiles,
    )


def check_cost_model(
    name: str, factors: Factors | None, storage: Storage | None = None, tiles: Tiles | None = None
) -> None:
    """Raise ``InputError`` for an unknown cost model, and for a space that it does not count.

    Parameters
    ----------
    name : of a registered cost model
    factors, storage, tiles : the space, as for `layer_problem`
    """
    check_space(cost_model(name), factors, storage, tiles)


def _state(
    layer: SelectedLayer,
    engine: Engine,
    objective: Objective,
    model_name: str,
    constraints: Sequence[str],
    kind: tuple[Factors | None, Storage | None, Tiles | None],
) -> Statement:
    """What states a layer's problem; one with demands is stated at once, since they may be at fault."""
    cost_model(model_name).check(layer.operator, engine)
    demands = applicable(constraints, layer.operator, engine)

    def state(alike: Alike | None = None) -> LayerProblem:
        return layer_problem(layer.operator, engine, objective, model_name, demands, *kind, alike=alike)

    if not demands:
        return state
    problem = state()
    return lambda alike=None: problem
