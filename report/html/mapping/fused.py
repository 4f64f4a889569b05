"""The report of a fused document: groups beside the unfused layers, what stays where, what is not fused."""

from __future__ import annotations

from pathlib import Path

from tilewright.formulation.objective import Objective, parse_objective
from tilewright.report.html.mapping.machine import machine_drawing
from tilewright.report.html.page import (
    Column,
    Details,
    Drawing,
    Entry,
    Listing,
    Section,
    Table,
    TableCell,
    figures_table,
    filled,
    number_cell,
    text_cell,
    write_page,
)
from tilewright.report.records.mapping.fused_document import FusedDocument, FusedGroupRecord
from tilewright.report.records.mapping.fused_evaluation import EvaluatedGroup, evaluated_groups
from tilewright.report.records.mapping.lifetimes import lifetimes_of
from tilewright.report.records.mapping.picture import fused_picture
from tilewright.report.svg.mapping.lifetimes import lifetimes_panel
from tilewright.report.svg.mapping.nest import nest_panel
from tilewright.report.text.mapping.fused_network import (
    beside_texts,
    group_text,
    left_alone,
    saved_bits_text,
    summary_text,
    unlinked_pairs,
)
from tilewright.report.text.mapping.fused_tree import fused_tree
from tilewright.report.text.quantities import (
    bytes_text,
    count_text,
    energy_text,
    gap_text,
    objective_text,
    percent_text,
    seconds_text,
)

_STYLES = {"optimal": "good", "feasible": "fair"}
Fused = list[tuple[FusedGroupRecord, EvaluatedGroup]]
_TURNS = (
    "Every column is a turn. Below the trips of the shared loops stands each level with how full it is, and "
    "a bar for every tile that stays there from turn to turn; a new bar is a new tile."
)


def write_fused_report(path: Path, document: FusedDocument, command: str = "") -> None:
    """Write the report of a document; raises ``InputError`` where the file cannot be written.

    Parameters
    ----------
    command : the command line that made it, if one did
    """
    facts = [
        f"{document.model}, batch {document.batch}, on {document.arch.name}; objective {document.objective}, "
        f"{document.cost_model} model",
        *summary_text(document).splitlines(),
        *beside_texts(document),
        "written with " + ", ".join(f"{name} {version}" for name, version in document.versions.items()),
    ]
    write_page(path, f"{document.model} on {document.arch.name}, fused", facts, _sections(document), command)


def _sections(document: FusedDocument) -> list[Section]:
    engine, objective = document.arch.engine.build(), parse_objective(document.objective)
    fused = [*evaluated_groups(document)]
    sections: list[Section] = [_totals(document, objective), _groups(document, objective, fused)]
    kinds = _alike(fused)
    if kinds:
        entries = [_entry(document, objective, alike) for alike in kinds]
        sections.append(Details("Fused groups", entries, _TURNS))
    sections += _not_fused(document, objective)
    sections.append(machine_drawing(engine))
    return sections


def _alike(fused: Fused) -> list[Fused]:
    """Groups of the same layers and tree but for names, together."""
    kinds: dict[object, Fused] = {}
    for record, part in fused:
        numbers = {name: str(place) for place, name in enumerate(part.group.names)}
        operators = tuple(part.group.operators.values())
        kinds.setdefault((operators, part.tree.renamed(numbers)), []).append((record, part))
    return [*kinds.values()]


def _totals(document: FusedDocument, objective: Objective) -> Table:
    totals = document.totals
    rows = [("layers", str(sum(len(group.layers) for group in document.groups)))]
    rows.append(("groups of several", str(sum(len(group.layers) > 1 for group in document.groups))))
    if totals.value is not None:
        rows.append((str(objective), objective_text(objective, totals.value)))
    rows.append((f"bound of {objective}", objective_text(objective, totals.bound)))
    rows.append(("gap", gap_text(totals.gap)))
    if totals.unfused_value is not None:
        rows.append((f"{objective}, unfused", objective_text(objective, totals.unfused_value)))
        rows.append((f"bound of {objective}, unfused", objective_text(objective, totals.unfused_bound)))
    if totals.energy_pj is not None and totals.cycles is not None:
        rows += _energy_and_cycles(objective, totals.energy_pj, totals.cycles)
    rows.append(("search time", seconds_text(document.wall_s)))
    return figures_table("Totals", rows)


def _energy_and_cycles(objective: Objective, energy: float, cycles: int) -> list[tuple[str, str]]:
    """Those of both that are not the objective."""
    rows = [("energy", energy_text(energy)), ("cycles", count_text(cycles))]
    return [row for row in rows if row[0] != str(objective)]


