"""A figure or table of one of five papers, repeated: measured, drawn, held against what its text prints.

    python -m studies --list
    python -m studies dmazerunner fig9a
    python -m studies herald fig11 --class cloud --workload ar-vr-a
    python -m studies atomic fig8 --draw-only
    python -m studies set all --size smoke
    python -m studies summary                  # five papers in one picture
    python -m studies all --write              # every figure; docs/papers.md gets its parts and pictures
    python -m studies kapla --write            # those of one paper; the others stay on the page

PAPER is dmazerunner, kapla, herald, atomic or set.  What has been measured is kept in a folder, the store of
`studies.figures`, and never measured again there; a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from studies.papers import summary
from studies.papers.figure import SIZES, PaperFigure, Plain, Row
from studies.papers.page import PAGE, PICTURES, Shown, figure_section, markdown, rewritten, stated
from studies.papers.registry import PAPERS, figure, label, names
from studies.papers.study import NotMeasuredError, OutOfTimeError, Study
from tilewright.foundation.errors import InputError
from tilewright.report.plots.style import matplotlib_or_error, save


def listed() -> list[str]:
    """A line for every figure and table of every paper."""
    lines = []
    for paper in PAPERS:
        for name in names(paper):
            entry = figure(paper, name)
            options = ""
            if isinstance(entry, PaperFigure):
                options = "".join(
                    f" [--{option} {'|'.join(of) or '…'}]" for option, of in entry.options.items()
                )
            state = f" ({entry.kind})" if isinstance(entry, Plain) else options
            lines.append(f"{paper:12} {name:8} {entry.title}{state}")
    return lines


def _study(what: str, asked: argparse.Namespace, values: Mapping[str, Any]) -> Study:
    folder = asked.store / asked.size
    folder.mkdir(parents=True, exist_ok=True)
    return Study(
        folder,
        asked.size,
        values,
        draw_only=asked.draw_only,
        from_manual=asked.manual,
        limit=asked.limit,
        told=lambda line: print(f"{what}: {line}", file=sys.stderr, flush=True),
    )


def show(paper: str, name: str, asked: argparse.Namespace, options: dict[str, Any]) -> Shown:
    """Measure what is missing and draw.

    Raises
    ------
    InputError : where it has a picture and matplotlib is not installed
    """
    entry = figure(paper, name)
    assert isinstance(entry, PaperFigure)
    if entry.draw is not None:
        matplotlib_or_error(f"{paper} {name}")  # before anything is measured
    study = _study(f"{paper} {name}", asked, {**entry.sizes[asked.size], **options})
    try:
        data = entry.measure(study)
    except (NotMeasuredError, OutOfTimeError) as error:
        why = "the limit was reached before" if isinstance(error, OutOfTimeError) else "the store lacks"
        return Shown(paper, name, study, note=f"{why} {error}"[:150])
    drawn = entry.draw
    if drawn is not None:
        save(lambda: drawn(data), study.folder / f"{paper}-{name}.png")
    return Shown(paper, name, study, data, entry.judge(data), picture=drawn is not None)


def _options(words: Sequence[str], entries: Sequence[PaperFigure]) -> dict[str, Any]:
    """Values that figures take beside the size.

    Raises
    ------
    InputError : for an option that the figure does not have, or a value that it does not take
    """
    known = (
        {name: choices for entry in entries for name, choices in entry.options.items()}
        if len(entries) == 1
        else {}
    )
    values: dict[str, Any] = {}
    for word, value in zip(words[::2], [*words[1::2], ""], strict=False):
        name = word.removeprefix("--")
        if not word.startswith("--") or name not in known:
            raise InputError(word, None, f"no option of this figure, expected {_named(known) or 'none'}")
        if not value or (known[name] and value not in known[name]):
            expected = ", ".join(known[name]) or "a value"
            raise InputError(word, None, f"{value!r}, expected {expected}")
        values[name] = value
    return values


def _named(options: dict[str, Sequence[str]]) -> str:
    return ", ".join(f"--{name}" for name in options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m studies", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paper", nargs="?", metavar="PAPER", help=f"{', '.join(PAPERS)}, summary, all")
    parser.add_argument(
        "figure", nargs="?", default="all", metavar="FIGURE", help="such as fig9a; all by default"
    )
    parser.add_argument("--list", action="store_true", help="all figures and tables with their options")
    parser.add_argument("--size", choices=SIZES, default="short", help="of samples and limits")
    parser.add_argument(
        "--store", type=Path, default=Path("figures"), help="folder of what has been measured"
    )
    parser.add_argument("--manual", action="store_true", help="take tables that other pages have from them")
    parser.add_argument("--draw-only", action="store_true", help="compute nothing")
    parser.add_argument(
        "--limit", type=float, default=float("inf"), help="seconds of the processor for a figure"
    )
    parser.add_argument(
        "--write", action="store_true", help="what is measured into docs/papers.md, and its pictures"
    )
    return parser


def summarise(asked: argparse.Namespace) -> tuple[list[Row], Study] | None:
    """The rows of the summary, drawn; ``None`` where they are not measured."""
    matplotlib_or_error("summary")
    study = _study("summary", asked, summary.SIZES[asked.size])
    try:
        rows = summary.measure(study)
    except (NotMeasuredError, OutOfTimeError) as error:
        print(f"summary: not measured: {error}", file=sys.stderr)
        return None
    save(lambda: summary.draw(rows), study.folder / "summary.png")
    return rows, study


def _run(asked: argparse.Namespace, words: Sequence[str]) -> int:
    papers = PAPERS if asked.paper == "all" else (asked.paper,)
    chosen = {
        paper: [
            name
            for name in (names(paper) if asked.figure == "all" else [asked.figure])
            if isinstance(figure(paper, name), PaperFigure) or asked.figure != "all"
        ]
        for paper in papers
    }
    entries = [
        entry
        for paper, own in chosen.items()
        for name in own
        if isinstance(entry := figure(paper, name), PaperFigure)
    ]
    options = _options(words, entries)
    every: dict[str, dict[str, Shown]] = {paper: {} for paper in PAPERS}
    missing = 0
    for paper, own in chosen.items():
        for name in own:
            entry = figure(paper, name)
            if isinstance(entry, Plain):
                print(f"{label(name)}: {entry.title}: {entry.kind}.  {entry.here}")
                continue
            shown = every[paper][name] = show(paper, name, asked, options)
            missing += shown.data is None
            print("\n\n".join(figure_section(shown, entry)), end="\n\n", flush=True)
    if asked.write:
        for paper, figures in every.items():
            for name, shown in figures.items():
                if shown.picture:
                    shutil.copy(shown.study.folder / f"{paper}-{name}.png", PICTURES / f"{paper}-{name}.png")
        _write(every)
        if asked.paper == "all":
            missing += _summary(asked)
    return 1 if missing else 0


def _summary(asked: argparse.Namespace) -> int:
    known = summarise(asked)
    if known is None:
        return 1
    rows, study = known
    print(markdown(rows))
    if asked.write:
        shutil.copy(study.folder / "summary.png", PICTURES / "summary.png")
        _write({}, f"{markdown(rows)}\n\n{stated(study, 'python -m studies summary')}")
    return 0


def _write(every: dict[str, dict[str, Shown]], summary: str = "") -> None:
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8"), every, summary), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Show what is asked for; the exit code is 1 where something is not measured, 2 for bad input."""
    parser = _parser()
    asked, words = parser.parse_known_args(arguments)
    if asked.list:
        print("\n".join(listed()))
        return 0
    if asked.paper is None:
        parser.error("a PAPER and a FIGURE, or --list")
    try:
        if asked.paper == "summary":
            return _summary(asked)
        return _run(asked, words)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
