"""Tables to compare with KAPLA's tables IV, VI and figures 7-9, 11: chains of segments by the closed form.

    python -m studies.kapla_tables figure7 --store kapla.sqlite --minutes 9
    python -m studies.kapla_tables figure9 --only-print
    python -m studies.kapla_tables figure11 --networks resnet50 googlenet

B is the proven best chain, found best-first on bounds; S the same by pricing every segment; R prices a tenth
of the segments, drawn at random (the median of five seeds); T is Tangram, K is KAPLA with four rows.  Seconds
are those of the processor.  Cells that the store lacks are computed, each kept as it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median_low

from studies.answers import AnswerStore
from studies.command import Work, run_study, study_parser
from studies.kapla_cells import ChainCell, ChainFound, chain_store, compute

NETWORKS = ("alexnet", "mobilenet-v1", "vgg16", "googlenet", "resnet50", "mlp", "lstm")
"""The paper's seven, in the order of its tables."""

SYSTEM = "kapla-16x16[engines=8x8,array=16x16,buffer=512]"
"""As many PEs as the paper's machine; buffers that are large enough for the leaves of trees."""

PRUNED = {
    "alexnet": (700, 2),
    "mobilenet-v1": (331, 42),
    "vgg16": (7, 1),
    "googlenet": (560, 1),
    "resnet50": (63, 4),
    "mlp": (784, 18),
    "lstm": (70, 3),
}
"""Table VI: schemes of one segment, and those after both prunings."""

SEEDS = 5
KEPT = (1, 2, 4, 8, 16)
DEFAULT_KEPT = 4
MISSING = "-"

Found = ChainFound | None


@dataclass(frozen=True)
class Study:
    """What the command line asks for."""

    networks: Sequence[str]
    system: str
    batch: int
    spatial: int
    temporal: int
    seconds: float
    bands: int = 1
    rooms: str = "set"

    def cell(self, network: str, objective: str, way: str, number: int = 0) -> ChainCell:
        """One search."""
        return ChainCell(
            network=network,
            system=self.system,
            batch=self.batch,
            objective=objective,
            way=way,
            number=number,
            spatial=self.spatial,
            temporal=self.temporal,
            seconds=self.seconds,
            bands=self.bands,
            rooms=self.rooms,
        )

    def contest(self, network: str, objective: str) -> list[ChainCell]:
        """B, S, T, K and the seeds of R."""
        ways = [("proven", 0), ("priced", 0), ("tangram", 0), ("kapla", DEFAULT_KEPT)]
        ways += [("random", seed) for seed in range(SEEDS)]
        return [self.cell(network, objective, way, number) for way, number in ways]


@dataclass(frozen=True)
class Table:
    """One table.

    Parameters
    ----------
    cells : of a network
    show : columns of a network from what its cells came to
    paper : what the paper has, one sentence
    """

    cells: Callable[[Study, str], list[ChainCell]]
    heads: tuple[str, ...]
    show: Callable[[str, Sequence[Found]], list[str]]
    paper: str


def _training(objective: str) -> Callable[[Study, str], list[ChainCell]]:
    return lambda study, network: study.contest(f"{network}:training", objective)


def _inference(objective: str) -> Callable[[Study, str], list[ChainCell]]:
    return lambda study, network: study.contest(network, objective)


def least_known(answers: Sequence[Found]) -> float:
    """The least value that any way found; 0 where none did."""
    values = [answer.value for answer in answers if answer is not None and answer.value > 0]
    return min(values, default=0.0)


def middle(answers: Sequence[Found], of: Callable[[ChainFound], float]) -> float:
    """The median over seeds; 0 where some seed has no chain."""
    there = [answer for answer in answers if answer is not None]
    if len(there) < len(answers) or not all(answer.value > 0 for answer in there):
        return 0.0
    return median_low([of(answer) for answer in there])


def above(value: float, least: float) -> str:
    """A value above the least, in percent."""
    return f"{100 * (value / least - 1):+.1f}" if value > 0 and least > 0 else MISSING


def _value(found: Found) -> float:
    return 0.0 if found is None else found.value


def _seconds(found: Found) -> str:
    return MISSING if found is None else f"{found.seconds:.1f}" + ("" if found.value > 0 else " (none)")


def _contest(unit: float) -> Callable[[str, Sequence[Found]], list[str]]:
    def show(network: str, answers: Sequence[Found]) -> list[str]:
        proven, priced, tangram, kapla, *random = answers
        least = least_known(answers)
        state = MISSING if proven is None else "proven" if proven.status == "proven" else "not proven"
        gap = MISSING
        if proven is not None and 0 < proven.bound < inf and least > 0:
            gap = f"{100 * (1 - min(proven.bound, least) / least):.1f}"
        return [
            f"{least / unit:.4g}" if least > 0 else MISSING,
            state,
            gap,
            *(above(_value(answer), least) for answer in (proven, priced)),
            above(middle(random, lambda answer: answer.value), least),
            *(above(_value(answer), least) for answer in (tangram, kapla)),
        ]

    return show


