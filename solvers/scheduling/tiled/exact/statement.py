"""Order, placement, residency and movements of round plans as one CP-SAT model; see docs/tiled-exact.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction

from ortools.sat.python import cp_model

from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance
from tilewright.solvers.scheduling.tiled.exact.rounds import Rounds, Terms
from tilewright.solvers.scheduling.tiled.exact.variables import FREE, Given, Literal, PlanStatement

Ladder = dict[tuple[int, int], Literal | int]
"""(task, round): whether a task has run by then."""

Moves = dict[tuple[int, int, int, int], Literal]
"""(block, source place, target engine, round)"""

Loads = dict[tuple[int, int], Terms]
"""(link, round); link -1 is DRAM."""


def plan_statement(
    instance: RoundInstance,
    count: int,
    idle: int,
    least: int,
    most: int,
    *,
    given: Given = FREE,
    priced: bool = False,
    serial: bool = False,
    check: Callable[[], None] = lambda: None,
) -> PlanStatement:
    """All round plans of some length.

    Parameters
    ----------
    count : rounds, the last one for write-backs alone
    idle : rounds before the last task that run none, at most
    least, most : cycles
    given : what of them is given
    priced, serial : whether energy counts; whether one task runs at a time, and lengths are left out
    check : raises where a limit has struck; it is called between groups of constraints
    """
    heads, tails = instance.rounds_around(1 if serial else instance.engines)
    window = [range(head, count - 1 - tail) for head, tail in zip(heads, tails, strict=True)]
    window = given.rounds(window)
    may_run = given.engines(instance.tasks, range(instance.engines))
    rounds = Rounds(instance, count, idle, least, most, timed=not serial)
    return _Groups(instance, rounds, window, may_run, priced).stated(check)


class _Groups:
    """The groups of constraints; what one makes and another needs is handed on.

    Parameters
    ----------
    window : per task, the rounds in which it may run
    may_run : per task, the engines on which it may run
    priced : whether energy counts
    """

    def __init__(
        self,
        instance: RoundInstance,
        rounds: Rounds,
        window: Sequence[range],
        may_run: Sequence[Sequence[int]],
        priced: bool,
    ) -> None:
        self.instance, self.rounds, self.model = instance, rounds, rounds.model
        self.count, self.engines = rounds.count, range(instance.engines)
        self.window, self.may_run, self.priced = window, may_run, priced
        self.statement = PlanStatement(instance, rounds)
        self.runs, self.held = self.statement.runs, self.statement.held
        self.arrives, self.moves = self.statement.arrives, self.statement.moves
        self.written = self.statement.written
        parts: dict[int, list[int]] = defaultdict(list)
        for block in instance.readers:
            if 0 <= instance.parent[block] != block:
                parts[instance.parent[block]].append(block)
        self._parts = {t: tuple(parts.get(t, ())) for t in range(instance.tasks)}
        self._both: dict[tuple[int, int, int], Literal] = {}

    def stated(self, check: Callable[[], None]) -> PlanStatement:
        """All groups."""
        check()
        self._tasks()
        check()
        self._copies(self._precedence())
        check()
        for group in (self._supply, self._sources, self._write_backs, self._buffers):
            group()
            check()
        if self.rounds.timed:
            self._delays(*self._loads())
        return self.statement

    def literal(self, *_about: object) -> Literal:
        return self.model.new_bool_var("")

    def _tasks(self) -> None:
        """Every task runs once; an engine, or all of them, one task of a round at most."""
        for task, window in enumerate(self.window):
            for r in window:
                for e in self.may_run[task]:
                    self.runs[task, e, r] = self.literal()
            self.model.add_exactly_one(self.runs[task, e, r] for r in window for e in self.may_run[task])
        for r in range(self.count - 1):
            here = [self.running(e, r) for e in self.engines]
            together = [running for on_one in here for running in on_one]
            for group in here if self.rounds.timed else [together]:
                self.model.add_at_most_one(run for _, run in group)
            self.rounds.place(r, together)
        self.rounds.thresholds()

    def running(self, e: int, r: int) -> list[tuple[int, Literal]]:
        """What an engine may run in a round."""
        return [(t, self.runs[t, e, r]) for t in range(self.instance.tasks) if (t, e, r) in self.runs]

    def _precedence(self) -> Ladder:
        """A task runs after all that it reads: what has run by a round is a ladder."""
        ladder: Ladder = {}
        for task, window in enumerate(self.window):
            for r in range(self.count):
                if r < window.start:
                    ladder[task, r] = 0
                elif r >= window.stop - 1:
                    ladder[task, r] = 1
                else:
                    done = ladder[task, r] = self.literal()
                    before = ladder[task, r - 1] if r else 0
                    self.model.add(before + sum(self.runs[task, e, r] for e in self.may_run[task]) == done)
        for task, producers in enumerate(self.instance.before):
            for producer in producers:
                for r in self.window[task]:
                    by, then = ladder[task, r], ladder[producer, r - 1]
                    self.model.add(by <= then)
        return ladder

    def _copies(self, ran: Ladder) -> None:
        """A block is held from its making or its arrival on, without a break."""
        instance = self.instance
        for block, (first, last) in self.lives().items():
            maker = block if block < instance.tasks else None
            for e in self.engines:
                for r in range(first, last + 1):
                    held = self.held[block, e, r] = self.literal()
                    ways = [self.held[block, e, r - 1]] if r > first else []
                    run = None if maker is None else self.runs.get((maker, e, r))
                    if run is not None:
                        ways.append(run)
                        self.model.add_implication(run, held)
                    arrives = self.may_arrive(block, e, r, first, ran)
                    if arrives is not None:
                        ways.append(arrives)
                    self.model.add_bool_or([*ways, ~held])

    def may_arrive(self, block: int, e: int, r: int, first: int, ran: Ladder) -> Literal | None:
        """The literal of an arrival, where one is possible."""
        parent = self.instance.parent[block]
        begin = 0 if parent < 0 else self.window[parent].start + 1
        if r < begin or r > self.last_use(block) or r >= self.count - 1:
            return None
        arrives = self.arrives[block, e, r] = self.literal()
        self.model.add_implication(arrives, self.held[block, e, r])
        self.model.add_implication(arrives, self.rounds.used[r])
        if r > first:
            self.model.add_implication(arrives, ~self.held[block, e, r - 1])
        if parent >= 0:
            self.model.add(arrives <= ran[parent, r - 1])
        return arrives

    def parts(self, block: int) -> tuple[int, ...]:
        """Parts of a result that somebody reads."""
        if block >= self.instance.tasks:
            return ()
        return self._parts[block]

    def last_use(self, block: int) -> int:
        """The last round in which anybody may read a block or a part of it."""
        readers = [t for b in (block, *self.parts(block)) for t in self.instance.readers.get(b, ())]
        return max((self.window[t].stop - 1 for t in readers), default=-1)

    def lives(self) -> dict[int, tuple[int, int]]:
        """Per block that matters, the first and last round in which it may be held."""
        lives = {}
        for task in range(self.instance.tasks):
            last = self.count - 1 if self.instance.outputs[task] else self.last_use(task)
            lives[task] = (self.window[task].start, max(last, self.window[task].stop - 1))
        for block in self.instance.readers:
            if block >= self.instance.tasks:
                parent = self.instance.parent[block]
                first = 0 if parent < 0 else self.window[parent].start + 1
                lives[block] = (first, self.last_use(block))
        return lives

    def _supply(self) -> None:
        """What a task reads is on its engine, itself or as part of the whole."""
        for (task, e, r), run in self.runs.items():
            for block in self.instance.reads[task]:
                ways = [self.held[b, e, r] for b in self.wholes(block) if (b, e, r) in self.held]
                self.model.add_bool_or([*ways, ~run])

    def wholes(self, block: int) -> tuple[int, ...]:
        """A block, and the result that it is part of."""
        parent = self.instance.parent[block]
        return (block,) if parent < 0 or parent == block else (block, parent)

    def kept(self, block: int, e: int, r: int) -> list[Literal]:
        """Literals one of which is true where a block, or its whole, has been on an engine since before."""
        literals = []
        for whole in self.wholes(block):
            now, then = self.held.get((whole, e, r)), self.held.get((whole, e, r - 1))
            if now is not None and then is not None:
                both = self._both.get((whole, e, r))
                if both is None:
                    both = self._both[whole, e, r] = self.literal()
                    self.model.add_implication(both, now)
                    self.model.add_implication(both, then)
                literals.append(both)
        return literals

    def _sources(self) -> None:
        """An arriving block comes from one engine that has held it since before, or from a DRAM port."""
        instance = self.instance
        for (block, e, r), arrives in self.arrives.items():
            ways = []
            for source in (*self.engines, *instance.ports):
                if source == e:
                    continue
                if source in self.engines:
                    kept = self.kept(block, source, r)
                    if not kept:
                        continue
                else:
                    kept = []
                move = self.moves[block, source, e, r] = self.literal()
                ways.append(move)
                if source in self.engines:
                    self.model.add_bool_or([*kept, ~move])
            self.model.add(sum(ways) == arrives)

    def _write_backs(self) -> None:
        """Outputs are written once, other results at most once, by an engine that has held them since before;
        what is read back was written before."""
        instance, model = self.instance, self.model
        stored_by: dict[tuple[int, int], Literal] = {}
        for task in range(instance.tasks):
            if instance.roomy and not (instance.outputs[task] or instance.networked or self.priced):
                continue
            begin = self.window[task].start + 1
            last = self.count - 1 if instance.outputs[task] else self.last_use(task) - 1
            before: Literal | int = 0
            for r in range(begin, last + 1):
                ways = []
                for e in self.engines:
                    now, then = self.held.get((task, e, r)), self.held.get((task, e, r - 1))
                    if now is None or then is None:
                        continue
                    for port in instance.ports:
                        write = self.written[task, e, port, r] = self.literal()
                        ways.append(write)
                        model.add_implication(write, now)
                        model.add_implication(write, then)
                        model.add_implication(write, self.rounds.used[r - 1])
                done = stored_by[task, r] = self.literal()
                model.add(before + sum(ways) == done)
                before = done
            if instance.outputs[task]:
                model.add(before == 1)
        for (block, source, _, r), move in self.moves.items():
            parent = instance.parent[block]
            if source >= instance.engines and parent >= 0:
                stored = stored_by.get((parent, r - 1))
                if stored is None:
                    model.add(move == 0)
                else:
                    model.add_implication(move, stored)

    def _buffers(self) -> None:
        """No buffer holds more than its size in any round."""
        if self.instance.roomy:
            return
        room = self.instance.machine.engine.buffer_bytes
        there: dict[tuple[int, int], Terms] = defaultdict(list)
        for (block, e, r), held in self.held.items():
            there[e, r].append((held, self.instance.size[block]))
        for terms in there.values():
            if sum(size for _, size in terms) > room:
                self.model.add(sum(size * held for held, size in terms) <= room)

    def _loads(self) -> tuple[Moves, Loads]:
        """Every round lasts as long as its busiest link, and as the DRAM.

        The moves for which a task waits, and their loads, are handed on.
        """
        late_moves: Moves = {}
        for (block, source, e, r), move in self.moves.items():
            late = late_moves[block, source, e, r] = self.literal()
            self.model.add_implication(late, move)
            for task in self.instance.readers.get(block, ()):
                run = self.runs.get((task, e, r))
                if run is not None:
                    self.model.add_bool_or([~move, ~run, late])
            for part in self.parts(block):
                if part == block:
                    continue
                own = self.held.get((part, e, r))
                for task in self.instance.readers[part]:
                    run = self.runs.get((task, e, r))
                    if run is not None:
                        self.model.add_bool_or([~move, ~run, late, *([own] if own is not None else [])])
        all_loads = self.link_loads(self.moves, with_writes=True)
        late_loads = self.link_loads(late_moves, with_writes=False)
        for (link, r), load in all_loads.items():
            self.rounds.carry(self.rounds.length[r], load, self.rate(link))
        return late_moves, late_loads

    def rate(self, link: int) -> Fraction | None:
        """Bytes per cycle of a link; -1 is DRAM."""
        return self.instance.dram_rate if link < 0 else self.instance.link_rates[link]

    def link_loads(self, moves: Moves, *, with_writes: bool) -> Loads:
        """Per link (-1 is DRAM) and round the bytes over it: a multicast loads a link once."""
        instance, net = self.instance, self.instance.net
        users: dict[tuple[int, int, int, int], list[Literal]] = defaultdict(list)
        for (block, source, e, r), move in moves.items():
            for link in net.route(source, e).tolist():
                if instance.link_rates[link] is not None:
                    users[block, source, link, r].append(move)
            if source >= instance.engines:
                users[block, source, -1, r].append(move)
        shared: dict[tuple[int, ...], Literal] = {}
        loads: dict[tuple[int, int], Terms] = defaultdict(list)
        for (block, _source, link, r), literals in users.items():
            loads[link, r].append((self.any_of(literals, shared), instance.size[block]))
        for (task, e, port, r), write in self.written.items() if with_writes else ():
            for link in [*net.route(e, port).tolist(), -1]:
                if link < 0 or instance.link_rates[link] is not None:
                    loads[link, r].append((write, instance.size[task]))
        return loads

    def any_of(self, literals: list[Literal], shared: dict[tuple[int, ...], Literal]) -> Literal:
        """A literal that any of some imply."""
        if len(literals) == 1:
            return literals[0]
        key = tuple(literal.index for literal in literals)
        either = shared.get(key)
        if either is None:
            either = shared[key] = self.literal()
            for literal in literals:
                self.model.add_implication(literal, either)
        return either

    def _delays(self, late_moves: Moves, late_loads: Loads) -> None:
        """A task begins when what arrives in its own round is there."""
        instance, model, unit = self.instance, self.model, self.instance.unit
        by_way: dict[tuple[int, int, int], list[Literal]] = defaultdict(list)
        for (_block, source, e, r), late in late_moves.items():
            by_way[source, e, r].append(late)
        waits: dict[tuple[int, int], cp_model.IntVar] = {}
        for (source, e, r), literals in by_way.items():
            if (e, r) not in waits:
                waits[e, r] = model.new_int_var(0, self.rounds.longest, "")
            wait = waits[e, r]
            some = self.any_of(literals, {})
            route = instance.net.route(source, e).tolist()
            hops = max(0, len(route) - 2) * instance.hop_cycles * unit
            if hops:
                model.add(wait >= hops).only_enforce_if(some)
            for link in [*route, *([-1] if source >= instance.engines else [])]:
                load = late_loads.get((link, r))
                bound = None if load is None else self.rounds.time_of(load, self.rate(link))
                if bound is not None:
                    scale, taken, slack = bound
                    model.add(scale * (wait - hops) >= taken - slack).only_enforce_if(some)
        for r in range(self.count - 1):
            for e in self.engines:
                here = self.running(e, r)
                waited = waits.get((e, r))
                compute = sum(unit * instance.cycles[t] * x for t, x in here)
                model.add(self.rounds.length[r] >= compute + (0 if waited is None else waited))
