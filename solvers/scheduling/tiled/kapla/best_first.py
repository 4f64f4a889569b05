"""Proven chains of segments: schemes get their costs best-first on their bounds, until these meet the best chain.

At first every scheme has the least cost that its estimate allows.  A bound through every scheme follows
(`relaxation.py`); those whose bound reaches the value of the best chain known are gone for good.  Of the others
the most promising are evaluated, which raises bounds and gives better chains.  When none is left unevaluated,
the best chain over what is left is found exactly over labels (energy, cycles) that no other one beats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

import numpy as np
import numpy.typing as npt

from tilewright.formulation.scheduling.tiled.kapla.chain import Chain, loads_of, priced_chain
from tilewright.formulation.scheduling.tiled.kapla.estimate import Estimator
from tilewright.formulation.scheduling.tiled.kapla.segments import SegmentScheme, SegmentSpace
from tilewright.formulation.scheduling.tiled.set.closed_form import ClosedForm
from tilewright.heuristics.scheduling.tiled.kapla.solver import KaplaSolver, Slicing
from tilewright.heuristics.scheduling.tiled.set.chains import Segment, Segments, best_chain
from tilewright.solvers.scheduling.tiled.kapla.relaxation import Edges, Relaxation

Floats = npt.NDArray[np.float64]

AT_ONCE = 48
"""Schemes that are evaluated between two relaxations."""


@dataclass(frozen=True, slots=True)
class ProvenChain:
    """What is known of the chains of a slicing.

    Parameters
    ----------
    chain : the best one known
    bound : no chain of the slicing costs less
    proven : whether the best one known is the best of all
    schemes, valid, evaluated : how many there are, may fit by their estimates, and got their costs
    """

    chain: Chain | None
    bound: float
    proven: bool
    schemes: int
    valid: int
    evaluated: int


@dataclass
class BestFirst:
    """Searches all chains of a slicing under the closed form.

    Parameters
    ----------
    stop : whether the time is up
    found : told of every better chain
    warm : chains kept by the dynamic programming on estimates that comes first; 0 for none
    """

    form: ClosedForm
    slicing: Slicing = field(default_factory=Slicing)
    stop: Callable[[], bool] = lambda: False
    found: Callable[[Chain], None] = lambda chain: None
    warm: int = 4
    best: Chain | None = None
    schemes: int = 0
    valid: int = 0
    evaluated: int = 0

    def solve(self) -> ProvenChain:
        """Prove the best chain, or say how far bounds have come."""
        if self.warm:
            KaplaSolver(self.form, self.slicing, self.warm, self.stop, self._offer).solve()
        bound = inf
        for splits, space in self.slicing.spaces(self.form):
            bound = min(bound, self._split(splits, space))
        value = self._value(self.best)
        return ProvenChain(
            self.best, min(bound, value), bound >= value, self.schemes, self.valid, self.evaluated
        )

    def _split(self, splits: int, space: SegmentSpace) -> float:
        """Search chains with one number of subbatches; returns a bound on them, infinite for none better."""
        schemes: list[SegmentScheme] = []
        floors: list[tuple[float, float]] = []
        estimator = Estimator(self.form, loads_of(self.form, splits))
        for start in space.starts[:-1]:
            if self.stop():
                return 0.0
            for scheme in space.schemes(start):
                self.schemes += 1
                floor = estimator.floor(scheme)
                if not isinstance(floor, str):
                    schemes.append(scheme)
                    floors.append((floor.energy, float(floor.cycles)))
        self.valid += len(schemes)
        return _Split(self, splits, space, schemes, np.array(floors).reshape(-1, 2)).search()

    def _offer(self, chain: Chain) -> None:
        if self._value(chain) < self._value(self.best):
            self.best = chain
            self.found(chain)

    def _value(self, chain: Chain | None) -> float:
        return inf if chain is None else self.form.value(chain.energy, chain.cycles)


class _Split:
    """The chains with one number of subbatches of the root."""

    def __init__(
        self,
        search: BestFirst,
        splits: int,
        space: SegmentSpace,
        schemes: list[SegmentScheme],
        floors: Floats,
    ) -> None:
        self.search_, self.splits, self.space, self.schemes = search, splits, space, schemes
        number = {start: i for i, start in enumerate(space.starts)}
        tail = np.array([number[one.start] for one in schemes], dtype=np.int64)
        head = np.array([number[one.end] for one in schemes], dtype=np.int64)
        self.edges = Edges(tail, head, len(number))
        self.energy, self.cycles = floors[:, 0] * splits, floors[:, 1] * splits
        self.known = np.zeros(len(schemes), dtype=np.bool_)
        self.loads = loads_of(search.form, splits)

    def search(self) -> float:
        """A bound on the chains, infinite where none is better than the best one known."""
        while True:
            relaxation = self._relaxation()
            bound = relaxation.bound()
            value = self.search_._value(self.search_.best)
            if bound >= value:
                return inf
            through = relaxation.through()
            gone = through >= value
            self.energy[gone] = self.cycles[gone] = inf
            chains = relaxation.chains()
            self._try(chains)
            waiting = np.flatnonzero(~self.known & ~gone)
            if not len(waiting):
                return self._finish()
            if self.search_.stop():
                return bound
            preferred = {edge for chain in chains for edge in chain if not self.known[edge]}
            order = waiting[np.argsort(through[waiting], kind="stable")]
            chosen = [*sorted(preferred), *(int(one) for one in order if one not in preferred)]
            for edge in chosen[: max(AT_ONCE, len(preferred))]:
                self._evaluate(edge)

    def _relaxation(self) -> Relaxation:
        form, best = self.search_.form, self.search_.best
        if best is None:
            here = np.isfinite(self.energy)
            scale = float(self.energy[here].mean()), float(self.cycles[here].mean())
        else:
            scale = best.energy, float(best.cycles)
        powers = form.energy_power, form.delay_power
        return Relaxation(self.edges, self.energy, self.cycles, scale, powers)

    def _evaluate(self, edge: int) -> None:
        cost = self.search_.form.segment(self.schemes[edge].tree, self.loads)
        self.search_.evaluated += 1
        self.known[edge] = True
        if isinstance(cost, str):
            self.energy[edge] = self.cycles[edge] = inf
        else:
            self.energy[edge], self.cycles[edge] = cost.energy * self.splits, cost.cycles * self.splits

    def _try(self, chains: list[list[int]]) -> None:
        """Offer those chains all of whose schemes have their costs."""
        for chain in chains:
            if self.known[chain].all():
                self._offer(chain)

    def _offer(self, chain: list[int]) -> None:
        found = priced_chain(self.search_.form, [self.schemes[edge] for edge in chain], self.splits)
        if isinstance(found, Chain):
            self.search_._offer(found)

    def _finish(self) -> float:
        """The best chain over what is left, all of which has its costs."""
        number: dict[object, int] = {}
        segments = Segments()
        for edge in np.flatnonzero(np.isfinite(self.energy)):
            scheme = self.schemes[edge]
            one = Segment(
                scheme.start, scheme.end, float(self.energy[edge]), int(self.cycles[edge]), scheme.tree
            )
            number[one.tree] = int(edge)
            segments.add(one)
        chain, _ = best_chain(segments, list(self.space.starts), self.search_.form.value)
        if chain:
            self._offer([number[one.tree] for one in chain])
        return inf
