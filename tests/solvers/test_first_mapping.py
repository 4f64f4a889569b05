"""A mapping within a moment: legal, in the space, and never better than what enumeration finds."""

from __future__ import annotations

import random

import numpy as np
import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import Instance, instances

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.load import list_presets, load_engine
from tilewright.solvers.mapping.first_mapping import _Growth, offer_any_mapping, offer_one_mapping
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer


@settings(max_examples=effort(30))
@given(st.data())
def test_mappings_offered_are_legal_and_never_better_than_the_best(data: st.DataObject) -> None:
    """On random layers and machines, also where demands exclude most mappings."""
    model = data.draw(st.sampled_from(["hierarchy", "dmazerunner"]))
    constrained = data.draw(st.booleans())
    instance: Instance = data.draw(instances(model, most=24, largest=20_000, constrained=constrained))
    problem = instance.problem()
    best = solve(problem, "exhaustive")
    for offer in (offer_one_mapping, offer_any_mapping):
        search = LayerSearch(problem, Limits())
        offer(search)
        if search.key is None:
            continue
        assert best.key is not None
        assert search.key >= best.key
        assert search.answer is not None
        assert not problem.evaluate(search.answer).violations
        assert problem.outside(search.answer) is None


@settings(max_examples=effort(20))
@given(st.data())
def test_paths_cost_what_the_evaluator_says_or_less_reuse(data: st.DataObject) -> None:
    """Points that break no limit are mappings of the space; no key is below the evaluator's."""
    model = data.draw(st.sampled_from(["hierarchy", "dmazerunner"]))
    problem = data.draw(instances(model, most=24, largest=20_000)).problem()
    growth = _Growth(problem)
    points = growth.paths(random.Random(data.draw(st.integers(0, 99))))
    points += [*growth.moves(points[-1])]
    keys = growth.keys(points)
    for place in np.flatnonzero(np.isfinite(keys))[:20].tolist():
        judged = problem.judge(growth.mapping(points[place]))
        assert not judged.violations
        assert judged.outside is None
        assert float(judged.key * problem.key_scale) <= keys[place] * (1 + 1e-9)


@pytest.mark.parametrize("machine", list_presets())
@pytest.mark.parametrize("layer", ["gemm:M=257,N=64,K=96", "conv:K=24,C=32,P=14,Q=14,R=3,S=3,pad=1,stride=2"])
def test_every_preset_has_a_mapping_at_once(machine: str, layer: str) -> None:
    """One evaluation finds some mapping; growing ones are better, and moves never make them worse."""
    problem = layer_problem(parse_layer(layer)[1], load_engine(machine), parse_objective("edp"))
    keys = []
    for offer in (offer_one_mapping, lambda search: offer_any_mapping(search, steps=0), offer_any_mapping):
        search = LayerSearch(problem, Limits())
        offer(search)
        assert search.key is not None
        keys.append(search.key)
    assert keys[2] <= keys[1] <= keys[0]
