"""Branch and bound over the memory hierarchy, vectorised.

The search refines all axis groups stage by stage (:mod:`tilewright.solvers.mapping.stages`): the outermost
tile first, then what happens inside it.  A partial decision is bounded by reading the objective with
intervals: what lies outside the tile is exact, what lies inside is at least compulsory traffic and a full
array.  Partial decisions are opened in the order of their bounds; what cannot beat the incumbent is closed.
``docs/proofs.md`` shows why the bounds are valid.
"""

from __future__ import annotations

import copy
import heapq
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from collections.abc import Mapping as MappingABC
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from itertools import product as cartesian
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tilewright import __version__
from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.expression.batch import EXACT_LIMIT, Array
from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.mapping.chains import AxisGroup
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.relaxation import legal_groups
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.tables import Indices, Tables
from tilewright.formulation.method import Outcome
from tilewright.formulation.stopping import BoundReaches, WhenSet
from tilewright.heuristics.mapping.annealing import Annealing
from tilewright.solvers.mapping import program
from tilewright.solvers.mapping.array_bounds import ArrayBounds
from tilewright.solvers.mapping.by_arrangement import ByArrangement
from tilewright.solvers.mapping.levels import Division, Relaxed, divided
from tilewright.solvers.mapping.stages import STORAGE, StagedTable, stages_of
from tilewright.solvers.mapping.tape import Tape

BATCH = 1 << 16
_DIVE_WIDTHS = (128, 1024)  # nodes kept after every group; wider where a narrow dive ends nowhere
_COMPILING = 3.0  # seconds that it takes at least
_NOT_COMPILED = "annealed only: compiling the search, done once, took longer (see tilewright doctor)"
_DIVE_LINES = 3  # choices of orders and residencies followed from stage to stage
_PLAIN = 300_000  # parts bounded from which on the energy is divided
_EASY = 2_000_000  # parts bounded from which on a search is a hard one
_EFFORT = 2_000_000  # parts bounded in looking at the outer levels alone
_RELAXED_EFFORT = 16_000_000  # and at one store alone, which has fewer terms
_CHOICES = 32  # of orders and residencies at the outset, with which a search is a hard one
_SHARE, _ANNEALED = 0.4, 1.5  # of the time that is left, and seconds
BAND = 1e-12  # relative; products of two exact floats agree with the exact product well within it


class Branch:
    """Best-first branch and bound on interval bounds."""

    name = "branch"
    exact = True

    @property
    def version(self) -> str:
        return __version__

    def solve(self, search: LayerSearch) -> Outcome:
        """Offer every improvement, raise the bound as the cheapest open part grows dearer.

        Where machine code has to be compiled first, annealing finds a mapping meanwhile; it is all where the
        limit strikes before that is done.  Compiling goes on then, for the searches that follow.
        """
        if not (program.is_compiled() or self._meanwhile(search)):
            return Outcome(False, _NOT_COMPILED if search.limits.expired else "")
        if search.problem.is_uneven:
            from tilewright.solvers.mapping.forest import Forest

            least = Forest(search, Minimum(search, self.name), self._on_hard(search)).run(self._bound(search))
        else:
            tree = Tree(search, Minimum(search, self.name))
            tree.on_hard = self._on_hard(search)
            if tree.empty:
                return Outcome(True, "no tile sizes satisfy the constraints and fit the array")
            least = tree.run(self._bound(search))
        if least is not None:
            return Outcome(search.key is not None and search.key == search.bound)
        goal = _goal(search)
        if goal is None:
            return Outcome(True, "no mapping satisfies all constraints")
        search.raise_bound(goal, self.name)
        return Outcome(search.key is not None)

    def _meanwhile(self, search: LayerSearch) -> bool:
        """Anneal while the machine code is compiled; whether it is there before the search is over."""
        limits = search.limits
        program.compile_beside()
        if not limits.deterministic:
            short = limits.remaining is not None and limits.remaining < _COMPILING
            annealing = Annealing() if short else Annealing(walkers=64, steps=60)
            with suppress(LimitReachedError):  # compiled before the tables were filled
                ByArrangement(annealing).solve(search.within(limits.stopping(WhenSet(program.READY))))
        return program.await_compiled(lambda: search.done)

    @staticmethod
    def _on_hard(search: LayerSearch) -> Callable[[], None]:
        """What helps a search that does not end soon: annealing, and the optimum of perfect factors."""

        def offer() -> None:
            from tilewright.solvers.mapping.large_problems import is_large, offer_perfect_factors

            if is_large(search.problem) and not search.problem.space.nest.perfect:
                return  # the search began with them
            limits = search.limits.share(_SHARE, None if search.limits.deterministic else _ANNEALED)
            with suppress(LimitReachedError):
                ByArrangement(Annealing()).solve(search.within(limits))
            offer_perfect_factors(search)

        return offer

    def _bound(self, search: LayerSearch) -> Callable[[float], None]:
        def tell(least: float) -> None:
            """Everything still open costs at least this much."""
            if least > 0:
                safe = Fraction(int(least * (1 - BAND))) / search.problem.key_scale
                value = search.key
                search.raise_bound(safe if value is None else min(safe, value), self.name)

        return tell


