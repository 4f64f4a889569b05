"""The ``hierarchy`` cost model against a simulator that walks through the nest."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import hierarchies, mappings, operators, sizes
from simulator import Simulation, cycles, energy, simulate

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import Evaluation, evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping, Spatial, Storage, Temporal
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.mapping.operators import conv2d, gemm

HIERARCHY = cost_model("hierarchy")
PLAIN = ("conv", "depthwise", "gemm", "matmul", "pool", "elementwise", "nest")


@st.composite
def cases(
    draw: st.DrawFn, uneven: bool, perfect: bool = True, sharing: bool = False
) -> tuple[Operator, Engine, Mapping]:
    operator = draw(operators(kinds=PLAIN, most=48))
    engine = draw(hierarchies(roomy=True, sharing=sharing))
    return operator, engine, draw(mappings(operator, engine, uneven, perfect))


def both(case: tuple[Operator, Engine, Mapping]) -> tuple[Evaluation, Simulation]:
    operator, engine, mapping = case
    return evaluate_mapping(operator, engine, HIERARCHY, mapping), simulate(operator, engine, mapping)


@settings(max_examples=effort(60))
@given(cases(uneven=False))
def test_counts_of_even_mappings_are_those_of_a_walk_through_the_nest(
    case: tuple[Operator, Engine, Mapping],
) -> None:
    """Reads, fills, updates and tiles of every tensor at every level equal the simulator's."""
    _compare(case)


@settings(max_examples=effort(60))
@given(cases(uneven=True))
def test_counts_of_uneven_mappings_are_those_of_a_walk_through_the_nest(
    case: tuple[Operator, Engine, Mapping],
) -> None:
    """The same where tensors begin to live anywhere, bypass levels, and dimensions are cut repeatedly."""
    _compare(case)


@settings(max_examples=effort(60))
@given(cases(uneven=True, perfect=False))
def test_counts_of_imperfect_mappings_are_those_of_a_walk_through_the_nest(
    case: tuple[Operator, Engine, Mapping],
) -> None:
    """The same where the last tile of a loop is smaller and the last instances of an array do less."""
    _compare(case)


def _compare(case: tuple[Operator, Engine, Mapping]) -> None:
    evaluation, walked = both(case)
    for row in evaluation.accesses:
        counts = walked.counts[row.level, row.tensor].totals
        assert (row.reads, row.fills, row.updates, row.tile, row.hops) == counts, (
            f"{row.tensor} at {row.level}"
        )


@settings(max_examples=effort(60))
@given(st.booleans().flatmap(lambda perfect: cases(uneven=False, perfect=perfect)))
def test_energy_and_cycles_follow_from_the_walk(case: tuple[Operator, Engine, Mapping]) -> None:
    """Simulated accesses and hops times unit energies are the energy; simulated ports give the cycles."""
    _compare_energy_and_cycles(case)


@settings(max_examples=effort(60))
@given(
    st.tuples(st.booleans(), st.booleans()).flatmap(
        lambda flags: cases(uneven=flags[0], perfect=flags[1], sharing=True)
    )
)
def test_buffers_that_share_are_counted_as_by_a_walk_through_the_nest(
    case: tuple[Operator, Engine, Mapping],
) -> None:
    """Accesses, parts of tiles and hops of even and uneven, perfect and imperfect mappings."""
    _compare(case)


@settings(max_examples=effort(60))
@given(st.booleans().flatmap(lambda perfect: cases(uneven=False, perfect=perfect, sharing=True)))
def test_energy_and_cycles_of_buffers_that_share_follow_from_the_walk(
    case: tuple[Operator, Engine, Mapping],
) -> None:
    """Hops between neighbours cost energy; a ring's buffers are filled side by side."""
    _compare_energy_and_cycles(case)


def _compare_energy_and_cycles(case: tuple[Operator, Engine, Mapping]) -> None:
    operator, engine, _ = case
    evaluation, walked = both(case)
    assert evaluation.energy == energy(engine, operator, walked)
    assert evaluation.cycles == cycles(engine, operator, walked)


