"""Fused mappings at the command line: ``map --fuse``, and ``evaluate`` and ``show`` of their files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.cli import options
from tilewright.cli.exits import Exit, reason
from tilewright.foundation.disk import check_writable, is_stream, suffix_error
from tilewright.foundation.errors import InputError

if TYPE_CHECKING:
    from tilewright.report.records.mapping.fused_document import FusedDocument


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


REFUSED = {
    "then": "--then",
    "pareto": "--pareto",
    "best": "--best",
    "all_optimal": "--all-optimal",
    "most": "--most",
    "constraint": "--constraint",
    "phases": "--phases",
    "lengths": "--lengths",
    "constraint_set": "--constraint-set",
    "tiles": "--tiles",
    "save_mappings": "--save-mappings",
    "log": "--log",
    "deterministic": "--deterministic",
}
"""Parameters of ``map`` that mean nothing with ``--fuse``, and their flags."""


def map_fused(given: Mapping[str, Any]) -> int:
    """``map --fuse``: which layers are fused, and the proof.

    Parameters
    ----------
    given : the parameters of ``map``
    """
    from tilewright.api.arguments import Budget, SearchRequest
    from tilewright.api.mapping.fusion import MOST_LAYERS, GroupAnswer, NetworkFused
    from tilewright.api.saving import WrittenAtEnd
    from tilewright.cli.searching import failed
    from tilewright.cli.terminal.clock import call
    from tilewright.cli.terminal.command import command
    from tilewright.cli.terminal.console import note_line, show, tell, write
    from tilewright.cli.terminal.signals import graceful_stop
    from tilewright.formulation.objective import parse_objective
    from tilewright.formulation.stopping import NEVER
    from tilewright.report.text.quantities import energy_text
    from tilewright.workloads.catalog import resolve_model

    for parameter, flag in REFUSED.items():
        if given[parameter]:
            raise InputError(flag, None, "cannot be used with --fuse")
    form = options.parse_choice(given["format"], "--format", ("table", "json"))
    out: Path | None = given["out"]
    if out is not None:
        if out.suffix.lower() != ".json" and not is_stream(out):
            raise suffix_error(out, (".json",))
        check_writable(out)
    page: Path | None = given["report"]
    if page is not None:
        from tilewright.report.html.page import check_report

        check_report(page)
    quiet, warm = given["quiet"], given["warm_start"]
    network = resolve_model(
        given["model"], given["batch"], options.parse_onnx(given["dim"], skip=given["skip_unsupported"])
    )

    energy_power, delay_power = parse_objective(given["objective"]).key_powers

    def told(answer: GroupAnswer) -> None:
        parts = [energy_text(float(answer.value))] if energy_power and answer.value is not None else []
        parts += [f"{answer.cycles:,} cycles"] if delay_power else []
        value = "no mapping" if answer.value is None else " in ".join(parts)
        if answer.is_fused and not answer.is_settled:
            # It may go on later, so no limit of the call is spoken of.
            value = "nothing better so far" if answer.value is None else f"{value}, not proven yet"
        elif answer.reason:
            value = answer.reason
        if not quiet:
            tell(f"{' + '.join(answer.group.names)}: {value} ({answer.seconds:.1f} s)")

    question = NetworkFused(
        network,
        given["arch"],
        given["objective"],
        layers=given["layers"] or (),
        all_operators=given["all_operators"],
        cost_model=given["cost_model"],
        factors=options.parse_factors(given["factors"]),
        storage=options.parse_storage(given["storage"]),
        home=given["fuse_at"],
        max_group=MOST_LAYERS if given["max_group"] is None else given["max_group"],
        online_softmax=given["online_softmax"],
    )
    seconds = options.parse_duration(given["time_limit"])
    budget = Budget(
        seconds,
        options.parse_gap(given["gap"]),
        NEVER,
        options.parse_threads(given["threads"]),
        given["seed"],
        call.limit_from(seconds),
    )
    with graceful_stop() as stop:
        request = SearchRequest(given["solver"], budget, stop, () if warm is None else warm)
        result = question.answer(request, told)
        interrupted = stop.is_set()
    for note in result.notes:
        tell(f"--warm-start: {note}")
    files = [
        WrittenAtEnd(path, write_answer)
        for path, write_answer in (
            (out, lambda path, answer: answer.save(path)),
            (page, lambda path, answer: answer.save_report(path, command.text)),
        )
        if path is not None
    ]
    for listener in files:
        listener.end(result)
    if form == "json":
        write(result.to_text())
    else:
        show(*result.views())
    if failed(files):
        return Exit.ERROR
    code = Exit.OK
    if result.infeasible:
        code = Exit.INFEASIBLE
    elif result.value is None:
        code = Exit.INTERRUPTED if interrupted else Exit.LIMIT
    elif given["require_optimal"] and not result.optimal:
        code = Exit.NOT_OPTIMAL
    if quiet and code:
        note_line(_reason(result.record, interrupted=interrupted))
    return code


def _reason(record: FusedDocument, *, interrupted: bool) -> str:
    """Why the network has no mapping or no proof."""
    if record.totals.value is not None:
        return reason("feasible", "", solved=True, gap=record.totals.gap)
    if record.totals.infeasible:
        hopeless = [group.layers[0].name for group in record.groups if group.status == "infeasible"]
        return reason("infeasible", f"no mapping of {', '.join(hopeless)}, fused or not", solved=False)
    open_layers = [layer.name for group in record.groups if group.value is None for layer in group.layers]
    status = "interrupted" if interrupted else "unknown"
    return reason(status, f"no mapping is known of {', '.join(open_layers) or 'any layer'}", solved=False)
