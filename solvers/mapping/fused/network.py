"""Which layers of a network form groups: an exact cover by runs of layers that follow each other.

Every layer is solved alone, every run of linked layers up to the largest size as a group, each only for less
than what its parts take by then.  The best cover and its bound follow by going through the layers once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.evaluator import FusedEvaluation, evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup, group_of
from tilewright.formulation.mapping.fused.tree import Branch, unfused
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.mapping.search import LayerResult
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.search import search_fused
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.network import Network

ENERGY = parse_objective("energy")


@dataclass(frozen=True)
class FusionProblem:
    """What is asked of a network on a machine.

    Parameters
    ----------
    network, engine : the layers with their links, and the machine
    layers : names of those that are mapped, in the network's order
    model_name : the cost model
    most : layers of a group at most
    factors, storage : the space of the layers' own mappings
    home_level : the only level that may be a home; ``None`` for any
    """

    network: Network
    engine: Engine
    layers: tuple[str, ...]
    model_name: str
    most: int
    factors: str | None = None
    storage: str | None = None
    home_level: str | None = None

    def check(self) -> None:
        """Raise ``InputError`` for a cost model, a machine, widths or a home that cannot be."""
        if self.model_name != "hierarchy":
            raise InputError("--fuse", None, f"counts by the cost model hierarchy, not by {self.model_name}")
        if self.engine.leak:
            raise InputError(
                "--fuse", None, f"static power is not counted in turns; {self.engine.name} states it"
            )
        self.network.expect_machine_widths("fused mappings")
        names = [level.name for level in self.engine.levels[1:]]
        if self.home_level is not None and self.home_level not in names:
            raise InputError("--fuse-at", None, f"unknown level {self.home_level!r}, expected one of {names}")


@dataclass(frozen=True)
class GroupAnswer:
    """What is known of one group, or of one layer alone.

    Parameters
    ----------
    group : the layers
    tree, evaluation : the best mapping; ``None`` where none was found that takes less than its parts
    value, bound : pJ
    reason : why it is not fused
    seconds : of its search
    skeletons, opened, solves : what the search looked at; 0 for a layer alone
    """

    group: FusedGroup
    tree: Branch | None
    evaluation: FusedEvaluation | None
    value: Fraction | None
    bound: Fraction
    reason: str = ""
    seconds: float = 0.0
    skeletons: int = 0
    opened: int = 0
    solves: int = 0

    @property
    def is_fused(self) -> bool:
        return len(self.group.names) > 1


@dataclass(frozen=True)
class FusionAnswer:
    """The best cover of a network by groups.

    Parameters
    ----------
    groups : in the network's order
    single : every layer alone
    tried : all groups of two layers or more
    value, bound : pJ of the whole; ``value`` is ``None`` where a layer has no mapping
    """

    groups: tuple[GroupAnswer, ...]
    single: dict[str, GroupAnswer]
    tried: tuple[GroupAnswer, ...]
    value: Fraction | None
    bound: Fraction


def search_network_fusion(
    problem: FusionProblem, limits: Limits, told: Callable[[GroupAnswer], None] = lambda answer: None
) -> FusionAnswer:
    """The best cover of a network by groups that follow each other.

    Parameters
    ----------
    problem : the question
    limits : of the whole call
    told : hears of every layer and every group when its search is over
    """
    return _CoverSearch(problem, limits, told).run()


class _CoverSearch:
    def __init__(self, problem: FusionProblem, limits: Limits, told: Callable[[GroupAnswer], None]) -> None:
        self.problem, self.limits, self.told = problem, limits, told
        self.model = cost_model(problem.model_name)
        self.known: dict[object, GroupAnswer] = {}
        self._results: dict[Operator, LayerResult] = {}

    def run(self) -> FusionAnswer:
        names = self.problem.layers
        results: dict[tuple[int, int], GroupAnswer] = {}
        single: dict[str, GroupAnswer] = {}
        for index, name in enumerate(names):
            results[index, index + 1] = single[name] = self._alone(name, len(names) - index)
        tried: list[GroupAnswer] = []
        listed = [
            (first, first + size, group)
            for size in range(2, self.problem.most + 1)
            for first in range(len(names) - size + 1)
            if (group := self._group(names[first : first + size])) is not None
        ]
        for index, (first, end, group) in enumerate(listed):
            values, _, _ = _cover(first, end, results)
            answer = self._together(group, values, len(listed) - index)
            results[first, end] = answer
            tried.append(answer)
        value, bound, cuts = _cover(0, len(names), results)
        groups = tuple(results[cut] for cut in cuts)
        return FusionAnswer(groups, single, tuple(tried), value, bound)

    def _alone(self, name: str, left: int) -> GroupAnswer:
        """One layer as `map` maps it."""
        started = time.monotonic()
        group = group_of(self.problem.network, [name])
        operator = group.operator(name)
        result = self._solved(operator, left)
        seconds = time.monotonic() - started
        bound = result.bound if result.bound is not None else Fraction(0)
        if result.answer is None or result.evaluation is None:
            reason = result.message or result.status.value
            answer = GroupAnswer(group, None, None, None, bound, reason, seconds)
        else:
            tree = unfused({name: result.answer})
            evaluation = evaluate_fused(group, self.problem.engine, self.model, tree)
            answer = GroupAnswer(group, tree, evaluation, evaluation.energy, bound, "", seconds)
        self.told(answer)
        return answer

    def _solved(self, operator: Operator, left: int) -> LayerResult:
        if operator not in self._results:
            stated = layer_problem(
                operator,
                self.problem.engine,
                ENERGY,
                self.problem.model_name,
                (),
                self.problem.factors,
                self.problem.storage,
            )
            self._results[operator] = solve(stated, limits=self.limits.share(0.5 / left))
        return self._results[operator]

    def _group(self, names: Sequence[str]) -> FusedGroup | None:
        """The group of some layers; ``None`` where they are not linked, axis by axis."""
        try:
            group = group_of(self.problem.network, names)
        except InputError:
            return None
        linked = {names[0]}
        for _ in names:
            for reading in group.readings:
                if reading.producer in linked or reading.reader in linked:
                    linked |= {reading.producer, reading.reader}
        return group if linked == set(names) else None

    def _together(self, group: FusedGroup, cutoff: Fraction | None, left: int) -> GroupAnswer:
        """A group, searched once for all groups that are the same but for names.

        Parameters
        ----------
        group : the layers
        cutoff : pJ that its parts take
        left : groups to come, itself included, among which the time is divided
        """
        key = alike(group)
        before = self.known.get(key)
        if before is not None:
            answer = _renamed(before, group, self.problem.engine)
        else:
            started = time.monotonic()
            answer = self._searched(group, cutoff, self.limits.share(1 / left))
            answer = replace(answer, seconds=time.monotonic() - started)
            self.known[key] = answer
        self.told(answer)
        return answer

    def _searched(self, group: FusedGroup, cutoff: Fraction | None, limits: Limits) -> GroupAnswer:
        problem = self.problem
        least = outer_traffic(group, problem.engine)
        if self.limits.expired:
            return GroupAnswer(group, None, None, None, least, "a limit was reached before it was tried")
        try:
            found = search_fused(
                group,
                problem.engine,
                self.model,
                limits,
                cutoff,
                problem.factors,
                problem.storage,
                problem.home_level,
            )
        except LimitReachedError:
            return GroupAnswer(group, None, None, None, least, "a limit was reached")
        bound = least if found.bound is None else max(least, found.bound)
        reason = found.reason or ("" if found.complete else "a limit was reached")
        return GroupAnswer(
            group,
            found.tree,
            found.evaluation,
            found.value,
            bound,
            reason,
            skeletons=found.skeletons,
            opened=found.opened,
            solves=found.solves,
        )


def _cover(
    first: int, end: int, results: dict[tuple[int, int], GroupAnswer]
) -> tuple[Fraction | None, Fraction, list[tuple[int, int]]]:
    """The least value and bound of the layers from ``first`` to ``end``, and the groups of the value."""
    values: dict[int, tuple[Fraction | None, list[tuple[int, int]]]] = {first: (Fraction(0), [])}
    bounds = {first: Fraction(0)}
    for stop in range(first + 1, end + 1):
        best: tuple[Fraction | None, list[tuple[int, int]]] = (None, [])
        least: Fraction | None = None
        for start in range(first, stop):
            answer = results.get((start, stop))
            if answer is None:
                continue
            from_here = bounds[start] + answer.bound
            least = from_here if least is None else min(least, from_here)
            before, cuts = values[start]
            if before is not None and answer.value is not None:
                together = before + answer.value
                if best[0] is None or together < best[0]:
                    best = together, [*cuts, (start, stop)]
        values[stop] = best if best[1] else (None, [*values[stop - 1][1], (stop - 1, stop)])
        bounds[stop] = least if least is not None else Fraction(0)
    value, cuts = values[end]
    return value, bounds[end] if value is None else min(bounds[end], value), cuts


def outer_traffic(group: FusedGroup, engine: Engine) -> Fraction:
    """What every fused mapping takes at least: results that leave are written to the outermost level once."""
    outermost = engine.levels[0]
    return sum(
        (
            group.operator(name).output.footprint(group.operator(name).bounds)
            * outermost.write_energy_of(group.operator(name).output.role)
            for name in group.leaving
        ),
        Fraction(0),
    )


def alike(group: FusedGroup) -> object:
    """What groups share that are the same but for the names of their layers."""
    number = {name: index for index, name in enumerate(group.names)}
    return (
        tuple(group.operators.values()),
        tuple(
            sorted(
                (number[r.reader], r.operand, number[r.producer], r.axes, r.offsets) for r in group.readings
            )
        ),
        frozenset(number[name] for name in group.leaving),
    )


def _renamed(answer: GroupAnswer, group: FusedGroup, engine: Engine) -> GroupAnswer:
    """The answer for another group that is the same but for names."""
    names = dict(zip(answer.group.names, group.names, strict=True))
    if answer.tree is None or names == {name: name for name in names}:
        return replace(answer, group=group, seconds=0.0)
    tree = answer.tree.renamed(names)
    evaluation = evaluate_fused(group, engine, cost_model("hierarchy"), tree)
    return replace(answer, group=group, tree=tree, evaluation=evaluation, seconds=0.0)


def status_of(value: Fraction | None, bound: Fraction, *, stopped: bool) -> Status:
    """How a search with some value and bound ended."""
    if value is not None and value == bound:
        return Status.OPTIMAL
    if stopped:
        return Status.INTERRUPTED
    return Status.UNKNOWN if value is None else Status.FEASIBLE
