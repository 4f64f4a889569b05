"""Whether a whole store is correct: every mapping is evaluated again and held against every proof."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from tilewright.api.catalog import made_method
from tilewright.benchmarks.cells import BenchmarkTask
from tilewright.benchmarks.store import FinishedCell, Store
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.foundation.errors import InputError
from tilewright.report.records.mapping.build import metrics_record

_ROUNDED = 1e-3
"""Seconds by which a step may lie behind the end: both are rounded."""
_SOLVED, _UNSOLVED = ("optimal", "feasible"), ("infeasible", "unknown")


def store_faults(store: Store) -> Iterator[str]:
    """What is wrong, a line each.

    A run's key must be that of its inputs, and its status, figures and trace must be those of its keys.  A
    heuristic must not report ``optimal`` or ``infeasible``, no value may lie below a proven optimum or bound,
    value and metrics must be what the evaluator finds for the stored mapping, and that must be legal.  Runs
    of `compare` are reported by its documents, which have a check of their own.
    """
    bounds = _bounds(store)
    problems: dict[str, LayerProblem] = {}
    contests: dict[str, bool] = {}
    for cell in store.cells():
        where = f"cell {cell.key[:12]} ({cell.method}, seed {cell.seed})"
        if cell.problem not in contests:
            contests[cell.problem] = store.is_contest(cell.problem)
        faults = [*_key_faults(cell)]
        if cell.evidence is not None and store.evidence(cell.evidence) is None:
            faults.append("its evidence is not in the store")
        if not contests[cell.problem]:
            if cell.problem not in problems:
                problems[cell.problem] = store.problem(cell.problem).build(where)
            problem = problems[cell.problem]
            faults += [*_status_faults(cell), *_figure_faults(cell, problem), *_trace_faults(cell)]
            faults += _value_faults(cell, problem, bounds)
        yield from (f"{where}: {fault}" for fault in faults)
    yield from _place_faults(store)


def _bounds(store: Store) -> dict[str, tuple[Fraction, str]]:
    """The best proven bound of every problem, and who proved it."""
    bounds: dict[str, tuple[Fraction, str]] = {}
    for cell in store.cells():
        bound = cell.answer.bound_key
        if bound is not None and (cell.problem not in bounds or Fraction(bound) > bounds[cell.problem][0]):
            bounds[cell.problem] = Fraction(bound), cell.method
    return bounds


def _key_faults(cell: FinishedCell) -> Iterator[str]:
    """The key is the hash of everything that the answer depends on."""
    version = cell.answer.versions.get("tilewright")
    task = BenchmarkTask(
        "", cell.problem, cell.method, cell.method_version, cell.seed, cell.time_limit_s, cell.threads
    )
    if version is None:
        yield "versions: that of tilewright is missing"
    elif cell.key not in (task.key_of(version), _with_whole_seconds(task).key_of(version)):
        yield "problem, method, version, seed, time limit or threads are not those of its key"


def _with_whole_seconds(task: BenchmarkTask) -> BenchmarkTask:
    """The same task with a limit that is written without a decimal point, as some callers do."""
    return replace(task, seconds=int(task.seconds)) if task.seconds == int(task.seconds) else task


def _status_faults(cell: FinishedCell) -> Iterator[str]:
    status, answer = cell.answer.status, cell.answer
    exact = made_method(cell.method, flag="--solver").exact
    if status in ("optimal", "infeasible") and not exact:
        yield f"a heuristic reports {status}"
    if status == "optimal" and (answer.value_key is None or answer.value_key != answer.bound_key):
        yield f"optimal, but value and bound are {answer.value_key} and {answer.bound_key}"
    if (
        exact
        and status != "optimal"
        and answer.value_key is not None
        and answer.value_key == answer.bound_key
    ):
        yield f"{status}, but value and bound are equal"
    if status in _SOLVED and answer.mapping is None:
        yield f"{status} without a mapping"
    if status in _UNSOLVED and answer.mapping is not None:
        yield f"{status} with a mapping"
    if len({answer.value_key is None, answer.mapping is None, answer.metrics is None}) > 1:
        yield "expected value, mapping and metrics together"
    if status == "error" and not answer.message:
        yield "error without a message"


def _figure_faults(cell: FinishedCell, problem: LayerProblem) -> Iterator[str]:
    """Value and bound as people read them are those of their keys."""
    answer = cell.answer
    for name, key, shown in (
        ("value", answer.value_key, answer.value),
        ("bound", answer.bound_key, answer.bound),
    ):
        fresh = None if key is None else float(problem.objective.value(Fraction(key)))
        if shown != fresh:
            yield f"the {name} is shown as {shown}, its key makes {fresh}"
    if cell.answer.wall_s < 0 or cell.time_limit_s <= 0:
        yield f"{cell.answer.wall_s} s of {cell.time_limit_s} s"


def _trace_faults(cell: FinishedCell) -> Iterator[str]:
    """Values fall, bounds rise, times increase, and the end is what is stored."""
    answer = cell.answer
    at, value, bound = 0.0, None, None
    for seconds, *keys, _, _, _ in answer.trace:
        key, least = (None if text is None else Fraction(text) for text in keys)
        if seconds < at:
            yield f"trace: {seconds} s after {at} s"
        if value is not None and (key is None or key > value):
            yield f"trace: the value {key} after {value}"
        if bound is not None and (least is None or least < bound):
            yield f"trace: the bound {least} after {bound}"
        at, value, bound = seconds, key, least
    if at > answer.wall_s + _ROUNDED:
        yield f"trace: ends after {at} s, the run after {answer.wall_s} s"
    if value != cell.value_key:
        yield f"trace: ends with the value {value}, the value is {answer.value_key}"
    given_up = answer.bound_key is None and answer.status in ("infeasible", "error")
    if not given_up and bound != (None if answer.bound_key is None else Fraction(answer.bound_key)):
        yield f"trace: ends with the bound {bound}, the bound is {answer.bound_key}"


def _value_faults(
    cell: FinishedCell, problem: LayerProblem, bounds: dict[str, tuple[Fraction, str]]
) -> Iterator[str]:
    if problem.content_hash != cell.problem:
        yield "the stored problem is another one"
    value = cell.value_key
    if value is None or cell.answer.mapping is None:
        return
    if cell.problem in bounds and value < bounds[cell.problem][0]:
        bound, prover = bounds[cell.problem]
        yield f"the value {value} is below the bound {bound} of {prover}"
    try:
        mapping = Mapping.from_data(cell.answer.mapping, "mapping")
        evaluation = problem.evaluate(mapping)
        outside = problem.outside(mapping)
    except InputError as error:
        yield str(error)
        return
    yield from (f"illegal mapping: {violation}" for violation in evaluation.violations)
    if outside is not None and made_method(cell.method, flag="--solver").exact:
        yield f"the mapping lies outside the space: {outside}"
    key = problem.key_of(evaluation)
    if key != value:
        yield f"the value is {value}, the evaluator finds {key}"
    fresh, reported = metrics_record(evaluation, problem.engine).model_dump(), cell.answer.metrics or {}
    for name in fresh:
        if name not in reported or reported[name] != fresh[name]:
            yield f"metrics: {name} differs from the evaluator's result"


def _place_faults(store: Store) -> Iterator[str]:
    """A run stands where its method, seed and objective belong."""
    for placed in store.placed():
        cell = placed.cell
        if cell is not None and (cell.method, cell.seed) != (placed.place.method, placed.place.seed):
            yield f"{placed.place}: a run of {cell.method} with seed {cell.seed}"
        if cell is not None and not store.is_contest(cell.problem):
            objective = store.problem(cell.problem).objective
            if objective != placed.place.objective:
                yield f"{placed.place}: a run for {objective}"
