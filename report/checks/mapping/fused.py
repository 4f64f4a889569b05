"""Whether the claims of a fused document hold: every tree is evaluated anew, and sums are added again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.cost.registry import MODELS
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Leaf, tree_from_data
from tilewright.formulation.objective import Objective, parse_objective
from tilewright.formulation.result import relative_gap
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.hardware.mapping.engine import Engine
from tilewright.heuristics.mapping.fused.registry import FUSION_HEURISTICS
from tilewright.report.checks.mapping.head import arch_faults
from tilewright.report.records.mapping.fused_build import beside_record
from tilewright.report.records.mapping.fused_document import (
    FusedBeside,
    FusedDocument,
    FusedGroupRecord,
    FusedTotals,
    FusedTry,
    FusedValue,
    fused_hash,
)
from tilewright.report.records.mapping.fused_evaluation import fused_metrics
from tilewright.report.records.mapping.fused_file import recorded_group
from tilewright.solvers.mapping.fused.answers import Beside, FusedStart, few_linked
from tilewright.solvers.mapping.fused.lines import Line, least_key
from tilewright.solvers.mapping.fused.prices import at_price
from tilewright.solvers.mapping.fused.trees.membership import FusedSpace
from tilewright.solvers.mapping.solve import AUTO


@dataclass
class _Sums:
    """What the groups' trees take together, as far as they can be evaluated."""

    energy: Fraction = Fraction(0)
    cycles: int = 0
    macs: int = 0
    whole: bool = True


def fused_faults(document: FusedDocument, where: str) -> list[str]:
    """Everything that does not hold, each in one line; raises ``InputError`` for a machine that is none."""
    engine = document.arch.build(where)
    try:
        objective = parse_objective(document.objective)
    except InputError as error:
        return [f"objective: {error.message}"]
    faults = [*arch_faults(document.arch), *_head_faults(document)]
    sums = _Sums()
    for index, group in enumerate(document.groups):
        at = f"groups[{index}]"
        faults += [f"{at}.{fault}" for fault in _value_faults(objective, group, group.gap)]
        faults += [f"{at}.unfused.{fault}" for fault in _value_faults(objective, group.unfused, None)]
        faults += [f"{at}.{fault}" for fault in _group_faults(document, group, engine, (where, sums))]
    for index, tried in enumerate(document.tried):
        faults += [f"tried[{index}].{fault}" for fault in _value_faults(objective, tried, None)]
    for index, beside in enumerate(document.beside):
        faults += [f"beside[{index}].{fault}" for fault in _beside_faults(document, beside, engine, where)]
    faults += [f"graph.{fault}" for fault in _graph_faults(document)]
    faults += list(_cover_faults(document))
    faults += [f"totals.{fault}" for fault in _totals_faults(document, objective, sums)]
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
    stated = document.objective, document.space
    asked = fused_hash(document.model, document.batch, document.arch, stated, layers, document.graph)
    if document.input_hash != asked:
        yield "input_hash: not that of model, batch, machine, objective, space and layers"
    if "tilewright" not in document.versions:
        yield "versions: that of tilewright is missing"
    if document.settings.solver != AUTO:
        try:
            FUSION_HEURISTICS.make(document.settings.solver)
        except InputError as error:
            yield f"settings.solver: {error.message}"


def _softmax_faults(group: FusedGroupRecord) -> Iterator[str]:
    """What is said of rows where there are none."""
    for index, layer in enumerate(group.layers):
        if not (layer.rows or layer.softmax):
            yield f"layers[{index}].softmax: false without rows"
        for operand, reading in layer.reads.items():
            if not (reading.rows or reading.softmax):
                yield f"layers[{index}].reads.{operand}.softmax: false without rows"


