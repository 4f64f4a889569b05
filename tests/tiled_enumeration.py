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

    A plan is given up where it cannot end within ``limit``; states are remembered with the least times and
    energies at which they were reached.  Costs are computed here from bytes, rates and ways through the mesh.
    Energy is counted with all that must still pass DRAM: the first fetch of what is needed, and outputs.

    Parameters
    ----------
    limit : cycles, or pJ, or pJ times cycles
    powers : of energy and cycles in what is minimised
    """

    def __init__(
        self,
        dag: AtomicDag,
        machine: TiledMachine,
        idle: int,
        limit: float,
        budget: int = 10**9,
        powers: tuple[int, int] = (0, 1),
    ) -> None:
        self.budget, self.powers = budget, powers
        engine = machine.engine
        self.read, self.write = engine.buffer_read_energy, engine.buffer_write_energy
        self.hop, self.dram = machine.hop_energy, machine.dram_energy
        self.power = engine.static_power * machine.engines
        self.inside = float((dag.compute_energy + dag.register_energy + dag.buffer_energy).sum())
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
        self.seen: dict[object, list[tuple[float, float]]] = {}
        self.ways: dict[tuple[int, int], list[object]] = {}

    def run(self) -> float:
        """The least value, at most ``limit``; infinite where there is no such plan."""
        empty: tuple[frozenset[int], ...] = tuple(frozenset() for _ in self.engines)
        fetched = {b for reads in self.reads for b in reads if self.parent[b] < 0}
        paid = self.inside + sum(self.first(b) for b in fetched)
        paid += sum(self.size[t] * (self.dram + self.read) for t in self.leaves)
        self.step(0.0, paid, frozenset(), empty, frozenset(), 0)
        return self.best

    def value(self, cycles: float, paid: float) -> float:
        """What is minimised, of a plan that ends after these cycles."""
        whole = math.ceil(cycles - 1e-6)
        return float((paid + self.power * whole) ** self.powers[0] * whole ** self.powers[1])

    def within(self, cycles: float, paid: float) -> bool:
        """Whether that can still lead to something better."""
        value = self.value(cycles, paid)
        return value <= self.limit * (1 + 1e-11) and value < self.best * (1 - 1e-11)

    def first(self, block: int) -> float:
        """Energy that the first copy of a block from DRAM takes at least."""
        return self.size[block] * (self.dram + self.write)

    def step(
        self,
        now: float,
        paid: float,
        done: frozenset[int],
        held: tuple[frozenset[int], ...],
        stored: frozenset[int],
        gaps: int,
    ) -> None:
        """All next rounds of a state: tasks that have run, what buffers hold and DRAM has, idle rounds."""
        if len(done) == self.count:
            self.finish(now, paid, held, stored)
            return
        if not self.within(now + self.rest(done, stored), paid):
            return
        reached = self.seen.setdefault((done, held, stored, gaps), [])
        own = (now if self.powers[1] or self.power else 0.0, paid if self.powers[0] else 0.0)
        if any(time <= own[0] and energy <= own[1] + 1e-6 for time, energy in reached):
            return
        reached[:] = [other for other in reached if other[0] < own[0] or other[1] < own[1]] + [own]
        for runs in self.next_rounds(done, gaps):
            self.round(now, paid, done, held, stored, gaps + (not runs), runs)

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

    def finish(
        self, now: float, paid: float, held: tuple[frozenset[int], ...], stored: frozenset[int]
    ) -> None:
        """Whatever was not written leaves in one more round."""
        missing = sorted(self.leaves - stored)
        ways = [[(t, e, p) for e in self.engines if t in held[e] for p in self.ports] for t in missing]
        for writes in product(*ways):
            end = now + self.length({}, held, [], list(writes))
            energy = paid + self.extra([], list(writes), held)
            if self.within(end, energy):
                self.best = self.value(end, energy)

    def round(
        self,
        now: float,
        paid: float,
        done: frozenset[int],
        held: tuple[frozenset[int], ...],
        stored: frozenset[int],
        gaps: int,
        runs: dict[int, int],
    ) -> None:
        """All ways to do a round with these tasks on these engines."""
        rest = self.rest(done | set(runs.values()), stored | done)
        floor = max((self.cycles[t] for t in runs.values()), default=0)
        if not self.within(now + floor + rest, paid):
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
            longest = max([floor, *self.taken([], written).values()])
            if not self.within(now + longest + rest, paid + self.extra([], written, held)):
                continue
            for moves in self.choices(now + rest, paid, floor, written, held, options, []):
                self.evict(now, paid, done, held, stored, gaps, runs, moves, written, rest)

    def choices(
        self,
        begun: float,
        paid: float,
        floor: float,
        written: list[Move],
        held: tuple[frozenset[int], ...],
        options: list[list[Move | None]],
        moves: list[Move],
        at: int = 0,
    ) -> Iterator[list[Move]]:
        """All sets of movements with which a plan can still be better.

        ``begun`` are the cycles before and after the round, which takes ``floor`` at least.
        """
        if at == len(options):
            yield list(moves)
            return
        self.budget -= 1
        if self.budget < 0:
            raise TooLargeError
        for option in options[at]:
            if option is None:
                yield from self.choices(begun, paid, floor, written, held, options, moves, at + 1)
                continue
            moves.append(option)
            longest = max(floor, *self.taken(moves, written).values())
            if self.within(begun + longest, paid + self.extra(moves, written, held)):
                yield from self.choices(begun, paid, floor, written, held, options, moves, at + 1)
            moves.pop()

    def extra(self, moves: list[Move], written: list[Move], held: tuple[frozenset[int], ...]) -> float:
        """Energy of movements beyond what is counted from the start: first copies, outputs that leave."""
        if not self.powers[0]:
            return 0.0
        energy, passed = 0.0, set[object]()
        first = {b for b, _, _ in moves if self.parent[b] < 0 and not any(b in here for here in held)}
        energy -= sum(self.first(b) for b in first)
        for b, s, e in moves:
            energy += self.size[b] * self.write
            sent = self.dram if s >= len(self.engines) else self.read
            for link, price in [("sent", sent), *((link, self.hop) for link in self.way(s, e)[1:-1])]:
                if (b, s, link) not in passed:
                    passed.add((b, s, link))
                    energy += self.size[b] * price
        for t, e, p in written:
            energy += self.size[t] * self.hop * (len(self.way(e, p)) - 2)
            if t not in self.leaves:
                energy += self.size[t] * (self.dram + self.read)
        return energy

    def forgotten(self, done: set[int], after: tuple[frozenset[int], ...], before: set[int]) -> float:
        """Energy to fetch again what was on chip, is still needed, and is nowhere any more."""
        needed = set().union(*(self.reads[t] for t in range(self.count) if t not in done))
        lost = (needed & before) - set().union(*after)
        return sum(self.first(b) for b in lost if self.parent[b] < 0)

    def evict(
        self,
        now: float,
        paid: float,
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
            after = tuple(
                kept[e] | {b for b, _, target in moves if target == e} | ({runs[e]} if e in runs else set())
                for e in self.engines
            )
            ran = done | set(runs.values())
            before = set().union(*held, (b for b, _, _ in moves))
            energy = paid + self.extra(moves, written, held) + self.forgotten({*ran}, after, before)
            if self.within(end + rest, energy):
                self.step(end, energy, ran, after, stored | {t for t, _, _ in written}, gaps)

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


def tiny_problem(
    seed: int, objective: str = "makespan", fewest: int = 2, most: int = 36
) -> tuple[TiledProblem, AtomicDag]:
    """One to three small layers cut into atoms with halos, on one to four engines.

    Parameters
    ----------
    fewest : atoms
    most : atoms times blocks times engines
    """
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
            tiled_objective(objective),
            partial_sums=rng.choice(["chain", "reduction"]),
        )
        sizes = [
            AtomSize(rng.choice([2, 3, 4, 6]), 6, rng.choice([8, 8, 4]), rng.choice([4, 8, 8]))
            for _ in layers
        ]
        dag = problem.dag(sizes)
        blocks = len({*dag.reads.tolist()})
        if not fewest <= dag.tasks <= 8 or dag.tasks * blocks * machine.engines > most:
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
