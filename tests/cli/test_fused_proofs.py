"""``check --prove`` of fused documents: true claims, worse trees called optimal, bounds that are too high."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from calls import Call
from fused_files import PORTS

import tilewright as tw
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.tree import Branch, unfused
from tilewright.formulation.mapping.mapping import Mapping, Storage, Temporal
from tilewright.formulation.objective import parse_objective
from tilewright.report.records.mapping.fused_build import fused_document
from tilewright.report.records.mapping.fused_document import FusedDocument, FusedSettings, fused_hash
from tilewright.solvers.mapping.fused.answers import Figures, FusionAnswer, GroupAnswer
from tilewright.solvers.mapping.fused.columns import fronts
from tilewright.solvers.mapping.fused.network import search_network_fusion
from tilewright.solvers.mapping.fused.problem import FusionProblem
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.network import Network

LAYERS = """\
- {name: up, layer: "gemm:M=2,N=2,K=2"}
- {name: a, layer: "gemm:M=4,N=4,K=2"}
- {name: b, layer: "gemm:M=4,N=2,K=4", reads: {A: a}}
"""


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> FusionProblem:
    """Three layers, on a machine that gains by fusing two of them."""
    return problem_of(LAYERS, tmp_path_factory.mktemp("proofs"))


@pytest.fixture(scope="module")
def honest(asked: FusionProblem) -> FusionAnswer:
    """What the search proves."""
    return search_network_fusion(asked, Limits())


@pytest.fixture(scope="module")
def products(asked: FusionProblem) -> tuple[FusionProblem, FusionAnswer]:
    """The same for energy times cycles."""
    asked = replace(asked, objective=parse_objective("edp"))
    return asked, search_network_fusion(asked, Limits())


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> FusionAnswer:
    """The best without links, so with every layer alone."""
    apart = LAYERS.replace(", reads: {A: a}", "")
    return search_network_fusion(problem_of(apart, tmp_path_factory.mktemp("alone")), Limits())


def problem_of(layers: str, folder: Path) -> FusionProblem:
    """The question about some layers on the machine."""
    (folder / "layers.yaml").write_text(layers)
    (folder / "machine.yaml").write_text(PORTS)
    return (
        tw.network(folder / "layers.yaml").on(folder / "machine.yaml", fuse=True, factors="perfect").problem
    )


def written(problem: FusionProblem, answer: FusionAnswer, path: Path) -> Path:
    """The document of an answer, true or not."""
    settings = FusedSettings(time_limit_s=None, gap=0, threads=1, seed=0)
    record = fused_document(problem, answer, settings, stopped=False, seconds=1)
    path.write_text(json.dumps(record.to_data()))
    return path


def unused(honest: FusionAnswer, more: int = 0) -> tuple[GroupAnswer, ...]:
    """The pair as a group that is not used, with a bound that is so much above its optimum."""
    (pair,) = honest.tried
    assert pair.value is not None
    return (replace(pair, tree=None, value=None, bound=pair.value + more, reason="a limit was reached"),)


def test_true_claims_are_confirmed(
    call: Call, asked: FusionProblem, honest: FusionAnswer, tmp_path: Path
) -> None:
    """The layer alone, the group and the network, each in a line and as data."""
    path = written(asked, honest, tmp_path / "honest.json")
    outcome = call("check", path, "--prove")
    assert outcome.code == 0, outcome.err
    assert "3 claims confirmed" in outcome.out
    assert "a + b: confirmed by columns" in outcome.err
    reported = call("check", path, "--prove", "-f", "json").document
    assert [(proof["of"], proof["verdict"]) for proof in reported["proofs"]] == [
        ("up", "confirmed"),
        ("a + b", "confirmed"),
        ("network", "confirmed"),
    ]
    assert "proofs" not in call("check", path, "-f", "json").document


def test_claims_of_layers_with_widths_are_confirmed(call: Call, asked: FusionProblem, tmp_path: Path) -> None:
    """Operands narrower than results, which have no home then, and both wider than the machine's."""
    for operands, results, groups, claims in ((4, 8, 3, 5), (16, 16, 2, 3)):
        network = asked.network
        layers = [
            replace(
                layer,
                operator=replace(
                    layer.operator,
                    tensors=tuple(
                        replace(tensor, bits=results if tensor.is_output else operands)
                        for tensor in layer.operator.tensors
                    ),
                ),
            )
            for layer in network.layers
        ]
        wide = replace(asked, network=Network("wide", layers, network.links))
        answer = search_network_fusion(wide, Limits())
        assert len(answer.groups) == groups
        path = written(wide, answer, tmp_path / "wide.json")
        outcome = call("check", path, "--prove")
        assert outcome.code == 0, outcome.out
        assert f"{claims} claims confirmed" in outcome.out


