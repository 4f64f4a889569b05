"""Whether a document of an exploration is correct, as far as the document alone shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.design_caps import parse_caps
from tilewright.hardware.mapping.design_cost import CAPACITY, PES, design_costs, design_quantities
from tilewright.hardware.mapping.design_space import Design, DesignSpace, design_space
from tilewright.hardware.mapping.identity import engine_hash
from tilewright.report.checks.mapping.explore_course import course_faults
from tilewright.report.checks.mapping.explore_head import head_faults, layer_best_faults, shown_faults
from tilewright.report.checks.mapping.phases import growth_faults
from tilewright.report.records.claims import number, shown_gap
from tilewright.report.records.mapping.explore import BestDesign, DesignRecord, ExploreDocument, plain_data
from tilewright.solvers.mapping.explore.bounds import SAFE

_CLOSE = 1e-9
"""By which figures of rounded energies may differ, relatively."""
_TOLERANCE = Fraction(1, 10**9)
"""The same, of exact figures."""


def explore_faults(document: ExploreDocument, where: str) -> list[str]:
    """Everything that contradicts itself, each in one line; the best design's mappings are another check.

    Raises
    ------
    InputError : for a machine or an objective that is none
    """
    space = stated_space(document, where)
    if len(document.designs) != len(space.designs):
        return [f"designs: {len(document.designs)}, the grid has {len(space.designs)}"]
    pairs = [*zip(space.designs, document.designs, strict=True)]
    misplaced = [fault for design, record in pairs for fault in _place_faults(design, record)]
    if misplaced:  # nothing else can be said of designs outside the grid
        return misplaced
    usable = [design for design in space.designs if design.engine is not None]
    costs: dict[int, Fraction] = {}
    if document.settings.against is not None:
        values = design_costs(document.settings.against, usable)
        costs = {design.index: cost for design, cost in zip(usable, values, strict=True)}
    faults = [
        fault
        for design, record in pairs
        for fault in _design_faults(space, design, record, costs.get(design.index), document)
    ]
    if document.phases is not None:
        for design in usable:
            assert design.engine is not None
            faults += growth_faults(
                document.phases, design.engine, document.cost_model, document.factors, document.constraints
            )
    faults += _figure_faults(document)
    faults += _standing_faults(document, costs)
    faults += _best_faults(document, space)
    faults += layer_best_faults(document)
    faults += _front_faults(document, costs)
    return [*faults, *_totals_faults(document), *course_faults(document), *head_faults(document)]


def stated_space(document: ExploreDocument, where: str) -> DesignSpace:
    """The design space that a document is about; raises ``InputError``."""
    axes = [axis.build(where) for axis in document.vary]
    caps, others = parse_caps(document.settings.caps)
    if others:
        raise InputError(where, "settings.caps", f"expected caps such as area<=10mm2, got {others[0]!r}")
    return design_space(document.machine_file, where, document.machine, axes, caps)


def _place_faults(design: Design, record: DesignRecord) -> Iterator[str]:
    here = f"designs[{design.index}]"
    if record.index != design.index:
        yield f"{here}.index: {record.index}, expected {design.index}"
    if (record.status == "refused") != (design.engine is None):
        yield f"{here}.status: {record.status}, but its fields are {'a' if design.engine else 'no'} machine"


def _design_faults(
    space: DesignSpace, design: Design, record: DesignRecord, cost: Fraction | None, document: ExploreDocument
) -> Iterator[str]:
    here = f"designs[{design.index}]"
    fields = plain_data(space.changes(design.place))
    if record.fields != fields:
        yield f"{here}.fields: {record.fields}, the grid has {fields}"
    if design.engine is not None:
        sizes = design_quantities(design)
        for name, reported, fresh in (
            ("pes", record.pes, sizes[PES]),
            ("capacity_bytes", record.capacity_bytes, sizes[CAPACITY]),
            ("cost", record.cost, cost),
        ):
            if reported != (None if fresh is None else number(fresh)):
                yield f"{here}.{name}: {reported}, the machine has {fresh}"
    yield from shown_faults(record, here)
    yield from _energy_faults(record, document, here)
    yield from _sum_faults(record, document, here)
    if (record.rule == "carried") != (record.carried_from is not None):
        yield f"{here}.carried_from: {record.carried_from}, but the rule is {record.rule or 'none'}"
    if record.carried_from is not None and not 0 <= record.carried_from < len(space.designs):
        yield f"{here}.carried_from: {record.carried_from}, the grid has {len(space.designs)} designs"
    if record.carried_from == record.index:
        yield f"{here}.carried_from: itself"


def _figure_faults(document: ExploreDocument) -> Iterator[str]:
    """What values are is reported where it could be two things; older documents know sums alone."""
    goal = document.goal
    figure = goal.figure(document.instances) if goal.ambiguous(document.instances) else ""
    is_older = not document.figure and document.objective == str(goal.layer)
    if document.figure != figure and not is_older:
        yield f"figure: {document.figure or 'none'}, expected {figure or 'none'}"


def _energy_faults(record: DesignRecord, document: ExploreDocument, here: str) -> Iterator[str]:
    """Energy and cycles are there with a value, and make it; a sum of products is below that of sums."""
    goal = document.goal
    reported = [record.energy_pj is not None, record.cycles is not None]
    if any(reported) != (record.value is not None) or any(reported) != all(reported):
        yield f"{here}: energy_pj and cycles are present if and only if there is a value"
    elif record.value_exact is not None:
        made = goal.layer.key(Fraction(record.energy_pj or 0), record.cycles or 0)
        ratio = float(made / Fraction(record.value_exact)) if Fraction(record.value_exact) else 1.0
        same = not goal.summed or not goal.ambiguous(document.instances)
        if ratio < 1 - _CLOSE or (same and ratio > 1 + _CLOSE):
            yield f"{here}: energy_pj and cycles do not make the value {record.value}"


def _sum_faults(record: DesignRecord, document: ExploreDocument, here: str) -> Iterator[str]:
    """The layers' sum is there beside an objective of totals, and lies where such sums do.

    It is at most the value; and by the inequality of power means at least the bound over so many layers.
    """
    goal, instances, reported = document.goal, document.instances, record.sum_of_layers
    if (reported is None) != (goal.adds_up(instances) or record.value_exact is None):
        yield f"{here}.sum_of_layers: {reported}, expected with a value of totals, and only there"
    elif reported is not None and record.value_exact is not None and record.bound_exact is not None:
        least = Fraction(record.bound_exact) / instances ** (sum(goal.layer.key_powers) - 1)
        if (
            not least * (1 - _TOLERANCE)
            <= Fraction(reported)
            <= Fraction(record.value_exact) * (1 + _TOLERANCE)
        ):
            yield f"{here}.sum_of_layers: {reported}, which no mappings of that value and bound have"


def _standing_faults(document: ExploreDocument, costs: dict[int, Fraction]) -> Iterator[str]:
    """Statuses must follow from values and bounds."""
    known = {
        design.index: Fraction(design.value_exact)
        for design in document.designs
        if design.value_exact is not None
    }
    for record in document.designs:
        here = f"designs[{record.index}]"
        value = known.get(record.index)
        bound = record.bound_key
        if value is not None and bound is not None and bound > value:
            yield f"{here}.bound: above the value"
        if record.status == "solved" and (value is None or value != bound):
            yield f"{here}.status: solved, but value and bound are not equal"
        if (record.status == "feasible" and value is None) or (record.status == "open" and value is not None):
            yield f"{here}.status: {record.status}, but its value is {record.value}"
        if record.rule and record.status != "discarded":
            yield f"{here}.rule: {record.rule}, but the status is {record.status}"
        if record.status in ("infeasible", "refused") and (value is not None or bound is not None):
            yield f"{here}.status: {record.status}, but it has a value or a bound"
        if record.status == "discarded":
            rivals = [
                other
                for index, other in known.items()
                if index != record.index and (not costs or costs[index] <= costs[record.index])
            ]
            if bound is None or not rivals or bound < min(rivals) * Fraction(SAFE):
                yield f"{here}.status: discarded, but its bound is not above any other design's value"
            if not record.rule:
                yield f"{here}.rule: missing, expected the rule that discarded it"


def _best_faults(document: ExploreDocument, space: DesignSpace) -> Iterator[str]:
    valued = [design for design in document.designs if design.value_exact is not None]
    best = document.best
    if best is None:
        if valued:
            yield "best: missing, but designs have values"
        return
    yield from shown_faults(best, "best")
    record = document.designs[best.index] if 0 <= best.index < len(document.designs) else None
    if record is None or record.value_exact is None:
        yield f"best.index: {best.index}, which has no value"
        return
    value, bound = Fraction(best.value_exact), Fraction(best.bound_exact)
    if Fraction(record.value_exact) != value or record.fields != best.fields:
        yield f"best: differs from designs[{best.index}] tells"
    if min(Fraction(design.value_exact or 0) for design in valued) != value:
        yield "best.value: another design has a smaller one"
    bounds = [Fraction(design.bound_exact) for design in document.designs if design.bound_exact is not None]
    if bound != min([value, *bounds]):
        yield f"best.bound: {best.bound}, the designs' bounds give {float(min([value, *bounds]))}"
    gap = shown_gap(document.goal.layer, value, bound) or 0.0
    if (gap, value == bound) != (best.gap, best.optimal):
        yield "best: value, bound, gap and optimal do not fit each other"
    totals = best.result.totals
    if (record.energy_pj, record.cycles) != (totals.energy_pj, totals.cycles):
        yield f"designs[{best.index}]: energy_pj and cycles are not those of the best design's layers"
    yield from _result_faults(document, best, value, space)


def _result_faults(
    document: ExploreDocument, best: BestDesign, value: Fraction, space: DesignSpace
) -> Iterator[str]:
    """The best design's result is about that machine and those layers, and adds up to the value."""
    result, design = best.result, space.designs[best.index]
    if design.engine is None or result.arch.hash != engine_hash(design.engine):
        yield "best.result.arch: not the machine of the best design's fields"
    elif result.arch.name != design.engine.name:
        yield f"best.result.arch.name: {result.arch.name}, the design is {design.engine.name}"
    for name in ("model", "batch", "cost_model", "constraints", "phases"):
        if getattr(result, name) != getattr(document, name):
            yield f"best.result.{name}: {getattr(result, name)}, expected {getattr(document, name)}"
    if result.objective != str(document.goal.layer):
        yield f"best.result.objective: {result.objective}, expected {document.goal.layer}"
    settings = result.settings
    asked = settings.solver, settings.time_limit_s, settings.gap, settings.factors
    wanted = document.settings.solver, document.settings.time_limit_s, document.settings.gap, document.factors
    if asked != wanted or (settings.threads, settings.seed, settings.deterministic) != (1, 0, False):
        yield "best.result.settings: not those of the exploration"
    if result.versions != document.versions:
        yield "best.result.versions: not those of the document"
    if not result.complete:
        yield "best.result.complete: false, but a design has a value only if all its layers have one"
    reported = [(layer.name, layer.names) for layer in result.layers]
    if reported != [(layer.name, layer.names) for layer in document.layers]:
        yield "best.result.layers: not the layers of the document"
    goal, record = document.goal, document.designs[best.index]
    known = [(layer.count, layer.metrics) for layer in result.layers if layer.metrics is not None]
    keys = [(layer.count, layer.value_key) for layer in result.layers if layer.value_key is not None]
    if len(known) < len(result.layers) or len(keys) < len(result.layers):
        yield "best.result: a layer has no mapping"
        return
    made = goal.value((count, Fraction(metrics.energy_pj_exact), metrics.cycles) for count, metrics in known)
    if made != value:
        yield f"best.value: {best.value}, its layers do not add up to that"
    summed = number(goal.total(keys))
    if not goal.adds_up(document.instances) and record.sum_of_layers != summed:
        yield f"designs[{best.index}].sum_of_layers: {record.sum_of_layers}, its layers have {summed}"
    bounds = [(layer.least_count, layer.bound_key) for layer in result.layers if layer.status == "optimal"]
    if len(bounds) == len(result.layers):
        least = goal.bound((count, bound) for count, bound in bounds if bound is not None)
        if record.bound_exact != str(least):
            yield f"designs[{best.index}].bound: {record.bound}, its layers' bounds give {number(least)}"


