"""Trees in files on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from tilewright.cli.main import run

DATA = json.loads((Path(__file__).parents[3] / "data" / "set_schedules.json").read_text())
WANT: dict[str, Any] = DATA["runs"][1]["modes"]["SET"]


def called(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code and output of a command."""
    code = run(list(words))
    reported = capsys.readouterr()
    return code, reported.out, reported.err


def test_reference_tree_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file with the program's tree, figures and defects gives its totals, node by node."""
    path = tmp_path / "tree.json"
    stated = {"network": "program:resnet", "figures": "program", "defects": "all", "tree": WANT["ra_tree"]}
    path.write_text(json.dumps(stated))
    code, out, _ = called(capsys, "evaluate", str(path), "-f", "json")
    reported = json.loads(out)
    assert code == 0
    assert reported["closed_form"]["cycles"] == WANT["Latency"]
    assert reported["closed_form"]["energy_pj"] == pytest.approx(WANT["Energy"], rel=1e-5)
    assert [row["dram_bytes"] for row in reported["nodes"]] == [node["dram"] for node in WANT["nodes"]]
    assert "plan" not in reported


def test_tree_of_the_catalog_with_graph_and_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A tree over a model of the catalog is drawn, and judged as a plan beside its closed form."""
    path = tmp_path / "tree.yaml"
    names = ["conv1", "pool1", "conv2", "pool2", "conv3", "conv4", "conv5", "pool5", "fc6", "fc7", "fc8"]
    lines = [
        "network: alexnet",
        "batch: 2",
        "defects: [idle_tiles_receive]",
        "tree: |",
        "  T 2/1",
        "      T 2/2",
    ]
    lines += [f"          {name} 1" for name in names[:3]] + [f"      {name} 2" for name in names[3:]]
    path.write_text("\n".join(lines))
    code, out, _ = called(capsys, "evaluate", str(path))
    assert code == 0
    assert "tile  0" in out
    assert "a conv1" in out
    assert "closed form" in out
    assert "as a plan" in out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tree": "T 1/1\n\tconv1 1\n"}, "is not in the tree"),
        ({"tree": "T 1/1\n\tconv1 " + "9" * 5000}, "line 2: expected"),
        ({"tree": "".join("\t" * depth + "T 1/1\n" for depth in range(2000))}, "line 202: more than 200"),
        ({"objective": "E^D"}, "objective: unknown name"),
        ({"network": "program:resnetx"}, "did you mean 'resnet'"),
        ({"defects": ["none"]}, "expected some of"),
        ({"colour": 1}, "colour"),
    ],
)
def test_broken_files_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], message: str
) -> None:
    """What is wrong with a file is one line and exit code 2."""
    path = tmp_path / "tree.json"
    path.write_text(json.dumps({"network": "program:resnet", "tree": WANT["ra_tree"]} | change))
    code, _, err = called(capsys, "evaluate", str(path))
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) <= 3


def test_tree_is_shown_drawn_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`show` prints what `evaluate` does and draws it; `check` tells a broken tree."""
    path, picture = tmp_path / "tree.json", tmp_path / "graph.svg"
    stated = {"network": "program:resnet", "tree": WANT["ra_tree"]}
    path.write_text(json.dumps(stated))
    assert called(capsys, "show", str(path)) == called(capsys, "evaluate", str(path))
    assert called(capsys, "show", str(path), "--plot", str(picture))[0] == 0
    drawn = picture.read_text()
    assert "<svg" in drawn
    assert "resnet on set-edge-4x4, batch 1" in drawn
    assert drawn.count("<path") > 70
    assert called(capsys, "check", str(path))[0] == 0
    path.write_text(json.dumps(stated | {"tree": "T 1/1\n\tconv1 1\n"}))
    code, out, _ = called(capsys, "check", str(path))
    assert code == 5
    assert "is not in the tree" in out


def test_tree_of_a_search_is_written_and_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`schedule --tree` writes what `evaluate` reads, with the same plan; other methods have none."""
    network, tree, plan = tmp_path / "layers.yaml", tmp_path / "tree.yaml", tmp_path / "plan.json"
    layers = ["conv:K=16,C=8,P=8,Q=8,R=3,S=3,pad=1", "conv:K=8,C=16,P=8,Q=8,R=1,S=1"]
    network.write_text("".join(f'- {{name: l{i}, layer: "{layer}"}}\n' for i, layer in enumerate(layers)))
    words = [
        "schedule",
        str(network),
        "--system",
        "set-edge-4x4",
        "-b",
        "2",
        "-o",
        "edp",
        "--tree",
        str(tree),
    ]
    assert called(capsys, *words, "-m", "set-ls", "--out", str(plan))[0] == 0
    code, out, _ = called(capsys, "evaluate", str(tree), "-f", "json")
    reported, written = json.loads(out), json.loads(plan.read_text())
    assert code == 0
    assert reported["plan"]["cycles"] == written["metrics"]["cycles"]
    assert f"closed form {reported['closed_form']['value']:.6g}" in written["message"]
    code, _, err = called(capsys, *words, "-m", "ls")
    assert code == 1
    assert "tree.yaml: cannot be written: the best plan is not made from a tree" in err
