"""``tilewright list``: available names."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from tilewright.cli import completion, options
from tilewright.cli.exits import Exit
from tilewright.cli.terminal.console import note_line, rendered, results_console, show, write
from tilewright.foundation.errors import InputError
from tilewright.report.text.csv_text import csv_lines
from tilewright.report.text.rendering import WIDTH

if TYPE_CHECKING:
    from rich.text import Text

    from tilewright.api.catalog import MethodLine

Thing = TypeVar("Thing")
_DESCRIPTION = "description"


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows of plain data under named columns; text columns stand left, numbers right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def list_command(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="archs, systems, models, workloads, solvers, methods, suites or operators.",
            autocompletion=lambda incomplete: completion.one_of(*KINDS)(incomplete),
        ),
    ],
    format: options.Format = "table",
) -> int:
    """List machines, models, solvers, methods and other names."""
    options.parse_choice(what, "WHAT", KINDS)
    options.parse_choice(format, "--format", ("table", "json", "jsonl", "csv"))
    listing = KINDS[what]()
    records = [dict(zip(listing.columns, row, strict=True)) for row in listing.rows]
    match format:
        case "json":
            write(json.dumps(records, indent=2, ensure_ascii=False) + "\n")
        case "jsonl":
            write("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
        case "csv":
            write(csv_lines([listing.columns, *listing.rows]))
        case _:
            _show(what, listing)
    return Exit.OK


def _show(what: str, listing: Listing) -> None:
    """A table; a last column named ``description`` stands in a line of its own below each row."""
    from rich.text import Text

    from tilewright.report.text.quantities import si_text
    from tilewright.report.text.tables import plain_table

    if not listing.rows:
        write(f"no {what} found\n")
        return
    described = listing.columns[-1] == _DESCRIPTION
    columns = listing.columns[:-1] if described else listing.columns
    numeric = [all(isinstance(row[i], int) for row in listing.rows) for i in range(len(columns))]
    table = plain_table(
        [(name, "right" if number else "left") for name, number in zip(columns, numeric, strict=True)]
    )
    for row in listing.rows:
        cells = [si_text(cell) if isinstance(cell, int) and cell >= 10**6 else str(cell) for cell in row]
        table.add_row(*cells[: len(columns)])
    if not described:
        show(table)
        return
    head, *lines = rendered(table)
    texts = [_below(row[-1]) for row in listing.rows]
    if len(lines) == len(listing.rows):
        pairs = zip(lines, texts, strict=True)
        show(
            Text.from_ansi(head), *(piece for line, text in pairs for piece in (Text.from_ansi(line), *text))
        )
    else:  # a narrow terminal: names are folded, or columns stand below each other
        named = zip(listing.rows, texts, strict=True)
        show(table, "", *(piece for row, text in named for piece in (Text(str(row[0]), "bold"), *text)))


def _below(description: str) -> list[Text]:
    """A description as indented lines."""
    from rich.text import Text

    width = min(WIDTH, results_console().width)
    lines = textwrap.wrap(description, width, initial_indent="  ", subsequent_indent="  ")
    return [Text(line) for line in lines]


def _loaded(names: Iterable[str], load: Callable[[str], Thing]) -> Iterator[tuple[str, Thing]]:
    """Names that load; what an installed package provides and fails to load is reported and left out."""
    for name in names:
        try:
            yield name, load(name)
        except InputError as error:
            note_line(str(error))


def _archs() -> Listing:
    from tilewright.hardware.mapping.load import list_presets, load_engine

    rows = [
        (e.name, e.instances, " > ".join(level.name for level in e.levels), e.cost_model, e.description)
        for _, e in _loaded(list_presets(), load_engine)
    ]
    return Listing(("arch", "PEs", "levels", "cost model", _DESCRIPTION), tuple(rows))


def _models() -> Listing:
    from tilewright.workloads.totals import totals_of_models

    every = totals_of_models(failed=lambda error: note_line(str(error)))
    rows = tuple((row.name, row.layers, row.distinct, row.macs, row.parameters) for row in every)
    return Listing(("model", "MAC layers", "distinct", "MACs", "parameters"), rows)


def _workloads() -> Listing:
    from tilewright.workloads.scheduling.workload_file import list_workloads, load_workload

    rows = []
    for name, work in _loaded(list_workloads(), load_workload):
        runs = sum(part.batches for part in work.parts)
        rows.append((name, len(work.parts), runs, work.layer_count(), work.macs, work.description))
    return Listing(("workload", "networks", "runs", "MAC layers", "MACs", _DESCRIPTION), tuple(rows))


def _solvers() -> Listing:
    from tilewright.api.catalog import mapping_solvers

    rows = [(line.name, _exact(line), line.version, line.about) for line in mapping_solvers()]
    return Listing(("solver", "exact", "version", _DESCRIPTION), tuple(rows))


def _operators() -> Listing:
    from tilewright.workloads.onnx.importer import operator_support

    return Listing(("ONNX operator", "becomes"), tuple(operator_support()))


def _suites() -> Listing:
    from tilewright.benchmarks.suites import description, suite, suite_names

    rows = []
    for name in suite_names():
        cases = suite(name)
        layers = sum(case.count for case in cases)
        macs = sum(case.count * case.operator.macs for case in cases)
        rows.append((name, layers, len(cases), macs, description(name)))
    return Listing(("suite", "layers", "distinct", "MACs", _DESCRIPTION), tuple(rows))


def _systems() -> Listing:
    from tilewright.hardware.scheduling.herald.system_file import list_systems, load_system
    from tilewright.hardware.scheduling.tiled.load import list_tiled_machines, load_tiled_machine

    rows = []
    for name, system in _loaded(list_systems(), load_system):
        subs = ", ".join(f"{sub.flow_names} {sub.pes}" for sub in system.subs)
        rows.append((name, len(system.subs), system.pes, f"{system.description}; {subs} PEs"))
    for name, machine in _loaded(list_tiled_machines(), load_tiled_machine):
        rows.append((name, machine.engines, machine.macs_per_cycle, machine.description))
    return Listing(("system", "engines", "PEs", _DESCRIPTION), tuple(rows))


def _methods() -> Listing:
    from tilewright.api.catalog import fusion_heuristics, mapping_heuristics, planners, schedulers

    every = {
        "mapping": mapping_heuristics(),
        "fused mapping": fusion_heuristics(),
        "schedule": schedulers(),
        "plan": planners(),
    }
    rows = [(line.name, kind, _exact(line), line.about) for kind, lines in every.items() for line in lines]
    return Listing(("method", "finds", "exact", _DESCRIPTION), tuple(rows))


def _exact(line: MethodLine) -> str:
    return "-" if line.exact is None else "yes" if line.exact else "no"


KINDS: dict[str, Callable[[], Listing]] = {
    "archs": _archs,
    "systems": _systems,
    "models": _models,
    "workloads": _workloads,
    "solvers": _solvers,
    "methods": _methods,
    "suites": _suites,
    "operators": _operators,
}
