"""One block of four language models: bits moved to and from memory, per tensor, against published values."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.mapping.operators import depthwise_conv2d

DATA = Path(__file__).parents[1] / "data" / "compulsory_bits.json"
CASES = json.loads(DATA.read_text(encoding="utf-8"))["cases"]
TOKENS = "BATCH_SIZE=1,DECODE=False,N_NEW_TOKENS=256"

#: A buffer that holds everything; a bit to or from memory costs 1 pJ, elements are of 8 bits unless told.
MACHINE = Engine(
    "endless",
    "hierarchy",
    8,
    Fraction(0),
    Fraction(1000),
    (MemoryLevel("DRAM", None, Fraction(8), Fraction(8)), MemoryLevel("GLB", None, Fraction(0), Fraction(0))),
)
ATTENTION = {
    "V": "attention.value",
    "K": "attention.key",
    "Q": "attention.query",
    "QK": "attention.scores",
    "QK_softmax": "attention.softmax",
    "AV": "attention.mix",
    "Z": "attention.result",
}
PLAIN = ATTENTION | {"FFA": "feed_forward.up", "FFB": "feed_forward.down"}
GATED = ATTENTION | {
    "FFG": "feed_forward.gate",
    "FFU": "feed_forward.up",
    "FFH": "feed_forward.gated",
    "FFB": "feed_forward.down",
}
EXPERTS = ATTENTION | {
    "FFG": "experts.gate",
    "FFU": "experts.up",
    "FFH": "experts.gated",
    "FFD": "experts.down",
}
BLOCKS = {
    "gpt3_6.7B": ("gpt3[size=6.7B,{}]", PLAIN),
    "llama3_8B": ("llama3[size=8B,{}]", GATED),
    "qwen3_8B": ("qwen3[size=8B,{}]", GATED),
    "mixtral8x22B": ("mixtral[size=8x22B,{}]", EXPERTS),
}


def moved(layer: str, text: str) -> tuple[dict[str, Fraction], Fraction]:
    """Bits of a layer's tensors that its proven optimum moves to or from memory, and all of them."""
    network = resolve_model(text)
    problem = layer_problem(
        network.layer(f"block1.{layer}").operator, MACHINE, parse_objective("energy"), factors="perfect"
    )
    result = solve(problem)
    assert result.status is Status.OPTIMAL
    assert result.evaluation is not None
    bits = {
        access.tensor: Fraction(16 * (access.reads + access.fills + access.updates))
        for access in result.evaluation.accesses
        if access.level == "DRAM"
    }
    return bits, result.evaluation.energy


@pytest.mark.parametrize("model", BLOCKS)
def test_every_tensor_of_a_block_moves_the_published_bits(model: str) -> None:
    """Each einsum reads and writes the bits that are published, at 1 pJ each."""
    text, layers = BLOCKS[model]
    case = CASES[f"{model}|{TOKENS}"]
    assert set(layers) == set(case["bits"])
    whole = Fraction(0)
    for einsum, rows in case["bits"].items():
        bits, energy = moved(layers[einsum], text.format("tokens=256,widths=w16a16c16s16"))
        assert sorted(bits.values()) == sorted(Fraction(value) for value in rows.values()), einsum
        assert energy == sum(rows.values()), einsum
        whole += energy
    assert whole == case["energy"]


def test_the_row_of_mamba_is_of_one_step() -> None:
    """Its tensors have no tokens: D x N of a decode step, with B and C of 128 where Mamba has 16."""
    bits = CASES[f"mamba|{TOKENS}"]["bits"]
    assert bits["H"]["H write"] == 8 * 4096 * 128
    assert bits["B"]["X read"] == 8 * 4096
    state = resolve_model("mamba[size=2.8B,phase=decode]").layer("block1.mixer.state").operator
    assert state.bounds == {"t": 1, "d": 5120, "n": 16}


def test_the_row_of_mobilenet_reads_a_border() -> None:
    """Its depthwise layers read 30 x 30 of a result of 28 x 28: what a layer here reads with its zeros."""
    bits = CASES["mobilenet_28|"]["bits"]
    padded = depthwise_conv2d(c=192, r=3, s=3, h=28, w=28, pad=1)
    assert bits["PiecewiseA0"]["TA0 write"] == bits["Depthwise0"]["TB0 write"] == 8 * 28 * 28 * 192
    assert bits["Depthwise0"]["TA0 read"] == 8 * padded.tensor("I").footprint(padded.bounds)
    assert padded.tensor("I").footprint(padded.bounds) == 30 * 30 * 192
