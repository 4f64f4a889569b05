"""The least energy of one group: CP-SAT picks a tree, and for every layer a column that agrees with it.

Trees and columns are listed before; those that cannot be part of an answer below the value that is known
are left out by sums of the least columns.  The model has one literal per tree and per column.  A column goes
with the trees in which its layer has the same loops, homes and ways; in the turns of every layer, homes and
all columns together keep to the room of each place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from ortools.sat.python import cp_model

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.cost.hierarchy import Hierarchy
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch
from tilewright.solvers.cpsat_run import CpSatRun
from tilewright.solvers.mapping.fused.columns.columns import LARGEST, Column, Columns
from tilewright.solvers.mapping.fused.columns.fronts import Fronts
from tilewright.solvers.mapping.fused.columns.placing import placed_tree
from tilewright.solvers.mapping.fused.columns.space import MOST_TREES, Listed, TooLargeError
from tilewright.solvers.mapping.fused.columns.tree_rows import LayerRow, TreeRow, TreeRows
from tilewright.solvers.mapping.fused.columns.trees import Trees


@dataclass(frozen=True)
class LeastGroup:
    """What the model says of one group.

    Parameters
    ----------
    value : pJ of the best tree below the threshold; ``None`` where none takes less
    tree : that tree
    trees, columns : that were listed
    """

    value: Fraction | None
    tree: Branch | None
    trees: int
    columns: int


def least_group(
    group: FusedGroup, listed: Listed, fronts: Fronts, below: Fraction | None, limits: Limits
) -> LeastGroup:
    """The least energy of a group, if that is less than some threshold.

    Parameters
    ----------
    group, listed : the layers, and the space of their trees and mappings
    fronts : of turns on the same machine
    below : pJ; ``None`` for no threshold
    limits : ``LimitReachedError`` is raised where one strikes

    Raises
    ------
    TooLargeError : where there is more to list than is listed, or numbers are too large
    """
    rows = TreeRows(group, listed)
    scale = Hierarchy.scale_of(listed.engine)
    columns = Columns(rows, fronts, scale)
    trees = _hopeful(rows, Trees(group, listed), below, limits)
    number = len(trees)
    kept: list[tuple[Fraction, TreeRow]] = []
    for least, tree in sorted(trees, key=lambda item: item[0]):
        if below is None or least < below:
            own = [columns.of(row) for row in tree.layers]
            if all(own):
                total = tree.fixed + Fraction(sum(options[0].cost for options in own), scale)
                if below is None or total < below:
                    kept.append((total, tree))
    model = _Model(rows, columns, [tree for _, tree in kept])
    picked = model.solved(None if below is None else below * scale, limits) if kept else None
    if picked is None:
        return LeastGroup(None, None, number, columns.number)
    value, tree, chosen = picked
    return LeastGroup(Fraction(value, scale), placed_tree(tree, chosen, columns), number, columns.number)


def _hopeful(
    rows: TreeRows, trees: Iterable[Branch], below: Fraction | None, limits: Limits
) -> list[tuple[Fraction, TreeRow]]:
    """Legal trees that may take less than a threshold, with what they take at least."""
    kept: list[tuple[Fraction, TreeRow]] = []
    least: dict[int, Fraction] = {}
    for number, bare in enumerate(trees, 1):
        if number > MOST_TREES:
            raise TooLargeError(f"more than {MOST_TREES:,} trees")
        limits.check()
        tree = rows.of(bare)
        if tree is not None:
            for row in tree.layers:
                if id(row) not in least:
                    least[id(row)] = rows.least(row)
            total = tree.fixed + sum((least[id(row)] for row in tree.layers), Fraction(0))
            if below is None or total < below:
                kept.append((total, tree))
    return kept


class _Model:
    """One literal per tree and per column."""

    def __init__(self, rows: TreeRows, columns: Columns, trees: list[TreeRow]) -> None:
        self.rows, self.columns, self.trees = rows, columns, trees
        self.model = cp_model.CpModel()
        self.is_tree = [self.model.new_bool_var(f"tree{number}") for number in range(len(trees))]
        self.picks: dict[int, tuple[LayerRow, list[tuple[Column, cp_model.IntVar]]]] = {}
        for tree in trees:
            for row in tree.layers:
                if id(row) not in self.picks:
                    own = [(column, self.model.new_bool_var("")) for column in columns.of(row)]
                    self.picks[id(row)] = row, own
        self._agree()
        self._fit()
        self.costs = [columns.scaled(tree.fixed) for tree in trees]
        self.literals = [*self.is_tree, *(literal for _, literal in self._all())]
        self.weights = [*self.costs, *(column.cost for column, _ in self._all())]
        most = max(self.weights, default=0)
        if most * (1 + len(rows.group.names)) > LARGEST:
            raise TooLargeError("energies beyond 2**60")

    def _all(self) -> list[tuple[Column, cp_model.IntVar]]:
        return [pick for _, own in self.picks.values() for pick in own]

    def _agree(self) -> None:
        """One tree; of each of its layers one column."""
        self.model.add_exactly_one(self.is_tree)
        for key, (_, own) in self.picks.items():
            with_it = [
                literal
                for literal, tree in zip(self.is_tree, self.trees, strict=True)
                if any(id(row) == key for row in tree.layers)
            ]
            self.model.add(sum(literal for _, literal in own) == sum(with_it))

    def _fit(self) -> None:
        """In every layer's turns, homes and columns keep to the room of each place."""
        for layer in self.rows.group.names:
            for place, room in enumerate(self.rows.rooms):
                if room is None:
                    continue
                terms = []
                for literal, tree in zip(self.is_tree, self.trees, strict=True):
                    for row, held in zip(tree.layers, tree.homes, strict=True):
                        if row.layer == layer and held[place]:
                            terms.append(held[place] * literal)
                for column, literal in self._all():
                    taken = dict(column.takes).get(layer)
                    if taken is not None and taken[place]:
                        terms.append(taken[place] * literal)
                if terms:
                    self.model.add(sum(terms) <= room)

    def solved(
        self, below: Fraction | None, limits: Limits
    ) -> tuple[int, TreeRow, dict[str, tuple[LayerRow, Column]]] | None:
        """The cost, tree and columns of the optimum; ``None`` where none is below a threshold.

        Parameters
        ----------
        below : in scaled units
        limits : of the run
        """
        cost = cp_model.LinearExpr.weighted_sum(self.literals, self.weights)
        if below is not None:
            self.model.add(cost <= -(-below.numerator // below.denominator) - 1)
        self.model.minimize(cost)
        run = CpSatRun(self.model, limits, lambda: limits.expired)
        status = run.solve()
        if run.doubt:
            raise TooLargeError(f"CP-SAT: {run.doubt}")
        if status == cp_model.INFEASIBLE:
            return None
        if status != cp_model.OPTIMAL:
            limits.check()
            raise LimitReachedError("CP-SAT came to no end")
        number = next(n for n, literal in enumerate(self.is_tree) if run.solver.boolean_value(literal))
        tree = self.trees[number]
        chosen: dict[str, tuple[LayerRow, Column]] = {}
        total = self.costs[number]
        for row in tree.layers:
            for column, literal in self.picks[id(row)][1]:
                if run.solver.boolean_value(literal):
                    chosen[row.layer] = row, column
                    total += column.cost
        return total, tree, chosen
