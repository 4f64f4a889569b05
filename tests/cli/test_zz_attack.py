from __future__ import annotations
import json
from pathlib import Path
import pytest
from calls import Call
from test_mutations import made, passing, files, stated_once, PLACE, CHAIN, CONV, changes_of, made_once, honest, faults_of, CALLS as OLD  # noqa

ATT = """\
- {name: qk, layer: "gemm:M=16,N=16,K=4"}
- {name: av, layer: "gemm:M=16,N=4,K=16", reads: {A: {layer: qk, rows: [1]}}}
"""
WIN = """\
- {name: a, layer: "conv:K=2,C=2,P=6,Q=4,R=1,S=1"}
- {name: b, layer: "conv:K=2,C=2,P=4,Q=2,R=3,S=3", reads: {I: a}}
"""
FUSE = ("--fuse", "--factors", "perfect")
CALLS = {
    "edp": ("map", "chain.yaml", "-a", "tpu-edge", *FUSE, "-o", "edp"),
    "soft": ("map", "att.yaml", "-a", "tpu-edge", *FUSE, "--online-softmax"),
    "win": ("map", "win.yaml", "-a", "tpu-edge", *FUSE),
    "imperfect": ("map", "chain.yaml", "-a", "tpu-edge", "--fuse", "-o", "cycles"),
    "beside": ("map", "chain.yaml", "-a", "tpu-edge", *FUSE, "--fuse-at", "ACC", "--warm-start", "chain.json"),
    "greedy": ("map", "chain.yaml", "-a", "tpu-edge", *FUSE, "--solver", "annealing"),
    "limited": ("map", "win.yaml", "-a", "eyeriss-168", *FUSE, "--time-limit", "0.01"),
    "exact": ("schedule", CONV, "--system", "atomic-2x2", "-m", "exact[atoms=6]", "-o", "makespan", "--threads", 1),
    "transfers": ("schedule", CONV, "--system", "atomic-2x2", "-m", "transfers", "-o", "makespan", "--threads", 1, "--time-limit", "5"),
    "setsa": ("schedule", "layers.yaml", "--system", "atomic-2x2", "-m", "set-sa", "-o", "edp", "--threads", 1, "--time-limit", "2"),
    "exenergy": ("schedule", CONV, "--system", "atomic-2x2", "-m", "exact[atoms=6]", "-o", "energy", "--threads", 1),
    "keep": ("schedule", "model.yaml", "--system", "system.yaml", "-o", "edp", "--threads", 1, "--keep-activations"),
    "compare": (),
}

@pytest.mark.parametrize("kind", CALLS)
def test_more(call: Call, kind: str) -> None:
    Path("att.yaml").write_text(ATT); Path("win.yaml").write_text(WIN)
    if kind == "beside":
        assert call("map", "chain.yaml", "-a", "tpu-edge", *FUSE, "-q", "--out", "chain.json").code == 0
    if not CALLS[kind]: return
    out = call(*CALLS[kind], "-q", "--out", PLACE)
    assert out.code in (0, 4, 6), (out.code, out.err)
    document = honest()
    like = {"edp": "fused", "soft": "fused", "win": "fused", "imperfect": "fused", "beside": "fused", "greedy": "fused","limited":"fused", "exact":"plan", "transfers":"plan","setsa":"plan","exenergy":"plan","keep":"schedule"}[kind]
    passed = passing(document, known=changes_of(json.loads(json.dumps(document))) - changes_of(document))
    print("PASSED", kind, passed)
    Path(f"/tmp/attack/mut_{kind}.txt").write_text("\n".join(passed) + f"\n{len(json.dumps(document))} bytes\n")
    assert not passed, passed
