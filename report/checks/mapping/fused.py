"""Whether the claims of a fused document hold: every tree is evaluated anew, and sums are added again."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.cost.registry import MODELS
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.tree import tree_from_data
from tilewright.formulation.result import relative_gap
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.checks.mapping.head import arch_faults
from tilewright.report.records.mapping.fused_document import (
    FusedDocument,
    FusedGroupRecord,
    FusedTotals,
    FusedTry,
    FusedValue,
    fused_hash,
)
from tilewright.report.records.mapping.fused_evaluation import fused_metrics
from tilewright.report.records.mapping.fused_file import group_from_data


def fused_faults(document: FusedDocument, where: str) -> list[str]:
    """Everything that does not hold, each in one line; raises ``InputError`` for a machine that is none."""
    engine = document.arch.build(where)
    faults = [*arch_faults(document.arch), *_head_faults(document)]
    cycles = macs = 0
    for index, group in enumerate(document.groups):
        at = f"groups[{index}]"
        faults += [f"{at}.{fault}" for fault in _value_faults(group, group.gap)]
        faults += [f"{at}.unfused.{fault}" for fault in _value_faults(group.unfused, None)]
        faults += [f"{at}.{fault}" for fault in _group_faults(document, group, engine, where)]
        if group.metrics is not None:
            cycles += _whole(group.metrics.get("cycles"))
            macs += _whole(group.metrics.get("macs"))
    for index, tried in enumerate(document.tried):
        faults += [f"tried[{index}].{fault}" for fault in _value_faults(tried, None)]
    faults += list(_cover_faults(document))
    faults += [f"totals.{fault}" for fault in _totals_faults(document, cycles, macs)]
    return faults


def _head_faults(document: FusedDocument) -> Iterator[str]:
    """What of the head contradicts itself."""
    if document.cost_model not in MODELS:
        yield f"cost_model: {unknown_name(document.cost_model, MODELS.names())}"
    if not document.model.strip():
        yield "model: empty"
    if document.batch < 1:
        yield f"batch: {document.batch}, expected at least 1"
    layers = [layer for group in document.groups for layer in group.layers]
    asked = fused_hash(document.model, document.batch, document.arch, document.space, layers)
    if document.input_hash != asked:
        yield "input_hash: not that of model, batch, machine, space and layers"
    if "tilewright" not in document.versions:
        yield "versions: that of tilewright is missing"


def _whole(figure: object) -> int:
    """A figure that is a whole number; 0 for any other, which is no metric of the tree."""
    return figure if isinstance(figure, int) else 0


def _value_faults(record: FusedValue, gap: float | None) -> Iterator[str]:
    """Figures that are not those of their exact ones, and bounds above values."""
    bound = Fraction(record.bound_exact)
    if record.bound != float(bound):
        yield f"bound: {record.bound}, exactly {record.bound_exact}"
    if (record.value is None) != (record.value_exact is None):
        yield "value: with its exact figure or without a value"
        return
    if record.value_exact is None:
        return
    value = Fraction(record.value_exact)
    if record.value != float(value):
        yield f"value: {record.value}, exactly {record.value_exact}"
    if bound > value and not isinstance(record, FusedTry):
        yield f"bound: {record.bound} above the value {record.value}"
    if isinstance(record, FusedGroupRecord | FusedTotals) and gap != relative_gap(value, bound):
        yield f"gap: {gap}, value and bound give {relative_gap(value, bound)}"


def _group_faults(
    document: FusedDocument, group: FusedGroupRecord, engine: Engine, where: str
) -> Iterator[str]:
    proven = group.value_exact is not None and group.value_exact == group.bound_exact
    if proven != (group.status == "optimal"):
        yield f"status: {group.status}, which value and bound contradict"
    if group.tree is None:
        if group.value is not None or group.metrics is not None:
            yield "value: without a tree"
        return
    try:
        entries = [layer.stated() for layer in group.layers]
        stated = group_from_data(entries, group.leaving, where)
        tree = tree_from_data(group.tree, where, "tree")
        evaluation = evaluate_fused(stated, engine, cost_model(document.cost_model), tree, where)
    except InputError as error:
        yield f"tree: {error.field}: {error.message}"
        return
    if sorted(stated.leaving) != sorted(group.leaving):
        yield f"leaving: {group.leaving}, those that nobody reads leave too"
    yield from (f"tree: {violation}" for violation in evaluation.violations)
    if group.value_exact != str(evaluation.energy):
        yield f"value: {group.value}, the tree takes {float(evaluation.energy)} pJ"
    if group.metrics != fused_metrics(evaluation, engine):
        yield "metrics: not those of the tree"


def _cover_faults(document: FusedDocument) -> Iterator[str]:
    names = [layer.name for group in document.groups for layer in group.layers]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield f"groups: {name} is in {names.count(name)} groups"
    used = [[layer.name for layer in group.layers] for group in document.groups if len(group.layers) > 1]
    for index, tried in enumerate(document.tried):
        if tried.used != (tried.layers in used):
            yield f"tried[{index}].used: {str(tried.used).lower()}, which the groups contradict"
    for layers in used:
        if len(layers) > document.space.most:
            yield f"groups: {len(layers)} layers in one, space.most is {document.space.most}"


def _totals_faults(document: FusedDocument, cycles: int, macs: int) -> Iterator[str]:
    totals = document.totals
    yield from _value_faults(totals, totals.gap)
    values = [group.value_exact for group in document.groups]
    known = [Fraction(value) for value in values if value is not None]
    whole = sum(known, Fraction(0)) if len(known) == len(values) else None
    if (None if whole is None else str(whole)) != totals.value_exact:
        yield f"value: {totals.value}, the groups' sum is {None if whole is None else float(whole)}"
    alone = [group.unfused.value_exact for group in document.groups]
    singles = [Fraction(value) for value in alone if value is not None]
    unfused = sum(singles, Fraction(0)) if len(singles) == len(alone) else None
    shown = None if unfused is None else float(unfused)
    exact = None if unfused is None else str(unfused)
    if (shown, exact) != (totals.unfused_value, totals.unfused_value_exact):
        yield f"unfused_value: {totals.unfused_value}, the groups' sum is {shown}"
    least = sum((Fraction(group.unfused.bound_exact) for group in document.groups), Fraction(0))
    if totals.unfused_bound != float(least):
        yield f"unfused_bound: {totals.unfused_bound}, the groups' sum is {float(least)}"
    if whole is not None and unfused is not None and whole > unfused:
        yield f"value: {totals.value}, more than unfused"
    bounds = sum((Fraction(group.bound_exact) for group in document.groups), Fraction(0))
    if Fraction(totals.bound_exact) > bounds:
        yield f"bound: {totals.bound}, the groups' bounds add up to {float(bounds)}"
    if whole is not None and (totals.cycles, totals.macs) != (cycles, macs):
        yield f"cycles, macs: {totals.cycles}, {totals.macs}, the groups' sums are {cycles}, {macs}"
