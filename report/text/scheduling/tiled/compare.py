"""A contest of methods as a table."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from tilewright.formulation.scheduling.tiled.problem import tiled_objective
from tilewright.report.records.scheduling.tiled.compare import (
    CompareDocument,
    ContestantRecord,
    RunRecord,
    WinnerRecord,
    keys_of,
    ranked,
)
from tilewright.report.text.quantities import (
    Number,
    bytes_text,
    count_text,
    energy_text,
    objective_text,
    percent_text,
    seconds_text,
    si_text,
)
from tilewright.report.text.tables import head_text, plain_table

VALUES = (
    ("method", "left"),
    ("value", "right"),
    ("best", "right"),
    ("worst", "right"),
    ("closed form", "right"),
    ("gap", "right"),
    ("time", "right"),
)
FIGURES = (
    ("method", "left"),
    ("cycles", "right"),
    ("energy", "right"),
    ("DRAM", "right"),
    ("hops", "right"),
    ("util.", "right"),
    ("atoms", "right"),
)


def compare_views(document: CompareDocument) -> list[RenderableType]:
    """A row per method, the least median first, and who is ahead."""
    samples = [f"batch {document.batch}"] if document.batch > 1 else []
    settings = document.settings
    clock = " of the processor" if settings.clock == "cpu" else ""
    title = head_text(
        f"{document.workload} on {document.system}",
        f"objective {document.objective}",
        *samples,
        f"{seconds_text(settings.time_limit_s)}{clock} a run",
    )
    runs = [run for contestant in document.contestants if (run := typical(contestant)) is not None]
    energy = min((run.energy_pj for run in runs if run.energy_pj), default=None)
    values, figures = plain_table(list(VALUES)), plain_table(list(FIGURES))
    for contestant in ranked(document.contestants):
        values.add_row(*value_texts(document, contestant))
        if (run := typical(contestant)) is not None:
            figures.add_row(contestant.method, *figure_texts(run, energy))
    bound = objective_text(tiled_objective(document.objective), document.bound, _least(document))
    notes = [
        Text(winner_text(document)),
        Text(f"bound over all sizes of atoms and all plans: {bound}", "dim"),
    ]
    notes += [
        Text(f"{contestant.method}: {text}")
        for contestant in document.contestants
        for text in _messages(contestant)
    ]
    shown: list[RenderableType] = [title, "", values]
    if figures.row_count:
        shown += ["", figures]
    return [*shown, "", *notes]


def typical(record: ContestantRecord) -> RunRecord | None:
    """The run whose value is the median."""
    return next((run for run in record.runs if run.value_key == record.median_key is not None), None)


def standing(record: ContestantRecord) -> str:
    """What stands in the place of a median that there is not."""
    plans = len(keys_of(record.runs))
    if plans:
        return f"{plans} of {len(record.runs) + record.missing} have plans"
    return record.runs[0].status if record.runs else "not run"


def value_texts(document: CompareDocument, record: ContestantRecord) -> list[str]:
    """The cells of a method under `VALUES`: its median, and best and worst where it has several runs."""
    run = typical(record)
    objective, least = tiled_objective(document.objective), _least(document)

    def shown(value: Number) -> str:
        return objective_text(objective, value, least)

    several = len(record.runs) + record.missing > 1
    best = "" if record.best is None or not several else shown(record.best)
    if run is None or record.median is None:
        return [record.method, standing(record), best, *[""] * (len(VALUES) - 3)]
    worst = f"{record.without_plan} without" if record.worst is None else shown(record.worst)
    return [
        record.method,
        shown(record.median),
        best,
        worst if several else "",
        "" if run.closed_form is None else shown(run.closed_form),
        "" if record.gap is None else percent_text(record.gap, 1),
        seconds_text(run.wall_s),
    ]


def _least(document: CompareDocument) -> Number | None:
    """The least median: the unit of all values is its own."""
    return min((entry.median for entry in document.contestants if entry.median is not None), default=None)


def figure_texts(run: RunRecord, like: Number | None = None) -> list[str]:
    """The cells of a run with a plan under `FIGURES`; its energy in the unit of another, if one is given."""
    return [
        count_text(run.cycles or 0),
        energy_text(run.energy_pj or 0, like),
        bytes_text(run.dram_bytes or 0, 8),
        si_text(float(run.hop_bytes or 0), "B"),
        percent_text(run.utilization or 0.0, 1),
        count_text(run.atoms or 0),
    ]


def winner_text(document: CompareDocument) -> str:
    """Who wins and by how much; a lead that is not clear is called no win."""
    winner = document.winner
    others = any(entry.best is not None for entry in document.contestants if entry.method != _name(winner))
    if winner is None:
        return "no method has plans for half of its runs" if others else "no method has a plan"
    if winner.second is None or winner.lead is None:
        return f"{winner.method} alone has {'plans for half of its runs' if others else 'a plan'}"
    lead = percent_text(winner.lead, 1)
    if winner.clear:
        return f"{winner.method} wins by {lead} over {winner.second}"
    return f"no win: {winner.method} {lead} ahead of {winner.second}"


def _name(winner: WinnerRecord | None) -> str | None:
    return None if winner is None else winner.method


def _messages(record: ContestantRecord) -> list[str]:
    return [*dict.fromkeys(run.message for run in record.runs if run.message)]
