"""A fused mapping in plain NumPy: its turns as loops, its shared stores as arrays, every layer's nest inside.

What every turn computes is the formulation's (`turns.py`), written as a formula of the turn where there is
one and as a table elsewhere.  A home holds what its readers need in a visit and nothing else; what it must
not lack is asserted by the code itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tilewright.formulation.mapping.fused.boxes import Windows, windows_of
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.placing import PlacedStore
from tilewright.formulation.mapping.fused.tree import RETAINED, Branch, Leaf, SharedLoop, SharedStore
from tilewright.formulation.mapping.fused.turns import LeafTurns, turns_of
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.code.mapping.numpy_loops import (
    INDENT,
    LoopNest,
    allocated,
    check_sums,
    difference,
    identifier,
)
from tilewright.report.code.mapping.turn_values import TurnValues
from tilewright.workloads.mapping.operator import Tensor

_HELPERS = '''\
def _next_tile(held, old, new, shape, kept):
    """A home's tile that begins at ``new``: zeros, and what the tile before, at ``old``, has of it."""
    tile = np.zeros(shape, held.dtype)
    if kept and 0 not in held.shape and 0 not in shape:
        low = [max(a, b) for a, b in zip(old, new)]
        high = [min(a + n, b + m) for a, n, b, m in zip(old, held.shape, new, shape)]
        if all(a < b for a, b in zip(low, high)):
            into = tuple(slice(a - b, c - b) for a, b, c in zip(low, new, high))
            tile[into] = held[tuple(slice(a - b, c - b) for a, b, c in zip(low, old, high))]
    return tile


def _window(held, begin, sizes, low, high):
    """Elements ``low`` to ``high`` of a result; ``held`` has those from ``begin`` on, padding is zero."""
    tile = np.zeros([b - a for a, b in zip(low, high)], held.dtype)
    first = [min(max(a, 0), n) for a, n in zip(low, sizes)]
    end = [min(max(b, 0), n) for b, n in zip(high, sizes)]
    part = held[tuple(slice(a - c, b - c) for a, b, c in zip(first, end, begin))]
    assert part.shape == tuple(max(b - a, 0) for a, b in zip(first, end)), "not all of it is here"
    if part.size:
        tile[tuple(slice(a - c, b - c) for a, b, c in zip(first, end, low))] = part
    return tile