def _value_faults(objective: Objective, record: FusedValue, gap: float | None) -> Iterator[str]:
    """Figures that are not those of their exact ones, and bounds above values."""
    bound = Fraction(record.bound_exact)
    for name in ("bound_exact", "value_exact"):
        exact = getattr(record, name)
        if exact is not None and exact != str(Fraction(exact)):
            yield f"{name}: {exact}, expected a reduced number"
    if record.bound != float(objective.value(bound)):
        yield f"bound: {record.bound}, exactly {record.bound_exact}"
    if (record.value is None) != (record.value_exact is None):
        yield "value: with its exact figure or without a value"
        return
    if record.value_exact is None:
        if gap is not None:
            yield f"gap: {gap}, without a value"
        return
    value = Fraction(record.value_exact)
    if record.value != float(objective.value(value)):
        yield f"value: {record.value}, exactly {record.value_exact}"
    if bound > value and not isinstance(record, FusedTry):
        yield f"bound: {record.bound} above the value {record.value}"
    if isinstance(record, FusedGroupRecord | FusedTotals) and gap != relative_gap(value, bound):
        yield f"gap: {gap}, value and bound give {relative_gap(value, bound)}"


def _group_faults(
    document: FusedDocument, group: FusedGroupRecord, engine: Engine, place: tuple[str, _Sums]
) -> Iterator[str]:
    """What of a group does not follow from its tree, which is evaluated anew.

    Parameters
    ----------
    document, group, engine : the machine is the document's
    place : what errors call the document, and the sums that the group is added to
    """
    where, sums = place
    proven = group.value_exact is not None and group.value_exact == group.bound_exact
    yield from _softmax_faults(group)
    if proven != (group.status == "optimal"):
        yield f"status: {group.status}, which value and bound contradict"
    try:
        stated = recorded_group(document, group, where)
    except InputError as error:
        sums.whole = False
        yield f"layers: {error.field}: {error.message}"
        return
    if sorted(stated.leaving) != sorted(group.leaving):
        yield f"leaving: {group.leaving}, those that nobody reads leave too"
    if group.tree is None:
        sums.whole = False
        if group.value is not None or group.metrics is not None:
            yield "value: without a tree"
        return
    if group.status == "infeasible":
        yield "status: infeasible, with a tree"
    try:
        tree = tree_from_data(group.tree, where, "tree")
        evaluation = evaluate_fused(stated, engine, cost_model(document.cost_model), tree, where)
    except InputError as error:
        sums.whole = False
        yield f"tree: {error.field}: {error.message}"
        return
    yield from (f"tree: {violation}" for violation in evaluation.violations)
    sums.energy += evaluation.energy
    sums.cycles += evaluation.cycles
    sums.macs += evaluation.macs
    objective = parse_objective(document.objective)
    key = objective.key(evaluation.energy, evaluation.cycles)
    if group.value_exact != str(key):
        yield f"value: {group.value}, the tree's is {float(objective.value(key))}"
    if group.metrics != fused_metrics(evaluation, engine):
        yield "metrics: not those of the tree"
    if len(group.layers) == 1 and not _takes_its_own(objective, group):
        yield "unfused: other figures than the layer's own"
    if len(group.layers) > 1 and (group.unfused.tree is None) != (group.unfused.value is None):
        yield "unfused.tree: expected together with unfused.value, or neither"
    elif group.unfused.tree is not None:
        yield from _unfused_faults(document, group, stated, engine)


