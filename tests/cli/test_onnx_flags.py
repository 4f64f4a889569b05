"""Every verb that takes a model takes what an ONNX file needs to be told, and recommends nothing else."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_models as made
import pytest
from calls import Call

import tilewright as tw
from tilewright.foundation.errors import InputError

TOLD = ("--dim", "rows=3", "--branch", "at_*=else")
VERBS: dict[str, tuple[str, ...]] = {
    "map": ("map", "FILE", "--arch", "nvdla-256", "-q"),
    "explore": (
        "explore",
        "FILE",
        "--arch",
        "dmazerunner-256",
        "--vary",
        "levels.SPM.capacity=64kB,128kB",
        "-q",
    ),
    "show": ("show", "FILE"),
    "show as data": ("show", "FILE", "--format", "json"),
    "bench": (
        *(
            "bench",
            "FILE",
            "--arch",
            "nvdla-256",
            "--method",
            "random",
            "--seeds",
            "1",
            "--time-limit",
            "0.2",
        ),
        *("--optimum", "none", "-q", "--jobs", "1", "--out", "FOLDER/bench.sqlite"),
    ),
    "schedule": ("schedule", "FILE", "--system", "fda-edge-nvdla", "-q"),
    "schedule on tiles": ("schedule", "FILE", "--system", "atomic-2x2", "--method", "ls", "-q"),
    "compare": (
        *(
            "compare",
            "FILE",
            "--system",
            "atomic-2x2",
            "--methods",
            "ls",
            "--seeds",
            "1",
            "--time-limit",
            "9",
        ),
        *("--jobs", "1", "-q", "--store", "FOLDER/compare.sqlite"),
    ),
}


def saved(folder: Path) -> Path:
    """A model with an open size and a condition that depends on the data."""
    path = folder / "branches.onnx"
    onnx.save(made.branches(known=False), path)
    return path


@pytest.mark.parametrize(
    "verb",
    [verb if verb in ("map", "compare") else pytest.param(verb, marks=pytest.mark.slow) for verb in VERBS],
)
def test_every_verb_takes_what_its_errors_recommend(call: Call, tmp_path: Path, verb: str) -> None:
    """Without flags one line names the size and the condition with flags; with these the verb answers."""
    path = saved(tmp_path)
    words = [word.replace("FILE", str(path)).replace("FOLDER", str(tmp_path)) for word in VERBS[verb]]
    refused = call(*words)
    assert refused.code == 2
    (line,) = [line for line in refused.err.splitlines() if "branches.onnx" in line]
    assert "input x: axis 1 is rows, expected a number (--dim rows=224)" in line
    assert "(--branch at_y=then)" in line
    answered = call(*words, *TOLD)
    assert answered.code == 0, answered.err
    unknown = call(*words, "--dim", "row=3")
    assert unknown.code == 2
    assert "did you mean 'rows'" in unknown.err


@pytest.mark.parametrize("verb", ["map", "show", "bench", "schedule", "compare", "explore"])
def test_other_models_refuse_the_flags(call: Call, tmp_path: Path, verb: str) -> None:
    """A flag of ONNX files on a layer's text is an error, not ignored."""
    words = [
        word.replace("FILE", "gemm:M=4,N=4,K=4").replace("FOLDER", str(tmp_path)) for word in VERBS[verb]
    ]
    refused = call(*words, "--dim", "rows=3")
    assert refused.code == 2
    assert "is for ONNX models" in refused.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--dim", "rows=0"), "--dim: rows=0: expected an axis"),
        (("--dim", "rows"), "--dim: rows: expected an axis"),
        (("--branch", "at_y=both"), "--branch: at_y=both: expected a node, once, with its side"),
        (("--trip", "at_y=-1"), "--trip: at_y=-1: expected a node"),
        (("--trip", "a=1", "--trip", "a=2"), "--trip: a=2: expected a node, once"),
    ],
)
def test_bad_texts_are_one_line(call: Call, tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    """What is no size, side or count is told with the flag."""
    refused = call("show", str(saved(tmp_path)), *words)
    assert refused.code == 2
    assert told in refused.err


def test_python_takes_arguments(tmp_path: Path) -> None:
    """The same as arguments, which errors name as such; what is left out is listed."""
    path = saved(tmp_path)
    assert tw.network(path, dims={"rows": 3}, branches={"at_y": "then"}).macs == 192
    assert tw.network(path, 5, dims={"rows": 3}, branches={"at_y": "else"}).macs == 120
    with pytest.raises(InputError, match=r"branches=\{'at_y': 'then'\}") as caught:
        tw.network(path)
    assert "--" not in str(caught.value)
    with pytest.raises(InputError, match="dims: row"):
        tw.network(path, dims={"row": 3})
    with pytest.raises(InputError, match="dims: rows: expected a number of at least 1, got 0"):
        tw.network(path, dims={"rows": 0})
    with pytest.raises(InputError, match="branches: x: expected then or else"):
        tw.network(path, branches={"x": "both"})
    with pytest.raises(InputError, match="dims: is for ONNX models"):
        tw.network("alexnet", dims={"rows": 3})


def test_a_workload_says_it_in_its_file(tmp_path: Path) -> None:
    """Fields of a workload's file are those arguments; errors name the field."""
    path = saved(tmp_path)
    file = tmp_path / "work.yaml"
    file.write_text(f"networks: [{{model: {path.name}, dims: {{rows: 3}}, branches: {{at_y: then}}}}]\n")
    (part,) = tw.workload(file).networks.parts
    assert part.network.macs == 192
    file.write_text(f"networks: [{{model: {path.name}}}]\n")
    with pytest.raises(InputError, match=r"branches: \{'at_y': 'then'\} in a workload's file"):
        tw.workload(file)
    file.write_text(f"networks: [{{model: {path.name}, dims: {{row: 3}}}}]\n")
    with pytest.raises(InputError, match=r"networks\.0\.dims\.row: .* did you mean 'rows'"):
        tw.workload(file)
