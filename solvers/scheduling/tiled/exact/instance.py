"""An atomic DAG on a machine as exact statements read it: plain numbers, and possible rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.hardware.scheduling.tiled.topology import Topology, topology

MOST_UNITS = 5040
"""Parts of a cycle in which times are counted, at most; beyond it durations are rounded down."""

_DENOMINATOR = 1000


@dataclass(frozen=True, eq=False)
class RoundInstance:
    """Tasks, blocks, places and times.

    Parameters
    ----------
    dag, machine : where the numbers come from
    """

    dag: AtomicDag
    machine: TiledMachine

    @property
    def tasks(self) -> int:
        return self.dag.tasks

    @property
    def engines(self) -> int:
        return self.machine.engines

    @property
    def ports(self) -> range:
        """Places of the DRAM ports."""
        return range(self.engines, self.engines + len(self.machine.dram_ports))

    @cached_property
    def net(self) -> Topology:
        """Routes between places."""
        return topology(self.machine)

    @cached_property
    def cycles(self) -> tuple[int, ...]:
        return tuple(self.dag.cycles.tolist())

    @cached_property
    def size(self) -> tuple[int, ...]:
        """Bytes per block."""
        return tuple(self.dag.block_bytes.tolist())

    @cached_property
    def parent(self) -> tuple[int, ...]:
        """Per block the task that makes it, -1 for data that is in DRAM from the start."""
        return tuple(self.dag.block_parent.tolist())

    @cached_property
    def outputs(self) -> tuple[bool, ...]:
        """Per task, whether its result must end in DRAM."""
        return tuple(self.dag.is_output.tolist())

    @cached_property
    def reads(self) -> tuple[tuple[int, ...], ...]:
        """Per task the distinct blocks that it reads."""
        return tuple(tuple(sorted({*self.dag.reads_of(t).tolist()})) for t in range(self.tasks))

    @cached_property
    def readers(self) -> dict[int, tuple[int, ...]]:
        """Per block that is read at all, its readers."""
        readers: dict[int, list[int]] = {}
        for task, blocks in enumerate(self.reads):
            for block in blocks:
                readers.setdefault(block, []).append(task)
        return {block: tuple(tasks) for block, tasks in readers.items()}

    @cached_property
    def before(self) -> tuple[frozenset[int], ...]:
        """Per task the tasks whose results it reads."""
        return tuple(
            frozenset(self.parent[b] for b in blocks if self.parent[b] >= 0) for blocks in self.reads
        )

    @cached_property
    def after(self) -> tuple[frozenset[int], ...]:
        """Per task the tasks that read its result."""
        readers: list[set[int]] = [set() for _ in range(self.tasks)]
        for task, producers in enumerate(self.before):
            for producer in producers:
                readers[producer].add(task)
        return tuple(frozenset(tasks) for tasks in readers)

    @cached_property
    def heads(self) -> tuple[int, ...]:
        """Per task the rounds that must pass before its own: its longest chain, and its ancestors' number."""
        return self.rounds_around(self.engines)[0]

    @cached_property
    def tails(self) -> tuple[int, ...]:
        """Per task the rounds that must pass after its own."""
        return self.rounds_around(self.engines)[1]

    def rounds_around(self, together: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Per task the rounds before and after its own, where so many tasks run in a round at most."""
        return (
            _rounds_before(self.before, range(self.tasks), together),
            _rounds_before(self.after, range(self.tasks - 1, -1, -1), together),
        )

    # -- times ---------------------------------------------------------------------------------------

    @cached_property
    def unit(self) -> int:
        """Parts of a cycle in which times are counted, such that durations are whole where possible."""
        rates = {self.dram_rate, *(rate for rate in self.link_rates if rate is not None)}
        needed = math.lcm(*(rate.numerator for rate in rates))
        return needed if needed <= MOST_UNITS else MOST_UNITS

    @cached_property
    def dram_rate(self) -> Fraction:
        """Bytes per cycle of the DRAM."""
        return _rate(self.machine.dram_rate)

    @cached_property
    def link_rates(self) -> tuple[Fraction | None, ...]:
        """Bytes per cycle of every link, ``None`` where all that one step can move takes no time worth
        counting."""
        most = 2 * MOST_UNITS * sum(self.size)
        return tuple(_rate(rate) if rate <= most else None for rate in self.net.rates.tolist())

    @cached_property
    def port_rate(self) -> Fraction | None:
        """Bytes per cycle of the links into engines, which are all alike; ``None`` as for links."""
        return self.link_rates[self.engines]

    @cached_property
    def passing_rate(self) -> Fraction | None:
        """Bytes per cycle at which a block passes a DRAM port and an engine's port at most."""
        rates = [rate for rate in (self.port_rate, self.link_rates[2 * self.engines]) if rate is not None]
        return min(rates, default=None)

    @cached_property
    def beside_ports(self) -> int:
        """Engines with a DRAM port at their own router."""
        near = [min(self.net.distance(p, e) for p in self.ports) for e in range(self.engines)]
        return near.count(0)

    def duration(self, size: int, rate: Fraction) -> int:
        """Parts of a cycle that so many bytes take, rounded down."""
        return int(size * self.unit / rate)

    @property
    def hop_cycles(self) -> int:
        return int(self.machine.hop_cycles)

    @cached_property
    def networked(self) -> bool:
        """Whether links or hops can delay anything."""
        return self.hop_cycles > 0 or any(rate is not None for rate in self.link_rates)

    @cached_property
    def roomy(self) -> bool:
        """Whether every buffer holds all blocks together, so that nothing ever has to leave one."""
        return sum(self.size) <= self.machine.engine.buffer_bytes

    # -- rounds --------------------------------------------------------------------------------------

    def least_cycles(self, rounds: int) -> int:
        """Cycles that so many rounds with a task each take at least.

        Sorted by length, round i from the longest has a task no shorter than the ``i * engines``-th, as no
        more than so many fit into the longer rounds; and none shorter than the ``rounds - i``-th shortest,
        as every shorter round has a task.
        """
        rising = sorted(self.cycles)
        falling = rising[::-1]
        total = 0
        for i in range(rounds):
            packed = falling[i * self.engines] if i * self.engines < self.tasks else 0
            total += max(packed, rising[rounds - 1 - i])
        return total

    @cached_property
    def ancestors(self) -> tuple[frozenset[int], ...]:
        """Per task all tasks that it depends on."""
        ancestors: list[frozenset[int]] = []
        for producers in self.before:
            ancestors.append(producers.union(*(ancestors[p] for p in producers)))
        return tuple(ancestors)

    def fewest_rounds(self, cycles: int) -> int:
        """Rounds that the tasks of at least so many cycles need, whatever else runs in them.

        By their number; by those that follow each other, tasks in between counted; and by the number of those
        with so many such rounds before and so many after them.
        """
        long = [task for task in range(self.tasks) if self.cycles[task] >= cycles]
        before = {task: [p for p in long if p in self.ancestors[task]] for task in long}
        after = {task: [s for s in long if task in self.ancestors[s]] for task in long}
        heads, tails = self._levels(long, before), self._levels(long[::-1], after)
        most = 0
        for a in sorted(set(heads.values())):
            for b in sorted(set(tails.values())):
                inside = sum(heads[task] >= a and tails[task] >= b for task in long)
                most = max(most, (a + b) * (inside > 0) + -(-inside // self.engines))
        return most

    def _levels(self, order: list[int], before: dict[int, list[int]]) -> dict[int, int]:
        """Per task the rounds that those before it take: the longest chain of them, and their number."""
        levels: dict[int, int] = {}
        for task in order:
            chain = max((levels[p] + 1 for p in before[task]), default=0)
            levels[task] = max(chain, -(-len(before[task]) // self.engines))
        return levels

    def most_rounds(self, cycles: int) -> int:
        """Rounds with a task each that a plan of at most so many cycles can have; 0 where none can."""
        least = max(-(-self.tasks // self.engines), 1 + max(self.heads), 1 + max(self.tails))
        for rounds in range(self.tasks, least - 1, -1):
            if self.least_cycles(rounds) <= cycles:
                return rounds
        return 0


def _rate(value: float) -> Fraction:
    """A rate as a fraction of small numbers where the float is one, rounded."""
    near = Fraction(value).limit_denominator(_DENOMINATOR)
    return near if abs(float(near) - value) <= 1e-15 * value else Fraction(value)


def _rounds_before(before: tuple[frozenset[int], ...], order: range, engines: int) -> tuple[int, ...]:
    chain = np.zeros(len(before), dtype=np.int64)
    ancestors: list[frozenset[int]] = [frozenset()] * len(before)
    for task in order:
        producers = before[task]
        ancestors[task] = frozenset().union(producers, *(ancestors[p] for p in producers))
        longest = max((int(chain[p]) + 1 for p in producers), default=0)
        chain[task] = max(longest, -(-len(ancestors[task]) // engines))
    return tuple(chain.tolist())
