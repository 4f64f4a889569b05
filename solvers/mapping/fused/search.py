"""Best first over skeletons and residents; each candidate's turns are solved as ordinary layers.

Stems, trees whose inner sequences have no loops yet, are bounded from trip counts, then their families, and
these with loops in order by the room of residents; in groups with windows also by the optimum of turns that
are all alike.  A candidate's bound rises in three steps: what every mapping of its turns costs at least, the
optimum of its turns with the room that homes leave, and with the room that all its shared stores leave.  The
search ends when the best candidate is proven to cost no more than all others do at least.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import count, islice
from random import Random

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.cost import CostModel
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch, Leaf
from tilewright.formulation.mapping.fused.widths import at_widths
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError, TilewrightError
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.answers import FusedAnswer
from tilewright.solvers.mapping.fused.floors.first_bound import FirstBounds
from tilewright.solvers.mapping.fused.floors.layer_floors import LayerFloors
from tilewright.solvers.mapping.fused.floors.room_bounds import RoomBound, RoomBounds
from tilewright.solvers.mapping.fused.floors.stem_rooms import StemRooms
from tilewright.solvers.mapping.fused.floors.tree_floors import TreeFloors
from tilewright.solvers.mapping.fused.floors.turn_floors import TurnFloors
from tilewright.solvers.mapping.fused.trees.candidate import Candidate, Skeleton
from tilewright.solvers.mapping.fused.trees.candidate_cost import cost_of
from tilewright.solvers.mapping.fused.trees.candidates import CandidateSpace
from tilewright.solvers.mapping.fused.trees.dives import Dives
from tilewright.solvers.mapping.fused.trees.items import Family, Item, Open, Ordered, Placings, Stem, least_of
from tilewright.solvers.mapping.fused.trees.mirror import Mirror
from tilewright.solvers.mapping.fused.trees.skeletons import SkeletonSpace
from tilewright.solvers.mapping.fused.trees.turn_engine import TurnEngines
from tilewright.solvers.mapping.fused.trees.turn_solver import TurnMemory, TurnSolver

FIRST_DIVE = 8
"""Steps of the search after which some trees are priced, and again whenever there are three times as many."""
DRAWN = 4
"""Of what is open, from where dives begin, of each kind."""
TAKING = 8
"""Steps of the search from which on it asks for floors of turns, in groups with windows."""
LONG = 300
"""Steps of the search from which on it asks for floors of layers."""
MEMBERS = 24
"""Skeletons of each that are looked at."""


class FusedSearch:
    """The search of one group.

    Parameters
    ----------
    group, engine, model : the layers, the machine and its cost model; the search has the group without the
        widths that its layers state, and the machine with them
    limits : of the whole search
    factors, storage : the space of the layers' mappings within turns; imperfect factors are those of shared
        loops, too
    home_level : the only level that may be a home; ``None`` for any
    memory : what other searches in the same space know of turns
    floors : of layers on this machine, which searches of other groups know, too
    """

    def __init__(
        self,
        group: FusedGroup,
        engine: Engine,
        model: CostModel,
        limits: Limits,
        factors: str | None = "perfect",
        storage: str | None = None,
        home_level: str | None = None,
        memory: TurnMemory | None = None,
        floors: LayerFloors | None = None,
    ) -> None:
        group, engine = at_widths(group, engine)
        self.group, self.engine, self.model, self.limits = group, engine, model, limits
        engines = TurnEngines(engine, perfect=factors == "perfect")
        self.space = CandidateSpace(group, engines)
        self.trees = SkeletonSpace(group, engine, home_level, perfect=factors == "perfect")
        goal = parse_objective("energy")
        known = (memory or TurnMemory()).of(engine)
        self.solver = TurnSolver(engine, model, goal, factors, storage, limits, known)
        self.first = FirstBounds(group, engines)
        self.turn_floors = TurnFloors(group, self.first.halos, self.trees, self.solver)
        self.first.floors = self.turn_floors
        if floors is None or floors.engine != engine:
            floors = LayerFloors(engine, model, factors, storage)
        self.floors = TreeFloors(group, self.first, self.trees, floors)
        self.rooms = RoomBounds(group, engine, self.first, self.solver, self.floors)
        self.stems = StemRooms(self.rooms, self.trees.divides, lambda: self.limits.check())
        self.mirror = Mirror(group, engine)
        self.answer = FusedAnswer()
        self._open: list[Open] = []
        self._stems = self.trees.stems()
        # Only where sums cost no more further inside do cuts by inner loops never cost less.
        roles = {operator.output.role for operator in group.operators.values()}
        costs = [
            [level.read_energy_of(role) + level.write_energy_of(role) for level in engine.levels]
            for role in roles
        ]
        self.gains = all(row == sorted(row, reverse=True) for row in costs)
        self._listed = False
        self._next_dive = FIRST_DIVE
        self._chance = Random(0)
        self.dives = Dives(self.trees, self.stems, self.rooms, lambda: self.limits.check())
        self._promising: Fraction | None = None
        self._numbers = count()

    def run(self, cutoff: Fraction | None = None, limits: Limits | None = None) -> FusedAnswer:
        """Search until the best is proven, or a limit strikes; called again, it goes on.

        Parameters
        ----------
        cutoff : pJ that can be had otherwise; what takes as much is of no interest.  It never rises
        limits : of this part of the search; ``None`` for those of the whole
        """
        if limits is not None:
            self.limits = self.solver.limits = limits
        self.floors.layers.limits = self.limits
        answer = self.answer
        answer.close = False
        if homeless := self.trees.homeless():
            answer.reason = homeless
            answer.complete, answer.bound = True, cutoff
            return answer
        try:
            while not self._listed:
                self.limits.check()
                stem = next(self._stems, None)
                self._listed = stem is None
                if stem is None:
                    break
                if not self.mirror.is_needed(stem, decided=False):
                    continue
                bound = self.first.bound(stem) if self.gains else Fraction(0)
                if cutoff is None or bound < cutoff:
                    orders = tuple(self.trees.outer_orders(stem))
                    self._push(bound, Stem(stem, self.trees.cuts(stem), orders))
            self._search(cutoff)
            answer.complete = True
        except LimitReachedError:
            pass
        answer.solves = self.solver.solves
        self._settle(cutoff)
        return answer

    def _settle(self, cutoff: Fraction | None) -> None:
        answer = self.answer
        # What was dropped on the way takes no less than the best known by then.
        best = least_of(answer.value, cutoff)
        if answer.complete:
            answer.bound = best
        elif self._listed:
            least = [entry.bound for entry in self._open] + ([] if best is None else [best])
            answer.bound = min(least, default=None)
        if answer.tree is None and answer.complete and not answer.reason:
            answer.reason = "every fused mapping takes more" if cutoff is not None else "nothing fits"

    def _push(self, bound: Fraction, item: Item) -> None:
        heapq.heappush(self._open, Open(bound, next(self._numbers), item))

    def _search(self, cutoff: Fraction | None) -> None:
        """Always open what may be best."""
        while self._open:
            best = least_of(self.answer.value, cutoff)
            if best is not None and self._open[0].bound >= best:
                return
            if best is not None and self._is_close(best):
                self.answer.close = True
                raise LimitReachedError("the gap that is asked for is reached")
            self.limits.check()
            if self.answer.opened >= TAKING:
                self.turn_floors.begin()
            if self.answer.opened >= self._next_dive:
                self._dive(best)
                continue
            if self.answer.opened >= LONG:
                self.floors.begin()
            if best is not None and self._rises_by_floors(best):
                continue
            entry = heapq.heappop(self._open)
            self.answer.opened += 1
            try:
                self._advance(entry, best)
            except LimitReachedError:
                heapq.heappush(self._open, entry)
                raise

    def _rises_by_floors(self, best: Fraction) -> bool:
        """Bound again by floors of layers what is to be opened next, and put it back if that takes more."""
        bound, item = self._open[0].bound, self._open[0].item
        if not (self.gains and self.floors.begun and isinstance(item, Stem | Family | Ordered)):
            return False
        is_whole = not (isinstance(item, Stem) and item.cuts)
        least = self.floors.raised(item.tree, best, is_whole=is_whole)
        if least > bound:
            heapq.heappop(self._open)
            self._push(least, item)
        return least > bound

    def _is_close(self, value: Fraction) -> bool:
        """Whether the best is as close to the least open bound as the limits ask for."""
        return value - self._open[0].bound <= Fraction(self.limits.gap) * value

    def _advance(self, entry: Open, best: Fraction | None) -> None:
        item = entry.item
        if isinstance(item, Stem):
            self._open_stem(item, entry.bound, best)
        elif isinstance(item, Family):
            self._open_family(item, entry.bound, best)
        elif isinstance(item, Ordered):
            self._open_ordered(item, entry.bound, best)
        elif isinstance(item, Skeleton):
            candidates = sorted(self.space.candidates(item, best), key=lambda c: c.bound, reverse=True)
            if candidates:
                self._push(max(candidates[-1].bound, entry.bound), Placings(candidates))
        elif isinstance(item, Placings):
            candidate = item.candidates[-1]
            self._relax(candidate, entry.bound, best)
            item.candidates.pop()
            if item.candidates:
                self._push(max(item.candidates[-1].bound, entry.bound), item)
        else:
            self.solver.is_cut = False
            self._price(item, best)
            if self.solver.is_cut:
                raise LimitReachedError("a turn was not solved to its end")

    def _open_stem(self, stem: Stem, bound: Fraction, best: Fraction | None) -> None:
        """Decide one more loop of an inner sequence; with the last one it is a family."""
        if self.gains and not stem.bounded:
            # Before loops are decided, so that few are; floors of turns may be known by now.
            if (least := self.first.bound(stem.tree)) > bound:
                self._push(least, stem)
                return
            orders = list(self.stems.orders(stem.tree, stem.cuts, stem.orders, best))
            if not orders:
                return
            stem = replace(stem, orders=tuple(nodes for _, nodes in orders), bounded=True)
            least = min(least for least, _ in orders)
            if least > bound:
                self._push(least, stem)
                return
        if not stem.cuts:
            if self.first.fits(stem.tree):
                self._push(bound, Family(stem.tree, stem.orders))
            return
        rest = stem.cuts[1:]
        for tree in self.trees.cut(stem.tree, stem.cuts[0]):
            self.limits.check()
            if not rest and not (self.trees.is_whole(tree) and self.mirror.is_needed(tree)):
                continue
            least = bound
            if self.gains or not rest:
                least = max(bound, self.first.bound(tree), self.floors.bound(tree, is_whole=not rest))
            if best is None or least < best:
                self._push(least, Stem(tree, rest, stem.orders))

    def _open_family(self, family: Family, bound: Fraction, best: Fraction | None) -> None:
        """Put its loops in order: what residents move and hold depends on it."""
        if self.group.has_windows:
            if not family.ordered:
                bounds = self._bounds(self._ordered(family), best)
                if not bounds:
                    return
                family = replace(family, ordered=tuple(tree for _, tree in bounds))
                least = min(least for least, _ in bounds)
                if least > bound:
                    self._push(least, family)
                    return
            if self._rises(self.rooms.roomy, family, bound, best):
                return
        for least, tree in self._bounds(family.ordered or self._ordered(family), best):
            self._push(max(least, bound), Ordered(tree))

    def _ordered(self, family: Family) -> Iterator[Branch]:
        """A family with its loops in every order that may be good."""
        for nodes in family.orders:
            yield from self.trees.inner_orders(replace(family.tree, nodes=nodes))

    def _bounds(self, trees: Iterable[Branch], best: Fraction | None) -> list[tuple[Fraction, Branch]]:
        """Trees with their loops in order whose bounds are below the best, with these."""
        bounds: list[tuple[Fraction, Branch]] = []
        for tree in trees:
            self.limits.check()
            bound = self.rooms.bound(tree, best) if self.mirror.is_needed(tree, ordered=True) else None
            if bound is not None:
                bounds.append((bound.least, tree))
        return bounds

    def _rises(
        self,
        bounded: Callable[[Branch, Fraction | None], RoomBound | None],
        item: Family | Ordered,
        bound: Fraction,
        best: Fraction | None,
    ) -> bool:
        """Solve turns until a bound rises, and put the tree back or drop it; false where it does not rise.

        Parameters
        ----------
        bounded : the bound of a tree
        item, bound : the tree, and its bound so far
        best : pJ; what takes as much is of no interest
        """
        while True:
            least = bounded(item.tree, best)
            if least is None:
                return True
            if least.least > bound:
                self._push(least.least, item)
                return True
            # Without windows turns are solved when they are listed.
            if not self.group.has_windows or not self.rooms.advance(least):
                return False

    def _open_ordered(self, ordered: Ordered, bound: Fraction, best: Fraction | None) -> None:
        """List its skeletons."""
        if self._rises(self.rooms.bound, ordered, bound, best):
            return
        for tree in self.trees.halos(ordered.tree):
            self.limits.check()
            self.answer.skeletons += 1
            self._list(tree, bound, best)

    def _list(self, tree: Branch, bound: Fraction, best: Fraction | None) -> None:
        """List a skeleton's turns."""
        skeleton = self._skeleton(tree)
        if skeleton is not None and (best is None or skeleton.bound < best):
            self._push(max(skeleton.bound, bound), skeleton)

    def _skeleton(self, tree: Branch) -> Skeleton | None:
        """A tree with its turns; ``None`` where it makes no sense or not all that is needed.

        A loop over a result that is read through windows may have a tile that is larger than what its
        readers need in a turn.
        """
        try:
            skeleton = self.space.skeleton(tree)
        except InputError:
            return None
        return skeleton if skeleton.makes_all(self.group.leaving) else None

    def _dive(self, best: Fraction | None) -> None:
        """Price some trees at once, half below what is opened next, so that a limit finds an answer."""
        self._next_dive = 3 * max(FIRST_DIVE, self.answer.opened)
        entries = heapq.nsmallest(DRAWN, self._open)
        entries += self._chance.sample(self._open, min(DRAWN, len(self._open)))
        for ordered in self.dives.best((entry.item for entry in entries), best):
            candidate = self.space.promising(self._members(ordered), best)
            if candidate is not None:
                self._price(candidate, best)
                best = least_of(self.answer.value, best)

    def _members(self, ordered: Branch) -> Iterator[Skeleton]:
        """Some skeletons of an ordered tree."""
        for tree in islice(self.trees.halos(ordered), MEMBERS):
            self.limits.check()
            skeleton = self._skeleton(tree)
            if skeleton is not None:
                yield skeleton

    def _relax(self, candidate: Candidate, least: Fraction, best: Fraction | None) -> None:
        """Solve a candidate's turns with the room that homes leave."""
        bound = self.cost_of(candidate, None, best)
        if bound is None or (best is not None and bound >= best):
            return
        self._push(max(bound, least), candidate)
        if self.answer.tree is None or self._promising is None or bound < self._promising:
            # Priced at once, so that a limit finds an answer.
            self._promising = bound
            self._price(candidate, best)

    def _price(self, candidate: Candidate, best: Fraction | None) -> None:
        """Solve a candidate's turns in the room that is left, and keep what is better than all before."""
        leaves: dict[str, Leaf] = {}
        value = self.cost_of(candidate, leaves, best)
        if value is None or (best is not None and value >= best):
            return
        tree = self.space.tree(candidate, leaves)
        evaluation = evaluate_fused(self.group, self.engine, self.model, tree)
        if evaluation.violations or evaluation.energy != value:
            raise TilewrightError(f"a fused mapping of {value} pJ is evaluated at {evaluation.energy} pJ")
        self.answer.tree, self.answer.evaluation, self.answer.value = tree, evaluation, value

    def cost_of(
        self, candidate: Candidate, leaves: dict[str, Leaf] | None, most: Fraction | None = None
    ) -> Fraction | None:
        """What a candidate costs; :func:`candidate_cost.cost_of` says in which room, and up to what."""
        return cost_of(self.space, self.solver, candidate, leaves, most)
