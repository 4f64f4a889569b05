"""The page of the manual on the papers: rows of all figures, pictures, comparisons, three sentences each."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from studies.figures import DOCS
from studies.papers.figure import Data, PaperFigure, Plain, Row, Verdict
from studies.papers.registry import PAPERS, figure, label, names, paper
from studies.papers.study import Study
from tilewright import __version__

PAGE = DOCS / "papers.md"
PICTURES = DOCS / "figures" / "papers"
NOWHERE = Study(Path("figures"), "short", {}, draw_only=True)
"""Of figures that nobody asked for."""
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
            f"| {' | '.join(map(_cell, (comparison.what, *comparison.cells, verdict.state(comparison))))} |"
            for comparison in verdict.compared
        ]
        yield "\n".join([*heads, *cells])
    differs = verdict.differs or "Nothing differs by more."
    needed = verdict.needed or "Nothing else is needed."
    yield _wrapped(f"**{verdict.word.capitalize()}.**  {verdict.first}  {differs}  {needed}")
    if verdict.best:
        yield _wrapped(f"**Proven.**  {verdict.best}")
    yield stated(shown.study, f"python -m studies {shown.paper} {shown.name}")


@dataclass(frozen=True)
class Section:
    """A figure as the page has it: the words of its verdict and size, and all below its heading."""

    state: str
    text: str

    @property
    def title(self) -> str:
        """Of its heading."""
        return self.text.partition("\n")[0].partition(": ")[2]


def sections(text: str, name: str) -> dict[str, Section]:
    """The sections of a paper that the page has, by figure."""
    part = next((mark[0] for mark in PART.finditer(text) if mark[2] == name), "")
    states = {
        row[1]: row[2] for row in re.finditer(r"^\| \[([^]]+)\]\(#.*\| ([^|]+) \|$", part, re.MULTILINE)
    }
    texts = re.split(r"^### ", part.partition("\n<!-- end")[0], flags=re.MULTILINE)[1:]
    known = {f"### {own.partition(':')[0]}": own for own in texts}
    return {
        own: Section(states[label(own)], f"### {known[f'### {label(own)}'].strip()}")
        for own in names(name)
        if label(own) in states and f"### {label(own)}" in known
    }


def section_of(shown: Shown, described: PaperFigure) -> Section:
    """What a run has come to."""
    state = "not measured" if shown.verdict is None else f"{shown.verdict.word} ({shown.study.size} run)"
    return Section(state, "\n\n".join(figure_section(shown, described)))


def newer(text: str, name: str, every: dict[str, Shown]) -> dict[str, Section]:
    """Sections of what was measured, and the page's own of what was not."""
    known = sections(text, name)
    for own in names(name):
        entry = figure(name, own)
        measured = own in every and every[own].verdict is not None
        if isinstance(entry, PaperFigure) and (measured or own not in known):
            shown = every.get(own) or Shown(name, own, NOWHERE, note="never asked for")
            known[own] = section_of(shown, entry)
    return known


def paper_part(name: str, known: dict[str, Section]) -> str:
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
        title = known[own].title
        rows.append(
            {
                "": f"[{label(own)}](#{anchor(own, title)})",
                "what it shows": f"{title}.  {entry.claim}",
                "here": f"`python -m studies {name} {own}`",
                "state": known[own].state,
            }
        )
    parts = [f"## {described.title}", _wrapped(f"{described.source}  {described.about}"), markdown(rows)]
    parts += [known[own].text for own in names(name) if own in known]
    return "\n\n".join(["", *parts, ""]).lstrip("\n")


def anchor(name: str, title: str) -> str:
    """The anchor of a figure's heading."""
    text = f"{label(name)}: {title}".lower()
    return re.sub(r"[^\w -]", "", text).replace(" ", "-")


def counted(papers: dict[str, dict[str, Section]]) -> list[Row]:
    """How many figures of each paper have which verdict."""
    rows: list[Row] = []
    for name in PAPERS:
        words = [section.state.partition(" (")[0] for section in papers[name].values()]
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
    """The page with all that is measured; the rest stays as it is.

    Parameters
    ----------
    text : of the page
    papers : figures by paper and name
    summary : the table of the summary; empty to keep the page's
    """
    known = {name: newer(text, name, papers.get(name, {})) for name in PAPERS}

    def replaced(mark: re.Match[str]) -> str:
        if mark[2] == "summary":
            return f"{mark[1]}\n{summary}\n\n{mark[3]}" if summary else mark[0]
        if mark[2] == "all":
            return f"{mark[1]}\n{markdown(counted(known))}\n\n{mark[3]}"
        return f"{mark[1]}\n{paper_part(mark[2], known[mark[2]])}{mark[3]}"

    return PART.sub(replaced, text)
