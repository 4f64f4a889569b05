"""``tilewright schedule``: the best schedule of a workload on a system, and the proof."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli import completion, options
from tilewright.cli.scheduling.flags import (
    FORMATS,
    OBJECTIVES,
    AnyGoal,
    Document,
    Metric,
    Plot,
    RequireOptimal,
)
from tilewright.foundation.errors import InputError


def schedule_command(
    workload: Annotated[
        str,
        typer.Argument(
            metavar="WORKLOAD|MODEL",
            help="Built-in workload, YAML file of networks, or a model as for map.",
            autocompletion=completion.workloads,
        ),
    ],
    system: Annotated[
        str,
        typer.Option(
            "--system",
            help="Preset (see [b]list systems[/b]) or YAML file.",
            autocompletion=completion.systems,
            rich_help_panel="Problem",
        ),
    ],
    keep_activations: Annotated[
        bool | None,
        typer.Option(
            "--keep-activations/--store-activations",
            help="Results stay in the global memory while capacity allows, or all go to DRAM;"
            " by default as the system says.",
            show_default=False,
            rich_help_panel="Problem",
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch",
            "-b",
            help="Samples: of a run of the model, or in all on tiled machines.",
            rich_help_panel="Problem",
        ),
    ] = None,
    dim: options.Dims = None,
    skip_unsupported: options.SkipUnsupported = False,
    branch: options.Branches = None,
    trip: options.Trips = None,
    stored_widths: options.StoredWidths = False,
    objective: AnyGoal = "makespan",
    metric: Metric = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            autocompletion=completion.scheduling_methods,
            help="Such as herald[[order=depth-first]; see [b]list methods[/b]; by default cpsat, on tiled"
            " machines auto.",
            show_default=False,
            rich_help_panel="Search",
        ),
    ] = None,
    time_limit: options.TimeLimit = "60",
    gap: options.Gap = "0",
    threads: options.Threads = None,
    seed: options.Seed = 0,
    warm_start: Annotated[
        Path | None,
        typer.Option(
            "--warm-start",
            metavar="PLAN",
            help="Plan document to start from, on tiled machines.",
            rich_help_panel="Search",
        ),
    ] = None,
    require_optimal: RequireOptimal = False,
    format: options.ShortFormat = "table",
    out: Document = None,
    gantt: Plot = None,
    occupancy: Plot = None,
    links: Annotated[
        Path | None,
        typer.Option(
            help="Draw link loads to a .png or .svg file, on tiled machines.", rich_help_panel="Output"
        ),
    ] = None,
    tree: Annotated[
        Path | None,
        typer.Option(
            help="Write the resource allocation tree of the plan to a .yaml file, of methods on trees.",
            rich_help_panel="Output",
        ),
    ] = None,
    report: options.Report = None,
    log: options.Log = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Schedule networks on the sub-accelerators of a system, or one on a tiled machine, with a bound."""
    from tilewright.api.scheduling.tiled_machine import is_tiled
    from tilewright.cli.searching import SearchFlags

    flags = SearchFlags.read(FORMATS, locals())
    asked_onnx = options.parse_onnx(
        dim, skip=skip_unsupported, branches=branch, trips=trip, stored_widths=stored_widths
    )
    if is_tiled(system):
        from tilewright.cli.scheduling.tiled import run_plan

        given: dict[str, object] = {"--keep-activations": keep_activations, "--metric": metric}
        _refuse(given, "is not for tiled machines")
        pictures = {"gantt": gantt, "occupancy": occupancy, "links": links}
        return run_plan(
            flags,
            workload,
            system,
            1 if batch is None else batch,
            objective,
            method,
            warm_start,
            pictures,
            tree,
            asked_onnx,
        )
    from tilewright.cli.scheduling.herald import run_schedule

    options.parse_choice(objective, "--objective", OBJECTIVES)
    _refuse({"--warm-start": warm_start, "--links": links, "--tree": tree}, "is for tiled machines")
    pictures = {"gantt": gantt, "occupancy": occupancy}
    work = (workload, batch, asked_onnx)
    return run_schedule(flags, work, system, objective, metric, keep_activations, method, pictures)


def _refuse(given: dict[str, object], reason: str) -> None:
    """Raise ``InputError`` for a flag that was given and says nothing of such a system."""
    for flag, value in given.items():
        if value is not None:
            raise InputError(flag, None, reason)
