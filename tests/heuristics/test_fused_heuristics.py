"""Heuristics for fused mappings: never better than the optimum, repeatable, ended by limits without loss."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from random import Random

import pytest
from effort import effort
from fused_tiny import timed, tiny_engine, tiny_group
from stops import AfterChecks

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Leaf, SharedLoop
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import load_engine
from tilewright.heuristics.mapping.fused.registry import FUSION_HEURISTICS
from tilewright.solvers.mapping.fused.answers import FusionAnswer
from tilewright.solvers.mapping.fused.network import search_network_fusion
from tilewright.solvers.mapping.fused.problem import FusionProblem
from tilewright.workloads.linked_layers import linked_network
from tilewright.workloads.mapping.layer_reads import Reading
from tilewright.workloads.mapping.operators import gemm
from tilewright.workloads.network import Network

NAMES = FUSION_HEURISTICS.names()


def network_of(group: FusedGroup) -> Network:
    """A group as a network."""
    return linked_network("tiny", group.layers, group.readings)


def attention(tokens: int, width: int) -> Network:
    """QK and AV of one head."""
    layers = (("qk", gemm(m=tokens, n=tokens, k=width)), ("av", gemm(m=tokens, n=width, k=tokens)))
    return linked_network("attention", layers, (Reading("av", "A", "qk", (0, 1), (0, 0)),))


def answered(
    network: Network,
    engine: Engine,
    method: str | None,
    limits: Limits | None = None,
    objective: str = "energy",
) -> FusionAnswer:
    """What a heuristic finds, or what the search proves.

    Parameters
    ----------
    network, engine, objective : the question
    method : ``None`` for the search
    limits : none by default
    """
    names = tuple(layer.name for layer in network.layers)
    problem = FusionProblem(
        network, engine, names, "hierarchy", 4, "perfect", objective=parse_objective(objective)
    )
    made = None if method is None else FUSION_HEURISTICS.make(method)
    return search_network_fusion(problem, limits or Limits(), method=made)


@pytest.mark.parametrize("seed", range(effort(3)))
def test_none_is_better_than_the_optimum(seed: int) -> None:
    """On random tiny networks bound, optimum, heuristic and unfused layers stand in this order."""
    rng = Random(f"heuristic-{seed}")
    network, engine = network_of(tiny_group(rng)), tiny_engine(rng)
    objective = ("energy", "edp", "cycles")[seed % 3]
    if objective == "cycles":
        engine = timed(rng, engine)
    best = answered(network, engine, None, objective=objective)
    for method in ("greedy", "depth-first", "annealing[steps=20]"):
        found = answered(network, engine, method, objective=objective)
        if best.value is None:
            continue
        assert found.value is not None
        assert found.bound <= best.value <= found.value
        assert found.alone[0] is None or found.value <= found.alone[0]


def test_attention_tells_them_apart() -> None:
    """Rows alone are not enough: cutting reductions, too, takes less, and the optimum less than both."""
    network, engine = attention(512, 64), load_engine("tpu-edge")
    best, greedy, rows = (answered(network, engine, name).value for name in (None, "greedy", "depth-first"))
    assert best is not None
    assert greedy is not None
    assert rows is not None
    assert best < greedy < rows


def test_depth_first_tiles_cut_the_output_alone() -> None:
    """One sequence, whose loops run over the last layer's output and never over what it sums up."""
    network = attention(64, 32)
    answer = answered(network, load_engine("tpu-edge"), "depth-first")
    (tried,) = answer.tried
    assert tried.tree is not None
    assert all(isinstance(child, Leaf) for child in tried.tree.children)
    loops = [node for node in tried.tree.nodes if isinstance(node, SharedLoop)]
    assert {loop.dim for loop in loops} <= network.layer("av").operator.output.dims


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_answer(name: str) -> None:
    """Trees and values are repeated, and other seeds walk elsewhere."""
    network, engine = attention(32, 8), load_engine("tpu-edge")
    method = "annealing[steps=12]" if name == "annealing" else name
    seeds = (3, 3, 4) if name == "annealing" else (3, 3)
    runs = [answered(network, engine, method, Limits(seed=seed)) for seed in seeds]
    trees = [run.tried[0].tree for run in runs]
    assert trees[0] == trees[1]
    assert runs[0].value == runs[1].value
    if name == "annealing":
        assert runs[0].tried[0].opened != runs[2].tried[0].opened or trees[0] != trees[2]


@lru_cache
def least_of_attention() -> Fraction:
    """The proven value of one small head."""
    value = answered(attention(64, 32), load_engine("tpu-edge"), None).value
    assert value is not None
    return value


@pytest.mark.parametrize("name", NAMES)
def test_limits_keep_what_was_found(name: str) -> None:
    """However early a limit strikes, there is a valid bound, and a value at most that of layers alone."""
    network, engine = attention(64, 32), load_engine("tpu-edge")
    whole = least_of_attention()
    fused = 0
    for checks in (0, 30, 300, 1000):
        answer = answered(network, engine, name, Limits().stopping(AfterChecks(checks)))
        assert answer.bound <= whole
        if answer.value is not None:
            assert answer.value >= whole
            assert answer.alone[0] is None or answer.value <= answer.alone[0]
        fused += any(group.is_fused for group in answer.groups)
    assert fused
