"""Emitted NumPy loops of fused mappings compute all results that leave the group, and nothing else does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

import numpy as np
import pytest
from calls import caller
from effort import effort
from emitted_instances import directly
from fused_instances import FusedInstance, random_instance

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.foundation.errors import InputError
from tilewright.report.code.mapping.fused_loops import fused_numpy_loops
from tilewright.report.code.mapping.numpy_loops import allocated

MAPPINGS = effort(100)
Data = dict[tuple[str, str], np.ndarray]


def random_data(group: FusedGroup, seed: int) -> Data:
    """Small whole numbers, none of them zero, for every operand from outside."""
    draw = np.random.default_rng(seed)
    return {
        (layer, tensor.name): draw.integers(1, 5, allocated(tensor))
        for layer, operator in group.layers
        for tensor in operator.inputs
        if group.reading(layer, tensor.name) is None
    }


def layer_by_layer(group: FusedGroup, data: Data) -> list[np.ndarray]:
    """What leaves the group, every layer computed as a whole from whole operands."""
    results: dict[str, np.ndarray] = {}
    for layer, operator in group.layers:
        operands = {}
        for tensor in operator.inputs:
            reading = group.reading(layer, tensor.name)
            if reading is None:
                operands[tensor.name] = data[layer, tensor.name]
                continue
            given = results[reading.producer].transpose(reading.axes)
            padded = np.zeros(allocated(tensor), np.int64)
            ends = zip(reading.offsets, given.shape, strict=True)
            padded[tuple(slice(first, first + size) for first, size in ends)] = given
            operands[tensor.name] = padded
        results[layer] = directly(operator, operands)
    return [results[layer] for layer in group.operators if layer in group.leaving]


def computed(code: str, data: Data) -> list[np.ndarray]:
    """What the code's function returns."""
    names: dict[str, object] = {}
    exec(code, names)
    results = names["group"](*data.values())  # type: ignore[operator]
    return list(results) if isinstance(results, tuple) else [results]


def same(left: list[np.ndarray], right: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def legal(instance: FusedInstance) -> bool:
    """Whether every result that must be complete is: rooms do not matter to what is computed."""
    evaluation = evaluate_fused(instance.group, instance.engine, cost_model("hierarchy"), instance.tree)
    return not any("never computed" in text for text in evaluation.violations)


def emitted_instances(count: int) -> list[tuple[int, FusedInstance, str]]:
    """Random groups of sums of products, trees that compute all of them, and their code."""
    instances: list[tuple[int, FusedInstance, str]] = []
    seed = 0
    while len(instances) < count:
        seed += 1
        instance = random_instance(Random(f"emitted {seed}"))
        try:
            code = fused_numpy_loops(instance.group, instance.engine, instance.tree)
        except InputError:  # pooling is no sum of products
            assert any(operator.kind == "pool" for _, operator in instance.group.layers)
            continue
        if legal(instance):
            instances.append((seed, instance, code))
    return instances


def test_random_fused_mappings_compute_their_groups() -> None:
    """Halos, transposed operands, second readers, remainders and sums over several turns included."""
    codes = []
    for seed, instance, code in emitted_instances(MAPPINGS):
        data = random_data(instance.group, seed)
        assert same(computed(code, data), layer_by_layer(instance.group, data)), (seed, code)
        codes.append(code)
    assert sum("_next_tile(a_" in code for code in codes) > MAPPINGS // 4  # homes on chip
    assert sum("TABLE_0" in code for code in codes) > MAPPINGS // 10
    assert any(".transpose(" in code for code in codes)


def test_a_turn_that_is_cut_short_is_noticed() -> None:
    """A shared loop that leaves its last turn out, or a home that begins elsewhere, gives something else."""
    changed = noticed = 0
    for seed, instance, code in emitted_instances(effort(25)):
        data = random_data(instance.group, seed)
        wanted = layer_by_layer(instance.group, data)
        for pattern, other in (
            (r"_turn_* in range\((\d+)\):", lambda hit: hit[0].replace(hit[1], str(int(hit[1]) - 1))),
            (r"(_window\(\w+_home, \(\w+\[0\])", lambda hit: f"{hit[1]} + 1"),
        ):
            mutant = re.sub(pattern, other, code, count=1)
            if mutant == code:
                continue
            changed += 1
            try:
                noticed += not same(computed(mutant, data), wanted)
            except (AssertionError, IndexError, ValueError):
                noticed += 1
    assert changed > effort(25)
    assert noticed == changed


def test_documents_and_files_are_emitted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """``map --fuse`` writes what ``emit`` reads; other targets are refused in one line."""
    call, layers = caller(capsys), tmp_path / "pair.yaml"
    layers.write_text(
        '- {name: one, layer: "gemm:M=16,N=8,K=4"}\n'
        '- {name: two, layer: "gemm:M=16,N=4,K=8", reads: {A: one}}\n'
    )
    document = tmp_path / "fused.json"
    assert call("map", layers, "-a", "tpu-edge", "--fuse", "--out", document).code == 0
    code = call("emit", document, "--to", "python").out
    names: dict[str, object] = {}
    exec(code, names)
    draw = np.random.default_rng(0)
    a, b, c = (draw.integers(-9, 9, shape) for shape in ((16, 4), (4, 8), (8, 4)))
    assert np.array_equal(names["one___two"](a, b, c), a @ b @ c)  # type: ignore[operator]
    tree = json.loads(call("emit", document, "--to", "json").out)["groups"][0]["nodes"]
    assert tree == json.loads(document.read_text())["groups"][0]["tree"]
    refused = call("emit", document, "--to", "mlir")
    assert refused.code == 2
    assert "single layers" in refused.err
    missing = call("emit", document, "--to", "python", "--layers", "three")
    assert (missing.code, "three" in missing.err) == (2, True)
