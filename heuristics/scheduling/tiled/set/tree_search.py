"""Better trees than annealing finds: short segments are chained, merged and polished, then annealed; then
longer ones grow, and the best tree is shaken.

All parts share the best tree known.  Each begins where the one before has ended, so how far a search gets
depends only on how fast trees of a network are evaluated:

======= ==============================================================================================
chain   the best chain of segments of one or two layers in the network's own order: the segments that
        merging asks for next anyway are all evaluated, and a dynamic program chooses among them
polish  neighbouring segments are merged, then every segment descends (`polishing.py`)
anneal  from there, with wider steps than SET's (`wide_steps.py`), the paper's number of steps per layer for
        every number of subbatches that the batch allows; where the clock allows fewer, the temperature
        falls with the clock; and polishing again
grow    for every number of subbatches of the root, segments grow in the network's own order, are chained
        and polished; then from all down-sets, where these are not too many, with whatever layer is ready
shake   random steps within some neighbouring segments, and a descent from there
======= ==============================================================================================

The chain has its root run once, as weights are loaded once then; segments have subbatches of their own.

Leaves of many samples can be divided in many ways and take long to price.  So the chain, and for larger
batches polishing and annealing first of all, look only at segments whose layers run on single samples, and at
layers of their own that run on the whole batch (`growing.by_samples`).  There annealing begins twice: with
SET's operators from SET's first tree, for half of the time left to it, then from the best tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from tilewright.formulation.scheduling.tiled.kapla.chain import loads_of
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, Node, rooted
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.heuristics.scheduling.tiled.set.annealing import Cooling, anneal, first_tree
from tilewright.heuristics.scheduling.tiled.set.chains import Segment, Segments, best_chain, down_sets
from tilewright.heuristics.scheduling.tiled.set.growing import Growth, by_samples, grow_from
from tilewright.heuristics.scheduling.tiled.set.operators import divisors, random_step
from tilewright.heuristics.scheduling.tiled.set.polishing import Allowed, Polisher, Row, every_segment
from tilewright.heuristics.scheduling.tiled.set.wide_steps import wide_step

SHORT = 2
"""Layers of the segments of the first chain."""

CHAINED, SAMPLED, ANNEALED = 0.4, 0.6, 0.85
"""Part of the time that has passed at most when only single layers are added to the first chain, when
annealing over single samples is done, and when all annealing is: what comes then is polished.
"""

HEAT, STEPS = 0.03, 100
"""Of this annealing: the temperature at first, and steps per layer and number of subbatches."""

LABELS = 200
"""Labels per down-set of a chain that is polished anyway."""


Step = Callable[[Node, SetNetwork, Random], Node | None]
"""A random change of a tree."""


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
    notify : called with every better tree and its value
    shakes : random changes at most
    """

    def __init__(
        self,
        form: ClosedForm,
        clock: Clock,
        random: Random,
        notify: Callable[[Node, float], None],
        *,
        growth: Growth = Growth(),  # noqa: B008 - frozen
        shakes: int = 2000,
    ) -> None:
        self.form, self.clock, self.random, self.notify = form, clock, random, notify
        self.growth, self.shakes = growth, shakes
        self.best: Node | None = None
        self.value = float("inf")
        self.groups = divisors(form.batch)
        self.cooling = Cooling(HEAT, steps=STEPS * len(self.groups))
        self.rows: dict[int, Row] = {}
        self.segments: dict[int, Segments] = {}

    def run(self) -> Node | None:
        """Search until the clock ends it; the best tree."""
        groups, clock = self.groups, self.clock
        begun = first_tree(self.form)
        if begun is not None:
            self._offer(*_row_of(begun[0]))
        short = replace(self.growth, longest=SHORT, in_order=True, single=True)
        self._grow(1, short, clock.until(CHAINED))
        if self.rows:
            if len(groups) > 1:
                self._search_samples(begun)
            self._polish(*self._leading(), clock.stop)
            self._anneal(self._begun(), self.cooling, ANNEALED, every_segment, wide_step)
            self._polish(*self._leading(), clock.stop)
        past = clock.used()
        rest = max(0.0, 1 - past)
        for number, group in enumerate(groups, 1):
            growth = replace(self.growth, in_order=True)
            self._grow_and_polish(group, growth, past + rest * 0.3 * number / len(groups))
        ranked = sorted(self.rows, key=lambda group: self._value(self.rows[group], group))
        for number, group in enumerate(ranked[:2], 1):
            part = past + rest * (0.3 + 0.3 * number / min(2, len(ranked)))
            self._grow_and_polish(group, self.growth, part)
        for _ in range(self.shakes):
            if clock.stop() or not self.rows:
                break
            self._shake(ranked)
        return self.best

    def _search_samples(self, begun: tuple[Node, float] | None) -> None:
        """Polish and anneal segments that run on single samples, from the best tree and from the first."""
        self._polish(*self._leading(), self.clock.stop, by_samples)
        if begun is not None:
            half = (self.clock.used() + SAMPLED) / 2
            self._anneal(begun, Cooling(steps=self.cooling.steps), half, by_samples, random_step)
        self._anneal(self._begun(), self.cooling, SAMPLED, by_samples, wide_step)

    def _leading(self) -> tuple[Row, int]:
        """The best row, and its number of subbatches."""
        group = min(self.rows, key=lambda group: self._value(self.rows[group], group))
        return self.rows[group], group

    def _begun(self) -> tuple[Node, float]:
        """The best tree and its value."""
        assert self.best is not None
        return self.best, self.value

    def _anneal(
        self, begun: tuple[Node, float], cooling: Cooling, until: float, allowed: Allowed, change: Step
    ) -> None:
        """Annealing from a tree over trees of some kind of segments; it has cooled down by a part of the
        time.
        """
        used = self.clock.used
        before = used()
        left = max(until - before, 1e-9)

        def step(tree: Node, network: SetNetwork, random: Random) -> Node | None:
            made = change(tree, network, random)
            return made if made is not None and all(allowed(child) for child in _row_of(made)[0]) else None

        def keep(tree: Node, value: float) -> None:
            if value < self.value:
                self._offer(*_row_of(tree))

        anneal(
            self.form,
            begun,
            cooling,
            self.random,
            self.clock.stop,
            keep,
            lambda: (used() - before) / left,
            step=step,
        )

    def _polisher(self, group: int, stop: Callable[[], bool], allowed: Allowed = every_segment) -> Polisher:
        loads = loads_of(self.form, group)
        return Polisher(self.form, loads, stop, lambda row: self._offer(row, group), allowed)

    def _total(self, row: Row, group: int) -> tuple[float, float]:
        """Energy and cycles of one run of those segments that fit."""
        costs = [self.form.segment(tree, loads_of(self.form, group)) for tree in row]
        known = [cost for cost in costs if not isinstance(cost, Unfit)]
        return sum(cost.energy for cost in known), float(sum(cost.cycles for cost in known))

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
            self.notify(self.best, value)

    def _grow_and_polish(self, group: int, growth: Growth, part: float) -> None:
        """Grow until a part of the time is up, unless it is already, and polish the chain."""
        stop = self.clock.until(part)
        if stop() and self.rows:
            return
        row = self._grow(group, growth, stop)
        if row:
            self._polish(row, group, self.clock.until(part + 0.1))

    def _grow(self, group: int, growth: Growth, stop: Callable[[], bool]) -> Row:
        """Grow segments, and only single layers once time is up; the best chain, or nothing."""
        form, network = self.form, self.form.network
        samples = form.batch // group
        sets, whole = down_sets(network, in_order=growth.in_order)
        if not growth.in_order and not whole:
            return []
        segments = self.segments.setdefault(group, Segments())
        ratio = self._ratio(group)
        order = list(sets[:-1])
        if not growth.in_order:
            self.random.shuffle(order)
        late = self.clock.stop if self.rows else lambda: False
        for start in order:
            single = replace(growth, longest=1) if stop() else growth
            grow_from(form, segments, start, samples, ratio, single, late, loads_of(form, group))
            if self.clock.stop() and self.rows:
                return []
        chained, _ = best_chain(segments, sets, form.value, most_labels=LABELS)
        row = [segment.tree for segment in chained]
        if row:
            self._offer(row, group)
        return row

    def _polish(
        self, row: Row, group: int, stop: Callable[[], bool], allowed: Allowed = every_segment
    ) -> None:
        """Polish a sequence of segments, and collect them for later chains."""
        polished = self._polisher(group, stop, allowed).polish(row)
        self._offer(polished, group)
        self._learn(group, polished)

    def _learn(self, group: int, row: Row) -> None:
        """Collect the segments of a sequence."""
        segments = self.segments.setdefault(group, Segments())
        done = 0
        for tree in row:
            cost = self.form.segment(tree, loads_of(self.form, group))
            if not isinstance(cost, Unfit):
                segments.add(Segment(done, done | tree.mask, cost.energy, cost.cycles, tree))
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


def _row_of(tree: Node) -> tuple[Row, int]:
    """A tree as a row of segments, and the number of subbatches of its root."""
    if isinstance(tree, Cut) and tree.kind == "T":
        return list(tree.children), tree.groups
    return [tree], 1
