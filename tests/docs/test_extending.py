"""The examples of ``docs/extending.md`` are written to files, imported and run, and their answers checked."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from clocks import delay

from tilewright.benchmarks.plots.registry import PLOTS, draw_to
from tilewright.benchmarks.rows import read_rows
from tilewright.benchmarks.store import Store
from tilewright.cli.main import VERBS, run
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost.registry import MODELS
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.extensions import VARIABLE
from tilewright.foundation.registry import Entry, Registry
from tilewright.hardware.mapping.load import load_engine
from tilewright.heuristics.mapping.registry import HEURISTICS
from tilewright.solvers.mapping.registry import SOLVERS
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.scheduling.herald.registry import METHODS
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.families import FAMILIES, parameters_of
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operators import gemm
from tilewright.workloads.networks import ADDED

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
REGISTRIES: tuple[Registry[Any], ...] = (SOLVERS, HEURISTICS, METHODS, MODELS, FAMILIES)
TABLES: tuple[dict[str, Any], ...] = (VERBS, PLOTS, ADDED)


@dataclass(frozen=True)
class Example:
    """One section of the page: its files by name, and its calls of the command line."""

    title: str
    files: dict[str, str]
    calls: tuple[tuple[str, ...], ...]


def examples() -> list[Example]:
    """All sections that have files."""
    examples = []
    for section in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        files: dict[str, str] = {}
        calls: list[tuple[str, ...]] = []
        for kind, text in BLOCK.findall(section):
            if kind == "sh":
                calls += [tuple(shlex.split(line)[1:]) for line in text.splitlines() if line]
            else:
                name = re.match(r"# ([\w-]+\.\w+)\n", text)
                assert name, f"a block without a file's name: {text[:40]!r}"
                files[name[1]] = text
        examples.append(Example(section.partition("\n")[0], files, tuple(calls)))
    return [example for example in examples if example.files]


EXAMPLES = {example.title: example for example in examples()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with every file of the page; what the examples register is gone afterwards."""
    for example in EXAMPLES.values():
        for name, text in example.files.items():
            (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(VARIABLE, "")
    names = [registry.names() for registry in REGISTRIES]
    rows = [dict(table) for table in TABLES]
    yield tmp_path
    for registry, before in zip(REGISTRIES, names, strict=True):
        for name in set(registry.names()) - set(before):
            registry.remove(name)
    for table, known in zip(TABLES, rows, strict=True):
        table.clear()
        table.update(known)
    for module in {Path(name).stem for shown in EXAMPLES.values() for name in shown.files}:
        sys.modules.pop(module, None)


def load(name: str) -> ModuleType:
    """One of the page's modules."""
    return importlib.import_module(name)


def small(model: str | None = None) -> LayerProblem:
    """A problem on the page's machine that every method solves at once."""
    engine = load_engine(Path("strip.yaml"))
    return layer_problem(gemm(m=8, n=8, k=4), engine, parse_objective("edp"), model)


@pytest.mark.parametrize("title", EXAMPLES)
def test_every_section_runs(title: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every call of the command line succeeds as it is printed, and every module can be imported."""
    example = EXAMPLES[title]
    for call in example.calls:
        assert run(call) == 0, (call, capsys.readouterr().err)
    for name in example.files:
        if name.endswith(".py"):
            load(name.removesuffix(".py"))
    capsys.readouterr()


def test_the_table_leads_to_every_section() -> None:
    """The first table names each section with an example, in their sequence."""
    head = PAGE.read_text(encoding="utf-8").partition("\n## ")[0]
    anchors = re.findall(r"\]\(#([\w-]+)\)", head)
    titles = [title.lower().replace(" ", "-") for title in EXAMPLES]
    assert [anchor for anchor in anchors if anchor in titles] == titles


def test_the_family_has_its_parameters(folder: Path) -> None:
    """A network of it has as many layers, parameters and multiply-accumulates as its parameters say."""
    load("tower")
    network = resolve_model("tower[layers=5,width=32]", batch=3)
    assert network.name == "tower[layers=5,width=32,batch=3]"
    assert (len(network), network.macs, network.parameters) == (10, 3 * 5 * 32 * 32, 5 * 33 * 32)
    assert [parameter.default for parameter in parameters_of("tower")] == ["3", "64", "1"]


def test_the_operator_is_counted_right(folder: Path) -> None:
    """Its products are those of two loops over shifts, and a mapping of it is proven."""
    operator = load("correlation").correlation(4, 3, 2, 1)
    assert operator.macs == 4 * 3 * 2 * 9
    result = solve(layer_problem(operator, load_engine(Path("strip.yaml")), parse_objective("energy")))
    assert result.status is Status.OPTIMAL


def test_the_cost_model_serves_every_solver(folder: Path) -> None:
    """Three solvers prove one optimum; the same mapping takes fewer cycles and as much energy."""
    load("steady")
    problem = small("steady")
    keys = {name: solve(problem, name).key for name in ("branch", "cpsat", "exhaustive")}
    assert len(set(keys.values())) == 1
    answer = solve(problem, "branch").answer
    assert answer is not None
    here, plain = problem.evaluate(answer), small().evaluate(answer)
    assert here.energy == plain.energy
    assert here.cycles < plain.cycles


@pytest.mark.parametrize("objective", ["energy", "cycles", "edp"])
def test_the_solver_agrees_with_branch_and_bound(folder: Path, objective: str) -> None:
    """Both prove the same optimum."""
    load("slices")
    engine = load_engine(Path("strip.yaml"))
    single = layer_problem(gemm(m=1, n=1, k=1), engine, parse_objective(objective))
    for problem in (small().minimising(parse_objective(objective)), single):
        mine, theirs = solve(problem, "slices"), solve(problem, "branch")
        assert mine.status is theirs.status is Status.OPTIMAL
        assert mine.key == theirs.key


def test_the_solver_keeps_a_limit(folder: Path) -> None:
    """Where time is over it claims no more than it has seen."""
    load("slices")
    _, layer = parse_layer("conv:K=64,C=32,P=14,Q=14,R=3,S=3,pad=1")
    problem = layer_problem(layer, load_engine("nvdla-256"), parse_objective("edp"), factors="perfect")
    result = solve(problem, "slices", Limits(seconds=1.0))
    proven = solve(problem, "branch")
    assert result.status in (Status.FEASIBLE, Status.UNKNOWN)
    assert proven.key is not None
    assert (result.bound or 0) <= proven.key
    assert result.wall_seconds < 1 + delay()


def test_the_heuristic_never_claims_an_optimum(folder: Path) -> None:
    """It finds a legal mapping, no better than the proven one, and the same one for the same seed."""
    load("climbing")
    _, layer = parse_layer("conv:K=16,C=8,P=8,Q=8,R=3,S=3")
    problem = layer_problem(layer, load_engine(Path("strip.yaml")), parse_objective("edp"))
    first, second = (solve(problem, "climbing[climbers=16]", Limits(seed=3)) for _ in range(2))
    proven = solve(problem, "branch")
    assert first.status is Status.FEASIBLE
    assert first.answer == second.answer
    assert first.key is not None
    assert proven.key is not None
    assert first.key >= proven.key


def test_the_scheduling_method_is_listed_and_judged(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its schedule is legal, and no shorter than what the exact method's bound allows."""
    load("heft")
    assert "heft" in METHODS.names()
    documents = {}
    for method in ("heft", "cpsat"):
        call = "schedule pair.yaml --system two.yaml --objective makespan --format json -q -t 60 --method"
        assert run([*call.split(), method]) == 0
        documents[method] = json.loads(capsys.readouterr().out)
    assert documents["heft"]["status"] == "feasible"
    assert documents["heft"]["value"] >= documents["cpsat"]["bound"]


def test_the_system_finds_the_best_division(folder: Path) -> None:
    """The pace of the proof is the least over all divisions."""
    chain, ran = load("chain"), load("run_chain")
    problem, result = ran.chain, ran.result
    layers = len(problem.cycles)
    ends = combinations_with_replacement(range(layers + 1), problem.engines - 1)
    keys = [problem.judge((*cuts, layers)).key for cuts in ends]
    assert result.status is Status.OPTIMAL
    assert result.key == min(keys)
    assert chain.CHAIN_METHODS.names() == ["probing"]
    assert layers == len(load("lenet").lenet(1).network().mac_layers)


def test_the_stopping_condition_ends_the_search(folder: Path) -> None:
    """The gap at the end is one that will do by then, long before the other limit."""
    result = load("patient").result
    assert result.status is Status.FEASIBLE
    assert result.gap is not None
    assert result.gap <= 30.0 * result.wall_seconds / 60
    assert result.wall_seconds < 15 + delay()


def test_the_plot_is_drawn(folder: Path, filled_store: Path) -> None:
    """It is one more kind, by name."""
    load("wins")
    with Store(filled_store) as store:
        draw_to(folder / "wins.svg", "wins", store, read_rows(store))
    assert (folder / "wins.svg").read_text().count("<path") > 3


def test_the_verb_is_in_the_help(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A verb that was added is listed, explained and run."""
    load("intensity")
    assert run(["--help"]) == 0
    assert "intensity" in capsys.readouterr().out
    assert run(["intensity", "gemm:M=4,N=4,K=4", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["macs_per_element"] == round(64 / 48, 2)


def test_names_are_registered_once() -> None:
    """A name that is taken, and one that users could not write, are refused; what is removed is gone."""
    registry: Registry[object] = Registry("--thing", {"first": Entry("builtins", "object", "a thing")})
    with pytest.raises(ValueError, match="'first' is registered: a thing"):
        registry.add("first", Entry("builtins", "list"))
    with pytest.raises(ValueError, match="'second one' is no name"):
        registry.add("second one", Entry("builtins", "list"))
    registry.add("second", Entry("builtins", "dict"))
    assert registry.make("second") == {}
    registry.remove("second")
    assert registry.names() == ["first"]


def test_synonyms_are_not_shown() -> None:
    """A synonym makes what it stands for, is taken as a name, and no list shows it."""
    entry = Entry("builtins", "dict", "a thing")
    registry: Registry[object] = Registry("--thing", {"first": entry}, synonyms={"one": "first"})
    assert registry.make("one") == {}
    assert registry.entry("one") is entry
    assert "one" in registry
    assert registry.names() == ["first"]
    with pytest.raises(ValueError, match="'one' is registered: a thing"):
        registry.add("one", entry)
