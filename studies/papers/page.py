"""The page of the manual on the papers: rows of all figures, pictures, comparisons, three sentences each."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from studies.figures import DOCS
from studies.papers.figure import Data, PaperFigure, Plain, Row, Verdict
from studies.papers.registry import PAPERS, figure, label, names, paper
from studies.papers.study import Study
from tilewright import __version__

PAGE = DOCS / "papers.md"
PICTURES = DOCS / "figures" / "papers"
PART = re.compile(r"(<!-- paper: (\w+) -->\n).*?(<!-- end of paper -->)", re.DOTALL)


@dataclass(frozen=True)
class Shown:
    """A figure as far as it is measured.

    Parameters
    ----------
    data, verdict : ``None`` where it is not measured
    note : why not
    picture : whether there is a picture
    """

    paper: str
    name: str
    study: Study
    data: Data | None = None
    verdict: Verdict | None = None
    note: str = ""
    picture: bool = False


def stated(study: Study, command: str) -> str:
    """Size, version, date, seconds and command of what is shown."""
    size = {"smoke": "Trial", "short": "Short run", "full": "Full run"}[study.size]
    dates = sorted(study.dates)
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}" if dates else "no date"
    words = f"{size} of version {__version__}, {when}, {study.seconds:,.0f} s of the processor"
    if study.sources:
        pages = ", ".join(f"[{source}]({source}.md)" for source in sorted(study.sources))
        words += f"; tables of {pages}"
    return _wrapped(f"{words}: `{command}`")


def markdown(rows: list[Row]) -> str:
    """Rows as a table; numbers are right-aligned."""
    heads = list(rows[0])
    numeric = [all(isinstance(row.get(head), int | float) for row in rows) for head in heads]
    lines = [f"| {' | '.join(heads)} |", f"|{'|'.join('---:' if right else '---' for right in numeric)}|"]
    lines += [f"| {' | '.join(_cell(row.get(head, '')) for head in heads)} |" for row in rows]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, float) and value != value:
        return "-"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:.3e}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value).replace("|", "\\|")


def _wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 118, break_long_words=False, break_on_hyphens=False)


def figure_section(shown: Shown, described: PaperFigure) -> Iterator[str]:
    """Picture, comparison and sentences of a figure."""
    yield f"### {label(shown.name)}: {described.title}"
    if shown.data is None or shown.verdict is None:
        yield _wrapped(f"*Not measured.*  {shown.note}")
        return
    verdict = shown.verdict
    if shown.picture:
        yield f"![{described.title}](figures/papers/{shown.paper}-{shown.name}.png)"
    for name in described.shown:
        if shown.data[name]:
            yield markdown(shown.data[name])
    if verdict.compared:
        heads = ["| what | paper | here | |", "|---|---:|---:|---|"]
        cells = [
            f"| {' | '.join(map(_cell, (one.what, *one.cells)))} | {'holds' if one.holds else 'differs'} |"
            for one in verdict.compared
        ]
        yield "\n".join([*heads, *cells])
    differs = verdict.differs or "Nothing differs by more."
    needed = verdict.needed or "Nothing else is needed."
    yield _wrapped(f"**{verdict.word.capitalize()}.**  {verdict.first}  {differs}  {needed}")
    if verdict.best:
        yield _wrapped(f"**Proven.**  {verdict.best}")
    yield stated(shown.study, f"python -m studies {shown.paper} {shown.name}")


def paper_part(name: str, every: dict[str, Shown]) -> str:
    """What stands between the marks of a paper."""
    described = paper(name)
    rows: list[Row] = []
    for own in names(name):
        entry = figure(name, own)
        if isinstance(entry, Plain):
            rows.append(
                {"": label(own), "what it shows": entry.title, "here": entry.here, "state": entry.kind}
            )
            continue
        shown = every[own]
        state = "not measured" if shown.verdict is None else f"{shown.verdict.word} ({shown.study.size} run)"
        link = f"[{label(own)}](#{anchor(own, entry)})"
        command = f"`python -m studies {name} {own}`"
        rows.append(
            {"": link, "what it shows": f"{entry.title}.  {entry.claim}", "here": command, "state": state}
        )
    parts = [f"## {described.title}", _wrapped(f"{described.source}  {described.about}"), markdown(rows)]
    for own in names(name):
        entry = figure(name, own)
        if isinstance(entry, PaperFigure):
            parts += list(figure_section(every[own], entry))
    return "\n\n".join(["", *parts, ""]).lstrip("\n")


def anchor(name: str, described: PaperFigure) -> str:
    """The anchor of a figure's heading."""
    text = f"{label(name)}: {described.title}".lower()
    return re.sub(r"[^\w -]", "", text).replace(" ", "-")


def counted(papers: dict[str, dict[str, Shown]]) -> list[Row]:
    """How many figures of each paper have which verdict."""
    rows: list[Row] = []
    for name in PAPERS:
        words = [shown.verdict.word if shown.verdict else "not measured" for shown in papers[name].values()]
        plain = sum(isinstance(figure(name, own), Plain) for own in names(name))
        row: Row = {
            "paper": f"[{paper(name).title}](#{re.sub(r'[^a-z0-9]+', '-', paper(name).title.lower())})"
        }
        for word in ("reproduced", "reproduced in part", "differs, explained", "not reproduced"):
            row[word] = words.count(word)
        row["nothing to compare"] = words.count("nothing printed to compare")
        row["not measured"] = words.count("not measured")
        rows.append({**row, "drawings and settings": plain})
    return rows


def rewritten(text: str, papers: dict[str, dict[str, Shown]], summary: str = "") -> str:
    """The page with all of its parts.

    Parameters
    ----------
    text : of the page
    papers : every figure by paper and name
    summary : the table of the summary
    """

    def replaced(mark: re.Match[str]) -> str:
        if mark[2] == "summary":
            return f"{mark[1]}\n{summary}\n\n{mark[3]}"
        if mark[2] == "all":
            return f"{mark[1]}\n{markdown(counted(papers))}\n\n{mark[3]}"
        return f"{mark[1]}\n{paper_part(mark[2], papers[mark[2]])}{mark[3]}"

    return PART.sub(replaced, text)
