"""``tilewright codesign``: the best partition of PEs and bandwidth together with its schedule."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli import completion, options
from tilewright.cli.exits import Exit
from tilewright.cli.scheduling.flags import FORMATS, OBJECTIVES, Document, Goal, Metric, Plot, RequireOptimal

if TYPE_CHECKING:
    from tilewright.api.scheduling.plan import Codesign


def codesign_command(
    workload: Annotated[
        str,
        typer.Argument(
            metavar="WORKLOAD|MODEL", help="As for schedule.", autocompletion=completion.workloads
        ),
    ],
    accelerator_class: Annotated[
        str,
        typer.Option(
            "--class",
            help="edge, mobile or cloud.",
            autocompletion=completion.one_of("edge", "mobile", "cloud"),
            rich_help_panel="Problem",
        ),
    ],
    dataflows: Annotated[
        str,
        typer.Option(
            "--dataflows",
            help="One per sub-accelerator, with commas: a style, or a machine's preset or file.",
            rich_help_panel="Problem",
        ),
    ] = "nvdla,shidiannao",
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="NAME.FIELD=VALUES",
            help="A field of a machine file among the dataflows and its values, as for explore, behind the "
            "machine's name: my.levels.SPM.capacity=16kB..64kB*2.  Repeatable; without it a machine file "
            "stays as it is.",
            rich_help_panel="Problem",
        ),
    ] = None,
    stored_widths: options.StoredWidths = False,
    objective: Goal = "edp",
    metric: Metric = None,
    search: Annotated[
        str,
        typer.Option("--search", help="exhaustive, binary or random partitions.", rich_help_panel="Search"),
    ] = "exhaustive",
    pe_step: Annotated[
        int | None,
        typer.Option(
            "--pe-step",
            min=1,
            help="PEs by which partitions differ; by default the class's own.",
            rich_help_panel="Problem",
        ),
    ] = None,
    bandwidth_step: Annotated[
        int | None,
        typer.Option(
            "--bandwidth-step",
            min=1,
            metavar="GB/s",
            rich_help_panel="Problem",
            help="Bandwidth by which partitions differ; by default the class's own.",
        ),
    ] = None,
    keep_activations: Annotated[
        bool,
        typer.Option(
            "--keep-activations/--store-activations",
            help="Results stay in the global memory while capacity allows, or all go to DRAM.",
            rich_help_panel="Problem",
        ),
    ] = False,
    time_limit: options.TimeLimit = "5m",
    gap: options.Gap = "0",
    threads: options.Threads = None,
    seed: options.Seed = 0,
    require_optimal: RequireOptimal = False,
    format: options.ShortFormat = "table",
    out: Document = None,
    scatter: Plot = None,
    report: options.Report = None,
    log: options.Log = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Find the best split of a class's PEs and bandwidth, with a bound over the whole grid of splits."""
    from dataclasses import replace

    from tilewright.api.scheduling.codesign import WorkloadOnClass
    from tilewright.cli.scheduling.herald import loaded_workload
    from tilewright.cli.searching import Printed, SearchFlags, failed
    from tilewright.hardware.mapping.variations import parse_variation

    flags = SearchFlags.read(FORMATS, locals())
    options.parse_choice(objective, "--objective", OBJECTIVES)
    files = flags.saved(("json",), scatter)
    asked_onnx = options.parse_onnx(None, skip=False, stored_widths=stored_widths)
    question = WorkloadOnClass(
        loaded_workload(workload, None, replace(asked_onnx, asker="fields"), quiet=flags.quiet),
        accelerator_class,
        dataflows=dataflows.split(","),
        vary=[parse_variation(text) for text in vary or ()],
        objective=objective,
        metric=metric,
        search=search,
        pe_step=pe_step,
        bandwidth_step=bandwidth_step,
        keep_activations=keep_activations,
    )
    pages = flags.drawn((scatter, _draw_partitions), (report, _write_page))
    listeners = [*files, Printed(flags.form), *pages]
    design, _ = flags.ask(question.answer, question.shown_objective, None, listeners)
    code = flags.exit_code(design.record, solved=design.record.best is not None)
    return Exit.ERROR if failed([*files, *pages]) else code


def _draw_partitions(path: Path, design: Codesign) -> None:
    from tilewright.hardware.mapping.styles import CLOCK_MHZ
    from tilewright.report.plots.scheduling.herald.partitions import draw_partitions

    if design.record.points:
        draw_partitions(design.record, float(1 / (CLOCK_MHZ * 1_000_000)), path)


def _write_page(path: Path, design: Codesign) -> None:
    from tilewright.cli.terminal.command import command
    from tilewright.report.html.scheduling.herald.schedule import write_codesign_report

    write_codesign_report(path, design.record, command.text)
