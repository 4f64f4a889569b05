"""Heuristics on the command line."""

from __future__ import annotations

import pytest
from calls import SMALL, Call

from tilewright.heuristics.registry import heuristic_names


def test_map_with_a_heuristic(call: Call) -> None:
    """The command line takes the same texts, and its answer is feasible."""
    outcome = call("map", SMALL, "-a", "nvdla-256", "-s", "annealing[steps=20]", "-f", "json")
    assert outcome.code == 0
    (layer,) = outcome.document["layers"]
    assert (layer["status"], layer["solver"]) == ("feasible", "annealing[steps=20]")
    assert call("map", SMALL, "-a", "nvdla-256", "-s", "random", "--require-optimal").code == 6


@pytest.mark.parametrize(
    "text", ["annealing[step=20]", "annealing[steps=x]", "aneealing", "genetic[", "auto[x=1]"]
)
def test_bad_methods_on_the_command_line(call: Call, text: str) -> None:
    """Exit code 2 and one line."""
    outcome = call("map", SMALL, "-a", "nvdla-256", "-s", text)
    assert outcome.code == 2
    assert len(outcome.err.strip().splitlines()) == 1


def test_list_methods(call: Call) -> None:
    """All heuristics with source and options, in every format."""
    rows = call("list", "methods", "-f", "json").document
    assert [row["method"] for row in rows] == heuristic_names()
    assert "walkers=" in next(row["description"] for row in rows if row["method"] == "annealing")
    table = call("list", "methods")
    assert table.code == 0
    assert max(map(len, table.out.splitlines())) <= 80
