"""Plans in full as text: what was found of one, how busy engines are over time, and every layer."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from tilewright.foundation.errors import InputError, did_you_mean
from tilewright.report.records.claims import number
from tilewright.report.records.scheduling.tiled.document import PlanDocument, plan_metrics
from tilewright.report.records.scheduling.tiled.evaluation import JudgedPlan, judged_document, layer_rows
from tilewright.report.records.scheduling.tiled.timeline import IDLE, link_loads, timeline
from tilewright.report.text.quantities import count_text, objective_text, percent_text, si_text
from tilewright.report.text.scheduling.claims import figures_table
from tilewright.report.text.scheduling.tiled.tables import add_plan_figures, energy_table, plan_views
from tilewright.report.text.tables import head_text, listing, plain_table

_CELLS = 64
_BLOCKS = " ▁▂▃▄▅▆▇█"
_LINKS = 8
_ROWS = 40


def evaluation_views(plan: JudgedPlan) -> list[RenderableType]:
    """The verdict first; then figures, energy, the busiest links and every layer of a legal plan."""
    problem = plan.problem
    batch = f"batch {problem.batch}"
    title = head_text(
        f"{problem.network.name} on {problem.machine.name}", f"{len(problem.units)} layers", batch
    )
    if plan.violation is not None or plan.answer is None or plan.evaluation is None:
        return [title, "", Text(f"illegal: {plan.violation}", style="red")]
    figures, key = figures_table(), plan.key
    if key is not None:
        figures.add_row("value", objective_text(problem.objective, number(key)))
    metrics = plan_metrics(problem, plan.answer, plan.evaluation)
    add_plan_figures(figures, metrics)
    views: list[RenderableType] = [title, "", Text("legal", style="green"), "", figures, ""]
    views += [energy_table(metrics), "", links_table(plan)]
    return [*views, "", *busy_lines(plan), "", layers_table(layer_rows(plan))]


def document_views(
    document: PlanDocument, where: str, patterns: Sequence[str] = (), *, full: bool
) -> list[RenderableType]:
    """Everything that a document of a plan says, as its verb shows it and more.

    Parameters
    ----------
    patterns : of the layers that are listed; all where there is none
    full : list all of them, however many they are

    Raises
    ------
    InputError : for a pattern that no layer has, or a plan that cannot be read
    """
    views = plan_views(document, document.wall_s)
    if not document.complete:
        views.append(Text("the search was still running when this was written", "yellow"))
    plan = judged_document(document, where)
    if plan is None:
        return views
    if plan.violation is not None:
        return [*views, "", Text(f"illegal: {plan.violation}", style="red")]
    rows = layer_rows(plan)
    chosen = [row for row in rows if not patterns or any(fnmatchcase(row["layer"], p) for p in patterns)]
    if not chosen:
        hint = did_you_mean(patterns[0], [row["layer"] for row in rows])
        raise InputError(where, "--layers", f"no layer {patterns[0]!r}{hint}")
    shown = chosen if full else chosen[:_ROWS]
    views += ["", *busy_lines(plan), "", links_table(plan), "", layers_table(shown)]
    if len(shown) < len(chosen):
        views.append(Text(f"and {len(chosen) - len(shown)} more layers, -v shows them"))
    return views


def links_table(plan: JudgedPlan) -> RenderableType:
    """The busiest links: bytes, and the part of the time that they need."""
    assert plan.evaluation is not None
    table = plain_table([("busiest links", "left"), ("bytes", "right"), ("busy", "right")])
    for load in link_loads(plan.problem.machine, plan.evaluation)[:_LINKS]:
        table.add_row(load.name, si_text(load.bytes, "B"), percent_text(load.busy, 1))
    return table


def busy_lines(plan: JudgedPlan) -> list[RenderableType]:
    """How many engines compute over time, in one line."""
    assert plan.answer is not None
    assert plan.evaluation is not None
    times = timeline(plan.answer, plan.problem.machine, plan.evaluation)
    share = np.mean(times.raster(_CELLS) != IDLE, axis=0)
    cells = "".join(_BLOCKS[round(float(busy) * (len(_BLOCKS) - 1))] for busy in share)
    mean = percent_text(float(times.busy.mean()), 1)
    reported = f"busy engines from 0 to {count_text(times.cycles)} cycles; {mean} on average"
    return [Text(cells), Text(reported, "dim")]


def layers_table(rows: Sequence[dict[str, Any]]) -> RenderableType:
    """A row per layer: into what it is cut, when it runs and where."""
    titles = [
        ("layer", "left"),
        ("atoms", "right"),
        ("n c h w sum", "right"),
        ("start", "right"),
        ("end", "right"),
        ("engines", "right"),
        ("engine cycles", "right"),
    ]
    return listing(
        titles,
        [
            (
                row["layer"],
                count_text(row["atoms"]),
                " ".join(map(str, row["cut"])),
                count_text(round(row["start"])),
                count_text(round(row["end"])),
                str(row["engines"]),
                count_text(round(row["engine_cycles"])),
            )
            for row in rows
        ],
    )
