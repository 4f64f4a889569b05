"""``tilewright show``: a machine, network, layer, mapping, result, schedule, plan, or a model's formulas."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.cli import completion, models, options
from tilewright.cli.catalog.drawing import draw_mapping, draw_whole, has_mapping, is_drawn_whole
from tilewright.cli.catalog.network import show_network_as
from tilewright.cli.exits import Exit
from tilewright.cli.terminal.console import note_line, show, write
from tilewright.foundation.errors import InputError, did_you_mean, unverified

if TYPE_CHECKING:
    from tilewright.api.display import Displayed
    from tilewright.api.mapping.machine import Machine
    from tilewright.report.records.mapping.document import ResultDocument
    from tilewright.workloads.mapping.operator import Operator
    from tilewright.workloads.onnx.options import OnnxOptions

_NETWORKS = "Networks"
_DATA = (".json", ".jsonl", ".yaml", ".yml")


def show_command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="THING",
            help="Machine, model, workload, layer, mapping file or result document.",
            autocompletion=completion.things,
        ),
    ],
    arch: Annotated[
        str | None,
        typer.Option(
            "--arch", "-a", help="Machine, if the file does not name one.", autocompletion=completion.machines
        ),
    ] = None,
    formula: Annotated[
        bool, typer.Option("--formula", help="The cost model's formulas for a layer on --arch.")
    ] = False,
    directives: Annotated[
        bool, typer.Option("--directives", help="A mapping's tensor-centric directives (KAPLA), as text.")
    ] = False,
    batch: options.Batch = None,
    dim: options.Dims = None,
    skip_unsupported: options.SkipUnsupported = False,
    branch: options.Branches = None,
    trip: options.Trips = None,
    stored_widths: options.StoredWidths = False,
    layers: options.Layers = None,
    cost_model: options.CostModel = None,
    factors: options.Factors = None,
    format: Annotated[
        str, typer.Option("--format", "-f", help="table or json.", rich_help_panel=_NETWORKS)
    ] = "table",
    onnx: Annotated[
        Path | None,
        typer.Option(
            "--onnx",
            metavar="FILE",
            help="Write a built-in network as an ONNX file.",
            rich_help_panel=_NETWORKS,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Draw a mapping (.svg), a result's kinds of layers beside their limits (.png), what "
            "[b]explore[/b] wrote, a network's graph and its layers' shapes; of a tree file, the "
            "spatial-temporal graph.",
            rich_help_panel=_NETWORKS,
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Nothing is cut.")] = False,
) -> int:
    """Show a machine as a tree, a model as a table, a layer as its loops, a mapping as a loop nest."""
    options.parse_factors(factors)
    options.parse_choice(format, "--format", ("table", "json"))
    asked_onnx = options.parse_onnx(
        dim, skip=skip_unsupported, branches=branch, trips=trip, stored_widths=stored_widths
    )
    if asked_onnx.given is not None and Path(name).suffix.lower() != ".onnx":
        raise InputError(asked_onnx.given, None, f"is for ONNX models, which {name} is not")
    if plot is not None and Path(name).suffix.lower() in _DATA and (tree := _tree_in(Path(name))):
        from tilewright.cli.scheduling.set_tree import draw_tree

        return draw_tree(tree, name, plot)
    if plot is not None and Path(name).suffix.lower() in _DATA and is_drawn_whole(Path(name), plot):
        return draw_whole(Path(name), plot)
    if plot is not None and Path(name).suffix.lower() in _DATA and has_mapping(Path(name)):
        return draw_mapping(Path(name), arch, layers or [], plot, format)
    if format == "json" and onnx is None and Path(name).suffix.lower() in _DATA and has_mapping(Path(name)):
        from tilewright.cli.evaluate import evaluate_command

        return evaluate_command(Path(name), arch=arch, layers=layers, format="json")
    if onnx is not None or plot is not None or format == "json":
        return show_network_as(name, batch, format, onnx, plot, asked_onnx)
    if formula:
        return _show_formulas(name, arch, batch, cost_model, factors, asked_onnx, full=verbose)
    if directives:
        return _show_directives(Path(name), layers or [])
    if Path(name).suffix.lower() in _DATA:
        return _show_file(Path(name), arch, batch, layers or [], full=verbose)
    return _show_name(name, batch, asked_onnx)


def _tree_in(path: Path) -> dict[str, Any] | None:
    """What a file states of a resource allocation tree, if it has one."""
    from tilewright.report.records.files import read_data

    data = read_data(path)
    return data if isinstance(data, dict) and "tree" in data else None


def _show_name(name: str, batch: int | None, asked_onnx: OnnxOptions) -> int:
    from tilewright.api.mapping.machine import is_parametrised, machine, machines
    from tilewright.api.mapping.network import models as networks
    from tilewright.api.scheduling.system import system, systems
    from tilewright.api.scheduling.tiled_machine import tiled_machine, tiled_machines
    from tilewright.api.scheduling.workload import list_workloads, workload

    if name in machines() or (is_parametrised(name) and name.partition("[")[0] in machines()):
        return _show_machine(machine(name))
    if name in systems():
        return _shown(system(name))
    base, bracket, _ = name.partition("[")
    if base in tiled_machines() or (bracket and Path(base).suffix.lower() in _DATA):
        return _shown(tiled_machine(name))
    if name in list_workloads():
        return _shown(workload(name))
    try:
        graph = models.loaded(name, batch, asked_onnx)
    except InputError as error:
        names = [*machines(), *systems(), *tiled_machines(), *networks(), *list_workloads()]
        nearest = did_you_mean(name, names)
        if nearest and nearest.removeprefix(", ") not in error.message and "no such model" in error.message:
            raise InputError(name, None, f"neither a machine nor a model{nearest}") from None
        raise
    return _shown(graph)


def _show_file(path: Path, arch: str | None, batch: int | None, patterns: list[str], *, full: bool) -> int:
    """Machines, layers, mappings and results are distinguished by the file's content."""
    from tilewright.foundation.yaml_file import with_line_numbers
    from tilewright.report.records.files import is_result, parse_document, read_data
    from tilewright.report.records.kinds import KINDS
    from tilewright.report.records.mapping.fused_file import is_fused_mapping
    from tilewright.report.records.mapping.mapping_file import is_mapping, parse_mapping
    from tilewright.report.records.scheduling.herald.files import is_schedule, parse_schedule

    is_yaml = path.suffix.lower() in (".yaml", ".yml")
    data = read_data(path)
    if isinstance(data, dict) and "tree" in data:
        from tilewright.cli.scheduling.set_tree import evaluate_tree

        return evaluate_tree(data, str(path), None, "table")
    if is_schedule(data):
        from tilewright.report.text.scheduling.herald.listing import document_views

        with unverified(str(path)):
            show(*document_views(parse_schedule(data, str(path)), str(path), patterns, full=full))
        return Exit.OK
    from tilewright.report.records.scheduling.tiled.files import is_plan, parse_plan

    if is_plan(data):
        from tilewright.report.text.scheduling.tiled.listing import document_views as plan_document_views

        with unverified(str(path)):
            show(*plan_document_views(parse_plan(data, str(path)), str(path), patterns, full=full))
        return Exit.OK
    if is_result(data):
        with unverified(str(path)):
            return _show_result(parse_document(data, str(path)), str(path), patterns)
    if any(kind.is_kind_of(data) for kind in KINDS):
        from tilewright.api.documents import document_of, parsed

        with unverified(str(path)):
            return _shown(document_of(parsed(data, str(path)), str(path)))
    if is_fused_mapping(data):
        from tilewright.cli.mapping.fused import evaluate_fused_file

        evaluate_fused_file(data, path, arch, None, "table")
        return Exit.OK
    if is_mapping(data):
        with with_line_numbers(path):
            stored = parse_mapping(data, str(path), path.parent)
        from tilewright.hardware.mapping.load import load_engine

        engine = load_engine(arch) if arch is not None else stored.engine
        if stored.operator is None or engine is None:
            missing = "layer" if stored.operator is None else "arch"
            raise InputError(str(path), missing, "missing, so the mapping cannot be drawn")
        with with_line_numbers(path):
            stored.mapping.validate(stored.operator, engine, str(path))
        return _show_mapping(stored.name, stored.operator, engine, stored.mapping, stored.cost_model)
    if isinstance(data, dict) and {"levels", "compute"} & set(data):
        from tilewright.api.mapping.machine import machine

        return _show_machine(machine(path))
    if isinstance(data, dict) and "sub_accelerators" in data:
        from tilewright.api.scheduling.system import system

        return _shown(system(path))
    if isinstance(data, dict) and "grid" in data:
        from tilewright.api.scheduling.tiled_machine import tiled_machine

        return _shown(tiled_machine(path))
    if not is_yaml:
        raise InputError(str(path), "schema", "missing, expected a result document")
    from tilewright.api.mapping.network import network
    from tilewright.api.scheduling.workload import workload
    from tilewright.workloads.scheduling.workload_file import is_workload

    return _shown(workload(path) if is_workload(data) else network(path, batch))


