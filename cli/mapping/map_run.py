"""The work of ``tilewright map``: load, choose layers, search each within its share of the time, report."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event

from tilewright.cli.exits import Exit, exit_of_layers
from tilewright.cli.mapping.answer_sets import Wanted, search_answer_sets
from tilewright.cli.mapping.clashing_demands import explained
from tilewright.cli.mapping.results import Results, prepare_folder, streams_to_terminal
from tilewright.cli.mapping.selection import Job, select_jobs
from tilewright.cli.mapping.stored_mappings import fitting, read_mappings
from tilewright.cli.options import read_objective
from tilewright.cli.terminal.clock import call
from tilewright.cli.terminal.console import error_line
from tilewright.cli.terminal.lines import ProgressItem
from tilewright.cli.terminal.progress import Progress, make_progress
from tilewright.cli.terminal.saving import kept
from tilewright.cli.terminal.signals import graceful_stop
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.constraints import applicable, network_constraints
from tilewright.formulation.mapping.cost import cost_model, cost_model_names
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import IMPERFECT, LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerResult
from tilewright.formulation.objective import Objective
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.records.files import output_format
from tilewright.report.records.mapping.build import factors_of, key_gap, layer_record, space_record
from tilewright.report.records.mapping.document import ResultDocument, SettingsRecord
from tilewright.report.records.mapping.mapping_file import StoredMapping
from tilewright.report.records.mapping.operator import shape_text
from tilewright.solvers.mapping.methods import is_prepared, method, prepare
from tilewright.solvers.mapping.solve import layer_run
from tilewright.solvers.running import no_result
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.disk import check_writable
from tilewright.workloads.errors import InputError, unknown_name


@dataclass(frozen=True)
class MapRequest:
    """The command line of ``map``, read."""

    model: str
    arch: str
    objective: str
    batch: int | None
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
    model_name = _cost_model(request.cost_model or engine.cost_model)
    _check_factors(request.settings.factors, model_name)
    network = resolve_model(request.model, request.batch)
    jobs = select_jobs(network, request.patterns, request.all_operators)
    named = [(job.names[0], job.operator) for job in jobs]
    demands, notes = network_constraints(request.constraints, named, engine)
    request = replace(request, constraints=demands)
    builders = [_builder(job, engine, objective, model_name, request) for job in jobs]
    stored = [] if request.warm_start is None else read_mappings(request.warm_start)
    if request.folder is not None:
        prepare_folder(request.folder)
    results = Results(
        model=network.name,
        batch=network.batch,
        engine=engine,
        cost_model=model_name,
        objective=objective,
        constraints=demands,
        notes=notes,
        settings=request.settings,
        wanted=[job.names[0] for job in jobs],
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
            layers = sum(len(job.names) for job in jobs)
            count = f"{len(jobs)} distinct of {layers} layers" if layers > 1 else "1 layer"
            progress.head(f"{network.name} on {engine.name}, objective {objective}, {count}")
            for note in notes:
                progress.note(note)
            results.begin()
            _search_all(request, jobs, builders, stored, results, progress, stop)
        document = results.end(call.elapsed)
        if request.quiet:
            _tell_errors(document)
        failures = list(results.failures.values())
        if request.report is not None:
            from tilewright.report.html.mapping.result import write_result_report

            with kept(failures):
                write_result_report(request.report, document)
        interrupted = stop.is_set()
    for failure in failures:
        error_line(failure)
    if failures:
        return Exit.ERROR
    return exit_of_layers(
        [(layer.status, layer.mapping is not None) for layer in document.layers],
        interrupted=interrupted,
        missing=bool(document.missing),
        require_optimal=request.require_optimal,
    )


def _tell_errors(document: ResultDocument) -> None:
    """Why layers failed, where no progress has told it."""
    for layer in document.layers:
        if layer.status == "error":
            error_line(f"{layer.name}: {layer.message or 'the solver failed'}")


def _cost_model(name: str) -> str:
    if name not in cost_model_names():
        raise InputError("--cost-model", None, unknown_name(name, cost_model_names()))
    return name


def _check_factors(factors: str | None, model_name: str) -> None:
    if factors == IMPERFECT and cost_model(model_name).perfect_only:
        raise InputError("--factors", None, f"the {model_name} cost model knows perfect factors only")


def _builder(
    job: Job, engine: Engine, objective: Objective, model_name: str, request: MapRequest
) -> Callable[[], LayerProblem]:
    """What states a job's problem.  Whatever may be wrong with it shows here, before anything is solved."""
    cost_model(model_name).check(job.operator, engine)
    factors = request.settings.factors
    demands = applicable(request.constraints, job.operator, engine)
    build = partial(layer_problem, job.operator, engine, objective, model_name, demands, factors)
    if not demands:
        return build
    problem = build()
    return lambda: problem


