"""Which layers of a network form groups: an exact cover of its graph by groups of linked layers.

Every layer is solved alone, then every group up to the largest size, small ones first, each only for less
than what its parts take by then.  Groups that are the same but for names are searched once; those whose
layers take most come first.  The best cover and its bound follow from all values and bounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.compulsory import touched
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
from tilewright.solvers.mapping.fused.cover import Group, least_cover
from tilewright.solvers.mapping.fused.groups import GroupGraph
from tilewright.solvers.mapping.fused.search import search_fused
from tilewright.solvers.mapping.fused.turn_engine import TurnEngines
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

    @property
    def is_settled(self) -> bool:
        """Whether its search came to its end."""
        return "limit" not in self.reason


@dataclass(frozen=True)
class Unlinked:
    """Two layers that cannot be in one group, although one reads the other.

    Parameters
    ----------
    producer, reader, operand : who reads what, and as which of its tensors
    reason : why
    """

    producer: str
    reader: str
    operand: str
    reason: str


@dataclass(frozen=True)
class FusionAnswer:
    """The best cover of a network by groups.

    Parameters
    ----------
    groups : in the network's order
    single : every layer alone
    tried : all groups of two layers or more
    unlinked : pairs of layers of which one reads the other, with the reason why they cannot be fused
    value, bound : pJ of the whole; ``value`` is ``None`` where a layer has no mapping
    """

    groups: tuple[GroupAnswer, ...]
    single: dict[str, GroupAnswer]
    tried: tuple[GroupAnswer, ...]
    unlinked: tuple[Unlinked, ...]
    value: Fraction | None
    bound: Fraction


def search_network_fusion(
    problem: FusionProblem, limits: Limits, told: Callable[[GroupAnswer], None] = lambda answer: None
) -> FusionAnswer:
    """The best cover of a network by groups of linked layers.

    Parameters
    ----------
    problem : the question
    limits : of the whole call
    told : hears of every layer and every group that is searched, when its search is over
    """
    return _CoverSearch(problem, limits, told).run()


class _CoverSearch:
    def __init__(self, problem: FusionProblem, limits: Limits, told: Callable[[GroupAnswer], None]) -> None:
        self.problem, self.limits, self.told = problem, limits, told
        self.model = cost_model(problem.model_name)
        self.graph = GroupGraph(problem.network, problem.layers)
        self.answers: dict[Group, GroupAnswer] = {}

    def run(self) -> FusionAnswer:
        single = self._alone()
        self.answers = {(self.graph.number[name],): answer for name, answer in single.items()}
        alike_groups: dict[object, dict[Group, FusedGroup]] = {}
        unfit: dict[Group, str] = {}
        for place in self.graph.groups(self.problem.most):
            try:
                group = group_of(self.problem.network, [self.graph.names[layer] for layer in place])
            except InputError as error:
                unfit[place] = error.message
                continue
            alike_groups.setdefault(alike(group), {})[place] = group
        classes = sorted(alike_groups.values(), key=self._rank)
        for index, same in enumerate(classes):
            self._search(same, self.limits.share(1 / (len(classes) - index)))
        self._search_again(classes)
        tried = tuple(answer for answer in self.answers.values() if answer.is_fused)
        value, bound, groups = self._covered()
        unlinked = (*self._unlinked(), *self._unfit(unfit))
        return FusionAnswer(tuple(groups), single, tried, unlinked, value, bound)

    def _alone(self) -> dict[str, GroupAnswer]:
        """Every layer as `map` maps it, equal ones once."""
        names: dict[Operator, list[str]] = {}
        for name in self.problem.layers:
            names.setdefault(self.problem.network.layer(name).operator, []).append(name)
        answers: dict[str, GroupAnswer] = {}
        for index, (operator, same) in enumerate(names.items()):
            started = time.monotonic()
            result = self._solved(operator, len(names) - index)
            seconds = time.monotonic() - started
            answers |= {name: self._single(name, result, seconds) for name in same}
            self.told(answers[same[0]])
        return {name: answers[name] for name in self.problem.layers}

    def _solved(self, operator: Operator, left: int) -> LayerResult:
        problem = self.problem
        stated = layer_problem(
            operator, problem.engine, ENERGY, problem.model_name, (), problem.factors, problem.storage
        )
        return solve(stated, limits=self.limits.share(0.5 / left))

    def _single(self, name: str, result: LayerResult, seconds: float) -> GroupAnswer:
        group = group_of(self.problem.network, [name])
        bound = result.bound if result.bound is not None else Fraction(0)
        if result.answer is None or result.evaluation is None:
            return GroupAnswer(group, None, None, None, bound, result.message or result.status.value, seconds)
        tree = unfused({name: result.answer})
        evaluation = evaluate_fused(group, self.problem.engine, self.model, tree)
        return GroupAnswer(group, tree, evaluation, evaluation.energy, bound, "", seconds)

    def _rank(self, same: dict[Group, FusedGroup]) -> tuple[int, Fraction]:
        """Small groups first, among them those that take most over the whole network."""
        place = next(iter(same))
        unfused = sum((self.answers[layer,].value or Fraction(0) for layer in place), Fraction(0))
        return len(place), -len(same) * unfused

    def _search(self, same: dict[Group, FusedGroup], limits: Limits) -> None:
        """Search one of several groups that are the same but for names."""
        place, group = next(iter(same.items()))
        parts = {
            known: answer.value
            for known, answer in self.answers.items()
            if answer.value is not None and len(known) < len(place) and set(known) <= set(place)
        }
        best = least_cover(place, parts, self.graph.circle_of)
        started = time.monotonic()
        answer = self._searched(group, None if best is None else best.cost, limits)
        self._note(same, replace(answer, seconds=time.monotonic() - started))
        self.told(self.answers[place])

    def _note(self, same: dict[Group, FusedGroup], answer: GroupAnswer) -> None:
        """Keep an answer for every group that is the same but for names."""
        self.answers[next(iter(same))] = answer
        for place, group in list(same.items())[1:]:
            self.answers[place] = _renamed(answer, group)

    def _search_again(self, classes: list[dict[Group, FusedGroup]]) -> None:
        """With the time that is left, groups that were not proven, those first that matter most."""
        if self.limits.seconds is None:
            return
        while True:
            open_classes = [same for same in classes if self._doubt(same) > 0]
            if not open_classes:
                return
            same = max(open_classes, key=self._doubt)
            left = self.limits.remaining or 0.0
            before = self.answers[next(iter(same))]
            classes = [other for other in classes if other is not same]
            if left < 2 * before.seconds + 1:
                continue
            self._search(same, self.limits.share(max(0.5, 1 / len(open_classes))))
            after = self.answers[next(iter(same))]
            self._note(same, _better(before, after))

    def _doubt(self, same: dict[Group, FusedGroup]) -> Fraction:
        """By how much groups of one kind may take less than what is known."""
        place = next(iter(same))
        answer = self.answers[place]
        if answer.is_settled:
            return Fraction(0)
        known = [self.answers[layer,].value or Fraction(0) for layer in place]
        best = sum(known, Fraction(0)) if answer.value is None else answer.value
        return len(same) * max(Fraction(0), best - answer.bound)

    def _covered(self) -> tuple[Fraction | None, Fraction, list[GroupAnswer]]:
        """Value and bound of the whole network, and the groups of the value."""
        layers = [self.graph.number[name] for name in self.problem.layers]
        bounds = {place: answer.bound for place, answer in self.answers.items()}
        lowest = least_cover(layers, self._promising(bounds), self.graph.circle_of)
        bound = Fraction(0) if lowest is None else lowest.cost
        values = {place: answer.value for place, answer in self.answers.items() if answer.value is not None}
        best = least_cover(layers, self._promising(values), self.graph.circle_of)
        if best is None:
            return None, bound, [self.answers[layer,] for layer in layers]
        chosen = [self._evaluated(self.answers[place]) for place in best.groups]
        return best.cost, min(bound, best.cost), chosen

    def _promising(self, costs: dict[Group, Fraction]) -> dict[Group, Fraction]:
        """Layers alone, and the groups that take less than their layers alone."""
        promising: dict[Group, Fraction] = {place: cost for place, cost in costs.items() if len(place) == 1}
        for place, cost in costs.items():
            alone = [costs.get((layer,)) for layer in place]
            if len(place) > 1 and (
                None in alone or cost < sum((own for own in alone if own is not None), Fraction(0))
            ):
                promising[place] = cost
        return promising

    def _evaluated(self, answer: GroupAnswer) -> GroupAnswer:
        if answer.tree is None or answer.evaluation is not None:
            return answer
        evaluation = evaluate_fused(answer.group, self.problem.engine, self.model, answer.tree)
        return replace(answer, evaluation=evaluation)

    def _searched(self, group: FusedGroup, cutoff: Fraction | None, limits: Limits) -> GroupAnswer:
        problem = self.problem
        least = least_energy(group, problem.engine)
        if cutoff is not None and least >= cutoff:
            reason = "its reads, writes and operations alone take more"
            return GroupAnswer(group, None, None, None, least, reason)
        if limits.expired:
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

    def _unlinked(self) -> Iterator[Unlinked]:
        """Layers that read each other through links whose axes are not known."""
        chosen = frozenset(self.problem.layers)
        for link in self.problem.network.links:
            if link.axes is None and link.producer in chosen and link.consumer in chosen:
                reason = link.unknown or "which axis becomes which is not known"
                yield Unlinked(link.producer, link.consumer, link.operand, reason)

    def _unfit(self, unfit: dict[Group, str]) -> Iterator[Unlinked]:
        """Pairs of layers of which one is not what the other reads, element by element."""
        for place, reason in unfit.items():
            if len(place) == 2:
                for link in self.graph.between[place]:
                    assert link.producer is not None
                    yield Unlinked(link.producer, link.consumer, link.operand, reason)


def least_energy(group: FusedGroup, engine: Engine) -> Fraction:
    """What every fused mapping takes at least.

    Results that leave are written to the outermost level once.  All operations run of layers whose results
    leave, and of those that such layers read whole; what these read from outside is read once.
    """
    outermost = engine.levels[0]
    least = Fraction(0)
    whole = set(group.leaving)
    for name in reversed(group.names):
        if any(r.reader in whole and group.is_plain(r) for r in group.read_by(name)):
            whole.add(name)
        operator = group.operator(name)
        if name in group.leaving:
            output = operator.output
            least += output.footprint(operator.bounds) * outermost.write_energy_of(output.role)
        if name in whole:
            least += TurnEngines(engine).operations(operator)
            least += sum(
                (
                    touched(operator, tensor) * outermost.read_energy_of(tensor.role)
                    for tensor in operator.inputs
                    if group.reading(name, tensor.name) is None
                ),
                Fraction(0),
            )
    return least


def alike(group: FusedGroup) -> object:
    """What groups share that are the same but for the names of their layers."""
    number = {name: index for index, name in enumerate(group.names)}
    return (
        tuple(group.operators.values()),
        tuple(
            sorted(
                (number[r.reader], r.operand, number[r.producer], r.axes, r.offsets, r.rows)
                for r in group.readings
            )
        ),
        frozenset(number[name] for name in group.leaving),
        frozenset((number[name], row) for name, row in group.rows),
    )


def _renamed(answer: GroupAnswer, group: FusedGroup) -> GroupAnswer:
    """The answer for another group that is the same but for names, not yet evaluated."""
    if answer.tree is None:
        return replace(answer, group=group, seconds=0.0)
    names = dict(zip(answer.group.names, group.names, strict=True))
    return replace(answer, group=group, tree=answer.tree.renamed(names), evaluation=None, seconds=0.0)


def _better(before: GroupAnswer, after: GroupAnswer) -> GroupAnswer:
    """What two searches of one group know together."""
    bound = max(before.bound, after.bound)
    seconds = before.seconds + after.seconds
    if after.value is None and before.value is not None:
        # A search that ended without an answer found nothing below the first one's.
        return replace(before, bound=min(bound, before.value), seconds=seconds)
    if before.value is not None and after.value is not None and before.value < after.value:
        after = replace(after, tree=before.tree, evaluation=before.evaluation, value=before.value)
    return replace(after, bound=bound if after.value is None else min(bound, after.value), seconds=seconds)


def status_of(value: Fraction | None, bound: Fraction, *, stopped: bool) -> Status:
    """How a search with some value and bound ended."""
    if value is not None and value == bound:
        return Status.OPTIMAL
    if stopped:
        return Status.INTERRUPTED
    return Status.UNKNOWN if value is None else Status.FEASIBLE
