"""The least energy of a network on one machine, over all covers of its graph by groups of linked layers.

Every layer is solved alone, and every group up to the largest size has a bound before any search.  Then
groups in the cover of the least bound are searched, each only for less than what its parts take by then,
until the bound of that cover is the value of another one.  Groups that are the same but for names are
searched once; under a limit those that may still gain most go on for a while, in turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch, unfused
from tilewright.formulation.mapping.fused.widths import at_widths
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.mapping.search import LayerResult
from tilewright.formulation.result import Status
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.answers import FusedStart, GroupAnswer, Unlinked, alike, renamed
from tilewright.solvers.mapping.fused.covers.cover import Cover, Group, least_cover
from tilewright.solvers.mapping.fused.covers.groups import GroupGraph
from tilewright.solvers.mapping.fused.floors.compulsory import least_energy
from tilewright.solvers.mapping.fused.floors.layer_floors import LayerFloors
from tilewright.solvers.mapping.fused.floors.least_room import never_fits
from tilewright.solvers.mapping.fused.problem import ENERGY, FusionProblem
from tilewright.solvers.mapping.fused.search import FusedSearch
from tilewright.solvers.mapping.fused.starts import FusedStarts
from tilewright.solvers.mapping.fused.trees.membership import FusedSpace
from tilewright.solvers.mapping.fused.trees.skeletons import SkeletonSpace
from tilewright.solvers.mapping.fused.trees.turn_solver import TurnMemory
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Operator

SLICE = 0.03
"""Part of the time that is left after which a search waits for its turn, if other groups may gain more."""
NOT_TRIED = "a limit was reached before it was tried"
STOPPED = "a limit was reached"
UNNEEDED = "no cover with it takes less"
USELESS = "other layers have no mapping, fused or not"


@dataclass(frozen=True)
class CoverAnswer:
    """The best cover on one machine.

    Parameters
    ----------
    answers : of every layer alone and of every group
    chosen : the groups of the cover; layers alone where no mapping of the whole was found
    value, bound : pJ; ``value`` is ``None`` where a layer has no mapping
    impossible : whether every cover has a group of which it is proven that no mapping exists
    """

    answers: dict[Group, GroupAnswer]
    chosen: tuple[Group, ...]
    value: Fraction | None
    bound: Fraction
    impossible: bool = False


class CoverSearch:
    """Searches of one network, on one machine after the other; trees of one are starting points of the next.

    Parameters
    ----------
    problem : the question; its objective and its machine's prices are the caller's affair
    told : hears of every layer and every group that is searched, when its search is over
    starts : fused mappings to begin with
    """

    def __init__(
        self, problem: FusionProblem, told: Callable[[GroupAnswer], None], starts: Iterable[FusedStart] = ()
    ) -> None:
        self.problem, self.told = problem, told
        self.model = cost_model(problem.model_name)
        self.graph = GroupGraph(problem.network, problem.layers)
        self.places = {name: self.graph.number[name] for name in problem.layers}
        self.unfit: dict[Group, str] = {}
        self.classes: list[dict[Group, FusedGroup]] = self._classes()
        self.starts = FusedStarts(problem, self.graph, starts)
        self.known: dict[Group, list[Branch]] = self.starts.inside
        self.answers: dict[Group, GroupAnswer] = {}

    def _classes(self) -> list[dict[Group, FusedGroup]]:
        """Groups that are the same but for names, together."""
        alike_groups: dict[object, dict[Group, FusedGroup]] = {}
        for place in self.graph.groups(self.problem.most):
            try:
                group = self.problem.group(self.graph.names[layer] for layer in place)
                at_widths(group, self.problem.engine)
            except InputError as error:
                self.unfit[place] = error.message
                continue
            alike_groups.setdefault(alike(group), {})[place] = group
        return list(alike_groups.values())

    def run(self, engine: Engine, limits: Limits) -> CoverAnswer:
        """The best cover on a machine.

        Parameters
        ----------
        engine : the machine, with its energies and what a cycle takes
        limits : of this search
        """
        self._begin(engine, limits)
        while True:
            lowest, best = self._lowest(), self._best()
            if lowest is None:
                break
            enough = None if best is None else best.cost * (1 - Fraction(limits.gap))
            doubts = [(self._doubt(same, lowest), same) for same in self.classes]
            undecided = [(doubt, same) for doubt, same in doubts if doubt > 0]
            if not undecided or limits.expired or (enough is not None and lowest.cost >= enough):
                break
            self._search(max(undecided, key=lambda entry: entry[0])[1], len(undecided))
        return self._covered()

    def _begin(self, engine: Engine, limits: Limits) -> None:
        """Solve every layer alone, and note what is known of groups before any search."""
        problem = self.problem
        space = FusedSpace(engine, self.model, problem.factors, problem.storage, problem.home_level)
        self.starts.sort(space, self.classes)
        self.answers = {(self.places[name],): single for name, single in self.alone(engine, limits).items()}
        self.engine, self.limits = engine, limits
        self.searches: dict[Group, FusedSearch] = {}
        # Layers are in several groups, in which they have many turns in common.
        self.memory = TurnMemory()
        self.floors = LayerFloors(engine, self.model, self.problem.factors, self.problem.storage)
        for same in self.classes:
            self._note(same, self._before(*next(iter(same.items()))))

    def alone(self, engine: Engine, limits: Limits) -> dict[str, GroupAnswer]:
        """Every layer as `map` maps it, equal ones once, in half of the time that is left."""
        self.engine, self.limits = engine, limits
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
            operator, self.engine, ENERGY, problem.model_name, (), problem.factors, problem.storage
        )
        starts = [mapping for mapping, _ in self.starts.alone.get(operator, ())]
        limits = replace(self.limits.share(0.5 / left), gap=0.0)
        result = solve(stated, limits=limits, warm_starts=starts)
        self.starts.note_alone(operator, result)
        return result

    def _single(self, name: str, result: LayerResult, seconds: float) -> GroupAnswer:
        group = self.problem.group([name])
        bound = result.bound if result.bound is not None else Fraction(0)
        if result.answer is None or result.evaluation is None:
            reason = result.message or result.status.value
            impossible = result.status is Status.INFEASIBLE
            return GroupAnswer(group, None, None, bound, reason, seconds=seconds, impossible=impossible)
        tree = unfused({name: result.answer})
        evaluation = evaluate_fused(group, self.engine, self.model, tree)
        return GroupAnswer(group, tree, evaluation.energy, bound, "", evaluation.cycles, seconds)

    def _before(self, place: Group, group: FusedGroup) -> GroupAnswer:
        """What is known of a group before its search."""
        problem = self.problem
        plain, engine = at_widths(group, self.engine)
        trees = SkeletonSpace(plain, engine, problem.home_level)
        least = least_energy(plain, problem.turn_engines(engine), trees.home_levels)
        alone = [self.answers[layer,].value for layer in place]
        cutoff = None if None in alone else sum((own for own in alone if own is not None), Fraction(0))
        if homeless := trees.homeless():
            least = least if cutoff is None else cutoff
            return GroupAnswer(group, None, None, least, homeless, impossible=True)
        misfit = any(self.answers[layer,].impossible for layer in place)
        if misfit and (layer_name := never_fits(plain, engine, trees.home_levels)):
            reason = f"{layer_name} fits nowhere, whatever it is fused with"
            return GroupAnswer(group, None, None, least, reason, impossible=True)
        if cutoff is not None and least >= cutoff:
            return GroupAnswer(group, None, None, least, "its reads, writes and operations alone take more")
        answer, known = GroupAnswer(group, None, None, least, NOT_TRIED), self._start(place, group)
        if known is not None and known.value is not None and (cutoff is None or known.value < cutoff):
            answer = replace(answer, tree=known.tree, value=known.value, cycles=known.cycles)
        return answer

    def _search(self, same: dict[Group, FusedGroup], number: int) -> None:
        """Go on with the search of one of several groups that are the same but for names.

        Parameters
        ----------
        same : the groups
        number : of searches that share the time that is left
        """
        place, group = next(iter(same.items()))
        before = self.answers[place]
        cutoff = self._apart(place)
        started = time.monotonic()
        known = self._start(place, group)
        if known is not None and known.value is not None and (cutoff is None or known.value < cutoff):
            cutoff = known.value
        else:
            known = None
        answer = self._searched(place, before, cutoff, self.limits.share(max(SLICE, 0.5 / number)))
        if answer.tree is not None and answer.tree not in self.known.setdefault(place, []):
            self.known[place].append(answer.tree)
        if answer.value is None and known is not None:
            reason = answer.reason if "limit" in answer.reason else ""
            answer = replace(answer, tree=known.tree, value=known.value, cycles=known.cycles, reason=reason)
        seconds = before.seconds + time.monotonic() - started
        self._note(same, replace(answer, seconds=seconds))
        if answer.is_settled or not before.seconds:
            self.told(self.answers[place])

    def _apart(self, place: Group) -> Fraction | None:
        """What a group's layers take in smaller groups or alone; ``None`` where one has no mapping."""
        parts = {
            known: answer.value
            for known, answer in self.answers.items()
            if answer.value is not None and len(known) < len(place) and set(known) <= set(place)
        }
        best = least_cover(place, parts, self.graph.circle_of)
        return None if best is None else best.cost

    def _start(self, place: Group, group: FusedGroup) -> GroupAnswer | None:
        """The best of the trees that earlier searches found."""
        best: GroupAnswer | None = None
        for tree in self.known.get(place, []):
            evaluation = evaluate_fused(group, self.engine, self.model, tree)
            if best is None or best.value is None or evaluation.energy < best.value:
                best = GroupAnswer(group, tree, evaluation.energy, Fraction(0), "", evaluation.cycles)
        return best

    def _note(self, same: dict[Group, FusedGroup], answer: GroupAnswer) -> None:
        """Keep an answer for every group that is the same but for names."""
        self.answers[next(iter(same))] = answer
        for place, group in list(same.items())[1:]:
            self.answers[place] = renamed(answer, group)

    def _doubt(self, same: dict[Group, FusedGroup], cover: Cover) -> Fraction:
        """By how much groups of one kind in a cover may take less than is known, for the time they had."""
        place = next(iter(same))
        answer = self.answers[place]
        if answer.is_settled:
            return Fraction(0)
        best = self._apart(place) if answer.value is None else answer.value
        if best is None:
            # Any mapping is a gain.
            best = 2 * answer.bound + 1
        number = sum(group in same for group in cover.groups)
        return number * max(Fraction(0), best - answer.bound) / (1 + Fraction(answer.seconds))

    def _lowest(self) -> Cover | None:
        """The cover of the least bound; ``None`` where each has a group that has no mapping."""
        bounds = {place: answer.bound for place, answer in self.answers.items() if not answer.impossible}
        return least_cover([*self.places.values()], self._promising(bounds), self.graph.circle_of)

    def _best(self) -> Cover | None:
        """The cover of the least value; ``None`` where a layer has no mapping."""
        values = {place: answer.value for place, answer in self.answers.items() if answer.value is not None}
        return least_cover([*self.places.values()], self._promising(values), self.graph.circle_of)

    def _covered(self) -> CoverAnswer:
        """Value and bound of the whole network, and the groups of the value."""
        lowest, best = self._lowest(), self._best()
        alone = tuple((layer,) for layer in self.places.values())
        if lowest is None:
            self._explain(USELESS)
            bound = sum((self.answers[layer].bound for layer in alone), Fraction(0))
            return CoverAnswer(self.answers, alone, None, bound, impossible=True)
        if best is None:
            return CoverAnswer(self.answers, alone, None, lowest.cost)
        if not self.limits.expired or lowest.cost >= best.cost:
            self._explain(UNNEEDED)
        return CoverAnswer(self.answers, best.groups, best.cost, min(lowest.cost, best.cost))

    def _explain(self, reason: str) -> None:
        """Say of groups that were never searched why they need not be."""
        for place, answer in self.answers.items():
            if answer.reason == NOT_TRIED:
                self.answers[place] = replace(answer, reason="" if answer.tree else reason)

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

    def _searched(
        self, place: Group, before: GroupAnswer, cutoff: Fraction | None, limits: Limits
    ) -> GroupAnswer:
        """Go on with a search, or begin it.

        Parameters
        ----------
        place, before : the group, and what was known of it
        cutoff : pJ that can be had otherwise
        limits : of this part of the search
        """
        search, problem = self.searches.get(place), self.problem
        if search is None:
            search = self.searches[place] = FusedSearch(
                before.group,
                self.engine,
                self.model,
                limits,
                problem.factors,
                problem.storage,
                problem.home_level,
                self.memory,
                self.floors,
            )
        result = search.run(cutoff, limits)
        bound = before.bound if result.bound is None else max(before.bound, result.bound)
        reason = result.reason or ("" if result.complete else STOPPED)
        if result.close:
            reason = "" if result.tree is not None else "every fused mapping takes more, but for the gap"
        return GroupAnswer(
            before.group,
            result.tree,
            result.value,
            bound,
            reason,
            0 if result.evaluation is None else result.evaluation.cycles,
            skeletons=result.skeletons,
            opened=result.opened,
            solves=result.solves,
            impossible=result.tree is None and result.complete and cutoff is None,
        )

    def unlinked(self) -> Iterator[Unlinked]:
        """Layers that read each other and cannot be in one group, with the reason."""
        chosen = frozenset(self.problem.layers)
        for link in self.problem.network.links:
            if link.axes is None and link.producer in chosen and link.consumer in chosen:
                reason = link.unknown or "which axis becomes which is not known"
                yield Unlinked(link.producer, link.consumer, link.operand, reason)
        for place, reason in self.unfit.items():
            if len(place) == 2:
                for link in self.graph.between[place]:
                    assert link.producer is not None
                    yield Unlinked(link.producer, link.consumer, link.operand, reason)
