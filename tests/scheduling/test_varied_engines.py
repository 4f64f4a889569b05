"""Machine files that vary in a co-design: costs by hand, names of fields, documents, and limits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from own_engine_files import SLOW, WIDE

import tilewright as tw
from tilewright.formulation.limits import LimitReachedError
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.variations import parse_variation
from tilewright.hardware.scheduling.herald.variants import named_flows
from tilewright.report.checks.scheduling.herald.codesign import check_codesign
from tilewright.report.records.scheduling.herald.document import CodesignDocument
from tilewright.solvers.scheduling import own_costs
from tilewright.solvers.scheduling.herald.cost_tables import division_costs

LAYER = "gemm:M=1,N=4,K=4"
VARY = {"slow.levels.RF.energy": "0.25,4", "wide.compute.element_bits": "8,16"}


def written(folder: Path) -> list[str]:
    """Two machine files in a folder."""
    for name, text in (("slow", SLOW), ("wide", WIDE)):
        (folder / f"{name}.yaml").write_text(text)
    return [str(folder / f"{name}.yaml") for name in ("slow", "wide")]


@pytest.fixture
def flows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two machine files, and costs of their own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    return written(tmp_path)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A document of four variants."""
    return json.dumps(varied(written(tmp_path_factory.mktemp("machines")), VARY))


def varied(
    flows: list[str], vary: dict[str, str], objective: str = "energy", step: int = 8
) -> dict[str, Any]:
    """The document of a co-design."""
    answer = tw.codesign(
        LAYER,
        "edge",
        dataflows=flows,
        vary=vary,
        bandwidth_step=step,
        objective=objective,
        stop=tw.seconds(60),
        threads=1,
    )
    data: dict[str, Any] = answer.to_dict()
    return data


def faults(data: dict[str, Any]) -> tuple[str, ...]:
    """What is wrong with a document."""
    return check_codesign(CodesignDocument.model_validate_json(json.dumps(data)), "document").faults


