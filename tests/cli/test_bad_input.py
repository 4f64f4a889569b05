"""Bad input: one line that names the file or flag, the field and what was expected; exit code 2."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from calls import SMALL, Call
from onnx import TensorProto, helper

ARCH = ("-a", "eyeriss-168")

FILES = {
    "broken.yaml": "levels: [\n  - {name: DRAM",
    "misspelt.yaml": "clock_mhz: 1\ncompute: {mac_energy: 1, element_bits: 8}\nlevels:\n"
    "  - {name: DRAM, energy: 1}\n  - {name: RF, energy: 1, capacty: 2 kB}\n",
    "layers.yaml": "- gemm:M=4,N=4,K=4\n- {kind: gemm, M: 4, N: -4, K: 4}\n",
    "empty.yaml": "",
    "broken.json": '{"schema": "tilewright.result/1", "layers": [',
    "other.json": '{"a": 1}',
    "old.json": '{"schema": "tilewright.result/0"}',
    "partial.json": '{"schema": "tilewright.result/1", "command": "map"}',
    "broken.onnx": "this is no model",
    "nodes.yaml": "tilewright: mapping/1\nlayer: gemm:M=4,N=4,K=4\narch: eyeriss-168\nnodes: [{loop: M}]\n",
    "homeless.yaml": "tilewright: mapping/1\nlayer: gemm:M=4,N=4,K=4\nnodes: []\n",
    "kind.yaml": "layer: gemm:M=4,N=4,K=4\narch: eyeriss-168\nfactors: some\nnodes: []\n",
    "dma.yaml": "layer: gemm:M=4,N=4,K=4\narch: dmazerunner-256\nfactors: imperfect\nnodes: []\n",
    "table.csv": "name,value\n",
}

CASES = [
    (("mapp", SMALL), ["No such command 'mapp'", "Did you mean 'map'?"]),
    (("map",), ["map: Missing argument 'MODEL|LAYER'"]),
    (("map", SMALL), ["map: Missing option '--arch'"]),
    (("map", SMALL, *ARCH, "--sover", "x"), ["No such option: --sover", "--solver"]),
    (("map", SMALL, "-a", "eyeris-168"), ["did you mean 'eyeriss-168'?", "tpu-edge"]),
    (("map", SMALL, "-a", "broken.yaml"), ["broken.yaml:2", "not valid YAML"]),
    (("map", SMALL, "-a", "misspelt.yaml"), ["misspelt.yaml:5: levels[1].capacty", "'capacity'?"]),
    (("map", SMALL, "-a", "nowhere.yaml"), ["nowhere.yaml", "cannot be read"]),
    (("map", "alexnet", *ARCH, "--layers", "conv1,conv2"), ["conv1,conv2", "one pattern for each --layers"]),
    (("map", "squeezenet", *ARCH), ["did you mean 'onnx:squeezenet'?"]),
    (("map", "onnx:resnet5", *ARCH), ["did you mean 'resnet50'?"]),
    (("map", "nowhere.onnx", *ARCH), ["nowhere.onnx: cannot be read"]),
    (("map", "broken.onnx", *ARCH), ["broken.onnx: not an ONNX model"]),
    (("map", "truncated.onnx", *ARCH), ["truncated.onnx: not an ONNX model, or a truncated one"]),
    (("map", "det.onnx", *ARCH), ["det.onnx: node cell (Det)", "not supported"]),
    (("map", "gem:M=1,N=1,K=1", *ARCH), ["unknown layer kind 'gem', did you mean 'gemm'?"]),
    (("map", "gemm:M=-8,N=8,K=8", *ARCH), ["M: expected at least 1, got -8"]),
    (("map", "layers.yaml", *ARCH), ["layers.yaml: layer 2: N: expected at least 1, got -4"]),
    (("map", "empty.yaml", *ARCH), ["empty.yaml: the file is empty"]),
    (("map", SMALL, *ARCH, "--batch", "0"), ["batch: expected at least 1, got 0"]),
    (("map", SMALL, *ARCH, "-o", "energie"), ["--objective", "'energie'", "did you mean 'energy'?"]),
    (("map", SMALL, *ARCH, "-o", "E^0*D^0"), ["--objective", "not both zero"]),
    (("map", SMALL, *ARCH, "-t", "soon"), ["--time-limit: cannot read 'soon'", "5m"]),
    (("map", SMALL, *ARCH, "-t", "0"), ["--time-limit: expected a time above 0"]),
    (("map", SMALL, *ARCH, "--gap", "120%"), ["--gap", "below 100 %"]),
    (("map", SMALL, *ARCH, "--threads", "0"), ["--threads: expected at least 1, got 0"]),
    (("map", SMALL, *ARCH, "--seed", "x"), ["--seed"]),
    (("map", SMALL, *ARCH, "--solver", "brunch"), ["--solver", "did you mean 'branch'?"]),
    (("map", SMALL, *ARCH, "--format", "jsn"), ["--format", "did you mean 'json'?"]),
    (("map", SMALL, *ARCH, "--cost-model", "heirarchy"), ["--cost-model", "did you mean 'hierarchy'?"]),
    (("map", SMALL, *ARCH, "--cost-model", "dmazerunner"), ["cost_model", "DMA"]),
    (("map", SMALL, *ARCH, "--factors", "perfekt"), ["--factors", "did you mean 'perfect'?"]),
    (
        ("map", SMALL, "-a", "dmazerunner-256", "--factors", "imperfect"),
        ["--factors", "perfect factors only"],
    ),
    (("map", SMALL, *ARCH, "--best", "0"), ["--best: expected at least 1, got 0"]),
    (("map", SMALL, *ARCH, "--best", "x"), ["Invalid value for '--best'"]),
    (("map", SMALL, *ARCH, "--best"), ["'--best' requires an argument"]),
    (("map", SMALL, *ARCH, "--all-optimal", "--most", "0"), ["--most: expected at least 1, got 0"]),
    (("map", SMALL, *ARCH, "--most", "5"), ["--most: expected --all-optimal with it"]),
    (("map", SMALL, *ARCH, "--pareto", "--format", "csv"), ["csv cannot hold --pareto", "json"]),
    (("map", SMALL, *ARCH, "--best", "2", "-f", "csv", "--out", "r.csv"), ["csv cannot hold --best"]),
    (("map", SMALL, *ARCH, "--constraint", "fast"), ["--constraint: cannot read 'fast'", "cycles<=1e6"]),
    (("map", SMALL, *ARCH, "--constraint", "tile(K@SPM)<=4"), ["unknown level 'SPM'", "GLB"]),
    (("map", SMALL, *ARCH, "--layers", "conv*"), ["--layers: conv*: matches no layer"]),
    (("map", SMALL, *ARCH, "--out", "none/x.json"), ["none/x.json: cannot be written: no folder none"]),
    (("map", SMALL, *ARCH, "--out", "."), ["is a folder, expected a file"]),
    (("map", SMALL, *ARCH, "--log", "none/x.log"), ["none/x.log: cannot be written"]),
    (("map", SMALL, *ARCH, "--save-mappings", "broken.yaml"), ["broken.yaml: cannot be made"]),
    (("map", SMALL, *ARCH, "--warm-start", "none.yaml"), ["none.yaml: cannot be read"]),
    (("map", SMALL, *ARCH, "--warm-start", "other.json"), ["other.json: nodes: missing"]),
    (("evaluate", "none.yaml"), ["none.yaml: cannot be read"]),
    (("evaluate", "nodes.yaml"), ["nodes.yaml: nodes[0] (line 4): expected {temporal, tile}"]),
    (("evaluate", "homeless.yaml"), ["homeless.yaml: arch: missing"]),
    (("evaluate", "homeless.yaml", *ARCH), ["homeless.yaml: nodes (line 3): M ends with a tile of 4"]),
    (("evaluate", "homeless.yaml", *ARCH, "-o", "x"), ["--objective"]),
    (("evaluate", "tiny.yaml", "--factors", "some"), ["--factors", "expected one of: perfect, imperfect"]),
    (("evaluate", "kind.yaml"), ["kind.yaml: factors", "'perfect' or 'imperfect'"]),
    (("evaluate", "dma.yaml"), ["--factors", "perfect factors only"]),
    (("check", "none.json"), ["none.json: cannot be read"]),
    (("check", "broken.json"), ["broken.json: line 1, column", "not valid JSON"]),
    (("check", "other.json"), ["other.json: schema: missing"]),
    (("check", "old.json"), ["old.json: schema: expected tilewright.result/1, got 'tilewright.result/0'"]),
    (("check", "partial.json"), ["partial.json: complete: missing"]),
    (("check", "table.csv"), ["table.csv: a CSV table has no mappings"]),
    (("show", "eyeriss-16"), ["neither a machine nor a model, did you mean 'eyeriss-168'?"]),
    (("show", "none.json"), ["none.json: cannot be read"]),
    (("show", "other.json"), ["other.json: schema: missing"]),
    (("show", "misspelt.yaml"), ["misspelt.yaml:5: levels[1].capacty"]),
    (("show", SMALL, "--formula"), ["--formula: expected --arch"]),
    (("show", SMALL, "--formula", *ARCH, "--factors", "x"), ["--factors: unknown name 'x'"]),
    (("show", "onnx:alexnet", "--formula", *ARCH), ["expected one layer"]),
    (("list", "archss"), ["did you mean 'archs'?"]),
    (("list",), ["list: Missing argument 'WHAT'"]),
    (("doctor", "--format", "csv"), ["--format"]),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of files that are wrong in one way each."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    shipped = Path(onnx.__file__).parent / "backend/test/data/light/light_resnet50.onnx"
    (tmp_path / "truncated.onnx").write_bytes(shipped.read_bytes()[:3000])
    nodes = [helper.make_node("Det", ["x"], ["y"], name="cell")]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 8])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])]
    graph = helper.make_graph(nodes, "det", inputs, outputs)
    onnx.save(helper.make_model(graph), str(tmp_path / "det.onnx"))
    return tmp_path


@pytest.mark.parametrize(("args", "told"), CASES, ids=lambda value: " ".join(value)[:60])
def test_bad_input_is_one_clear_line(
    call: Call, folder: Path, args: tuple[str, ...], told: list[str]
) -> None:
    """The line names what is wrong; nothing reaches stdout, no file is left behind."""
    before = sorted(folder.iterdir())
    outcome = call(*args)
    assert outcome.code == 2
    assert outcome.out == ""
    (line,) = outcome.err.splitlines()
    assert line.startswith("tilewright: error: ")
    for part in told:
        assert part in line
    assert sorted(folder.iterdir()) == before


def test_bad_output_path_is_told_before_solving(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unwritable --out stops the call before any problem is stated."""
    monkeypatch.setattr(
        "tilewright.api.mapping.question.network_problem", lambda *_: pytest.fail("was reached")
    )
    assert call("map", SMALL, *ARCH, "--out", "none/x.json").code == 2
