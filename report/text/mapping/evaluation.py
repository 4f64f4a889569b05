"""What the evaluator says of one mapping, as text."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.formulation.mapping.claimed_space import ClaimedSpace
from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.report.records.claims import shown_value
from tilewright.report.records.mapping.build import metrics_record, space_record
from tilewright.report.records.mapping.operator import shape_text
from tilewright.report.text import tables
from tilewright.report.text.mapping.spaces import record_text
from tilewright.report.text.quantities import objective_text


def evaluation_views(
    name: str, problem: LayerProblem, mapping: Mapping, evaluation: Evaluation
) -> list[RenderableType]:
    """Whether the mapping is legal and inside the searched space, and figures, loop nest and traffic.

    Parameters
    ----------
    name : of the layer
    problem : whose objective and space the mapping is seen in
    mapping : legal or not, inside the space or not
    evaluation : the mapping's, with the user's demands
    """
    operator, engine = problem.operator, problem.engine
    metrics = metrics_record(evaluation, engine)
    figures = Table.grid(padding=(0, 3, 0, 0))
    value = shown_value(problem.objective, problem.key_of(evaluation))
    if value is not None:
        figures.add_row(str(problem.objective), objective_text(problem.objective, value))
    tables.add_figures(figures, metrics, engine, problem.objective)
    title = tables.head_text(
        name, f"{operator.kind} {shape_text(operator)}", f"{engine.name}, {problem.model.name} model"
    )
    verdict = [Text("legal", style="green")]
    if evaluation.violations:
        verdict = [Text(f"illegal: {violation}", style="red") for violation in evaluation.violations]
    space = record_text(space_record(ClaimedSpace.of(problem)))
    reason = problem.outside(mapping)
    if reason is None:
        verdict.append(Text(f"inside the searched space: {space}", style="green"))
    else:
        verdict.append(Text(f"outside the searched space ({space}): {reason}", style="yellow"))
    views = tables.metrics_views(metrics, operator, engine, mapping)
    return [title, "", *verdict, "", figures, "", *views]
