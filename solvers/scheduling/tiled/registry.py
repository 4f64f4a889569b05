"""Methods that plan one network on a tiled machine, by name.  A new one is a module and a row here."""

from __future__ import annotations

from tilewright.formulation.scheduling.tiled.search import TiledMethod
from tilewright.foundation.extras import LEARNING
from tilewright.foundation.registry import Entry, Registry

_ROOM = "tilewright.heuristics.scheduling.tiled"
_PROOFS = "tilewright.solvers.scheduling.tiled"
_PAPER = "Atomic Dataflow (Zheng et al.)"

METHODS: Registry[TiledMethod] = Registry(
    "--method",
    {
        "auto": Entry(
            f"{_PROOFS}.auto",
            "Auto",
            "Atoms, streams, layouts, trees and chains over one best plan, then neighbourhoods of what leads",
            "docs/tiled-methods.md",
        ),
        "atomic": Entry(
            f"{_ROOM}.atomic",
            "AtomicDataflow",
            "Atoms, their order and their places in turn, then better sizes",
            f"{_PAPER}, sections III and IV",
        ),
        "layouts": Entry(
            f"{_ROOM}.layouts.method",
            "LayoutPlans",
            "Layers shared out over rectangles of engines, the layouts of all layers chosen together",
            "docs/tiled-methods.md",
        ),
        "streams": Entry(
            f"{_ROOM}.streams.method",
            "StreamPlans",
            "Layers read channel by channel run tile by tile, each such stream on as many engines as pay",
            "docs/tiled-methods.md",
        ),
        "ls": Entry(
            f"{_ROOM}.baselines",
            "LayerSequential",
            "One layer after the other, each shared out over all engines",
            f"{_PAPER}, section II-B",
        ),
        "cnn-p": Entry(
            f"{_ROOM}.baselines",
            "CnnPartition",
            "Groups of engines for groups of layers, samples pipelined layer by layer",
            "CNN-Partition (Shen et al.)",
        ),
        "il-pipe": Entry(
            f"{_ROOM}.baselines",
            "InterLayerPipeline",
            "Neighbouring layers on neighbouring regions, pipelined atom by atom",
            "Tangram (Gao et al.)",
        ),
        "rammer": Entry(
            f"{_ROOM}.baselines",
            "RammerLists",
            "Every engine takes the ready atom with the longest way to the end",
            "Rammer (Ma et al.)",
        ),
        "sizes": Entry(
            f"{_PROOFS}.sizes",
            "ChosenSizes",
            "Sizes of atoms by a choice proven over all layers under an estimate",
            "elimination of layers; docs/tiled-methods.md",
        ),
        "lns": Entry(
            f"{_PROOFS}.lns",
            "LargeNeighbourhoods",
            "Sizes of neighbouring layers, places of some rounds, and transfers in turn",
            "large neighbourhood search with CP-SAT",
        ),
        "windows": Entry(
            "tilewright.solvers.scheduling.tiled.placing.method",
            "PlacedWindows",
            "Atomic's plan, the engines of consecutive rounds chosen together by CP-SAT or MIP",
            f"equation 2 of {_PAPER} as a quadratic assignment",
        ),
        "exact": Entry(
            "tilewright.solvers.scheduling.tiled.exact.method",
            "Exact",
            "Order, places and residency of few atoms together, proven over plans in rounds",
            f"CP-SAT; docs/tiled-exact.md, after the rounds of {_PAPER}",
        ),
        "transfers": Entry(
            "tilewright.solvers.scheduling.tiled.exact.transfers",
            "Transfers",
            "What moves when and what stays, for order and places of a plan to begin with, proven",
            "CP-SAT; docs/tiled-exact.md, after SoMa",
        ),
        "set": Entry(
            f"{_ROOM}.set.methods",
            "GrownTrees",
            "Resource allocation trees: grown segments, chained, merged, polished, shaken",
            "SET (Cai et al.), sections 3 and 4",
        ),
        "set-sa": Entry(
            f"{_ROOM}.set.methods",
            "AnnealedTrees",
            "Resource allocation trees by annealing with six operators",
            "SET (Cai et al.), section 4.2",
        ),
        "soma": Entry(
            f"{_ROOM}.set.soma",
            "TwoStages",
            "Order and groups by SET's annealing, then transfers and residencies by annealing",
            "SoMa (Cai et al.)",
        ),
        "set-ls": Entry(
            "tilewright.solvers.scheduling.tiled.set.methods",
            "LayerSequentialTrees",
            "LS chains of segments, the closed form proven",
            "SET (Cai et al.), section 3.4",
        ),
        "set-lp": Entry(
            "tilewright.solvers.scheduling.tiled.set.methods",
            "LayerPipelineTrees",
            "LP chains of segments, the closed form proven; `lp` for short",
            "SET (Cai et al.), section 3.4",
        ),
        "set-all": Entry(
            "tilewright.solvers.scheduling.tiled.set.methods",
            "AllTrees",
            "All trees of a small network, the closed form proven",
            "SET (Cai et al.), section 3.1",
        ),
        "tangram": Entry(
            f"{_ROOM}.kapla.methods",
            "Tangram",
            "Segments of layers side by side, chained by dynamic programming over the network's order",
            "Tangram (Gao et al.), as KAPLA and SET compare with it",
        ),
        "kapla": Entry(
            f"{_ROOM}.kapla.methods",
            "Kapla",
            "Segments side by side or in turn, the best few chains by their least costs, then partitions",
            "KAPLA (Li and Gao), section IV-B",
        ),
        "nn-dataflow": Entry(
            f"{_ROOM}.kapla.approaches",
            "NnDataflow",
            "KAPLA's B: every segment of layers side by side, each layer with its best partition",
            "nn-dataflow (Gao et al.), as KAPLA compares with it",
        ),
        "directives": Entry(
            f"{_ROOM}.kapla.approaches",
            "Directives",
            "KAPLA's S: the same over segments side by side and in turn",
            "KAPLA (Li and Gao), section V",
        ),
        "random": Entry(
            f"{_ROOM}.kapla.approaches",
            "RandomChains",
            "KAPLA's R: a part of the segments, each layer with the best of a part of its partitions",
            "Timeloop's random search, as KAPLA compares with it",
        ),
        "autotvm": Entry(
            f"{_ROOM}.kapla.approaches",
            "LearnedChains",
            "KAPLA's M: every segment, partitions by annealing guided by boosted trees (extra `learning`)",
            "AutoTVM (Chen et al.), as KAPLA compares with it",
            extra=LEARNING,
        ),
        "chains": Entry(
            "tilewright.solvers.scheduling.tiled.kapla.method",
            "ProvenChains",
            "The best chain of such segments by the closed form, proven best-first on their bounds",
            "docs/kapla-segments.md",
        ),
        "cover": Entry(
            "tilewright.solvers.scheduling.tiled.kapla.method",
            "CoveredLayers",
            "The best chain of such segments over all orders, as an exact cover by CP-SAT or MIP",
            "docs/kapla-segments.md",
        ),
    },
    group="tiled_methods",
    synonyms={"lp": "set-lp"},  # the term of papers on tiled machines, next to LS
)
