"""The study beside AccelForge: one machine for both programs, and its mappings counted here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from studies.beside_accelforge import MACHINE
from studies.beside_accelforge_runner import nodes_of

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.exchange.bundle import Settings
from tilewright.report.exchange.convert import convert
from tilewright.workloads.mapping.operators import gemm


@pytest.fixture
def engine(tmp_path: Any) -> Engine:
    """The study's machine, which carries over without a loss that changes an answer."""
    conversion = convert([str(MACHINE)], "tilewright", settings=Settings(element_bits=8))
    assert conversion.grave == ()
    path = tmp_path / "machine.yaml"
    path.write_text(conversion.outputs[0].text)
    return load_engine(str(path))


def test_its_nodes_are_a_legal_mapping_here(engine: Engine) -> None:
    """Storage, loops and array of AccelForge's tree become a mapping with the same DRAM traffic."""

    def node(kind: str, **fields: object) -> object:
        return type(kind, (SimpleNamespace,), {})(**fields)

    tree = SimpleNamespace(
        nodes=[
            node("Storage", tensors=["Z", "W", "A"], component="MainMemory"),
            node("Reservation"),
            node("Temporal", rank_variable="k", tile_shape=192),
            node("Storage", tensors=["A"], component="GlobalBuffer"),
            node("Temporal", rank_variable="n", tile_shape=32),
            node("Storage", tensors=["W", "Z"], component="GlobalBuffer"),
            node("Spatial", rank_variable="k", tile_shape=1, name="reuse_output"),
            node("Spatial", rank_variable="n", tile_shape=1, name="reuse_input"),
            node("Storage", tensors=["W"], component="Register"),
            node("Temporal", rank_variable="m", tile_shape=1),
            node("Compute", component="MAC"),
        ]
    )
    operator = gemm(m=16, n=64, k=384)
    mapping = Mapping.from_data(nodes_of(tree))
    evaluation = evaluate_mapping(operator, engine, cost_model("hierarchy"), mapping)
    assert evaluation.violations == ()
    reads = {row.tensor: row.reads for row in evaluation.accesses if row.level == "MainMemory"}
    assert (reads["A"], reads["B"]) == (16 * 384, 64 * 384)
