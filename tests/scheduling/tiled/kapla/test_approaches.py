"""KAPLA's approaches B, S, R and M: what they price, and what their choice of partitions is worth."""

from __future__ import annotations

from itertools import count
from random import Random

import numpy as np
import pytest
from tiled_plans import random_network

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import TracePoint
from tilewright.formulation.scheduling.tiled.kapla.chain import ChosenChain
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.foundation import extras
from tilewright.foundation.arrays import Indices
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.boosted_trees import Tuning
from tilewright.heuristics.scheduling.tiled.kapla.approaches import (
    Directives,
    LearnedChains,
    NnDataflow,
    RandomChains,
)
from tilewright.heuristics.scheduling.tiled.kapla.methods import PipelineMethod
from tilewright.solvers.mapping.methods import method as layer_method
from tilewright.solvers.mapping.methods import ready_method
from tilewright.solvers.scheduling.tiled.kapla.method import ProvenChains
from tilewright.solvers.scheduling.tiled.running import plan_run

SPACE = {"orders": "own", "spatial": 3, "temporal": 3}


def problem_of(seed: int, batch: int = 2) -> TiledProblem:
    """A random network on four engines."""
    machine = load_tiled_machine("set-edge-4x4[engines=2x2]")
    return TiledProblem(random_network(Random(seed)), machine, tiled_objective("edp"), batch=batch)


def chosen(method: PipelineMethod, seed: int, of: int) -> tuple[ClosedForm, ChosenChain]:
    """What a method chooses for a problem, with all the time that it wants."""
    form = method.form_of(problem_of(of), seed)
    return form, method.choose(form, seed, lambda: False, lambda chain: None)


def value(form: ClosedForm, answer: ChosenChain) -> float:
    """The objective of the chain chosen."""
    assert answer.chain is not None
    return form.value(answer.chain.energy, answer.chain.cycles)


@pytest.mark.parametrize("of", range(6))
def test_pricing_all_finds_the_proven_best(of: int) -> None:
    """B and S come to the best chain that best-first proves over their spaces, and price every scheme."""
    for method, kinds in ((NnDataflow(**SPACE), "spatial"), (Directives(**SPACE, splits=True), "both")):
        form, answer = chosen(method, 0, of)
        other, proof = chosen(ProvenChains(**SPACE, pipelining=kinds), 0, of)
        assert proof.proven
        assert answer.proven
        assert value(form, answer) == pytest.approx(value(other, proof), rel=1e-12)
        assert answer.schemes == proof.schemes
        assert answer.note.startswith("all")


def test_drawing_everything_is_pricing_everything() -> None:
    """R with probability 1 is S; with less it prices fewer, has a chain, and repeats itself by its seed."""
    whole, every = chosen(Directives(**SPACE), 0, 1)
    form, answer = chosen(RandomChains(**SPACE, probability=1.0), 5, 1)
    assert value(form, answer) == value(whole, every)
    for seed in range(5):
        runs = [chosen(RandomChains(**SPACE), seed, 1) for _ in range(2)]
        assert value(*runs[0]) == value(*runs[1])
        assert runs[0][1].schemes < every.schemes
        assert not runs[0][1].proven


def test_partitions_of_a_leaf_are_never_better_than_the_best() -> None:
    """Drawn and learned leaves cost no less than the best one; learned ones equal it once all are seen."""
    problem = problem_of(3)
    whole = Directives().form_of(problem, 0)
    drawn = RandomChains(probability=0.05).form_of(problem, 7)
    learned = LearnedChains(iterations=2, batch=2).form_of(problem, 7)
    patient = LearnedChains(iterations=1000, batch=50).form_of(problem, 7)
    worse = 0
    for layer, own in enumerate(whole.network.layers[:4]):
        run = (layer, 2, 0, 4, True, 1, (-1,) * len(own.producers))
        best = whole.engine.leaf(*run)
        assert best is not None
        costs = [form.engine.leaf(*run) for form in (drawn, learned, patient)]
        values = [whole.value(cost.energy, cost.cycles) for cost in costs if cost is not None]
        least = whole.value(best.energy, best.cycles)
        assert len(values) == 3
        assert min(values) >= least * (1 - 1e-12)
        assert values[2] == pytest.approx(least, rel=1e-12)
        worse += values[0] > least
    assert worse


def test_a_limit_leaves_the_best_chain_so_far() -> None:
    """Stopped among segments of two layers, a chain of single layers is there, and the note says where."""
    form = Directives(**SPACE).form_of(problem_of(2), 0)
    calls = count()
    stop = len(form.network) * 2 + 1  # two schemes of every layer, and one of a pair
    answer = Directives(**SPACE).choose(form, 0, lambda: next(calls) >= stop, lambda chain: None)
    assert answer.chain is not None
    assert "the time was up at segments of 2 layers" in answer.note
    assert not answer.proven


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without boosted trees nothing is searched; one line has the command that brings them."""
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    line = r"^--method: autotvm: needs scikit-learn: pip install 'tilewright\[learning\]'$"
    with pytest.raises(InputError, match=line):
        plan_run(lambda: problem_of(1), "autotvm", Limits(30))
    with pytest.raises(InputError, match=line.replace("method", "solver")):
        ready_method("autotvm")
    assert layer_method("autotvm").exact is False  # as `check` asks of documents from elsewhere


def bowl(seen: list[int], size: int, batch: int) -> Tuning:
    """A space of pairs whose cost grows with the distance from (20, 7); one pair in five is illegal."""
    random = np.random.default_rng(1)

    def measure(states: Indices) -> np.ndarray:
        seen.extend(int(a * size + b) for a, b in states.T)
        costs = np.log(1 + (states[0] - 20.0) ** 2 + 3 * (states[1] - 7.0) ** 2)
        return np.where(states.sum(axis=0) % 5 == 1, np.inf, costs)

    def move(states: Indices) -> Indices:
        return np.clip(states + random.integers(-1, 2, size=states.shape), 0, size - 1).astype(np.intp)

    return Tuning(
        draw=lambda number: random.integers(size, size=(2, number)).astype(np.intp),
        move=move,
        features=lambda states: states.T.astype(float),
        measure=measure,
        stop=lambda: False,
        batch=batch,
        seed=3,
    )


def test_trees_lead_to_the_best_configuration() -> None:
    """Of 900 pairs the best one is met within 160 measurements, none of them made twice."""
    seen: list[int] = []
    assert bowl(seen, 30, 16).run(10) == 160
    assert len(set(seen)) == len(seen) == 160
    assert 20 * 30 + 7 in seen


def test_a_small_space_is_measured_whole() -> None:
    """With fewer configurations than were asked for, all are measured once, and the search ends."""
    seen: list[int] = []
    assert bowl(seen, 5, 8).run(100) == 25
    assert sorted(seen) == list(range(25))


@pytest.mark.parametrize(("seconds", "first"), [(3.0, "atoms layer by layer"), (6.0, "closed form")])
def test_where_little_time_is_left_a_plan_of_atoms_comes_before_what_learns(
    seconds: float, first: str
) -> None:
    """With three seconds left M begins with atoms, with six with a tree."""
    limits = Limits(seconds, threads=1, clock=lambda: 0.0, started=0.0)
    sources: list[str] = []

    def reported(point: TracePoint) -> None:
        if point.improved:
            sources.append(point.source)
            limits.stop.set()

    plan_run(lambda: problem_of(1), "autotvm", limits, reported).run()
    assert first in sources[0]
