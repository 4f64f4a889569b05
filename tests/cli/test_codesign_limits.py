"""``codesign`` under limits that strike early: what is known so far is told."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from calls import Call
from systems import LAYERS

from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.scheduling.herald.codesign import CodesignSearch, Division
from tilewright.hardware.scheduling.herald import classes
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass
from tilewright.solvers.scheduling.herald.cost_tables import costs, division_costs
from tilewright.solvers.scheduling.herald.partitions.partition_search import LeastBoundFirst


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small model, a class with nine partitions, and cost tables of their own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(classes.CLASSES, "edge", AcceleratorClass("edge", 16, 8, 1 << 14, 4, 2))
    (tmp_path / "model.yaml").write_text(LAYERS)


def test_costs_are_counted(call: Call) -> None:
    """Both verbs say how many costs of layers are known of how many."""
    out = call("codesign", "model.yaml", "--class", "edge", "--threads", 1)
    assert "costs of layers: 0 of 6 computed" in out.err
    assert "costs of layers: 6 of 6 computed" in out.err


def test_what_is_known_is_told_where_costs_are_missing(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit while costs are computed: the counts, in tables, documents and reports."""
    computed = costs._compute

    def slow(job: costs._Job) -> object:
        time.sleep(0.5)
        return computed(job)

    monkeypatch.setattr(costs, "_compute", slow)
    monkeypatch.setattr(costs, "_FEW", 99)
    out = call("codesign", "model.yaml", "--class", "edge", "--threads", 1, "-t", 1, "--report", "r.html")
    assert out.code == 4
    assert " of 6 computed; those are cached" in out.out
    assert " of 6 computed; those are cached" in Path("r.html").read_text()


def test_a_partition_is_there_before_all_costs_are(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit while the costs of all partitions are computed: the most even one is planned by then."""
    whole = division_costs.cost_table

    def struck(operators: object, systems: Sequence[object], *rest: object, **named: object) -> object:
        if len(systems) > 1:
            raise LimitReachedError("time limit reached")
        return whole(operators, systems, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(division_costs, "cost_table", struck)
    out = call("codesign", "model.yaml", "--class", "edge", "--threads", 1, "-f", "json", "--out", "c.json")
    document = out.document
    assert (document["status"], document["partitions"], document["bound"]) == ("feasible", 1, None)
    assert len({part["pes"] for part in document["best"]["system"]["sub_accelerators"]}) == 1
    assert "1 of 9 partitions" in document["message"]
    assert call("check", "c.json").code == 0


def test_partitions_so_far_are_told(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop after some partitions: the best of them stands there, and no bound of all is claimed."""
    look = LeastBoundFirst._look

    def counted(self: LeastBoundFirst, search: CodesignSearch, division: Division) -> None:
        look(self, search, division)
        if len(search.candidates) == 4:
            search.limits.stop.set()

    monkeypatch.setattr(LeastBoundFirst, "_look", counted)
    out = call("codesign", "model.yaml", "--class", "edge", "--threads", 1, "-f", "json", "--out", "c.json")
    document = out.document
    assert (document["status"], document["partitions"], document["bound"]) == ("interrupted", 4, None)
    assert document["best"]["bound"] is not None
    assert "4 of 9 partitions" in document["message"]
    assert call("check", "c.json").code == 0