def test_a_worse_tree_that_is_called_optimal_is_refuted(
    call: Call, asked: FusionProblem, honest: FusionAnswer, alone: FusionAnswer, tmp_path: Path
) -> None:
    """Layers alone at their true value, with that as the bound: the better tree and its value are printed."""
    assert honest.value is not None
    assert alone.value is not None
    assert honest.value < alone.value
    path = written(asked, replace(alone, tried=unused(honest)), tmp_path / "worse.json")
    assert call("check", path).code == 0
    outcome = call("check", path, "--prove")
    assert outcome.code == 5
    assert f"network: refuted by columns: found mappings of value {float(honest.value)}" in outcome.out
    assert "a.C 4 B, passed on" in outcome.out
    assert "in turn" in outcome.out
    better = call("check", path, "--prove", "-f", "json").document["better"]
    assert [one["layers"] for one in better] == [["a", "b"]]


@pytest.mark.parametrize(("network", "group", "refuted"), [(1, 0, "network"), (0, 1, "a + b")])
def test_bounds_that_are_too_high_are_refuted(
    call: Call,
    asked: FusionProblem,
    honest: FusionAnswer,
    alone: FusionAnswer,
    tmp_path: Path,
    network: int,
    group: int,
    refuted: str,
) -> None:
    """A bound one pJ above the optimum, of the network or of a group that is not used."""
    assert honest.value is not None
    forged = replace(alone, tried=unused(honest, group), bound=honest.value + network)
    path = written(asked, forged, tmp_path / "high.json")
    assert call("check", path).code == 0
    outcome = call("check", path, "--prove")
    assert outcome.code == 5
    assert f"{refuted}: refuted by columns" in outcome.out
    assert "1 claims refuted" in outcome.out


def gaining(honest: FusionAnswer, figures: Sequence[Figures]) -> FusionAnswer:
    """The answer beside other figures of the layers of each group one by one."""
    values = [value for value, _ in figures if value is not None]
    value = sum(values, Fraction(0)) if len(values) == len(figures) else None
    return replace(honest, unfused=tuple(figures), alone=(value, sum((b for _, b in figures), Fraction(0))))


def fetching_all(operator: Operator) -> Mapping:
    """One operation after the other, with its operands from outside and its sum to there."""
    tensors = [tensor.name for tensor in operator.tensors]
    loops = [Temporal(dim, 1) for dim in sorted(operator.bounds)]
    return Mapping((*(Storage(t, "DRAM") for t in tensors), *loops, *(Storage(t, "BUF") for t in tensors)))


def test_unfused_figures_are_those_of_the_mappings_beside_them(
    call: Call, asked: FusionProblem, honest: FusionAnswer, tmp_path: Path
) -> None:
    """A gain that is made larger by higher unfused figures fails, of a group as of a layer alone."""
    figures = [(value + 5, bound + 5) for value, bound in honest.unfused if value is not None]
    outcome = call("check", written(asked, gaining(honest, figures), tmp_path / "gain.json"))
    assert outcome.code == 5
    assert outcome.out.splitlines() == [
        "groups[0].unfused: other figures than the layer's own",
        "groups[1].unfused.value: 11909.0, the tree's is 11904.0",
    ]


@pytest.mark.parametrize("mapped", [True, False])
def test_layers_one_by_one_are_not_said_to_take_more(
    call: Call, asked: FusionProblem, honest: FusionAnswer, tmp_path: Path, mapped: bool
) -> None:
    """Unfused layers with poor mappings that are called the best, or with no mapping and a bound too high."""
    group = honest.groups[1].group
    tree = unfused({name: fetching_all(operator) for name, operator in group.layers})
    poor = evaluate_fused(group, asked.engine, cost_model("hierarchy"), tree).energy
    assert poor > honest.unfused[1][1]
    if not mapped:
        poor = honest.unfused[1][1] + 1
    leaves = zip(honest.apart[1], tree.leaves(), strict=True)
    apart = [replace(own, tree=Branch((), (leaf,)) if mapped else None) for own, leaf in leaves]
    forged = gaining(honest, [honest.unfused[0], (poor if mapped else None, poor)])
    forged = replace(forged, apart=(honest.apart[0], tuple(apart)))
    path = written(asked, forged, tmp_path / "gain.json")
    outcome = call("check", path)
    assert (outcome.code, outcome.out) == (0, "holds: 2 groups, every tree evaluated anew\n")
    outcome = call("check", path, "--prove")
    assert outcome.code == 5
    assert "a + b, unfused: refuted by columns: found mappings of value 11904.0" in outcome.out
    assert "3 claims confirmed, 1 claims refuted" in outcome.out


