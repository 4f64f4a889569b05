"""Searches of parts: what they find counts for the whole as the whole's own problem has it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.part_search import PartSearch
from tilewright.solvers.mapping.patterns.pattern_machines import PatternSearch
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operators import gemm


@pytest.mark.parametrize(
    ("part_of", "evaluations"),
    [
        (lambda whole: whole.with_perfect_factors(), 1),
        (lambda whole: whole.capped("energy", 10**30), 2),
        (lambda whole: whole.on(load_engine("eyeriss-168")), 2),
    ],
    ids=["the same costs", "other demands", "another machine"],
)
def test_a_mapping_is_evaluated_again_where_it_may_cost_something_else(
    part_of: Callable[[LayerProblem], LayerProblem], evaluations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One evaluation serves part and whole where operator, machine, model and demands are the same."""
    whole = layer_problem(gemm(m=12, n=10, k=8), load_engine("eyeriss-256"), parse_objective("edp"))
    part = part_of(whole)
    answer = solve(part).answer
    assert answer is not None
    evaluated: list[LayerProblem] = []
    evaluate = LayerProblem.evaluate

    def counted(self: LayerProblem, *args: object) -> Evaluation:
        evaluated.append(self)
        return evaluate(self, *args)  # type: ignore[arg-type]

    search = LayerSearch(whole, Limits())
    inner = PartSearch(search, part, Limits())
    monkeypatch.setattr(LayerProblem, "evaluate", counted)
    assert inner.offer(answer, "test") == inner.key
    assert len(evaluated) == evaluations
    judged = whole.judge(answer)
    assert search.key == (None if judged.violations or judged.outside else judged.key)


@pytest.mark.parametrize(
    "between", [lambda whole, even: PartSearch(whole, even, Limits()), PatternSearch], ids=["part", "pattern"]
)
def test_a_part_of_a_part_offers_to_the_whole(
    between: Callable[[LayerSearch, LayerProblem], LayerSearch],
) -> None:
    """The best even mapping may be one of perfect factors: no search on the way keeps it to itself."""
    engine, objective = load_engine("eyeriss-256"), parse_objective("edp")
    problem = layer_problem(gemm(m=12, n=10, k=8), engine, objective, factors="imperfect", storage="uneven")
    whole = LayerSearch(problem, Limits())
    even = between(whole, problem.even())
    perfect = PartSearch(even, even.problem.with_perfect_factors(), Limits())
    answer = solve(perfect.problem).answer
    assert answer is not None
    assert perfect.offer(answer, "test") == even.key == whole.key
    assert whole.key is not None
