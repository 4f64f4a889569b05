"""Studies of trees: what stands in their store is printed, and what is missing is computed once."""

from pathlib import Path

import pytest
from studies import set_figures, set_losses, set_proofs, set_trees
from studies.answers import answers
from studies.set_cells import TreeCell, TreeFound, compute, failed, tree_store


def test_tables_are_of_what_the_store_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cycles and energy are those over annealing's, late searches are marked, cells that miss are too."""
    path = tmp_path / "cells.sqlite"
    store = tree_store(path)
    for cell in set_figures.cells(["resnet"], "edge", [1], 5.0):
        slow = cell.method == "lp-chains"
        status = "out of time" if slow else "found"
        store.put(cell, TreeFound(status, 2.0 + slow, 3e9 * (1 + slow), 1000 * (1 + 2 * slow)))
    three = set_figures.cells(["resnet"], "edge", [16], 5.0, 3)
    assert len(three) == 9
    for cell in three:
        factor = {1: 2, 2: 1, 3: 4}[cell.seed] * (0.5 if cell.method == "set" else 1.0)
        store.put(cell, TreeFound("found", factor, 3e9 * factor, 1000 * cell.seed))
    graph = set_losses.graphs(1)[0]
    for method, value in (("all", 2.0), ("sa", 3.0), ("kapla", 2.0)):
        status = "proven" if method == "all" else "found"
        store.put(set_losses.cell(graph, method, 20.0), TreeFound(status, value, 1.0, 1))
    store.put(set_proofs.cell("goog:5-12", 1, 60.0), TreeFound("proven", 2.0, 1.0, 1, seconds=3.0))
    store.close()
    only = ["--store", str(path), "--only-print"]
    assert (
        set_figures.main(["--platforms", "edge", "--networks", "resnet", "--batches", "1", "4", *only]) == 0
    )
    reported = capsys.readouterr().out
    assert "| ResNet-50 | 1 | 1.00 / 1.00 | 3.00 / 2.00* |" in reported
    assert "3.00 times as fast, 50.0 % less energy (paper's SET: 1.90, 21.7 %)" in reported
    assert "| ResNet-50 | 4 | - |" in reported
    seeds = ["--platforms", "edge", "--networks", "resnet", "--batches", "16", "--seeds", "3"]
    assert set_figures.main([*seeds, *only]) == 0
    assert "| 1.00 / 0.50 | 1,000 | 6.000 | -50.0 % (-75.0 to +0.0) |" in capsys.readouterr().out
    assert set_losses.main(["--graphs", "1", *only]) == 0
    reported = capsys.readouterr().out
    assert "1 graphs, 1 of them proven" in reported
    assert "| all | 1 | 0 | 50.00 % |" in reported
    assert set_proofs.main(["goog:5-12", "resnet:2-9", *only]) == 0
    reported = capsys.readouterr().out
    assert "| goog | 5 to 12 (8) | 2 | 3.0 | proven |" in reported
    assert "| resnet | 2 to 9 (8) | - | | not run |" in reported
    assert set_trees.main(["resnet", *only]) == 0
    assert "not run" in capsys.readouterr().out


@pytest.mark.slow
def test_every_method_of_a_cell_finds_a_tree(tmp_path: Path) -> None:
    """On a part of a network all searches give trees no better than the proven one; a bad name is told."""
    store = tree_store(tmp_path / "cells.sqlite")
    graph = ("darknet", (10, 11, 12, 13), 1)
    asked = [set_losses.cell(graph, method, 10.0) for method in ("all", *set_losses.METHODS)]
    results = dict(answers(store, asked, 1, compute, failed, fresh=False))
    assert results[asked[0]].status == "proven"
    assert all(answer.value >= results[asked[0]].value * (1 - 1e-12) for answer in results.values())
    bad = TreeCell("nothing", (), "set-edge-4x4", "program", "paper", 1, 1, 1, "sa", 1, 1.0)
    assert compute(bad).status == "error"
    store.close()
