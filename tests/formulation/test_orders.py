"""Loop orders by their effect: fewer choices, the same minimum as all permutations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from itertools import product as cartesian

import pytest
from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import KINDS, Instance, dmazerunners, hierarchies, operators

from tilewright.formulation.expression.exact import ExactReader
from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.mapping import Mapping, Node, Temporal
from tilewright.formulation.mapping.nests.orders import (
    OrderClass,
    all_order_classes,
    order_classes,
    order_effect,
    sliding_dims,
)
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import conv2d, gemm

CONV = conv2d(n=2, k=4, c=4, p=4, q=4, r=3, s=3)
STILL = {tensor.name: frozenset[str]() for tensor in CONV.tensors}
SLIDING = {tensor.name: sliding_dims(CONV, tensor) for tensor in CONV.tensors}


def test_a_convolution_has_the_published_number_of_effects() -> None:
    """15 effects of 5040 orders (dMazeRunner, table 2), of which 3 are undominated."""
    assert len(all_order_classes(CONV, CONV.bounds, STILL)) == 15
    best = order_classes(CONV, CONV.bounds, STILL)
    assert [order.label for order in best] == ["I-stationary", "O-stationary", "W-stationary"]
    runs = [{name: set(dims) for name, dims in order.reused.items() if dims} for order in best]
    assert runs == [{"I": {"K"}}, {"O": {"C", "R", "S"}}, {"W": {"N", "P", "Q"}}]


def test_windows_that_slide_leave_more_undominated_effects() -> None:
    """Along each of P, Q, R and S the input's window may slide, beside what stays put."""
    best = order_classes(CONV, CONV.bounds, SLIDING)
    assert len(best) == 8
    assert {order.slides["I"] for order in best} == {"P", "Q", "R", "S"}


def test_which_windows_slide() -> None:
    """Neighbouring tiles can overlap only where the other loops of the axis span more than the stride."""
    slow = conv2d(k=2, c=2, p=4, q=4, r=2, s=1, stride=(2, 1))
    assert sliding_dims(slow, slow.tensor("I")) == {"R", "S"}
    assert SLIDING["I"] == {"P", "Q", "R", "S"}
    assert SLIDING["W"] == SLIDING["O"] == frozenset()


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
def test_windows_slide_where_neighbouring_tiles_share_inputs(stride: int, dilation: int) -> None:
    """A loop slides a window if the rows from the first to the last of a tile of one iteration, which has all
    iterations of the other loop, reach the next tile's first row.
    """
    for outputs, taps in cartesian(range(2, 6), range(2, 6)):
        operator = conv2d(k=1, c=1, p=outputs, q=1, r=taps, s=1, stride=stride, dilation=dilation)
        rows = {(p, r): p * stride + r * dilation for p in range(outputs) for r in range(taps)}
        reach_of_p = max(row for (p, _), row in rows.items() if p == 0) >= rows[1, 0]
        reach_of_r = max(row for (_, r), row in rows.items() if r == 0) >= rows[0, 1]
        slides = sliding_dims(operator, operator.tensor("I"))
        assert slides == {dim for dim, reaches in (("P", reach_of_p), ("R", reach_of_r)) if reaches}


@settings(max_examples=effort(60))
@given(operators(most=64), st.booleans())
def test_effects_are_those_of_all_permutations(operator: Operator, slides: bool) -> None:
    """Every permutation has the effect of one class, and every class has the effect of its permutation."""
    sliding = {t.name: sliding_dims(operator, t) if slides else frozenset[str]() for t in operator.tensors}
    dims = [dim for dim, bound in operator.bounds.items() if bound > 1][:6]
    effects = {order.effect for order in all_order_classes(operator, dims, sliding)}
    plain = {order_effect(operator, order, sliding).effect for order in permutations(dims)}
    assert effects == plain


@settings(max_examples=effort(60))
@given(operators(most=64), st.booleans())
def test_kept_classes_dominate_all_and_not_each_other(operator: Operator, slides: bool) -> None:
    """Dropped effects have a kept one that is at least as good; no kept one is superfluous."""
    sliding = {t.name: sliding_dims(operator, t) if slides else frozenset[str]() for t in operator.tensors}
    dims = [dim for dim, bound in operator.bounds.items() if bound > 1]
    kept = order_classes(operator, dims, sliding)
    for order in all_order_classes(operator, dims, sliding):
        assert any(better.dominates(order) for better in kept)
    for kept_order, other in permutations(kept, 2):
        assert not kept_order.dominates(other)


def test_labels() -> None:
    """An effect in words names the tensors that stay and the windows that slide."""
    order = order_effect(CONV, ("N", "C", "R", "S", "Q", "P", "K"), SLIDING)
    assert order.label == "I-stationary, I slides along P"
    product = gemm(m=2, n=2, k=2)
    none = {tensor.name: frozenset[str]() for tensor in product.tensors}
    assert order_effect(product, ("M", "N", "K"), none).label == "C-stationary"
    sums = nest("O[i] = A[i] : i=4")
    assert order_effect(sums, ("i",), {"A": frozenset(), "O": frozenset()}).label == "no reuse"


