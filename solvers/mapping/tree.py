"""The tree of partial decisions that branch and bound searches, vectorised.

It refines all axis groups stage by stage (:mod:`tilewright.solvers.mapping.stages`): the outermost tile
first, then what happens inside it.  A partial decision is bounded by reading the objective with intervals:
what lies outside the tile is exact, what lies inside is at least compulsory traffic and a full array.
Partial decisions are opened in the order of their bounds; what a goal does not want is closed.
``docs/proofs.md`` shows why the bounds are valid.
"""

from __future__ import annotations

import copy
import heapq
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from collections.abc import Mapping as MappingABC
from contextlib import suppress
from dataclasses import replace
from itertools import count
from itertools import product as cartesian

import numpy as np

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.expression.batch import EXACT_LIMIT, Array
from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.relaxation import legal_groups
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.tables import Indices, Tables
from tilewright.solvers.mapping import program
from tilewright.solvers.mapping.array_bounds import ArrayBounds, array_rooms
from tilewright.solvers.mapping.goals import BAND, Goal, LeastEnergy
from tilewright.solvers.mapping.levels import Division, Relaxed, divided
from tilewright.solvers.mapping.nodes import Leaves, Nodes, joined
from tilewright.solvers.mapping.stages import STORAGE, StagedTable, stages_of
from tilewright.solvers.mapping.tape import Tape

BATCH = 1 << 16
_DIVE_WIDTHS = (128, 1024)  # nodes kept after every group; wider where a narrow dive ends nowhere
_DIVE_LINES = 3  # choices of orders and residencies followed from stage to stage
_MANY = 256  # nodes that are bounded in the middle of a stage
_PLAIN = 300_000  # parts bounded from which on the energy is divided
_EASY = 2_000_000  # parts bounded from which on a search is a hard one
_EFFORT = 2_000_000  # parts bounded in looking at the outer levels alone
_RELAXED_EFFORT = 16_000_000  # and at one store alone, which has fewer terms
_CHOICES = 32  # of orders and residencies at the outset, with which a search is a hard one

