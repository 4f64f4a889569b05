"""A replay of evaluated trees, byte by byte: every value of every tensor is owned, wanted and carried.

Only partitions, numbers of tiles and what a share costs on a tile are taken from what is replayed; where
tiles lie, who owns a value, who wants it, what is direct and which links a multicast takes is worked out here
again, from the paper's text, with sets and dictionaries.
"""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.node_cost import NodeCost
from tilewright.formulation.scheduling.tiled.set.trees.tree import Leaf

Value = tuple[int, int, int, int]
"""Channel, sample, row, column."""

Spot = tuple[int, int]
RESULTS = 10 * 1024


@dataclass
class Carried:
    """Bytes of links, of DRAM, and times links; what several runs share is divided figure by figure."""

    links: Counter[tuple[Spot, Spot]] = field(default_factory=Counter)
    dram: int = 0
    hops: int = 0

    def times(self, factor: int) -> "Carried":
        """The same so often."""
        return Carried(
            Counter({link: count * factor for link, count in self.links.items()}),
            self.dram * factor,
            self.hops * factor,
        )

    def add(self, other: "Carried") -> None:
        """Put another one's on top."""
        self.links.update(other.links)
        self.dram += other.dram
        self.hops += other.hops

    def multicast(self, source: Spot, targets: set[Spot], size: int) -> None:
        """Along the source's row to every column of a target, then up and down each column."""
        used = set()
        for x, y in targets:
            at = source
            while at[0] != x:
                step = at[0] + (1 if x > at[0] else -1), at[1]
                used.add((at, step))
                at = step
            while at[1] != y:
                step = at[0], at[1] + (1 if y > at[1] else -1)
                used.add((at, step))
                at = step
        for link in used:
            self.links[link] += size
        self.hops += len(used) * size

    def fetch(self, ports: list[Spot], targets: set[Spot], size: int) -> None:
        """From all ports, each with its part."""
        for i, port in enumerate(ports):
            self.multicast(port, targets, size * (i + 1) // len(ports) - size * i // len(ports))
        self.dram += size

    def store(self, ports: list[Spot], source: Spot, size: int) -> None:
        """To all ports."""
        for i, port in enumerate(ports):
            self.multicast(source, {port}, size * (i + 1) // len(ports) - size * i // len(ports))
        self.dram += size


def spot(tile: int, height: int) -> Spot:
    """Snakes of two columns, the second one downwards, and so on."""
    band, inside = divmod(tile, 2 * height)
    y, x = divmod(inside, 2)
    return band * 2 + x, (height - 1 - y) if band % 2 else y


@dataclass
class Replay:
    """Replays one evaluated tree; `faults` has what differs."""

    form: ClosedForm
    root: NodeCost

    def __post_init__(self) -> None:
        self.height = self.form.machine.height
        self.ports = sorted((int(x), int(y)) for x, y in self.form.machine.dram_ports)
        self.way: dict[int, list[tuple[NodeCost, int]]] = {}
        self._ways(self.root, [])
        self.loads = self.root.node.batch // (self.root.node.groups if self._root_is_t else 1)
        self.faults: list[str] = []
        self.visit(self.root)

    @property
    def _root_is_t(self) -> bool:
        return not isinstance(self.root.node, Leaf) and self.root.node.kind == "T"

    def _ways(self, cost: NodeCost, above: list[tuple[NodeCost, int]]) -> None:
        if isinstance(cost.node, Leaf):
            self.way[cost.node.layer] = [*above, (cost, 0)]
        for number, child in enumerate(cost.children):
            self._ways(child, [*above, (cost, number)])

    def layers(self, cost: NodeCost) -> set[int]:
        """Layers below a node."""
        return {layer for layer, way in self.way.items() if any(step is cost for step, _ in way)}

    def stages(self, cost: NodeCost) -> list[int]:
        """How many subbatches after the first the children of an S cut begin."""
        stages: list[int] = []
        for number, child in enumerate(cost.children):
            reads = set().union(*(self.form.network.before[layer] for layer in self.layers(child)))
            behind = [stages[i] + 1 for i in range(number) if self.layers(cost.children[i]) & reads]
            stages.append(max(behind, default=0))
        return stages

    def direct(self, producer: int, reader: int) -> bool:
        """Whether results pass on without DRAM."""
        way, other = self.way[producer], self.way[reader]
        depth = max(i for i, (a, b) in enumerate(zip(way, other, strict=False)) if a[0] is b[0])
        cut, mine = way[depth]
        theirs = other[depth][1]
        if cut is self.root and self._root_is_t:
            return False
        if cut.node.kind == "T":  # type: ignore[union-attr]
            return theirs - mine == 1
        stages = self.stages(cut)
        return stages[theirs] - stages[mine] <= 1

    def boxes(self, cost: NodeCost) -> dict[tuple[int, int, int, int], tuple[Spot, list[range]]]:
        """Every share that is not empty: its tile and its ranges of channels, samples, rows, columns."""
        assert cost.leaf is not None
        layer = self.form.network.layers[cost.node.layer]  # type: ignore[union-attr]
        sizes = (layer.channels, cost.node.batch, layer.rows, layer.columns)
        parts = cost.leaf.partition.parts
        boxes = {}
        for number in range(math.prod(parts)):
            index, rest = [0] * 4, number
            for axis in reversed(cost.leaf.partition.order):
                rest, index[axis] = divmod(rest, parts[axis])
            ranges = [
                range(math.ceil(size * i / part), math.ceil(size * (i + 1) / part))
                for size, i, part in zip(sizes, index, parts, strict=True)
            ]
            if all(ranges):
                boxes[tuple(index)] = spot(cost.first + number, self.height), ranges
        return boxes  # type: ignore[return-value]

    def wanted(self, layer: int, ranges: list[range]) -> set[Value]:
        """Values of the operand that a share's results are made of."""
        set_layer = self.form.network.layers[layer]
        rows = {
            y * set_layer.stride_rows + dy - set_layer.pad_rows
            for y in ranges[2]
            for dy in range(set_layer.taps_rows)
        }
        columns = {
            x * set_layer.stride_columns + dx - set_layer.pad_columns
            for x in ranges[3]
            for dx in range(set_layer.taps_columns)
        }
        channels = range(set_layer.inputs) if set_layer.is_mac else ranges[0]
        return {
            (c, n, y, x)
            for c in channels
            for n in ranges[1]
            for y in rows & set(range(set_layer.input_rows))
            for x in columns & set(range(set_layer.input_columns))
        }

    def leaf(self, cost: NodeCost) -> tuple[Carried, int, Counter[int], Counter[int], Counter[int]]:
        """Traffic and cycles of a leaf; inputs, all data and weights by tile."""
        layer, batch = cost.node.layer, cost.node.batch  # type: ignore[union-attr]
        set_layer, boxes = self.form.network.layers[layer], self.boxes(cost)
        groups: dict[tuple[int, ...], tuple[set[Spot], set[Value]]] = {}
        inputs: Counter[Spot] = Counter()
        weights: Counter[Spot] = Counter()
        senders: dict[int, tuple[set[Spot], int]] = {}
        for (k, b, h, w), (where, ranges) in boxes.items():
            key = (0 if set_layer.is_mac else k, b, h, w)
            values = self.wanted(layer, ranges)
            groups.setdefault(key, (set(), values))[0].add(where)
            inputs[where] += len(values) * set_layer.operands
            size = (
                len(ranges[0]) * set_layer.inputs * set_layer.taps_rows * set_layer.taps_columns
                if set_layer.weight_bytes
                else 0
            )
            weights[where] += size
            senders.setdefault(k, (set(), size))[0].add(where)
        total = Carried()
        loading = Carried()
        for targets, size in senders.values():
            if size:
                loading.fetch(self.ports, targets, size)
        total.add(_divided(loading, max(1, self.loads // batch)))
        for targets, values in groups.values():
            if set_layer.external:
                total.fetch(self.ports, targets, sum(value[0] < set_layer.external for value in values))
        for made in set_layer.producers:
            total.add(self._operand(layer, made.layer, made.offset, batch, groups))
        stored = set_layer.is_output or any(
            not self.direct(layer, other) for other in self.form.network.after[layer]
        )
        if stored:
            for where, ranges in boxes.values():
                total.store(self.ports, where, math.prod(len(each) for each in ranges))
        sizes = (set_layer.channels, batch, set_layer.rows, set_layer.columns)
        assert cost.leaf is not None
        k, b, h, w = (
            math.ceil(size / part) for size, part in zip(sizes, cost.leaf.partition.parts, strict=True)
        )
        array = int(self.form.engine.costs.share(set_layer, b, k, h, w)[0])
        held = Counter({where: size + RESULTS for where, size in inputs.items() if size})
        return total, array, inputs, held, weights

    def _operand(
        self,
        layer: int,
        producer: int,
        offset: int,
        batch: int,
        groups: dict[tuple[int, ...], tuple[set[Spot], set[Value]]],
    ) -> Carried:
        made = self.form.network.layers[producer]
        mine = range(offset, offset + made.channels)
        carried = Carried()
        if not self.direct(producer, layer):
            for targets, values in groups.values():
                carried.fetch(self.ports, targets, sum(value[0] in mine for value in values))
            return carried
        cost = self.way[producer][-1][0]
        owner: dict[Value, Spot] = {}
        for where, (c, n, y, x) in self.boxes(cost).values():
            owner.update({(a, b, d, e): where for a in c for b in n for d in y for e in x})
        runs = max(1, cost.node.batch // batch)
        for run in range(runs):
            for targets, values in groups.values():
                sources: Counter[Spot] = Counter()
                for c, n, y, x in values:
                    if c in mine:
                        sources[owner[c - offset, (run * batch + n) % cost.node.batch, y, x]] += 1
                for source, size in sources.items():
                    carried.multicast(source, targets, size)
        return _divided(carried, runs)

    def visit(self, cost: NodeCost) -> tuple[Carried, int, Counter[Spot], Counter[Spot], Counter[Spot]]:
        """Traffic, cycles, inputs, data and weights of one node, compared with what it was said to take."""
        node = cost.node
        machine = self.form.machine
        top = cost in self.root.children if self._root_is_t else cost is self.root
        if isinstance(node, Leaf):
            carried, cycles, inputs, held, weights = self.leaf(cost)
        else:
            parts = [self.visit(child) for child in cost.children]
            carried = Carried()
            for part in parts:
                carried.add(part[0].times(node.groups))
            inputs, held, weights = self._buffers(cost, parts, top)  # type: ignore[arg-type]
            cycles = node.groups * sum(part[1] for part in parts)
            if node.kind == "S":
                cycles = (node.groups + max(self.stages(cost))) * max(part[1] for part in parts)
        if cost is not self.root or not self._root_is_t:
            busiest = max(carried.links.values(), default=0)
            cycles = max(
                cycles, math.ceil(carried.dram / machine.dram_rate), math.ceil(busiest / machine.link_rate)
            )
        figures = {"hops": carried.hops, "DRAM": carried.dram, "cycles": cycles}
        reported = {"hops": cost.hops, "DRAM": cost.dram, "cycles": cost.cycles}
        figures["busiest link"] = max(carried.links.values(), default=0)
        reported["busiest link"] = cost.busiest_link
        if cost is not self.root:
            figures["buffer"] = max(Counter(held).values(), default=0)
            reported["buffer"] = int(cost.buffer.max())
            figures["weights"], reported["weights"] = (
                max(weights.values(), default=0),
                int(cost.weights.max()),
            )
        for name, value in figures.items():
            if value != reported[name]:
                self.faults.append(f"{node}: {name} {reported[name]}, replayed {value}")
        return carried, cycles, inputs, held, weights

    def _buffers(
        self,
        cost: NodeCost,
        parts: list[tuple[Carried, int, Counter[Spot], Counter[Spot], Counter[Spot]]],
        top: bool,
    ) -> tuple[Counter[Spot], Counter[Spot], Counter[Spot]]:
        """Inputs, data and weights by tile of a cut."""
        node = cost.node
        inputs: Counter[Spot] = Counter()
        weights: Counter[Spot] = Counter()
        most: dict[Spot, int] = defaultdict(int)
        shift = top and node.kind == "T" and node.groups == 1  # type: ignore[union-attr]
        for part in parts:
            if not top:
                for where, size in part[2].items():
                    inputs[where] += size * node.groups
            if not shift:
                weights.update(part[4])
        spots = {spot(tile, self.height) for tile in range(self.form.engine.grid.tiles)}
        for where in spots:
            data = [part[3][where] + (part[4][where] if shift else 0) for part in parts]
            if node.kind == "S":  # type: ignore[union-attr]
                twice = sum(part[2][where] for part in parts) if node.groups > 1 else 0
                most[where] = sum(data) + twice
                continue
            both = [
                data[i - 1] + parts[i][2][where] + (parts[i][4][where] if shift else 0)
                for i in range(1, len(parts))
            ]
            round_again = data[-1] + (parts[0][2][where] if node.groups > 1 else 0)
            most[where] = max([*both, round_again])
        return inputs, Counter(most), weights


def _divided(carried: Carried, runs: int) -> Carried:
    """What one of several runs carries, rounded down."""
    links = Counter({link: count // runs for link, count in carried.links.items()})
    return Carried(links, carried.dram // runs, carried.hops // runs)
