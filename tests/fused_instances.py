"""Random small fused mappings: groups of two to four layers, machines, and legal trees of all kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

from tilewright.formulation.mapping.fused.evaluator import shapes_of
from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.formulation.mapping.fused.tree import Branch, Leaf, SharedLoop, SharedNode, SharedStore
from tilewright.formulation.mapping.fused.turns import LeafTurns, turns_of
from tilewright.formulation.mapping.mapping import Mapping, Node, Spatial, Storage, Temporal
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.hardware.mapping.timing import Timing
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.mapping.operators import conv2d, depthwise_conv2d, elementwise, gemm, matmul, pool2d


@dataclass(frozen=True)
class FusedInstance:
    """A group, a machine and a tree."""

    group: FusedGroup
    engine: Engine
    tree: Branch


def random_instance(rng: Random) -> FusedInstance:
    """Drawn again until the tree fits the group."""
    while True:
        group, engine = random_group(rng), random_engine(rng)
        for _ in range(20):
            try:
                return FusedInstance(group, engine, random_tree(rng, group, engine))
            except InputError:
                continue


def random_softmax(rng: Random) -> FusedInstance:
    """The same where an operand is read through a softmax whose rows the tree cuts."""
    while True:
        group, engine = online(rng, random_group(rng)), random_engine(rng)
        for _ in range(20 if group.online else 0):
            try:
                instance = FusedInstance(group, engine, random_tree(rng, group, engine))
            except InputError:
                continue
            if turns_of(group, engine, instance.tree).softmaxes:
                return instance


def online(rng: Random, group: FusedGroup) -> FusedGroup:
    """A group with a softmax along some axis of an operand, of the reading or of a layer of its own."""
    reading = rng.choice(group.readings)
    row = rng.randrange(len(reading.axes))
    layers, softmaxes = dict(group.layers), frozenset[str]()
    rows = frozenset({(reading.producer, reading.axes[row])})
    if layers[reading.producer].kind == "elementwise" or rng.random() < 0.3:
        softmaxes = frozenset({reading.producer})
        return replace(group, rows=rows, softmaxes=softmaxes, online_softmax=True)
    readings = (replace(r, rows=(row,)) if r == reading else r for r in group.readings)
    return replace(group, readings=tuple(readings), online_softmax=True)


def _link(reader: str, operand: str, producer: str, axes: Sequence[int], pad: Sequence[int] = ()) -> Reading:
    return Reading(reader, operand, producer, tuple(axes), tuple(pad) or (0,) * len(axes))


def random_group(rng: Random) -> FusedGroup:
    """Products in a chain, windows with strides and padding, batches, transposed results, residual sums."""
    size = lambda: rng.choice([1, 2, 2, 3, 3, 4, 5])  # noqa: E731
    kind = rng.choice(
        ["pair", *["chain"] * 3, *["windows"] * 2, *["inverted"] * 3, "residual", "transposed", "batched"]
    )
    if kind == "pair":
        m, k, n, p = size(), size(), size(), size()
        layers = [("a", gemm(m=m, n=n, k=k)), ("b", gemm(m=m, n=p, k=n))]
        readings = [_link("b", "A", "a", (0, 1))]
    elif kind == "chain":
        m, k, n, p, q = size(), size(), size(), size(), size()
        layers = [("a", gemm(m=m, n=n, k=k)), ("b", gemm(m=m, n=p, k=n)), ("c", gemm(m=m, n=q, k=p))]
        readings = [_link("b", "A", "a", (0, 1)), _link("c", "A", "b", (0, 1))]
        if rng.random() < 0.3 and n == q:
            layers.append(("d", elementwise(shape=(m, q))))
            readings += [_link("d", "I0", "a", (0, 1)), _link("d", "I1", "c", (0, 1))]
    elif kind == "windows":
        layers, readings = _windows(rng, 2 + (rng.random() < 0.6))
    elif kind == "inverted":
        p, q, c, h = rng.randint(2, 5), rng.choice([1, 2, 3]), rng.choice([1, 2]), rng.choice([2, 3])
        layers = [
            ("a", conv2d(k=h, c=c, p=p, q=q, r=1, s=1)),
            ("b", depthwise_conv2d(c=h, p=p, q=q, r=3, s=1, pad=(1, 0))),
            ("c", conv2d(k=c, c=h, p=p, q=q, r=1, s=1)),
        ]
        readings = [_link("b", "I", "a", (0, 1, 2, 3), (0, 0, 1, 0)), _link("c", "I", "b", (0, 1, 2, 3))]
    elif kind == "residual":
        p, q, c = rng.randint(2, 4), rng.choice([1, 2]), rng.choice([1, 2])
        wide = rng.choice([1, 3])
        layers = [
            ("a", conv2d(k=c, c=rng.choice([1, 2]), p=p, q=q, r=1, s=1)),
            ("b", conv2d(k=c, c=c, p=p, q=q, r=wide, s=1, pad=(wide // 2, 0))),
            ("c", elementwise(shape=(1, c, p, q))),
        ]
        readings = [
            _link("b", "I", "a", (0, 1, 2, 3), (0, 0, wide // 2, 0)),
            _link("c", "I0", "a", (0, 1, 2, 3)),
            _link("c", "I1", "b", (0, 1, 2, 3)),
        ]
    elif kind == "transposed":
        bounds = {"i": size(), "j": size(), "k": size(), "l": size()}
        first = nest("T[i,j] += X[i,k] * W[k,j]", bounds={d: bounds[d] for d in "ijk"})
        second = nest("Y[l,i] += W[l,j] * T[j,i]", bounds={d: bounds[d] for d in "ijl"})
        layers, readings = [("a", first), ("b", second)], [_link("b", "T", "a", (1, 0))]
    else:
        b, m, k, n, p = rng.choice([2, 3]), size(), size(), size(), size()
        layers = [("a", matmul(m=m, n=n, k=k, batch=b)), ("b", matmul(m=m, n=p, k=n, batch=b))]
        readings = [_link("b", "A", "a", (0, 1, 2))]
    sinks = {name for name, _ in layers} - {reading.producer for reading in readings}
    more = {name for name, _ in layers if rng.random() < 0.15}
    return FusedGroup(tuple(layers), tuple(readings), frozenset(sinks | more))


def _windows(rng: Random, count: int) -> tuple[list[tuple[str, Operator]], list[Reading]]:
    """Convolutions and pooling over rows, the last one first."""
    layers: list[tuple[str, Operator]] = []
    readings: list[Reading] = []
    rows, channels, columns = rng.randint(1, 4), rng.choice([1, 2]), rng.choice([1, 1, 2])
    for index in reversed(range(count)):
        name = "abc"[index]
        kernel, stride, dilation = rng.choice([1, 2, 3]), rng.choice([1, 1, 2]), rng.choice([1, 1, 1, 2])
        pad = rng.choice([0, 0, 1, 2]) if index else 0
        span = (kernel - 1) * dilation + 1
        padded = (rows - 1) * stride + span
        pad = min(pad, (padded - 1) // 2, span - 1)
        own = rng.choice([1, 2, 3])
        if rng.random() < 0.2 and dilation == 1:
            own = channels
            operator = pool2d(c=own, p=rows, q=columns, r=kernel, s=1, stride=(stride, 1), pad=(pad, 0))
        else:
            operator = conv2d(
                k=channels,
                c=own,
                p=rows,
                q=columns,
                r=kernel,
                s=1,
                stride=(stride, 1),
                dilation=(dilation, 1),
                pad=(pad, 0),
            )
        layers.insert(0, (name, operator))
        if index:
            readings.append(_link(name, "I", "abc"[index - 1], (0, 1, 2, 3), (0, 0, pad, 0)))
        rows, channels = padded - 2 * pad, own
    return layers, readings


def random_engine(rng: Random) -> Engine:
    """Two to four levels, one array at most; rooms often too small."""
    count = rng.choice([2, 3, 3, 4])
    array = rng.choice([None, *range(1, count - 1)]) if count > 2 else None
    number = lambda: Fraction(rng.randint(0, 40), rng.choice([1, 2, 5]))  # noqa: E731
    rate = lambda: rng.choice([None, None, Fraction(rng.randint(1, 6), rng.choice([1, 2]))])  # noqa: E731
    levels: list[MemoryLevel] = []
    for index in range(count):
        keeps = frozenset(Role)
        partitions: dict[Role, int] = {}
        if index > 1 and rng.random() < 0.3:
            keeps = frozenset(rng.sample(sorted(Role), rng.choice([1, 2])))
        bypass = frozenset(role for role in sorted(keeps) if index and rng.random() < 0.25)
        if index > 1 and rng.random() < 0.2:
            partitions = {rng.choice(sorted(keeps)): rng.choice([4, 16])}
        capacity = None if not index else rng.choice([6, 12, 24, 40, 80, 1000])
        fanout = None
        if index == array:
            axes = tuple(ArrayAxis(name, rng.choice([2, 3, 4])) for name in rng.choice(["x", "xy"]))
            fanout = Fanout(axes, number(), rng.random() < 0.7, rng.random() < 0.7)
        levels.append(
            MemoryLevel(
                f"L{index}",
                capacity,
                number(),
                number(),
                partitions,
                rng.choice([None, None, 3]) if index else None,
                rate(),
                rate(),
                double_buffered=index > 0 and rng.random() < 0.5,
                keeps=keeps,
                may_bypass=bypass,
                sliding_window=rng.random() < 0.4,
                timing=Timing(drained=rng.random() < 0.3),
                fanout=fanout,
            )
        )
    return Engine("random", "hierarchy", 16, number(), Fraction(500), tuple(levels))


def random_tree(rng: Random, group: FusedGroup, engine: Engine, shared: bool = True) -> Branch:
    """A tree whose leaves fit what their turns compute; raises ``InputError`` where it makes no sense.

    Parameters
    ----------
    shared : whether there are shared loops and stores, and sequences within each other
    """
    draft = _TreeDraft(rng, group, engine)
    bare = Branch((), tuple(Leaf(name, Mapping(())) for name in group.names))
    bare = draft.branch(group.names, root=True) if shared else bare
    turns = turns_of(group, engine, bare)
    leaves: dict[str, Leaf] = {}
    for leaf in turns.leaves:
        leaves[leaf.leaf.layer] = _mapped(rng, group, engine, leaf)
    return _with_leaves(bare, leaves)


def random_sized(rng: Random) -> FusedInstance:
    """A mapping some of whose leaves have mappings of their own for turns of some sizes."""
    while True:
        instance = random_instance(rng)
        group, engine = instance.group, instance.engine
        leaves: dict[str, Leaf] = {}
        for leaf in turns_of(group, engine, instance.tree).leaves:
            leaves[leaf.leaf.layer] = _mapped(rng, group, engine, leaf, by_size=True)
        if any(leaf.sized for leaf in leaves.values()):
            return replace(instance, tree=_with_leaves(instance.tree, leaves))


def _mapped(
    rng: Random, group: FusedGroup, engine: Engine, leaf: LeafTurns, *, by_size: bool = False
) -> Leaf:
    """A layer with a random mapping, and with others for some sizes of its turns where these differ."""
    operator = group.operator(leaf.leaf.layer)
    every = sorted({sizes for sizes, _ in shapes_of(operator, leaf)})
    apart = rng.sample(every, rng.randint(1, len(every))) if by_size and len(every) > 1 else []
    rest = [sizes for sizes in every if sizes not in apart] or [(1,) * len(operator.bounds)]
    most = tuple(map(max, zip(*rest, strict=True)))
    mapping = _leaf_mapping(rng, group, engine, leaf, most)
    sized = tuple((sizes, _leaf_mapping(rng, group, engine, leaf, sizes)) for sizes in apart)
    return Leaf(leaf.leaf.layer, mapping, sized)


def _with_leaves(branch: Branch, leaves: dict[str, Leaf]) -> Branch:
    return Branch(
        branch.nodes,
        tuple(
            leaves[child.layer] if isinstance(child, Leaf) else _with_leaves(child, leaves)
            for child in branch.children
        ),
    )


class _TreeDraft:
    """Draws loops, stores and sequences; homes and residents are placed once."""

    def __init__(self, rng: Random, group: FusedGroup, engine: Engine) -> None:
        self.rng, self.group, self.engine = rng, group, engine
        array = next((i for i, level in enumerate(engine.levels) if level.fanout), len(engine.levels) - 1)
        self.shared_levels = range(1, array + 1)
        self.homed: set[str] = set()
        self.tile = dict.fromkeys(group.ranks.values(), 0)
        for (name, dim), rank in group.ranks.items():
            self.tile[rank] = max(self.tile[rank], group.operator(name).bounds[dim])

    def branch(self, layers: list[str], root: bool = False) -> Branch:
        rng = self.rng
        nodes: list[SharedNode] = []
        for _ in range(rng.choice([0, 1, 1, 2, 2, 3])):
            loops = [loop for loop in self.loops(layers) if self.tile[self.group.ranks[loop]] > 1]
            if loops:
                layer, dim = rng.choice(loops)
                rank = self.group.ranks[layer, dim]
                self.tile[rank] = rng.randint(1, max(1, self.tile[rank] - 1))
                nodes.append(SharedLoop(layer, dim, self.tile[rank]))
        for store in self.stores(layers):
            nodes.insert(rng.randint(0, len(nodes)), store)
        if root:
            nodes = [*self.outer_stores(nodes), *nodes]
        children = self.split(layers)
        return Branch(
            tuple(nodes),
            tuple(
                Leaf(child[0], Mapping(())) if len(child) == 1 else self.branch(child) for child in children
            ),
        )

    def loops(self, layers: list[str]) -> list[tuple[str, str]]:
        """Loops that cut something and repeat no layer whose result leaves this branch."""
        found = []
        sinks = [n for n in layers if not any(r.reader in layers for r in self.group.read_by(n))]
        for name in layers:
            for dim in self.group.operator(name).bounds:
                rank = self.group.ranks[name, dim]
                own = {n: d for (n, d), other in self.group.ranks.items() if other == rank and n in layers}
                if name in sinks and all(sink in own for sink in sinks):
                    sums = [n for n, d in own.items() if d in self.group.operator(n).reduction_dims]
                    if set(sums) <= set(sinks) and dim not in self.group.offsets_of_windows(name):
                        found.append((name, dim))
        return found

    def stores(self, layers: list[str]) -> list[SharedStore]:
        chosen: list[SharedStore] = []
        for name in layers:
            output = self.group.operator(name).output.name
            readers = [reading.reader for reading in self.group.read_by(name)]
            free = readers and f"{name}.{output}" not in self.homed and set(readers) <= set(layers)
            if free and self.rng.random() < 0.9 and self.shared_levels:
                self.homed.add(f"{name}.{output}")
                level = f"L{self.rng.choice(list(self.shared_levels))}"
                chosen.append(SharedStore(name, output, level, self.rng.choice(["retained", "recomputed"])))
            for tensor in self.group.operator(name).tensors:
                key = f"{name}.{tensor.name}"
                outside = self.group.reading(name, tensor.name) is None and not (tensor.is_output and readers)
                if outside and key not in self.homed and self.shared_levels and self.rng.random() < 0.25:
                    self.homed.add(key)
                    chosen.append(
                        SharedStore(name, tensor.name, f"L{self.rng.choice(list(self.shared_levels))}")
                    )
        return chosen

    def outer_stores(self, nodes: list[SharedNode]) -> list[SharedStore]:
        """The outermost level's, of results that leave and of whatever may get a shared store."""
        level = self.engine.levels[0].name
        stores = []
        for name, operator in self.group.layers:
            for tensor in operator.tensors:
                passed_on = tensor.is_output and bool(self.group.read_by(name))
                leaves = name in self.group.leaving and self.rng.random() < 0.9
                if self.group.reading(name, tensor.name) is None and (not passed_on or leaves):
                    stores.append(SharedStore(name, tensor.name, level))
        return stores

    def split(self, layers: list[str]) -> list[list[str]]:
        """Into two parts or more, which follow each other."""
        cuts = [i for i in range(1, len(layers)) if self.rng.random() < 0.6]
        cuts = cuts or [self.rng.randrange(1, len(layers))]
        return [layers[a:b] for a, b in zip([0, *cuts], [*cuts, len(layers)], strict=True)]


