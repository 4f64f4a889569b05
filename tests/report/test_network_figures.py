"""Energy of a network by level and tensor, totals and the roofline: they add up to what the document says."""

from __future__ import annotations

import csv
import io

import pytest

import tilewright as tw

LAYERS = """\
- {name: conv, layer: "conv:K=8,C=4,P=6,Q=6,R=3,S=3", count: 3}
- {name: product, layer: "matmul:B=2,M=8,N=8,K=4"}
- {name: row, layer: "gemm:M=1,N=16,K=64"}
"""


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> tw.MappingDocument:
    """A network of three layers, one of them three times, mapped for least energy."""
    path = tmp_path_factory.mktemp("network") / "net.yaml"
    path.write_text(LAYERS)
    return tw.solve(tw.network(path).on("eyeriss-256"), stop=tw.seconds(60), threads=1)


def test_parts_add_up(mapped: tw.MappingDocument) -> None:
    """Rows add up to the network's energy, their shares to one, a level's roles to its layers' figures."""
    rows = mapped.energy_rows()
    assert mapped.energy_pj is not None
    assert sum(row["energy_pj"] for row in rows) == pytest.approx(float(mapped.energy_pj), rel=1e-9)
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    outermost = sum(row["energy_pj"] for row in rows if row["component"] == "DRAM")
    parts = [
        layer.record.count * layer.record.metrics.energy_by_component_pj["DRAM"]
        for layer in mapped
        if layer.record.metrics is not None
    ]
    assert outermost == pytest.approx(float(sum(parts)), rel=1e-9)
    assert {row["role"] for row in rows if row["component"] == "DRAM"} == {"inputs", "weights", "outputs"}


def test_columns_of_a_table_add_up(mapped: tw.MappingDocument) -> None:
    """In each line of the CSV the columns by level and tensor are the layer's energy."""
    rows = list(csv.DictReader(io.StringIO(mapped.to_text("csv"))))
    assert [row["name"] for row in rows] == ["conv", "product", "row"]
    for row in rows:
        parts = [float(cell) for name, cell in row.items() if name.startswith("energy_pj.")]
        assert sum(parts) == pytest.approx(float(row["energy_pj"]), rel=1e-9)
    assert {"energy_pj.DRAM.inputs", "energy_pj.RF.outputs", "energy_pj.other"} <= set(rows[0])


def test_no_layer_is_above_its_roof(mapped: tw.MappingDocument) -> None:
    """What a layer does per cycle is below the roof; a product of one row is limited by DRAM."""
    points = mapped.roofline_rows()
    assert [point["name"] for point in points] == ["conv", "product", "row"]
    assert all(point["macs_per_cycle"] <= point["roof"] * (1 + 1e-9) for point in points)
    row = points[-1]
    assert row["limit"] == "DRAM"
    assert row["intensity"] == pytest.approx(16 * 64 / (2 * (64 + 16 * 64 + 16)))
    assert row["roof"] == pytest.approx(row["intensity"] * 32)


def test_text_shows_them(mapped: tw.MappingDocument) -> None:
    """The document's text has totals with units and the energy by level."""
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=100).print(*mapped.views())
    text = out.getvalue()
    assert "total: energy" in text
    assert "at 1000 MHz" in text
    assert "DRAM" in text.partition("share")[2]
