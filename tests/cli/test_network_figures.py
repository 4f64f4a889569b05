"""``map`` and ``show`` print the figures of a whole network."""

from __future__ import annotations

from pathlib import Path

from calls import Call


def test_show_has_totals_energy_and_roofline(call: Call, tmp_path: Path) -> None:
    """A document of two layers: totals, a table by level and tensor, the roof."""
    net, result = tmp_path / "net.yaml", tmp_path / "r.json"
    net.write_text('- "gemm:M=8,N=8,K=8"\n- "gemm:M=1,N=16,K=64"\n')
    mapped = call("map", net, "--arch", "eyeriss-256", "-q", "--out", result)
    assert mapped.code == 0
    shown = call("show", result).out
    words = ("total: energy", "cycles", "MHz", "weights", "share", "roofline", "MAC/B", "limit")
    for word in (*words, "peak 256 MAC/cycle"):
        assert word in shown, word
    rows = shown.rpartition("roofline")[2].splitlines()[1:3]
    assert min(float(row.split()[1]) for row in rows) < 1  # all in MAC/B, whatever their size
    table = call("map", net, "--arch", "eyeriss-256", "-q").out
    assert "total: energy" in table
    header = call("map", net, "--arch", "eyeriss-256", "-q", "--format", "csv").out.splitlines()[0]
    assert header.endswith("energy_pj.RF.outputs,energy_pj.other")
