"""Better trees than annealing finds: growing segments, chains of them, merging and polishing, then shaking.

First comes annealing from SET's first tree, with wider steps than SET's operators (`wide_steps.py`).  It has
the paper's number of steps per layer for every number of subbatches that the batch allows.  Where these take
longer than the time allows, the temperature falls with the clock, and all of the time is annealing's:
segments would not grow far in it.  Where there is time for a few steps per layer of a long network only, it
begins with KAPLA's chain of layers in turn, in the network's own order.  What annealing finds is one more
tree to chain and polish.

Every number of subbatches of the root is tried.  Segments grow in the network's own order first, then, where
the network has not too many down-sets, from all of these with whatever layer is ready; both times the best
chain of all segments known is polished.  The time that is left shakes the best tree: random steps within some
neighbouring segments and a descent from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from tilewright.formulation.scheduling.tiled.kapla.segments import TEMPORAL
from tilewright.formulation.scheduling.tiled.set.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.tree import Cut, Leaf, Node, rooted
from tilewright.heuristics.scheduling.tiled.kapla.solver import KaplaSolver, Slicing
from tilewright.heuristics.scheduling.tiled.set.annealing import Cooling, anneal, first_tree
from tilewright.heuristics.scheduling.tiled.set.chains import Segment, Segments, best_chain, down_sets
from tilewright.heuristics.scheduling.tiled.set.growing import Growth, grow_from
from tilewright.heuristics.scheduling.tiled.set.operators import divisors
from tilewright.heuristics.scheduling.tiled.set.polishing import Polisher, Row
from tilewright.heuristics.scheduling.tiled.set.wide_steps import wide_step

PROBED, FEW, LONG = 0.2, 40, 300
"""Part of the time in whose second half the pace of annealing is seen; and steps per layer in all of the time
at that pace, below which a chain comes first, in networks of so many layers or more.  Of shorter ones
annealing can do with fewer.
"""

CHAINED = 0.6
"""Part of the time that has passed at most when that chain is done."""

HEAT, STEPS = 0.03, 100
"""Of our annealing: the temperature at first, and steps per layer and number of subbatches."""

LONGEST = 6
"""Layers in turn in a segment of that chain."""

LABELS = 200
"""Labels per down-set of a chain that is polished anyway."""


@dataclass(frozen=True, slots=True)
class Clock:
    """What ends parts of a search.

    Parameters
    ----------
    stop : whether all time is up
    used : part of the time that has passed, from 0 to 1; always 0 without a limit
    """

    stop: Callable[[], bool]
    used: Callable[[], float]

    def until(self, part: float) -> Callable[[], bool]:
        """Whether a part of the time is up."""
        return lambda: self.stop() or self.used() > part


class TreeSearch:
    """Searches trees of one network and batch.

    Parameters
    ----------
    found : told of every better tree with its value
    shakes : random changes at most
    """

    def __init__(
        self,
        form: ClosedForm,
        clock: Clock,
        random: Random,
        found: Callable[[Node, float], None],
        *,
        growth: Growth = Growth(),  # noqa: B008 - frozen
        shakes: int = 2000,
    ) -> None:
        self.form, self.clock, self.random, self.found = form, clock, random, found
        self.growth, self.shakes = growth, shakes
        self.best: Node | None = None
        self.value = float("inf")
        self.groups = divisors(form.batch)
        self.cooling = Cooling(HEAT, steps=STEPS * len(self.groups))
        self.rows: dict[int, Row] = {}
        self.segments: dict[int, Segments] = {}

    def run(self) -> Node | None:
        """Search until the clock ends it; the best tree."""
        groups = self.groups
        self._begin()
        begun = self.clock.used()
        rest = max(0.0, 1 - begun)
        for number, group in enumerate(groups, 1):
            growth = replace(self.growth, in_order=True)
            self._grow(group, growth, begun + rest * 0.3 * number / len(groups))
        ranked = sorted(self.rows, key=lambda group: self._value(self.rows[group], group))
        for number, group in enumerate(ranked[:2], 1):
            self._grow(group, self.growth, begun + rest * (0.3 + 0.3 * number / min(2, len(ranked))))
        for _ in range(self.shakes):
            if self.clock.stop() or not self.rows:
                break
            self._shake(ranked)
        return self.best

    def _begin(self) -> None:
        """SET's first tree, or a chain where annealing is too slow, and annealing from there."""
        begun = first_tree(self.form)
        if begun is None:
            return
        clock = self.clock
        self._take(begun[0])
        late = 0

        def probed() -> bool:
            nonlocal late
            used = clock.used()
            late += used > PROBED / 2
            return clock.stop() or used > PROBED

        self._anneal(probed)
        if clock.used() <= PROBED:
            return
        layers = len(self.form.network)
        if late < FEW * min(1.0, layers / LONG) * layers * PROBED / 2:
            slicing, stop = Slicing(TEMPORAL, 1, LONGEST, "own"), clock.until(CHAINED)
            KaplaSolver(self.form, slicing, 1, stop=stop, found=lambda chain: self._take(chain.tree)).solve()
        self._anneal(clock.stop)

    def _anneal(self, stop: Callable[[], bool]) -> None:
        """Annealing from the best tree, which cools down with the clock."""
        assert self.best is not None
        used = self.clock.used
        before = used()
        left = max(1 - before, 1e-9)
        begun, keep = (self.best, self.value), lambda tree, _: self._take(tree)
        anneal(
            self.form,
            begun,
            self.cooling,
            self.random,
            stop,
            keep,
            lambda: (used() - before) / left,
            step=wide_step,
        )

    def _take(self, tree: Node) -> None:
        """A tree as a row of segments."""
        if isinstance(tree, Cut) and tree.kind == "T":
            self._offer(list(tree.children), tree.groups)
        else:
            self._offer([tree], 1)

    def _loads(self, group: int) -> int:
        return self.form.batch if self.form.rules.split_root_weights_once else self.form.batch // group

    def _polisher(self, group: int, stop: Callable[[], bool]) -> Polisher:
        return Polisher(self.form, self._loads(group), stop, lambda row: self._offer(row, group))

    def _total(self, row: Row, group: int) -> tuple[float, float]:
        """Energy and cycles of one run of those segments that fit."""
        costs = [self.form.segment(tree, self._loads(group)) for tree in row]
        known = [one for one in costs if not isinstance(one, str)]
        return sum(one.energy for one in known), float(sum(one.cycles for one in known))

    def _value(self, row: Row, group: int) -> float:
        """The objective of rows that fit."""
        energy, cycles = self._total(row, group)
        return self.form.value(energy * group, cycles * group)

    def _offer(self, row: Row, group: int) -> None:
        value = self._value(row, group)
        if group not in self.rows or value <= self._value(self.rows[group], group):
            self.rows[group] = row
        if value < self.value:
            self.value = value
            self.best = rooted(row, self.form.batch, group)
            self.found(self.best, value)

    def _grow(self, group: int, growth: Growth, part: float) -> None:
        """Grow segments, chain them, and polish the chain."""
        stop = self.clock.until(part)
        if stop() and self.rows:
            return
        form, network = self.form, self.form.network
        samples = form.batch // group
        sets, whole = down_sets(network, 0 if growth.in_order else 20_000)
        if not growth.in_order and not whole:
            return
        segments = self.segments.setdefault(group, Segments())
        ratio = self._ratio(group)
        order = list(sets[:-1])
        if not growth.in_order:
            self.random.shuffle(order)
        for start in order:
            single = replace(growth, longest=1) if stop() else growth
            grow_from(form, segments, start, samples, ratio, single, lambda: False, self._loads(group))
            if self.clock.stop() and not growth.in_order:
                return
        row, _ = best_chain(segments, sets, form.value, most_labels=LABELS)
        if not row:
            return
        trees = [one.tree for one in row]
        self._offer(trees, group)
        polished = self._polisher(group, self.clock.until(part + 0.1)).polish(trees)
        self._offer(polished, group)
        self._learn(group, polished)

    def _learn(self, group: int, row: Row) -> None:
        """Keep polished segments for the chains to come."""
        done = 0
        for tree in row:
            cost = self.form.segment(tree, self._loads(group))
            if not isinstance(cost, str):
                self.segments[group].add(Segment(done, done | tree.mask, cost.energy, cost.cycles, tree))
            done |= tree.mask

    def _ratio(self, group: int) -> float:
        """Cycles that a pJ is worth: the slope of the objective at the best tree, or at layers one by one."""
        samples = self.form.batch // group
        row = self.rows.get(group) or [Leaf(layer, samples) for layer in range(len(self.form.network))]
        energy, cycles = self._total(row, group)
        if not self.form.delay_power:
            return 1e12
        weight = self.form.energy_power / self.form.delay_power
        return weight * cycles / energy if energy else 0.0

    def _shake(self, ranked: list[int]) -> None:
        group = ranked[0] if len(ranked) == 1 or self.random.random() < 0.8 else self.random.choice(ranked)
        row = self.rows[group]
        changed = self._polisher(group, self.clock.stop).shake(row, self.random)
        if changed is not row and self._value(changed, group) <= self._value(row, group):
            self._offer(changed, group)
