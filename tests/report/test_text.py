"""What people read: quantities, loop nests, tables, formulas, mapping files."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from tilewright.formulation.mapping.mapping import Mapping, Spatial, Storage, Temporal
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.load import list_presets, load_engine
from tilewright.report.records.mapping.mapping_file import StoredMapping, parse_mapping, render_mapping
from tilewright.report.text.mapping.formulas import statement_formulas
from tilewright.report.text.mapping.loop_nest import loop_nest
from tilewright.report.text.quantities import (
    bytes_text,
    energy_text,
    gap_text,
    objective_text,
    percent_text,
    seconds_text,
    si_text,
)
from tilewright.report.text.tables import plain_table, status_text
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (si_text(0), "0"),
        (si_text(999), "999"),
        (si_text(1000), "1.000 k"),
        (si_text(999_960), "1.000 M"),
        (si_text(1_234_567), "1.235 M"),
        (si_text(12.5, "s"), "12.50 s"),
        (si_text(3e22), "3.000e+04 E"),
        (energy_text(0.5), "0.500 pJ"),
        (energy_text(1234), "1.234 nJ"),
        (energy_text(4.84e9), "4.840 mJ"),
        (bytes_text(100, 8), "100 B"),
        (bytes_text(1536, 16), "3 kB"),
        (bytes_text(2**30, 16), "2 GB"),
        (percent_text(0.12345), "12.35 %"),
        (percent_text(1e-9), "<0.01 %"),
        (gap_text(0.0), "0 %"),
        (gap_text(1e-12), "<0.01 %"),
        (gap_text(None), "-"),
        (seconds_text(0.314), "0.31 s"),
        (seconds_text(9.996), "10.0 s"),
        (seconds_text(99.96), "1 min 40 s"),
        (seconds_text(7384), "2 h 03 min"),
        (objective_text(parse_objective("energy"), 5e6), "5.000 µJ"),
        (objective_text(parse_objective("cycles"), 1234567), "1,234,567 cycles"),
        (objective_text(parse_objective("edp"), 10**16), "10.00 kJ·cycle"),
        (objective_text(parse_objective("E^0.5*D"), 1234.5678), "1235"),
        (objective_text(parse_objective("edp"), 10**16, 10**9), "10,000,000 mJ·cycle"),
        (objective_text(parse_objective("energy"), 1_500_000, 10**9), "0.0015 mJ"),
        (objective_text(parse_objective("energy"), 25 * 10**9, 10**9), "25.00 mJ"),
        (str(status_text("optimal", 0.0)), "optimal"),
        (str(status_text("feasible", 0.012)), "feasible, gap 1.20 %"),
        (str(status_text("feasible", None)), "feasible, no bound"),
        (str(status_text("interrupted", 0.5)), "interrupted, gap 50.00 %"),
    ],
)
def test_quantities(shown: str, text: str) -> None:
    """Four digits and a unit; a gap reads as zero only where there is none."""
    assert shown == text


NEST = """\
DRAM   A 32 B   B 16 B   C 16 B
for M in 2 (tile 2)
  GLB    A 32 B
  par K in 3 (tile 3, last 2) on y
    RF     B 6 B   C 4 B
    for M in 2
      for K in 3
        C[m, n] += A[m, k] * B[k, n]
