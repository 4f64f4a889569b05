"""Fused mapping files at the command line: ``evaluate`` and ``show``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tilewright.cli.exits import Exit
from tilewright.foundation.errors import InputError


def evaluate_fused_file(
    data: dict[str, Any], path: Path, arch: str | None, cost_model: str | None, format: str
) -> int:
    """What a fused mapping costs; exit code 5 where it is illegal.

    Parameters
    ----------
    data, path : the file's content and its place
    arch, cost_model : instead of the file's
    format : ``table`` or ``json``
    """
    from tilewright.cli.terminal.console import show, write
    from tilewright.formulation.mapping.cost import cost_model as model_named
    from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
    from tilewright.foundation.yaml_file import with_line_numbers
    from tilewright.hardware.mapping.load import load_engine
    from tilewright.report.records.mapping.build import versions
    from tilewright.report.records.mapping.fused_evaluation import fused_metrics
    from tilewright.report.records.mapping.fused_file import parse_fused_mapping
    from tilewright.report.text.mapping.fused_tree import fused_views

    with with_line_numbers(path):
        stored = parse_fused_mapping(data, str(path), path.parent)
        engine = load_engine(arch) if arch is not None else stored.engine
        if engine is None:
            raise InputError(str(path), "arch", "missing, expected one in the file or as --arch")
        name = cost_model or (stored.cost_model if arch is None else None) or engine.cost_model
        evaluation = evaluate_fused(stored.group, engine, model_named(name), stored.tree, str(path))
    if format == "json":
        document = {
            "schema": "tilewright.evaluation/1",
            "command": "evaluate",
            "fused": {"name": stored.name, **fused_metrics(evaluation, engine)},
            "versions": versions(),
        }
        write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    else:
        show(*fused_views(stored.name, stored.group, engine, stored.tree, evaluation))
    return Exit.CHECK_FAILED if evaluation.violations else Exit.OK
