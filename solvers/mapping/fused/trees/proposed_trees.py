"""Trees that a heuristic proposes of one group: built from few numbers, and priced exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice

from tilewright.formulation.mapping.cost import CostModel
from tilewright.formulation.mapping.fused.arena import Menu, TreeChoice
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch, Leaf
from tilewright.foundation.errors import InputError, TilewrightError
from tilewright.solvers.mapping.fused.trees.candidate import Candidate, Skeleton
from tilewright.solvers.mapping.fused.trees.candidate_cost import cost_of
from tilewright.solvers.mapping.fused.trees.candidates import CandidateSpace
from tilewright.solvers.mapping.fused.trees.skeletons import Cut, SkeletonSpace
from tilewright.solvers.mapping.fused.trees.turn_solver import TurnSolver

MOST_MEMBERS = 64
"""Orders and places of homes of one choice of tiles that are told apart."""
TRIES = 4
"""Combinations of residents that are tried where the first ones start a role in two levels."""


@dataclass
class ProposedTrees:
    """The trees that are proposed of a group, priced one by one.

    Parameters
    ----------
    group, trees, space, solver : its layers, all its trees, its candidates, and what maps their turns
    best, value : the best tree so far
    priced, seconds : how many, and the time that took
    """

    group: FusedGroup
    trees: SkeletonSpace
    space: CandidateSpace
    solver: TurnSolver
    best: Branch | None = None
    value: Fraction | None = None
    priced: int = 0
    seconds: float = 0.0
    _known: dict[object, Fraction | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shapes = [*self.trees.shapes(tuple(self.group.names))]
        outer = tuple(Cut((), rank) for rank in self.trees.loops(tuple(self.group.names)))
        self.cuts = [(*outer, *self.trees.cuts(shape)) for shape in self.shapes]

    def menus(self, shape: int) -> list[Menu]:
        """The loops that a shape may have."""
        menus: list[Menu] = []
        for cut in self.cuts[shape]:
            branch = self.shapes[shape]
            for index in cut.place:
                child = branch.children[index]
                assert isinstance(child, Branch)
                branch = child
            layer, dim = self.trees.loops(tuple(branch.layers()))[cut.rank]
            tiles = self.trees.tiles(self.group.operator(layer).bounds[dim])
            menus.append(Menu(layer, dim, tuple(tiles), bool(cut.place)))
        return menus

    def tree(self, choice: TreeChoice) -> Branch | None:
        """The tree of a choice; ``None`` where a sequence inside another one has no loop."""
        tree = self.shapes[choice.shape % len(self.shapes)]
        for cut, wanted in zip(self.cuts[choice.shape % len(self.shapes)], choice.tiles, strict=True):
            *_, tree = islice(self.trees.cut(tree, cut), wanted + 1)
        if not self.trees.is_whole(tree):
            return None
        members = [*islice(self.trees.members(tree), MOST_MEMBERS)]
        return members[choice.member % len(members)]

    def price(self, choice: TreeChoice, model: CostModel) -> Fraction | None:
        """pJ of a choice, which is kept if it is the best."""
        tree = self.tree(choice)
        if tree is None:
            return None
        key = tree, choice.ways
        if key not in self._known:
            self._known[key] = self._priced(tree, choice.ways, model)
            self.priced += 1
        return self._known[key]

    def _priced(self, tree: Branch, ways: tuple[int, ...], model: CostModel) -> Fraction | None:
        try:
            skeleton = self.space.skeleton(tree)
        except InputError:
            return None  # what a turn would have to make is no box
        if None in skeleton.left.values() or not skeleton.makes_all(self.group.leaving):
            return None
        for candidate in self._candidates(skeleton, ways):
            leaves: dict[str, Leaf] = {}
            value = cost_of(self.space, self.solver, candidate, leaves)
            if value is not None:
                if self.value is None or value < self.value:
                    self._keep(candidate, leaves, value, model)
                return value
        return None

    def _candidates(self, skeleton: Skeleton, ways: tuple[int, ...]) -> Sequence[Candidate]:
        if not ways:
            return [*islice(self.space.candidates(skeleton), TRIES)]
        options = skeleton.options.values()
        chosen = tuple(way % len(own) for way, own in zip(ways, options, strict=True))
        return [Candidate(skeleton, chosen)]

    def _keep(self, candidate: Candidate, leaves: dict[str, Leaf], value: Fraction, model: CostModel) -> None:
        tree = self.space.tree(candidate, leaves)
        evaluation = evaluate_fused(self.group, self.space.engine, model, tree)
        if evaluation.violations or evaluation.energy != value:
            raise TilewrightError(f"a fused mapping of {value} pJ is evaluated at {evaluation.energy} pJ")
        self.best, self.value = tree, value
