"""Suites, plans, and keys that change with whatever an answer depends on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from small_bench import small_request

import tilewright.benchmarks.cells as cells
from tilewright.benchmarks import shapes
from tilewright.benchmarks.cells import Part, ProblemRecord
from tilewright.benchmarks.plan import make_plan
from tilewright.benchmarks.suites import description, suite, suite_names
from tilewright.benchmarks.work import answer
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.load import load_engine
from tilewright.heuristics.mapping.registry import HEURISTICS
from tilewright.solvers.mapping.methods import method


@pytest.mark.parametrize("name", suite_names())
def test_every_suite_has_distinct_layers(name: str) -> None:
    """Every suite builds, and no name occurs twice."""
    cases = suite(name)
    assert len({case.name for case in cases}) == len(cases) > 0
    assert all(case.count >= 1 and case.operator.is_mac for case in cases)
    assert description(name).endswith(".")


def test_random_shapes_are_the_same_for_the_same_seed() -> None:
    """Seeded, and another seed gives others."""
    assert shapes.random_texts(12, 7) == shapes.random_texts(12, 7)
    assert shapes.random_texts(12, 7) != shapes.random_texts(12, 8)
    assert [*shapes.random_texts(12, 7)][:5] == [*shapes.random_texts(5, 7)]


def test_prime_shapes_are_prime() -> None:
    """No bound above 1 has a divisor."""
    for case in suite("primes"):
        for bound in case.operator.bounds.values():
            assert all(bound % divisor for divisor in range(2, bound))


def test_files_and_texts_are_suites(tmp_path: Path) -> None:
    """A YAML file of layers, and a layer text, stand for a suite of their own."""
    path = tmp_path / "mine.yaml"
    path.write_text("- gemm:M=4,N=4,K=4,name=a\n- gemm:M=4,N=4,K=4,name=b\n- gemm:M=4,N=4,K=8,name=c\n")
    assert [(case.name, case.count) for case in suite(str(path))] == [("a", 2), ("c", 1)]
    assert [case.name for case in suite("gemm:M=4,N=4,K=4")] == ["gemm"]


def test_plan_has_every_cell_once() -> None:
    """Layers x machines x objectives x (one proof, two seeds of each random method, one of the exact one)."""
    plan = make_plan(small_request())
    assert len(plan.entries) == 3 * 2 * 2 * (1 + 2 + 2 + 1)
    assert len({entry.place for entry in plan.entries}) == len(plan.entries)
    proofs = [entry for entry in plan.entries if entry.place.part is Part.OPTIMUM]
    assert len(proofs) == 3 * 2 * 2
    assert {entry.place.method for entry in proofs} == {"auto"}


def test_layers_that_a_machine_cannot_take_are_left_out() -> None:
    """The dmazerunner model speaks of convolutions alone; the rest is told and left out."""
    plan = make_plan(small_request(machines=("dmazerunner-256",), suites=("bert-base", "tiny"), patterns=()))
    told = [text for text in plan.refused if text.startswith("bert-base/")]
    assert len(plan.entries) > 0
    assert all("dmazerunner-256" in text for text in told)


def _keys(**changes: object) -> set[str]:
    return {entry.task.key for entry in make_plan(small_request(**changes)).entries}


def test_key_depends_on_all_that_the_answer_depends_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Limit, threads, factors, machine, options and version of the program each make another key."""
    same = {"machines": ("nvdla-256",), "methods": ("random",), "objectives": ("edp",), "optimum": None}
    keys = _keys(**same)
    assert keys == _keys(**same)
    for change in (
        {"seconds": 21.0},
        {"threads": 2},
        {"factors": "imperfect"},
        {"machines": ("tpu-edge",)},
        {"methods": ("random[victory=9]",)},
        {"objectives": ("energy",)},
    ):
        assert not keys & _keys(**{**same, **change})
    monkeypatch.setattr(cells, "__version__", "0.0.0")
    assert not keys & _keys(**same)


def test_problem_record_comes_back() -> None:
    """A problem survives its way through JSON with its input hash."""
    (entry, *_) = make_plan(small_request()).entries
    record = ProblemRecord.model_validate_json(entry.task.problem)
    assert record.build("here").content_hash == entry.task.input_hash
    other = replace(load_engine("nvdla-256"), mac_energy=load_engine("nvdla-256").mac_energy + 1)
    changed = record.model_copy(update={"arch": cells.ArchRecord.of(other)})
    assert changed.build("here").content_hash != entry.task.input_hash


def test_optimum_needs_an_exact_solver() -> None:
    """A heuristic proves nothing."""
    with pytest.raises(InputError, match="proves nothing"):
        make_plan(small_request(optimum=("random", 1.0)))


@pytest.mark.parametrize("name", [*HEURISTICS.names(), "soc[fill=search]", "rs[fill=search]"])
def test_methods_whose_answer_depends_on_the_seed_say_so(name: str) -> None:
    """One that draws at random is run once per seed; another one gives the same answer to every seed."""
    layer = "conv:K=12,C=10,P=14,Q=15,R=3,S=3"
    plan = make_plan(
        small_request(
            suites=(layer,),
            patterns=(),
            machines=("eyeriss-256",),
            objectives=("edp",),
            methods=(name,),
            optimum=None,
        )
    )
    tasks = [entry.task for entry in plan.entries]
    if len(tasks) == 1:
        tasks.append(replace(tasks[0], seed=7))
        first, second = (answer(task, task.key) for task in tasks)
        assert (first.value_key, first.mapping) == (second.value_key, second.mapping)
    else:
        assert [task.seed for task in tasks] == [0, 1]
        assert getattr(method(name), "stochastic", False)
