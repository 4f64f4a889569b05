"""Tables to compare with figures 8 to 13 and table II of Atomic Dataflow (Zheng et al., HPCA 2022).

    python -m studies.tiled_figures figure8 --seconds 20 --store figures.sqlite
    python -m studies.tiled_figures figure12 --networks vgg19 --links 16 --jobs 2
    python -m studies.tiled_figures table2 --only-print

Cells that the store lacks are computed, each kept as it ends; a table is printed of those that are there.
The paper's figures are included where its text prints them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from studies.answers import AnswerStore
from studies.command import Work, run_study, study_parser
from studies.tiled_cells import Cell, Found, cell_store, compute, failed

NETWORKS = {
    "vgg19": "VGG-19",
    "resnet50": "ResNet-50",
    "resnet152": "ResNet-152",
    "inception-v3": "Inception-v3",
    "nasnet-a-large": "NasNet",
    "pnasnet-5-large": "PNasNet",
    "efficientnet-b0": "EfficientNet",
    "resnet1001": "ResNet-1001",
}
"""Ours, and the paper's names; in the order of its table II."""

PRINTED = "atomic[atoms=printed,order=rules,mapping=permutations,buffering=occupation,refine=off]"
METHODS = {
    "ls": "ls",
    "cnn-p": "cnn-p",
    "il-pipe": "il-pipe",
    "rammer": "rammer",
    "printed": PRINTED,
    "atomic": "atomic",
}
"""Methods by the names that the tables give them."""

STAGES = {
    "shares": "atomic[atoms=shares,order=layers,mapping=zigzag,buffering=occupation,refine=off]",
    "+ annealed sizes": "atomic[atoms=repaired,order=layers,mapping=zigzag,buffering=occupation,refine=off]",
    "+ rules of order": "atomic[atoms=repaired,order=rules,mapping=zigzag,buffering=occupation,refine=off]",
    "+ equation 2": "atomic[atoms=repaired,order=rules,mapping=permutations,buffering=occupation,refine=off]",
    "all repaired": "atomic",
}
"""Figure 10: one stage after the other."""

GRIDS = {
    "2x2": "engines=2x2,array=64x64,buffer=2048",
    "4x4": "engines=4x4,array=32x32,buffer=512",
    "8x8": "engines=8x8,array=16x16,buffer=128",
    "16x16": "engines=16x16,array=8x8,buffer=32",
}
"""Figure 12: 16,384 PEs and 8 MB in all."""

BUFFERS = (32, 64, 128, 256, 512)
"""Figure 13: KiB of an engine's buffer."""

UTILIZATION = {
    "ls": (64.3, 51.1, 60.3, 49.0, 63.7, 69.2, 59.2, 56.4),
    "cnn-p": (74.2, 59.5, 70.3, 57.4, 76.7, 79.8, 72.8, 72.8),
    "il-pipe": (57.1, 47.4, 64.6, 45.7, 58.7, 61.8, 53.7, 67.7),
    "atomic": (86.0, 82.2, 88.9, 78.8, 85.0, 90.2, 95.0, 91.5),
}
"""Table II, percent, by network."""
OVERHEAD = (15.6, 13.2, 15.4, 10.0, 15.9, 17.6, 9.4, 10.5)
REUSE = (60.2, 82.0, 85.7, 90.8, 54.1, 61.2, 87.3, 79.6)
SEARCH = {"resnet50": 66.5, "resnet152": 102.7, "inception-v3": 406.9, "resnet1001": 1044.6}
"""Seconds of the paper's searches (section V-B)."""

MISSING = "-"


@dataclass(frozen=True)
class Study:
    """What the command line asks for.

    Parameters
    ----------
    options : of the machine, such as ``dataflow=yx``; empty for none
    batch : samples, where the figure does not say how many
    """

    networks: Sequence[str]
    links: Sequence[int]
    seconds: float
    options: str
    batch: int

    def cell(self, network: str, method: str, link: int, batch: int, more: str = "") -> Cell:
        """The cell of a network and method on the paper's machine, or a variant of it."""
        brackets = ",".join(part for part in (f"link={link}", more, self.options) if part)
        return Cell(network, f"atomic-8x8[{brackets}]", method, batch, "makespan", self.seconds)


Row = tuple[tuple[str, ...], tuple[Cell, ...]]
"""The names that begin a row, and its cells."""


@dataclass(frozen=True)
class Figure:
    """One table.

    Parameters
    ----------
    rows : what is to be computed
    heads : columns' heads
    show : columns of one row from what its cells came to, ``None`` for those that are missing
    paper : what the paper prints, one sentence
    """

    rows: Callable[[Study], list[Row]]
    heads: tuple[str, ...]
    show: Callable[[tuple[str, ...], Sequence[Found | None]], list[str]]
    paper: str


