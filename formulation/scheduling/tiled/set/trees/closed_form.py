"""What a tree costs in closed form (section 4.3): its segments, and what they come to together.

Children of a root T cut are independent of each other, so each is cached once evaluated (`segment_cost.py`,
`striped.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.leaf.tile_costs import EngineTile, ProgramTile
from tilewright.formulation.scheduling.tiled.set.trees.instance import TreeInstance
from tilewright.formulation.scheduling.tiled.set.trees.node_cost import NodeCost
from tilewright.formulation.scheduling.tiled.set.trees.rules import Rules
from tilewright.formulation.scheduling.tiled.set.trees.segment_cost import Subtrees, segment_cost
from tilewright.formulation.scheduling.tiled.set.trees.striped import striped_cost
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, Node
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit, UnfitTreeError
from tilewright.hardware.scheduling.tiled.machine import TiledMachine


@dataclass(eq=False)
class ClosedForm(TreeInstance):
    """Evaluates trees of one instance; segments and leaves are cached.

    Attributes
    ----------
    cached : children of a root T cut by the samples for which their weights are loaded once
    evaluations : of such children so far
    """

    cached: dict[tuple[Node, int], NodeCost | Unfit] = field(init=False, default_factory=dict)
    evaluations: int = field(init=False, default=0)
    _subtrees: Subtrees = field(init=False, default_factory=dict)

    def evaluate(self, tree: Node) -> NodeCost:
        """The cost of a tree.

        Raises
        ------
        UnfitTreeError : naming the node that the machine cannot run, and why
        """
        cost = self.attempt(tree)
        if isinstance(cost, Unfit):
            raise UnfitTreeError(cost.reason)
        return cost

    def attempt(self, tree: Node) -> NodeCost | Unfit:
        """The cost of a tree, or why the machine cannot run it."""
        if isinstance(tree, Leaf) or tree.kind == "S":
            return self.segment(tree, tree.batch)
        children = []
        loads = self.batch if self.rules.split_root_weights_once else tree.batch // tree.groups
        for child in tree.children:
            cost = self.segment(child, loads)
            if isinstance(cost, Unfit):
                return cost
            children.append(cost)
        return self._joined(tree, 0, self.engine.grid.tiles, children)

    def segment(self, tree: Node, loads: int) -> NodeCost | Unfit:
        """The cost of a child of a root T cut, or of a root that is none.

        Parameters
        ----------
        loads : samples for which weights are loaded once
        """
        key = (tree, loads)
        cost = self.cached.get(key)
        if cost is None:
            self.evaluations += 1
            if isinstance(tree, Cut) and tree.stripes > 1:
                cost = striped_cost(self, tree, loads)
            else:
                cost = segment_cost(self, self._subtrees, tree, loads)
            self.cached[key] = cost
        return cost

    def _joined(self, tree: Cut, first: int, tiles: int, children: list[NodeCost]) -> NodeCost:
        """A root T cut."""
        groups = tree.groups
        counts, parts = children[0].counts.copy(), children[0].parts.copy()
        for child in children[1:]:
            counts += child.counts
            parts += child.parts
        nothing = np.zeros(self.engine.grid.tiles, dtype=np.int64)
        buffer = children[0].buffer + children[0].weights
        for child in children[1:]:
            buffer = np.maximum(buffer, child.buffer + child.weights)
        return NodeCost(
            node=tree,
            first=first,
            tiles=tiles,
            energy=sum(segment.energy for segment in children) * groups,
            parts=parts * groups,
            cycles=sum(segment.cycles for segment in children) * groups,
            counts=counts * groups,
            buffer=buffer,
            inputs=nothing,
            weights=nothing,
            children=tuple(children),
        )


def program_form(
    network: SetNetwork,
    machine: TiledMachine,
    batch: int,
    rules: Rules,
    *,
    energy: float = 1.0,
    delay: float = 1.0,
) -> ClosedForm:
    """Trees with the figures of the released program's tile.

    Parameters
    ----------
    network, machine, rules : what is evaluated, and how
    batch : samples of the whole
    energy, delay : powers of the objective
    """
    costs = ProgramTile(energy, delay)
    return ClosedForm(network, machine, batch, costs, rules, energy_power=energy, delay_power=delay)


def engine_form(
    network: SetNetwork,
    machine: TiledMachine,
    batch: int,
    rules: Rules,
    *,
    energy: float = 1.0,
    delay: float = 1.0,
) -> ClosedForm:
    """Trees with the costs of atoms on the machine's engines; bytes are elements where those are longer.

    Parameters
    ----------
    network, machine, rules : what is evaluated, and how
    batch : samples of the whole
    energy, delay : powers of the objective
    """
    costs = EngineTile(machine.engine)
    return ClosedForm(
        network, machine.in_elements(), batch, costs, rules, energy_power=energy, delay_power=delay
    )
