"""Whether fronts, best and optimal mappings of a document are what they claim to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from tilewright.formulation.mapping.canonical import CanonicalForm, canonical_form
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError
from tilewright.report.records.claims import number, shown_value
from tilewright.report.records.mapping.document import LayerRecord, SolutionRecord
from tilewright.report.text.mapping.answer_sets import key_of


def further_faults(layer: LayerRecord, problem: LayerProblem) -> Iterator[str]:
    """What is wrong with a layer's conflict, front, best and optimal mappings."""
    yield from _conflict_faults(layer, problem)
    yield from _then_faults(layer)
    if layer.front is not None:
        points = layer.front.points
        yield from _solution_faults(points, "front.points", problem)
        yield from _agreement_faults(points, "front", layer, problem, layer.front.complete)
        yield from _front_faults(points, layer)
    if layer.best is not None:
        listed = layer.best.mappings
        yield from _solution_faults(listed, "best.mappings", problem)
        yield from _agreement_faults(listed, "best", layer, problem, layer.best.complete)
        yield from _best_faults(listed, problem)
    if layer.optima is not None:
        listed = layer.optima.mappings
        yield from _solution_faults(listed, "optima.mappings", problem)
        if layer.status == "optimal" or layer.optima.complete:
            yield from _agreement_faults(listed, "optima", layer, problem, layer.optima.complete)
        yield from _optima_faults(listed, layer, problem)


def _then_faults(layer: LayerRecord) -> Iterator[str]:
    """The layer's mapping has the second objective's value, and its status fits value and bound."""
    then = layer.then
    if then is None:
        return
    if layer.metrics is None:
        yield "then: a second objective without a mapping"
        return
    objective = parse_objective(then.objective)
    reported, bound = then.value_key, then.bound_key
    recomputed = objective.key(Fraction(layer.metrics.energy_pj_exact), layer.metrics.cycles)
    for field, text, key in (("value", then.value_exact, reported), ("bound", then.bound_exact, bound)):
        if key is not None and text != str(key):
            yield f"then.{field}_exact: {text}, expected {key}"
    if reported != recomputed or then.value != shown_value(objective, recomputed):
        yield f"then.value: {then.value}, the layer's mapping has {shown_value(objective, recomputed)}"
    if then.bound != shown_value(objective, bound):
        yield f"then.bound: {then.bound}, but bound_exact is {then.bound_exact}"
    if bound is not None and bound > recomputed:
        yield f"then.bound: {then.bound} above the value {then.value}"
    if (then.status == "optimal") != (bound == recomputed):
        equal = "equal" if bound == recomputed else "not equal"
        yield f"then.status: {then.status}, but value and bound are {equal}"
    if bound is not None and layer.status != "optimal":
        yield f"then.bound: {then.bound} among optimal mappings, but the layer is {layer.status}"


def _solution_faults(solutions: Sequence[SolutionRecord], where: str, problem: LayerProblem) -> Iterator[str]:
    """Every mapping is evaluated again; it must be legal and cost what is reported."""
    for index, solution in enumerate(solutions):
        place = f"{where}[{index}]"
        try:
            evaluation = problem.evaluate(Mapping.from_data(solution.mapping.nodes, place), place)
        except InputError as error:
            yield str(error)
            continue
        yield from (f"{place}: illegal mapping: {violation}" for violation in evaluation.violations)
        reason = problem.outside(Mapping.from_data(solution.mapping.nodes, place))
        if reason is not None:
            yield f"{place}: outside the space of the claim: {reason}"
        fresh = {
            "energy_pj": number(evaluation.energy),
            "energy_pj_exact": str(evaluation.energy),
            "cycles": evaluation.cycles,
            "edp": number(evaluation.energy * evaluation.cycles),
        }
        for field, value in fresh.items():
            reported = getattr(solution, field)
            if reported != value:
                yield f"{place}.{field}: {reported}, the evaluator finds {value}"


