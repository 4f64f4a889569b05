"""Cells of an exploration: one layer on one machine, as plain data that travels between processes."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tilewright import __version__
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.demands.constraints import applicable
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerResult
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.formulation.stopping import NEVER, BoundReaches, Stagnation, Stop
from tilewright.foundation.errors import InputError, one_line
from tilewright.foundation.pool import Work
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.identity import engine_hash
from tilewright.solvers.mapping.explore.features import spaces_of
from tilewright.solvers.mapping.methods import method, prepare
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Operator

ABOVE = "above"
"""Status of a cell of which it is proven that no mapping has a key below its cap."""
BRIEF_SECONDS, BRIEF_PAUSE = 10.0, 1.5
"""Of a brief search: its limit, and the time without a better mapping after which it ends."""
Nodes = tuple[dict[str, Any], ...]
"""A mapping as plain data, outermost node first."""
PROVEN = (Status.OPTIMAL.value, Status.INFEASIBLE.value)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of every layer on every machine.

    Parameters
    ----------
    objective, cost_model, factors, constraints : as of `layer_problem`
    solver : who proves it
    gap : between keys, at which a search may end
    """

    objective: str
    cost_model: str
    factors: str | None
    constraints: tuple[str, ...]
    solver: str
    gap: float = 0.0


@dataclass(frozen=True, slots=True)
class Cell:
    """One layer on one machine.

    Parameters
    ----------
    engine : trimmed to what the layer can use
    seconds : time limit of its search
    key : content hash of all that its optimum depends on
    cap : of the objective key; what is not below it is of no interest
    starts : mappings of the layer on other machines, as plain data: where they fit, the search starts there
    brief : whether a good mapping is enough: the search ends once nothing better turns up for a moment
    """

    operator: Operator
    engine: Engine
    asked: Asked
    seconds: float
    key: str
    cap: Fraction | None = None
    starts: tuple[Nodes, ...] = ()
    brief: bool = False

    @classmethod
    def of(cls, operator: Operator, engine: Engine, asked: Asked, seconds: float) -> Cell:
        """A cell with its content hash, of nothing but what the optimum depends on: only proofs are stored.

        Parameters
        ----------
        operator : the layer
        engine : the design, trimmed to what the layer can use
        asked : objective, cost model, factors and constraints of all cells
        seconds : time limit of its search, which is no part of the hash
        """
        content = [
            __version__,
            operator_content(operator),
            engine_hash(engine),
            asked.objective,
            asked.cost_model,
            asked.factors,
            list(asked.constraints),
        ]
        key = hashlib.sha256(json.dumps(content).encode()).hexdigest()
        return cls(operator, engine, asked, seconds, key)

    def problem(self) -> LayerProblem:
        """The mapping problem; raises ``InputError`` where it cannot be stated."""
        asked = self.asked
        demands = applicable(asked.constraints, self.operator, self.engine)
        goal = parse_objective(asked.objective)
        alike = spaces_of(self.operator, self.engine)
        return layer_problem(
            self.operator, self.engine, goal, asked.cost_model, demands, asked.factors, alike=alike
        )


@dataclass(frozen=True, slots=True)
class Reported:
    """What the search of a cell found.

    Parameters
    ----------
    status : as in every result
    value, bound : exact objective keys
    energy : pJ, exact
    mapping : nodes as plain data
    nodes : partial mappings that the search bounded; 0 for a stored answer
    """

    status: str
    value: Fraction | None = None
    bound: Fraction | None = None
    energy: Fraction | None = None
    cycles: int | None = None
    mapping: Nodes | None = None
    wall_s: float = 0.0
    message: str = ""
    nodes: int = 0

    @property
    def proven(self) -> bool:
        """Whether nothing is left to be found out."""
        return self.status in PROVEN

    def suffices(self, cap: Fraction | None) -> bool:
        """Whether it answers a cell of that cap."""
        return self.proven or (
            self.status == ABOVE and cap is not None and self.bound is not None and self.bound >= cap
        )


def operator_content(operator: Operator) -> list[Any]:
    """Everything of an operator that decides what mappings cost, as plain data."""
    return [
        operator.kind,
        [
            [dimension.name, dimension.bound, dimension.like, *([dimension.upto] if dimension.upto else [])]
            for dimension in operator.dimensions
        ],
        [
            [
                tensor.name,
                tensor.role.value,
                [[[[term.dim, term.stride] for term in axis.terms], axis.size] for axis in tensor.axes],
            ]
            for tensor in operator.tensors
        ],
    ]


def compute(cell: Cell, key: str, stop: threading.Event | None = None) -> Reported:
    """Search one cell; whatever goes wrong is an answer too.

    Parameters
    ----------
    key : of the cell where it was planned
    stop : ends the search with what it has
    """
    try:
        # The key has the version in it: a worker on another machine may have another one installed.
        if Cell.of(cell.operator, cell.engine, cell.asked, cell.seconds).key != key:
            return failed("the worker runs another version of tilewright than the exploration")
        solver = cell.asked.solver
        method(solver)
        prepare(solver)
        limits = Limits(
            cell.seconds, threads=1, stop=stop or threading.Event(), gap=cell.asked.gap, until=_until(cell)
        )
        starts = [Mapping.from_data(list(nodes)) for nodes in cell.starts]
        result = solve(cell.problem(), solver, limits, warm_starts=starts)
    except InputError as error:
        return failed(str(error))
    # A cell that fails is one of thousands, and must not end the others.
    except Exception as error:
        return failed(f"{type(error).__name__}: {one_line(error)}")
    return _reported(cell, result)


def _until(cell: Cell) -> Stop:
    """What ends the search of a cell besides a proof and its time."""
    if cell.brief:
        return Stagnation(BRIEF_PAUSE)
    return NEVER if cell.cap is None else BoundReaches(cell.cap)


def _reported(cell: Cell, result: LayerResult) -> Reported:
    """The answer of the cell, of which the search has seen what lies below the cap."""
    status, bound = result.status.value, result.bound
    # The search ended at the cap: the bound holds, yet the cell itself is not proven.
    if cell.cap is not None and bound is not None and bound >= cell.cap and result.key != bound:
        status = ABOVE
    evaluation = result.evaluation
    return Reported(
        status,
        result.key,
        bound,
        None if evaluation is None else evaluation.energy,
        None if evaluation is None else evaluation.cycles,
        None if result.answer is None else tuple(result.answer.to_data()),
        result.wall_seconds,
        result.message,
        result.effort.nodes,
    )


def failed(message: str) -> Reported:
    """The answer of a cell that has none."""
    return Reported(Status.ERROR.value, message=message)


CELLS: Work[Cell, Reported] = Work(
    compute, failed, names=lambda cell: (cell.asked.solver, cell.asked.cost_model)
)
"""How workers compute cells."""


def answers_here(cells: Iterable[Cell], stop: threading.Event) -> Iterator[tuple[Cell, Reported]]:
    """Cells one after the other in this process; the one that runs when ``stop`` is set is dropped."""
    for cell in cells:
        if stop.is_set():
            return
        reported = compute(cell, cell.key, stop)
        if not stop.is_set() or reported.proven:
            yield cell, reported
