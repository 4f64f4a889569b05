"""``tilewright map``: the best mapping of every layer, and the proof."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli import completion, options
from tilewright.cli.exits import Exit, exit_of_layers
from tilewright.cli.mapping.flags import Lengths, Phases
from tilewright.foundation.errors import InputError

if TYPE_CHECKING:
    from tilewright.api.mapping.result import MappingDocument

FORMATS = ("table", "json", "jsonl", "csv")

_PANEL = "Beyond one optimum"
_FUSION = "Fusion"


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
    phases: Phases = None,
    lengths: Lengths = None,
    dim: options.Dims = None,
    skip_unsupported: options.SkipUnsupported = False,
    branch: options.Branches = None,
    trip: options.Trips = None,
    stored_widths: options.StoredWidths = False,
    cost_model: options.CostModel = None,
    factors: options.Factors = None,
    storage: options.Storage = None,
    tiles: options.Tiles = None,
    constraint: options.Constraints = None,
    constraint_set: options.ConstraintSet = None,
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
    fuse: Annotated[
        bool,
        typer.Option(
            "--fuse",
            help="Layers that pass results on without the outermost memory.",
            rich_help_panel=_FUSION,
        ),
    ] = False,
    fuse_at: Annotated[
        str | None,
        typer.Option(
            "--fuse-at",
            metavar="LEVEL",
            help="Keep what is passed on in this level.",
            rich_help_panel=_FUSION,
        ),
    ] = None,
    max_group: Annotated[
        int | None,
        typer.Option(
            "--max-group",
            metavar="N",
            help="Layers of a group at most; 4 by default.",
            rich_help_panel=_FUSION,
        ),
    ] = None,
    online_softmax: Annotated[
        bool,
        typer.Option(
            "--online-softmax",
            help="A softmax between two layers may be taken in parts of its rows.",
            rich_help_panel=_FUSION,
        ),
    ] = False,
    time_limit: options.TimeLimit = None,
    gap: options.Gap = "0",
    threads: options.Threads = None,
    seed: options.Seed = 0,
    solver: options.Solver = "auto",
    warm_start: Annotated[
        Path | None,
        typer.Option(
            "--warm-start", help="File of mappings or result to start from.", rich_help_panel="Search"
        ),
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
    if fuse:
        from tilewright.cli.mapping.fused import map_fused

        return map_fused(locals())
    fusion = {"--fuse-at": fuse_at, "--max-group": max_group, "--online-softmax": online_softmax or None}
    for flag, value in fusion.items():
        if value is not None:
            raise InputError(flag, None, "expected --fuse with it")
    from tilewright.api.catalog import ready_method
    from tilewright.api.mapping.folder import MappingFolder
    from tilewright.api.mapping.machine import machine
    from tilewright.api.mapping.network import Network, NetworkOnMachine
    from tilewright.api.mapping.question import stored_mappings
    from tilewright.cli.mapping import layers as output
    from tilewright.cli.searching import SearchFlags, failed
    from tilewright.cli.terminal.command import command
    from tilewright.report.records.files import FORMATS as FILE_FORMATS
    from tilewright.workloads.catalog import resolve_model

    flags = SearchFlags.read(FORMATS, locals())
    options.parse_count(most, "--most")
    if most is not None and not all_optimal:
        raise InputError("--most", None, "expected --all-optimal with it")
    asked = {"--pareto": pareto, "--best": best is not None, "--all-optimal": all_optimal}
    if flags.form == "csv" and any(asked.values()) and (out is None or out.suffix.lower() == ".csv"):
        flag = next(flag for flag, wanted in asked.items() if wanted)
        raise InputError("--format", None, f"csv cannot hold {flag}, expected json or --out FILE.json")
    goal = options.read_objective(objective)
    space = {
        "factors": options.parse_factors(factors),
        "storage": options.parse_storage(storage),
        "tiles": options.parse_tiles(tiles),
    }
    second = None if then is None else options.read_objective(then, "--then").name
    ready_method(solver, flag="--solver")
    files = flags.saved(FILE_FORMATS)
    engine = machine(arch)
    asked_onnx = options.parse_onnx(
        dim, skip=skip_unsupported, branches=branch, trips=trip, stored_widths=stored_widths
    )
    network = Network(resolve_model(model, batch, asked_onnx))
    question = NetworkOnMachine(
        network,
        engine,
        objective,
        layers=layers or (),
        all_operators=all_operators,
        phases=phases,
        lengths=lengths,
        constraints=(*(constraint or ()), *(f"set={name}" for name in constraint_set or ())),
        cost_model=cost_model,
        **space,  # type: ignore[arg-type]
        then=second,  # type: ignore[arg-type]
        pareto=pareto,
        best=best,
        all_optimal=(most or True) if all_optimal else False,
    )
    starts = stored_mappings(() if warm_start is None else warm_start)
    if save_mappings is not None:
        files.append(MappingFolder(save_mappings, question))

    def write_page(path: Path, answer: MappingDocument) -> None:
        from tilewright.report.html.mapping.result import write_result_report

        write_result_report(path, answer.record, command.text)

    pages = flags.drawn((report, write_page))
    answer, interrupted = flags.ask(
        question.answer,
        goal,
        solver,
        [*files, output.printed(flags.form), *([] if files or pages else [output.EndsWithStdout()]), *pages],
        starts,
        streams_to_terminal=output.streams_to_terminal(flags.form),
    )
    if failed([*files, *pages]):
        return Exit.ERROR
    code = exit_of_layers(
        [(layer.status, layer.mapping is not None) for layer in answer.record.layers],
        interrupted=interrupted,
        missing=bool(answer.record.missing),
        require_optimal=require_optimal,
    )
    if quiet and code:
        output.tell_reasons(answer.record)
    return code
