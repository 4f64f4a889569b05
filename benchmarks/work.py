"""Computing one cell.  Runs in worker processes, here or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar

from tilewright.api.catalog import ready_method
from tilewright.api.mapping.stated import prepare_mapping, searched_mapping
from tilewright.benchmarks.cells import BenchmarkTask, CellAnswer, ProblemRecord
from tilewright.formulation.limits import Limits
from tilewright.formulation.objective import Objective
from tilewright.formulation.result import Origin, Result, Status, TracePoint
from tilewright.foundation.errors import InputError, one_line
from tilewright.foundation.pool import Work
from tilewright.report.records.mapping.build import effort_record, metrics_record, versions

Answer = TypeVar("Answer")
Evaluation = TypeVar("Evaluation")


def answering(search: Callable[[BenchmarkTask], CellAnswer]) -> Callable[[BenchmarkTask, str], CellAnswer]:
    """What workers call: a search whose failures are answers too.

    The second argument is the task's key where it was planned; another one here means that another version
    would answer.
    """

    @wraps(search)
    def answer(task: BenchmarkTask, key: str) -> CellAnswer:
        try:
            if task.key != key:
                return failed("the worker runs another version of tilewright than the plan")
            return search(task)
        except InputError as error:
            return failed(str(error))
        except Exception as error:
            return failed(f"{type(error).__name__}: {one_line(error)}")

    return answer


@answering
def answer(task: BenchmarkTask) -> CellAnswer:
    """Search, and report the outcome as plain data."""
    ready_method(task.method, flag="--solver")  # loaded, and compiled, before the clock starts
    prepare_mapping(task.method)
    record = ProblemRecord.model_validate_json(task.problem)
    limits = Limits(seconds=task.seconds, threads=task.threads, seed=task.seed)
    problem = record.build("cell")
    if problem.content_hash != task.input_hash:
        return failed("the worker states another problem than the plan")
    result = searched_mapping(problem, task.method, limits)
    evaluation = result.evaluation
    metrics = None if evaluation is None else metrics_record(evaluation, problem.engine).model_dump()
    mapping = None if result.answer is None else result.answer.to_data()
    effort = effort_record(result.effort).model_dump()
    return reported(result, problem.objective, metrics, mapping, effort)


def failed(message: str) -> CellAnswer:
    """The answer of a cell that has none."""
    return CellAnswer(status=Status.ERROR.value, message=message, versions=versions())


def _names(task: BenchmarkTask) -> Iterator[str]:
    yield task.method
    yield ProblemRecord.model_validate_json(task.problem).cost_model


CELLS: Work[BenchmarkTask, CellAnswer] = Work(answer, failed, names=_names)
"""How workers compute cells."""


def reported(
    result: Result[Answer, Evaluation],
    objective: Objective,
    metrics: dict[str, Any] | None,
    mapping: list[dict[str, str | int]] | None = None,
    effort: dict[str, Any] | None = None,
) -> CellAnswer:
    """The result of a search as plain data.

    Parameters
    ----------
    metrics, mapping : of its answer; ``None`` where it has none, or no mapping is kept
    effort : what it took, as in the results document, if anybody counted
    """
    shown = objective.value
    return CellAnswer(
        status=result.status.value,
        value_key=None if result.key is None else str(result.key),
        bound_key=None if result.bound is None else str(result.bound),
        value=None if result.key is None else float(shown(result.key)),
        bound=None if result.bound is None else float(shown(result.bound)),
        wall_s=result.wall_seconds,
        message=result.message,
        metrics=metrics,
        mapping=mapping,
        trace=[_trace_step(point) for point in result.trace],
        versions=versions(),
        effort=effort,
    )


def _trace_step(point: TracePoint) -> list[Any]:
    """A point of a trace as `CellAnswer` has it."""
    return [
        round(point.seconds, 6),
        None if point.key is None else str(point.key),
        None if point.bound is None else str(point.bound),
        point.source,
        point.improved,
        point.origin is not Origin.EXACT,
    ]
