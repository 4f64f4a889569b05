"""Whether a whole store tells the truth: every mapping is evaluated anew and held against every proof."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from tilewright.benchmarks.store import FinishedCell, Store
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.solvers.mapping.methods import method
from tilewright.workloads.errors import InputError


def store_faults(store: Store) -> Iterator[str]:
    """What is wrong, a line each.

    A heuristic must not report ``optimal`` or ``infeasible``, no value may lie below a proven optimum or
    bound, every value must be what the evaluator finds for the stored mapping, and that must be legal.
    """
    bounds = _bounds(store)
    problems: dict[str, LayerProblem] = {}
    for cell in store.cells():
        where = f"cell {cell.key[:12]} ({cell.method}, seed {cell.seed})"
        if cell.problem not in problems:
            problems[cell.problem] = store.problem(cell.problem).build(where)
        for fault in (*_status_faults(cell), *_value_faults(cell, problems[cell.problem], bounds)):
            yield f"{where}: {fault}"


def _bounds(store: Store) -> dict[str, tuple[Fraction, str]]:
    """The best proven bound of every problem, and who proved it."""
    found: dict[str, tuple[Fraction, str]] = {}
    for cell in store.cells():
        bound = cell.answer.bound_key
        if bound is not None and (cell.problem not in found or Fraction(bound) > found[cell.problem][0]):
            found[cell.problem] = Fraction(bound), cell.method
    return found


def _status_faults(cell: FinishedCell) -> Iterator[str]:
    status, answer = cell.answer.status, cell.answer
    if status in ("optimal", "infeasible") and not method(cell.method).exact:
        yield f"a heuristic reports {status}"
    if status == "optimal" and (answer.value_key is None or answer.value_key != answer.bound_key):
        yield f"optimal, but value and bound are {answer.value_key} and {answer.bound_key}"
    if status in ("optimal", "feasible") and answer.mapping is None:
        yield f"{status} without a mapping"


def _value_faults(
    cell: FinishedCell, problem: LayerProblem, bounds: dict[str, tuple[Fraction, str]]
) -> Iterator[str]:
    value = cell.value_key
    if value is None or cell.answer.mapping is None:
        return
    if problem.content_hash != cell.problem:
        yield "the stored problem is another one"
    if cell.problem in bounds and value < bounds[cell.problem][0]:
        bound, prover = bounds[cell.problem]
        yield f"the value {value} is below the bound {bound} of {prover}"
    try:
        found = problem.evaluate(Mapping.from_data(cell.answer.mapping, "mapping"))
    except InputError as error:
        yield str(error)
        return
    yield from (f"illegal mapping: {violation}" for violation in found.violations)
    key = problem.key_of(found)
    if key != value:
        yield f"the value is {value}, the evaluator finds {key}"
