"""Whether a fused mapping lies in the searched space: it is looked for among what the search lists.

Shared loops, homes and residents are compared with the lists that the search draws them from, and the
mapping of every turn with the space of its layer problem.  What is legal is the evaluator's question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tilewright.formulation.mapping.cost import CostModel
from tilewright.formulation.mapping.fused.evaluator import clipped
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import RETAINED, Branch, Leaf, SharedLoop, SharedStore
from tilewright.formulation.mapping.fused.turns import turns_of
from tilewright.formulation.mapping.fused.widths import at_widths
from tilewright.formulation.mapping.mapping import Mapping, Storage
from tilewright.formulation.mapping.problem import state_problem
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.trees.candidate import Skeleton
from tilewright.solvers.mapping.fused.trees.candidates import CandidateSpace
from tilewright.solvers.mapping.fused.trees.skeletons import NO_MAPPING, Cut, PlacedLoop, SkeletonSpace
from tilewright.solvers.mapping.fused.trees.turn_engine import TurnEngines, residences
from tilewright.workloads.mapping.operator import Role

Residents = dict[tuple[str, str], list[tuple[str, int, int]]]
"""Per layer and tensor from outside: levels, loops outside the store, and those outside its sequence."""


class _OutsideError(Exception):
    """A fused mapping does not lie in the space; the message says what is at fault."""


@dataclass(frozen=True)
class FusedSpace:
    """The space of fused mappings of any group.

    Parameters
    ----------
    engine, model : the machine, with what a cycle takes on it, and its cost model
    factors, storage : of the mappings of turns; imperfect factors are those of shared loops, too
    home_level : the only level that may be a home; ``None`` for any
    """

    engine: Engine
    model: CostModel
    factors: str | None
    storage: str | None
    home_level: str | None

    def outside(self, group: FusedGroup, tree: Branch) -> str | None:
        """Why a legal fused mapping lies outside; ``None`` for one that lies in the space."""
        group, engine = at_widths(group, self.engine)
        perfect = self.factors == "perfect"
        trees = SkeletonSpace(group, engine, self.home_level, perfect=perfect)
        candidates = CandidateSpace(group, TurnEngines(engine, perfect=perfect))
        try:
            residents: Residents = {}
            bare = _bare(trees, tree, residents)
            _find(trees, bare)
            skeleton = candidates.skeleton(bare)
            if not skeleton.makes_all(group.leaving):
                raise _OutsideError("a result that leaves is not made whole")
            _check_residents(candidates, bare, residents)
            self._check_turns(candidates, skeleton, residents, tree)
        except (_OutsideError, InputError) as error:
            return str(error)
        return None

    def _check_turns(
        self, space: CandidateSpace, skeleton: Skeleton, residents: Residents, tree: Branch
    ) -> None:
        """Look for every turn's mapping in the space of its layer problem.

        Parameters
        ----------
        space, skeleton, residents : where the turns' tensors start
        tree : has the mappings
        """
        energy, outermost = parse_objective("energy"), space.engine.levels[0].name
        for leaf in tree.leaves():
            operator = space.group.operator(leaf.layer)
            homes: dict[Role, int] = {}
            for tensor in operator.tensors:
                home = space.home_of(leaf.layer, tensor, skeleton.turns)
                if home is None:
                    own = residents.get((leaf.layer, tensor.name))
                    home = space.levels.index(own[0][0]) if own else 0
                if homes.setdefault(tensor.role, home) != home:
                    raise _OutsideError(f"{leaf.layer} has {tensor.role.value}s that start in two levels")
            started = tuple(sorted((role, home) for role, home in homes.items() if home))
            engine = space.engines.derived(started, space.whole)
            for kind in skeleton.kinds[leaf.layer]:
                problem = state_problem(
                    kind.operator, engine, energy, self.model, (), self.factors, self.storage
                )
                nodes = clipped(leaf.of(kind.sizes), kind.operator).nodes
                stored = {n.tensor for n in nodes if isinstance(n, Storage) and n.level == outermost}
                first = [Storage(t.name, outermost) for t in operator.tensors if t.name not in stored]
                reason = problem.outside(Mapping((*first, *nodes)))
                if reason is not None:
                    raise _OutsideError(f"{leaf.layer}: {reason}")


def _bare(trees: SkeletonSpace, tree: Branch, residents: Residents) -> Branch:
    """A tree as the search lists it: without leaves' mappings, residents, and loops of one trip.

    Parameters
    ----------
    trees, tree : the space, and a mapping
    residents : filled with those that stand in the tree
    """
    outermost = trees.engine.levels[0].name
    order = {name: number for number, name in enumerate(trees.group.names)}
    whole = {trees.group.ranks[n, d]: size for n, o in trees.group.layers for d, size in o.bounds.items()}

    def walk(branch: Branch, tile: dict[int, int], since: int) -> Branch:
        nodes: list[SharedLoop | SharedStore] = []
        depth, loops = since, trees.loops(tuple(branch.layers()))
        for node in branch.nodes:
            if isinstance(node, SharedStore):
                passed_on = bool(trees.group.read_by(node.layer))
                if node.level == outermost:
                    if depth:
                        raise _OutsideError(f"{node.name} is stored in {outermost} inside a loop")
                elif passed_on and node.tensor == trees.group.operator(node.layer).output.name:
                    nodes.append(node)
                else:
                    residents.setdefault((node.layer, node.tensor), []).append((node.level, depth, since))
                continue
            rank = trees.group.ranks[node.layer, node.dim]
            if node.tile >= tile[rank]:
                continue
            if rank not in loops:
                raise _OutsideError(f"no loop over {node.name} around {', '.join(branch.layers())} is shared")
            if node.tile not in trees.tiles(tile[rank]):
                kind = "the least for its number of trips" if not trees.divides else "a divisor"
                raise _OutsideError(f"tile {node.tile} of {node.name} is not {kind} of {tile[rank]}")
            nodes.append(SharedLoop(*loops[rank], node.tile))
            tile, depth = tile | {rank: node.tile}, depth + 1
        children = tuple(
            Leaf(child.layer, NO_MAPPING) if isinstance(child, Leaf) else walk(child, tile, depth)
            for child in branch.children
        )
        return Branch(_in_order(nodes, order), children)

    return walk(tree, whole, 0)


def _in_order(
    nodes: list[SharedLoop | SharedStore], order: dict[str, int]
) -> tuple[SharedLoop | SharedStore, ...]:
    """Stores between the same loops in the order of their layers."""
    sorted_nodes: list[SharedLoop | SharedStore] = []
    stores: list[SharedStore] = []
    for node in (*nodes, None):
        if isinstance(node, SharedStore):
            stores.append(node)
        else:
            sorted_nodes += sorted(stores, key=lambda store: order[store.layer])
            sorted_nodes += [] if node is None else [node]
            stores = []
    return tuple(sorted_nodes)


def _rebuilt(branch: Branch, nodes: Callable[[Branch], list[SharedLoop | SharedStore]]) -> Branch:
    """A tree with other nodes in every branch."""
    children = (child if isinstance(child, Leaf) else _rebuilt(child, nodes) for child in branch.children)
    return Branch(tuple(nodes(branch)), tuple(children))


def _loops_of(branch: Branch) -> list[SharedLoop]:
    return [node for node in branch.nodes if isinstance(node, SharedLoop)]


def _homes_of(branch: Branch) -> list[SharedStore]:
    """As they stand in shapes: in the order of their layers, without halos."""
    return [replace(node, halo=RETAINED) for node in branch.nodes if isinstance(node, SharedStore)]


def _retaining(branch: Branch) -> list[SharedLoop | SharedStore]:
    return [replace(n, halo=RETAINED) if isinstance(n, SharedStore) else n for n in branch.nodes]


def _at(branch: Branch, place: tuple[int, ...]) -> Branch:
    """The sequence to which some children lead."""
    for index in place:
        child = branch.children[index]
        assert isinstance(child, Branch)
        branch = child
    return branch


def _find(trees: SkeletonSpace, bare: Branch) -> None:
    """Look for a tree among all skeletons; raises ``_OutsideError`` for one that is none."""
    layers = tuple(trees.group.names)
    order = {name: number for number, name in enumerate(layers)}

    def shaped(branch: Branch) -> list[SharedLoop | SharedStore]:
        return [*sorted(_homes_of(branch), key=lambda store: order[store.layer])]

    shape = _rebuilt(bare, shaped)
    if shape not in trees.shapes(layers):
        raise _OutsideError("its sequences, or the levels of its homes, are not searched")
    tree = shape
    for cut in (*(Cut((), rank) for rank in trees.loops(layers)), *trees.cuts(shape)):
        loop = trees.loops(tuple(_at(tree, cut.place).layers()))[cut.rank]
        wanted = [node for node in _loops_of(_at(bare, cut.place)) if (node.layer, node.dim) == loop]
        for variant in trees.cut(tree, cut):
            own = [node for node in _loops_of(_at(variant, cut.place)) if (node.layer, node.dim) == loop]
            if own == wanted:
                tree = variant
                break
        else:
            raise _OutsideError(f"no such loop over {'.'.join(loop)} is searched")
    if not trees.is_whole(tree):
        raise _OutsideError("a sequence inside another one has no loop")
    if not _keeps_columns(trees, bare, ()):
        raise _OutsideError("rows of a softmax in parts come again for every column")
    ordered = _rebuilt(bare, _retaining)
    if ordered not in trees.orders(tree) or bare not in trees.halos(ordered):
        raise _OutsideError("a home stands at a place, or has a halo, that is not searched")


def _keeps_columns(trees: SkeletonSpace, branch: Branch, around: tuple[PlacedLoop, ...]) -> bool:
    """The same as of `SkeletonSpace`, for all branches of a tree."""
    below = frozenset(branch.layers())
    around = (*around, *((loop, below) for loop in _loops_of(branch)))
    inner = (child for child in branch.children if isinstance(child, Branch))
    return trees.keeps_columns(around) and all(_keeps_columns(trees, child, around) for child in inner)


def _check_residents(space: CandidateSpace, bare: Branch, residents: Residents) -> None:
    """Look for every resident among those that its tensor may have."""
    turns = turns_of(space.group, space.engine, bare)
    by_layer = {leaf.leaf.layer: leaf for leaf in turns.leaves}
    for (layer, operand), own in residents.items():
        name, leaf = f"{layer}.{operand}", by_layer[layer]
        tensor = space.group.operator(layer).tensor(operand)
        if len(own) > 1:
            raise _OutsideError(f"{name} is resident in {len(own)} levels")
        level, depth, since = own[0]
        _, scaled = space.parts(turns, leaf)
        places = [(at, of) for at, of, _ in space.resident_places(bare, leaf, tensor, scaled)]
        levels = [space.levels[index] for index in residences(space.engine, tensor.role)]
        if level not in levels:
            raise _OutsideError(f"{name} is resident in {level}, which is not searched")
        if (depth, since) not in places:
            raise _OutsideError(f"{name} is resident where no loop inside leaves it in place")