def test_unfused_products_of_a_layer_alone_are_at_most_its_own(
    call: Call, products: tuple[FusionProblem, FusionAnswer], tmp_path: Path
) -> None:
    """At other prices a layer may take less than in the best cover, but not more."""
    asked, answer = products
    (value, bound), *others = answer.unfused
    assert value is not None
    assert call("check", written(asked, answer, tmp_path / "edp.json")).code == 0
    forged = replace(answer, unfused=((value + 1, bound), *others))
    outcome = call("check", written(asked, forged, tmp_path / "more.json"))
    assert outcome.code == 5
    assert outcome.out == "groups[0].unfused: other figures than the layer's own\n"


def test_products_are_confirmed_line_by_line(
    call: Call, products: tuple[FusionProblem, FusionAnswer], tmp_path: Path
) -> None:
    """Lines of an EDP that are the least of the network at their prices, and one that is too high."""
    asked, answer = products
    lines = (*answer.lines[:-1], replace(answer.lines[-1], least=answer.lines[-1].least + 1))
    path = written(asked, replace(answer, lines=lines), tmp_path / "edp.json")
    outcome = call("check", path, "--prove")
    assert outcome.code == 5
    assert "pJ a cycle: refuted by columns" in outcome.out
    others = len(answer.lines) + len(answer.groups)  # the fewest cycles among them
    assert f"{others} claims confirmed, 1 claims refuted" in outcome.out


@pytest.mark.parametrize("kept", [0, 1])
def test_the_bound_of_a_product_follows_from_all_lines(
    call: Call, products: tuple[FusionProblem, FusionAnswer], tmp_path: Path, kept: int
) -> None:
    """Without lines nothing is proven, nor where energy may fall as cycles rise: no line is at no price."""
    asked, answer = products
    steep = sorted(answer.lines, key=lambda line: -line.price)[:kept]
    forged = replace(answer, lines=tuple(steep), fewest=answer.fewest if kept else Fraction(0))
    outcome = call("check", written(asked, forged, tmp_path / "edp.json"))
    assert outcome.code == 5
    assert outcome.out == f"totals.bound: {float(answer.bound)}, the lines give 0.0\n"


def test_bounds_of_groups_on_products_are_proven_again(
    call: Call, products: tuple[FusionProblem, FusionAnswer], tmp_path: Path
) -> None:
    """A group with its true bound, and one that is said to take more than a mapping of it does."""
    asked, answer = products
    (pair,) = answer.tried
    assert pair.value is not None
    outcome = call("check", written(asked, answer, tmp_path / "edp.json"), "--prove")
    assert (outcome.code, "a + b: confirmed by columns" in outcome.err) == (0, True)
    forged = replace(answer, tried=(replace(pair, bound=pair.value + 1),))
    outcome = call("check", written(asked, forged, tmp_path / "more.json"), "--prove")
    assert outcome.code == 5
    assert f"a + b: refuted by columns: found a mapping of value {float(pair.value)}" in outcome.out


def test_bounds_of_groups_on_products_that_lines_do_not_prove_are_undecided(
    call: Call, products: tuple[FusionProblem, FusionAnswer], tmp_path: Path
) -> None:
    """Without the fewest cycles a line at no price proves nothing of a product."""
    asked, answer = products
    free = tuple(line for line in answer.lines if not line.price)
    weak = replace(answer, lines=free, fewest=Fraction(0), bound=Fraction(0))
    outcome = call("check", written(asked, weak, tmp_path / "edp.json"), "--prove")
    assert (outcome.code, "the document's lines prove less" in outcome.out) == (0, True)


def test_what_is_too_large_or_unknown_is_undecided(
    call: Call, asked: FusionProblem, honest: FusionAnswer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is told: too many mappings, no time, or a document that does not say who reads whom."""
    path = written(asked, honest, tmp_path / "honest.json")
    with monkeypatch.context() as patched:
        patched.setattr(fronts, "MOST_MAPPINGS", 10)
        outcome = call("check", path, "--prove")
    assert (outcome.code, "3 claims undecided" in outcome.out) == (0, True)
    assert "a turn has more than 10 mappings, which are not listed" in outcome.out
    outcome = call("check", path, "--prove", "--time-limit", "0.000001")
    assert (outcome.code, "time limit" in outcome.out) == (0, True)
    old: dict[str, Any] = json.loads(path.read_text())
    record = FusedDocument.model_validate({**old, "graph": None})
    layers = [layer for group in record.groups for layer in group.layers]
    told = record.objective, record.space
    own = fused_hash(record.model, record.batch, record.arch, told, layers)
    path.write_text(json.dumps(record.to_data() | {"input_hash": own}))
    outcome = call("check", path, "--prove")
    assert (outcome.code, "does not say which layers read each other" in outcome.out) == (0, True)
