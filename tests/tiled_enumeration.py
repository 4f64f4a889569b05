"""All plans in rounds of tiny problems, enumerated without models, evaluator or bounds."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import combinations, permutations, product

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.network import Layer, Link, Network

Move = tuple[int, int, int]
"""Block, source and target; engines from 0, DRAM ports behind them."""


class TooLargeError(Exception):
    """More rounds than are worth a test."""


class Enumeration:
    """All plans in rounds, depth first: tasks and engines of a round, then movements, then evictions.

    A plan is given up where it cannot end within ``limit`` cycles; states are remembered with the least time
    at which they were reached.  Costs are computed here from bytes, rates and ways through the mesh.
    """

    def __init__(
        self, dag: AtomicDag, machine: TiledMachine, idle: int, limit: float, budget: int = 10**9
    ) -> None:
        self.budget = budget
        self.machine, self.idle, self.limit = machine, idle, limit
        self.count = dag.tasks
        self.size = [int(size) for size in dag.block_bytes]
        self.parent = [int(parent) for parent in dag.block_parent]
        self.cycles = [int(duration) for duration in dag.cycles]
        self.reads = [{int(b) for b in dag.reads_of(t)} for t in range(dag.tasks)]
        self.leaves = {t for t in range(dag.tasks) if dag.is_output[t]}
        self.engines = range(machine.engines)
        self.ports = range(machine.engines, machine.engines + len(machine.dram_ports))
        self.best = math.inf
        self.seen: dict[object, float] = {}
        self.ways: dict[tuple[int, int], list[object]] = {}

    def run(self) -> float:
        """The least cycles, at most ``limit``; infinite where there is no such plan."""
        empty: tuple[frozenset[int], ...] = tuple(frozenset() for _ in self.engines)
        self.step(0.0, frozenset(), empty, frozenset(), 0)
        return self.best

    def within(self, cycles: float) -> bool:
        """Whether that can still lead to something better."""
        return cycles <= min(self.limit, self.best - 1) + 1e-6

    def step(
        self,
        now: float,
        done: frozenset[int],
        held: tuple[frozenset[int], ...],
        stored: frozenset[int],
        gaps: int,
    ) -> None:
        """All next rounds of a state: tasks that have run, what buffers hold and DRAM has, idle rounds."""
        if len(done) == self.count:
            self.finish(now, held, stored)
            return
        if not self.within(now + self.rest(done, stored)):
            return
        state = (done, held, stored, gaps)
        if self.seen.get(state, math.inf) <= now:
            return
        self.seen[state] = now
        for runs in self.next_rounds(done, gaps):
            self.round(now, done, held, stored, gaps + (not runs), runs)

    def next_rounds(self, done: frozenset[int], gaps: int) -> Iterator[dict[int, int]]:
        """The tasks by engine of all rounds that may follow; one without tasks is idle."""
        ready = [
            t
            for t in range(self.count)
            if t not in done and all(self.parent[b] < 0 or self.parent[b] in done for b in self.reads[t])
        ]
        for many in range(0 if gaps < self.idle else 1, min(len(ready), len(self.engines)) + 1):
            for tasks in combinations(ready, many):
                for places in permutations(self.engines, many):
                    yield dict(zip(places, tasks, strict=True))

    def rest(self, done: frozenset[int], stored: frozenset[int]) -> float:
        """Cycles that must still follow: work, chains, and at the end of a chain its way to DRAM."""
        after = [0.0] * self.count
        for t in range(self.count - 1, -1, -1):
            own = self.size[t] / self.machine.dram_rate if t in self.leaves else 0.0
            after[t] = max(own, after[t])
            if t in done:
                continue
            for b in self.reads[t]:
                if self.parent[b] >= 0:
                    after[self.parent[b]] = max(after[self.parent[b]], self.cycles[t] + after[t])
        left = [t for t in range(self.count) if t not in done]
        work = sum(self.cycles[t] for t in left) / len(self.engines)
        written = sum(self.size[t] for t in self.leaves - stored) / self.machine.dram_rate
        return max([work, written, *(self.cycles[t] + after[t] for t in left)])

    def finish(self, now: float, held: tuple[frozenset[int], ...], stored: frozenset[int]) -> None:
        """Whatever was not written leaves in one more round."""
        missing = sorted(self.leaves - stored)
        ways = [[(t, e, p) for e in self.engines if t in held[e] for p in self.ports] for t in missing]
        for writes in product(*ways):
            end = math.ceil(now + self.length({}, held, [], list(writes)) - 1e-6)
            if end <= self.limit:
                self.best = min(self.best, end)

    def round(
        self,
        now: float,
        done: frozenset[int],
        held: tuple[frozenset[int], ...],
        stored: frozenset[int],
        gaps: int,
        runs: dict[int, int],
    ) -> None:
        """All ways to do a round with these tasks on these engines."""
        rest = self.rest(done | set(runs.values()), stored | done)
        floor = max((self.cycles[t] for t in runs.values()), default=0)
        if not self.within(now + floor + rest):
            return
        needed = set().union(*(self.reads[t] for t in range(self.count) if t not in done))
        wanted = needed | {self.parent[b] for b in needed if self.parent[b] >= 0}
        options: list[list[Move | None]] = []
        for e in self.engines:
            for b in sorted(wanted - held[e]):
                maker = self.parent[b]
                if maker >= 0 and maker not in done:
                    continue
                whole = {b} if maker < 0 else {b, maker}
                ways: list[Move | None] = [(b, s, e) for s in self.engines if s != e and whole & held[s]]
                if maker < 0 or maker in stored:
                    ways += [(b, p, e) for p in self.ports]
                must = e in runs and b in self.reads[runs[e]] and not whole & held[e] and whole == {b}
                if ways or must:
                    options.append([*ways] if must else [None, *ways])
        options.sort(key=len)
        writes_of: list[list[Move | None]] = []
        for t in sorted(done - stored):
            ways = [(t, e, p) for e in self.engines if t in held[e] for p in self.ports]
            if ways and (t in self.leaves or wanted & {t, *(b for b in wanted if self.parent[b] == t)}):
                writes_of.append([None, *ways])
        for writes in product(*writes_of):
            written = [write for write in writes if write is not None]
            over: dict[object, float] = {}
            for t, e, p in written:
                for link in [*self.way(e, p), "dram"]:
                    over[link] = over.get(link, 0.0) + self.size[t] / self.rate(link)
            spare = min(self.limit, self.best - 1) + 1e-6 - now - rest
            if max([floor, *over.values()]) > spare:
                continue
            for moves in self.choices(spare, over, options, 0, []):
                self.evict(now, done, held, stored, gaps, runs, moves, written, rest)

    def choices(
        self,
        spare: float,
        over: dict[object, float],
        options: list[list[Move | None]],
        at: int,
        moves: list[Move],
    ) -> Iterator[list[Move]]:
        """All sets of movements that take no link longer than ``spare``; ``over`` is what they carry."""
        if at == len(options):
            yield list(moves)
            return
        self.budget -= 1
        if self.budget < 0:
            raise TooLargeError
        for option in options[at]:
            if option is None:
                yield from self.choices(spare, over, options, at + 1, moves)
                continue
            b, s, e = option
            passed = {
                link for c, source, target in moves if (c, source) == (b, s) for link in self.way(s, target)
            }
            passed |= {"dram" for c, source, _ in moves if (c, source) == (b, s)}
            added = [
                link
                for link in (*self.way(s, e), *(["dram"] if s >= len(self.engines) else []))
                if link not in passed
            ]
            grown = {**over, **{link: over.get(link, 0.0) + self.size[b] / self.rate(link) for link in added}}
            if all(grown[link] <= spare for link in added):
                moves.append(option)
                yield from self.choices(spare, grown, options, at + 1, moves)
                moves.pop()

    def evict(
        self,
        now: float,
        done: frozenset[int],
        held: tuple[frozenset[int], ...],
        stored: frozenset[int],
        gaps: int,
        runs: dict[int, int],
        moves: list[Move],
        written: list[Move],
        rest: float,
    ) -> None:
        """All ways to give up copies before a round, where not all fit; a copy that moves on must stay."""
        self.budget -= 1
        if self.budget < 0:
            raise TooLargeError
        sending = [(b, s) for b, s, _ in moves + written if s < len(self.engines)]
        kept_ways: list[list[frozenset[int]]] = []
        for e in self.engines:
            fresh = {b for b, _, target in moves if target == e} | ({runs[e]} if e in runs else set())
            room = self.machine.engine.buffer_bytes - sum(self.size[b] for b in fresh)
            here = sorted(held[e])
            if sum(self.size[b] for b in here) <= room:
                kept_ways.append([held[e]])
                continue
            ways = [
                frozenset(keep)
                for n in range(len(here) + 1)
                for keep in combinations(here, n)
                if sum(self.size[b] for b in keep) <= room
            ]
            kept_ways.append(ways)
        for kept in product(*kept_ways):
            if not all({b, self.parent[b]} & kept[s] for b, s in sending):
                continue
            if any(t not in kept[s] for t, s, _ in written):
                continue
            if not self.supplied(runs, kept, moves):
                continue
            end = now + self.length(runs, kept, moves, written)
            if self.within(end + rest):
                after = tuple(
                    kept[e]
                    | {b for b, _, target in moves if target == e}
                    | ({runs[e]} if e in runs else set())
                    for e in self.engines
                )
                self.step(end, done | set(runs.values()), after, stored | {t for t, _, _ in written}, gaps)

    def supplied(self, runs: dict[int, int], kept: tuple[frozenset[int], ...], moves: list[Move]) -> bool:
        """Whether everything that is read is there, or comes."""
        for e, t in runs.items():
            there = kept[e] | {b for b, _, target in moves if target == e}
            if not all({b, self.parent[b]} & there for b in self.reads[t]):
                return False
        return True

    def length(
        self, runs: dict[int, int], kept: tuple[frozenset[int], ...], moves: list[Move], written: list[Move]
    ) -> float:
        """Cycles of a round."""
        late = []
        for b, s, e in moves:
            if e not in runs:
                continue
            coming = {c for c, _, target in moves if target == e}
            for read in self.reads[runs[e]]:
                alone = read not in kept[e] and read not in coming
                if read == b or (alone and self.parent[read] == b):
                    late.append((b, s, e))
                    break
        every = self.taken(moves, written)
        waits = self.taken(late, [])
        longest = max(every.values(), default=0.0)
        for e, t in runs.items():
            wait = 0.0
            for _b, s, target in late:
                if target == e:
                    way = self.way(s, e)
                    memory = waits["dram"] if s >= len(self.engines) else 0.0
                    hops = (len(way) - 2) * self.machine.hop_cycles
                    wait = max(wait, max(memory, *(waits[link] for link in way)) + hops)
            longest = max(longest, wait + self.cycles[t])
        return longest

    def taken(self, moves: list[Move], written: list[Move]) -> dict[object, float]:
        """Cycles that every link needs, and DRAM; what goes to several engines passes a link once."""
        over: dict[object, float] = {}
        passed: set[object] = set()
        for b, s, e in moves:
            for link in self.way(s, e) + (["dram"] if s >= len(self.engines) else []):
                if (b, s, link) not in passed:
                    passed.add((b, s, link))
                    over[link] = over.get(link, 0.0) + self.size[b] / self.rate(link)
        for t, e, p in written:
            for link in [*self.way(e, p), "dram"]:
                over[link] = over.get(link, 0.0) + self.size[t] / self.rate(link)
        return over

    def rate(self, link: object) -> float:
        if link == "dram":
            return self.machine.dram_rate
        assert isinstance(link, tuple)
        if link[0] == "port":
            return self.machine.port_rate if link[1] < len(self.engines) else self.machine.dram_port_rate
        return self.machine.link_rate

    def way(self, source: int, target: int) -> list[object]:
        """Out of a place, along the row, along the column, into a place."""
        if (source, target) not in self.ways:
            self.ways[source, target] = self.new_way(source, target)
        return self.ways[source, target]

    def new_way(self, source: int, target: int) -> list[object]:
        """The same, not looked up."""
        (x, y), (to_x, to_y) = self.at(source), self.at(target)
        way: list[object] = [("port", source, "out")]
        while (x, y) != (to_x, to_y):
            step = (x + (to_x > x) - (to_x < x), y) if x != to_x else (x, y + (to_y > y) - (to_y < y))
            way.append(("link", (x, y), step))
            x, y = step
        return [*way, ("port", target, "in")]

    def at(self, place: int) -> tuple[int, int]:
        if place >= len(self.engines):
            return self.machine.dram_ports[place - len(self.engines)]
        return place % self.machine.width, place // self.machine.width


def tiny_problem(seed: int) -> tuple[TiledProblem, AtomicDag]:
    """One to three small layers cut into two to five atoms with halos, on one to four engines."""
    rng = random.Random(seed)
    while True:
        grid = rng.choice(["1x1", "2x1", "2x1", "1x2", "2x2", "3x1"])
        link, dram = rng.choice([2, 4, 16, 64]), rng.choice([2, 4, 7.5, 32])
        ports = rng.choice(["left", "left", "sides"])
        machine = load_tiled_machine(
            f"atomic-2x2[engines={grid},array=8x8,link={link},dram={dram},ports={ports}]"
        )
        machine = machine.changed(hop_cycles=rng.choice([0, 1, 5, 40]))
        layers, links = [], []
        width = 8
        for i in range(rng.choice([1, 2, 2, 3])):
            kernel = rng.choice([1, 3])
            operator = conv2d(k=width, c=width, r=kernel, s=kernel, h=6, w=6, pad=kernel // 2)
            layers.append(Layer(f"l{i}", operator, "test"))
            if i:
                source = rng.choice(layers[:-1]).name
                links.append(Link(source, f"l{i}", "I", "x", width * 36))
        problem = TiledProblem(
            Network("tiny", layers, links),
            machine,
            tiled_objective("makespan"),
            partial_sums=rng.choice(["chain", "reduction"]),
        )
        sizes = [
            AtomSize(rng.choice([2, 3, 4, 6]), 6, rng.choice([8, 8, 4]), rng.choice([4, 8, 8]))
            for _ in layers
        ]
        dag = problem.dag(sizes)
        blocks = len({*dag.reads.tolist()})
        if dag.tasks < 2 or dag.tasks * blocks * machine.engines > 36:
            continue
        needs, total = int(dag.needs.max()), int(dag.block_bytes.sum())
        room = rng.choice([needs, needs + rng.randrange(400), (needs + total) // 2, total])
        try:
            small = machine.changed(engine=type(machine.engine)(**{**fields(machine), "buffer_bytes": room}))
            tight = TiledProblem(problem.network, small, problem.objective, partial_sums=problem.partial_sums)
            return tight, tight.dag(sizes)
        except InputError:
            continue


def fields(machine: TiledMachine) -> dict[str, object]:
    return {name: getattr(machine.engine, name) for name in type(machine.engine).__slots__}