def _groups(document: FusedDocument, objective: Objective, fused: Fused) -> Table:
    """All groups; of those of several layers also what goes through the outermost level."""
    outermost = document.arch.engine.levels[0].name
    parts = {id(record): part for record, part in fused}
    columns = [
        Column("group"),
        Column("result"),
        Column(str(objective), True),
        Column("bound", True),
        Column("unfused", True, "the same layers one by one"),
        Column("saved", True),
        Column(outermost, True, f"through {outermost}"),
        Column("unfused", True, f"through {outermost}, layers one by one"),
        Column("saved", True, f"through {outermost}"),
    ]
    rows = []
    for group in document.groups:
        part, unfused = parts.get(id(group)), group.unfused
        saved = None
        if part is not None and group.value is not None and unfused.value:
            saved = 1 - group.value / unfused.value
        moved = (None, None) if part is None else part.outermost_bits
        after, before = (None if bits is None else sum(bits.values()) for bits in moved)
        kept = None if after is None or before is None else before - after
        rows.append(
            [
                text_cell(group_text([layer.name for layer in group.layers])),
                text_cell(group.status, _STYLES.get(group.status, "bad")),
                *(
                    number_cell("-" if value is None else objective_text(objective, value), value)
                    for value in (group.value, group.bound, unfused.value)
                ),
                number_cell("" if saved is None else percent_text(saved, 1), saved),
                *(number_cell("" if bits is None else bytes_text(bits, 1), bits) for bits in (after, before)),
                number_cell("" if part is None else saved_bits_text(part), kept),
            ]
        )
    return Table("Groups", columns, rows, "A click on a heading sorts.", searchable=True)


def _entry(document: FusedDocument, objective: Objective, alike: Fused) -> Entry:
    record, part = alike[0]
    rows = [("result", f"{record.status}, gap {gap_text(record.gap)}")]
    value, unfused = record.value, record.unfused.value
    for name, figure in ((objective, value), (f"bound of {objective}", record.bound), ("unfused", unfused)):
        rows.append((str(name), "-" if figure is None else objective_text(objective, figure)))
    evaluation = part.evaluation
    rows += _energy_and_cycles(objective, float(evaluation.energy), evaluation.cycles)
    others = ", ".join(group_text(other.group.names) for _, other in alike[1:])
    note = f"{len(alike) - 1} more like it: {others}." if others else ""
    group, engine, tree = part.group, part.engine, part.tree
    still = [
        lifetimes_panel(lifetimes_of(part.name, group, engine, tree, evaluation)),
        nest_panel(fused_picture(part.name, group, engine, tree, evaluation)),
    ]
    summary = "" if value is None or not unfused else f"{percent_text(1 - value / unfused, 1)} saved"
    if alike[1:]:
        summary += f", {len(alike)} alike"
    return Entry(
        group_text(part.group.names),
        summary,
        [
            figures_table("Figures", rows, note),
            _traffic(document, part),
            Drawing("What stays where", [panel.svg() for panel in still], []),
            Listing("Tree", fused_tree(group, engine, tree, evaluation)),
        ],
    )


def _traffic(document: FusedDocument, part: EvaluatedGroup) -> Table:
    """Bytes through the outermost level, by tensor, fused and unfused."""
    after, before = part.outermost_bits
    names = dict.fromkeys([*(before or {}), *after])
    rows = [(name, after.get(name, 0), None if before is None else before.get(name, 0)) for name in names]
    rows.append(("together", sum(after.values()), None if before is None else sum(before.values())))

    def cell(bits: int | None) -> TableCell:
        return number_cell("-" if bits is None else bytes_text(bits, 1), bits)

    return Table(
        f"Through {document.arch.engine.levels[0].name}",
        [Column("tensor"), Column("fused", True), Column("unfused", True)],
        [[text_cell(name), cell(fused), cell(unfused)] for name, fused, unfused in rows],
        sortable=False,
    )


def _not_fused(document: FusedDocument, objective: Objective) -> list[Section]:
    sections: list[Section] = []
    alone = left_alone(document)
    if alone:
        columns = [
            (Column("layers"), lambda row: text_cell(row[0])),
            (Column("at least", True), lambda row: number_cell(objective_text(objective, row[1]), row[1])),
            (Column("why"), lambda row: text_cell(row[2])),
        ]
        sections.append(filled("Not fused", columns, alone))
    pairs = unlinked_pairs(document)
    if pairs:
        columns = [
            (Column("layers"), lambda row: text_cell(row[0])),
            (Column("operand"), lambda row: text_cell(row[1])),
            (Column("why"), lambda row: text_cell(row[2])),
        ]
        sections.append(filled("Without a link", columns, pairs))
    return sections