def test_each_variant_costs_what_a_hand_count_says(text: str) -> None:
    """Two engines with two values of a field each: the least energy of all four chips is that of paper.

    24 elements cross DRAM (200 pJ a byte) and 44 accesses the global memory (6 pJ); registers have 80
    accesses, the network of ``slow`` passes 24 elements, and 16 MACs take 1 pJ on ``slow`` and 3 on ``wide``.
    """
    data = json.loads(text)
    outside = 24 * 200 + 44 * 6

    def on_slow(registers: Fraction) -> Fraction:
        return outside + 80 * registers + Fraction(24, 2) + 16

    def on_wide(size: int) -> Fraction:
        return Fraction(size * outside + 80 * size // size * 1 + 16 * 3)

    expected = {
        (registers, bits): min(on_slow(Fraction(registers)), on_wide(bits // 8))
        for registers in ("0.25", "4")
        for bits in (8, 16)
    }
    counted = {
        (
            str(point["fields"]["slow.levels.RF.energy"]),
            point["fields"]["wide.compute.element_bits"],
        ): Fraction(point["energy_pj_exact"])
        for point in data["points"]
    }
    assert counted == expected
    assert len({*expected.values()}) == 3, "both engines are the best of some variant"
    assert data["status"] == "optimal"
    assert Fraction(data["value_exact"]) == min(expected.values())
    assert data["fields"]["slow.levels.RF.energy"] == "0.25"
    assert not faults(data)
    both = {option["engine"]: option for option in data["best"]["problem"]["costs"][0]["options"]}
    assert Fraction(both["slow"]["energy_pj_exact"]) == on_slow(Fraction(1, 4))
    assert Fraction(both["wide"]["energy_pj_exact"]) == on_wide(
        data["fields"]["wide.compute.element_bits"] // 8
    )


def test_sizes_of_arrays_change_what_is_left_to_styles(flows: list[str]) -> None:
    """The PEs of a variant come off those that the grid divides; one that leaves too few is left out."""
    data = varied([flows[0], "nvdla"], {"slow.levels.DRAM.fanout.axes.k.size": "4,64,1000"})
    parts = [[part["pes"] for part in point["partition"]] for point in data["points"]]
    assert parts == [[4, 960], [64, 960]]
    assert not faults(data)


def test_fields_of_two_machines_change_together(flows: list[str]) -> None:
    """An axis may pair values of both machines; the chips are the pairs, not all combinations."""
    data = varied(flows, {"slow.clock_mhz:wide.clock_mhz": "500:1000,250:2000"}, "makespan")
    assert [[*point["fields"].values()] for point in data["points"]] == [[500, 1000], [250, 2000]]
    assert data["points"][1]["cycles"] != data["points"][0]["cycles"]
    assert not faults(data)


def test_variants_are_compared_with_plain_calls(flows: list[str], tmp_path: Path) -> None:
    """Every variant has the value that a co-design with that machine file alone has."""
    data = varied(flows, {"slow.levels.RF.elements": "8,64"}, "edp")
    for size in (8, 64):
        Path(flows[0]).write_text(SLOW.replace("elements: 64", f"elements: {size}"))
        alone = varied(flows, {}, "edp")
        own = [point for point in data["points"] if point["fields"]["slow.levels.RF.elements"] == size]
        same = [{**point, "fields": {}, "scheduled": None} for point in own]
        both = [[(p["partition"], p["value_exact"]) for p in points] for points in (same, alone["points"])]
        assert both[0] == both[1]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda d: d["fields"].update({"slow.levels.RF.energy": "9"}), "no variant of the machine files has"),
        (lambda d: d["points"][1]["fields"].clear(), r"points\[1\].fields: no variant"),
        (lambda d: d["points"][1].update(fields=d["points"][0]["fields"]), "a partition appears twice"),
        (lambda d: d["points"].reverse(), "not in the order of the grid"),
        (lambda d: d["vary"][0]["values"].append(["8"]), "for the whole grid, but 2 partitions are missing"),
        (lambda d: d["vary"][0]["values"].append([]), "expected a value for each of slow.levels.RF.energy"),
        (lambda d: d["vary"].pop(1), "no variant of the machine files has"),
        (lambda d: d.update(vary=[]), "nothing of it varies"),
        (lambda d: d["machine_files"].pop("slow"), "expected the name of a machine file"),
        (lambda d: d["machine_files"]["slow"].update(levels=[]), "levels"),
        (
            lambda d: d["machine_files"].update(other=d["machine_files"]["slow"]),
            "not the machine of a dataflow",
        ),
        (lambda d: d["machine_files"]["slow"]["compute"].update(mac_energy=2), "best.system: not the class"),
        (lambda d: d["machine_files"].update(slow=[1, {"levels": 3}]), "slow"),
        (lambda d: d["points"][0].update(open_mappings=["gemm on slow"]), "open_mappings: of the best point"),
    ],
)
def test_a_changed_document_is_noticed(
    text: str, change: Callable[[dict[str, Any]], object], fault: str
) -> None:
    """Fields, axes and machine files of a document are held against each other and the best schedule."""
    data = json.loads(text)
    assert not faults(data)
    change(data)
    assert re.search(fault, " | ".join(faults(data)))


