"""KAPLA between layers, and Tangram: chains of segments for one closed form.

KAPLA rejects schemes that cannot fit, bounds the costs of the others, drops those that another scheme of the
same layers dominates, and continues with the best few chains.  Only these get partitions; the best of them is
the answer.  Tangram evaluates every spatial segment of the network's own order, and its dynamic program has
one partial chain per layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tilewright.formulation.scheduling.tiled.kapla.chain import Chain, Priced, loads_of, priced_chain
from tilewright.formulation.scheduling.tiled.kapla.estimate import Estimates, Estimator
from tilewright.formulation.scheduling.tiled.kapla.segments import BOTH, SPATIAL, Kind, Orders, SegmentSpace
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.heuristics.scheduling.tiled.kapla.prioritization import top_chains, undominated


@dataclass(frozen=True, slots=True)
class Slicing:
    """Which chains are searched.

    Parameters
    ----------
    kinds, longest_spatial, longest_temporal, orders : see `SegmentSpace`
    splits : whether the root may run in subbatches
    stripes : most row stripes of a sample that layers pass on
    """

    kinds: tuple[Kind, ...] = BOTH
    longest_spatial: int = 8
    longest_temporal: int = 16
    orders: Orders = "auto"
    splits: bool = True
    stripes: int = 1

    def spaces(self, form: ClosedForm) -> Iterator[tuple[int, SegmentSpace]]:
        """For every number of subbatches of the root, the segments of one of them.

        The smallest come first, as there are fewest schemes of them.
        """
        for splits in range(form.batch if self.splits else 1, 0, -1):
            if form.batch % splits == 0:
                yield (
                    splits,
                    SegmentSpace(
                        form.network,
                        form.batch // splits,
                        self.kinds,
                        self.longest_spatial,
                        self.longest_temporal,
                        self.orders,
                        stripes=self.stripes,
                    ),
                )


@dataclass
class Pruning:
    """How many schemes there were, fitted as far as known, and were beaten by no other (table VI)."""

    schemes: int = 0
    valid: int = 0
    kept: int = 0


@dataclass
class KaplaSolver:
    """KAPLA's choice of chains.

    Parameters
    ----------
    keep : partial chains that continue at every state, ``k_S`` in the paper, which takes 4
    estimator : what schemes are taken to cost at least: `AggregateEstimator` is closer to the paper,
        `Estimator` to the costs
    stop : whether the time is up
    notify : notified of every better chain
    """

    form: ClosedForm
    slicing: Slicing = field(default_factory=Slicing)
    keep: int = 4
    estimator: Callable[[ClosedForm, int], Estimates] = Estimator
    stop: Callable[[], bool] = lambda: False
    notify: Callable[[Chain], None] = lambda chain: None
    pruning: Pruning = field(default_factory=Pruning)

    def solve(self) -> Chain | None:
        """The best of the remaining chains; ``None`` where no chain fits or the time ran out first."""
        best: Chain | None = None
        for splits, space in self.slicing.spaces(self.form):
            valid = self.valid(splits, space)
            candidates = {start: undominated(rows) for start, rows in valid.items()}
            self.pruning.kept += sum(len(rows) for rows in candidates.values())
            while not self.stop():
                chains = top_chains(space.starts, candidates, self.form.value, self.keep)
                unfit, fitted = set(), False
                for segments in chains:
                    chain = priced_chain(self.form, segments, splits)
                    if not isinstance(chain, Chain):
                        unfit.add(chain)
                        continue
                    fitted = True
                    if best is None or self._value(chain) < self._value(best):
                        best = chain
                        self.notify(chain)
                if fitted or not unfit:
                    break
                for start in {segment.start for segment in unfit}:
                    valid[start] = [row for row in valid[start] if row[0].scheme not in unfit]
                    candidates[start] = undominated(valid[start])
        return best

    def valid(self, splits: int, space: SegmentSpace) -> dict[int, list[tuple[Priced, int]]]:
        """Schemes that may fit by where they start, with what they cost at least and their DRAM bytes."""
        estimator = self.estimator(self.form, loads_of(self.form, splits))
        by_start: dict[int, list[tuple[Priced, int]]] = {}
        for start in space.starts[:-1]:
            valid = by_start[start] = []
            for scheme in space.schemes(start):
                if self.stop():
                    return by_start
                self.pruning.schemes += 1
                bound = estimator.lower_bound(scheme)
                if not isinstance(bound, Unfit):
                    valid.append((Priced(scheme, bound.energy, bound.cycles), bound.dram))
            self.pruning.valid += len(valid)
        return by_start

    def _value(self, chain: Chain) -> float:
        return self.form.value(chain.energy, chain.cycles)


def tangram_chain(
    form: ClosedForm,
    *,
    longest: int = 8,
    stripes: int = 1,
    stop: Callable[[], bool] = lambda: False,
    notify: Callable[[Chain], None] = lambda chain: None,
) -> Chain | None:
    """Tangram's dynamic programming: spatial segments of the network's own order at their costs.

    Parameters
    ----------
    longest : layers of a segment
    stripes : most row stripes of a sample that layers pass on
    stop : whether the time is up
    notify : notified of every better chain
    """
    slicing = Slicing(SPATIAL, longest, 1, "own", stripes=stripes)
    best: Chain | None = None
    for splits, space in slicing.spaces(form):
        loads = loads_of(form, splits)
        candidates: dict[int, list[Priced]] = {}
        for start in space.starts[:-1]:
            for scheme in space.schemes(start):
                if stop():
                    return best
                cost = form.segment(scheme.tree, loads)
                if not isinstance(cost, Unfit):
                    candidates.setdefault(start, []).append(Priced(scheme, cost.energy, cost.cycles))
        for segments in top_chains(space.starts, candidates, form.value, 1):
            chain = priced_chain(form, segments, splits)
            assert isinstance(chain, Chain)
            if best is None or form.value(chain.energy, chain.cycles) < form.value(best.energy, best.cycles):
                best = chain
                notify(chain)
    return best