def cycles(found: Found | None) -> str:
    """Cycles with thousands apart."""
    return MISSING if found is None or not found.is_plan else f"{found.cycles:,}"


def times(slow: Found | None, fast: Found | None, of: Callable[[Found], float]) -> str:
    """How many times larger a figure of the first is than of the second."""
    if slow is None or fast is None or not slow.is_plan or not fast.is_plan:
        return MISSING
    return f"{of(slow) / of(fast):.2f}"


def percent(found: Found | None, of: Callable[[Found], float]) -> str:
    """A part as percent."""
    return MISSING if found is None or not found.is_plan else f"{100 * of(found):.1f}"


def _cycles_of(found: Found) -> float:
    return float(found.cycles)


def _by_method(batch: int) -> Callable[[Study], list[Row]]:
    def rows(study: Study) -> list[Row]:
        return [
            (
                (network, str(link)),
                tuple(study.cell(network, method, link, batch) for method in METHODS.values()),
            )
            for network in study.networks
            for link in study.links
        ]

    return rows


def _speeds(names: tuple[str, ...], runs: Sequence[Found | None]) -> list[str]:
    by = dict(zip(METHODS, runs, strict=True))
    ratios = [times(by[name], by["atomic"], _cycles_of) for name in ("ls", "cnn-p", "il-pipe", "printed")]
    return [*(cycles(run) for run in runs), *ratios]


def _energies(names: tuple[str, ...], runs: Sequence[Found | None]) -> list[str]:
    by = dict(zip(METHODS, runs, strict=True))
    shown = [
        MISSING if run is None or not run.is_plan else f"{run.total_energy / 1e9:.2f}" for run in by.values()
    ]
    dram = [
        MISSING
        if run is None or not run.is_plan
        else f"{100 * (run.energy or {})['dram'] / run.total_energy:.0f}"
        for run in (by["il-pipe"], by["atomic"])
    ]
    return [*shown, times(by["il-pipe"], by["atomic"], lambda run: run.total_energy), *dram]


def _table(names: tuple[str, ...], runs: Sequence[Found | None]) -> list[str]:
    by = dict(zip(METHODS, runs, strict=True))
    at = list(NETWORKS).index(names[0]) if names[0] in NETWORKS else None
    columns = []
    for name, printed in UTILIZATION.items():
        paper = MISSING if at is None else str(printed[at])
        columns.append(f"{percent(by[name], lambda run: run.compute_utilization)} ({paper})")
    columns.append(percent(by["atomic"], lambda run: run.atom_utilization))
    for of, printed in ((_overhead, OVERHEAD), (_reuse, REUSE)):
        paper = MISSING if at is None else str(printed[at])
        columns.append(f"{percent(by['atomic'], of)} ({paper})")
    return columns


def _overhead(found: Found) -> float:
    return found.network_overhead


def _reuse(found: Found) -> float:
    return found.reuse


def _stages(study: Study) -> list[Row]:
    return [
        (
            (network, str(link)),
            tuple(study.cell(network, stage, link, study.batch) for stage in STAGES.values()),
        )
        for network in study.networks
        for link in study.links
    ]


def _stage_gains(names: tuple[str, ...], runs: Sequence[Found | None]) -> list[str]:
    gains = [times(a, b, _cycles_of) for a, b in itertools.pairwise(runs)]
    return [*(cycles(run) for run in runs), *gains]


def _variants(variants: dict[str, str]) -> Callable[[Study], list[Row]]:
    def rows(study: Study) -> list[Row]:
        return [
            (
                (network, str(study.batch), str(link)),
                tuple(
                    study.cell(network, METHODS["atomic"], link, study.batch, more)
                    for more in variants.values()
                ),
            )
            for network in study.networks
            for link in study.links
        ]

    return rows


def _relative(base: int) -> Callable[[tuple[str, ...], Sequence[Found | None]], list[str]]:
    def show(names: tuple[str, ...], runs: Sequence[Found | None]) -> list[str]:
        return [*(cycles(run) for run in runs), *(times(run, runs[base], _cycles_of) for run in runs)]

    return show


def _search(study: Study) -> list[Row]:
    return [
        (
            (network, str(link)),
            tuple(study.cell(network, METHODS[variant], link, 1) for variant in ("printed", "atomic")),
        )
        for network in study.networks
        for link in study.links
    ]


def _search_times(names: tuple[str, ...], runs: Sequence[Found | None]) -> list[str]:
    columns = [str(SEARCH.get(names[0], MISSING))]
    for run in runs:
        reported = MISSING if run is None or not run.is_plan else f"{run.seconds:.1f}"
        columns += [reported, cycles(run)]
    return columns