_STEPS = 1.002 ** np.arange(1500)
"""Up to twenty times a bound."""


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
        rooms = array_rooms(space.nest)
        self._ceilings = [(limit.expr, limit.bound) for limit in (*self.problem.limits, *rooms)]
        limits = [expr for expr, _ in self._ceilings]
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
        self.most: int | None = None
        self._is_hard, self._is_plain = False, True
        self._division: Division | None = None
        self._given: MappingABC[Variable, int] = {}
        self.on_hard: Callable[[], None] = lambda: None
        self._lay_tape()
        self._begin()

    def _begin(self) -> None:
        """With nothing bounded yet."""
        self.tick = count()
        self._beam: int | None = None
        self._stopped = False
        self._fringe: list[tuple[float, int, int, Nodes]] = []
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

    def _storage(self, nodes: Nodes) -> dict[Variable, int]:
        """The storage chosen for some nodes."""
        return {variable: nodes.chosen[variable] for variable in self._owners}

    def least_value(
        self, term: Expr, storage: MappingABC[Variable, int], most: int = _EFFORT, enough: float = math.inf
    ) -> float:
        """Lower bound of a term of the divided energy over the whole space, from a search of its own.

        Parameters
        ----------
        storage : options of the choices of storage
        most : nodes that the search may bound
        enough : a bound above which nothing more is asked
        """
        search = copy.copy(self._part_search(term))
        search.goal = goal = LeastEnergy(enough)
        search._given = storage
        search._begin()
        search.most = most
        left = search.run()
        least = min(goal.best, math.inf if left is None else left)
        return least if least < EXACT_LIMIT else least * (1 - BAND)

    def _part_search(self, term: Expr) -> Tree:
        """A search for the least value of a term, laid out once for all storages."""
        assert self._division is not None
        search = self._part_searches.get(term)
        if search is None:
            relaxed = self._division.relaxed.get(term)
            search = self._part_searches[term] = copy.copy(self)
            search.powers = (1, 0)
            search._division = None
            search._is_hard, search._is_plain = True, False
            search._read = [term if relaxed is None else relaxed.energy]
            machine = (*self.problem.statement.limits, *array_rooms(self.problem.space.nest))
            limits = machine if relaxed is None else relaxed.limits
            search._ceilings = [(limit.expr, limit.bound) for limit in limits]
            if relaxed is not None:
                search.stages, search.staged = list(relaxed.stages), self._tables_of(relaxed)
            search._lay_tape()
        return search

    def _tables_of(self, relaxed: Relaxed) -> list[StagedTable]:
        """The tables for a search of one part alone, in its own stages."""
        roots = [relaxed.energy, *(limit.expr for limit in relaxed.limits)]
        nest, limits = self.problem.space.nest, self.search.limits
        return [
            StagedTable(staged.table.reading(roots, limits), nest, relaxed.stages) for staged in self.staged
        ]

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
        self._raised: dict[tuple[int, ...], dict[Expr, float]] = {}
        self._least: dict[Hashable, tuple[float, float]] = {}  # with what would have been enough
        self._part_searches: dict[Expr, Tree] = {}

    def _raise(self, nodes: Nodes, stage: int) -> bool:
        """Find what one more part of the energy costs at least under the storage of some nodes.

        Once all parts are known and the storage is still of interest, dive into it.
        """
        if self._division is None:
            return False
        storage = self._storage(nodes)
        floors = self._raised.setdefault(tuple(storage.values()), {})
        term = next((term for term in self._division.terms if term not in floors), None)
        if term is None:
            return False
        floors[term] = 0.0
        with suppress(LimitReachedError):
            floors[term] = self._known_least(term, storage, self._enough(term, nodes, floors))
            if not math.isinf(floors[term]):  # nothing is legal, which the search itself will find
                self.tape.raise_floor(term, floors[term], storage)
        mine = [entry for entry in self._fringe if self._storage(entry[-1]) == storage]
        self._fringe = [entry for entry in self._fringe if self._storage(entry[-1]) != storage]
        heapq.heapify(self._fringe)
        for _, _, other, others in [*mine, (0.0, 0, stage, nodes)]:
            self._push_again(others, other)
        if storage and stage == 1 and len(floors) == len(self._division.terms):
            self._dive(self._prune(nodes), stage)
        return True

    def _enough(self, term: Expr, nodes: Nodes, floors: MappingABC[Expr, float]) -> float:
        """The least value of a term, of some values tried, with which nothing in the nodes is wanted."""
        assert self._division is not None
        rest = sum(floors.get(other, 0.0) for other in self._division.beside(term))
        energy: Array = np.asarray(max(1.0, float(nodes.energy.min())) * _STEPS, dtype=np.float64)
        cycles = np.full(len(energy), float(nodes.cycles.min()))
        keys = energy ** self.powers[0] * cycles ** self.powers[1]
        wanted = self.goal.wanted(energy, cycles, keys)
        return math.inf if wanted.all() else max(0.0, float(energy[np.argmin(wanted)]) - rest)

    def _known_least(self, term: Expr, storage: MappingABC[Variable, int], enough: float) -> float:
        """The least value of a term, or enough; found once for all storages that are alike for it."""
        assert self._division is not None
        relaxed = self._division.relaxed.get(term)
        alike = tuple(storage.values()) if relaxed is None else relaxed.under(storage)
        least, asked = self._least.get((term, alike), (0.0, 0.0))
        if asked < enough and least >= asked:
            most = _EFFORT if relaxed is None else _RELAXED_EFFORT
            least = self.least_value(term, storage, most, enough)
            self._least[term, alike] = least, enough
        return least

    def _push_again(self, nodes: Nodes, stage: int) -> None:
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
        """Search on what is open, as :meth:`run`, until bounds pass ``until`` or something is over.

        What was stopped since so many nodes had been bounded goes on where ``most`` is larger now.
        """
        self._stopped = False
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
                if self._raise(nodes, stage):
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

    def _root(self) -> Nodes:
        """The whole space as one node."""
        zero = np.zeros(1)
        start = np.zeros((len(self.staged), 1), dtype=np.int64)
        root = Nodes(start, tuple(-1 for _ in self.staged), self._given, zero, zero, zero)
        bounded = self._prune(root)
        return bounded if len(bounded) else root

    def _dive(self, nodes: Nodes, first: int = 0) -> None:
        """Walk down to complete decisions along the most promising parts only, from some stage on."""
        for width in _DIVE_WIDTHS:
            self._beam = width
            lines = [nodes] if len(nodes) else []
            for stage in range(first, len(self.stages)):
                inner = [part for nodes in lines for part in self._refine(nodes, stage)]
                lines = sorted(inner, key=lambda part: float(part.keys[0]))[:_DIVE_LINES]
            self._beam = None
            if lines or self._stopped:
                break
        for leaves in lines:
            self.goal.take(Leaves(self, leaves))

    def _push(self, nodes: Nodes, stage: int) -> None:
        """Keep nodes, in the order of their bounds, whose stage is the next to be decided."""
        heapq.heappush(self._fringe, (float(nodes.keys[0]), next(self.tick), stage, nodes))

    def _explore(self, nodes: Nodes, stage: int) -> None:
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

    def _refine(self, nodes: Nodes, stage: int) -> Iterator[Nodes]:
        """All children of some nodes that may beat the incumbent, cheapest first, by choice."""
        names = [selector for selector in self.stages[stage].selectors if selector not in nodes.chosen]
        for values in cartesian(*(selector.domain for selector in names)):
            chosen = {**nodes.chosen, **dict(zip(names, values, strict=True))}
            start = replace(nodes, chosen=chosen)
            parts = list(self._split(start, self._group_order(stage), stage))
            if parts:
                merged = joined(parts)
                yield merged.take(np.argsort(merged.keys, kind="stable"))

    def _group_order(self, stage: int) -> list[int]:
        """Groups with few children first, so that early pruning is cheap."""
        sizes = [len(staged.starts[stage]) for staged in self.staged]
        return sorted(range(len(sizes)), key=lambda position: sizes[position])

    def _split(self, nodes: Nodes, order: Sequence[int], stage: int) -> Iterator[Nodes]:
        if not order:
            nodes = self._narrowed(nodes)
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
            part = nodes.refined(index, position, first[index] + offset, stage)
            if rest and len(part) > (self._beam or _MANY):
                part = self._narrowed(part)
            if len(part):
                yield from self._split(part, rest, stage)
            piece = stop

    def _children(self, nodes: Nodes, position: int, stage: int) -> tuple[Indices, Indices]:
        """First child cell and number of children of every node in one group."""
        staged = self.staged[position]
        if stage == 0:
            begin, end = staged.root_children()
            size = len(nodes)
            return np.full(size, begin), np.full(size, end - begin)
        edges = staged.children[stage - 1]
        cells = nodes.cells[position]
        return edges[cells], edges[cells + 1] - edges[cells]

    def _narrowed(self, nodes: Nodes) -> Nodes:
        """Nodes that may be legal and may beat the incumbent; in a dive only the best of them."""
        nodes = self._prune(nodes)
        return (
            nodes if self._beam is None else nodes.take(np.argsort(nodes.keys, kind="stable")[: self._beam])
        )

    def _prune(self, nodes: Nodes) -> Nodes:
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
        return self._open(nodes.bounded(energy, cycles, keys))

    def _open(self, nodes: Nodes) -> Nodes:
        """Nodes that the goal wants."""
        keep = self.goal.wanted(nodes.energy, nodes.cycles, nodes.keys)
        return nodes if keep.all() else nodes.take(keep)
