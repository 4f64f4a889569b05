"""Candidates of the fused search: a skeleton with residents, its shared traffic, and what its turns are.

For a fixed candidate turns share nothing but room, so its cost is the traffic of shared stores, counted
exactly, and the least energy of every layer's turns, each an ordinary layer on an engine with less room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

from tilewright.formulation.mapping.fused.boxes import visits_of, windows_of
from tilewright.formulation.mapping.fused.evaluator import shapes_of, sized
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.occupancy import bits_of_tile
from tilewright.formulation.mapping.fused.running_rows import rows_moved, scaling_of, sums_scaled
from tilewright.formulation.mapping.fused.shared_traffic import (
    elements_copied,
    elements_moved,
    movement_energy,
)
from tilewright.formulation.mapping.fused.tree import Branch, Leaf, SharedLoop, SharedNode, SharedStore
from tilewright.formulation.mapping.fused.turns import LeafTurns, Turns, turns_of
from tilewright.solvers.mapping.fused.trees.candidate import Candidate, Placement, Skeleton, TurnKind
from tilewright.solvers.mapping.fused.trees.turn_engine import (
    Homes,
    Place,
    Rooms,
    TurnEngines,
    left_of,
    places_of,
    residences,
    shared_levels,
)
from tilewright.workloads.mapping.operator import Operator, Role, Tensor


class CandidateSpace:
    """Skeletons and candidates of a group on a machine."""

    def __init__(self, group: FusedGroup, engines: TurnEngines) -> None:
        self.group, self.engines = group, engines
        self.engine = engine = engines.engine
        self.levels = [level.name for level in engine.levels]
        self.places: tuple[Place, ...] = places_of(engine, shared_levels(engine))
        self.whole = self.engines.whole_rooms()
        self._known: dict[object, Fraction] = {}
        self._sized: dict[object, Operator] = {}
        self._kinds: dict[object, tuple[TurnKind, ...]] = {}
        self._options: dict[object, tuple[Placement, ...]] = {}

    def skeleton(self, tree: Branch) -> Skeleton:
        """A tree's turns, and what they cost at least."""
        turns = turns_of(self.group, self.engine, tree)
        kinds: dict[str, tuple[TurnKind, ...]] = {}
        options: dict[tuple[str, str], tuple[Placement, ...]] = {}
        fixed = parts = Fraction(0)
        for leaf in turns.leaves:
            layer = leaf.leaf.layer
            operator = self.group.operator(layer)
            # Skeletons that differ in places of homes alone mostly have the same turns.
            key = layer, leaf.trips, tuple(_places(tree, layer)), leaf.boxes.key
            if key not in self._kinds:
                self._kinds[key] = self._kinds_of(layer, leaf)
            kinds[layer] = self._kinds[key]
            for kind in kinds[layer]:
                fixed += kind.number * self.engines.operations(kind.operator)
            rows, scaled = self.parts(turns, leaf)
            parts += rows
            for tensor in operator.tensors:
                home = self.home_of(layer, tensor, turns)
                if home is None:
                    own = *key, tensor.name
                    if own not in self._options:
                        ways = self._placements(tree, leaf, tensor, (kinds[layer], scaled))
                        self._options[own] = self._best(ways)
                    options[layer, tensor.name] = self._options[own]
                else:
                    fixed += self._least(layer, kinds[layer], tensor, home)
                    parts += self._scaled(tensor, home, scaled)
            if layer in self.group.leaving and layer in turns.passings:
                parts += self.copy_energy(leaf, turns)
        left = {leaf.leaf.layer: self._left_by_homes(turns, leaf) for leaf in turns.leaves}
        return Skeleton(tree, turns.outline(), kinds, options, fixed + parts, parts, left)

    def parts(self, turns: Turns, leaf: LeafTurns) -> tuple[Fraction, int]:
        """Of a reader of a softmax in parts, pJ of its rows, and its sums that are scaled anew."""
        output = self.group.operator(leaf.leaf.layer).output
        for (reader, _), running in turns.softmaxes.items():
            if reader == leaf.leaf.layer:
                scaling = scaling_of(output, leaf.boxes, running)
                return rows_moved(self.engine, "", running.level, scaling).energy, scaling.scaled
        return Fraction(0), 0

    def _scaled(self, tensor: Tensor, level: int, scaled: int) -> Fraction:
        """pJ of scaling a result's sums in a level where turns find them; nothing for operands."""
        if not scaled or not tensor.is_output:
            return Fraction(0)
        return sums_scaled(self.engine, "", level, scaled).energy

    def _kinds_of(self, layer: str, leaf: LeafTurns) -> tuple[TurnKind, ...]:
        """A leaf's turns by size; those that add to the same sums are one run of several turns."""
        counts = shapes_of(self.group.operator(layer), leaf)
        kinds: list[TurnKind] = []
        for sizes in dict.fromkeys(sizes for sizes, _ in counts):
            first, more = counts[sizes, False], counts[sizes, True]
            if first and more % first == 0:
                kinds.append(TurnKind(sizes, self._turn(layer, sizes, 1 + more // first, False), first))
                continue
            if first:
                kinds.append(TurnKind(sizes, self._turn(layer, sizes, 1, False), first))
            kinds.append(TurnKind(sizes, self._turn(layer, sizes, 1, True), more))
        return tuple(kinds)

    def _turn(self, layer: str, sizes: tuple[int, ...], turns: int, continued: bool) -> Operator:
        """What some turns compute that add to the same sums.

        Parameters
        ----------
        layer, sizes : whose, and iterations per dimension
        turns : how many
        continued : whether there are sums already
        """
        key = layer, sizes, turns, continued
        if key not in self._sized:
            operator = self.group.operator(layer)
            own = sized(operator, dict(zip(operator.bounds, sizes, strict=True)))
            self._sized[key] = replace(own, turns=turns, continued=continued)
        return self._sized[key]

    def _best(self, placements: Iterator[Placement]) -> tuple[Placement, ...]:
        """Those that no other one replaces, the one with the least bound first."""
        best: list[Placement] = []
        for placement in placements:
            if not any(other.replaces(placement) for other in best):
                best = [*(other for other in best if not placement.replaces(other)), placement]
        return tuple(sorted(best, key=lambda placement: placement.least))

    def copy_energy(self, leaf: LeafTurns, turns: Turns) -> Fraction:
        """pJ of writing a whole result from its home to the outermost level."""
        operator = self.group.operator(leaf.leaf.layer)
        home = turns.passings[leaf.leaf.layer].home
        if home is None:
            return Fraction(0)
        copied = elements_copied(self.engine, operator, leaf.boxes, (0, home.level))
        return movement_energy(self.engine, operator.output, (0, home.level), copied)

    def home_of(self, layer: str, tensor: Tensor, turns: Turns) -> int | None:
        """The home level of an intermediate; ``None`` for a tensor from outside the group."""
        reading = self.group.reading(layer, tensor.name)
        producer = reading.producer if reading is not None else layer
        if reading is None and not (tensor.is_output and producer in turns.passings):
            return None
        home = turns.passings[producer].home
        return None if home is None else home.level

    def _least(self, layer: str, kinds: tuple[TurnKind, ...], tensor: Tensor, home: int) -> Fraction:
        homes: Homes = ((tensor.role, home),) if home else ()
        total = Fraction(0)
        for kind in kinds:
            key = layer, tensor.name, home, kind.sizes, kind.operator.turns, kind.operator.continued
            least = self._known.get(key)
            if least is None:
                own = kind.operator.tensor(tensor.name)
                least = self._known[key] = self.engines.least_energy(kind.operator, own, homes)
            total += kind.number * least
        return total

    def _placements(
        self, tree: Branch, leaf: LeafTurns, tensor: Tensor, turns: tuple[tuple[TurnKind, ...], int]
    ) -> Iterator[Placement]:
        """Streamed, or resident at every level and at every depth at which a loop inside does not move it.

        Parameters
        ----------
        tree, leaf, tensor : whose
        turns : of the leaf, and sums that are scaled anew between them
        """
        layer, (kinds, scaled) = leaf.leaf.layer, turns
        streamed = self._scaled(tensor, 0, scaled)
        yield Placement(None, 0, 0, streamed, None, 0, streamed + self._least(layer, kinds, tensor, 0))
        windows = windows_of(tensor, leaf.boxes)
        operator = self.group.operator(layer)
        for depth, since, layers in self.resident_places(tree, leaf, tensor, scaled):
            visits = visits_of(windows, leaf.trips, depth, since)
            for index in residences(self.engine, tensor.role):
                level = self.engine.levels[index]
                moved = elements_moved(self.engine, operator, tensor, visits, (0, index))
                traffic = movement_energy(self.engine, tensor, (0, index), moved)
                traffic += self._scaled(tensor, index, scaled)
                part = tensor.role if tensor.role in level.partitions else None
                tile = int(visits.elements.max(initial=0))
                bits = bits_of_tile(self.engine, level, tensor.role, tile)
                place = self.places.index((index, part))
                room = self.whole[place]
                if room is not None and bits > room:
                    continue
                store = SharedStore(layer, tensor.name, level.name)
                least = traffic + self._least(layer, kinds, tensor, index)
                yield Placement(store, depth, since, traffic, place, bits, least, frozenset(layers))

    def resident_places(
        self, tree: Branch, leaf: LeafTurns, tensor: Tensor, scaled: int
    ) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """Where a resident of a layer may stand: loops outside, those outside its sequence, layers inside.

        Parameters
        ----------
        tree, leaf, tensor : whose
        scaled : sums of the layer that are scaled anew between turns
        """
        # Sums of a streamed result are scaled outside.
        gains = self.engines.gain_by_turn(self.group.operator(leaf.leaf.layer), tensor)
        gains = gains or bool(tensor.is_output and scaled)
        for depth, since, layers in _places(tree, leaf.leaf.layer):
            if gains or not depth or depth < len(leaf.trips):
                yield depth, since, layers

    def candidates(self, skeleton: Skeleton, most: Fraction | None = None) -> Iterator[Candidate]:
        """Every combination of placements whose residents fit together.

        Parameters
        ----------
        most : pJ; those whose bound is no less are left out
        """
        options = list(skeleton.options.values())
        rest = [Fraction(0)]
        for own in reversed(options):
            rest.insert(0, rest[0] + own[0].least)

        def further(chosen: tuple[int, ...], least: Fraction, left: dict[str, Rooms]) -> Iterator[Candidate]:
            at = len(chosen)
            if at == len(options):
                yield Candidate(skeleton, chosen)
                return
            for index, placement in enumerate(options[at]):
                bound = least + placement.least
                if most is not None and bound + rest[at + 1] >= most:
                    return
                after = left
                if placement.place is not None:
                    taken = {placement.place: placement.bits}
                    after = dict(left)
                    for layer in placement.around:
                        less = left_of(after[layer], taken)
                        if less is None:
                            break
                        after[layer] = less
                    else:
                        yield from further((*chosen, index), bound, after)
                    continue
                yield from further((*chosen, index), bound, after)

        fitting = {layer: rooms for layer, rooms in skeleton.left.items() if rooms is not None}
        if len(fitting) == len(skeleton.left):
            yield from further((), skeleton.fixed, fitting)

    def promising(self, skeletons: Iterable[Skeleton], most: Fraction | None) -> Candidate | None:
        """The candidate of the least bound; ``None`` where none that fits is below ``most``."""
        best: Candidate | None = None
        for skeleton in skeletons:
            best = min(self.candidates(skeleton, most), key=lambda candidate: candidate.bound, default=best)
            most = most if best is None else best.bound
        return best

    def _left_by_homes(self, turns: Turns, leaf: LeafTurns) -> Rooms | None:
        """What homes leave to a layer's turns; ``None`` where they do not fit."""
        taken: dict[int, int] = {}
        for placed in leaf.stores:
            if placed.level:
                level = self.engine.levels[placed.level]
                role = self.group.operator(placed.store.layer).tensor(placed.store.tensor).role
                place = self.places.index((placed.level, None))
                bits = bits_of_tile(self.engine, level, role, turns.tiles[placed.store])
                taken[place] = taken.get(place, 0) + bits
        for running in (turns.softmaxes[key] for key in leaf.softmaxes):
            if running.level:
                level, place = self.engine.levels[running.level], self.places.index((running.level, None))
                bits = bits_of_tile(self.engine, level, Role.OUTPUT, running.words)
                taken[place] = taken.get(place, 0) + bits
        return left_of(self.whole, taken)

    def rooms(self, candidate: Candidate, layer: str) -> Rooms | None:
        """What shared stores leave to a layer's turns; ``None`` where they do not fit."""
        left = candidate.skeleton.left[layer]
        taken: dict[int, int] = {}
        for placement in candidate.placements.values():
            if placement.place is not None and layer in placement.around:
                taken[placement.place] = taken.get(placement.place, 0) + placement.bits
        return None if left is None else left_of(left, taken)

    def homes(self, candidate: Candidate, layer: str) -> Homes | None:
        """Per role of a layer where its tensors start; ``None`` where two of a role start apart."""
        homes: dict[Role, int] = {}
        operator = self.group.operator(layer)
        for tensor in operator.tensors:
            home = self.home_of(layer, tensor, candidate.skeleton.turns)
            if home is None:
                placement = candidate.placements[layer, tensor.name]
                home = 0 if placement.store is None else self.levels.index(placement.store.level)
            if homes.setdefault(tensor.role, home) != home:
                return None
        return tuple(sorted((role, home) for role, home in homes.items() if home))

    def tree(self, candidate: Candidate, leaves: dict[str, Leaf]) -> Branch:
        """The fused mapping of a candidate with its leaves."""
        residents = [
            (placement.store, placement.depth, placement.since)
            for placement in candidate.placements.values()
            if placement.store is not None
        ]
        tree = _placed(candidate.skeleton.tree, residents, leaves, 0)
        outermost = self.levels[0]
        stores = [SharedStore(store.layer, store.tensor, outermost) for store, _, _ in residents]
        for layer in self.group.names:
            if layer in self.group.leaving and layer in candidate.skeleton.turns.passings:
                stores.append(SharedStore(layer, self.group.operator(layer).output.name, outermost))
        return replace(tree, nodes=(*stores, *tree.nodes))


def _places(tree: Branch, layer: str) -> list[tuple[int, int, tuple[str, ...]]]:
    """Where stores may stand on the way to a layer: loops outside, those outside the sequence, layers inside.

    Of sequences within the same loops the innermost serves fewest layers.
    """
    sequences: dict[int, tuple[int, tuple[str, ...]]] = {}
    branch: Branch | None = tree
    since = 0
    while branch is not None:
        end = since + sum(isinstance(node, SharedLoop) for node in branch.nodes)
        sequences[since] = end, tuple(branch.layers())
        inner = (child for child in branch.children if isinstance(child, Branch))
        branch, since = next((child for child in inner if layer in child.layers()), None), end
    return sorted(
        (depth, since, layers)
        for since, (end, layers) in sequences.items()
        for depth in range(since, end + 1)
    )


def _placed(
    branch: Branch, residents: list[tuple[SharedStore, int, int]], leaves: dict[str, Leaf], passed: int
) -> Branch:
    """A branch with residents among its loops, and leaves with their mappings."""
    nodes: list[SharedNode] = []
    depth = passed
    here = set(branch.layers())
    if not any(
        isinstance(node, SharedLoop) for node in branch.nodes
    ):  # those of a sequence inside stand there
        here -= {name for child in branch.children if isinstance(child, Branch) for name in child.layers()}
    mine = [(store, at) for store, at, since in residents if store.layer in here and since == passed]
    for node in (None, *branch.nodes):
        if node is not None:
            nodes.append(node)
            depth += isinstance(node, SharedLoop)
        if node is None or isinstance(node, SharedLoop):
            nodes += [store for store, at in mine if at == depth]
    rest = [resident for resident in residents if resident[:2] not in mine]
    children = tuple(
        leaves[child.layer] if isinstance(child, Leaf) else _placed(child, rest, leaves, depth)
        for child in branch.children
    )
    return Branch(tuple(nodes), children)