def reordered(mapping: Mapping) -> Iterator[Mapping]:
    """The mapping under all orders of the temporal loops of each level.

    A loop of a dimension that has one already is the next level's, though nothing is stored between them.
    """
    runs: list[list[Node]] = []
    dims: set[str] = set()
    for node in mapping.nodes:
        if isinstance(node, Temporal) and dims and node.dim not in dims:
            runs[-1].append(node)
            dims.add(node.dim)
        else:
            runs.append([node])
            dims = {node.dim} if isinstance(node, Temporal) else set()
    for combination in cartesian(*(permutations(run) for run in runs)):
        yield Mapping(tuple(node for run in combination for node in run))


@st.composite
def tilings(draw: st.DrawFn, model: str, kinds: Sequence[str] = KINDS) -> tuple[LayerProblem, dict]:  # type: ignore[type-arg]
    """A roomy problem and one choice of tile sizes in it."""
    operator = draw(operators(kinds=kinds, most=36))
    engine = draw(
        hierarchies(levels=3, roomy=True, sharing=draw(st.booleans()))
        if model == "hierarchy"
        else dmazerunners(roomy=True)
    )
    try:
        problem = Instance(operator, engine, "edp").problem()
    except InputError:
        assume(False)
    tiles = {}
    for group in problem.space.groups:
        assume(len(group))
        row = group.rows[draw(st.integers(0, len(group) - 1))]
        tiles |= {variable: int(value) for variable, value in zip(group.variables, row, strict=True)}
    return problem, tiles


def counts(evaluation: Evaluation) -> tuple[int, ...]:
    """Everything that must not grow: accesses, cycles and scaled energy."""
    accesses = [n for a in evaluation.accesses for n in (a.reads, a.fills, a.updates, a.hops)]
    return (*accesses, evaluation.cycles, int(evaluation.energy * 1000))


@settings(max_examples=effort(60))
@given(st.sampled_from(KINDS).flatmap(lambda kind: tilings("hierarchy", [kind])))
def test_some_class_is_at_least_as_good_as_any_permutation(case: tuple[LayerProblem, dict]) -> None:  # type: ignore[type-arg]
    """For every order of every level's loops, some choice of classes has no count above that order's.

    Counts of the classes are read from the statement that solvers search.
    """
    problem, tiles = case
    stores = [s for s in problem.space.selectors if s.name.startswith("stores")]
    orders = [s for s in problem.space.selectors if s not in stores]
    chosen = tiles | dict.fromkeys(stores, 0)
    by_class: list[tuple[int, ...]] = []
    for values in cartesian(*(selector.domain for selector in orders)):
        reader = ExactReader(chosen | dict(zip(orders, values, strict=True)))
        statement = problem.statement
        rows = [
            reader.read(e) for row in statement.traffic for e in (row.reads, row.fills, row.updates, row.hops)
        ]
        energy = reader.read(statement.energy) * 1000 // statement.energy_scale
        by_class.append((*rows, reader.read(statement.cycles), energy))
    stored = {(row.level, row.tensor) for row in problem.statement.traffic}
    for mapping in reordered(problem.decode(chosen | dict.fromkeys(orders, 0))):
        evaluation = problem.evaluate(mapping)
        assert {(row.level, row.tensor) for row in evaluation.accesses} == stored
        limit = counts(evaluation)
        assert any(all(a <= b for a, b in zip(row, limit, strict=True)) for row in by_class)


@settings(max_examples=effort(48))
@given(tilings("dmazerunner"))
def test_dmazerunner_classes_reach_the_optimum_over_all_permutations(case: tuple[LayerProblem, dict]) -> None:  # type: ignore[type-arg]
    """Energy, cycles and energy-delay product: the least over legal classes is the least over all orders."""
    problem, tiles = case
    by_class: list[tuple[int, int]] = []
    for values in cartesian(*(selector.domain for selector in problem.space.selectors)):
        reader = ExactReader(tiles | dict(zip(problem.space.selectors, values, strict=True)))
        if all(reader.read(limit.expr) <= 0 for limit in problem.limits if limit.name.startswith("order")):
            statement = problem.statement
            by_class.append((reader.read(statement.energy), reader.read(statement.cycles)))
    start = problem.decode(tiles | dict.fromkeys(problem.space.selectors, 0))
    plain = [(int(e.energy), e.cycles) for e in map(problem.evaluate, reordered(start))]
    assert min(e for e, _ in by_class) == min(e for e, _ in plain)
    assert min(c for _, c in by_class) == min(c for _, c in plain)
    assert min(e * c for e, c in by_class) == min(e * c for e, c in plain)


@pytest.mark.parametrize(
    ("order", "other", "expected"),
    [
        (("P", "Q", "K"), ("Q", "K", "P"), False),  # the input stays, or the weights
        (("R", "S", "C", "P", "Q", "N"), ("C", "R", "S", "P", "K", "N"), True),
        (("K", "P"), ("P", "K"), False),
    ],
)
def test_domination(order: Sequence[str], other: Sequence[str], expected: bool) -> None:
    """An order dominates another where every leading run contains the other's."""
    left, right = (order_effect(CONV, loops, STILL) for loops in (order, other))
    assert left.dominates(right) is expected


def test_a_class_that_slides_dominates_one_that_does_not() -> None:
    """With equal runs the window that keeps its overlap is never worse, and not the other way round."""
    slides = order_effect(CONV, ("N", "C", "K", "P"), SLIDING)
    jumps = OrderClass(slides.permutation, slides.reused, dict.fromkeys(slides.slides))
    assert slides.dominates(jumps)
    assert not jumps.dominates(slides)