'''


def fused_numpy_loops(
    group: FusedGroup, engine: Engine, tree: Branch, name: str = "group", title: str = ""
) -> str:
    """Python code of a function of the group's operands that returns the results that leave it, in order.

    Parameters
    ----------
    group, engine : the layers, sums of products, and the machine
    tree : a legal fused mapping
    name : of the function
    title : what the function's text begins with

    Raises
    ------
    InputError : for a layer that is no sum of products, a tree that makes no sense, or turns too irregular
        to be written down
    """
    for _, operator in group.layers:
        check_sums(operator)
    writer = _TreeWriter(group, engine, tree)
    body = list(writer.lines(identifier(name), title or name))
    return "\n".join(["import numpy as np\n\n", _HELPERS, *writer.values.tables, "", *body]) + "\n"


class _TreeWriter:
    """Writes a tree from its root to its leaves."""

    def __init__(self, group: FusedGroup, engine: Engine, tree: Branch) -> None:
        self._group = group
        self._tree = tree
        self._turns = turns_of(group, engine, tree)
        self._leaves = {leaf.leaf.layer: leaf for leaf in self._turns.leaves}
        self._arrays: dict[tuple[str, str], str] = {}
        self._held: dict[tuple[str, str], tuple[str, list[str]]] = {}
        self._stored: set[tuple[str, str]] = set()
        self.values = TurnValues()
        for layer, operator in group.layers:
            for tensor in operator.tensors:
                if group.reading(layer, tensor.name) is None:
                    array = self.values.unused(identifier(f"{layer}_{tensor.name}"))
                    self._arrays[layer, tensor.name] = array
                    self._held[layer, tensor.name] = (array, ["0"] * len(tensor.axes))

    def lines(self, name: str, title: str) -> Iterator[str]:
        """The whole function."""
        operators = self._group.operators
        results = {layer: operator.output for layer, operator in operators.items()}
        inputs = [key for key in self._arrays if key[1] != results[key[0]].name]
        arrays = [self._arrays[key] for key in inputs]
        shapes = {key: allocated(operators[key[0]].tensor(key[1])) for key in self._arrays}
        leaving = [layer for layer in operators if layer in self._group.leaving]
        yield f"\ndef {name}({', '.join(arrays)}):"
        given = ", ".join(f"{self._arrays[key]} {shapes[key]}" for key in inputs)
        made = ", ".join(self._arrays[layer, results[layer].name] for layer in leaving)
        yield f'{INDENT}"""{title}: {given} give {made}."""'
        for key, array in zip(inputs, arrays, strict=True):
            yield f"{INDENT}assert {array}.shape == {shapes[key]}, {array}.shape"
        yield f"{INDENT}kind = np.result_type({', '.join(arrays)}, np.int64)"
        for layer, tensor in results.items():
            home = self._turns.passings[layer].home if layer in self._turns.passings else None
            if home is None or layer in self._group.leaving:
                key = (layer, tensor.name)
                yield f"{INDENT}{self._arrays[key]} = np.zeros({shapes[key]}, kind)"
            if home is not None:
                tile, begin = self._home_names(home.store)
                empty = (0,) * len(tensor.axes)
                yield f"{INDENT}{tile}, {begin} = np.zeros({empty}, kind), {empty}"
        yield from self._branch(self._tree, 1, ())
        yield f"{INDENT}return {made}"

    def _branch(self, branch: Branch, depth: int, loops: tuple[str, ...]) -> Iterator[str]:
        after: list[tuple[int, str]] = []
        outside = dict(self._held)
        for node in branch.nodes:
            if isinstance(node, SharedLoop):
                leaf = self._leaves[branch.layers()[0]]
                turn = self.values.unused(identifier(f"{node.layer}_{node.dim}_turn"))
                text = (
                    f"for {turn} in range({leaf.trips[len(loops)]}):  # tiles of {node.tile} of {node.name}"
                )
                yield INDENT * depth + text
                loops = (*loops, turn)
                depth += 1
            else:
                store = self._store(node, depth, loops, branch)
                after += [(depth, text) for text in store.after]
                yield from (INDENT * depth + text for text in store.before)
        for child in branch.children:
            if isinstance(child, Leaf):
                yield from self._leaf(self._leaves[child.layer], depth, loops)
            else:
                yield from self._branch(child, depth, loops)
        yield from (INDENT * at + text for at, text in reversed(after))
        self._held = outside

    def _store(self, store: SharedStore, depth: int, loops: tuple[str, ...], branch: Branch) -> _StoreLines:
        operator = self._group.operator(store.layer)
        tensor = operator.tensor(store.tensor)
        passing = self._turns.passings.get(store.layer) if tensor.is_output else None
        where = next(
            placed
            for leaf in self._leaves.values()
            if leaf.leaf.layer in branch.layers()
            for placed in leaf.stores
            if placed.store == store
        )
        self._stored.add((store.layer, store.tensor))
        if where.level == 0:
            return _StoreLines([f"# {store.name} lives in {store.level}"], [])
        if passing is not None and passing.home is not None and passing.home.store == store:
            return self._home(where, passing.needed, passing.trips, loops)
        leaf = self._leaves[store.layer]
        spans = self.values.spans(windows_of(tensor, leaf.boxes), leaf.trips, loops)
        outer, offsets = self._held[store.layer, store.tensor]
        cut = _slices(spans, offsets)
        own = self.values.unused(f"{self._arrays[store.layer, store.tensor]}_{identifier(store.level)}")
        begins = [self.values.unused(f"{own}_{axis}") for axis in range(len(spans))]
        lines = [f"{own} = {outer}[{cut}].copy()"]
        lines += [f"{begin} = {low}" for begin, (low, _) in zip(begins, spans, strict=True)]
        self._held[store.layer, store.tensor] = (own, begins)
        back = [f"{outer}[{cut}] = {own}"] if tensor.is_output else []
        return _StoreLines(lines, back)

    def _home(
        self, where: PlacedStore, needed: Windows, trips: Sequence[int], loops: tuple[str, ...]
    ) -> _StoreLines:
        store = where.store
        tile, begin = self._home_names(store)
        spans = self.values.spans(needed, trips, loops)
        first = "".join(f"{low}, " for low, _ in spans)
        shape = "".join(f"{difference(high, low)}, " for low, high in spans)
        kept = "False"
        if store.halo == RETAINED:
            kept = self.values.stays(needed, trips, loops, where.since)
        new = f"{tile}, {begin} = _next_tile({tile}, {begin}, ({first}), ({shape}), {kept}), ({first})"
        self._held[store.layer, store.tensor] = (tile, [f"{begin}[{axis}]" for axis in range(len(spans))])
        lines = [f"# home of {store.name}: {store.level}", new]
        test = self.values.visited(needed, trips, loops)
        if test != "1":
            lines[1:] = [f"if {test}:", INDENT + new]
        return _StoreLines(lines, [])

    def _home_names(self, store: SharedStore) -> tuple[str, str]:
        array = self._arrays[store.layer, store.tensor]
        return f"{array}_home", f"{array}_home_at"

    def _leaf(self, leaf: LeafTurns, depth: int, loops: tuple[str, ...]) -> Iterator[str]:
        layer, boxes = leaf.leaf.layer, leaf.boxes
        operator = self._group.operator(layer)
        yield INDENT * depth + f"# {layer}"
        if not boxes.alive.all():
            alive = self.values.text(boxes.alive.astype(np.int64), leaf.trips, loops)
            yield INDENT * depth + f"if {alive}:"
            depth += 1
        edges: dict[str, tuple[str, str]] = {}
        for dim in operator.bounds:
            low = self.values.text(boxes.low[dim], leaf.trips, loops)
            high = self.values.text(boxes.low[dim] + boxes.size[dim], leaf.trips, loops)
            if not (low.isdigit() and high.isdigit()):
                first = self.values.unused(identifier(f"{layer}_{dim}"))
                end = self.values.unused(f"{first}_end")
                yield INDENT * depth + f"{first}, {end} = {low}, {high}"
                low, high = first, end
            edges[dim] = (low, high)
        spans = LoopNest(operator, leaf.leaf.mapping, edges=edges)
        held: dict[str, tuple[str, list[str]]] = {}
        names: dict[str, str] = {}
        for tensor in operator.inputs:
            names[tensor.name] = identifier(f"{layer}_{tensor.name}")
            key = (layer, tensor.name)
            if key in self._arrays:
                names[tensor.name] = self._arrays[key]
                if key in self._stored:
                    held[tensor.name] = self._held[key]
                continue
            text, held[tensor.name] = self._operand(layer, tensor, spans)
            yield INDENT * depth + text
        result = operator.output
        key = (layer, result.name)
        names[result.name] = self._arrays[key]
        array, offsets = self._held[key]
        cut = _slices([spans.range_of(axis) for axis in result.axes], offsets)
        if key in self._stored:
            held[result.name] = (array, offsets)
        passing = self._turns.passings.get(layer)
        if passing is not None and passing.home is not None:
            continued = self.values.text(boxes.continued.astype(np.int64), leaf.trips, loops)
            if continued == "0":
                yield INDENT * depth + f"{array}[{cut}] = 0"
            elif continued != "1":
                yield INDENT * depth + f"if not ({continued}):"
                yield INDENT * (depth + 1) + f"{array}[{cut}] = 0"
        mappings = [*((sizes, own) for sizes, own in leaf.leaf.sized), (None, leaf.leaf.mapping)]
        measured = ", ".join(f"{high} - {low}" for low, high in edges.values())
        for index, (sizes, mapping) in enumerate(mappings):
            inside = depth
            if len(mappings) > 1:
                test = f"({measured},) == {(*sizes,)}" if sizes is not None else ""
                word = "else" if sizes is None else ("elif" if index else "if")
                yield INDENT * depth + f"{word} {test}".rstrip() + ":"
                inside += 1
            yield from LoopNest(operator, mapping, names, inside, edges, held).lines()
        if passing is not None and passing.home is not None and layer in self._group.leaving:
            whole = _slices([spans.range_of(axis) for axis in result.axes], ["0"] * len(result.axes))
            yield INDENT * depth + f"{self._arrays[key]}[{whole}] = {array}[{cut}]"

    def _operand(self, layer: str, tensor: Tensor, spans: LoopNest) -> tuple[str, tuple[str, list[str]]]:
        """What a turn reads of another layer's result: the line that takes it, and where it begins."""
        reading = self._group.reading(layer, tensor.name)
        assert reading is not None
        result = self._group.operator(reading.producer).output
        held, begins = self._held[reading.producer, result.name]
        own = self.values.unused(identifier(f"{layer}_{tensor.name}"))
        ranges = [spans.range_of(axis) for axis in tensor.axes]
        low, high = [""] * len(ranges), [""] * len(ranges)
        for (first, end), place, offset in zip(ranges, reading.axes, reading.offsets, strict=True):
            less = f" - {offset}" if offset else ""
            low[place], high[place] = f"{first}{less}", f"{end}{less}"
        sizes = tuple(axis.size for axis in result.axes)
        listed = [f"({''.join(f'{text}, ' for text in texts)})" for texts in (begins, low, high)]
        text = f"{own} = _window({held}, {listed[0]}, {sizes}, {listed[1]}, {listed[2]})"
        if reading.axes != tuple(range(len(sizes))):
            text += f".transpose({reading.axes})"
        return text, (own, [f"({first})" if " " in first else first for first, _ in ranges])


def _slices(spans: Sequence[tuple[str, str]], begins: Sequence[str]) -> str:
    """A part of an array whose first element has the indices ``begins``."""
    parts = (
        f"{difference(low, begin)}:{difference(high, begin)}"
        for (low, high), begin in zip(spans, begins, strict=True)
    )
    return ", ".join(parts) or "()"


class _StoreLines:
    """What a store writes where it begins and where it ends."""

    def __init__(self, before: list[str], after: list[str]) -> None:
        self.before = before
        self.after = after
