"""The heuristics for one layer by name, each with its source.  A new one is a module and a row here."""

from __future__ import annotations

from tilewright.formulation.mapping.search import LayerMethod
from tilewright.foundation.extras import LEARNING
from tilewright.foundation.registry import Entry, Registry

HEURISTICS: Registry[LayerMethod] = Registry(
    "--solver",
    {
        "dmazerunner": Entry(
            "tilewright.heuristics.mapping.dmazerunner.method",
            "DMazeRunnerSearch",
            "All valid tilings that pruning heuristics leave, with every loop order of unique reuse",
            "dMazeRunner (Dave et al., ACM TECS 18(5s), 2019), algorithms 1 and 2, OPT1 to OPT5",
        ),
        "kapla": Entry(
            "tilewright.heuristics.mapping.kapla",
            "Kapla",
            "Stacking and caching from the PEs outwards by cost descent, level by level",
            "KAPLA (Li and Gao), algorithm 1",
        ),
        "soc": Entry(
            "tilewright.heuristics.mapping.dataflows",
            "SingleOutputChannel",
            "Fixed dataflow: output-stationary, one output channel over the array",
            "dMazeRunner, section 6 (Oy|Ox), after ShiDianNao (ISCA 2015)",
        ),
        "moc": Entry(
            "tilewright.heuristics.mapping.dataflows",
            "MultipleOutputChannels",
            "Fixed dataflow: output-stationary, several output channels over the array",
            "dMazeRunner, section 6 (Oy|Ox), after Gupta et al. (ICML 2015)",
        ),
        "ws1": Entry(
            "tilewright.heuristics.mapping.dataflows",
            "WeightStationary",
            "Fixed dataflow: weight-stationary, filter positions and channels over the array",
            "dMazeRunner, section 6 (Fy|Fx)",
        ),
        "ws2": Entry(
            "tilewright.heuristics.mapping.dataflows",
            "CoarseWeightStationary",
            "Fixed dataflow: weight-stationary, output and input channels over the array",
            "dMazeRunner, section 6 (M|C), after the TPU (ISCA 2017)",
        ),
        "rs": Entry(
            "tilewright.heuristics.mapping.dataflows",
            "RowStationary",
            "Fixed dataflow: row-stationary, output rows and filter rows over the array",
            "dMazeRunner, section 6 (Oy|Fy), after Eyeriss (ISCA 2016)",
        ),
        "gemmini-auto": Entry(
            "tilewright.heuristics.mapping.gemmini_auto",
            "GemminiAuto",
            "The tiling that Gemmini's library takes by itself, on the machine gemmini",
            "include/gemmini.h of ucb-bar/gemmini-rocc-tests at 928aba8c",
        ),
        "autotvm": Entry(
            "tilewright.heuristics.mapping.autotvm",
            "AutoTvm",
            "Annealing guided by boosted trees proposes the mappings that are measured (extra `learning`)",
            "AutoTVM (Chen et al., NeurIPS 2018), as KAPLA compares with it",
            extra=LEARNING,
        ),
        "random": Entry(
            "tilewright.heuristics.mapping.random_search",
            "RandomSearch",
            "Random mappings until none has been better for a while",
            "Timeloop (Parashar et al., ISPASS 2019)",
        ),
        "annealing": Entry(
            "tilewright.heuristics.mapping.annealing",
            "Annealing",
            "Simulated annealing with several walkers side by side",
            "Kirkpatrick et al., Science 220, 1983",
        ),
        "genetic": Entry(
            "tilewright.heuristics.mapping.genetic",
            "Genetic",
            "Genetic search: crossover by dimension, mutation, reordering, growth and aging",
            "GAMMA (Kao and Krishna, ICCAD 2020)",
        ),
    },
    group="heuristics",
)
