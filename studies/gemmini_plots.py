"""Plots of the latency model of Gemmini's runs against what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt

from tilewright.foundation.arrays import Floats

if TYPE_CHECKING:
    from studies.gemmini import Judged, Measured


def draw(rows: Measured, before: Floats, after: Floats, judged: Sequence[Judged], folder: Path) -> None:
    """Two pictures in a folder: predicted over measured cycles, and regrets of all layers.

    Parameters
    ----------
    rows : measured runs
    before, after : cycles predicted without constants, and by fits that never saw the row's layer
    judged : layers with enough mappings
    folder : that gets ``gemmini-scatter.svg`` and ``gemmini-regret.svg``
    """
    figure, panels = plt.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True)
    for panel, predicted, title in zip(
        panels, (before, after), ("before calibration", "layers left out"), strict=True
    ):
        panel.loglog(rows.cycles, predicted, ".", markersize=3, alpha=0.6)
        ends = [rows.cycles.min(), rows.cycles.max()]
        panel.loglog(ends, ends, linewidth=0.8, color="black")
        panel.set(title=title, xlabel="measured cycles", ylabel="predicted cycles")
    figure.tight_layout()
    figure.savefig(folder / "gemmini-scatter.svg")
    figure, panel = plt.subplots(figsize=(9, 4))
    names = [" ".join(map(str, each.layer[1:])) for each in judged]
    panel.bar(range(len(judged)), [each.regret for each in judged])
    panel.set_xticks(range(len(judged)), names, rotation=90, fontsize=6)
    panel.axhline(1, linewidth=0.8, color="black")
    panel.set(ylabel="regret", title="cycles of the mapping predicted fastest over the least cycles measured")
    figure.tight_layout()
    figure.savefig(folder / "gemmini-regret.svg")
