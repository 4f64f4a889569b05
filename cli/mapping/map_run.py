"""The work of ``tilewright map``: load, choose layers, search each within its share of the time, report."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event

from tilewright.cli.exits import Exit, exit_of_layers, reason
from tilewright.cli.mapping.results import Results, prepare_folder, streams_to_terminal
from tilewright.cli.options import read_objective
from tilewright.cli.terminal.clock import call
from tilewright.cli.terminal.command import command
from tilewright.cli.terminal.console import error_line, note_line
from tilewright.cli.terminal.lines import ProgressItem
from tilewright.cli.terminal.progress import Progress, make_progress
from tilewright.cli.terminal.saving import kept
from tilewright.cli.terminal.signals import graceful_stop
from tilewright.foundation.disk import check_writable
from tilewright.hardware.mapping.describe import assumptions
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.records.files import output_format
from tilewright.report.records.mapping.answer_sets import answer_record
from tilewright.report.records.mapping.build import limits_of
from tilewright.report.records.mapping.document import LayerRecord, ResultDocument, SettingsRecord
from tilewright.report.records.mapping.growing import GrowingDocument
from tilewright.report.records.mapping.mapping_file import StoredMapping
from tilewright.report.records.mapping.operator import shape_text
from tilewright.report.records.mapping.stored_mappings import fitting, read_mappings
from tilewright.solvers.mapping.answer_set_searches import AnswerSetRequest
from tilewright.solvers.mapping.methods import method
from tilewright.solvers.mapping.network_problem import NetworkProblem, check_cost_model, network_problem
from tilewright.solvers.mapping.network_search import LayerAnswer, search_network
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.onnx.options import OnnxOptions
from tilewright.workloads.selection import SelectedLayer, select_layers


@dataclass(frozen=True)
class MapRequest:
    """The command line of ``map``, read."""

    model: str
    arch: str
    objective: str
    batch: int | None
    onnx: OnnxOptions
    patterns: tuple[str, ...]
    all_operators: bool
    cost_model: str | None
    constraints: tuple[str, ...]
    settings: SettingsRecord
    warm_start: Path | None
    form: str
    out: Path | None
    log: Path | None
    folder: Path | None
    report: Path | None
    quiet: bool
    verbose: bool
    require_optimal: bool


def run_map(request: MapRequest) -> int:
    """Carry out a request; returns the exit code."""
    objective = read_objective(request.objective)
    method(request.settings.solver)
    if request.out is not None:
        output_format(request.out, request.form)
        check_writable(request.out)
    if request.report is not None:
        from tilewright.report.html.page import check_report

        check_report(request.report)
    engine = load_engine(request.arch)
    model_name, settings = request.cost_model or engine.cost_model, request.settings
    kind = settings.factors, settings.storage, settings.tiles
    check_cost_model(model_name, *kind)
    _sets(settings).check(settings.storage)
    network = resolve_model(request.model, request.batch, request.onnx)
    layers = select_layers(network, request.patterns, request.all_operators)
    problem = network_problem(layers, engine, objective, request.constraints, model_name, *kind)
    left_out = (f"left out: {reported}" for reported in network.left_out)
    notes = (*assumptions(engine), *problem.notes, *left_out)
    problem = replace(problem, notes=notes, left_out=network.left_out)
    stored = [] if request.warm_start is None else read_mappings(request.warm_start)
    if request.folder is not None:
        prepare_folder(request.folder)
    results = Results(
        GrowingDocument(network.name, network.batch, problem, request.settings),
        form=request.form,
        out=request.out,
        folder=request.folder,
        has_files=any((request.out, request.folder, request.report)),
    )
    with graceful_stop() as stop:
        with ExitStack() as stack:
            progress = make_progress(
                objective,
                stack,
                quiet=request.quiet,
                verbose=request.verbose,
                log=request.log,
                streams_to_terminal=streams_to_terminal(request.form),
            )
            every = sum(len(layer.names) for layer in layers)
            count = f"{len(layers)} distinct of {every} layers" if every > 1 else "1 layer"
            progress.head(f"{network.name} on {engine.name}, objective {objective}, {count}")
            for note in problem.notes:
                progress.note(note)
            results.begin()
            _search_all(request, problem, stored, results, progress, stop)
        document = results.end(call.elapsed)
        failures = list(results.failures.values())
        if request.report is not None:
            from tilewright.report.html.mapping.result import write_result_report

            with kept(failures):
                write_result_report(request.report, document, command.text)
        interrupted = stop.is_set()
    for failure in failures:
        error_line(failure)
    if failures:
        return Exit.ERROR
    code = exit_of_layers(
        [(layer.status, layer.mapping is not None) for layer in document.layers],
        interrupted=interrupted,
        missing=bool(document.missing),
        require_optimal=request.require_optimal,
    )
    if request.quiet and code:
        _tell_reasons(document)
    return code


def _tell_reasons(document: ResultDocument) -> None:
    """Why layers have no mapping or no proof, where no progress has told it."""
    for layer in document.layers:
        solved = layer.mapping is not None
        if not solved or layer.status != "optimal":
            why = reason(layer.status, layer.message, solved=solved, gap=layer.gap)
            (error_line if layer.status == "error" else note_line)(f"{layer.name}: {why}")


class _Shown:
    """Shows what a search over a network reports."""

    def __init__(self, progress: Progress) -> None:
        self.point = progress.point
        self.phase = progress.phase
        self.note = progress.note
        self._progress = progress

    def layer(self, index: int, total: int, layer: SelectedLayer) -> None:
        operator = layer.operator
        detail = f"{operator.kind} {shape_text(operator)}"
        self._progress.task(ProgressItem(index, total, layer.name, detail))


def _sets(settings: SettingsRecord) -> AnswerSetRequest:
    """What is asked for besides one mapping per layer."""
    return AnswerSetRequest(
        settings.pareto, settings.best, settings.all_optimal, settings.then, settings.solver
    )


def _search_all(
    request: MapRequest,
    problem: NetworkProblem,
    stored: list[StoredMapping],
    results: Results,
    progress: Progress,
    stop: Event,
) -> None:
    """Search layer by layer, and hand on what is found."""
    settings = request.settings
    if stored and not any(fitting(stored, layer.operator) for layer in problem.layers):
        progress.note("--warm-start: no mapping of the file is for one of these layers")
    records: dict[int, LayerRecord] = {}
    printed = 0

    def keep(answer: LayerAnswer) -> None:
        records[answer.index] = answer_record(problem, answer)
        results.keep(answer.index, records[answer.index])

    answers = search_network(
        problem,
        settings.solver,
        limits_of(settings, problem.objective, call.limit_from(settings.time_limit_s), stop),
        _sets(settings),
        partial(fitting, stored),
        _Shown(progress),
        keep,
        tracebacks=request.verbose,
    )
    closed: set[int] = set()
    for answer in answers:
        progress.done(records[answer.index])
        if not answer.is_open:
            closed.add(answer.index)
        while printed in closed:
            results.print(records[printed])
            printed += 1
    for index in sorted(records):
        if index >= printed:  # the time is over
            results.print(records[index])