"""


def test_loop_nest_of_an_uneven_imperfect_mapping() -> None:
    """Levels stand where their tiles begin to live; a smaller last tile is told."""
    operator = parse_layer("gemm:M=4,N=1,K=8")[1]
    nodes = (
        Storage("A", "DRAM"),
        Storage("B", "DRAM"),
        Storage("C", "DRAM"),
        Temporal("M", 2),
        Storage("A", "GLB"),
        Spatial("K", 3, "y"),
        Storage("B", "RF"),
        Storage("C", "RF"),
        Temporal("M", 1),
        Temporal("K", 1),
    )
    text = loop_nest(operator, load_engine("eyeriss-168"), Mapping(nodes))
    assert text == NEST.replace("A 32 B   B 16 B   C 16 B", "A 64 B   B 16 B   C 8 B")


def test_a_loop_of_a_level_that_stores_nothing_says_so() -> None:
    """Its level stands behind it, there being no store to tell."""
    operator = parse_layer("gemm:M=4,N=1,K=8")[1]
    stores = [Storage(name, "DRAM") for name in "ABC"]
    nodes = (*stores, Temporal("M", 1), Temporal("K", 2, "GLB"), Temporal("K", 1, "RF"))
    lines = loop_nest(operator, load_engine("eyeriss-168"), Mapping(nodes)).splitlines()
    assert [line.strip() for line in lines[1:4]] == [
        "for M in 4",
        "for K in 4 (tile 2) at GLB",
        "for K in 2 at RF",
    ]


def test_loop_nest_on_buffers_that_share() -> None:
    """A tile is told with the number of buffers that keep it together."""
    engine = load_engine(str(Path(__file__).parents[1] / "data" / "four-nodes.yaml"))
    operator = parse_layer("gemm:M=4,N=8,K=4")[1]
    dram, node, registers = ([Storage(name, level.name) for name in "ABC"] for level in engine.levels)
    inner = [Temporal("N", 1), Temporal("M", 1), Temporal("K", 1)]
    text = loop_nest(operator, engine, Mapping((*dram, Spatial("N", 2, "node"), *node, *inner, *registers)))
    assert "GBUF   A 32 B among 4   B 16 B   C 16 B" in text


def test_deep_nests_stay_narrow() -> None:
    """A nest of many loops is indented by one column, so that it stays within 80."""
    operator = parse_layer("conv:N=16,K=16,C=16,P=16,Q=16,R=3,S=3")[1]
    loops = [Temporal(dim, tile) for tile in (8, 4, 2, 1) for dim in "NKCPQ"]
    stores = [Storage(tensor.name, "DRAM") for tensor in operator.tensors]
    mapping = Mapping((*stores, *loops, Temporal("R", 1), Temporal("S", 1)))
    lines = loop_nest(operator, load_engine("eyeriss-168"), mapping).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[3].startswith("  for C in 2 (tile 8)")


@pytest.mark.parametrize("name", list_presets())
def test_formulas_of_every_machine(name: str) -> None:
    """Formulas fit 80 columns, name their terms, and are cut unless asked for in full."""
    problem = layer_problem(
        parse_layer("conv:K=8,C=8,P=8,Q=8,R=3,S=3")[1], load_engine(name), parse_objective("edp")
    )
    short, full = statement_formulas(problem), statement_formulas(problem, full=True)
    assert max(map(len, short.splitlines())) <= 80
    assert len(short.splitlines()) <= len(full.splitlines())
    for part in ("tile(", "reads(", "cycles = ", "limits"):
        assert part in short
    assert "…" not in full


def test_mapping_file_round_trip(tmp_path: Path) -> None:
    """A rendered mapping is YAML with one line per node, and reads back equal."""
    operator, engine = parse_layer("conv:K=8,C=4,P=4,Q=4,R=3,S=3")[1], load_engine("tpu-edge")
    result = solve(layer_problem(operator, engine, parse_objective("edp")))
    assert result.answer is not None
    stored = StoredMapping("c", result.answer, operator, engine, "hierarchy", "edp", ("cycles<=1e6",))
    path = tmp_path / "c.yaml"
    path.write_text(render_mapping(stored))
    assert parse_mapping(yaml.safe_load(path.read_text()), "c.yaml", tmp_path) == stored
    assert yaml.safe_load(path.read_text())["arch"] == "tpu-edge"
    assert "- {store: I, level: DRAM}" in path.read_text()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ([], "m.yaml: nodes: missing"),
        ({"tilewright": "mapping/2", "nodes": []}, "m.yaml: tilewright: expected mapping/1"),
        ({"nodes": [], "layr": "x"}, "m.yaml: unknown name 'layr', did you mean 'layer'?"),
        ({"nodes": [{"temporal": "M"}]}, "m.yaml: nodes[0]: expected {temporal, tile}"),
        ({"nodes": [], "layer": "gemm:M=0,N=1,K=1"}, "m.yaml: M: expected at least 1, got 0"),
        ({"nodes": [], "arch": "tpu-edgy"}, "tpu-edgy: unknown name 'tpu-edgy', did you mean 'tpu-edge'?"),
    ],
)
def test_malformed_mapping_files(data: object, told: str) -> None:
    """Each mistake is one line with the file and the field."""
    with pytest.raises(InputError) as caught:
        parse_mapping(data, "m.yaml", Path())
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize("width", [80, 60, 40, 24])
def test_narrow_terminals_lose_nothing(width: int) -> None:
    """However narrow, every letter of names and figures is there, and no line is too long."""
    table = plain_table([("layer", "left"), *[(f"column {i}", "right") for i in range(6)]])
    names = [f"conv{i}_1.a_rather_long_name" for i in range(3)]
    for row, name in enumerate(names):
        table.add_row(name, *[f"{row}{i}.123 µJ" for i in range(6)])
    stream = io.StringIO()
    Console(file=stream, width=width).print(table)
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    figures = [f"{row}{i}.123 µJ" for row in range(3) for i in range(6)]
    assert [stream.getvalue().count(figure) for figure in figures] == [1] * 18
    folded = "".join(line.split(" ")[0] for line in lines)
    assert all(name in folded for name in names)


def test_a_folded_name_keeps_its_figures_beside_it() -> None:
    """A name that is too long goes on in the next line, with the figures in the first one."""
    table = plain_table([("layer", "left"), ("energy", "right")])
    table.add_row("a" * 100, "1.234 mJ")
    stream = io.StringIO()
    Console(file=stream, width=40).print(table)
    _, first, *others = stream.getvalue().splitlines()
    assert first.endswith("1.234 mJ")
    assert sum(line.count("a") for line in (first, *others)) == 100