def _search_all(
    request: MapRequest,
    jobs: list[Job],
    builders: list[Callable[[], LayerProblem]],
    stored: list[StoredMapping],
    results: Results,
    progress: Progress,
    stop: Event,
) -> None:
    """Search layer by layer; each has its equal share of the time that is left.

    Where more than one mapping is wanted, half of a layer's share is kept for the rest.
    """
    settings = request.settings
    began = call.limit_from(settings.time_limit_s)
    wanted = Wanted(settings.pareto, settings.best, settings.all_optimal, settings.then, settings.solver)
    if stored and not any(fitting(stored, job.operator) for job in jobs):
        progress.note("--warm-start: no mapping of the file is for one of these layers")
    _prepare(settings, began, len(jobs), progress, stop)
    for index, (job, build) in enumerate(zip(jobs, builders, strict=True)):
        if stop.is_set():
            return
        detail = f"{job.operator.kind} {shape_text(job.operator)}"
        progress.task(ProgressItem(index + 1, len(jobs), job.names[0], detail))
        starts = fitting(stored, job.operator)
        limits = _limits(request, results.objective, began, len(jobs) - index, stop)
        result, problem = _search(request, build, limits.share(0.5 if wanted else 1.0), starts, progress)
        result, answer_sets = search_answer_sets(wanted, problem, result, limits, progress)
        result = explained(result, problem, limits, progress)
        record = layer_record(
            job.names,
            job.operator,
            results.engine,
            results.objective,
            request.constraints,
            result,
            settings.factors if problem is None else factors_of(problem),
            None if problem is None else space_record(problem),
            answer_sets.front,
            answer_sets.best,
            answer_sets.optima,
            answer_sets.then,
        )
        progress.done(record)
        results.add(record, job.operator)


def _prepare(settings: SettingsRecord, began: float, jobs: int, progress: Progress, stop: Event) -> None:
    """What is compiled once per installation is compiled before several layers share the time.

    That takes no more than half of it; where it takes longer it goes on beside the layers.
    """
    if jobs < 2 or is_prepared(settings.solver):
        return
    limit = settings.time_limit_s
    progress.phase("compiling the search, once for all")
    prepare(
        settings.solver, lambda: stop.is_set() or (limit is not None and time.monotonic() - began > limit / 2)
    )


def _limits(request: MapRequest, objective: Objective, began: float, left: int, stop: Event) -> Limits:
    """Limits of one search; the time limit counts from ``began`` on and is shared with what is left."""
    settings = request.settings
    share = None
    if settings.time_limit_s is not None:
        share = max(0.0, settings.time_limit_s - (time.monotonic() - began)) / left
    return Limits(
        seconds=share,
        gap=key_gap(objective, settings.gap),
        threads=settings.threads,
        seed=settings.seed,
        deterministic=settings.deterministic,
        stop=stop,
    )


def _search(
    request: MapRequest,
    build: Callable[[], LayerProblem],
    limits: Limits,
    starts: list[Mapping],
    progress: Progress,
) -> tuple[LayerResult, LayerProblem | None]:
    """The answer of the solver that was asked for, and the problem as far as it was stated."""
    solver = request.settings.solver
    if limits.seconds == 0:
        message = "the time limit was reached before the search began"
        return no_result(solver, method(solver).version, limits, message), None
    run = layer_run(build, solver, limits, progress.point, starts)
    result = run.run()
    problem = None if run.search is None else run.search.problem
    if problem is not None:
        for told in filter(None, (unfit(problem, mapping) for mapping in starts)):
            progress.note(f"--warm-start: {told}")
    if run.failure is not None and request.verbose:
        import traceback

        progress.note("".join(traceback.format_exception(run.failure)).rstrip())
    return result, problem


def unfit(problem: LayerProblem, mapping: Mapping) -> str | None:
    """Why a mapping is no start: illegal here, or outside the searched space; ``None`` for one that is."""
    try:
        broken: tuple[str, ...] = problem.evaluate(mapping).violations
    except InputError as error:
        broken = (str(error),)
    if broken:
        return f"a mapping is illegal here: {'; '.join(broken)}"
    reason = problem.outside(mapping)
    return None if reason is None else f"a mapping lies outside the searched space: {reason}"
