"""The ``dmazerunner`` cost model against a run that is played out pass by pass."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import dmazerunners, mappings, operators
from passes import play
from reference import convolution, load, mapping

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import load_engine
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.mapping.operators import conv2d, elementwise

DMAZERUNNER = cost_model("dmazerunner")


@st.composite
def cases(draw: st.DrawFn) -> tuple[Operator, Engine, Mapping]:
    operator, engine = draw(operators(most=64)), draw(dmazerunners(roomy=True))
    try:
        DMAZERUNNER.check(operator, engine)
    except InputError:
        assume(False)
    return operator, engine, draw(mappings(operator, engine))


@settings(max_examples=effort(200))
@given(cases())
def test_energy_and_cycles_are_those_of_a_run_pass_by_pass(case: tuple[Operator, Engine, Mapping]) -> None:
    """Every component, the rounded energy, the cycles and the passes of random mappings."""
    operator, engine, chosen = case
    evaluation, played = (
        evaluate_mapping(operator, engine, DMAZERUNNER, chosen),
        play(operator, engine, chosen),
    )
    assert dict(evaluation.components) == played.components
    assert evaluation.energy == played.energy
    assert evaluation.cycles == played.cycles
    assert evaluation.details["SPM passes"] == played.spm_passes


@pytest.mark.parametrize("index", range(5))
def test_the_run_reproduces_published_evaluations(index: int) -> None:
    """The run itself gives the figures of the authors' program, so that agreeing with it means something."""
    methods = [m for m in load("dmazerunner_evaluations.json", "methods") if m["spm_passes"] < 4000]
    method = sorted(methods, key=lambda m: m["spm_passes"] * m["rf_passes"])[index]
    operator, engine = convolution(method), load_engine("dmazerunner-256")
    for row in method["orders"]:
        played = play(operator, engine, mapping(operator, method["tiling"], row))
        assert (played.energy, played.cycles) == (row["energy"], row["cycles"])


def test_a_scalar_operand_is_one_burst() -> None:
    """A tensor without axes moves one element per invocation."""
    engine = load_engine("dmazerunner-256")
    operator = elementwise(shape=[4, 4], operands=[[4, 4], []])
    problem = layer_problem(operator, engine, parse_objective("edp"))
    evaluation = problem.evaluate(
        problem.decode(_first(problem.space.groups) | dict.fromkeys(problem.space.selectors, 0))
    )
    assert evaluation.details["DMA cycles of I1"] == -(-(291 + Fraction("0.48")) * 500 // 3200)


def _first(groups: tuple) -> dict:  # type: ignore[type-arg]
    return {v: int(g.rows[0, i]) for g in groups for i, v in enumerate(g.variables)}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("O[i,j] += A[i,k] * B[k] * C[k] : i=2, j=2, k=2", "cannot cost a loop reused by several tensors"),
        ("O[i] += A[i,j,k] * B[i,j] * C[k] : i=2, j=2, k=2", "C, O"),
    ],
)
def test_nests_outside_the_model_are_refused(line: str, message: str) -> None:
    """A loop that several tensors do not depend on is named, with a way out."""
    with pytest.raises(InputError, match=message) as caught:
        layer_problem(nest(line), load_engine("dmazerunner-256"), parse_objective("edp"))
    assert "use --cost-model hierarchy" in str(caught.value)
    layer_problem(nest(line), load_engine("dmazerunner-256"), parse_objective("edp"), "hierarchy")


def test_engines_outside_the_model_are_refused() -> None:
    """Three levels with one array, a DMA engine, and every role at every level."""
    engine = load_engine("dmazerunner-256")
    dram, spm, rf = engine.levels
    operator = conv2d(k=2, c=2, p=2, q=2, r=1, s=1)
    without = [
        replace(engine, dma=None),
        replace(engine, levels=(dram, spm)),
        replace(engine, levels=(dram, replace(spm, fanout=None), rf)),
        replace(engine, levels=(replace(dram, fanout=spm.fanout), spm, rf)),
        replace(engine, levels=(dram, spm, replace(rf, keeps=frozenset({Role.INPUT})))),
    ]
    for changed in without:
        with pytest.raises(InputError, match="dmazerunner"):
            layer_problem(operator, changed, parse_objective("edp"))


def test_imperfect_factors_are_refused() -> None:
    """The published model knows divisors only."""
    with pytest.raises(InputError, match="dmazerunner cost model knows perfect factors only"):
        layer_problem(
            conv2d(k=2, c=2, p=2, q=2, r=1, s=1),
            load_engine("dmazerunner-256"),
            parse_objective("edp"),
            factors="imperfect",
        )
