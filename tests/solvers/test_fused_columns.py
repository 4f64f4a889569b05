"""The model over columns against plain enumeration and the search, and on cases of known value."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from effort import effort
from fused_brute import Listing
from fused_pricing import least_fused
from fused_tiny import joined_group, nested_group, ragged_group, softmax_group, timed, tiny_engine, tiny_group
from studies.fused_peer import chain

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup, group_of
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.columns.fronts import Fronts, undominated
from tilewright.solvers.mapping.fused.columns.group_model import LeastGroup, least_group
from tilewright.solvers.mapping.fused.columns.space import Listed
from tilewright.solvers.mapping.fused.group_search import search_fused

HIERARCHY = cost_model("hierarchy")
SMALL = json.loads((Path(__file__).parents[1] / "data" / "fused_peer.json").read_text(), parse_float=Decimal)


def least(
    group: FusedGroup,
    engine: Engine,
    factors: str = "perfect",
    storage: str | None = None,
    below: Fraction | None = None,
) -> LeastGroup:
    """What the model finds; its tree is legal and costs what it says.

    Parameters
    ----------
    group, engine : the question
    factors, storage : of mappings of turns
    below : pJ
    """
    listed = Listed(engine, HIERARCHY, factors, storage)
    found = least_group(group, listed, Fronts(listed, Limits()), below, Limits(threads=1))
    if found.tree is not None:
        evaluation = evaluate_fused(group, engine, HIERARCHY, found.tree)
        assert not evaluation.violations
        assert evaluation.energy == found.value
    return found


@pytest.mark.parametrize("seed", range(effort(2)))
def test_the_model_finds_what_plain_enumeration_finds(seed: int) -> None:
    """Tiny groups: the least of all trees, residents and mappings, with a threshold or without."""
    rng = Random(f"columns-{seed}")
    group, engine = tiny_group(rng), tiny_engine(rng)
    value = least_fused(Listing(group, engine), engine)
    assert least(group, engine).value == value
    if value is not None:
        assert least(group, engine, below=value + 1).value == value


@pytest.mark.parametrize("seed", range(effort(3)))
def test_the_model_agrees_with_the_search(seed: int) -> None:
    """The same with prices of cycles, three levels, uneven storage, and tiles that need not divide."""
    rng = Random(f"agreed-{seed}")
    group, engine = tiny_group(rng), tiny_engine(rng, three=seed % 3 == 0)
    if seed % 2:
        engine = timed(rng, engine)
    factors = "perfect"
    if seed % 4 == 3:
        group, factors = ragged_group(rng), "imperfect"
    storage = "uneven" if seed % 3 == 1 else None
    answer = search_fused(group, engine, HIERARCHY, Limits(), factors=factors, storage=storage)
    assert least(group, engine, factors, storage).value == answer.value


@pytest.mark.parametrize("seed", [13, 21])
def test_the_model_finds_the_least_of_sums_with_operands_from_outside(seed: int) -> None:
    """An operand from outside starts where the result of the group starts that it is added to."""
    rng = Random(f"joined-{seed}")
    group, engine = joined_group(rng), tiny_engine(rng)
    assert least(group, engine).value == least_fused(Listing(group, engine), engine)


@pytest.mark.parametrize("seed", range(effort(2)))
def test_the_model_agrees_with_the_search_on_inner_sequences(seed: int) -> None:
    """Three layers, some of them in a sequence within the loops of another one."""
    rng = Random(f"nested-{seed}")
    group, engine = nested_group(rng), tiny_engine(rng, three=seed % 4 == 0)
    if seed % 2:
        engine = timed(rng, engine)
    answer = search_fused(group, engine, HIERARCHY, Limits(), factors="perfect")
    assert least(group, engine).value == answer.value


@pytest.mark.parametrize("seed", range(effort(1)))
def test_the_model_agrees_with_the_search_on_softmaxes_in_parts(seed: int) -> None:
    """Products behind a softmax whose rows may be cut: words, their room, and sums scaled where they are."""
    rng = Random(f"rows-{seed}")
    group, engine = softmax_group(rng), tiny_engine(rng, three=seed % 3 == 0)
    if seed % 2:
        engine = timed(rng, engine)
    answer = search_fused(group, engine, HIERARCHY, Limits(), factors="perfect")
    assert least(group, engine).value == answer.value


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_model_agrees_with_the_search_on_many_groups() -> None:
    """300 tiny groups of every kind."""
    for seed in range(300):
        test_the_model_agrees_with_the_search(1000 + seed)
    for seed in range(100):
        test_the_model_agrees_with_the_search_on_softmaxes_in_parts(1000 + seed)


def small_rows() -> list[object]:
    """Rows of fused chains; those of more than a few seconds are slow."""
    rows = [row for row in SMALL["small"]["rows"] if row["fused"]]
    rows = [row for row in rows if row["max_fused_loops_per_rank_variable"] == 1]
    return [
        pytest.param(row, marks=[pytest.mark.slow] if row["einsums"] > 2 or row["glb_bits"] > 1024 else [])
        for row in rows
    ]


@pytest.mark.parametrize("row", small_rows())
def test_small_chains_of_products_have_their_optimum(row: dict[str, int]) -> None:
    """Chains of 16 x 16 x 16: the least of all trees below a threshold is the peer's energy."""
    network, engine = chain(row)
    group, value = group_of(network), Fraction(row["energy"])
    assert least(group, engine, storage="uneven", below=value + 1).value == value


def test_rows_that_others_replace_are_left_out() -> None:
    """Every row left out is at least a kept one in all numbers, and no kept one is so of another."""
    import numpy as np

    rng = np.random.default_rng(5)
    rows = rng.integers(0, 6, (200, 3))
    kept = undominated(rows)
    for at, row in enumerate(rows):
        smaller = [other for other in kept if other != at and (rows[other] <= row).all()]
        assert bool(smaller) != (at in kept)
