"""What a figure or table of a paper is, and how its numbers are held against the printed ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from studies.papers.study import Study

SIZES = ("smoke", "short", "full")


def every_size(**values: Any) -> dict[str, Mapping[str, Any]]:
    """The same values in every size."""
    return dict.fromkeys(SIZES, values)


def between(values: Iterable[float], form: str = "{:.2f}") -> str:
    """The least and the most in words; the number alone where both are written alike."""
    known = sorted(values)
    return " to ".join(dict.fromkeys(form.format(end) for end in (known[0], known[-1])))


TOLERANCE = 0.10
"""Share by which a figure may miss a printed one and still repeats it."""

Row = dict[str, Any]
"""Columns of a row by name; numbers, texts, or lists of numbers."""
Data = dict[str, list[Row]]
"""The tables of a figure by name."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number that the paper's text prints, beside ours.

    Parameters
    ----------
    what : is measured
    printed, ours : the two numbers
    form : how both are written
    """

    what: str
    printed: float
    ours: float
    form: str = "{:.4g}"

    @property
    def holds(self) -> bool:
        """Whether both are as near as that, or are written alike."""
        printed, ours = self.cells
        return (isfinite(self.ours) and printed == ours) or abs(self.ours - self.printed) <= TOLERANCE * abs(
            self.printed
        )

    @property
    def cells(self) -> tuple[str, str]:
        """The printed number and ours, as text."""
        return self.form.format(self.printed), self.form.format(self.ours)


@dataclass(frozen=True, slots=True)
class Span(Number):
    """A range that the text prints, beside our least and most.

    Parameters
    ----------
    printed, ours : the lower ends
    printed_most, most : the upper ends
    """

    printed_most: float = 0.0
    most: float = 0.0

    @property
    def holds(self) -> bool:
        low, high = (1 - TOLERANCE) * self.printed, (1 + TOLERANCE) * self.printed_most
        return low <= self.ours and self.most <= high

    @property
    def cells(self) -> tuple[str, str]:
        """Both ranges, as text."""
        pairs = ((self.printed, self.printed_most), (self.ours, self.most))
        first, second = (between(pair, self.form) for pair in pairs)
        return first, second


@dataclass(frozen=True, slots=True)
class Statement:
    """What the text says without a number.

    Parameters
    ----------
    what : the statement
    ours : what holds here, with figures
    holds : whether both agree
    """

    what: str
    ours: str
    holds: bool

    @property
    def cells(self) -> tuple[str, str]:
        """Both sides, as text."""
        return "said", self.ours


Compared = Number | Span | Statement


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a figure is repeated.

    Parameters
    ----------
    compared : what the text prints or says, beside ours
    differs : why the others differ, shown by a measurement; or that no measurement shows it
    needed : what a better repetition would take
    explained : those of the compared, by what they are, whose difference goes where a measurement changes the
        suspected cause alone
    best : our proven optimum or bound beside the published heuristic, one sentence
    """

    compared: Sequence[Compared] = ()
    differs: str = ""
    needed: str = ""
    explained: Collection[str] = ()
    best: str = ""

    @property
    def word(self) -> str:
        """One of `WORDS`."""
        states = [self.state(comparison) for comparison in self.compared]
        if not states:
            return "nothing printed to compare"
        if set(states) == {"holds"}:
            return "reproduced"
        if "not reproduced" not in states:
            return "differs, explained"
        return "reproduced in part" if "holds" in states else "not reproduced"

    def state(self, comparison: Compared) -> str:
        """Of one comparison: ``holds``, ``explained`` or ``not reproduced``."""
        if comparison.holds:
            return "holds"
        return "explained" if comparison.what in self.explained else "not reproduced"

    @property
    def first(self) -> str:
        """The sentence that counts what holds."""
        if not self.compared:
            return "The text prints no number and no order to compare with."
        holding = sum(comparison.holds for comparison in self.compared)
        count = f"{holding} of {len(self.compared)}"
        return f"{count} printed numbers and statements hold here (numbers within 10 %)."


WORDS = (
    "reproduced",
    "reproduced in part",
    "differs, explained",
    "not reproduced",
    "nothing printed to compare",
)


@dataclass(frozen=True)
class PaperFigure:
    """A figure or table with numbers, and how it is repeated.

    Parameters
    ----------
    title : what it shows, in our words
    claim : what the paper's text says of it
    sizes : of each of `SIZES` the values that `measure` takes from the study
    measure : the tables, from cells that the study keeps
    judge : the tables beside the paper
    draw : the picture of the paper's form; ``None`` for a table without one
    options : values that the command line may set, with their choices; free without choices
    shown : names of the tables that the page prints; empty for none
    """

    title: str
    claim: str
    sizes: Mapping[str, Mapping[str, Any]]
    measure: Callable[[Study], Data]
    judge: Callable[[Data], Verdict]
    draw: Callable[[Data], Figure] | None = None
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    shown: Sequence[str] = ()


@dataclass(frozen=True)
class Plain:
    """A figure or table without a measurement: a drawing, a setting, an algorithm.

    Parameters
    ----------
    kind : ``drawing``, ``notation``, ``algorithm``, ``setting`` or ``not possible here``
    title : what it shows
    here : where the same stands in this project, or why it cannot
    """

    kind: str
    title: str
    here: str


@dataclass(frozen=True)
class Paper:
    """A paper: what stands at the head of its section.

    Parameters
    ----------
    title, source : authors, venue and year among them
    about : one or two sentences on what is repeated, and on which machine
    plain : figures and tables without a measurement, by name
    """

    title: str
    source: str
    about: str
    plain: Mapping[str, Plain]