def _shown(displayed: Displayed) -> int:
    show(*displayed.views())
    return Exit.OK


def _show_machine(machine: Machine) -> int:
    from tilewright.hardware.mapping.describe import engine_tree
    from tilewright.hardware.mapping.unusual import unusual

    write(engine_tree(machine.engine))
    for reported in unusual(machine.engine):
        note_line(reported)
    return Exit.OK


def _show_mapping(name: str, operator: Operator, engine: Any, mapping: Any, cost_model: str | None) -> int:
    from rich.text import Text

    from tilewright.formulation.mapping.problem import layer_problem
    from tilewright.formulation.objective import parse_objective
    from tilewright.report.records.mapping.build import metrics_record
    from tilewright.report.records.mapping.operator import shape_text
    from tilewright.report.text.tables import head_text, metrics_views

    problem = layer_problem(operator, engine, parse_objective("edp"), cost_model)
    evaluation = problem.evaluate(mapping, name)
    title = head_text(name, f"{operator.kind} {shape_text(operator)}", engine.name)
    broken = [Text(f"illegal: {violation}", style="red") for violation in evaluation.violations]
    reason = problem.outside(mapping)
    if reason is not None:
        broken.append(Text(f"outside the searched space: {reason}", style="yellow"))
    views = metrics_views(metrics_record(evaluation, engine), operator, engine, mapping)
    show(title, "", *broken, *([""] if broken else []), *views)
    return Exit.OK


