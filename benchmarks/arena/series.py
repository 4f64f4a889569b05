"""Contests on several networks and machines, and one table of who wins where.

    python -m tilewright.benchmarks.arena.series --networks resnet50 vgg19 --systems set-edge-4x4 atomic-8x8
    python -m tilewright.benchmarks.arena.series --only-print

Runs that the store lacks are computed, each stored as it ends; ``--minutes`` ends a slice early, and the same
call continues from there.  ``NETWORK/PART`` stands for the layers of a network whose names begin with
``PART.``, such as ``bert-large/layer1``: a transformer cell.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tilewright.benchmarks.arena.contest import Clock, Contest, entries
from tilewright.benchmarks.arena.document import compare_document
from tilewright.benchmarks.arena.work import RUNS
from tilewright.benchmarks.cells import Entry
from tilewright.benchmarks.run import run_cells
from tilewright.benchmarks.store import Store
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.foundation.errors import InputError
from tilewright.foundation.method_text import parse_method
from tilewright.foundation.pool import local_answers
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.report.records.scheduling.tiled.compare import CLEAR, CompareDocument, ContestantRecord
from tilewright.report.text.quantities import objective_text, percent_text
from tilewright.report.text.scheduling.tiled.compare import standing, winner_text
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.network import Network

NETWORKS = (
    "resnet50",
    "googlenet",
    "vgg19",
    "mobilenet-v2",
    "darknet19",
    "bert-large/layer1",
    "efficientnet-b0",
)
SYSTEMS = ("set-edge-4x4", "atomic-8x8")
METHODS = ("ls", "set-lp", "tangram", "kapla", "chains", "set", "atomic", "lns")


def series_network(text: str) -> Network:
    """A network of the catalog for one sample, or with ``/PART`` the layers whose names begin so.

    Raises
    ------
    InputError : for an unknown network, or a part without layers
    """
    name, slash, part = text.partition("/")
    network = resolve_model(name, 1)
    if not slash:
        return network
    inside = {layer.name for layer in network.layers if layer.name.startswith(f"{part}.")}
    if not inside:
        raise InputError(text, None, f"no layer of {name} begins with {part}.")
    links = [
        link if link.producer in inside else replace(link, producer=None)
        for link in network.links
        if link.consumer in inside
    ]
    read = {link.producer for link in network.links if link.consumer not in inside}
    return Network(
        text,
        [layer for layer in network.layers if layer.name in inside],
        links,
        outputs=(network.outputs | {name for name in read if name is not None}) & inside,
    )


@dataclass(frozen=True)
class Series:
    """Contests that differ in network and machine alone."""

    networks: Sequence[str]
    systems: Sequence[str]
    methods: Sequence[str]
    batch: int = 1
    objective: str = "edp"
    seeds: int = 5
    seconds: float = 5.0
    clock: Clock = "cpu"

    def contests(self) -> Iterator[Contest]:
        """One per machine and network.

        Raises
        ------
        InputError : for an unknown name
        """
        methods = tuple(str(parse_method(text, "--methods")) for text in self.methods)
        for system in self.systems:
            machine = load_tiled_machine(system)
            for name in self.networks:
                goal = tiled_objective(self.objective)
                problem = TiledProblem(series_network(name), machine, goal, batch=self.batch)
                yield Contest(problem, self.objective, methods, self.seeds, self.seconds, 1, self.clock)


def documents(series: Series, store: Store) -> list[CompareDocument]:
    """What the store knows of every contest."""
    known = list(store.cells())
    return [
        compare_document(contest, entries(contest), known, store.path.as_posix())
        for contest in series.contests()
    ]


def standings(contests: Sequence[CompareDocument]) -> str:
    """Who wins where, by how much, and what bound is left, as Markdown.

    A method's cell is its median above the best median of the row, in brackets the spread of its seeds; a run
    without a plan is worse than any plan.
    """
    methods = list(
        dict.fromkeys(contestant.method for document in contests for contestant in document.contestants)
    )
    heads = ("system", "network", "first", "result", "next it beats", "bound", "gap", *methods)
    lines = [f"| {' | '.join(heads)} |", "|---|---|---:|---|---|---:|---:|" + "---:|" * len(methods)]
    for document in contests:
        by = {contestant.method: contestant for contestant in document.contestants}
        keys = [key for contestant in document.contestants if (key := contestant.median_key) is not None]
        goal = tiled_objective(document.objective)
        bound = objective_text(goal, document.bound)
        if document.winner is None or not keys:
            reported = (
                winner_text(document)
                if any(contestant.runs for contestant in document.contestants)
                else "not run"
            )
            row = (document.system, document.workload, "-", reported, "-", bound, "-", *[""] * len(methods))
            lines.append(f"| {' | '.join(row)} |")
            continue
        least = min(keys)
        first = by[document.winner.method]
        value = objective_text(goal, first.median or 0)
        gap = "-" if first.gap is None else percent_text(first.gap, 1)
        cells = [_above(by.get(name), float(least)) for name in methods]
        row = (
            document.system,
            document.workload,
            value,
            winner_text(document),
            beaten(document),
            bound,
            gap,
            *cells,
        )
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def beaten(document: CompareDocument) -> str:
    """The best of the methods that the first one leaves behind by enough for a win, and by how much."""
    keys = [
        (key, contestant.method)
        for contestant in document.contestants
        if (key := contestant.median_key) is not None
    ]
    least = min(keys)[0]
    behind = [(key, name) for key, name in keys if key and float((key - least) / key) >= CLEAR]
    if not behind:
        return "none"
    key, name = min(behind)
    return f"{name} by {percent_text((key - least) / key, 1)}"


def _above(record: ContestantRecord | None, least: float) -> str:
    if record is None or not record.runs:
        return "not run"
    if record.median_key is None:
        return standing(record)
    text = f"{100 * (float(record.median_key) / least - 1):+.1f}"
    if record.missing:
        text += f", {record.missing} missing"
    if record.without_plan > record.missing:
        text += f", {record.without_plan - record.missing} without plan"
    elif len(record.runs) > 1:
        values = [float(run.value) for run in record.runs if run.value is not None]
        text += f" ({100 * (max(values) / min(values) - 1):.1f})"
    return text


def tally(contests: Sequence[CompareDocument]) -> str:
    """How often each method wins, and how often none does, per machine."""
    lines = []
    for system in dict.fromkeys(contest.system for contest in contests):
        here = [
            contest.winner for contest in contests if contest.system == system and contest.winner is not None
        ]
        clear = [contest.method for contest in here if contest.clear]
        won = ", ".join(f"{name} {clear.count(name)}" for name in dict.fromkeys(clear)) or "none"
        lines.append(f"{system}: wins: {won}; too close to call: {len(here) - len(clear)} of {len(here)}")
    return "\n".join(lines)


def run(series: Series, store: Store, minutes: float, jobs: int, *, fresh: bool = False) -> None:
    """Compute what the store lacks, until the time is up.

    Parameters
    ----------
    fresh : compute again what it has
    """
    cells: list[Entry] = [entry for contest in series.contests() for entry in entries(contest)]
    stop = threading.Event()
    timer = threading.Timer(minutes * 60, stop.set)
    timer.daemon = True
    timer.start()
    try:
        run_cells(
            store,
            cells,
            partial(local_answers, RUNS[series.clock], jobs),
            stop,
            lambda place, answer: print(place, answer.status, answer.value, file=sys.stderr, flush=True),
            lambda count, missing: print(f"{missing} of {count} runs to do", file=sys.stderr, flush=True),
            fresh=fresh,
        )
    finally:
        timer.cancel()


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what is missing, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS))
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--objective", default="edp")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="of a run")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="cpu", help="of the seconds")
    parser.add_argument("--minutes", type=float, default=1e6, help="after which no run begins")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--store", type=Path, default=Path("arena.sqlite"))
    parser.add_argument("--fresh", action="store_true", help="compute again, even if the store has results")
    parser.add_argument("--only-print", action="store_true", help="compute nothing")
    asked = parser.parse_args(arguments)
    series = Series(
        asked.networks,
        asked.systems,
        asked.methods,
        asked.batch,
        asked.objective,
        asked.seeds,
        asked.seconds,
        asked.clock,
    )
    try:
        with Store(asked.store, create=True) as store:
            if not asked.only_print:
                run(series, store, asked.minutes, asked.jobs, fresh=asked.fresh)
            contests = documents(series, store)
            unsaved = store.failure
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    print(standings(contests), tally(contests), sep="\n\n")
    if unsaved is not None:
        print(unsaved, file=sys.stderr)
    return 0 if unsaved is None else 1


if __name__ == "__main__":
    sys.exit(main())
