"""Every rule that discards a design, against all designs solved by plain enumeration."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from effort import effort
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from instances import dmazerunners, hierarchies, operators

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost.base import comparable_rounding
from tilewright.formulation.mapping.cost.hierarchy import Hierarchy
from tilewright.formulation.mapping.cost.registry import cost_model
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.explore.bounds import LayerBounds, least_ratio
from tilewright.solvers.mapping.explore.features import (
    Survey,
    features_of,
    sharing_levels,
    trimmed,
    with_capacities,
    with_largest_capacities,
    with_prices,
)
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import gemm

OBJECTIVES = ("energy", "cycles", "edp", "ed2p", "E^2*D")
EXAMPLES = effort(2)


def least_key(operator: Operator, engine: Engine, objective: str) -> Fraction | None:
    """The least key by enumeration; ``None`` where no mapping exists."""
    problem = layer_problem(operator, engine, parse_objective(objective))
    assume(problem.space.size <= 40_000)
    result = solve(problem, "exhaustive")
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE)
    return result.key


@st.composite
def families(draw: st.DrawFn) -> list[Engine]:
    """Machines of one shape with prices and rooms of their own."""
    base = draw(st.one_of(hierarchies(levels=3), dmazerunners()))
    families = [base]
    for _ in range(3):
        features = features_of(base)
        prices = [draw(st.sampled_from([p, p, p / 2, 2 * p, p + 1])) for p in features.prices]
        capacities = [
            room if room is None else draw(st.sampled_from([room, room, 2 * room, -(-room // 2), 1 + room]))
            for room in features.capacities
        ]
        if base.levels[0].capacity is None:
            capacities[0] = None
        families.append(with_capacities(with_prices(base, prices), capacities))
    return families


@pytest.mark.parametrize("objective", OBJECTIVES)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_no_bound_exceeds_an_optimum(objective: str, data: st.DataObject) -> None:
    """Whatever has been learnt of some machines, no machine's lower bound is above its least key."""
    engines = data.draw(families())
    operator = data.draw(operators(("conv", "gemm"), most=12))
    try:
        keys = [least_key(operator, engine, objective) for engine in engines]
    except InputError:
        assume(False)
    bounds = LayerBounds(
        operator, engines, parse_objective(objective), engines[0].cost_model, None, comparing=True
    )
    for learnt in (None, *data.draw(st.permutations(range(len(engines))))):
        if learnt is not None:
            bounds.learn(learnt, keys[learnt])
        for low, key in zip(bounds.low, keys, strict=True):
            if key is None:
                continue
            assert not np.isinf(low)
            assert Fraction(float(low)) <= key * (1 + Fraction(1, 10**9))
    for index, key in enumerate(keys):
        if key is None:
            assert np.isinf(bounds.low[index])


@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_trimmed_machines_ask_the_same_question(data: st.DataObject) -> None:
    """Without the room that a layer cannot use, its least key is the same."""
    engine = data.draw(st.one_of(hierarchies(levels=3), dmazerunners()))
    operator = data.draw(operators(("conv", "gemm", "pool"), most=12))
    try:
        assert least_key(operator, engine, "edp") == least_key(operator, trimmed(engine, operator), "edp")
    except InputError:
        assume(False)


@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_a_survey_sees_what_every_machine_alone_shows(data: st.DataObject) -> None:
    """Levels that are looked at once give the machines, features and questions of each machine by itself."""
    machines = [*data.draw(families()), *data.draw(families())]
    operator = data.draw(operators(("conv", "gemm", "pool"), most=12))
    shared = sharing_levels(machines)
    assert shared == machines
    for trims in (False, True):
        survey = Survey(shared, operator, trims=trims)
        seen = [trimmed(m, operator) if trims else m for m in machines]
        assert [survey.engine(index) for index in range(len(machines))] == seen
        features = [features_of(engine) for engine in seen]
        for index, own in enumerate(features):
            assert survey.peaks[index] == seen[index].instances
            for row, exact in ((survey.prices, own.prices), (survey.capacities, own.capacities)):
                wanted = [np.inf if amount is None else float(amount) for amount in exact]
                assert row[index, : len(wanted)].tolist() == wanted
                assert not row[index, len(wanted) :].any()
        for one, other in combinations(range(len(machines)), 2):
            same = survey.signatures[one] == survey.signatures[other]
            assert same == (features[one] == features[other])
            alike = survey.shapes[one] == survey.shapes[other]
            assert alike == (features[one].shape == features[other].shape)
        for number in set(survey.shapes.tolist()):
            indices = np.flatnonzero(survey.shapes == number).tolist()
            capacities = [features[index].capacities for index in indices]
            assert survey.largest(indices) == with_largest_capacities(seen[indices[0]], capacities)


@given(st.lists(st.tuples(*[st.integers(0, 9)] * 4), min_size=1, max_size=6))
@example([(0, 0, 0, 0)])
def test_ratio_is_least_over_all_corners(rows: list[tuple[int, int, int, int]]) -> None:
    """No corner of the box of counts has a smaller ratio of costs."""
    prices, mine, least, extra = (np.array([row[i] for row in rows], dtype=float) for i in range(4))
    most = least + extra
    (ratio,) = least_ratio(prices[None], mine, least[None], most[None])
    for corner in range(2 ** len(rows)):
        counts = np.array([most[i] if corner >> i & 1 else least[i] for i in range(len(rows))])
        assert ratio * (mine @ counts) <= prices @ counts + 1e-9


def test_machines_of_other_shapes_are_never_compared() -> None:
    """A machine without multicast says nothing of one with it."""
    engine = load_engine("tpu-edge")
    index = next(i for i, level in enumerate(engine.levels) if level.fanout is not None)
    fan = engine.levels[index].fanout
    assert fan is not None
    levels = list(engine.levels)
    levels[index] = replace(levels[index], fanout=replace(fan, multicast=not fan.multicast))
    other = replace(engine, levels=tuple(levels))
    bounds = LayerBounds(
        gemm(m=8, n=8, k=8), [engine, other], parse_objective("edp"), "hierarchy", None, comparing=True
    )
    before = float(bounds.low[1])
    bounds.learn(0, Fraction(10) ** 20)
    assert bounds.low[1] == before


def test_limits_that_strike_leave_bounds_that_hold() -> None:
    """Once a limit has struck, no bound is above the one that is known with time."""
    engine = load_engine("eyeriss-256")
    question = (gemm(m=8, n=8, k=8), [engine], parse_objective("edp"), engine.cost_model, None)
    known = LayerBounds(*question, comparing=True)
    cut_off = LayerBounds(*question, comparing=True, limits=Limits(seconds=0.0))
    assert 0 <= float(cut_off.low[0]) <= float(known.low[0])
    assert known.low[0] > 0


def test_only_a_model_that_says_so_is_compared() -> None:
    """Both shipped models are; one that inherits from them may count otherwise, and is not."""

    class Squared(Hierarchy):
        """May take the square of every price."""

    assert [comparable_rounding(cost_model(name)) for name in ("hierarchy", "dmazerunner")] == [0, 1]
    assert comparable_rounding(Squared()) is None
