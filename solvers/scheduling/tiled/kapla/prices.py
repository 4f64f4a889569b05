"""The state that searches for a proven chain share: the best chain known, and the costs of segments or lower
bounds on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from tilewright.formulation.scheduling.tiled.kapla.chain import Chain, ChosenChain, loads_of, priced_chain
from tilewright.formulation.scheduling.tiled.kapla.estimate import Estimator
from tilewright.formulation.scheduling.tiled.kapla.segments import SegmentScheme
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.foundation.arrays import Bools, Floats


@dataclass
class BestKnown:
    """The best chain known, and how much was looked at to find it.

    Parameters
    ----------
    stop : whether the time is up
    notify : notified of every better chain
    """

    form: ClosedForm
    stop: Callable[[], bool] = lambda: False
    notify: Callable[[Chain], None] = lambda chain: None
    chain: Chain | None = None
    schemes: int = 0
    valid: int = 0
    evaluated: int = 0

    @property
    def value(self) -> float:
        """Of the best chain; infinite without one."""
        return inf if self.chain is None else self.form.value(self.chain.energy, self.chain.cycles)

    def offer(self, chain: Chain) -> None:
        """Store a chain if it is better."""
        if self.form.value(chain.energy, chain.cycles) < self.value:
            self.chain = chain
            self.notify(chain)

    def offer_row(self, segments: Sequence[SegmentScheme], splits: int) -> None:
        """Store a sequence of segments if it fits and is better."""
        chain = priced_chain(self.form, segments, splits)
        if isinstance(chain, Chain):
            self.offer(chain)

    def result(self, bound: float, tolerance: float = 0.0) -> ChosenChain:
        """What is known where no chain but the best one known costs less than ``bound``.

        Parameters
        ----------
        tolerance : part of the best value by which a proven one may lie above the bound
        """
        value = self.value
        proven = bound >= value * (1 - tolerance)
        return ChosenChain(self.chain, min(bound, value), proven, self.schemes, self.valid, self.evaluated)


@dataclass
class Prices:
    """Energy and cycles of schemes, or what these are at least, with one number of subbatches of the root.

    Parameters
    ----------
    schemes : those that may fit
    energy, cycles : of all subbatches; infinite for schemes that are out
    known : which of them are costs
    """

    best: BestKnown
    splits: int
    schemes: list[SegmentScheme]
    energy: Floats
    cycles: Floats
    known: Bools = field(init=False)

    def __post_init__(self) -> None:
        self.known = np.zeros(len(self.schemes), dtype=np.bool_)
        self.loads = loads_of(self.best.form, self.splits)

    @property
    def scale(self) -> tuple[float, float]:
        """An energy and cycles such as a good chain has."""
        best, here = self.best.chain, np.isfinite(self.energy)
        if best is not None:
            return best.energy, float(best.cycles)
        return (
            (float(self.energy[here].mean()), float(self.cycles[here].mean())) if here.any() else (1.0, 1.0)
        )

    def drop(self, numbers: Bools) -> None:
        """These schemes are in no chain that is better than the best one known."""
        self.energy[numbers] = self.cycles[numbers] = inf

    def evaluate(self, number: int) -> None:
        """Give a scheme its costs."""
        cost = self.best.form.segment(self.schemes[number].tree, self.loads)
        self.best.evaluated += 1
        self.known[number] = True
        if isinstance(cost, Unfit):
            self.energy[number] = self.cycles[number] = inf
        else:
            self.energy[number], self.cycles[number] = cost.energy * self.splits, cost.cycles * self.splits

    def offer(self, numbers: Iterable[int]) -> None:
        """Offer a chain by its schemes' numbers."""
        self.best.offer_row([self.schemes[number] for number in numbers], self.splits)


def least_prices(best: BestKnown, splits: int, schemes: Iterable[SegmentScheme]) -> Prices | None:
    """Lower bounds of every scheme that may fit; ``None`` where the time is up."""
    estimator = Estimator(best.form, loads_of(best.form, splits))
    valid: list[SegmentScheme] = []
    lower_bounds: list[tuple[float, float]] = []
    for scheme in schemes:
        if best.stop():
            return None
        best.schemes += 1
        bound = estimator.lower_bound(scheme)
        if not isinstance(bound, Unfit):
            valid.append(scheme)
            lower_bounds.append((bound.energy, float(bound.cycles)))
    best.valid += len(valid)
    costs = np.array(lower_bounds).reshape(-1, 2) * splits
    return Prices(best, splits, valid, costs[:, 0].copy(), costs[:, 1].copy())