def test_a_machine_file_that_changed_since_does_not_matter(flows: list[str], tmp_path: Path) -> None:
    """A document stands on its own: the file may be another one by the time of the check, or gone."""
    path = tmp_path / "split.json"
    path.write_text(json.dumps(varied(flows, {"slow.levels.RF.energy": "0.25,4"})))
    Path(flows[0]).write_text(SLOW.replace("mac_energy: 1", "mac_energy: 9"))
    Path(flows[1]).unlink()
    check = tw.check(path, prove=True, stop=tw.seconds(60), threads=1)
    assert not check.faults
    assert "confirmed" in str(check)


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        (
            "levels.RF.energy=1,2",
            r"vary: levels.RF.energy: expected the name of a machine file .*\(slow, wide\)",
        ),
        ("slow=1,2", "vary: slow: expected the name of a machine file"),
        ("slow.levels.REG.energy=1,2", "levels.REG"),
        ("slow.RF.energy=1,2", "did you mean levels.RF.energy"),
        ("slow.levels.RF.elements=0,-1", "all 2 designs are refused so"),
        ("slow.levels.RF.capacity=0,0kB", "all 2 designs are refused so"),
        ("slow.cost_model=dmazerunner", "all 1 .* are refused so"),
        ("slow.levels.DRAM.fanout.axes.k.size=2000,3000", "2001 PEs of machine files leave -977 of 1024"),
        ("slow.levels.RF.elements=1..5000+1", "5,000 variants, expected at most 1,000"),
    ],
)
def test_a_wrong_field_is_one_line(flows: list[str], vary: str, message: str) -> None:
    """What names no field of a machine file, or leaves no machine, is refused before anything is searched."""
    field, _, values = vary.partition("=")
    with pytest.raises(InputError, match=message) as error:
        varied(flows, {field: values})
    assert "\n" not in str(error.value)


def test_an_impossible_value_leaves_its_variant_out(flows: list[str]) -> None:
    """A capacity of zero is no machine; the other values are searched, and the bound is over those."""
    data = varied(flows, {"slow.levels.RF.elements": "0,64"})
    assert [point["fields"]["slow.levels.RF.elements"] for point in data["points"]] == [64]
    assert data["status"] == "optimal"
    assert not faults(data)


def test_names_with_dots_are_told_apart(flows: list[str], tmp_path: Path) -> None:
    """Of machines ``a`` and ``a.b`` the longest name that fits has the field."""
    for name in ("a", "a.b"):
        (tmp_path / f"{name}.yaml").write_text(WIDE)
    axes = [parse_variation("a.b.clock_mhz=1,2"), parse_variation("a.clock_mhz=3,4,5")]
    _, own = named_flows([str(tmp_path / "a.yaml"), str(tmp_path / "a.b.yaml")], axes)
    clocks = {place: (at["a"].clock_mhz, at["a.b"].clock_mhz) for place, at in own.variants.items()}
    assert clocks == {(i, j): (3 + j, 1 + i) for i in range(2) for j in range(3)}


def test_a_limit_while_costs_are_searched_leaves_what_is_known(
    flows: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variant whose mappings take too long is not known; the others are, and no bound of all is claimed."""
    whole = division_costs.cost_table

    def struck(operators: Any, systems: Any, *rest: Any, **named: Any) -> Any:
        flows = [sub.own for system in systems for sub in system.subs]
        if any(flow.engine.levels[-1].read_energy == 4 for flow in flows):
            raise LimitReachedError
        return whole(operators, systems, *rest, **named)

    monkeypatch.setattr(division_costs, "cost_table", struck)
    data = varied(flows, {"slow.levels.RF.energy": "0.25,4,1"})
    values = [point["fields"]["slow.levels.RF.energy"] for point in data["points"]]
    assert (data["status"], data["bound"], values) == ("feasible", None, ["0.25", 1])
    assert "2 of 3 partitions examined" in data["message"]
    assert not faults(data)


def test_mappings_that_stay_open_are_named_by_variant(
    flows: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mapping without a proof stands; text and document say on which variant."""
    answered = own_costs.answered

    def unproven(question: own_costs.MappingQuestion, *rest: Any) -> own_costs.MappingAnswer:
        answer = answered(question, *rest)
        late = question.engine.element_bits == 8 and question.engine.levels[-1].read_energy == 4
        return own_costs.MappingAnswer(answer.mapping, answer.proven and not late, 1e6)

    monkeypatch.setattr(own_costs, "answered", unproven)
    data = varied(flows, {"slow.levels.RF.energy": "0.25,4"})
    assert [point["open_mappings"] for point in data["points"]] == [[], ["gemm on slow"]]
    record = CodesignDocument.model_validate_json(json.dumps(data))
    text = " ".join(str(tw.Codesign(record)).split())
    assert "not proven in time to be of least energy: gemm on slow (slow.levels.RF.energy=4)" in text
    assert not faults(data)