_OF_METHODS = ("network", "B/cycle", *METHODS)
_BUFFER_CELLS = {f"{size} KiB": f"buffer={size}" for size in BUFFERS}
FIGURES = {
    "figure8": Figure(
        _by_method(1),
        (*_OF_METHODS, "ls / atomic", "cnn-p / atomic", "il-pipe / atomic", "printed / atomic"),
        _speeds,
        "Latency, batch 1.  Paper: atomic is 1.45-2.30 times as fast as CNN-P and LS, 1.42-3.78 as IL-Pipe.",
    ),
    "figure9": Figure(
        _by_method(20),
        (*_OF_METHODS, "ls / atomic", "cnn-p / atomic", "il-pipe / atomic", "printed / atomic"),
        _speeds,
        "Throughput, batch 20.  Paper: 1.12-1.38 times CNN-P's (KC), 1.08-1.42 (YX); CNN-P exceeds LS.",
    ),
    "figure10": Figure(
        _stages,
        ("network", "B/cycle", *STAGES, "sizes", "order", "mapping", "rest"),
        _stage_gains,
        "Gain of each stage.  Paper: order 1.17-1.42, sizes 1.06-1.21, reuse on chip 1.07-1.17.",
    ),
    "table2": Figure(
        _by_method(20),
        (
            "network",
            "B/cycle",
            *(f"{name} [%]" for name in UTILIZATION),
            "inside atoms [%]",
            "NoC overhead [%]",
            "reuse [%]",
        ),
        _table,
        "PE utilisation without memory delay, batch 20; NoC overhead and reuse.  The paper's in brackets.",
    ),
    "figure11": Figure(
        _by_method(20),
        (*_OF_METHODS, "il-pipe / atomic", "il-pipe: DRAM [%]", "atomic: DRAM [%]"),
        _energies,
        "Energy in mJ, batch 20.  Paper: IL-Pipe and atomic take least; atomic slightly more than IL-Pipe on "
        "the first three networks, less on four others.",
    ),
    "figure12": Figure(
        _variants(GRIDS),
        ("network", "batch", "B/cycle", *GRIDS, *(f"{name} / 4x4" for name in GRIDS)),
        _relative(1),
        "Engines at 16,384 PEs and 8 MB.  Paper: U-shaped; VGG-19, ResNet-152, NasNet are fastest on 4x4.",
    ),
    "figure13": Figure(
        _variants(_BUFFER_CELLS),
        ("network", "batch", "B/cycle", *_BUFFER_CELLS, *(f"{name} / 128 KiB" for name in _BUFFER_CELLS)),
        _relative(2),
        "Buffers per engine.  Paper: larger ones help, and less beyond 128 KB; small ones hurt little.",
    ),
    "search": Figure(
        _search,
        ("network", "B/cycle", "paper [s]", "printed [s]", "printed", "atomic [s]", "atomic"),
        _search_times,
        "Seconds of the processor until the best plan, batch 1.",
    ),
}


def table(figure: Figure, study: Study, store: AnswerStore[Cell, Found]) -> str:
    """The table as Markdown, with what has not been computed and what failed."""
    lines = [figure.paper, "", f"| {' | '.join(figure.heads)} |", "|---|" + "---:|" * (len(figure.heads) - 1)]
    notes: dict[str, None] = {}
    for names, cells in figure.rows(study):
        runs = [store.get(cell) for cell in cells]
        lines.append(f"| {' | '.join((*names, *figure.show(names, runs)))} |")
        for cell, run in zip(cells, runs, strict=True):
            if run is None or not run.is_plan:
                what = "not run" if run is None else f"no plan: {run.message or run.status}"
                notes[f"{cell.network}, {cell.system}, {cell.method}, batch {cell.batch}: {what}"] = None
    return "\n".join([*lines, *(["", *(f"- {note}" for note in notes)] if notes else [])])


def _reported(cell: Cell, found: Found) -> str:
    what = f"{found.cycles:,}" if found.is_plan else f"{found.status} {found.message}"
    return f"{cell.network} {cell.system} {cell.method} {cell.batch}: {what}"


WORK = Work(cell_store, compute, failed, _reported, fresh=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what is missing, and print one table."""
    parser = study_parser(__doc__, "tiled-figures.sqlite", 20.0)
    parser.add_argument("figure", choices=tuple(FIGURES))
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS))
    parser.add_argument("--links", type=int, nargs="+", default=[8, 16, 32], help="bytes per cycle")
    parser.add_argument("--batch", type=int, default=1, help="where the figure does not say")
    parser.add_argument("--machine", default="", help="further options, such as dataflow=yx")
    asked = parser.parse_args(arguments)
    study = Study(asked.networks, asked.links, asked.seconds, asked.machine, asked.batch)
    figure = FIGURES[asked.figure]
    cells = [cell for _, row in figure.rows(study) for cell in row]
    return run_study(asked, WORK, cells, lambda store: [table(figure, study, store)])


if __name__ == "__main__":
    raise SystemExit(main())
