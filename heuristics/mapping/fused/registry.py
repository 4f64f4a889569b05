"""The heuristics for fused mappings by name, each with its source.  A new one is a module and a row here."""

from __future__ import annotations

from tilewright.formulation.mapping.fused.arena import FusionMethod
from tilewright.foundation.registry import Entry, Registry

FUSION_HEURISTICS: Registry[FusionMethod] = Registry(
    "--solver",
    {
        "greedy": Entry(
            "tilewright.heuristics.mapping.fused.greedy",
            "Greedy",
            "The next layer joins as long as that takes less; loops are cut where it helps most",
            "greedy fusion by depth, as loop fusion of compilers does it",
        ),
        "depth-first": Entry(
            "tilewright.heuristics.mapping.fused.depth_first",
            "DepthFirst",
            "Stacks of layers whose weights fit, cut by tiles of the last one's output alone",
            "DeFiNES (Mei et al., HPCA 2023); fused-layer CNN (Alwani et al., MICRO 2016)",
        ),
        "annealing": Entry(
            "tilewright.heuristics.mapping.fused.annealing",
            "Annealing",
            "Simulated annealing over the trees of every group",
            "Kirkpatrick et al., Science 220, 1983",
        ),
    },
)
