"""Chains by pricing segments, the shortest first: every segment, or a part of them drawn at random."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from random import Random

from tilewright.formulation.scheduling.tiled.kapla.chain import Chain, ChosenChain, loads_of, priced_chain
from tilewright.formulation.scheduling.tiled.kapla.segments import SegmentScheme, SegmentSpace
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.tree import Node
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.heuristics.scheduling.tiled.kapla.solver import Slicing
from tilewright.heuristics.scheduling.tiled.set.chains import Segment, Segments, best_chain

Row = tuple[int, int, tuple[int, ...]]
"""The layers between two states of the network: start, end, layers in order."""


@dataclass
class PricedChains:
    """The best chain of all segments that are priced.

    Parameters
    ----------
    part : probability with which a scheme is priced; a layer alone gets schemes until one fits, so that there
        is a chain wherever the whole space has one
    random : draws them
    stop : whether the time is up
    notify : notified of every better chain
    """

    form: ClosedForm
    slicing: Slicing
    part: float = 1.0
    random: Random = field(default_factory=lambda: Random(0))
    stop: Callable[[], bool] = lambda: False
    notify: Callable[[Chain], None] = lambda chain: None
    best: Chain | None = field(init=False, default=None)
    priced: int = field(init=False, default=0)
    valid: int = field(init=False, default=0)

    def solve(self) -> ChosenChain:
        """Price segments of one layer, then of two, and so on; the best chain so far after each."""
        note = ""
        for splits, space in self.slicing.spaces(self.form):
            reached = self._priced(splits, space)
            if reached is not None:
                note = f"the time was up at segments of {reached} layers, after {self.priced:,} schemes"
                break
        proven = not note and self.part == 1 and self.best is not None
        bound = self._value(self.best) if proven and self.best is not None else 0.0
        note = note or f"{'all ' if self.part == 1 else ''}{self.priced:,} schemes priced"
        return ChosenChain(self.best, bound, proven, self.priced, self.valid, self.valid, note)

    def _priced(self, splits: int, space: SegmentSpace) -> int | None:
        """Price the segments of one number of subbatches of the root; layers of those at which time is up."""
        segments, schemes = Segments(), dict[Node, SegmentScheme]()
        for count, rows in _by_length(space):
            late = any(not self._row(row, splits, space, segments, schemes) for row in rows)
            chain, _ = best_chain(segments, list(space.starts), self.form.value)
            self._offer([schemes[segment.tree] for segment in chain], splits)
            if late:
                return count
        return None

    def _row(
        self,
        row: Row,
        splits: int,
        space: SegmentSpace,
        segments: Segments,
        schemes: dict[Node, SegmentScheme],
    ) -> bool:
        """Price schemes of one row of layers; returns whether there was time."""
        loads, alone, fits = loads_of(self.form, splits), len(row[2]) == 1, False
        every = list(space.schemes_of(*row))
        if self.part < 1:
            self.random.shuffle(every)
        drawn = [scheme for scheme in every if self.part == 1 or self.random.random() < self.part]
        for scheme in [*drawn, *(scheme for scheme in every if alone and scheme not in drawn)]:
            if fits and scheme not in drawn:
                break
            if self.stop():
                return False
            self.priced += 1
            cost = self.form.segment(scheme.tree, loads)
            if not isinstance(cost, Unfit):
                fits = True
                self.valid += 1
                schemes[scheme.tree] = scheme
                segments.add(Segment(scheme.start, scheme.end, cost.energy, cost.cycles, scheme.tree))
        return True

    def _offer(self, segments: list[SegmentScheme], splits: int) -> None:
        """Keep the chain of some segments where it is better."""
        chain = priced_chain(self.form, segments, splits) if segments else None
        if isinstance(chain, Chain) and (self.best is None or self._value(chain) < self._value(self.best)):
            self.best = chain
            self.notify(chain)

    def _value(self, chain: Chain) -> float:
        return self.form.value(chain.energy, chain.cycles)


def _by_length(space: SegmentSpace) -> Iterator[tuple[int, list[Row]]]:
    """The rows of layers of every beginning, those of one layer first."""

    def behind(start: int) -> Iterator[Row]:
        return ((start, *row) for row in space.rows(start))

    waiting = [groupby(behind(start), key=lambda row: len(row[2])) for start in space.starts[:-1]]
    while True:
        groups = [(by_length, next(by_length, None)) for by_length in waiting]
        waiting = [by_length for by_length, group in groups if group is not None]
        rows = [row for _, group in groups if group is not None for row in group[1]]
        if not rows:
            return
        yield len(rows[0][2]), rows