def _front_faults(document: ExploreDocument, costs: dict[int, Fraction]) -> Iterator[str]:
    if (document.front is None) != (document.settings.against is None):
        yield "front: expected with settings.against, and only then"
    if document.front is None or not costs:
        return
    if document.front.against != document.settings.against:
        yield f"front.against: {document.front.against}, settings.against is {document.settings.against}"
    values = {
        design.index: Fraction(design.value_exact)
        for design in document.designs
        if design.value_exact is not None
    }
    front: list[int] = []
    for index in sorted(values, key=lambda design: (costs[design], values[design], design)):
        if not front or values[index] < values[front[-1]]:
            front.append(index)
    if document.front.designs != front:
        yield f"front.designs: {document.front.designs}, values and costs give {front}"
    unproven = _count(document.designs, ("feasible", "open"))
    if document.front.complete != (unproven == 0):
        yield f"front.complete: {document.front.complete}, but {unproven} designs are not proven"


def _totals_faults(document: ExploreDocument) -> Iterator[str]:
    totals = document.totals
    if totals.designs != len(document.designs):
        yield f"totals.designs: {totals.designs}, expected {len(document.designs)}"
    statuses = {design.status for design in document.designs}
    fresh = {status: _count(document.designs, (status,)) for status in statuses}
    if totals.statuses != fresh:
        yield f"totals.statuses: {totals.statuses}, the designs have {fresh}"
    rules = {design.rule for design in document.designs if design.rule}
    counted = {rule: sum(design.rule == rule for design in document.designs) for rule in rules}
    if totals.rules != counted:
        yield f"totals.rules: {totals.rules}, the designs have {counted}"
    for layer, reported in zip(
        document.layers, document.best.result.layers if document.best else [], strict=False
    ):
        stated = layer.count, layer.runs, layer.least_runs, layer.macs
        macs = reported.operator.build(reported.name).macs
        if stated != (reported.count, reported.runs, reported.least_runs, macs):
            yield f"layers: {layer.name}: count or MACs are not those of the best design's result"


def _count(designs: Sequence[DesignRecord], statuses: tuple[str, ...]) -> int:
    return sum(design.status in statuses for design in designs)