class Goal(Protocol):
    """What a search looks for: it decides which parts of the space stay open, and takes what they hold.

    ``both`` tells that it compares energy and cycles even where the objective has only one of them.
    """

    both: bool

    def wanted(self, energy: Array, cycles: Array, keys: Array) -> NDArray[np.bool_]:
        """Parts that may hold something new, by lower bounds of energy (scaled), cycles and their key."""

    def take(self, leaves: Leaves) -> None:
        """Look at complete decisions."""


def below(
    goal: Fraction, powers: tuple[int, int], energy: Array, cycles: Array, keys: Array
) -> NDArray[np.bool_]:
    """Which keys are below ``goal`` (scaled); products of two floats near it are compared exactly."""
    target = float(goal)
    if sum(powers) == 1 and target < EXACT_LIMIT:
        return keys < target if goal == int(target) else keys <= target
    keep = keys < target * (1 + BAND)
    if energy.max(initial=0) < EXACT_LIMIT:
        a, b = powers
        for index in np.flatnonzero(keep & (keys > target * (1 - BAND))):
            keep[index] = int(energy[index]) ** a * int(cycles[index]) ** b < goal
    return keep


class Minimum:
    """One mapping of the least objective key."""

    both = False

    def __init__(self, search: LayerSearch, source: str) -> None:
        self._search = search
        self._source = source
        self._powers = search.problem.objective.key_powers
        self._goal: Fraction | None = None
        self._scaled = Fraction(0)  # the goal in the scale of the keys that are read

    def wanted(self, energy: Array, cycles: Array, keys: Array) -> NDArray[np.bool_]:
        """Parts whose bound is below what the incumbent leaves to gain; products compared exactly."""
        goal = _goal(self._search)
        if goal is None:
            return np.ones(len(keys), dtype=bool)
        if goal is not self._goal:
            self._goal, self._scaled = goal, goal * self._search.problem.key_scale
        return below(self._scaled, self._powers, energy, cycles, keys)

    def take(self, leaves: Leaves) -> None:
        """Offer the best of the complete decisions, unless something as good is known."""
        best = slice(int(np.argmin(leaves.keys)), None)
        if self.wanted(leaves.energy[best][:1], leaves.cycles[best][:1], leaves.keys[best][:1]).any():
            self._search.confirm(leaves.mapping(best.start), self._source)


class LeastEnergy:
    """The least value of what is read as energy."""

    both = False

    def __init__(self) -> None:
        self.best = math.inf

    def wanted(self, energy: Array, cycles: Array, keys: Array) -> NDArray[np.bool_]:
        """Parts whose bound is below the least value found."""
        return keys < self.best

    def take(self, leaves: Leaves) -> None:
        """Note the least value."""
        self.best = min(self.best, float(leaves.keys.min()))