def _times(network: str, answers: Sequence[Found]) -> list[str]:
    proven, priced, tangram, kapla, *random = answers
    drawn = middle(random, lambda answer: answer.seconds)
    gain = MISSING
    if priced is not None and kapla is not None and kapla.value > 0:
        more = "" if priced.status == "proven" else ">"
        gain = f"{more}{priced.seconds / max(kapla.seconds, 1e-3):.1f}"
    return [
        *(_seconds(answer) for answer in (proven, priced)),
        f"{drawn:.1f}" if drawn > 0 else MISSING,
        *(_seconds(answer) for answer in (tangram, kapla)),
        gain,
    ]


def _pruning(study: Study, network: str) -> list[ChainCell]:
    return [study.cell(network, "energy", "kapla", DEFAULT_KEPT)]


def _pruned(network: str, answers: Sequence[Found]) -> list[str]:
    first, (total, left) = answers[0], PRUNED[network]
    paper = f"{total:,} / {left} / {100 * (1 - left / total):.1f}"
    if first is None or not first.schemes:
        return [MISSING] * 4 + [paper]
    away = 100 * (1 - first.kept / first.schemes)
    return [f"{first.schemes:,}", f"{first.valid:,}", f"{first.kept:,}", f"{away:.1f}", paper]


def _rows_kept(study: Study, network: str) -> list[ChainCell]:
    kept = [study.cell(network, "energy", "kapla", number) for number in KEPT]
    return [study.cell(network, "energy", "proven"), *kept]


def _kept(network: str, answers: Sequence[Found]) -> list[str]:
    least = least_known(answers)
    return [
        *(above(_value(answer), least) for answer in answers[1:]),
        *(MISSING if answer is None else f"{answer.seconds:.1f}" for answer in answers[1:]),
    ]


_CONTEST = ("network", "least", "", "gap [%]", "B", "S", "R", "T", "K [% above the least]")
TABLES = {
    "figure7": Table(
        _training("energy"),
        _CONTEST,
        _contest(1e9),
        "Energy of training in mJ.  Paper: K 2.2 % above B on average, 10 % at most; R up to 1.9 times.",
    ),
    "figure8": Table(
        _training("makespan"), _CONTEST, _contest(1e6), "Cycles of training in millions.  Paper: as figure 7."
    ),
    "figure9": Table(
        _inference("energy"),
        _CONTEST,
        _contest(1e9),
        "Energy of inference in mJ.  Paper: K 7.7 % above B on average, R 59 %, learning 36.1 %.",
    ),
    "table4": Table(
        _training("energy"),
        ("network", "B [s]", "S [s]", "R [s]", "T [s]", "K [s]", "S / K"),
        _times,
        "Seconds of scheduling for training.  Paper: K 518 times as fast as B on average.",
    ),
    "table6": Table(
        _pruning,
        ("network", "schemes", "may fit", "beaten by none", "pruned [%]", "paper: one segment"),
        _pruned,
        "Schemes of all segments of a network.  Paper: one segment of each; all, left, percent pruned.",
    ),
    "figure11": Table(
        _rows_kept,
        ("network", *(f"k={one} [%]" for one in KEPT), *(f"k={one} [s]" for one in KEPT)),
        _kept,
        "Energy of inference above the least known and seconds, by rows kept.  Paper: hardly changes.",
    ),
}


def table(name: str, study: Study, store: AnswerStore[ChainCell, ChainFound]) -> str:
    """The table as Markdown, with what has not been computed and what failed."""
    contest = TABLES[name]
    lines = [
        contest.paper,
        "",
        f"| {' | '.join(contest.heads)} |",
        "|---|" + "---:|" * (len(contest.heads) - 1),
    ]
    notes: dict[str, None] = {}
    for network in study.networks:
        cells = contest.cells(study, network)
        answers = [store.get(cell) for cell in cells]
        lines.append(f"| {' | '.join((network, *contest.show(network, answers)))} |")
        for cell, answer in zip(cells, answers, strict=True):
            if answer is None or answer.status == "none":
                what = "not run" if answer is None else f"no chain: {answer.message}"
                notes[f"{cell.network}, {cell.way}: {what}"] = None
    return "\n".join([*lines, *(["", *(f"- {note}" for note in notes)] if notes else [])])


def _reported(cell: ChainCell, found: ChainFound) -> str:
    asked = f"{cell.network} {cell.objective} {cell.way} {cell.number}"
    return f"{asked}: {found.status} {found.value:.4g}, {found.seconds:.1f} s {found.message}"


WORK = Work(chain_store, compute, lambda message: ChainFound("error", message=message), _reported)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what is missing, and print one table."""
    parser = study_parser(__doc__, "kapla-tables.sqlite", 20.0)
    parser.add_argument("table", choices=tuple(TABLES))
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=NETWORKS)
    parser.add_argument("--system", default=SYSTEM)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--spatial", type=int, default=4, help="layers of a segment side by side")
    parser.add_argument("--temporal", type=int, default=4, help="layers of a segment in turn")
    parser.add_argument("--bands", type=int, default=1, help="parts of a sample that layers pass on")
    parser.add_argument("--rooms", default="set", choices=("set", "small"), help="for results and streaming")
    asked = parser.parse_args(arguments)
    study = Study(
        asked.networks,
        asked.system,
        asked.batch,
        asked.spatial,
        asked.temporal,
        asked.seconds,
        asked.bands,
        asked.rooms,
    )
    cells = [cell for name in study.networks for cell in TABLES[asked.table].cells(study, name)]
    return run_study(asked, WORK, cells, lambda store: [table(asked.table, study, store)])


if __name__ == "__main__":
    raise SystemExit(main())
