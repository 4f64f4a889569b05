"""Searches for trees as figures of the paper ask for them: cells of `studies.set_cells`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from studies.papers.study import Study
from studies.set_cells import TREES, TreeCell, TreeFound
from studies.set_figures import PLATFORMS

STORE: Final = "cells.sqlite"
Situation = tuple[str, str, int]
"""Platform, network and batch."""
NAMES: Final = {
    "resnet": "ResNet-50",
    "goog": "GoogLeNet",
    "ires": "Inception-ResNet",
    "trans": "Transformer",
}


def cell(situation: Situation, method: str, seed: int, seconds: float, part: Sequence[int] = ()) -> TreeCell:
    """A search of least EDP."""
    platform, network, batch = situation
    return TreeCell(
        network=network,
        part=tuple(part),
        system=PLATFORMS[platform][0],
        figures="program",
        rules="paper",
        batch=batch,
        energy_power=1,
        delay_power=1,
        method=method,
        seed=seed,
        seconds=seconds,
    )


def answers(study: Study, cells: Sequence[TreeCell]) -> list[TreeFound]:
    """What the cells come to."""
    return study.cells(TREES, STORE, cells)


def label(situation: Situation) -> str:
    """A situation as readers write it."""
    platform, network, batch = situation
    return f"{NAMES.get(network, network)} x {batch}, {platform}"
