"""Layers that fit nowhere, alone or fused, against plain enumeration on machines of few elements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from effort import effort
from fused_brute import Listing
from fused_pricing import least_fused
from fused_tiny import tiny_engine, tiny_group
from stops import AfterChecks

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.fused.floors.least_room import never_fits
from tilewright.solvers.mapping.fused.network import search_network_fusion
from tilewright.solvers.mapping.fused.problem import FusionProblem
from tilewright.solvers.mapping.fused.trees.skeletons import SkeletonSpace
from tilewright.workloads.linked_layers import linked_network
from tilewright.workloads.mapping.layer_reads import Reading as Linked
from tilewright.workloads.mapping.operators import gemm


def tiniest_pair(rng: Random) -> FusedGroup:
    """Two products of a few iterations."""
    n = rng.choice([1, 2])
    layers = (("a", gemm(m=1, n=n, k=1)), ("b", gemm(m=1, n=1, k=n)))
    return FusedGroup(layers, (Reading("b", "A", "a", (0, 1), (0, 0)),), frozenset({"b"}))


def compare(seed: str, number: int, drawn: Callable[[Random], FusedGroup], three: float) -> Counter[str]:
    """Groups of which a layer fits nowhere have no tree; how many such groups there are, and others.

    Parameters
    ----------
    seed, number : of the groups
    drawn : makes groups
    three : the share of machines of three levels
    """
    outcomes: Counter[str] = Counter()
    for index in range(number):
        rng = Random(f"{seed}-{index}")
        group, engine = drawn(rng), tiny_engine(rng, three=rng.random() < three)
        small = [replace(level, capacity=rng.choice([1, 2, 2, 3])) for level in engine.levels[1:2]]
        engine = replace(engine, levels=(engine.levels[0], *small, *engine.levels[2:]))
        layer = never_fits(group, engine, SkeletonSpace(group, engine).home_levels)
        if layer:
            assert least_fused(Listing(group, engine), engine) is None, (seed, index, layer)
            outcomes["nowhere"] += 1
        else:
            outcomes["somewhere"] += 1
    return outcomes


def test_what_fits_nowhere_has_no_tree() -> None:
    """Random tiny groups behind a level of one to three elements."""
    outcomes = compare("narrow", effort(45), tiniest_pair, 0.5)
    assert min(outcomes["nowhere"], outcomes["somewhere"]) >= 2


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_what_fits_nowhere_has_no_tree_often() -> None:
    """The same for larger groups of up to three layers."""
    outcomes = compare("more narrow", 60, tiny_group, 0.2)
    assert min(outcomes["nowhere"], outcomes["somewhere"]) >= 10


NARROW = """\
clock_mhz: 500
compute: {mac_energy: 1, element_bits: 8}
levels:
  - {name: DRAM, energy: 100}
  - {name: MID, elements: 2, energy: 4}
  - {name: BUF, elements: 40, energy: 2}
"""
"""A machine whose middle level holds two elements, one less than a product alone needs."""


def test_a_search_that_stops_early_proves_nothing_impossible(tmp_path: Path) -> None:
    """A pair that fits only when fused is never called impossible, wherever a limit strikes."""
    (tmp_path / "narrow.yaml").write_text(NARROW)
    layers = (("a", gemm(m=4, n=4, k=2)), ("b", gemm(m=4, n=2, k=4)))
    network = linked_network("pair", layers, (Linked("b", "A", "a", (0, 1), (0, 0)),))
    engine = load_engine(tmp_path / "narrow.yaml")
    problem = FusionProblem(network, engine, ("a", "b"), "hierarchy", 4, "perfect")
    mapped, looks = 0, 0
    while not mapped:
        answer = search_network_fusion(problem, Limits().stopping(AfterChecks(looks)))
        assert not answer.impossible, looks
        mapped, looks = answer.value is not None, 2 * looks + 1
    assert looks > 100