def _beside_faults(document: FusedDocument, beside: FusedBeside, engine: Engine, where: str) -> Iterator[str]:
    """What of a mapping from outside the space does not follow from its tree.

    Parameters
    ----------
    document, beside, engine : the machine is the document's
    where : what errors call it
    """
    objective, model = parse_objective(document.objective), cost_model(document.cost_model)
    mapped = {layer.name: layer.operator for group in document.groups for layer in group.layers}
    for index, layer in enumerate(beside.layers):
        if mapped.get(layer.name) != layer.operator:
            yield f"layers[{index}]: {layer.name} is not that of the document"
    try:
        group = recorded_group(document, beside, where)
        tree = tree_from_data(beside.tree, where, "tree")
        evaluation = evaluate_fused(group, engine, model, tree, where)
    except InputError as error:
        yield f"tree: {error.field}: {error.message}"
        return
    yield from (f"tree: {violation}" for violation in evaluation.violations)
    start = FusedStart(beside.source, group, tree)
    if beside != beside_record(objective, engine, Beside(start, evaluation, beside.reason)):
        yield "value, metrics: not those of the tree"
    space = FusedSpace(
        at_price(engine, Fraction(objective.key_powers[1])),
        model,
        document.space.factors,
        document.space.storage,
        document.space.home,
    )
    searched = len(group.names) > 1 and beside.reason != few_linked(document.space.most)
    if searched and space.outside(group, tree) is None:
        yield "tree: lies inside the space"


def _takes_its_own(objective: Objective, group: FusedGroupRecord) -> bool:
    """Whether a layer alone takes as much as it is said to take unfused."""
    own, unfused = group.value_exact, group.unfused.value_exact
    same = own == unfused
    if all(objective.key_powers) and own is not None and unfused is not None:
        # A layer's least product may be at another price than that of the best cover.
        same = Fraction(own) >= Fraction(unfused)
    return same and group.bound_exact == group.unfused.bound_exact


def _unfused_faults(
    document: FusedDocument, group: FusedGroupRecord, stated: FusedGroup, engine: Engine
) -> Iterator[str]:
    """What of the layers one by one does not follow from their mappings."""
    try:
        tree = tree_from_data(group.unfused.tree, "document", "unfused.tree")
        evaluation = evaluate_fused(stated, engine, cost_model(document.cost_model), tree, "document")
    except InputError as error:
        yield f"unfused.tree: {error.field}: {error.message}"
        return
    if tree.nodes or not all(isinstance(child, Leaf) for child in tree.children):
        yield "unfused.tree: shares loops or stores"
    yield from (f"unfused.tree: {violation}" for violation in evaluation.violations)
    objective = parse_objective(document.objective)
    key = objective.key(evaluation.energy, evaluation.cycles)
    if group.unfused.value_exact != str(key):
        yield f"unfused.value: {group.unfused.value}, the tree's is {float(objective.value(key))}"


def _graph_faults(document: FusedDocument) -> Iterator[str]:
    """What of the graph is none, or is not what groups say of their layers."""
    graph = document.graph
    if graph is None:
        return
    place = {name: index for index, name in enumerate(graph.order)}
    if len(place) < len(graph.order):
        yield "order: a layer stands there twice"
    for name in graph.outputs:
        if name not in place:
            yield f"outputs: {unknown_name(name, graph.order)}"
    for index, link in enumerate(graph.links):
        if not (link.layer in place and place[link.layer] < place.get(link.reader, -1)):
            yield f"links[{index}]: {link.reader} does not stand behind {link.layer} in order"
    links = {
        (link.layer, link.reader, link.operand): (link.axes, link.offsets, link.rows, link.softmax)
        for link in graph.links
    }
    for group in document.groups:
        for layer in group.layers:
            if layer.name not in place:
                yield f"order: {layer.name} is missing"
            for operand, read in layer.reads.items():
                if links.get((read.layer, layer.name, operand)) != (
                    read.axes,
                    read.offsets,
                    read.rows,
                    read.softmax,
                ):
                    yield f"links: {layer.name}.{operand} reads {read.layer} otherwise"


def _cover_faults(document: FusedDocument) -> Iterator[str]:
    names = [layer.name for group in document.groups for layer in group.layers]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield f"groups: {name} is in {names.count(name)} groups"
    used = [[layer.name for layer in group.layers] for group in document.groups if len(group.layers) > 1]
    place = {
        name: index for index, name in enumerate(names if document.graph is None else document.graph.order)
    }
    for index, tried in enumerate(document.tried):
        places = [place.get(name, -1) for name in tried.layers]
        if not set(tried.layers) <= set(names) or places != sorted(set(places)):
            yield f"tried[{index}].layers: {tried.layers}, expected layers of the document in their order"
        if tried.used != (tried.layers in used):
            yield f"tried[{index}].used: {str(tried.used).lower()}, which the groups contradict"
    for layers in used:
        if len(layers) > document.space.most:
            yield f"groups: {len(layers)} layers in one, space.most is {document.space.most}"


