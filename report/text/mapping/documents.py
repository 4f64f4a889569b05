"""A whole result document as text."""

from __future__ import annotations

from rich.console import RenderableType

from tilewright.formulation.objective import parse_objective
from tilewright.report.records.mapping.document import ResultDocument
from tilewright.report.text import tables
from tilewright.report.text.mapping.answer_sets import further_views
from tilewright.report.text.mapping.network_figures import figures_views
from tilewright.report.text.mapping.spaces import out_of_space_lines, space_lines


def document_views(document: ResultDocument, seconds: float) -> list[RenderableType]:
    """All about a single layer, or a table of several, and how the search ended after so many seconds."""
    engine, objective = document.arch.build(document.model), parse_objective(document.objective)
    summary = tables.summary_text(document, seconds)
    if len(document.layers) == 1 and not document.missing:
        layer = document.layers[0]
        view = tables.layer_view(layer, layer.operator.build(layer.name), engine, objective)
        return [view, *further_views(layer, objective), *tables.lacking(document), "", summary]
    title = tables.head_text(
        document.model,
        engine.name,
        f"objective {objective}",
        f"{document.cost_model} model",
        f"batch {document.batch}",
    )
    table = tables.layers_table(document, objective)
    views = [view for record in document.layers for view in further_views(record, objective, record.name)]
    beside = out_of_space_lines(document.layers, objective)
    lines = ["", *space_lines(document.layers)]
    reported = [*tables.conflicts(document), *tables.lacking(document)]
    figures = figures_views(document, engine)
    return [title, "", table, *figures, *lines, *reported, *beside, *views, "", summary]