def _goal(search: LayerSearch) -> Fraction | None:
    """The key from which on nothing is of interest; ``None`` while everything is."""
    goals = [part.key for part in search.limits.until.parts if isinstance(part, BoundReaches)]
    if search.key is not None:
        gap = search.limits.gap
        goals.append(search.key * (1 - Fraction(gap)) if gap else search.key)
    return min(goals, default=None)


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Partial decisions of one stage under the same choices.

    Parameters
    ----------
    cells : the cell of every node in every group, shape (groups, nodes)
    at : per group, the stage that its cells belong to; -1 where nothing is decided yet
    energy, cycles, keys : lower bounds of energy (scaled), cycles and objective key, as floats
    """

    cells: NDArray[np.int64]
    at: tuple[int, ...]
    chosen: MappingABC[Variable, int]
    energy: Array
    cycles: Array
    keys: Array

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> _Nodes:
        places = np.flatnonzero(index) if index.dtype == bool else index
        return _Nodes(
            self.cells.take(places, axis=1),  # several times faster than indexing
            self.at,
            self.chosen,
            self.energy.take(places),
            self.cycles.take(places),
            self.keys.take(places),
        )

    def between(self, start: int, stop: int | None) -> _Nodes:
        piece = slice(start, stop)
        return _Nodes(
            self.cells[:, piece],
            self.at,
            self.chosen,
            self.energy[piece],
            self.cycles[piece],
            self.keys[piece],
        )


class Leaves:
    """Complete decisions, with their energy (scaled), cycles and objective keys."""

    def __init__(self, tree: Tree, nodes: _Nodes) -> None:
        self._tree = tree
        self._nodes = nodes
        self.energy, self.cycles, self.keys = nodes.energy, nodes.cycles, nodes.keys

    def __len__(self) -> int:
        return len(self.keys)

    def groups(self) -> list[AxisGroup]:
        """Every axis group with one row for each decision."""
        return [
            replace(staged.table.group, rows=staged.table.group.rows[staged.starts[-1][cells]])
            for staged, cells in zip(self._tree.staged, self._nodes.cells, strict=True)
        ]

    def mapping(self, index: int) -> Mapping:
        """The mapping of one of them."""
        assignment = dict(self._nodes.chosen)
        for staged, cell in zip(self._tree.staged, self._nodes.cells[:, index], strict=True):
            row = int(staged.starts[-1][cell])
            for column, variable in enumerate(staged.table.group.variables):
                assignment[variable] = int(staged.table.group.rows[row, column])
        return self._tree.problem.decode(assignment)


class Tree:
    """One search for one goal.

    ``empty`` tells that tile sizes and array leave nothing to choose; ``on_hard`` is called once, where the
    search does not end soon; with ``most`` it ends once so many nodes have been bounded.  Raises
    ``LimitReachedError`` where a limit strikes before it is laid out.

    Parameters
    ----------
    problem : that of the search by default, else a part of it
    """

    def __init__(self, search: LayerSearch, goal: Goal, problem: LayerProblem | None = None) -> None:
        self.search = search
        self.goal = goal
        self.problem = problem or search.problem
        space, statement = self.problem.space, self.problem.statement
        self.powers = self.problem.objective.key_powers
        limits = [limit.expr for limit in self.problem.limits]
        if not program.await_compiled(lambda: search.limits.expired):
            raise LimitReachedError
        groups = legal_groups(self.problem, search.limits)
        roots = [statement.energy, statement.cycles]
        tables = Tables(groups, [*roots, *limits], search.limits)
        # networks and DMA decide the costs of perfect-only models: neither order prunes more there
        known = not self.problem.model.perfect_only
        spread_first, inner_first = known and self.powers[1] > 0, known and not self.powers[1]
        self.stages = stages_of(space, spread_first, inner_first)
        array = ArrayBounds(space.nest, tables, search.limits.heed)
        self.empty = not array.fits
        self.staged: list[StagedTable] = []
        for table in tables.tables:
            search.limits.heed()
            self.staged.append(StagedTable(table, space.nest, self.stages))
        self._floors = array.bounds(roots)
        self._read = [root for root, power in zip(roots, self.powers, strict=True) if power or goal.both]
        self._ceilings = [(limit.expr, limit.bound) for limit in self.problem.limits]
        self.most: int | None = None
        self._is_hard, self._is_plain = False, True
        self._division: Division | None = None
        self._given: MappingABC[Variable, int] = {}
        self.on_hard: Callable[[], None] = lambda: None
        self._begin()

    def _begin(self) -> None:
        """With nothing bounded yet."""
        self._lay_tape()
        self.tick = count()
        self._beam: int | None = None
        self._stopped = False
        self._fringe: list[tuple[float, int, int, _Nodes]] = []
        self._size = 1  # nodes that are opened together
        self._bounded = 0

    def _lay_tape(self) -> None:
        if not self.empty:
            owners = self._owners
            self.tape = Tape(
                self.staged, self._ceilings, self._read, self._floors, self.search.limits, owners
            )

    @property
    def _owners(self) -> tuple[Variable, ...]:
        """The choices of storage."""
        return self.stages[0].selectors if self.stages[0].name == STORAGE else ()

    def _storage(self, nodes: _Nodes) -> dict[Variable, int]:
        """The storage chosen for some nodes."""
        return {variable: nodes.chosen[variable] for variable in self._owners}

    def least_value(self, term: Expr, storage: MappingABC[Variable, int], most: int = _EFFORT) -> float:
        """Lower bound of a term of the divided energy over the whole space, from a search of its own.

        Parameters
        ----------
        storage : options of the choices of storage
        most : nodes that the search may bound
        """
        assert self._division is not None
        relaxed = self._division.relaxed.get(term)
        search = copy.copy(self)
        search.goal = goal = LeastEnergy()
        search.powers = (1, 0)
        search._given, search._division = storage, None
        search._read = [term if relaxed is None else relaxed.energy]
        limits = self.problem.statement.limits if relaxed is None else relaxed.limits
        search._ceilings = [(limit.expr, limit.bound) for limit in limits]
        if relaxed is not None:
            search.stages, search.staged = list(relaxed.stages), self._tables_of(relaxed)
        search._begin()
        search.most = most
        search._is_hard, search._is_plain = True, False
        left = search.run()
        least = min(goal.best, math.inf if left is None else left)
        return least if least < EXACT_LIMIT else least * (1 - BAND)

    def _tables_of(self, relaxed: Relaxed) -> list[StagedTable]:
        """The tables for a search of one part alone, in its own stages."""
        found = self._part_tables.get(relaxed.energy)
        if found is None:
            roots = [relaxed.energy, *(limit.expr for limit in relaxed.limits)]
            nest, limits = self.problem.space.nest, self.search.limits
            found = [
                StagedTable(staged.table.reading(roots, limits), nest, relaxed.stages)
                for staged in self.staged
            ]
            self._part_tables[relaxed.energy] = found
        return found

    def _take_pains(self) -> None:
        """Where the search is not over soon, divide the energy."""
        self._is_plain = False
        if self.powers[0] or self.goal.both:
            with suppress(LimitReachedError):
                self.divide()

    def divide(self) -> None:
        """Read the energy as a sum of parts that have floors; raises where a limit strikes."""
        division = divided(self.problem)
        if not division.terms:
            return
        old = self.problem.statement.energy
        for staged in self.staged:
            staged.table.values.update(staged.table.missing([division.energy], self.search.limits))
        self._read = [division.energy if root is old else root for root in self._read]
        self._floors = {**self._floors, **dict.fromkeys(division.terms, 0.0)}
        self._lay_tape()
        self._division = division
        self._raised: set[tuple[int, ...]] = set()
        self._least: dict[Hashable, float] = {}
        self._part_tables: dict[Expr, list[StagedTable]] = {}

    def _raise(self, nodes: _Nodes) -> bool:
        """Find what the parts of the energy cost at least under the storage of some nodes, once."""
        if self._division is None:
            return False
        storage = self._storage(nodes)
        key = tuple(storage.values())
        if key in self._raised:
            return False
        self._raised.add(key)
        for term in self._division.terms:
            with suppress(LimitReachedError):
                least = self._known_least(term, storage)
                if not math.isinf(least):  # nothing is legal, which the search itself will find
                    self.tape.raise_floor(term, least, storage)
        mine = [entry for entry in self._fringe if self._storage(entry[-1]) == storage]
        self._fringe = [entry for entry in self._fringe if self._storage(entry[-1]) != storage]
        heapq.heapify(self._fringe)
        for _, _, stage, others in mine:
            self._push_again(others, stage)
        return True

    def _known_least(self, term: Expr, storage: MappingABC[Variable, int]) -> float:
        """The least value of a term, found once for all storages that are alike for it."""
        assert self._division is not None
        relaxed = self._division.relaxed.get(term)
        alike = tuple(storage.values()) if relaxed is None else relaxed.under(storage)
        if (term, alike) not in self._least:
            most = _EFFORT if relaxed is None else _RELAXED_EFFORT
            self._least[term, alike] = self.least_value(term, storage, most)
        return self._least[term, alike]

    def _push_again(self, nodes: _Nodes, stage: int) -> None:
        """Put nodes back with the bounds that are known now."""
        raised = self._prune(nodes)
        if len(raised):
            self._push(raised.take(np.argsort(raised.keys, kind="stable")), stage)

    def run(self, tell: Callable[[float], None] = lambda _least: None) -> float | None:
        """Search until the goal wants nothing that is open, or a limit strikes.

        Parameters
        ----------
        tell : called with lower bounds of the objective key of all that is still open

        Returns ``None`` when nothing is open any more, else the least key bound of what is.
        """
        self.begin(tell)
        return self.go_on(tell)

    @property
    def least(self) -> float:
        """Lower bound of the objective key of all that is still open; infinite where nothing is."""
        return self._fringe[0][0] if self._fringe else math.inf

    @property
    def least_energy(self) -> float:
        """Lower bound of the energy of all that is still open; infinite where nothing is."""
        return min((float(nodes.energy.min()) for *_, nodes in self._fringe), default=math.inf)

    def begin(self, tell: Callable[[float], None] = lambda _least: None, dive: bool = True) -> None:
        """Bound the whole, dive for a first incumbent unless told not to, and open the first stage."""
        root = self._root()
        tell(float(root.keys[0]))
        choices = math.prod(len(selector.domain) for selector in self.stages[0].selectors)
        if choices > _CHOICES and not self._is_hard:
            self._is_hard = True
            self.on_hard()
        if dive:
            self._dive(root)
        if choices > _CHOICES and self._is_plain:
            self._take_pains()
        for nodes in self._refine(root, 0):
            self._push(nodes, 1)
        if self._stopped:
            self._fringe = [(float(root.keys[0]), next(self.tick), 0, root)]

    def go_on(
        self,
        tell: Callable[[float], None] = lambda _least: None,
        until: float = math.inf,
        over: Callable[[], bool] = lambda: False,
    ) -> float | None:
        """Search on what is open, as :meth:`run`, until bounds pass ``until`` or something is over."""
        while self._fringe and not self._stopped:
            if self.least > until or over():
                return self.least
            if self._is_plain and self._bounded > _PLAIN:
                self._take_pains()
            if not self._is_hard and self._bounded > _EASY:
                self._is_hard = True
                self.on_hard()
            least, _, stage, nodes = heapq.heappop(self._fringe)
            tell(least)
            whole = nodes
            if not self.search.done:
                nodes = self._open(nodes)
                if not len(nodes):
                    continue
                if self._raise(nodes):
                    self._push_again(nodes, stage)
                    continue
                if stage == 1 and self._owners:
                    children = list(self._refine(nodes, stage))
                    if not (self.search.done or self._stopped):
                        for part in children:
                            self._push(part, stage + 1)
                        continue
                else:
                    head, rest = nodes.between(0, self._size), nodes.between(self._size, None)
                    self._explore(head, stage)
                    if not (self.search.done or self._stopped):
                        if len(rest):
                            self._push(rest, stage)
                        self._size = min(4 * self._size, 1024)
                        continue
            self._push(whole, stage)
            break
        return self.least if self._fringe else None

    def _root(self) -> _Nodes:
        """The whole space as one node."""
        zero = np.zeros(1)
        start = np.zeros((len(self.staged), 1), dtype=np.int64)
        root = _Nodes(start, tuple(-1 for _ in self.staged), self._given, zero, zero, zero)
        bounded = self._prune(root)
        return bounded if len(bounded) else root

    def _dive(self, root: _Nodes) -> None:
        """Walk down to complete decisions along the most promising parts only, for a first incumbent."""
        for width in _DIVE_WIDTHS:
            self._beam = width
            lines = [root]
            for stage in range(len(self.stages)):
                inner = [part for nodes in lines for part in self._refine(nodes, stage)]
                lines = sorted(inner, key=lambda part: float(part.keys[0]))[:_DIVE_LINES]
            self._beam = None
            if lines or self._stopped:
                break
        for nodes in lines:
            self.goal.take(Leaves(self, nodes))

    def _push(self, nodes: _Nodes, stage: int) -> None:
        """Keep nodes, in the order of their bounds, whose stage is the next to be decided."""
        heapq.heappush(self._fringe, (float(nodes.keys[0]), next(self.tick), stage, nodes))

    def _explore(self, nodes: _Nodes, stage: int) -> None:
        """Depth first, cheapest first, in growing pieces."""
        if stage == len(self.stages):
            self.goal.take(Leaves(self, nodes))
            return
        size = 1 if self.search.key is None else 256
        while len(nodes):
            if self.search.done:
                return
            nodes = self._open(nodes)
            head, nodes = nodes.between(0, size), nodes.between(size, None)
            if len(head):
                inner = sorted(self._refine(head, stage), key=lambda part: float(part.keys[0]))
                for part in inner:
                    self._explore(part, stage + 1)
            size = min(4 * size, 4096)

    def _refine(self, nodes: _Nodes, stage: int) -> Iterator[_Nodes]:
        """All children of some nodes that may beat the incumbent, cheapest first, by choice."""
        names = [selector for selector in self.stages[stage].selectors if selector not in nodes.chosen]
        for values in cartesian(*(selector.domain for selector in names)):
            chosen = {**nodes.chosen, **dict(zip(names, values, strict=True))}
            start = replace(nodes, chosen=chosen)
            parts = list(self._split(start, self._group_order(stage), stage))
            if parts:
                merged = _joined(parts)
                yield merged.take(np.argsort(merged.keys, kind="stable"))

    def _group_order(self, stage: int) -> list[int]:
        """Groups with few children first, so that early pruning is cheap."""
        sizes = [len(staged.starts[stage]) for staged in self.staged]
        return sorted(range(len(sizes)), key=lambda position: sizes[position])

    def _split(self, nodes: _Nodes, order: Sequence[int], stage: int) -> Iterator[_Nodes]:
        if not order:
            nodes = self._prune(nodes)
            if len(nodes):
                yield nodes
            return
        position, rest = order[0], order[1:]
        first, counts = self._children(nodes, position, stage)
        ends = np.cumsum(counts)
        piece = 0
        while piece < len(nodes):
            if self.search.limits.expired or (self.most is not None and self._bounded > self.most):
                self._stopped = True
                return
            base = ends[piece - 1] if piece else 0
            stop = max(piece + 1, int(np.searchsorted(ends, base + BATCH, side="right")))
            index = np.repeat(np.arange(piece, stop), counts[piece:stop])
            offset = np.arange(len(index)) - np.repeat(
                ends[piece:stop] - counts[piece:stop] - base, counts[piece:stop]
            )
            grown = nodes.take(index)
            grown.cells[position] = first[index] + offset
            at = tuple(stage if i == position else s for i, s in enumerate(nodes.at))
            part = replace(grown, at=at)
            if self._beam is not None:
                part = self._prune(part)
                part = part.take(np.argsort(part.keys, kind="stable")[: self._beam])
            elif rest and len(part) > 256:
                part = self._prune(part)
            if len(part):
                yield from self._split(part, rest, stage)
            piece = stop

    def _children(self, nodes: _Nodes, position: int, stage: int) -> tuple[Indices, Indices]:
        """First child cell and number of children of every node in one group."""
        staged = self.staged[position]
        if stage == 0:
            begin, end = staged.root_children()
            size = len(nodes)
            return np.full(size, begin), np.full(size, end - begin)
        edges = staged.children[stage - 1]
        cells = nodes.cells[position]
        return edges[cells], edges[cells + 1] - edges[cells]

    def _prune(self, nodes: _Nodes) -> _Nodes:
        """Keep nodes that may be legal and may beat the incumbent; raise their bounds."""
        self._bounded += len(nodes)
        kept, read = self.tape.bounds(nodes.cells, nodes.at, nodes.chosen)
        if len(kept) < len(nodes):
            nodes = nodes.take(kept)
            if not len(nodes):
                return nodes
        rows = iter(read)
        energy, cycles = (
            np.maximum(old, next(rows)) if power or self.goal.both else old
            for old, power in zip((nodes.energy, nodes.cycles), self.powers, strict=True)
        )
        if cycles.max() >= EXACT_LIMIT:  # a larger energy is a sum of exact counts, right within BAND
            raise OverflowError("counts beyond 2**53: the layer is too large for exact bounds")
        keys = energy ** self.powers[0] * cycles ** self.powers[1]
        return self._open(replace(nodes, energy=energy, cycles=cycles, keys=keys))

    def _open(self, nodes: _Nodes) -> _Nodes:
        """Nodes that the goal wants."""
        keep = self.goal.wanted(nodes.energy, nodes.cycles, nodes.keys)
        return nodes if keep.all() else nodes.take(keep)


def _joined(parts: Sequence[_Nodes]) -> _Nodes:
    """Nodes of the same stage and choices in one."""
    if len(parts) == 1:
        return parts[0]
    return replace(
        parts[0],
        cells=np.concatenate([part.cells for part in parts], axis=1),
        energy=np.concatenate([part.energy for part in parts]),
        cycles=np.concatenate([part.cycles for part in parts]),
        keys=np.concatenate([part.keys for part in parts]),
    )
