"""``tilewright explore``: the best machine of a design space, and the proof."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli import completion, models, options
from tilewright.cli.exits import Exit
from tilewright.cli.mapping import flags

FORMATS = ("table", "json", "csv")
_SPACE = "Design space"


def explore_command(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|LAYER", help="As [b]map[/b] takes it.", autocompletion=completion.models
        ),
    ],
    arch: options.Arch,
    vary: Annotated[
        list[str],
        typer.Option(
            "--vary",
            metavar="FIELD=VALUES",
            help="A field of the machine file and its values: levels.SPM.capacity=16kB..1MB*2 (times 2), "
            "levels.SPM.fanout.axes.pe.size=64..256+64 (plus 64), or a list with commas; A:B=1:2,3:4 varies "
            "fields together; model.batch=1..256*2 varies a parameter of the model.  Repeatable: the space "
            "is all combinations.",
            rich_help_panel=_SPACE,
        ),
    ],
    phases: flags.Phases = None,
    lengths: flags.Lengths = None,
    objective: options.NetworkObjective = "edp",
    batch: options.Batch = None,
    layers: options.Layers = None,
    all_operators: options.AllOperators = False,
    dim: options.Dims = None,
    skip_unsupported: options.SkipUnsupported = False,
    branch: options.Branches = None,
    trip: options.Trips = None,
    stored_widths: options.StoredWidths = False,
    cost_model: options.CostModel = None,
    factors: options.Factors = None,
    constraint: options.Constraints = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="COST",
            help="Also the whole front of the objective and a cost: capacity, pes, or a formula such as "
            "'SPM.capacity + 168 * RF.capacity'.",
            rich_help_panel=_SPACE,
        ),
    ] = None,
    each_layer: Annotated[
        bool,
        typer.Option(
            "--each-layer", help="Also the best design for every layer alone.", rich_help_panel=_SPACE
        ),
    ] = False,
    every: Annotated[
        bool,
        typer.Option(
            "--every", help="Search discarded designs too, so that each has a value.", rich_help_panel=_SPACE
        ),
    ] = False,
    values: Annotated[
        bool,
        typer.Option(
            "--values",
            help="Give discarded designs an upper bound too, each from a short search.",
            rich_help_panel=_SPACE,
        ),
    ] = False,
    time_limit: options.TimeLimit = None,
    layer_limit: Annotated[
        str,
        typer.Option(
            "--layer-limit", metavar="TIME", help="For one layer on one design.", rich_help_panel="Search"
        ),
    ] = "60",
    gap: options.Gap = "0",
    solver: options.Solver = "auto",
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store",
            metavar="FILE",
            help="SQLite file for every proof; the same call continues from it.",
            rich_help_panel="Execution",
        ),
    ] = None,
    format: Annotated[
        str, typer.Option("--format", "-f", help="table, json or csv.", rich_help_panel="Output")
    ] = "table",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Also write the document (.json) or its designs (.csv).", rich_help_panel="Output"
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Heat map, and the front.", rich_help_panel="Output"),
    ] = None,
    report: options.Report = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Find the best machine among all combinations of some fields' values, with a proof.

    Designs are discarded by bounds before they are solved.  Exit code 0 states that a best design was found,
    the table whether it is proven.
    """
    from dataclasses import replace

    from tilewright.api.mapping.exploration import ExploreRequest
    from tilewright.api.mapping.sweep import SweepRequest, split_axes
    from tilewright.cli.mapping import designs
    from tilewright.cli.searching import Printed, failed
    from tilewright.hardware.mapping.variations import parse_variation

    form = options.parse_choice(format, "--format", FORMATS)
    options.parse_count(jobs, "--jobs")
    options.check_workers(jobs, cluster)
    longest = options.parse_duration(layer_limit, "--layer-limit")
    assert longest is not None
    seconds, relative_gap = options.parse_duration(time_limit), options.parse_gap(gap)
    asked_onnx = options.parse_onnx(
        dim, skip=skip_unsupported, branches=branch, trips=trip, stored_widths=stored_widths
    )
    goal = options.read_network_objective(objective)
    variations = tuple(parse_variation(text) for text in vary)
    network = models.loaded(model, batch, asked_onnx, quiet=quiet)
    own, machines = split_axes(variations)
    question = ExploreRequest(
        model=network,
        machine=arch,
        axes=machines,
        objective=str(goal),
        batch=batch,
        layers=tuple(layers or ()),
        all_operators=all_operators,
        constraints=tuple(constraint or ()),
        cost_model=cost_model,
        factors=options.parse_factors(factors),
        against=against,
        each_layer=each_layer,
        every=every,
        values=values,
        layer_limit=longest,
        jobs=jobs,
        cluster=cluster,
        store=store,
        phases=phases,
        lengths=lengths,
    )
    files = designs.files(out, plot, report)
    chosen = network.select(layers or (), all_operators)
    progress = [] if quiet else [designs.CellProgress(goal, chosen, seconds, every=verbose)]
    listeners = [*progress, *files, Printed(form)]
    if own:
        points = SweepRequest(replace(question, model=model), own)
        swept, interrupted = designs.explored(points, solver, seconds, relative_gap, listeners)
        if failed(files):
            return Exit.ERROR
        return designs.sweep_exit_code(swept.record, interrupted=interrupted, quiet=quiet)
    answer, interrupted = designs.explored(question, solver, seconds, relative_gap, listeners)
    unsaved = [] if answer.unsaved is None else [str(answer.unsaved)]
    if failed(files, unsaved):
        return Exit.ERROR
    return designs.exit_code(answer.record, interrupted=interrupted, quiet=quiet)
