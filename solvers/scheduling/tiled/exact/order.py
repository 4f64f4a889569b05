"""A relaxation of round plans without places: which task runs in which round, and what DRAM and ports demand.

Every plan of the whole statement is a solution here, with the same or shorter rounds; see
docs/tiled-exact.md for each group of constraints.  Engines' buffers, routes and refetched data are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from tilewright.formulation.scheduling.tiled.paths import path_lengths
from tilewright.solvers.cpsat_run import Values
from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance
from tilewright.solvers.scheduling.tiled.exact.rounds import Rounds, Terms
from tilewright.solvers.scheduling.tiled.exact.sequences import RoundSequence

Literal = cp_model.IntVar


@dataclass(frozen=True, slots=True)
class Order:
    """Per atom its round, the cycles that the relaxation gives to them, and engines where it knows them."""

    rounds: list[int]
    cycles: int
    engines: list[int] | None = None


class OrderModel:
    """The relaxation; with all its constraints; parameters as of `plan_statement`.

    Parameters
    ----------
    instance : the atoms and the machine
    count, idle : rounds, and how many of them may be idle
    least, most : bounds on the objective
    check : called between groups of constraints; raises where a limit strikes
    """

    def __init__(
        self,
        instance: RoundInstance,
        count: int,
        idle: int,
        least: int,
        most: int,
        *,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.instance, self.check = instance, check
        self.rounds = Rounds(instance, count, idle, least, most)
        self.model = self.rounds.model
        self.count = count
        self.window = [
            range(head, count - 1 - tail) for head, tail in zip(instance.heads, instance.tails, strict=True)
        ]
        self.runs: dict[tuple[int, int], Literal] = {}
        self.fetched: dict[tuple[int, int], Literal] = {}
        self.stored: dict[tuple[int, int], Literal] = {}
        self.places: dict[tuple[int, int, int], Literal] = {}
        for group in (self._tasks, self._starts, self._fetches, self._stores, self._loads, self._waits):
            check()
            group()

    def order(self, values: Values) -> list[int]:
        """The round of each task in a solution."""
        rounds = [0] * self.instance.tasks
        for (task, r), run in self.runs.items():
            if values.boolean_value(run):
                rounds[task] = r
        return rounds

    def literal(self) -> Literal:
        return self.model.new_bool_var("")

    def _tasks(self) -> None:
        """Every task runs once, after all that it reads; a round has no more tasks than engines."""
        model = self.model
        ladder: dict[tuple[int, int], Literal | int] = {}
        for task, window in enumerate(self.window):
            for r in window:
                self.runs[task, r] = self.literal()
            model.add_exactly_one(self.runs[task, r] for r in window)
            for r in range(self.count):
                if r < window.start or r >= window.stop - 1:
                    ladder[task, r] = int(r >= window.stop - 1)
                    continue
                done = ladder[task, r] = self.literal()
                model.add((ladder[task, r - 1] if r else 0) + self.runs[task, r] == done)
        for task, producers in enumerate(self.instance.before):
            for producer in producers:
                for r in self.window[task]:
                    model.add(ladder[task, r] <= ladder[producer, r - 1])
        for r in range(self.count - 1):
            here = [(task, self.runs[task, r]) for task, window in enumerate(self.window) if r in window]
            model.add(sum(run for _, run in here) <= self.instance.engines)
            self.rounds.place(r, here)
        self.rounds.thresholds()

    def _starts(self) -> None:
        """The longest chains before and after a task bound when its round begins."""
        model, rounds, unit = self.model, self.rounds, self.instance.unit
        heads, tails = path_lengths(self.instance.dag)
        starts = [model.new_int_var(0, rounds.longest, "") for _ in range(self.count)]
        model.add(starts[0] == 0)
        for r in range(1, self.count):
            model.add(starts[r] == starts[r - 1] + rounds.length[r - 1])
        for (task, r), run in self.runs.items():
            model.add(starts[r] >= unit * int(heads[task])).only_enforce_if(run)
            model.add(starts[r] + unit * int(tails[task]) <= unit * rounds.cycles).only_enforce_if(run)

    def on_engines(self) -> dict[tuple[int, int, int], Literal]:
        """An engine for each task, which no other task of its round has: (task, engine, round)."""
        model, engines = self.model, range(self.instance.engines)
        runs: dict[tuple[int, int, int], Literal] = {}
        for (task, r), run in self.runs.items():
            for e in engines:
                runs[task, e, r] = self.literal()
            model.add(sum(runs[task, e, r] for e in engines) == run)
        for r in range(self.count - 1):
            here = [task for task, window in enumerate(self.window) if r in window]
            for e in engines:
                model.add_at_most_one(runs[task, e, r] for task in here)
        self.places = runs
        return runs

    def engines(self, values: Values) -> list[int] | None:
        """The engine of each task in a solution, where they are stated."""
        chosen = {task: e for (task, e, _), run in self.places.items() if values.boolean_value(run)}
        return [chosen[task] for task in range(self.instance.tasks)] if chosen else None

    def hint(self, order: Sequence[int]) -> None:
        """Begin with the order of a plan."""
        for (task, r), run in self.runs.items():
            self.model.add_hint(run, order[task] == r)

    def follow(self, sequence: RoundSequence) -> None:
        """Run in every round as many tasks of each class as a sequence does."""
        for r, ran in enumerate(sequence.rounds or ()):
            for members, many in zip(sequence.counts.classes, ran, strict=True):
                self.model.add(sum(self.runs[task, r] for task in members if (task, r) in self.runs) == many)

    def _fetches(self) -> None:
        """What lies in DRAM at first is fetched once at least, in the round of its first use or before."""
        for block, readers in self.instance.readers.items():
            if self.instance.parent[block] >= 0:
                continue
            last = max(self.window[task].stop - 1 for task in readers)
            for r in range(last + 1):
                self.fetched[block, r] = self.literal()
                if r:
                    self.model.add_implication(self.fetched[block, r - 1], self.fetched[block, r])
                new = self.fetched[block, r] - (self.fetched[block, r - 1] if r else 0)
                self.model.add(new <= self.rounds.used[r])
            for task in readers:
                for r in self.window[task]:
                    self.model.add_implication(self.runs[task, r], self.fetched[block, r])

    def _stores(self) -> None:
        """Results that leave are written in a round after their own."""
        for task, leaves in enumerate(self.instance.outputs):
            if not leaves:
                continue
            before: Literal | None = None
            for r in range(self.window[task].start + 1, self.count):
                now = self.stored[task, r] = self.literal()
                if before is not None:
                    self.model.add_implication(before, now)
                self.model.add(
                    now
                    <= sum(
                        self.runs[task, q]
                        for q in range(self.window[task].start, r)
                        if q in self.window[task]
                    )
                )
                self.model.add(now - (before if before is not None else 0) <= self.rounds.used[r - 1])
                before = now
            if before is not None:
                self.model.add(before == 1)

    def new(self, ladder: dict[tuple[int, int], Literal], block: int, r: int) -> Terms:
        """What a ladder rises in a round, as terms in the block's bytes."""
        size = self.instance.size[block]
        terms = [(ladder[block, r], size)] if (block, r) in ladder else []
        if terms and (block, r - 1) in ladder:
            terms.append((ladder[block, r - 1], -size))
        return terms

    def _loads(self) -> None:
        """A round lasts as long as DRAM needs for what it moves, and a port for any one block of it."""
        for r in range(self.count):
            load: Terms = []
            for ladder in (self.fetched, self.stored):
                for block, when in ladder:
                    if when == r:
                        load += self.new(ladder, block, r)
            self.rounds.carry(self.rounds.length[r], load, self.instance.dram_rate)
        passing = self.instance.passing_rate
        for ladder in (self.fetched, self.stored):
            for block, r in ladder if passing is not None else ():
                self.rounds.carry(self.rounds.length[r], self.new(ladder, block, r), passing)

    def _waits(self) -> None:
        """A task waits for what is fetched in its own round, and for results of the round before.

        All of DRAM's late blocks pass at its rate.  All that is late for a task passes its engine's port; of
        the tasks of the round before, one at most has run on that engine.
        """
        for r in range(self.count - 1):
            here = [task for task, window in enumerate(self.window) if r in window]
            self.check()
            late = self.late_blocks(r, here)
            wait = self.model.new_int_var(0, self.rounds.longest, "")
            self.rounds.carry(
                wait,
                [(literal, self.instance.size[b]) for b, literal in late.items()],
                self.instance.dram_rate,
            )
            for block, literal in late.items():
                self.shared_block(block, literal, r, wait)
            remote: list[Literal] = []
            for task in here:
                remote.append(self.task_waits(task, r, late, wait))
            self.model.add(sum(remote) >= len(remote) - self.instance.beside_ports)

    def late_blocks(self, r: int, here: list[int]) -> dict[int, Literal]:
        """Per block a literal that is true where it is fetched for the first time in the round of its use."""
        late_of: dict[int, Literal] = {}
        for task in here:
            for block in self.instance.reads[task]:
                if self.instance.parent[block] >= 0:
                    continue
                late = late_of.setdefault(block, self.literal())
                before = [self.fetched[block, r - 1]] if r else []
                self.model.add_bool_or([~self.runs[task, r], ~self.fetched[block, r], *before, late])
        return late_of

    def shared_block(self, block: int, late: Literal, r: int, wait: cp_model.IntVar) -> None:
        """A late block for k tasks travels as far as the k-th engine from its port, or is read twice.

        Parameters
        ----------
        block : from DRAM
        late : whether it is fetched for the first time in the round of its use
        r : that round
        wait : time in which DRAM delivers all late blocks of the round
        """
        instance, unit = self.instance, self.instance.unit
        readers = [task for task in instance.readers[block] if r in self.window[task]]
        twice = instance.duration(instance.size[block], instance.dram_rate)
        cycles = unit * min((instance.cycles[task] for task in readers), default=0)
        for k in range(2, min(len(readers), instance.engines) + 1):
            delay = min(unit * self.reach(k), twice)
            if delay > (min(unit * self.reach(k - 1), twice) if k > 2 else 0):
                many = self.literal()
                running = sum(self.runs[task, r] for task in readers)
                self.model.add(running <= k - 1 + instance.engines * many)
                self.model.add(self.rounds.length[r] >= cycles + wait + delay).only_enforce_if([many, late])

    def reach(self, k: int) -> int:
        """Cycles of the hops to the farthest of k engines from the port that is nearest to them."""
        net, instance = self.instance.net, self.instance
        ways = [sorted(net.distance(p, e) for e in range(instance.engines)) for p in instance.ports]
        return min(way[k - 1] for way in ways) * instance.hop_cycles

    def task_waits(self, task: int, r: int, late: dict[int, Literal], wait: cp_model.IntVar) -> Literal:
        """What one task waits for in one round; the literal of its engine being away from all ports.

        Parameters
        ----------
        task, r : which of them, in which round
        late : per block from DRAM, whether it is fetched for the first time in this round
        wait : time in which DRAM delivers all late blocks of the round
        """
        instance, model, unit = self.instance, self.model, self.instance.unit
        run, length = self.runs[task, r], self.rounds.length[r]
        compute = unit * instance.cycles[task]
        away = self.literal()
        inflow: Terms = []
        for block in instance.reads[task]:
            if instance.parent[block] < 0:
                hops = unit * instance.hop_cycles
                model.add(length >= compute + wait + hops * away).only_enforce_if([run, late[block]])
                inflow.append((late[block], instance.size[block]))
        local: list[Literal] = []
        far: list[tuple[Literal, Literal]] = []
        for producer in sorted(instance.before[task]):
            made = self.runs.get((producer, r - 1))
            if made is None:
                continue
            size = sum(instance.size[b] for b in instance.reads[task] if instance.parent[b] == producer)
            here = self.literal()
            model.add_implication(here, made)
            local.append(here)
            far.append((made, here))
            inflow += [(made, size), (here, -size)]
        model.add_at_most_one(local)
        hop = self.literal()
        for made, here in far:
            model.add_bool_or([~run, ~made, here, hop])
        hops = self.nearest * unit if far else 0
        bound = self.rounds.time_of(inflow, self.instance.port_rate)
        if bound is not None:
            scale, taken, slack = bound
            model.add(scale * (length - compute - hops * hop) >= taken - slack).only_enforce_if(run)
        elif hops:
            model.add(length >= compute + hops).only_enforce_if([run, hop])
        return away

    @property
    def nearest(self) -> int:
        """Cycles of the hops between two engines, at least."""
        net, engines = self.instance.net, range(self.instance.engines)
        ways = [net.distance(a, b) for a in engines for b in engines if a != b]
        return min(ways, default=0) * self.instance.hop_cycles
