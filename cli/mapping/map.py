"""``tilewright map``: the best mapping of every layer, and the proof."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli import completion, options
from tilewright.foundation.errors import InputError

FORMATS = ("table", "json", "jsonl", "csv")
MOST = 1000
"""Optimal mappings that are listed unless ``--most`` says otherwise."""

_PANEL = "Beyond one optimum"


def map_command(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|LAYER",
            autocompletion=completion.models,
            help="ONNX file, onnx:NAME, built-in name, YAML file of layers, or a layer such as "
            "conv:K=64,C=64,P=56,Q=56,R=3,S=3,pad=1 or gemm:M=512,N=768,K=768.",
        ),
    ],
    arch: options.Arch,
    objective: options.Objective = "energy",
    batch: options.Batch = None,
    layers: options.Layers = None,
    all_operators: options.AllOperators = False,
    dim: options.Dims = None,
    skip_unsupported: options.SkipUnsupported = False,
    cost_model: options.CostModel = None,
    factors: options.Factors = None,
    storage: options.Storage = None,
    tiles: options.Tiles = None,
    constraint: options.Constraints = None,
    then: Annotated[
        str | None,
        typer.Option(
            "--then",
            metavar="energy|cycles",
            help="The fewest cycles among the mappings of least energy, or the reverse.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    pareto: Annotated[
        bool,
        typer.Option(
            "--pareto", help="Also the whole Pareto front of energy and cycles.", rich_help_panel=_PANEL
        ),
    ] = False,
    best: Annotated[
        int | None,
        typer.Option("--best", metavar="K", help="Also the K best mappings.", rich_help_panel=_PANEL),
    ] = None,
    all_optimal: Annotated[
        bool, typer.Option("--all-optimal", help="Also all optimal mappings.", rich_help_panel=_PANEL)
    ] = False,
    most: Annotated[
        int | None,
        typer.Option(
            "--most",
            metavar="N",
            help="With --all-optimal, at most N; by default 1000.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    time_limit: options.TimeLimit = None,
    gap: options.Gap = "0",
    threads: options.Threads = None,
    seed: options.Seed = 0,
    solver: options.Solver = "auto",
    warm_start: Annotated[
        Path | None,
        typer.Option("--warm-start", help="Mapping file or result to start from.", rich_help_panel="Search"),
    ] = None,
    deterministic: options.Deterministic = False,
    require_optimal: Annotated[
        bool,
        typer.Option(
            "--require-optimal", help="Exit code 6 unless all are optimal.", rich_help_panel="Search"
        ),
    ] = False,
    format: options.Format = "table",
    out: options.Out = None,
    save_mappings: Annotated[
        Path | None,
        typer.Option(
            "--save-mappings", metavar="DIR", help="One YAML file per layer.", rich_help_panel="Output"
        ),
    ] = None,
    report: options.Report = None,
    log: options.Log = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Find the best mapping of every layer of a model, with a bound that proves how good it is."""
    form = options.parse_choice(format, "--format", FORMATS)
    limit, relative_gap = options.parse_duration(time_limit), options.parse_gap(gap)
    workers = options.parse_threads(threads)
    kind = options.parse_factors(factors)
    stored_as, cut_into = options.parse_storage(storage), options.parse_tiles(tiles)
    second = None if then is None else options.parse_then(then, objective)
    options.parse_count(best, "--best")
    options.parse_count(most, "--most")
    if most is not None and not all_optimal:
        raise InputError("--most", None, "expected --all-optimal with it")
    asked = {"--pareto": pareto, "--best": best is not None, "--all-optimal": all_optimal}
    if form == "csv" and any(asked.values()) and (out is None or out.suffix.lower() == ".csv"):
        flag = next(flag for flag, wanted in asked.items() if wanted)
        raise InputError("--format", None, f"csv cannot hold {flag}, expected json or --out FILE.json")

    from tilewright.cli.mapping.map_run import MapRequest, run_map
    from tilewright.report.records.mapping.document import SettingsRecord

    settings = SettingsRecord(
        solver=solver,
        time_limit_s=limit,
        gap=relative_gap,
        threads=workers,
        seed=seed,
        deterministic=deterministic,
        factors=kind,
        storage=stored_as,
        tiles=cut_into,
        then=second,
        pareto=pareto,
        best=best,
        all_optimal=(most or MOST) if all_optimal else None,
    )
    request = MapRequest(
        model=model,
        arch=arch,
        objective=objective,
        batch=batch,
        onnx=options.parse_onnx(dim, skip=skip_unsupported),
        patterns=tuple(layers or ()),
        all_operators=all_operators,
        cost_model=cost_model,
        constraints=tuple(constraint or ()),
        settings=settings,
        warm_start=warm_start,
        form=form,
        out=out,
        log=log,
        folder=save_mappings,
        report=report,
        quiet=quiet,
        verbose=verbose,
        require_optimal=require_optimal,
    )
    return run_map(request)
