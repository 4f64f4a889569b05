"""What an exploration says of its course: true counts hold, counts that no search has do not."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright as tw
from tilewright.report.checks.mapping.explore_course import course_faults
from tilewright.report.records.mapping.explore import ExploreDocument

GRID = {"levels.SPM.capacity": "16kB..64kB*2", "levels.RF.capacity": "1B,16B..64B*2"}
SHARED = {"levels.CBUF.capacity": "64kB..256kB*2"}


@pytest.fixture(scope="module")
def discarded() -> dict[str, Any]:
    """Of machines and of what is none, one is solved and the others are discarded by several rules."""
    layer = tw.layer("gemm:M=4,N=16,K=32")
    record: dict[str, Any] = tw.explore(layer, "dmazerunner-256", GRID).record.to_data()
    assert {"solved", "discarded", "refused"} == set(record["totals"]["statuses"])
    return record


def faults(record: dict[str, Any]) -> list[str]:
    """What is wrong with the counts of a document."""
    return [*course_faults(ExploreDocument.model_validate(record))]


def changed(record: dict[str, Any], index: int, **fields: Any) -> dict[str, Any]:
    """A document of which one design says something else."""
    designs = [{**design, **fields} if design["index"] == index else design for design in record["designs"]]
    return {**record, "designs": designs}


def counted(record: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A document of which the totals say something else."""
    return {**record, "totals": {**record["totals"], **fields}}


def test_proofs_follow_from_status_and_rule(discarded: dict[str, Any]) -> None:
    """A proof more or less than a design of that status can have is reported."""
    assert faults(discarded) == []
    for design in discarded["designs"]:
        for proven in {0, 1, 2} - {design["proven_layers"]}:
            lines = faults(changed(discarded, design["index"], proven_layers=proven))
            assert any(f"designs[{design['index']}].proven_layers: {proven}" in line for line in lines), (
                design
            )
    most = changed(discarded, discarded["best"]["index"], status="open", value=None)
    assert any("a design that is open has 0" in line for line in faults(most))


def test_searches_are_at_least_what_bounds_come_from(discarded: dict[str, Any]) -> None:
    """Designs that others have their bounds from were searched, and each has a cell of its own."""
    totals = discarded["totals"]
    machines = sum(design["status"] != "refused" for design in discarded["designs"])
    searched = machines - totals["unsearched"]
    nothing = dict.fromkeys(totals["cells"], 0)
    assert any("unsearched" in line for line in faults(counted(discarded, unsearched=machines)))
    assert any("unsearched" in line for line in faults(counted(discarded, unsearched=-1)))
    few = {**nothing, "searched": searched - 1}
    assert any(
        f"but {searched} designs were searched" in line for line in faults(counted(discarded, cells=few))
    )
    refused = next(d["index"] for d in discarded["designs"] if d["status"] == "refused")
    carried = next(d["index"] for d in discarded["designs"] if d["rule"] == "carried")
    lines = faults(changed(discarded, carried, carried_from=refused))
    assert any(f"carried from {refused}, which is no machine" in line for line in lines)
    unasked = {**discarded, "settings": {**discarded["settings"], "values": True}}
    unproven = counted(unasked, unsearched=machines, cells=nothing)
    assert any("no layer searched or kept" in line for line in faults(unproven))


def test_shared_answers_are_counted() -> None:
    """Designs that differ in what a layer cannot use share one search, and the totals say so."""
    record = tw.explore(tw.layer("gemm:M=2,N=4,K=4"), "nvdla-256", SHARED, every=True).record
    cells = record.totals.cells
    assert cells["searched"] + cells["carried"] + cells["shared"] == 3
    assert cells["shared"] > 0
    assert [*course_faults(record)] == []
    fewer = {**cells, "searched": 1, "carried": 0, "shared": 1}
    assert any(
        "2 layers on designs, but 3 are proven" in line
        for line in faults(counted(record.to_data(), cells=fewer))
    )