@settings(max_examples=effort(36))
@given(st.data())
def test_written_partial_sums_of_transposed_convolutions_are_those_of_a_walk(data: st.DataObject) -> None:
    """Output tiles that overlap come and go as other tiles do; every other tensor is counted as ever."""
    operator = data.draw(operators(kinds=["tconv"], most=48))
    engine = data.draw(hierarchies(roomy=True))
    mapping = data.draw(mappings(operator, engine, perfect=data.draw(st.booleans())))
    evaluation, walked = both((operator, engine, mapping))
    for row in evaluation.accesses:
        reads, fills, updates, tile, _ = walked.counts[row.level, row.tensor].totals
        assert (row.updates, row.tile) == (updates, tile)
        if row.tensor == "O":
            drained = next(level.timing.drained for level in engine.levels if level.name == row.level)
            arrived = walked.counts[row.level, row.tensor].arrived.total() if drained else 0
            assert arrived <= row.reads <= row.updates + arrived
        else:
            assert (row.reads, row.fills) == (reads, fills)


HALOS = (
    "O[i] += A[i+j] * B[j]",
    "O[i] += A[{a}*i+{b}*j] * B[j]",
    "O[i,k] += A[{a}*i+{b}*j,k] * B[j]",
    "O[i,j] += A[i+{a}*j+k] * B[k]",
    "O[i,j] += A[{a}*i+{b}*j+{c}*k] * B[k]",
    "O[i] += A[{a}*i] * B[i]",
    "O[i,j] += A[{a}*i,{b}*j+k] * B[k]",
    "O[{a}*i,j] += A[i,k] * B[k,j]",
)
"""Windows of two and three loops, with strides and dilations, and single loops with a stride."""


@st.composite
def halos(draw: st.DrawFn) -> tuple[Operator, Engine, Mapping]:
    """Windows spread over several arrays, with stores that may be left out between them."""
    strides = dict(zip("abc", draw(st.tuples(*[st.integers(1, 4)] * 3)), strict=True))
    line = draw(st.sampled_from(HALOS)).format(**strides)
    names = sorted({char for char in line if char in "ijk"})
    bounds = draw(sizes(len(names), 64, (2, 3, 4, 5, 6, 7, 8) if len(names) == 2 else (1, 2, 3, 4, 5)))
    operator = nest(line, bounds=dict(zip(names, bounds, strict=True)))
    engine = draw(hierarchies(roomy=True, arrays=True))
    return operator, engine, draw(mappings(operator, engine, draw(st.booleans()), draw(st.booleans())))


@settings(max_examples=effort(48))
@given(halos())
def test_windows_over_several_arrays_are_counted_as_by_a_walk_through_the_nest(
    case: tuple[Operator, Engine, Mapping],
) -> None:
    """Tiles that coincide among the instances of several arrays are shared, whatever lies between them."""
    _compare(case)


@settings(max_examples=effort(30))
@given(halos())
def test_energy_and_cycles_of_windows_over_several_arrays_follow_from_the_walk(
    case: tuple[Operator, Engine, Mapping],
) -> None:
    """Networks, ports that hide and that do not, first fills past stores that are left out."""
    _compare_energy_and_cycles(case)


@pytest.mark.parametrize("line", ["O[i,j] += A[i,i+j] * B[j]", "O[i,j] += A[i,i] * B[j]"])
def test_a_loop_on_two_axes_of_a_tensor_moves_it_once(line: str) -> None:
    """A diagonal is fetched tile by tile along its one loop."""
    operator = nest(line, bounds={"i": 4, "j": 2})
    level = MemoryLevel("L0", None, Fraction(1), Fraction(1))
    engine = Engine(
        "e", "hierarchy", 16, Fraction(1), Fraction(1), (level, replace(level, name="L1", capacity=99))
    )
    outer = [Storage(name, "L0") for name in "ABO"]
    inner = [Storage(name, "L1") for name in "ABO"]
    _compare((operator, engine, Mapping((*outer, Temporal("i", 1), *inner, Temporal("j", 1)))))


@settings(max_examples=effort(36))
@given(st.data())
def test_diagonals_are_counted_tile_by_tile(data: st.DataObject) -> None:
    """Perfect tiles are counted as a walk does; of imperfect ones the largest stands for all."""
    operator = nest("O[i,j] += A[i,i+j] * B[j]", bounds=dict(zip("ij", data.draw(sizes(2, 30)), strict=True)))
    engine = data.draw(hierarchies(roomy=True))
    _compare((operator, engine, data.draw(mappings(operator, engine))))
    evaluation, walked = both((operator, engine, data.draw(mappings(operator, engine, perfect=False))))
    for row in evaluation.accesses:
        reads, fills, _, _, _ = walked.counts[row.level, row.tensor].totals
        assert row.reads >= reads
        assert row.fills >= fills


