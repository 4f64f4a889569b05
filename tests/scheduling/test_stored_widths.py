"""Widths of a model on systems of sub-accelerators: bytes, cycles and energies by hand, and documents."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from own_engine_files import WIDE

import tilewright as tw
from tilewright.report.checks.scheduling.herald.schedule import check_schedule
from tilewright.report.records.scheduling.herald.document import ScheduleDocument
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.network import Network
from tilewright.workloads.scheduling.workload import Part
from tilewright.workloads.scheduling.workload import Workload as Networks

SYSTEM = """
memory: 1 kB
dram_bandwidth: 8 GB/s
energy: {memory: 2, dram: 10}
sub_accelerators:
  - {name: a, arch: wide.yaml, bandwidth: 4 GB/s}
  - {name: b, arch: wide.yaml, bandwidth: 8 GB/s}
"""
STYLES = """
memory: 1 MB
dram_bandwidth: 8 GB/s
sub_accelerators:
  - {name: a, dataflow: nvdla, pes: 16, bandwidth: 4 GB/s}
  - {name: b, dataflow: eyeriss, pes: 16, bandwidth: 4 GB/s}
"""


def widened(operator: Operator, inputs: int, weights: int, result: int, sums: int | None) -> Operator:
    """An operator whose tensors state the bits of their elements."""
    bits = {Role.INPUT: inputs, Role.WEIGHT: weights, Role.OUTPUT: result}
    return replace(
        operator,
        tensors=tuple(
            replace(tensor, bits=bits[tensor.role], sum_bits=sums if tensor.is_output else None)
            for tensor in operator.tensors
        ),
    )


def workload(*texts: str, bits: tuple[int, int, int, int | None]) -> tw.Workload:
    """Layers that follow each other and state their widths."""
    graph = tw.workload(texts[0]).networks.parts[0].network
    layers = [replace(layer, operator=widened(layer.operator, *bits)) for layer in graph.layers]
    network = Network(graph.name, layers, graph.links, outputs=graph.outputs)
    return tw.Workload(Networks("widths", (Part("widths", network),)))


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """Two engines of one machine file with 16-bit elements."""
    (tmp_path / "wide.yaml").write_text(WIDE)
    (tmp_path / "system.yaml").write_text(SYSTEM)
    return tmp_path / "system.yaml"


def planned(work: tw.Workload, system: Path, objective: str) -> dict[str, Any]:
    """The document of a schedule, in which nothing is wrong."""
    plan = tw.solve(work.on(tw.system(system), objective=objective), stop=tw.seconds(60))
    data: dict[str, Any] = plan.to_dict()
    assert plan.status == "optimal"
    record = ScheduleDocument.model_validate_json(json.dumps(data))
    assert not check_schedule(record, "document").faults
    return data


def test_costs_follow_the_bits_of_each_tensor(system: Path) -> None:
    """Inputs of 8 bits, weights of 4 and results of 16, summed in 32: bytes and energies by hand.

    Each of 4, 16 and 4 elements moves once.  DRAM: 4 + 8 + 8 bytes.  Global memory: 4 + 8 bytes come and go,
    16 bytes of sums come.  Registers, 1 pJ for 16 bits: fills of 4 and 16 elements, 16 reads of either
    operand, 12 reads and 16 writes of sums.
    """
    data = planned(workload("gemm:M=1,N=4,K=4", bits=(8, 4, 16, 32)), system, "energy")
    first, second = data["problem"]["costs"][0]["options"]
    registers = (4 + 16) * Fraction(1, 2) + (16 + 16) * Fraction(1, 4) + (12 + 16) * 2
    assert Fraction(first["energy_pj_exact"]) == 20 * 10 + (12 * 2 + 16) * 2 + registers + 16 * 3
    # 4 bytes of inputs and 2 of a column of weights at 4 bytes a cycle, 16 steps, 4 bytes of one sum
    assert first["cycles"] == 2 + 16 + 1
    assert second["cycles"] == 1 + 16 + 1
    # tiles: inputs, a column of weights, one sum; first weights: that column
    assert (first["memory_bytes"], first["fetch_bytes"], first["fetch"]) == (4 + 2 + 4, 2, 1)


def test_a_result_stays_as_wide_as_it_leaves(system: Path) -> None:
    """Resident results have the bits that the model states, whatever they were summed in."""
    system.write_text(SYSTEM.replace("memory: 1 kB", "memory: 1 kB\nkeep_activations: true"))
    chain = system.with_name("chain.yaml")
    chain.write_text(
        "- {name: one, layer: 'gemm:M=1,N=16,K=4'}\n"
        "- {name: two, layer: 'gemm:M=1,N=4,K=16', reads: {A: one}}\n"
    )
    data = planned(workload(str(chain), bits=(4, 8, 4, 32)), system, "energy")
    assert {costs["result_bytes"] for costs in data["problem"]["costs"]} == {0, 8}


def test_styles_take_widths_too(system: Path) -> None:
    """Under dataflow styles 8 bits are as no widths, and half of the bits never cost more."""
    system.write_text(STYLES)
    layer = "conv:K=8,C=4,P=6,Q=6,R=3,S=3"
    plain = planned(tw.workload(layer), system, "energy")["problem"]["costs"][0]["options"]
    same = planned(workload(layer, bits=(8, 8, 8, None)), system, "energy")["problem"]["costs"][0]["options"]
    assert same == plain
    half = planned(workload(layer, bits=(4, 4, 4, None)), system, "energy")["problem"]["costs"][0]["options"]
    for narrow, wide in zip(half, plain, strict=True):
        assert Fraction(narrow["energy_pj_exact"]) < Fraction(wide["energy_pj_exact"])
        assert 2 * narrow["memory_bytes"] == wide["memory_bytes"]


def test_cached_costs_of_other_widths_are_not_taken(system: Path) -> None:
    """The same layer with other widths has costs of its own, and comes back to the first ones."""
    layer = "gemm:M=2,N=8,K=8"
    energies = [
        planned(workload(layer, bits=bits), system, "energy")["value"]
        for bits in ((8, 8, 8, None), (16, 16, 16, None), (8, 8, 8, None))
    ]
    assert energies[0] == energies[2] < energies[1]


def test_documents_with_other_widths_are_noticed(system: Path) -> None:
    """A width changed in a document makes its costs wrong."""
    data = planned(workload("gemm:M=1,N=4,K=4", bits=(8, 4, 16, 32)), system, "edp")
    for tensor in data["problem"]["costs"][0]["operator"]["tensors"]:
        tensor["bits"] = 8
    record = ScheduleDocument.model_validate_json(json.dumps(data))
    assert any("the evaluator finds" in fault for fault in check_schedule(record, "document").faults)
