"""Heuristics on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import SMALL, Call

from tilewright.formulation.mapping.directives import parse_directives
from tilewright.heuristics.mapping.registry import HEURISTICS
from tilewright.report.records.mapping.stored_mappings import read_mappings
from tilewright.solvers.scheduling.herald.registry import METHODS


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
    mapping = [row for row in rows if row["finds"] == "mapping"]
    assert [row["method"] for row in mapping] == HEURISTICS.names()
    assert "walkers=" in next(row["description"] for row in mapping if row["method"] == "annealing")
    assert [row["method"] for row in rows if row["finds"] == "schedule"] == METHODS.names()
    exact = {row["method"] for row in rows if row["exact"] == "yes"}
    assert {"cpsat", "exact"} <= exact
    assert not exact & {"herald", "atomic", "ls", "set", "kapla", "annealing"}
    table = call("list", "methods")
    assert table.code == 0
    assert max(map(len, table.out.splitlines())) <= 80


def test_show_directives(call: Call, result: Path) -> None:
    """A result's mappings as directives, which read back as the same mappings."""
    outcome = call("show", result, "--directives", "--layers", "second")
    assert outcome.code == 0
    assert outcome.out.startswith("layer gemm(M=4, N=8, K=8) -> C\n")
    both = call("show", result, "--directives")
    assert [line for line in both.out.splitlines() if line.startswith("# ")] == ["# first", "# second"]
    stored = next(s for s in read_mappings(result) if s.name == "second")
    assert parse_directives(outcome.out).mapping() == stored.mapping


def test_show_directives_of_nothing(call: Call, result: Path) -> None:
    """A layer that is not there, and a thing that is no mapping."""
    outcome = call("show", result, "--directives", "--layers", "secnd")
    assert outcome.code == 2
    assert "did you mean 'second'" in outcome.err
    assert call("show", "nowhere.yaml", "--directives").code == 2
