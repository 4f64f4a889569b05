"""``tilewright show``: a machine, a model, a layer, a mapping, a result, or a cost model's formulas."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.cli import options
from tilewright.cli.console import show, write
from tilewright.cli.exits import Exit
from tilewright.workloads.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from tilewright.report.document import ResultDocument
    from tilewright.workloads.network import Network
    from tilewright.workloads.operator import Operator

_DATA = (".json", ".jsonl", ".yaml", ".yml")


def show_command(
    thing: Annotated[
        str,
        typer.Argument(metavar="THING", help="Machine, model, layer, mapping file or result document."),
    ],
    arch: Annotated[
        str | None, typer.Option("--arch", "-a", help="Machine, where the thing does not name its own.")
    ] = None,
    formula: Annotated[
        bool, typer.Option("--formula", help="The cost model's formulas for a layer on --arch.")
    ] = False,
    batch: options.Batch = None,
    layers: options.Layers = None,
    cost_model: options.CostModel = None,
    factors: options.Factors = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Nothing is cut.")] = False,
) -> int:
    """Show a machine as a tree, a model as a table, a layer as its loops, a mapping as a loop nest."""
    options.parse_factors(factors)
    if formula:
        return _show_formulas(thing, arch, batch, cost_model, factors, full=verbose)
    if Path(thing).suffix.lower() in _DATA:
        return _show_file(Path(thing), arch, batch, layers or [])
    return _show_name(thing, batch)


def _show_name(thing: str, batch: int | None) -> int:
    from tilewright.hardware.load import list_presets, load_engine

    if thing in list_presets():
        return _show_machine(load_engine(thing))
    from tilewright.hardware.system_file import list_systems, load_system

    if thing in list_systems():
        return _show_system(load_system(thing))
    from tilewright.workloads.catalog import list_models, resolve_model

    try:
        network = resolve_model(thing, batch)
    except InputError as error:
        nearest = did_you_mean(thing, [*list_presets(), *list_systems(), *list_models()])
        if nearest and nearest.removeprefix(", ") not in error.message and "no such model" in error.message:
            raise InputError(thing, None, f"neither a machine nor a model{nearest}") from None
        raise
    return _show_network(network)


def _show_file(path: Path, arch: str | None, batch: int | None, patterns: list[str]) -> int:
    """Machines, layers, mappings and results are told apart by what the file holds."""
    from tilewright.report.files import is_result, parse_document, read_data
    from tilewright.report.mapping_file import is_mapping, parse_mapping

    is_yaml = path.suffix.lower() in (".yaml", ".yml")
    data = read_data(path)
    if is_result(data):
        return _show_result(parse_document(data, str(path)), str(path), patterns)
    if is_mapping(data):
        stored = parse_mapping(data, str(path), path.parent)
        from tilewright.hardware.load import load_engine

        engine = load_engine(arch) if arch is not None else stored.engine
        if stored.operator is None or engine is None:
            missing = "layer" if stored.operator is None else "arch"
            raise InputError(str(path), missing, "missing, so the mapping cannot be drawn")
        return _show_mapping(stored.name, stored.operator, engine, stored.mapping, stored.cost_model)
    if isinstance(data, dict) and {"levels", "compute"} & set(data):
        from tilewright.hardware.load import load_engine

        return _show_machine(load_engine(path))
    if isinstance(data, dict) and "sub_accelerators" in data:
        from tilewright.hardware.system_file import load_system

        return _show_system(load_system(path))
    if not is_yaml:
        raise InputError(str(path), "schema", "missing, expected a result document")
    from tilewright.workloads.catalog import resolve_model

    return _show_network(resolve_model(str(path), batch))


def _show_machine(engine: Any) -> int:
    from tilewright.hardware.describe import engine_tree

    write(engine_tree(engine))
    return Exit.OK


def _show_system(system: Any) -> int:
    from tilewright.report.system_tables import system_views

    show(*system_views(system))
    return Exit.OK


def _show_network(network: Network) -> int:
    from tilewright.report.operator_data import shape_text
    from tilewright.report.quantities import si_text
    from tilewright.report.tables import head_text, plain_table

    if len(network) == 1:
        return _show_operator(network.layers[0].name, network.layers[0].operator)
    table = plain_table([("layer", "left"), ("n", "right"), ("operator", "left"), ("MACs", "right"),
                         ("parameters", "right")])  # fmt: skip
    for distinct in network.distinct_layers():
        layer, count = distinct.layer, distinct.count
        operator = layer.operator
        macs = si_text(operator.macs) if operator.is_mac else "-"
        parameters = si_text(layer.parameters) if layer.parameters else "-"
        table.add_row(layer.name, str(count), f"{operator.kind} {shape_text(operator)}", macs, parameters)
    table.add_section()
    table.add_row(
        "total", str(len(network)), "", si_text(network.macs), si_text(network.parameters), style="bold"
    )
    title = head_text(network.name, f"batch {network.batch}", f"{len(network)} layers",
                      f"{len(network.mac_layers)} of them multiply and accumulate")  # fmt: skip
    show(title, "MACs and parameters are those of one of n equal layers", "", table)
    return Exit.OK


def _show_operator(name: str, operator: Operator) -> int:
    from tilewright.report.operator_data import index_text, statement_text
    from tilewright.report.quantities import count_text, si_text
    from tilewright.report.tables import head_text, plain_table

    loops = plain_table([("loop", "left"), ("bound", "right"), ("like", "left"), ("used by", "left")])
    for dimension in operator.dimensions:
        users = " ".join(tensor.name for tensor in operator.tensors if dimension.name in tensor.dims)
        loops.add_row(dimension.name, str(dimension.bound), dimension.like, users)
    tensors = plain_table([("tensor", "left"), ("role", "left"), ("elements", "right"), ("touched", "right"),
                           ("reuse", "right")])  # fmt: skip
    for tensor in operator.tensors:
        size = 1
        for axis in tensor.axes:
            size *= axis.size
        touched = tensor.footprint(operator.bounds)
        reuse = si_text(operator.iterations / touched)
        tensors.add_row(index_text(tensor), tensor.role.value, count_text(size), count_text(touched), reuse)
    what = "MACs" if operator.is_mac else "operations"
    title = head_text(name, operator.kind, f"{count_text(operator.iterations)} {what}")
    show(title, statement_text(operator), "", loops, "", tensors)
    return Exit.OK


def _show_mapping(name: str, operator: Operator, engine: Any, mapping: Any, cost_model: str | None) -> int:
    from rich.text import Text

    from tilewright.formulation.objective import parse_objective
    from tilewright.formulation.problem import layer_problem
    from tilewright.report.build import metrics_record
    from tilewright.report.operator_data import shape_text
    from tilewright.report.tables import head_text, metrics_views

    problem = layer_problem(operator, engine, parse_objective("edp"), cost_model)
    found = problem.evaluate(mapping, name)
    title = head_text(name, f"{operator.kind} {shape_text(operator)}", engine.name)
    broken = [Text(f"illegal: {violation}", style="red") for violation in found.violations]
    views = metrics_views(metrics_record(found, engine), operator, engine, mapping)
    show(title, "", *views, *([""] if broken else []), *broken)
    return Exit.OK


def _show_result(document: ResultDocument, where: str, patterns: list[str]) -> int:
    from fnmatch import fnmatchcase

    from tilewright.formulation.objective import parse_objective
    from tilewright.report import tables
    from tilewright.report.further import further_views

    engine, objective = document.arch.build(where), parse_objective(document.objective)
    chosen = [
        layer for layer in document.layers
        if not patterns or any(fnmatchcase(layer.name, pattern) for pattern in patterns)
    ]  # fmt: skip
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
        show("", "─" * 80, "", title, "", tables.layers_table(document, objective))
    show("", tables.summary_text(document, seconds))
    return Exit.OK


def _show_formulas(
    thing: str,
    arch: str | None,
    batch: int | None,
    cost_model: str | None,
    factors: str | None,
    *,
    full: bool,
) -> int:
    from tilewright.formulation.objective import parse_objective
    from tilewright.formulation.problem import layer_problem
    from tilewright.hardware.load import load_engine
    from tilewright.report.formulas import statement_formulas
    from tilewright.workloads.catalog import resolve_model

    if arch is None:
        raise InputError("--formula", None, "expected --arch, the machine whose cost model is to be shown")
    network = resolve_model(thing, batch)
    operator = network.layers[0].operator
    if len(network) > 1:
        raise InputError(thing, None, "expected one layer, such as gemm:M=512,N=768,K=768")
    goal = parse_objective("edp")
    problem = layer_problem(operator, load_engine(arch), goal, cost_model, factors=factors)
    write(statement_formulas(problem, full))
    return Exit.OK
