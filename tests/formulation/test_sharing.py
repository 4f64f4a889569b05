"""Buffer sharing: a worked example, and what sharing changes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import hierarchies, mappings, operators

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.directives import (
    Directives,
    TensorTile,
    access_counts,
    parse_directives,
    write_directives,
)
from tilewright.formulation.mapping.evaluator import Access, Evaluation, evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping, Node, Spatial, Storage, Temporal
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import ArrayAxis, Dma, Engine, Fanout, MemoryLevel
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import gemm

HIERARCHY = cost_model("hierarchy")
GEMM = gemm(m=3, n=8, k=5)


def nodes(sharing: bool, capacity: int = 100, multicast: bool = False) -> Engine:
    """DRAM, four node buffers that may share, and a register file in each node."""
    hop_energy = Fraction(3) if sharing else Fraction(0)
    fan = Fanout((ArrayAxis("node", 4),), Fraction(2), multicast, True, sharing, hop_energy)
    unit = Fraction(1)
    return Engine(
        "nodes",
        "hierarchy",
        16,
        unit,
        Fraction(500),
        (
            MemoryLevel("DRAM", None, Fraction(100), Fraction(100), fanout=fan),
            MemoryLevel("GBUF", capacity, Fraction(6), Fraction(6)),
            MemoryLevel("REG", 3, unit, unit),
        ),
    )


def stored(level: str) -> list[Node]:
    return [Storage(tensor.name, level) for tensor in GEMM.tensors]


NODES_OVER_N = Mapping(
    (
        *stored("DRAM"),
        Spatial("N", 2, "node"),
        *stored("GBUF"),
        Temporal("N", 1),
        Temporal("M", 1),
        Temporal("K", 1),
        *stored("REG"),
    )
)
"""Every node computes two columns; all four read the whole of A (3 x 5), twice."""


def evaluated(engine: Engine, mapping: Mapping = NODES_OVER_N, operator: Operator = GEMM) -> Evaluation:
    return evaluate_mapping(operator, engine, HIERARCHY, mapping)


def row(evaluation: Evaluation, level: str, tensor: str) -> Access:
    return next(access for access in evaluation.accesses if (access.level, access.tensor) == (level, tensor))


def test_four_nodes_share_an_input_tile() -> None:
    """A quarter of the tile in each buffer, one fill of all four, three quarters of all reads as hops."""
    alone, together = evaluated(nodes(sharing=False)), evaluated(nodes(sharing=True))
    assert row(alone, "GBUF", "A") == Access("GBUF", "A", reads=120, fills=60, updates=0, tile=15)
    assert row(together, "GBUF", "A") == Access("GBUF", "A", reads=120, fills=15, updates=0, tile=4, hops=90)
    assert (row(alone, "DRAM", "A").reads, row(together, "DRAM", "A").reads) == (60, 15)
    for tensor in ("B", "C"):  # every node has columns of its own
        assert row(together, "GBUF", tensor) == row(alone, "GBUF", tensor)
    saved = (60 - 15) * (100 + 2 + 6)  # DRAM reads, deliveries, fills
    assert together.energy == alone.energy - saved + 90 * 3
    assert together.components["GBUF sharing"] == 270
    assert together.details["GBUF shared hops"] == 90


def test_a_part_fits_where_the_tile_does_not() -> None:
    """Capacity is held against ceil(15 / 4) elements of A, 10 of B and 6 of C."""
    assert evaluated(nodes(True, 20)).violations == ()
    for short in (nodes(True, 19), nodes(False, 30)):
        (violation,) = evaluated(short).violations
        assert violation.startswith("capacity of GBUF")
    assert evaluated(nodes(False, 31)).violations == ()


def test_idle_nodes_keep_their_part() -> None:
    """Three of four columns of nodes: the ring has three buffers, the last one works on fewer columns."""
    mapping = Mapping(
        (
            *stored("DRAM"),
            Spatial("N", 3, "node"),
            *stored("GBUF"),
            Temporal("N", 1),
            Temporal("M", 1),
            Temporal("K", 1),
            *stored("REG"),
        )
    )
    access = row(evaluated(nodes(sharing=True), mapping), "GBUF", "A")
    assert (access.tile, access.fills) == (5, 15)
    assert access.reads == (3 + 3 + 2) * 15
    assert access.hops == (3 - 1) * 3 * 15  # as often as the first buffer needs it


def without_sharing(engine: Engine) -> Engine:
    levels = (
        replace(level, fanout=level.fanout and replace(level.fanout, sharing=False))
        for level in engine.levels
    )
    return replace(engine, levels=tuple(levels))


@settings(max_examples=effort(80))
@given(st.data())
def test_what_sharing_changes(data: st.DataObject) -> None:
    """Of n buffers that share, each holds an n-th; outer reads never grow; with perfect factors a read in n
    finds its element at home; outputs, and reads by the inside, are as they were.
    """
    operator, engine = data.draw(operators(most=64)), data.draw(hierarchies(roomy=True, sharing=True))
    mapping = data.draw(mappings(operator, engine))
    together, alone = (
        evaluated(engine, mapping, operator),
        evaluated(without_sharing(engine), mapping, operator),
    )
    shares = {
        (line.level, line.name): line.share
        for line in Directives.of(operator, mapping, engine).lines
        if isinstance(line, TensorTile)
    }
    for row, other in zip(together.accesses, alone.accesses, strict=True):
        share = shares[row.level, row.tensor]
        assert row.tile == -(-other.tile // share)
        assert share * row.hops == (share - 1) * row.reads or row.reads != other.reads
        assert row.fills * share == other.fills
        assert row.reads <= other.reads
        assert row.updates == other.updates
        if row.tensor == operator.output.name:
            assert row == other


@settings(max_examples=effort(120))
@given(st.data())
def test_directives_tell_the_same(data: st.DataObject) -> None:
    """On random machines with sharing: text and back, and sizes, accesses and hops as evaluated."""
    operator, engine = data.draw(operators(most=64)), data.draw(hierarchies(roomy=True, sharing=True))
    mapping = data.draw(mappings(operator, engine, data.draw(st.booleans()), data.draw(st.booleans())))
    directives = parse_directives(write_directives(Directives.of(operator, mapping, engine)))
    assert directives == Directives.of(operator, mapping, engine)
    assert directives.mapping(engine=engine) == mapping
    try:
        evaluation = evaluated(engine, mapping, operator)
    except InputError:
        return
    rows = {(access.level, access.tensor): access for access in evaluation.accesses}
    assert {(count.level, count.tensor): count for count in access_counts(directives, engine)} == rows


def test_shr_is_written_and_checked() -> None:
    """KAPLA's sharing factor stands behind the sizes, and must be the machine's."""
    engine = nodes(sharing=True)
    text = write_directives(Directives.of(GEMM, NODES_OVER_N, engine))
    assert "  tensor A(M=3, K=5, shr=4)\n" in text
    assert parse_directives(text).mapping(engine=engine) == NODES_OVER_N
    for read, machine, message in [
        (text, None, "shr=4, expected 1 unless a machine shares it"),
        (text, nodes(sharing=False), "shr=4, expected 1 on nodes"),
        (text.replace("shr=4", "shr=2"), engine, "tensor A in GBUF: shr=2, expected 4 on nodes"),
        (text.replace(", shr=4", ""), engine, "shr=1, expected 4"),
    ]:
        with pytest.raises(InputError, match=message):
            parse_directives(read).mapping(engine=machine)


def test_the_dmazerunner_model_knows_no_sharing() -> None:
    """It says so rather than ignoring it."""
    fan = Fanout((ArrayAxis("x", 4),), sharing=True)
    levels = [MemoryLevel(name, 8, Fraction(1), Fraction(1)) for name in ("DRAM", "SPM", "RF")]
    levels[1] = replace(levels[1], fanout=fan)
    dma = Dma(Fraction(1), Fraction(1), Fraction(1))
    engine = Engine("e", "hierarchy", 16, Fraction(1), Fraction(500), tuple(levels), dma)
    cost_model("dmazerunner").check(GEMM, without_sharing(engine))
    with pytest.raises(InputError, match="no buffer sharing"):
        cost_model("dmazerunner").check(GEMM, engine)