def test_arrays_of_two_levels_share_what_coincides_between_them() -> None:
    """P spread over the outer array, R over the inner one, the input kept in registers alone.

    Twelve instances need six different elements, whether a level without loops lies between the arrays or
    not: a search leaves that open, an evaluation knows it.
    """
    operator = conv2d(k=1, c=1, p=4, q=1, r=3, s=1)
    kept = frozenset({Role.WEIGHT, Role.OUTPUT})
    unit, array = Fraction(1), Fanout((ArrayAxis("x", 4),))
    engine = Engine(
        "e",
        "hierarchy",
        16,
        unit,
        unit,
        (
            MemoryLevel("L0", None, Fraction(10), unit, fanout=array),
            MemoryLevel("L1", 99, unit, unit, keeps=kept, fanout=Fanout((ArrayAxis("y", 3),))),
            MemoryLevel("L2", 99, unit, unit),
        ),
    )
    problem = layer_problem(operator, engine, parse_objective("energy"), constraints=["cycles<=1"])
    for name in ("exhaustive", "branch"):
        result = solve(problem, name)
        assert result.status is Status.OPTIMAL
        assert result.evaluation is not None
        reads = {(row.level, row.tensor): row.reads for row in result.evaluation.accesses}
        assert reads["L0", "I"] == 6


def _levels(multicast: bool = True) -> Engine:
    """DRAM, a buffer that may be left out, an array of four, registers that are filled in the background."""
    unit, array = Fraction(1), Fanout((ArrayAxis("x", 4),), multicast=multicast)
    return Engine(
        "e",
        "hierarchy",
        16,
        unit,
        unit,
        (
            MemoryLevel(
                "L0", None, unit, unit, read_bandwidth=Fraction(1, 10), write_bandwidth=Fraction(1, 5)
            ),
            MemoryLevel(
                "L1",
                999,
                unit,
                unit,
                read_bandwidth=unit,
                write_bandwidth=unit,
                may_bypass=frozenset(Role),
                fanout=array,
            ),
            MemoryLevel("L2", 999, unit, unit, double_buffered=True),
        ),
    )


INNER = Temporal("N", 1), Temporal("K", 1)


@pytest.mark.parametrize(("multicast", "copies"), [(True, 1), (False, 4)])
def test_the_first_fill_reads_a_tile_for_every_instance_that_multicast_does_not_serve(
    multicast: bool, copies: int
) -> None:
    """Four PEs begin with the same weights: 6 of them, or 24; their 4 x 3 inputs differ."""
    operator = gemm(m=4, n=2, k=3)
    stores = [[Storage(name, level) for name in "ABC"] for level in ("L0", "L1", "L2")]
    mapping = Mapping((*stores[0], *stores[1], Spatial("M", 1, "x"), *stores[2], *INNER))
    evaluation = evaluate_mapping(operator, _levels(multicast), HIERARCHY, mapping)
    filled, drained = 4 * 3 + copies * 6, 8
    outside = (
        10 * (12 + 6) + 5 * 0
    )  # L1 is no double buffer: what DRAM sends, reads of A and B, is waited for
    assert evaluation.details["L0 transfer cycles"] == outside
    assert evaluation.cycles == outside + max(6, evaluation.details["L1 transfer cycles"]) + filled + drained


def test_the_first_fill_comes_from_the_store_outside_of_each_tensor() -> None:
    """Weights that bypass the buffer come from DRAM, at its pace, beside the inputs from the buffer."""
    operator = gemm(m=4, n=2, k=3)
    kept = [Storage(name, "L1") for name in "AC"]
    stores = [[Storage(name, level) for name in "ABC"] for level in ("L0", "L2")]
    mapping = Mapping((*stores[0], *kept, Spatial("M", 1, "x"), *stores[1], *INNER))
    evaluation = evaluate_mapping(operator, _levels(), HIERARCHY, mapping)
    hidden = max(6, 10 * 6, 12 + 0)  # compute; DRAM's weights; the buffer's inputs
    waited = 10 * 12  # DRAM's inputs, into a buffer that is no double buffer
    assert evaluation.cycles == hidden + waited + max(12, 10 * 6) + 8


