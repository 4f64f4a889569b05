"""The compiled bounds: equal, bit for bit, to what the interval reader reads."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence

import numpy as np
import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import Instance, instances

from tilewright.formulation.expression import Expr, Variable, function
from tilewright.formulation.expression.interval import IntervalReader
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tiles import columns
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.foundation.arrays import Floats
from tilewright.solvers.mapping.compiled import opcodes
from tilewright.solvers.mapping.compiled.bound_program import BoundProgram
from tilewright.solvers.mapping.tables.array_bounds import ArrayBounds
from tilewright.solvers.mapping.tables.staged_tables import StagedTable
from tilewright.solvers.mapping.tables.stages import stages_of

INSTANCES = st.sampled_from(["hierarchy", "dmazerunner"]).flatmap(
    lambda model: instances(model, most=24, largest=50_000)
)


class CellReader(IntervalReader):
    """Reads expressions for nodes with the tables of their cells, through the interval reader."""

    def __init__(
        self,
        staged: Sequence[StagedTable],
        product_bounds: MappingABC[Expr, float],
        cells: np.ndarray,
        at: Sequence[int],
        chosen: MappingABC[Variable, int],
    ) -> None:
        super().__init__(chosen)
        self.staged, self.product_bounds, self.cells, self.at = staged, product_bounds, cells, at
        self.place = {table.table.group.name: i for i, table in enumerate(staged)}

    def known_low(self, expr: Expr) -> Floats | None:
        if expr in self.product_bounds:
            return np.maximum(self._read_low(expr), self.product_bounds[expr])
        return self._bounds(expr, True)

    def known_high(self, expr: Expr) -> Floats | None:
        return self._bounds(expr, False)

    def _bounds(self, expr: Expr, low: bool) -> Floats | None:
        if expr.group is None:
            return None
        group = self.place[expr.group]
        table = self.staged[group]
        return table.bounds(expr, low)[table.offsets[self.at[group] + 1] + self.cells[group]]


def laid_out(problem: LayerProblem) -> tuple[list[StagedTable], dict[Expr, float], list[Expr]] | None:
    """Tables, bounds of products and roots of a problem; ``None`` where nothing fits the array."""
    roots = [problem.statement.energy, problem.statement.cycles]
    tables = Tables(problem.space.groups, [*roots, *(limit.expr for limit in problem.limits)])
    array = ArrayBounds(problem.space.nest, tables)
    if not array.fits:
        return None
    stages = stages_of(problem.space)
    staged = [StagedTable(table, problem.space.nest, stages) for table in tables.tables]
    return staged, array.bounds(roots), roots


@settings(max_examples=effort(48))
@given(INSTANCES, st.booleans(), st.data())
def test_equal_bits(instance: Instance, classed: bool, data: st.DataObject) -> None:
    """Nodes of any stages, with any choices made, have the bounds that the interval reader gives.

    With and without values by class of rows, as large axis groups have them.
    """
    problem = instance.problem()
    with pytest.MonkeyPatch.context() as patched:
        if classed:
            patched.setattr(columns, "LARGE", 0)
            patched.setattr(columns, "_FEWER", 1)
        compare_with_intervals(problem, data)


def compare_with_intervals(problem: LayerProblem, data: st.DataObject) -> None:
    """Bound drawn nodes both ways."""
    laid = laid_out(problem)
    if laid is None:
        return
    staged, product_bounds, roots = laid
    limits = [(limit.expr, limit.bound) for limit in problem.limits]
    bound_program = BoundProgram(staged, limits, roots, product_bounds)
    count = data.draw(st.sampled_from([1, 7, opcodes.BLOCK, 3 * opcodes.BLOCK + 5]))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    at = [data.draw(st.integers(-1, len(table.starts) - 1)) for table in staged]
    sizes = [1 if stage < 0 else len(table.starts[stage]) for table, stage in zip(staged, at, strict=True)]
    drawn = [random.integers(0, size, count) for size in sizes]
    cells = np.array(drawn, dtype=np.int64).reshape(len(staged), count)
    chosen = {
        selector: data.draw(st.sampled_from(selector.domain))
        for selector in problem.space.selectors
        if data.draw(st.booleans())
    }
    reader = CellReader(staged, product_bounds, cells, at, chosen)
    legal = np.ones(count, dtype=bool)
    for expr, bound in limits:
        legal &= reader.low(expr) <= bound
    kept, values = bound_program.bounds(cells, at, chosen)
    assert kept.tolist() == np.flatnonzero(legal).tolist()
    for root, value in zip(roots, values, strict=True):
        assert np.broadcast_to(reader.low(root), count)[legal].tolist() == value.tolist()


def test_a_function_of_several_groups_is_refused() -> None:
    """Nothing can be said of a function that no table holds, and silence would be a wrong bound."""
    variables = [Variable(name, (1, 2), group) for name, group in (("a", "A"), ("b", "B"))]
    with pytest.raises(TypeError, match="spans several axis groups"):
        BoundProgram([], [], [function("mixed", lambda a, b: a * b, variables)], {})
