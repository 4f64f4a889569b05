"""``tilewright evaluate``: what a mapping costs; schedules go to `tilewright.cli.scheduling.evaluate`."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli import completion, options
from tilewright.cli.exits import Exit
from tilewright.foundation.errors import InputError, did_you_mean, located_in

if TYPE_CHECKING:
    from tilewright.api.mapping.evaluation import MappingEvaluation
    from tilewright.formulation.mapping.problem import LayerProblem
    from tilewright.hardware.mapping.engine import Engine
    from tilewright.report.records.mapping.mapping_file import StoredMapping
    from tilewright.workloads.mapping.operator import Operator

SCHEMA = "tilewright.evaluation/1"


def evaluate_command(
    mapping: Annotated[
        Path,
        typer.Argument(
            metavar="MAPPING|SCHEDULE|PLAN",
            help="Mapping file (YAML), result document, or document of schedule.",
        ),
    ],
    arch: Annotated[
        str | None,
        typer.Option(
            "--arch",
            "-a",
            help="Machine to evaluate on, instead of the file's.",
            autocompletion=completion.machines,
        ),
    ] = None,
    layer: Annotated[
        str | None, typer.Option("--layer", metavar="LAYER", help="Operator, instead of the file's.")
    ] = None,
    layers: options.OnlyLayers = None,
    objective: Annotated[
        str | None, typer.Option("--objective", "-o", help="Instead of the file's; edp by default.")
    ] = None,
    cost_model: options.CostModel = None,
    factors: options.Factors = None,
    storage: options.Storage = None,
    tiles: options.Tiles = None,
    constraint: options.Constraints = None,
    in_order: Annotated[
        bool, typer.Option("--in-order", help="Start tasks in their order, as early as possible.")
    ] = False,
    format: options.ShortFormat = "table",
) -> int:
    """Evaluate a mapping, schedule or plan: violations (exit code 5), energy and cycles."""
    options.parse_choice(format, "--format", ("table", "json"))
    options.parse_factors(factors)
    options.parse_storage(storage)
    options.parse_tiles(tiles)

    from tilewright.api.mapping.evaluation import MappingEvaluation
    from tilewright.cli.terminal.console import tell
    from tilewright.foundation.yaml_file import with_line_numbers
    from tilewright.report.records.files import read_data
    from tilewright.report.records.mapping.fused_file import is_fused_mapping
    from tilewright.report.records.mapping.stored_mappings import mappings_in
    from tilewright.report.records.scheduling.herald.files import is_schedule
    from tilewright.report.records.scheduling.tiled.files import is_plan

    said = {
        "--arch": arch,
        "--layer": layer,
        "--layers": layers,
        "--objective": objective,
        "--cost-model": cost_model,
        "--factors": factors,
        "--storage": storage,
        "--tiles": tiles,
        "--constraint": constraint,
    }
    given = [name for name, value in said.items() if value is not None]
    texts = [text for text in (arch, layer, objective) if text is not None]
    with located_in(str(mapping), {*given, *texts, "--in-order"}):
        data = read_data(mapping)
        if isinstance(data, dict) and "tree" in data:
            from tilewright.cli.scheduling.set_tree import evaluate_tree

            return evaluate_tree(data, str(mapping), objective, format)
        if is_schedule(data) or is_plan(data):
            from tilewright.cli.scheduling.evaluate import evaluate_edited, evaluate_edited_plan

            _refuse(
                {name: value for name, value in said.items() if name != "--objective"},
                "a mapping",
                str(mapping),
            )
            if is_plan(data):
                _refuse({"--in-order": in_order or None}, "a schedule", str(mapping))
                return evaluate_edited_plan(data, str(mapping), objective, format)
            return evaluate_edited(data, str(mapping), objective, format, in_order=in_order)
        _refuse({"--in-order": in_order or None}, "a schedule", str(mapping))
        if is_fused_mapping(data):
            from tilewright.cli.mapping.fused import evaluate_fused_file

            own = ("--arch", "--cost-model")
            _refuse({name: said[name] for name in said if name not in own}, "one layer", str(mapping))
            return evaluate_fused_file(data, mapping, arch, cost_model, format)
        mappings = mappings_in(data, mapping)
        chosen = _chosen(mappings, layers or [], str(mapping))
        flags = _Flags(arch, layer, objective, cost_model, factors, storage, tiles, constraint)
        notes = _check_demands(chosen if constraint else mappings, str(mapping), flags)
        evaluated = []
        for stored in chosen:
            problem = _problem(stored, str(mapping), flags)
            with with_line_numbers(mapping):
                evaluation = problem.evaluate(stored.mapping, str(mapping))
            evaluated.append(MappingEvaluation(stored.name, problem, stored.mapping, evaluation))
        for note in notes:
            tell(f"tilewright: {note}")
        _print(evaluated, format)
        return Exit.OK if all(evaluation.legal for evaluation in evaluated) else Exit.CHECK_FAILED


def _refuse(flags: MappingABC[str, object], noun: str, where: str) -> None:
    """Raise ``InputError`` for a flag that is given and means nothing here."""
    for flag, value in flags.items():
        if value is not None:
            raise InputError(flag, None, f"is for {noun}, which {where} is not")


def _chosen(stored: list[StoredMapping], patterns: list[str], where: str) -> list[StoredMapping]:
    names = [entry.name for entry in stored]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            hint = did_you_mean(pattern, names)
            raise InputError(where, "--layers", f"no mapping of a layer {pattern!r}{hint}")
    if not stored:
        raise InputError(where, None, "no layer has a mapping")
    return [entry for entry in stored if not patterns or any(fnmatchcase(entry.name, p) for p in patterns)]


@dataclass(frozen=True, slots=True)
class _Flags:
    """What the command line says instead of the file."""

    arch: str | None
    layer: str | None
    objective: str | None
    cost_model: str | None
    factors: str | None
    storage: str | None
    tiles: str | None
    constraints: list[str] | None


def _check_demands(stored: list[StoredMapping], where: str, flags: _Flags) -> tuple[str, ...]:
    """What the user should know of constraints; raises ``InputError`` for names that no layer has.

    Machines may differ from layer to layer; constraints are those of the command line, or of the file.
    """
    from tilewright.formulation.mapping.demands.constraints import network_constraints

    notes: dict[str, None] = {}
    lines = flags.constraints
    for texts in {tuple(entry.constraints) if lines is None else tuple(lines) for entry in stored}:
        same = [entry for entry in stored if lines is not None or tuple(entry.constraints) == texts]
        layers = [(entry.name, _operator(entry, where, flags)) for entry in same]
        engine = _engine(same[0], where, flags)
        try:
            notes.update(dict.fromkeys(network_constraints(texts, layers, engine)[1]))
        except InputError as error:
            if lines is not None:
                raise
            raise InputError(where, "constraints", str(error).partition(": ")[2]) from None
    return tuple(notes) if lines is not None else ()


def _operator(stored: StoredMapping, where: str, flags: _Flags) -> Operator:
    from tilewright.workloads.mapping.layer_text import parse_layer

    operator = parse_layer(flags.layer)[1] if flags.layer is not None else stored.operator
    if operator is None:
        raise InputError(where, "layer", "missing, expected one in the file or as --layer")
    return operator


def _engine(stored: StoredMapping, where: str, flags: _Flags) -> Engine:
    from tilewright.hardware.mapping.load import load_engine

    engine = load_engine(flags.arch) if flags.arch is not None else stored.engine
    if engine is None:
        raise InputError(where, "arch", "missing, expected one in the file or as --arch")
    return engine


def _problem(stored: StoredMapping, where: str, flags: _Flags) -> LayerProblem:
    """The problem that the file states, changed by the flags."""
    from tilewright.formulation.mapping.demands.constraints import applicable
    from tilewright.formulation.mapping.problem import layer_problem

    operator, engine = _operator(stored, where, flags), _engine(stored, where, flags)
    own = flags.arch is None
    model = flags.cost_model or (stored.cost_model if own else None)
    same_model = own and flags.cost_model in (None, stored.cost_model)
    factors = flags.factors or (stored.factors if same_model else None)
    texts = stored.constraints if flags.constraints is None else flags.constraints
    goal = options.read_objective(flags.objective or stored.objective or "edp")
    storage = flags.storage or (stored.storage if same_model else None)
    tiles = flags.tiles or (stored.tiles if same_model else None)
    demands = applicable(texts, operator, engine)
    return layer_problem(operator, engine, goal, model, demands, factors, storage, tiles)


def _print(evaluated: list[MappingEvaluation], form: str) -> None:
    import json

    from tilewright.cli.terminal.console import show, write
    from tilewright.report.records.mapping.build import versions

    if form == "table":
        for index, evaluation in enumerate(evaluated):
            show(*([""] if index else []), *evaluation.views())
        return
    layers = [evaluation.to_dict() for evaluation in evaluated]
    document = {"schema": SCHEMA, "command": "evaluate", "layers": layers, "versions": versions()}
    write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
