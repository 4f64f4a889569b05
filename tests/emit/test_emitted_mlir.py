"""Emitted MLIR is parsed, verified and applied by MLIR itself."""

from __future__ import annotations

import random

import pytest
from emitted_instances import KINDS, random_layer, random_mapping

from tilewright.report.code.mapping.mlir_transform import mlir_module

iree = pytest.importorskip("iree.compiler", reason="iree-base-compiler is not installed")


@pytest.mark.parametrize("kind", KINDS)
def test_the_transform_makes_the_mappings_loops(kind: str) -> None:
    """One loop of MLIR for every loop of the mapping that iterates."""
    from iree.compiler import ir
    from iree.compiler.dialects.transform import interpreter

    for seed in range(10):
        choose = random.Random(f"{kind} {seed}")
        operator = random_layer(choose, kind)
        mapping = random_mapping(choose, operator, kind)
        loops = [node for node in mapping.nodes if hasattr(node, "tile")]
        with ir.Context(), ir.Location.unknown():
            module = ir.Module.parse(mlir_module(operator, mapping))
            assert module.operation.verify()
            (script,) = (o for o in module.body.operations if "named_sequence" in o.operation.name)
            interpreter.apply_named_sequence(module.operation, script.operation, module.operation)
            assert module.operation.verify()
            text = str(module).split("transform.named_sequence")[0]
            assert text.count("scf.for ") + text.count("scf.forall ") == len(loops), seed