def _totals_faults(document: FusedDocument, objective: Objective, sums: _Sums) -> Iterator[str]:
    """Sums that are not those of the groups, and a bound that does not follow from its lines."""
    totals = document.totals
    yield from _value_faults(objective, totals, totals.gap)
    if totals.infeasible and all(group.status != "infeasible" for group in document.groups):
        yield "infeasible: true, and no layer is infeasible alone"
    expected = None
    if sums.whole and all(group.value_exact is not None for group in document.groups):
        expected = str(objective.key(sums.energy, sums.cycles))
        reported = totals.energy_pj, totals.cycles, totals.macs
        if reported != (float(sums.energy), sums.cycles, sums.macs):
            yield f"energy_pj, cycles, macs: {reported}, the groups' sums are others"
    elif (totals.energy_pj, totals.cycles, totals.macs) != (None, None, None):
        yield "energy_pj, cycles, macs: without a mapping of all layers"
    if totals.value_exact != expected:
        yield f"value: {totals.value}, the groups' total is {expected}"
    unfused, value = totals.unfused_value_exact, totals.value_exact
    if value is not None and unfused is not None and Fraction(value) > Fraction(unfused):
        yield f"value: {totals.value}, more than unfused"
    shown = unfused and float(objective.value(Fraction(unfused)))
    if totals.unfused_value != shown:
        yield f"unfused_value: {totals.unfused_value}, exactly {unfused}"
    least = Fraction(totals.unfused_bound_exact)
    if totals.unfused_bound != float(objective.value(least)) or str(least) != totals.unfused_bound_exact:
        yield f"unfused_bound: {totals.unfused_bound}, exactly {totals.unfused_bound_exact}"
    bound, fewest = Fraction(totals.bound_exact), Fraction(totals.fewest_cycles)
    if str(fewest) != totals.fewest_cycles or (fewest and not totals.lines):
        yield f"fewest_cycles: {totals.fewest_cycles}, expected a reduced number, 0 without lines"
    if totals.cycles is not None and fewest > totals.cycles:
        yield f"fewest_cycles: {totals.fewest_cycles}, the groups take {totals.cycles}"
    if sum(objective.key_powers) == 1:
        yield from _addition_faults(document, bound)
    else:
        lines = [Line(Fraction(line.price), Fraction(line.least)) for line in totals.lines]
        proven = least_key(objective, lines, fewest)
        if bound > proven:
            yield f"bound: {totals.bound}, the lines give {float(objective.value(proven))}"


def _addition_faults(document: FusedDocument, bound: Fraction) -> Iterator[str]:
    """Energies, or cycles, that are not the sums of the groups'."""
    totals = document.totals
    alone = [group.unfused.value_exact for group in document.groups]
    singles = [Fraction(value) for value in alone if value is not None]
    unfused = str(sum(singles, Fraction(0))) if len(singles) == len(alone) else None
    if unfused != totals.unfused_value_exact:
        yield f"unfused_value: {totals.unfused_value}, the groups' sum is {unfused}"
    least = sum((Fraction(group.unfused.bound_exact) for group in document.groups), Fraction(0))
    if Fraction(totals.unfused_bound_exact) != least:
        yield f"unfused_bound: {totals.unfused_bound}, the groups' sum is {float(least)}"
    bounds = sum((Fraction(group.bound_exact) for group in document.groups), Fraction(0))
    if bound > bounds:
        yield f"bound: {totals.bound}, the groups' bounds add up to {float(bounds)}"
