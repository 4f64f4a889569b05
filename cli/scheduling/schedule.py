"""``tilewright schedule``: the best schedule of a workload on a system, and the proof."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli import options
from tilewright.workloads.errors import InputError

OBJECTIVES = ("makespan", "energy", "edp")
FORMATS = ("table", "json")

Goal = Annotated[
    str, typer.Option("--objective", "-o", help="makespan, energy or edp.", rich_help_panel="Problem")
]
Metric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="Choose the mapping of each layer by cycles, energy or edp; by default as the objective.",
        rich_help_panel="Problem",
    ),
]
RequireOptimal = Annotated[
    bool, typer.Option("--require-optimal", help="Exit code 6 unless optimal.", rich_help_panel="Search")
]
Document = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Also write the document to a .json file, whenever it changes.",
        rich_help_panel="Output",
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(help="Draw to a .png or .svg file (extra [b]plots[/b]).", rich_help_panel="Output"),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report", metavar="FILE", help="Write a self-contained HTML report.", rich_help_panel="Output"
    ),
]


def schedule_command(
    workload: Annotated[
        str,
        typer.Argument(
            metavar="WORKLOAD|MODEL", help="Built-in workload, YAML file of networks, or a model as for map."
        ),
    ],
    system: Annotated[
        str,
        typer.Option(
            "--system", help="Preset (see [b]list systems[/b]) or YAML file.", rich_help_panel="Problem"
        ),
    ],
    keep_activations: Annotated[
        bool | None,
        typer.Option(
            "--keep-activations/--store-activations",
            help="Results stay in the global memory while there is room, or all go to DRAM;"
            " by default as the system says.",
            show_default=False,
            rich_help_panel="Problem",
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option("--batch", "-b", help="Samples, on tiled machines.", rich_help_panel="Problem"),
    ] = None,
    objective: Goal = "makespan",
    metric: Metric = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            help="Such as herald[[order=depth-first]; see [b]list methods[/b]; by default cpsat, on tiled"
            " machines atomic.",
            show_default=False,
            rich_help_panel="Search",
        ),
    ] = None,
    time_limit: options.TimeLimit = "60",
    gap: options.Gap = "0",
    threads: options.Threads = None,
    seed: options.Seed = 0,
    require_optimal: RequireOptimal = False,
    format: options.ShortFormat = "table",
    out: Document = None,
    gantt: Plot = None,
    occupancy: Plot = None,
    report: Report = None,
    log: options.Log = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Schedule networks on the sub-accelerators of a system, or one on a tiled machine, with a bound."""
    options.parse_choice(format, "--format", FORMATS)
    options.parse_choice(objective, "--objective", OBJECTIVES)

    from tilewright.cli.scheduling.tiled_schedule import is_tiled

    if is_tiled(system):
        from tilewright.cli.scheduling.tiled_schedule import DEFAULT_METHOD, PlanRequest, refuse, run_plan

        refuse(
            {
                "--keep-activations": keep_activations is not None,
                "--metric": metric is not None,
                "--gantt": gantt is not None,
                "--occupancy": occupancy is not None,
                "--report": report is not None,
            }
        )
        return run_plan(
            PlanRequest(
                model=workload,
                system=system,
                batch=1 if batch is None else batch,
                objective=objective,
                method=method or DEFAULT_METHOD,
                time_limit=options.parse_duration(time_limit),
                gap=options.parse_gap(gap),
                threads=options.parse_threads(threads),
                seed=seed,
                require_optimal=require_optimal,
                form=format,
                out=out,
                log=log,
                quiet=quiet,
                verbose=verbose,
            )
        )
    if batch is not None:
        raise InputError("--batch", None, "is for tiled machines; a workload states its own")

    from tilewright.cli.scheduling.schedule_run import ScheduleRequest, run_schedule
    from tilewright.solvers.mapping.machine_sizes import METRICS
    from tilewright.solvers.scheduling.herald.registry import METHODS

    method = method or "cpsat"
    METHODS.make(method)
    if metric is not None:
        options.parse_choice(metric, "--metric", METRICS)
    return run_schedule(
        ScheduleRequest(
            workload=workload,
            system=system,
            keep_activations=keep_activations,
            objective=objective,
            metric=metric,
            method=method,
            time_limit=options.parse_duration(time_limit),
            gap=options.parse_gap(gap),
            threads=options.parse_threads(threads),
            seed=seed,
            require_optimal=require_optimal,
            form=format,
            out=out,
            gantt=gantt,
            occupancy=occupancy,
            report=report,
            log=log,
            quiet=quiet,
            verbose=verbose,
        )
    )
