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
EVERY: Final[tuple[Situation, ...]] = tuple(
    (platform, network, batch)
    for platform in ("edge", "cloud")
    for network in ("resnet", "goog")
    for batch in (1, 4, 16, 64)
)
"""Those of networks that the released Tangram takes."""
SIZES: Final = {
    "smoke": {"situations": (("edge", "darknet", 1),), "seconds": 0.1, "annealing": 0.2, "seeds": 3},
    "short": {
        "situations": (*EVERY[:2], *EVERY[4:6], EVERY[8]),
        "seconds": 5.0,
        "annealing": 60.0,
        "seeds": 10,
    },
    "full": {"situations": EVERY, "seconds": 60.0, "annealing": 3600.0, "seeds": 10},
}
"""Of figures 9 and 10, which share their cells: seconds of each search but the published one."""
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


def annealed(study: Study, situation: Situation, seed: int) -> TreeCell:
    """SET as published, with the paper's 100 steps per layer, which end before the size's limit."""
    return cell(situation, "sa", seed, float(study["annealing"]))


def answers(study: Study, cells: Sequence[TreeCell]) -> list[TreeFound]:
    """What the cells come to."""
    return study.cells(TREES, STORE, cells)


def label(situation: Situation) -> str:
    """A situation as readers write it."""
    platform, network, batch = situation
    return f"{NAMES.get(network, network)} x {batch}, {platform}"