def _show_result(document: ResultDocument, where: str, patterns: list[str]) -> int:
    from fnmatch import fnmatchcase

    from tilewright.formulation.objective import parse_objective
    from tilewright.report.text import tables
    from tilewright.report.text.mapping.answer_sets import further_views
    from tilewright.report.text.mapping.network_figures import figures_views, roofline_views
    from tilewright.report.text.mapping.spaces import out_of_space_lines, space_lines

    engine, objective = document.arch.build(where), parse_objective(document.objective)
    chosen = [
        layer
        for layer in document.layers
        if not patterns or any(fnmatchcase(layer.name, pattern) for pattern in patterns)
    ]
    if not chosen and patterns:
        hint = did_you_mean(patterns[0], [layer.name for layer in document.layers])
        raise InputError(where, "--layers", f"no layer {patterns[0]!r}{hint}")
    for index, layer in enumerate(chosen):
        view = tables.layer_view(layer, layer.operator.build(where), engine, objective)
        show(*(["", "─" * 80, ""] if index else []), view, *further_views(layer, objective))
    seconds = sum(layer.wall_s for layer in document.layers)
    title = tables.head_text(
        document.model, engine.name, f"objective {objective}", f"{document.cost_model} model"
    )
    if len(chosen) > 1:
        lines = ["", *space_lines(chosen), *out_of_space_lines(chosen, objective)]
        figures = figures_views(document, engine)
        roofline = roofline_views(document, engine)
        table = tables.layers_table(document, objective)
        show("", "─" * 80, "", title, "", table, *figures, "", *roofline, *lines)
    show("", tables.summary_text(document, seconds))
    return Exit.OK


def _show_directives(path: Path, patterns: list[str]) -> int:
    from fnmatch import fnmatchcase

    from tilewright.formulation.mapping.directives import Directives, write_directives
    from tilewright.report.records.mapping.stored_mappings import read_mappings

    stored = read_mappings(path)
    names = [entry.name for entry in stored]
    chosen = [entry for entry in stored if not patterns or any(fnmatchcase(entry.name, p) for p in patterns)]
    if not chosen:
        hint = did_you_mean(patterns[0], names) if patterns else ""
        what = f"no mapping of a layer {patterns[0]!r}{hint}" if patterns else "no layer has a mapping"
        raise InputError(str(path), "--layers" if patterns else None, what)
    for index, entry in enumerate(chosen):
        if entry.operator is None:
            raise InputError(str(path), "layer", "missing, so the sizes of tensors are not known")
        if entry.engine is not None:
            entry.mapping.validate(entry.operator, entry.engine, str(path))
        text = write_directives(Directives.of(entry.operator, entry.mapping, entry.engine))
        write(("\n" if index else "") + (f"# {entry.name}\n" if len(chosen) > 1 else "") + text)
    return Exit.OK


def _show_formulas(
    name: str,
    arch: str | None,
    batch: int | None,
    cost_model: str | None,
    factors: str | None,
    asked_onnx: OnnxOptions,
    *,
    full: bool,
) -> int:
    from tilewright.formulation.mapping.problem import layer_problem
    from tilewright.formulation.objective import parse_objective
    from tilewright.hardware.mapping.load import load_engine
    from tilewright.report.text.mapping.formulas import statement_formulas
    from tilewright.workloads.catalog import resolve_model

    if arch is None:
        raise InputError("--formula", None, "expected --arch, the machine whose cost model is to be shown")
    network = resolve_model(name, batch, asked_onnx)
    operator = network.layers[0].operator
    if len(network) > 1:
        raise InputError(name, None, "expected one layer, such as gemm:M=512,N=768,K=768")
    goal = parse_objective("edp")
    problem = layer_problem(operator, load_engine(arch), goal, cost_model, factors=factors)
    write(statement_formulas(problem, full))
    return Exit.OK