def _agreement_faults(
    solutions: Sequence[SolutionRecord], where: str, layer: LayerRecord, problem: LayerProblem, complete: bool
) -> Iterator[str]:
    """The best one must be as good as the layer's mapping and no better, and complete lists prove that."""
    least = min((key_of(problem.objective, solution) for solution in solutions), default=None)
    if least != layer.value_key:
        reported = "nothing" if least is None else problem.objective.value(least)
        yield f"{where}: the least value is {reported}, that of the layer is {layer.value}"
    if complete and layer.status not in ("optimal", "infeasible"):
        yield f"{where}: complete, but the layer is {layer.status}"


def _front_faults(points: Sequence[SolutionRecord], layer: LayerRecord) -> Iterator[str]:
    """In increasing order of cycles the energy must fall, and no mapping that is known may beat it."""
    pairs = [(Fraction(point.energy_pj_exact), point.cycles) for point in points]
    for index, (before, after) in enumerate(pairwise(pairs), 1):
        if after[1] <= before[1]:
            yield f"front.points[{index}]: not more cycles than the point before it"
        elif after[0] >= before[0]:
            yield f"front.points[{index}]: dominated by the point before it"
    known = [] if layer.metrics is None else [(layer.metrics.energy_pj_exact, layer.metrics.cycles)]
    for listed in (layer.best.mappings if layer.best else (), layer.optima.mappings if layer.optima else ()):
        known += [(solution.energy_pj_exact, solution.cycles) for solution in listed]
    for energy, cycles in dict.fromkeys(known):
        if not any(e <= Fraction(energy) and c <= cycles for e, c in pairs):
            yield f"front: no point is as good as a mapping of {energy} pJ and {cycles} cycles"


def _best_faults(listed: Sequence[SolutionRecord], problem: LayerProblem) -> Iterator[str]:
    keys = [key_of(problem.objective, solution) for solution in listed]
    for index, (before, after) in enumerate(pairwise(keys), 1):
        if after < before:
            yield f"best.mappings[{index}]: better than the mapping before it"
    yield from _repeated(listed, "best.mappings", problem)


def _optima_faults(
    listed: Sequence[SolutionRecord], layer: LayerRecord, problem: LayerProblem
) -> Iterator[str]:
    assert layer.optima is not None
    for index, solution in enumerate(listed):
        if key_of(problem.objective, solution) != layer.bound_key:
            yield f"optima.mappings[{index}]: its value is not the bound"
    yield from _repeated(listed, "optima.mappings", problem)
    if layer.optima.count != len(listed):
        yield f"optima.count: {layer.optima.count}, but {len(listed)} mappings"


def _repeated(listed: Sequence[SolutionRecord], where: str, problem: LayerProblem) -> Iterator[str]:
    """Mappings are the same where tiles, stores and the effects of their orders are."""
    seen: set[CanonicalForm] = set()
    for index, solution in enumerate(listed):
        try:
            mapping = Mapping.from_data(solution.mapping.nodes)
            mapping.validate(problem.operator, problem.engine)
        except InputError:
            continue  # reported elsewhere
        form = canonical_form(problem.operator, problem.engine, mapping)
        if form in seen:
            yield f"{where}[{index}]: the same as a mapping before it"
        seen.add(form)


def _conflict_faults(layer: LayerRecord, problem: LayerProblem) -> Iterator[str]:
    """Only constraints of the problem can conflict, and only where there is no mapping."""
    if layer.clash and layer.status != "infeasible":
        yield f"clash: conflicting constraints, but the layer is {layer.status}"
    if len(set(layer.clash)) < len(layer.clash):
        yield "clash: a constraint appears twice"
    known = {*problem.constraints.texts, *(limit.name for limit in problem.statement.limits)}
    yield from (f"clash: {name!r} is no constraint of the layer" for name in layer.clash if name not in known)