def _leaf_mapping(
    rng: Random, group: FusedGroup, engine: Engine, leaf: LeafTurns, sizes: tuple[int, ...]
) -> Mapping:
    """Random loops and stores below what shared stores hold, for turns of some sizes."""
    layer, stored = leaf.leaf.layer, {placed.store.name: placed.level for placed in leaf.stores}
    operator = group.operator(layer)
    start: dict[str, int] = {}
    for tensor in operator.tensors:
        reading = group.reading(layer, tensor.name)
        key = f"{layer}.{tensor.name}"
        if reading is not None:
            key = f"{reading.producer}.{group.operator(reading.producer).output.name}"
        start[tensor.name] = stored.get(key, -1)
    tile, nodes = dict(zip(operator.bounds, sizes, strict=True)), []
    for index, level in enumerate(engine.levels):
        last = index == len(engine.levels) - 1
        temporal = [dim for dim in tile if tile[dim] > 1 and (last or rng.random() < 0.4)]
        rng.shuffle(temporal)
        loops: list[Node] = []
        for dim in temporal:
            tile[dim] = 1 if last else rng.randint(1, tile[dim])
            loops.append(Temporal(dim, tile[dim]))
        for tensor in operator.tensors:
            if index > start[tensor.name] and tensor.role in level.keeps:
                if tensor.role in level.may_bypass and rng.random() < 0.5:
                    continue
                loops.insert(rng.randint(0, len(loops)) if index else 0, Storage(tensor.name, level.name))
        nodes += loops
        if level.fanout is not None:
            for axis in level.fanout.axes:
                dims = [dim for dim in tile if tile[dim] > 1]
                if dims and rng.random() < 0.7:
                    dim = rng.choice(dims)
                    tile[dim] = -(-tile[dim] // rng.randint(2, axis.size))
                    nodes.append(Spatial(dim, tile[dim], axis.name))
    return Mapping(tuple(nodes))
