"""AccelForge's fused mappings as trees of groups.

There a store keeps one tile at a time of the loops right behind it that move its tensor, of one of them only
where the tensor is read through a window; here a store has the tile of the loops after it, so it moves
behind those loops.  Einsums that pass results on through the outermost level, outside all loops, are groups
of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from tilewright.formulation.mapping.fused.group import FusedGroup, group_of
from tilewright.formulation.mapping.fused.tree import Branch, Leaf, SharedLoop, SharedNode, SharedStore
from tilewright.formulation.mapping.mapping import Mapping, Node, Spatial, Storage, Temporal
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.exchange.mapping.accelforge_lines import PeerBranch, PeerLoop, PeerStore, parse_lines
from tilewright.workloads.network import Network

PeerNodes = list[PeerLoop | PeerStore]


def read_fused(
    lines: Sequence[str], network: Network, engine: Engine, where: str = "mapping"
) -> list[tuple[FusedGroup, Branch]]:
    """The groups of a fused mapping, each with its tree.

    Parameters
    ----------
    lines : the mapping's nodes
    network, engine : what it maps, and on which machine
    where : what errors call the mapping

    Raises
    ------
    InputError : naming the line that is malformed, or that has no counterpart here
    """
    variables = dict.fromkeys(dim for layer in network.layers for dim in layer.operator.bounds)
    arrays = [axis.name for level in engine.levels if level.fanout is not None for axis in level.fanout.axes]
    branch = parse_lines(lines, [*variables], arrays, where)
    names = [layer.name for layer in network.layers]
    if sorted(branch.einsums()) != sorted(names):
        raise InputError(where, None, f"computes {branch.einsums()}, expected each of {names} once")
    trees: list[tuple[FusedGroup, Branch]] = []
    for part in _groups(branch, network, engine.levels[0].name):
        group = group_of(network, part.einsums())
        trees.append((group, _Translation(group, engine, where).tree(part)))
    return trees


def _groups(branch: PeerBranch, network: Network, outermost: str) -> Iterator[PeerBranch]:
    """Parts that pass nothing on but through the outermost level."""
    if branch.einsum is not None or any(isinstance(node, PeerLoop) for node in branch.nodes):
        yield branch
        return
    on_chip = {
        tensor
        for node in branch.nodes
        if isinstance(node, PeerStore) and node.level != outermost
        for tensor in node.tensors
    }
    parts: list[list[PeerBranch]] = []
    for child in branch.children:
        read = {tensor.name for name in child.einsums() for tensor in network.layer(name).operator.inputs}
        joined = [child]
        for part in list(parts):
            made = {network.layer(name).operator.output.name for own in part for name in own.einsums()}
            if made & read & on_chip:
                joined = [*part, *joined]
                parts.remove(part)
        parts.append(joined)
    for part in parts:
        einsums = [name for child in part for name in child.einsums()]
        used = {tensor.name for name in einsums for tensor in network.layer(name).operator.tensors}
        nodes = tuple(_only(node, used) for node in branch.nodes)
        if len(part) == 1:
            yield from _groups(replace(part[0], nodes=(*nodes, *part[0].nodes)), network, outermost)
        else:
            yield PeerBranch(nodes, None, tuple(part))


def _only(node: PeerLoop | PeerStore, used: Collection[str]) -> PeerLoop | PeerStore:
    """A store without the tensors that nobody uses."""
    if isinstance(node, PeerLoop):
        return node
    return replace(node, tensors=tuple(tensor for tensor in node.tensors if tensor in used))


@dataclass(frozen=True)
class _Translation:
    group: FusedGroup
    engine: Engine
    where: str

    def tree(self, branch: PeerBranch) -> Branch:
        """The tree, with the stores of residents in the outermost level."""
        if branch.einsum is not None:
            leaf = self._leaf(branch.einsum, branch.nodes, set(), set())
            return Branch((), (leaf,))
        tree = self._branch(branch, set(), set())
        outermost = self.engine.levels[0].name
        made = {
            self.group.operator(name).output.name for name in self.group.names if self.group.read_by(name)
        }
        stores = [
            SharedStore(store.layer, store.tensor, outermost)
            for store in dict.fromkeys(_stores(tree))
            if store.tensor not in made
        ]
        stores += [
            SharedStore(name, self.group.operator(name).output.name, outermost)
            for name in self.group.names
            if name in self.group.leaving and self.group.read_by(name)
        ]
        return replace(tree, nodes=(*dict.fromkeys(stores), *tree.nodes))

    def _branch(self, branch: PeerBranch, outside: set[str], shared: set[str]) -> Branch:
        """A branch, with the tensors stored around it in the outermost level and on chip."""
        outside, shared = set(outside), set(shared)
        below = branch.einsums()
        nodes: list[SharedNode] = []
        for node in self._lowered(branch.nodes):
            if isinstance(node, PeerLoop):
                nodes.append(self._loop(node, below))
                continue
            for tensor in node.tensors:
                if self._level(node) == 0:
                    outside.add(tensor)
                else:
                    shared.add(tensor)
                    nodes += [SharedStore(layer, tensor, node.level) for layer in self._owners(tensor, below)]
        children = tuple(
            self._leaf(child.einsum, child.nodes, outside, shared)
            if child.einsum is not None
            else self._branch(child, outside, shared)
            for child in branch.children
        )
        return Branch(tuple(nodes), children)

    def _loop(self, loop: PeerLoop, below: Sequence[str]) -> SharedLoop:
        if loop.array is not None:
            raise self._error(loop, "an array around several einsums has no counterpart here")
        inside = set(below)
        layers = [name for name in below if loop.variable in self.group.operator(name).bounds]
        last = [n for n in layers if not any(r.reader in inside for r in self.group.read_by(n))]
        if not layers:
            raise self._error(loop, f"{loop.variable} is a loop of none of {', '.join(below)}")
        return SharedLoop((last or layers)[0], loop.variable, loop.tile)

    def _owners(self, tensor: str, below: Sequence[str]) -> list[str]:
        """Whose tensor it is: the layer's that makes it, or those that read it from outside."""
        makers = [name for name in self.group.names if self.group.operator(name).output.name == tensor]
        return makers or [
            name for name in below if tensor in {own.name for own in self.group.operator(name).tensors}
        ]

    def _leaf(
        self, einsum: str, nodes: Sequence[PeerLoop | PeerStore], outside: set[str], shared: set[str]
    ) -> Leaf:
        operator = self.group.operator(einsum)
        own = {tensor.name for tensor in operator.tensors}
        rows: list[Node] = [
            Storage(tensor, self.engine.levels[0].name) for tensor in sorted((outside - shared) & own)
        ]
        for node in self._lowered(nodes):
            if isinstance(node, PeerStore):
                self._level(node)
                rows += [Storage(tensor, node.level) for tensor in node.tensors if tensor in own]
            elif node.variable not in operator.bounds:
                raise self._error(node, f"{node.variable} is no loop of {einsum}")
            elif node.array is not None:
                rows.append(Spatial(node.variable, node.tile, node.array))
            else:
                rows.append(Temporal(node.variable, node.tile))
        return Leaf(einsum, Mapping(tuple(rows)))

    def _lowered(self, nodes: Sequence[PeerLoop | PeerStore]) -> PeerNodes:
        """Stores behind the loops that move their tensors, one by one, the innermost first."""
        single: PeerNodes = []
        for node in nodes:
            single += (
                [node] if isinstance(node, PeerLoop) else [replace(node, tensors=(t,)) for t in node.tensors]
            )
        for place in reversed(range(len(single))):
            store, end, windows = single[place], place, 0
            if isinstance(store, PeerLoop) or self._level(store) == 0:
                continue
            for index in range(place + 1, len(single)):
                loop = single[index]
                if isinstance(loop, PeerStore):
                    if loop.tensors == store.tensors:
                        break
                    continue
                moved = self._moves(store.tensors[0], loop.variable)
                windows += moved is False
                if loop.array is not None or moved is None or windows > 1:
                    break
                end = index
            single.insert(end, single.pop(place))
        return single

    def _moves(self, tensor: str, variable: str) -> bool | None:
        """Whether a loop moves a tensor element by element (``True``), through a window, or not at all."""
        terms = [
            len(axis.terms)
            for operator in self.group.operators.values()
            for own in operator.tensors
            if own.name == tensor
            for axis in own.axes
            if any(term.dim == variable for term in axis.terms)
        ]
        return None if not terms else max(terms) == 1

    def _level(self, store: PeerStore) -> int:
        names = [level.name for level in self.engine.levels]
        if store.level not in names:
            raise self._error(store, unknown_name(store.level, names))
        return names.index(store.level)

    def _error(self, node: PeerLoop | PeerStore, message: str) -> InputError:
        return InputError(f"{self.where}:{node.line}", None, message)


def _stores(branch: Branch) -> Iterator[SharedStore]:
    yield from (node for node in branch.nodes if isinstance(node, SharedStore))
    for child in branch.children:
        if isinstance(child, Branch):
            yield from _stores(child)
