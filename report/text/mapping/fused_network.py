"""A fused document as text: groups beside the unfused layers, and why others are not fused."""

from __future__ import annotations

from collections.abc import Sized

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch, tree_from_data
from tilewright.formulation.objective import parse_objective
from tilewright.report.records.mapping.fused_document import (
    FusedDocument,
    FusedGroupRecord,
    FusedTry,
    FusedUnlinked,
)
from tilewright.report.records.mapping.fused_file import group_from_data
from tilewright.report.text.mapping.fused_tree import fused_views
from tilewright.report.text.quantities import count_text, energy_text, objective_text, percent_text
from tilewright.report.text.tables import head_text, plain_table
from tilewright.solvers.mapping.fused.second_opinion import Better


def fused_document_views(document: FusedDocument, *, trees: bool = True) -> list[RenderableType]:
    """Groups with their gains, groups that are not fused with their reasons, and the trees.

    Parameters
    ----------
    document : evaluated anew for its trees
    trees : whether the trees are shown
    """
    views: list[RenderableType] = [
        head_text(document.model, f"{_layers(document)} layers", document.arch.name),
        "",
        _groups_table(document),
    ]
    objective = parse_objective(document.objective)
    others = [tried for tried in document.tried if not tried.used]
    if others:
        table = plain_table([("not fused", "left"), ("at least", "right"), ("why", "left")])
        same: dict[tuple[str, str, tuple[str, ...]], list[FusedTry]] = {}
        for tried in others:
            reason = tried.reason or "other groups take less"
            tails = tuple(name.rpartition(".")[2] for name in tried.layers)
            same.setdefault((tried.bound_exact, reason, tails), []).append(tried)
        for (_, reason, _), alike in same.items():
            least = objective_text(objective, alike[0].bound)
            table.add_row(_counted(" + ".join(alike[0].layers), alike), least, reason)
        views += ["", table]
    if document.unlinked:
        views += ["", _unlinked_table(document)]
    if trees:
        for group in document.groups:
            if len(group.layers) > 1 and group.tree is not None:
                views += ["", "─" * 80, "", *_group_views(document, group)]
    views += ["", Text(_summary(document))]
    return views


def _counted(text: str, alike: Sized) -> str:
    return text if len(alike) == 1 else f"{text}, and {len(alike) - 1} like it"


def _unlinked_table(document: FusedDocument) -> Table:
    """Layers that read each other and cannot be fused, those with the same last names and reason once."""
    table = plain_table([("no link", "left"), ("operand", "left"), ("why", "left")])
    same: dict[tuple[str, ...], list[FusedUnlinked]] = {}
    for pair in document.unlinked:
        tails = tuple(name.rpartition(".")[2] for name in (pair.layer, pair.reader))
        same.setdefault((*tails, pair.operand, pair.reason), []).append(pair)
    for alike in same.values():
        first = alike[0]
        table.add_row(_counted(f"{first.layer} → {first.reader}", alike), first.operand, first.reason)
    return table


def _layers(document: FusedDocument) -> int:
    return sum(len(group.layers) for group in document.groups)


def _groups_table(document: FusedDocument) -> Table:
    objective = parse_objective(document.objective)
    table = plain_table(
        [
            ("group", "left"),
            ("status", "left"),
            (str(objective), "right"),
            ("bound", "right"),
            ("unfused", "right"),
            ("saved", "right"),
        ]
    )
    for group in document.groups:
        saved = ""
        if group.value is not None and group.unfused.value:
            saved = percent_text(1 - group.value / group.unfused.value, 1) if len(group.layers) > 1 else ""
        table.add_row(
            " + ".join(layer.name for layer in group.layers),
            group.status,
            "–" if group.value is None else objective_text(objective, group.value),
            objective_text(objective, group.bound),
            "–" if group.unfused.value is None else objective_text(objective, group.unfused.value),
            saved,
        )
    return table


def _group_views(document: FusedDocument, group: FusedGroupRecord) -> list[RenderableType]:
    entries = [layer.stated() for layer in group.layers]
    stated = group_from_data(entries, group.leaving, "group")
    assert group.tree is not None
    return _tree_views(document, stated, tree_from_data(group.tree))


def better_views(document: FusedDocument, better: Better) -> list[RenderableType]:
    """A tree that refutes a claim of a document, as trees of the document are shown."""
    return _tree_views(document, better.group, better.tree)


def _tree_views(document: FusedDocument, stated: FusedGroup, tree: Branch) -> list[RenderableType]:
    engine = document.arch.engine.build()
    evaluation = evaluate_fused(stated, engine, cost_model(document.cost_model), tree)
    return fused_views(" + ".join(stated.names), stated, engine, tree, evaluation)


def _summary(document: FusedDocument) -> str:
    totals = document.totals
    if totals.value is None:
        return "no mapping of the whole network"
    gap = "proven optimal in its space" if totals.gap == 0 else f"gap {percent_text(totals.gap or 0, 2)}"
    objective = parse_objective(document.objective)
    text = f"{objective_text(objective, totals.value)}, {gap}"
    if str(objective) != "energy" and totals.energy_pj is not None and totals.cycles is not None:
        text += f"; {energy_text(totals.energy_pj)} in {count_text(totals.cycles)} cycles"
    if totals.unfused_value is not None:
        saved = 1 - totals.value / totals.unfused_value if totals.unfused_value else 0
        text += f"; unfused {objective_text(objective, totals.unfused_value)}, {percent_text(saved, 1)} saved"
    space = document.space
    home = "" if space.home is None else f", homes in {space.home}"
    tiles = "that divide" if space.shared_tiles == "divisors" else "of any number of trips in small groups"
    return (
        f"{text}\nspace: groups of at most {space.most} linked layers{home}, shared tiles "
        f"{tiles}, {space.storage} storage and {space.factors} factors within turns"
    )
