"""``show`` and ``doctor`` tell what of a machine is unusual."""

from __future__ import annotations

import json
from pathlib import Path

from calls import Call

MACHINE = """\
cost_model: hierarchy
clock_mhz: 1000
compute: {mac_energy: 1, element_bits: 16}
levels:
  - {name: DRAM, energy: 200, bandwidth: BUS}
  - {name: GLB, capacity: 64 kB, energy: 6, fanout: {axes: [{name: x, size: 64}], energy: 1}}
  - {name: RF, elements: 64, energy: 1}
"""


def test_show_and_doctor_tell(call: Call, tmp_path: Path) -> None:
    """Both verbs print the sentences of a machine's file; its results do not change, nor the exit code."""
    path = tmp_path / "machine.yaml"
    path.write_text(MACHINE.replace("BUS", "16 GB/s"))
    shown, looked = call("show", path), call("doctor", path)
    assert (shown.code, looked.code) == (0, 0)
    assert "bandwidth: {shared: 16 GB/s}" in " ".join(shown.err.split())
    assert "bandwidth: {shared: 16 GB/s}" in " ".join(looked.out.split())
    assert len(json.loads(call("doctor", path, "--format", "json").out)["unusual"]) == 1
    path.write_text(MACHINE.replace("BUS", "{shared: 16 GB/s}"))
    assert "nothing unusual" in " ".join(call("doctor", path).out.split())
    assert call("doctor", "nvdla-265").code == 2
