"""A fused document as text: groups beside the unfused layers, and why others are not fused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.objective import parse_objective
from tilewright.report.records.mapping.fused_document import FusedDocument, FusedTry, FusedUnlinked
from tilewright.report.records.mapping.fused_evaluation import EvaluatedGroup, evaluated_groups
from tilewright.report.text.mapping.fused_tree import fused_views
from tilewright.report.text.quantities import (
    bytes_text,
    count_text,
    energy_text,
    objective_text,
    percent_text,
)
from tilewright.report.text.tables import head_text, plain_table
from tilewright.solvers.mapping.fused.second_opinion import Better


def fused_document_views(document: FusedDocument, *, trees: bool = True) -> list[RenderableType]:
    """Groups with their gains, groups that are not fused with their reasons, and the trees.

    Parameters
    ----------
    document : evaluated anew for its trees
    trees : whether the trees are shown
    """
    evaluated = {tuple(part.group.names): part for _, part in evaluated_groups(document)}
    views: list[RenderableType] = [
        head_text(document.model, f"{_layers(document)} layers", document.arch.name),
        "",
        _groups_table(document, evaluated),
    ]
    objective = parse_objective(document.objective)
    alone = left_alone(document)
    if alone:
        table = plain_table([("not fused", "left"), ("at least", "right"), ("why", "left")])
        for names, bound, reason in alone:
            table.add_row(names, objective_text(objective, bound), reason)
        views += ["", table]
    pairs = unlinked_pairs(document)
    if pairs:
        table = plain_table([("no link", "left"), ("operand", "left"), ("why", "left")])
        for row in pairs:
            table.add_row(*row)
        views += ["", table]
    views += ["", *besides] if (besides := [Text(text, "yellow") for text in beside_texts(document)]) else []
    if trees:
        for part in evaluated.values():
            views += ["", "─" * 80, ""]
            views += fused_views(part.name, part.group, part.engine, part.tree, part.evaluation)
    views += ["", Text(summary_text(document))]
    return views


def _counted(text: str, alike: Sized) -> str:
    return text if len(alike) == 1 else f"{text}, and {len(alike) - 1} like it"


def group_text(names: Sequence[str]) -> str:
    """Layers together, what their names begin with alike in front of all: ``block1: expand + project``."""
    heads = {name.rpartition(".")[0] for name in names}
    head = heads.pop() if len(names) > 1 and len(heads) == 1 else ""
    return f"{head}: " * bool(head) + " + ".join(name.removeprefix(f"{head}.") for name in names)


def left_alone(document: FusedDocument) -> list[tuple[str, float, str]]:
    """Groups that are not used, those with the same last names and reason once: layers, bound and reason."""
    same: dict[tuple[str, str, tuple[str, ...]], list[FusedTry]] = {}
    for tried in document.tried:
        if not tried.used:
            reason = tried.reason or "other groups take less"
            tails = tuple(name.rpartition(".")[2] for name in tried.layers)
            same.setdefault((tried.bound_exact, reason, tails), []).append(tried)
    return [
        (_counted(group_text(alike[0].layers), alike), alike[0].bound, reason)
        for (_, reason, _), alike in same.items()
    ]


def unlinked_pairs(document: FusedDocument) -> list[tuple[str, str, str]]:
    """Layers that read each other and cannot be fused, those with the same last names and reason once."""
    same: dict[tuple[str, ...], list[FusedUnlinked]] = {}
    for pair in document.unlinked:
        tails = tuple(name.rpartition(".")[2] for name in (pair.layer, pair.reader))
        same.setdefault((*tails, pair.operand, pair.reason), []).append(pair)
    return [
        (_counted(f"{alike[0].layer} → {alike[0].reader}", alike), alike[0].operand, alike[0].reason)
        for alike in same.values()
    ]


def beside_texts(document: FusedDocument) -> list[str]:
    """What is known of mappings from outside the space, a line each."""
    objective, texts = parse_objective(document.objective), []
    known = {tuple(layer.name for layer in group.layers): group for group in document.groups}
    for own in document.beside:
        names = tuple(layer.name for layer in own.layers)
        group = known.get(names)
        below = ""
        if group is not None and group.value is not None and own.value < group.value:
            what = "the optimum" if group.status == "optimal" else "the best found"
            below = f", {percent_text(1 - own.value / group.value)} below {what} of the space"
        shown = objective_text(objective, own.value)
        text = f"a mapping from outside the space ({own.source}) has {shown}{below}: {own.reason}"
        texts.append(f"{group_text(names)}: beside: {text}")
    return texts


def _layers(document: FusedDocument) -> int:
    return sum(len(group.layers) for group in document.groups)


def _groups_table(document: FusedDocument, evaluated: Mapping[tuple[str, ...], EvaluatedGroup]) -> Table:
    objective = parse_objective(document.objective)
    table = plain_table(
        [
            ("group", "left"),
            ("status", "left"),
            (str(objective), "right"),
            ("bound", "right"),
            ("unfused", "right"),
            ("saved", "right"),
            (f"{document.arch.engine.levels[0].name} saved", "right"),
        ]
    )
    for group in document.groups:
        saved = ""
        part = evaluated.get(tuple(layer.name for layer in group.layers))
        if group.value is not None and group.unfused.value:
            saved = percent_text(1 - group.value / group.unfused.value, 1) if len(group.layers) > 1 else ""
        table.add_row(
            group_text([layer.name for layer in group.layers]),
            group.status,
            "–" if group.value is None else objective_text(objective, group.value),
            objective_text(objective, group.bound),
            "–" if group.unfused.value is None else objective_text(objective, group.unfused.value),
            saved,
            "" if part is None else saved_bits_text(part),
        )
    return table


def better_views(document: FusedDocument, better: Better) -> list[RenderableType]:
    """A tree that refutes a claim of a document, as trees of the document are shown."""
    group, engine, tree = better.group, document.arch.engine.build(), better.tree
    evaluation = evaluate_fused(group, engine, cost_model(document.cost_model), tree)
    return fused_views(" + ".join(group.names), group, engine, tree, evaluation)


def saved_bits_text(part: EvaluatedGroup) -> str:
    """Traffic of the outermost level that fusion saves; ``–`` where that of the layers is not known."""
    fused, unfused = part.outermost_bits
    if unfused is None:
        return "–"
    before, after = sum(unfused.values()), sum(fused.values())
    share = percent_text((before - after) / before, 1) if before else "0 %"
    sign = "-" if after > before else ""
    return f"{sign}{bytes_text(abs(before - after), 1)} ({share})"


def summary_text(document: FusedDocument) -> str:
    """The result of the whole network and the space that it is about, in two lines."""
    totals = document.totals
    if totals.value is None:
        return "no mapping of the whole network" + (" exists, fused or not" if totals.infeasible else "")
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
    rows = ", softmaxes taken in parts too" if space.online_softmax else ""
    tiles = "that divide" if space.shared_tiles == "divisors" else "of any number of trips in small groups"
    return (
        f"{text}\nspace: groups of at most {space.most} linked layers{home}, shared tiles "
        f"{tiles}, {space.storage} storage and {space.factors} factors within turns{rows}"
    )