def test_a_strided_loop_alone_moves_what_its_tile_spans() -> None:
    """As a convolution with a filter of one does: a tile of 4 rows with stride 2 spans 7, read twice 14."""
    unit = Fraction(1)
    levels = tuple(MemoryLevel(name, None, unit, unit) for name in ("L0", "L1"))
    engine = Engine("e", "hierarchy", 16, unit, unit, levels)
    window = conv2d(k=1, c=1, p=8, q=1, r=1, s=1, stride=2)
    alone = nest("O[i] += A[2*i] * B[i]", bounds={"i": 8})
    for operator, dim, name in ((window, "P", "I"), (alone, "i", "A")):
        nodes = [[Storage(tensor.name, level) for tensor in operator.tensors] for level in ("L0", "L1")]
        loops = Temporal(dim, 4), Temporal(dim, 1)
        case = operator, engine, Mapping((*nodes[0], loops[0], *nodes[1], loops[1]))
        _compare(case)
        rows = {(row.level, row.tensor): row for row in both(case)[0].accesses}
        assert (rows["L1", name].tile, rows["L1", name].fills, rows["L0", name].reads) == (7, 14, 14)


SWAPPED = {"P": "Q", "Q": "P", "R": "S", "S": "R"}


def _turned(mapping: Mapping) -> Mapping:
    """The mapping with rows and columns exchanged."""
    return Mapping(
        tuple(
            replace(node, dim=SWAPPED.get(node.dim, node.dim))
            if isinstance(node, Temporal | Spatial)
            else node
            for node in mapping.nodes
        )
    )


@settings(max_examples=effort(30))
@given(st.data())
def test_rows_and_columns_are_counted_alike(data: st.DataObject) -> None:
    """P with R and Q with S exchanged in layer and mapping: the same accesses, energy and cycles."""
    n, k, c, p, q, r, s = data.draw(sizes(7, 96))
    stride, dilation = data.draw(st.tuples(*[st.tuples(st.integers(1, 3), st.integers(1, 2))] * 2))
    convolution = conv2d(n=n, k=k, c=c, p=p, q=q, r=r, s=s, stride=stride, dilation=dilation)
    other = conv2d(n=n, k=k, c=c, p=q, q=p, r=s, s=r, stride=stride[::-1], dilation=dilation[::-1])
    engine = data.draw(hierarchies(roomy=True, arrays=data.draw(st.booleans())))
    levels = [
        replace(
            level,
            fanout=level.fanout
            and replace(level.fanout, axes=tuple(replace(a, carries=None) for a in level.fanout.axes)),
        )
        for level in engine.levels
    ]
    engine = replace(engine, levels=tuple(levels))
    mapping = data.draw(mappings(convolution, engine, data.draw(st.booleans()), data.draw(st.booleans())))
    evaluation = evaluate_mapping(convolution, engine, HIERARCHY, mapping)
    turned = evaluate_mapping(other, engine, HIERARCHY, _turned(mapping))
    assert turned.accesses == evaluation.accesses
    assert (turned.energy, turned.cycles) == (evaluation.energy, evaluation.cycles)


@pytest.mark.parametrize("dim", ["P", "Q"])
def test_a_window_keeps_its_overlap_across_loops_that_leave_it_in_place(dim: str) -> None:
    """A loop over output channels inside one over rows, or over columns: 4 rows first, then 2 new ones."""
    size = {"p": 1, "q": 1, "r": 1, "s": 1} | {dim.lower(): 4, "r" if dim == "P" else "s": 3}
    operator = conv2d(k=2, c=1, **size)
    unit = Fraction(1)
    outer = MemoryLevel("L0", None, unit, unit)
    engine = Engine("e", "hierarchy", 16, unit, unit, (outer, replace(outer, name="L1", sliding_window=True)))
    stores = [[Storage(name, level) for name in "IWO"] for level in ("L0", "L1")]
    outside = Temporal(dim, 2), Temporal("K", 1)
    inside = Temporal(dim, 1), Temporal("R" if dim == "P" else "S", 1)
    case = operator, engine, Mapping((*stores[0], *outside, *stores[1], *inside))
    _compare(case)
    reads = {(row.level, row.tensor): row.reads for row in both(case)[0].accesses}
    assert reads["L0", "I"] == 4 + 2
