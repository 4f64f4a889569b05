"""Every table of figures in the manual: measured, kept, printed, and written into its page.

    python -m studies.figures benchmarks --write     # what is missing is measured; the page gets its tables
    python -m studies.figures all                    # every page; goes on where it was stopped
    python -m studies.figures all --size full        # larger samples and limits: a night on two cores
    python -m studies.figures all --check            # nothing is measured; tables that differ from the store

``figures.yaml`` names the commands behind every table.  They run one after the other in a folder of the
store, where studies keep what they have; what a command printed is kept in ``figures.jsonl`` with this
program's version, so that a run that was killed goes on with the command that it was at.  In a page a table
stands between ``<!-- figures: NAME -->`` and ``<!-- end -->``, with version, date, CPU seconds and command.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from studies.time_to_proof import worked
from tilewright import __version__
from tilewright.foundation.yaml_file import read_yaml

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
LIST = Path(__file__).with_name("figures.yaml")
PART = re.compile(r"(<!-- figures: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
SIZES = {"short": "Short run of version", "full": "Version", "tiny": "Trial of version"}
PEER = "PEER/bin/python"
"""Stands in commands for the interpreter that ``--peer`` names."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One table, or several under each other.

    Parameters
    ----------
    commands : run one after the other; the tables are those that they print
    tables : which of these, from 0; empty for all
    files : pictures that the commands write, and their names in ``docs/figures``
    """

    name: str
    commands: tuple[str, ...]
    tables: tuple[int, ...] = ()
    files: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command printed, with the day it ended and its CPU seconds."""

    version: str
    command: str
    date: str
    seconds: float
    printed: str


def figures(page: str, size: str) -> list[Figure]:
    """The figures of a page; those of a size without values of its own are the short ones."""
    return [_figure(name, entry, size) for name, entry in read_yaml(LIST)[page].items()]


def _figure(name: str, entry: dict[str, Any], size: str) -> Figure:
    values = {**entry.get("short", {}), **entry.get(size, {})}
    lines = [entry["run"]] if isinstance(entry["run"], str) else entry["run"]
    commands = tuple(" ".join(line.format_map(values).split()) for line in lines)
    return Figure(name, commands, tuple(entry.get("tables", ())), tuple(entry.get("files", {}).items()))


class Results:
    """A folder with what commands printed and what studies keep.

    Parameters
    ----------
    peer : the interpreter that has AccelForge; without it its command is left out
    """

    def __init__(self, folder: Path, peer: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.peer, self._file = folder, peer, folder / "figures.jsonl"
        for name in ("examples", "tests"):
            if not (folder / name).exists():
                (folder / name).symlink_to(ROOT / name)
        lines = self._file.read_text(encoding="utf-8").splitlines() if self._file.exists() else []
        runs = [Ran(**json.loads(line)) for line in lines]
        self._runs = {" ".join(run.command.split()): run for run in runs if run.version == __version__}

    def known(self, figure: Figure) -> list[Ran] | None:
        """What its commands printed; ``None`` where one has not run."""
        runs = [self._runs.get(command) for command in figure.commands]
        return None if None in runs else [run for run in runs if run is not None]

    def measure(self, figure: Figure) -> list[Ran] | None:
        """Run what has not run yet; ``None`` where a command failed, which stderr tells."""
        for command in figure.commands:
            if command in self._runs:
                continue
            if PEER in command and not self.peer:
                print(f"{figure.name}: left out, as it needs --peer", file=sys.stderr)
                return None
            print(f"{figure.name}: {command}", file=sys.stderr, flush=True)
            ended, seconds = self._call(command)
            if ended.returncode:
                print(f"{figure.name}: exit code {ended.returncode}", ended.stderr, file=sys.stderr)
                return None
            run = Ran(__version__, command, f"{datetime.date.today()}", round(seconds, 1), ended.stdout)
            self._runs[command] = run
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(run)) + "\n")
        return self.known(figure)

    def _call(self, command: str) -> tuple[subprocess.CompletedProcess[str], float]:
        programs = {"python": [sys.executable], "tilewright": [sys.executable, "-m", "tilewright"]}
        first, *words = shlex.split(command.replace(PEER, self.peer))
        paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        more = {
            "PYTHONPATH": os.pathsep.join(paths),
            "TILEWRIGHT_CACHE": str(self.folder.resolve() / "cache"),
        }
        before = worked()
        ended = subprocess.run(
            [*programs[first], *words],
            cwd=self.folder,
            env={**os.environ, **more, "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
        )
        return ended, worked() - before


def printed_tables(text: str) -> list[str]:
    """The Markdown tables of a text."""
    return [table.rstrip("\n") for table in re.findall(r"(?:^\|.*\n?){2,}", text, re.MULTILINE)]


def part(figure: Figure, runs: Sequence[Ran], size: str) -> str:
    """What stands between a figure's marks."""
    tables = [table for run in runs for table in printed_tables(run.printed)]
    chosen = [tables[place] for place in figure.tables] or tables
    seconds = sum(run.seconds for run in runs)
    about = f"{SIZES[size]} {runs[-1].version}, {runs[-1].date}, {seconds:,.0f} s of the processor: "
    about += ", ".join(f"`{command}`" for command in figure.commands)
    lines = textwrap.fill(about, 118, break_long_words=False, break_on_hyphens=False)
    return "\n\n".join(["", *chosen, lines, ""]).lstrip("\n")


def rewritten(text: str, parts: dict[str, str]) -> str:
    """A page with the parts that are known between their marks."""

    def replaced(mark: re.Match[str]) -> str:
        return f"{mark[1]}\n{parts[mark[2]]}{mark[3]}" if mark[2] in parts else mark[0]

    return PART.sub(replaced, text)


def page_parts(page: str, asked: argparse.Namespace, results: Results) -> Iterator[tuple[Figure, str | None]]:
    """The figures of a page with what stands between their marks, if it is known; measured unless checked."""
    for figure in figures(page, asked.size):
        if asked.only and figure.name not in asked.only:
            continue
        runs = results.known(figure) if asked.check else results.measure(figure)
        yield figure, None if runs is None else part(figure, runs, asked.size)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing, page by page; the exit code is 1 where a table is missing or differs."""
    names = list(read_yaml(LIST))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("page", choices=[*names, "all"], metavar="PAGE", help=f"{', '.join(names)}, all")
    parser.add_argument(
        "--store", type=Path, default=Path("figures"), help="folder of what has been measured"
    )
    parser.add_argument("--size", choices=list(SIZES), default="short", help="of samples and limits")
    parser.add_argument("--only", nargs="+", help="names of tables")
    parser.add_argument("--peer", default="", help="an interpreter that has AccelForge")
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    parser.add_argument("--check", action="store_true", help="measure nothing, tell what differs")
    asked = parser.parse_args(arguments)
    results, wrong = Results(asked.store / asked.size, asked.peer), 0
    for page in names if asked.page == "all" else [asked.page]:
        path = DOCS / f"{page}.md"
        for figure, known in page_parts(page, asked, results):
            text = path.read_text(encoding="utf-8")
            new = text if known is None else rewritten(text, {figure.name: known})
            wrong += known is None or (asked.check and new != text)
            if asked.check and (known is None or new != text):
                print(f"{page}: {figure.name}: {'not measured' if known is None else 'differs'}")
            elif not asked.check and known is not None:
                print(f"\n<!-- figures: {figure.name} -->\n\n{known}<!-- end -->", flush=True)
            if asked.write and known is not None:
                path.write_text(new, encoding="utf-8")
                for made, name in figure.files:
                    shutil.copy(results.folder / made, DOCS / "figures" / name)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
