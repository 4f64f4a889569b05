"""Fused mappings by moving every element, turn by turn.

Nothing is shared with the formulation but the group, the tree and the machine.  Turns are listed one by one
with the iterations of every layer; stores are sets of elements.  A leaf's turn is walked by `simulator`.  The
rules beside its own:

- A reader needs the smallest box around the elements that its iterations touch; a producer makes what is not
  in the home yet.
- What a sequence's own stores hold ends with each run of the sequence.
- A home is emptied when a loop outside it moves on.  Retained, elements stay that a window needs which has
  moved forward along one axis, or not at all.
- An operand's shared store is filled anew when its tile changes; a level that keeps windows fetches what a
  window that has moved forward along one axis lacks.
- A result's shared store goes out when its tile changes, and elements that went out before come back.
- A turn starts its sums at zero unless an earlier turn has begun the same sums.
- A softmax whose rows a loop cuts is `softmax_walker`'s.
- A shared store takes room in all turns inside it.  A home of which no turn needs what an earlier one made
  takes room from its producer's turn to that of its last reader.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise, product

from set_up_walk import arrivals, rows_of
from simulator import Simulation, bits, bits_of, cycles, energy, overfull, simulate
from softmax_walker import Rows, rows_along

from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import RETAINED, Branch, Leaf, SharedLoop, SharedStore
from tilewright.formulation.mapping.mapping import Mapping, Storage
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Axis, Operator, Role, Tensor

Span = tuple[int, int]
Box = tuple[Span, ...]  # first and end per axis
Element = tuple[int, ...]


@dataclass
class Turn:
    """One turn of a branch.

    Parameters
    ----------
    at : iterations of the loops around it, outermost first
    spans : per layer and dimension, first and end; ``None`` for a layer with nothing to do
    sums : per layer, to which sums the turn adds
    """

    at: tuple[int, ...]
    spans: dict[str, dict[str, Span] | None]
    sums: dict[str, tuple[int, ...]]


@dataclass
class Walked:
    """What the walk counted.

    Parameters
    ----------
    energy, cycles, macs : of the whole run
    counts : per (layer, level, tensor): reads, fills and updates
    full : levels that hold too much, with the layer in whose turns
    features : what occurred, for the shares that tests report
    """

    energy: Fraction = Fraction(0)
    cycles: int = 0
    macs: int = 0
    counts: dict[tuple[str, str, str], list[int]] = field(
        default_factory=lambda: defaultdict(lambda: [0, 0, 0])
    )
    full: set[tuple[str, str]] = field(default_factory=set)
    features: set[str] = field(default_factory=set)
    incomplete: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Placed:
    """A shared store and how many loops stand outside it."""

    store: SharedStore
    depth: int
    since: int = 0


def walk(group: FusedGroup, engine: Engine, tree: Branch) -> Walked:
    """Run a fused mapping."""
    walker = _Walker(group, engine, tree)
    names = [name for name, _ in group.layers]
    whole: dict[str, dict[str, Span] | None] = {
        name: {dim: (0, bound) for dim, bound in operator.bounds.items()} for name, operator in group.layers
    }
    walker.branch(tree, [Turn((), whole, dict.fromkeys(names, ()))], ())
    for fit in walker.fits_to_check:
        walker.fits(*fit)
    return walker.result


def elements(box: Box) -> set[Element]:
    return set(product(*(range(first, end) for first, end in box)))


def around(points: set[Element]) -> Box:
    return tuple((min(axis), max(axis) + 1) for axis in zip(*points, strict=True))


def forward(before: Box, now: Box) -> bool:
    """Whether a box has moved on along one axis alone, or not at all."""
    moved = [(a, b) for a, b in zip(before, now, strict=True) if a != b]
    return len(moved) <= 1 and all(a[0] <= b[0] and a[1] <= b[1] for a, b in moved)


class _Walker:
    def __init__(self, group: FusedGroup, engine: Engine, tree: Branch) -> None:
        self.group, self.engine, self.tree = group, engine, tree
        self.operators = dict(group.layers)
        self.result = Walked()
        self.levels = [level.name for level in engine.levels]
        self.walked: dict[object, tuple[Simulation, Operator]] = {}
        self.begun: dict[object, dict[tuple[str, bool], Fraction]] = {}
        self.tiles: dict[SharedStore, int] = {}
        self.softmaxes: dict[SharedStore, tuple[str, ...]] = {}
        self.fits_to_check: list[tuple[str, Operator, Simulation, dict[str, str], tuple[Placed, ...]]] = []

    def branch(self, branch: Branch, turns: list[Turn], stores: tuple[Placed, ...]) -> None:
        since = len(turns[0].at)
        for node in branch.nodes:
            if isinstance(node, SharedStore):
                stores = (*stores, Placed(node, len(turns[0].at), since))
            else:
                stores = (*stores, *self.parted(node, turns[0], stores))
                turns = [made for turn in turns for made in self.cut(node, turn)]
        self.sequence(branch, turns, stores)

    def parted(self, loop: SharedLoop, turn: Turn, stores: tuple[Placed, ...]) -> list[Placed]:
        """Running maxima and sums of softmaxes whose rows a loop is the first to cut."""
        begun: list[Placed] = []
        for reading in self.group.readings:
            along = rows_along(self.group, reading)
            below = [r.reader for r in self.group.readings if r.producer == reading.reader]
            if reading.reader not in turn.spans or turn.spans.keys() & set(below) or not along:
                continue
            rank = self.group.ranks[loop.layer, loop.dim]
            moved = [d for d in along if self.group.ranks[reading.reader, d] == rank]
            first = all((p.store.layer, p.store.tensor) != (reading.reader, reading.operand) for p in stores)
            if first and any(self.operators[reading.reader].bounds[d] > loop.tile for d in moved):
                output = self.operators[reading.producer].output.name
                homes = on_chip(self.tree, reading.producer, output, self.levels[0])
                state = SharedStore(reading.reader, reading.operand, homes[0] if homes else self.levels[0])
                begun.append(Placed(state, len(turn.at)))
                self.tiles[state], self.softmaxes[state] = 0, along
        return begun

    def cut(self, loop: SharedLoop, turn: Turn) -> list[Turn]:
        """One turn for each iteration of a loop."""
        rank = self.group.ranks[loop.layer, loop.dim]
        cut = {
            name: dim
            for name in turn.spans
            for dim in self.operators[name].bounds
            if self.group.ranks[name, dim] == rank
            and not any(r.producer == name and r.reader in turn.spans for r in self.group.readings)
        }
        made: list[Turn] = []
        index = 0
        while True:
            spans = dict(turn.spans)
            sums = dict(turn.sums)
            busy = False
            for name, dim in cut.items():
                own = turn.spans[name]
                if own is None:
                    continue
                first, end = own[dim]
                if first + index * loop.tile >= end:
                    spans[name] = None
                    continue
                busy = True
                spans[name] = own | {
                    dim: (first + index * loop.tile, min(end, first + (index + 1) * loop.tile))
                }
            if not busy and index:
                return made
            made.append(Turn((*turn.at, index), spans, sums))
            if not busy:
                return made
            index += 1

    def sequence(self, branch: Branch, turns: list[Turn], stores: tuple[Placed, ...]) -> None:
        children = [[c.layer] if isinstance(c, Leaf) else c.layers() for c in branch.children]
        child_of = {layer: i for i, layers in enumerate(children) for layer in layers}
        dead: list[set[SharedStore]] = [set() for _ in children]
        for layer in reversed(list(self.operators)):
            readings = [r for r in self.group.readings if r.producer == layer and r.reader in child_of]
            if layer not in child_of or not readings:
                continue
            wanted = [self.wanted(layer, turn) for turn in turns]
            across = {child_of[r.reader] for r in readings} != {child_of[layer]}
            if len(readings) > 1:
                self.result.features.add("second reader")
            if across:
                last = max(child_of[r.reader] for r in readings)
                made = self.make(layer, wanted, turns, stores, (child_of[layer], last), dead)
            else:
                made = [None if box is None else around(elements(box)) for box in wanted]
            axes = self.operators[layer].output.axes
            for number, (turn, box) in enumerate(zip(turns, made, strict=True)):
                own = turn.spans[layer]
                if box is None or own is None:
                    turn.spans[layer] = None
                    continue
                spans = dict(own)
                for axis, span in zip(axes, box, strict=True):
                    for term in axis.terms:
                        spans[term.dim] = span
                turn.spans[layer] = spans
                if across:
                    turn.sums[layer] = (number,)
        for index, child in enumerate(branch.children):
            alive = tuple(placed for placed in stores if placed.store not in dead[index])
            if isinstance(child, Leaf):
                self.leaf(child, turns, alive)
            else:
                below = [
                    Turn(
                        turn.at,
                        {name: turn.spans[name] for name in children[index]},
                        {name: turn.sums[name] for name in children[index]},
                    )
                    for turn in turns
                ]
                self.branch(child, below, alive)

    def wanted(self, producer: str, turn: Turn) -> Box | None:
        """The smallest box around what the readers touch of a result."""
        result = self.operators[producer].output
        spans: list[list[Span]] = [[] for _ in result.axes]
        for reading in self.group.readings:
            if reading.producer != producer or reading.reader not in turn.spans:
                continue
            own = turn.spans[reading.reader]
            if own is None:
                continue
            operand = self.operators[reading.reader].tensor(reading.operand)
            parts: list[Span | None] = [None] * len(result.axes)
            for axis, place, offset in zip(operand.axes, reading.axes, reading.offsets, strict=True):
                touched = {c - offset for c in coordinates(axis, own)}
                low, high = min(touched), max(touched)
                inside = [c for c in range(low, high + 1) if 0 <= c < result.axes[place].size]
                if low < 0 or high >= result.axes[place].size:
                    self.result.features.add("padding")
                if inside:
                    parts[place] = (inside[0], inside[-1] + 1)
            if None not in parts:
                for into, part in zip(spans, parts, strict=True):
                    assert part is not None
                    into.append(part)
        if any(not parts for parts in spans):
            return None
        return tuple((min(a for a, _ in parts), max(b for _, b in parts)) for parts in spans)

    def make(
        self,
        layer: str,
        wanted: list[Box | None],
        turns: list[Turn],
        stores: tuple[Placed, ...],
        children: tuple[int, int],
        dead: list[set[SharedStore]],
    ) -> list[Box | None]:
        """What the producer makes in every turn, from what is in the home by then."""
        result = self.operators[layer].output
        own = [p for p in stores if (p.store.layer, p.store.tensor) == (layer, result.name)]
        home = next((p for p in own if p.store.level != self.levels[0]), None)
        everything: Box = tuple((0, axis.size) for axis in result.axes)
        since = 0 if home is None else home.since
        if home is None:
            depth, retained = 0, True
            if not turns[0].at:
                wanted = [everything]
        else:
            depth, retained = home.depth, home.store.halo == RETAINED
        visits: dict[tuple[int, ...], list[int]] = {}
        for number, turn in enumerate(turns):
            visits.setdefault(turn.at[:depth], []).append(number)
        made: list[Box | None] = [None] * len(turns)
        present: set[Element] = set()
        before: Box | None = None
        run: tuple[int, ...] = ()
        outlives, ever, most, again = False, set[Element](), 0, False
        for at, numbers in visits.items():
            if at[:since] != run:  # another child may have had its turn in between
                run, before = at[:since], None
            boxes = [box for number in numbers if (box := wanted[number]) is not None]
            if not boxes:
                continue
            hull = around({corner for box in boxes for corner in corners(box)})
            keep = retained and before is not None and forward(before, hull)
            present = present & elements(hull) if keep else set()
            from_before = set(present)
            before, most = hull, max(most, math.prod(b - a for a, b in hull))
            for number in numbers:
                box = wanted[number]
                if box is None:
                    continue
                missing = elements(box) - present
                outlives |= bool(elements(box) & from_before)
                if missing:
                    made[number] = around(missing)
                    assert elements(made[number] or ()) == missing
                again |= bool(missing & ever)
                present |= missing
                ever |= missing
            outlives |= len({turn_inside for n in numbers if (turn_inside := turns[n].at[depth:])}) > 1
        if again:
            self.result.features.add("recomputed")
        if outlives and any(axis.terms for axis in result.axes):
            self.result.features.add("retained")
        if home is not None:
            self.tiles[home.store] = most
            self.result.features.add("home")
            if not outlives:
                for index in range(len(dead)):
                    if not children[0] <= index <= children[1]:
                        dead[index].add(home.store)
        if (layer in self.group.leaving or home is None) and ever != elements(everything):
            self.result.incomplete.add(layer)
        if layer in self.group.leaving and home is not None and len(own) < 2:
            self.result.incomplete.add(layer)
        return made

    def leaf(self, leaf: Leaf, turns: list[Turn], stores: tuple[Placed, ...]) -> None:
        """A layer's turns, and what its own shared stores move."""
        layer, operator = leaf.layer, self.operators[leaf.layer]
        homes: list[Storage] = []
        for tensor in operator.tensors:
            reading = next(
                (r for r in self.group.readings if (r.reader, r.operand) == (layer, tensor.name)), None
            )
            name = (layer, tensor.name)
            if reading is not None:
                name = (reading.producer, self.operators[reading.producer].output.name)
            own = [placed for placed in stores if (placed.store.layer, placed.store.tensor) == name]
            if own:
                homes.append(Storage(tensor.name, own[-1].store.level))
            passed_on = tensor.is_output and any(r.producer == layer for r in self.group.readings)
            if reading is None and not passed_on:
                for outer, inner in pairwise(own):
                    self.share(layer, tensor, outer, inner, turns)
            if passed_on and layer in self.group.leaving and len(own) > 1:
                self.copy(layer, own, turns)
        state = next((p.store for p in stores if p.store.layer == layer and p.store in self.softmaxes), None)
        rows = None if state is None else Rows(operator, state.tensor, self.softmaxes[state])
        begun: dict[tuple[int, ...], set[Element]] = defaultdict(set)
        shapes: set[tuple[int, ...]] = set()
        for turn in turns:
            spans = turn.spans[layer]
            if spans is None:
                continue
            out = elements(tuple(span_of(axis, spans) for axis in operator.output.axes))
            key = turn.sums[layer]
            continued = bool(out & begun[key])
            assert not continued or out <= begun[key]
            begun[key] |= out
            if continued:
                self.result.features.add("shared reduction")
            sizes = tuple(end - first for first, end in spans.values())
            shapes.add(sizes)
            self.turn(leaf, dict(zip(spans, sizes, strict=True)), continued, homes, stores)
            if rows is not None:
                rows.turn(spans)
        if state is not None and rows is not None:
            at = next((home.level for home in homes if home.tensor == operator.output.name), self.levels[0])
            self.tiles[state] = rows.most
            self.touch(layer, f"{state.tensor} softmax", state.level, (rows.read, rows.written), 0)
            self.touch(layer, operator.output.name, at, (rows.scaled, rows.scaled), rows.scaled)
            self.result.features.add("rows in parts")
            if rows.scaled and at != self.levels[0]:
                self.result.features.add("scaled on chip")
        if len(shapes) > 1:
            self.result.features.add("ragged")

    def copy(self, layer: str, own: list[Placed], turns: list[Turn]) -> None:
        """Each element of an intermediate goes out once, in a tile of each turn that makes some."""
        result, moved = self.operators[layer].output, Counter[str]()
        for turn in turns:
            if (spans := turn.spans[layer]) is not None:
                box = tuple(span_of(axis, spans) for axis in result.axes)
                moved["tiles"] += 1
                moved["rows"] += self.rows(result, box, own[0])
        count = result.footprint(self.operators[layer].bounds)
        self.move(layer, result, own[0], own[1], moved + Counter(updates=count, drains=count))

    def rows(self, tensor: Tensor, box: Box, outer: Placed) -> int:
        """Runs along the last axis of a tile that an outer level's port begins."""
        level = self.engine.level(outer.store.level)
        *leading, last = (end - first for first, end in box)
        longest = level.timing.row_bits
        if longest is not None:
            last = math.ceil(last / max(1, longest // bits(self.engine, level, tensor)))
        else:
            last = 1
        return math.prod(leading) * last

    def turn(
        self,
        leaf: Leaf,
        sizes: dict[str, int],
        continued: bool,
        homes: list[Storage],
        stores: tuple[Placed, ...],
    ) -> None:
        key = (leaf.layer, tuple(sizes.items()), continued)
        if key not in self.walked:
            whole = self.operators[leaf.layer]
            operator = replace(
                whole,
                dimensions=tuple(replace(d, bound=sizes[d.name]) for d in whole.dimensions),
                tensors=tuple(
                    replace(t, axes=tuple(Axis(a.terms, a.extent(sizes)) for a in t.axes))
                    for t in whole.tensors
                ),
            )
            rest, nodes = dict(sizes), []
            for node in dict(leaf.sized).get(tuple(sizes.values()), leaf.mapping).nodes:
                if not isinstance(node, Storage):
                    rest[node.dim] = min(rest[node.dim], node.tile)
                    node = replace(node, tile=rest[node.dim])
                nodes.append(node)
            simulation = simulate(operator, self.engine, Mapping((*homes, *nodes)), continued)
            self.walked[key] = simulation, operator
            self.begun[key] = set_up_cycles(self.engine, operator, Mapping((*homes, *nodes)))
            levels = {home.tensor: home.level for home in homes}
            self.fits_to_check.append((leaf.layer, operator, simulation, levels, stores))
        if tuple(sizes.values()) in dict(leaf.sized):
            self.result.features.add("mapped by size")
        simulation, operator = self.walked[key]
        self.result.energy += energy(self.engine, operator, simulation)
        self.result.cycles += cycles(self.engine, operator, simulation, self.begun[key])
        self.result.macs += operator.macs
        for (level, tensor), counts in simulation.counts.items():
            self.count(leaf.layer, level, tensor, *counts.totals[:3])

    def fits(
        self,
        layer: str,
        operator: Operator,
        simulation: Simulation,
        homes: dict[str, str],
        stores: tuple[Placed, ...],
    ) -> None:
        """Levels in which a turn's tiles and the shared ones around it are too many."""
        for level in self.engine.levels[1:]:
            sizes: list[tuple[Role, int]] = []
            for tensor in operator.tensors:
                if homes.get(tensor.name) != level.name:
                    width = bits(self.engine, level, tensor)
                    sizes.append((tensor.role, simulation.counts[level.name, tensor.name].tile * width))
            for placed in stores:
                if placed.store.level == level.name:
                    tensor = self.operators[placed.store.layer].tensor(placed.store.tensor)
                    sizes.append((tensor.role, self.tiles[placed.store] * bits(self.engine, level, tensor)))
            rooms: dict[Role | None, int] = {
                role: size * bits_of(self.engine, level, {role}) for role, size in level.partitions.items()
            }
            shared = level.counted_bits or bits_of(self.engine, level, level.keeps - level.partitions.keys())
            if level.capacity is not None:
                rooms[None] = level.capacity * shared
            for part, room in rooms.items():
                own = [s for role, s in sizes if (role if role in level.partitions else None) is part]
                if level.bank is not None:
                    own = [math.ceil(Fraction(s, level.bank * shared)) * level.bank * shared for s in own]
                if sum(own) > room:
                    self.result.full.add((layer, level.name))

    def share(self, layer: str, tensor: Tensor, outer: Placed, inner: Placed, turns: Sequence[Turn]) -> None:
        """What goes between two shared stores of an operand from outside, or of a result that leaves."""
        visits: dict[tuple[int, ...], set[Element]] = {}
        for turn in turns:
            spans = turn.spans[layer]
            if spans is not None:
                box = tuple(span_of(axis, spans) for axis in tensor.axes)
                visits.setdefault(turn.at[: inner.depth], set()).update(corners(box))
        slides = self.engine.level(inner.store.level).sliding_window
        before: Box | None = None
        gone: set[Element] = set()
        moved: Counter[str] = Counter()
        most = 0
        run: tuple[int, ...] = ()
        for at, points in visits.items():
            if at[: inner.since] != run:
                run, before = at[: inner.since], None
            box = around(points)
            most = max(most, math.prod(b - a for a, b in box))
            if box == before:
                continue
            held = elements(box)
            moved["tiles"] += 1
            moved["rows"] += self.rows(tensor, box, outer)
            if tensor.is_output:
                moved["updates"] += len(held)
                moved["drains"] += len(held)
                moved["fills"] += len(held & gone)
                moved["reads"] += len(held & gone)
                gone |= held
            else:
                known = elements(before) & held if before and slides and forward(before, box) else set()
                moved["reads"] += len(held - known)
                moved["fills"] += len(held - known)
            before = box
        self.result.features.add("resident")
        self.tiles[inner.store] = most
        self.move(layer, tensor, outer, inner, moved)

    def move(self, layer: str, tensor: Tensor, outer: Placed, inner: Placed, moved: Counter[str]) -> None:
        source, target = self.engine.level(outer.store.level), self.engine.level(inner.store.level)
        self.count(layer, source.name, tensor.name, moved["reads"], 0, moved["updates"])
        drains = moved["drains"] if target.timing.drained else 0
        self.count(layer, target.name, tensor.name, drains, moved["fills"], 0)
        role = tensor.role
        self.result.energy += drains * target.read_energies.get(role, target.read_energy)
        self.result.energy += moved["reads"] * source.read_energies.get(role, source.read_energy)
        self.result.energy += moved["updates"] * source.write_energies.get(role, source.write_energy)
        self.result.energy += moved["fills"] * target.write_energies.get(role, target.write_energy)
        busy, timing = [0, 0], source.timing
        begun = moved["tiles"] * timing.transfer + moved["rows"] * timing.row
        for level, reads, writes in (
            (source, moved["reads"], moved["updates"]),
            (target, drains, moved["fills"]),
        ):
            width = bits(self.engine, level, tensor)
            for rate, number in (
                (level.read_bandwidth, reads),
                (level.write_bandwidth, writes),
                (level.shared_bandwidth, reads + writes),
            ):
                if rate is not None:
                    took = math.ceil(number * width / (rate * self.engine.element_bits))
                    busy[level is target] = max(busy[level is target], took)
        self.result.cycles += max(busy[0] + math.ceil(begun), busy[1])

    def touch(self, layer: str, tensor: str, at: str, moved: tuple[int, int], operations: int) -> None:
        """Words of a level that are read and written, and operations of all PEs, while nothing else runs."""
        level = self.engine.level(at)
        read, written = moved
        self.count(layer, at, tensor, read, 0, written)
        self.result.energy += operations * self.engine.mac_energy
        self.result.energy += read * level.read_energies.get(Role.OUTPUT, level.read_energy)
        self.result.energy += written * level.write_energies.get(Role.OUTPUT, level.write_energy)
        pes = math.prod(a.size for own in self.engine.levels if own.fanout for a in own.fanout.axes)
        busy = [math.ceil(operations / pes)]
        rates = (
            (level.read_bandwidth, read),
            (level.write_bandwidth, written),
            (level.shared_bandwidth, read + written),
        )
        for rate, number in rates:
            if rate is not None:
                width = level.widths.get(Role.OUTPUT, self.engine.element_bits)
                busy.append(math.ceil(number * width / (rate * self.engine.element_bits)))
        self.result.cycles += max(busy)

    def count(self, layer: str, level: str, tensor: str, reads: int, fills: int, updates: int) -> None:
        row = self.result.counts[layer, level, tensor]
        for place, number in enumerate((reads, fills, updates)):
            row[place] += number


def set_up_cycles(engine: Engine, operator: Operator, mapping: Mapping) -> dict[tuple[str, bool], Fraction]:
    """Cycles in which ports begin the tiles of a mapping without arrays, by level, and whether they hide."""
    begun: dict[tuple[str, bool], Fraction] = defaultdict(Fraction)
    if all(not level.timing.transfer and not level.timing.row for level in engine.levels):
        return begun
    loops: list[tuple[str, int]] = []
    last: dict[str, str] = {}
    for node in mapping.nodes:
        if not isinstance(node, Storage):
            loops.append((node.dim, node.tile))
            continue
        if node.tensor in last:
            level, inner = engine.level(last[node.tensor]), engine.level(node.level)
            tensor, timing = operator.tensor(node.tensor), level.timing
            longest = 10**9
            if timing.row_bits is not None:
                longest = max(1, timing.row_bits // bits(engine, level, tensor))
            tiles = dict(operator.bounds) | dict(loops)
            came = [*arrivals(operator, tensor, loops, inner.timing.refetch)]
            rows = sum(rows_of(tensor, pieces, tiles, longest) for pieces in came)
            begun[level.name, inner.double_buffered] += len(came) * timing.transfer + rows * timing.row
        last[node.tensor] = node.level
    return begun


def on_chip(tree: Branch, layer: str, tensor: str, outermost: str) -> list[str]:
    """Levels of shared stores of a tensor on chip."""
    own = [node for node in tree.nodes if isinstance(node, SharedStore)]
    levels = [s.level for s in own if (s.layer, s.tensor) == (layer, tensor) and s.level != outermost]
    below = [on_chip(child, layer, tensor, outermost) for child in tree.children if isinstance(child, Branch)]
    return [*levels, *(level for found in below for level in found)]


def coordinates(axis: Axis, spans: dict[str, Span]) -> set[int]:
    """All indices along an axis that some iterations touch."""
    reached = {0}
    for term in axis.terms:
        first, end = spans[term.dim]
        reached = {start + term.stride * i for start in reached for i in range(first, end)}
    return reached


def span_of(axis: Axis, spans: dict[str, Span]) -> Span:
    touched = coordinates(axis, spans)
    return min(touched), max(touched) + 1


def corners(box: Box) -> set[Element]:
    return set(product(*((first, end - 1) for first, end in box)))


def overfull_alone(engine: Engine, operator: Operator, mapping: Mapping) -> list[str]:
    """Levels that one layer's mapping fills beyond their room."""
    return overfull(engine, operator, simulate(operator, engine, mapping))
