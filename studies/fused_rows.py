"""Tables of fused mappings: a row for each subject and machine, kept in a store, so that a run goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from studies.answers import AnswerStore
from studies.command import Work, run_study, study_parser

_APPLICATION = 0x54574652  # "TWFR", SQLite's application_id of these files


@dataclass(frozen=True)
class RowAsked:
    """A row: what is fused, on which machine, in so many seconds of the processor.

    Parameters
    ----------
    table : the module that fills it
    """

    table: str
    subject: str
    machine: str
    seconds: float


@dataclass(frozen=True)
class RowFilled:
    """The cells behind subject and machine; with the status ``error`` the reason alone."""

    status: str
    cells: list[str]


Store = AnswerStore[RowAsked, RowFilled]


def print_rows(
    program: str,
    heads: Sequence[str],
    defaults: tuple[Sequence[str], Sequence[str]],
    fill: Callable[[RowAsked], RowFilled],
    given: Sequence[str] | None,
) -> int:
    """Read the command line, fill the rows that the store lacks, and print the table that is asked for.

    Parameters
    ----------
    program : the module, for its help
    heads : of columns; the first one names the subjects and, in the plural, their option
    defaults : subjects and machines
    fill : a function of a module, which runs in a process of its own for every row
    given : the arguments, by default those of the process
    """
    parser = study_parser(f"python -m {program}", f"{program.rpartition('.')[2]}.sqlite", 120)
    parser.add_argument(f"--{heads[0]}s", dest="subjects", nargs="+", default=defaults[0])
    parser.add_argument("--machines", nargs="+", default=defaults[1])
    asked = parser.parse_args(given)
    rows = [
        RowAsked(program, subject, machine, asked.seconds)
        for subject in asked.subjects
        for machine in asked.machines
    ]

    def show(store: Store) -> Iterator[str]:
        yield "| " + " | ".join(heads) + " |"
        yield "|---|---" + "|---:" * (len(heads) - 2) + "|"
        for row in rows:
            known = store.get(row)
            if known is not None:
                yield _line(row, known)

    work = Work(_open, fill, lambda reason: RowFilled("error", [reason]), _line, fresh=True)
    return run_study(asked, work, rows, show)


def _open(path: Path) -> Store:
    return AnswerStore(path, RowFilled, _APPLICATION, "rows of fused mappings")


def _line(row: RowAsked, known: RowFilled) -> str:
    return "| " + " | ".join([row.subject, row.machine, *known.cells]) + " |"
