"""An exploration as a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tilewright.formulation.mapping.claimed_space import ClaimedSpace
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.network_objective import NetworkObjective
from tilewright.formulation.result import Result, Status, TracePoint
from tilewright.formulation.search import DisagreementError
from tilewright.hardware.mapping.design_cost import CAPACITY, PES, design_quantities
from tilewright.hardware.mapping.design_space import Design, DesignSpace
from tilewright.report.records.claims import Number, number, shown_gap
from tilewright.report.records.mapping.answer_sets import answer_record
from tilewright.report.records.mapping.build import versions
from tilewright.report.records.mapping.document import ResultDocument, SettingsRecord
from tilewright.report.records.mapping.explore import (
    BestDesign,
    DesignRecord,
    ExploredLayer,
    ExploreDocument,
    ExploreFront,
    ExploreSettings,
    ExploreTotals,
    LayerBest,
    VariationRecord,
    plain_data,
)
from tilewright.report.records.mapping.growing import GrowingDocument
from tilewright.report.records.mapping.phases import PhasesRecord
from tilewright.solvers.mapping.answers.adoption import AnswerSets
from tilewright.solvers.mapping.explore.bounds import COMPULSORY
from tilewright.solvers.mapping.explore.goals import Progress, best_of, front_of
from tilewright.solvers.mapping.explore.search import Exploration
from tilewright.solvers.mapping.networks.network_problem import NetworkProblem, network_problem
from tilewright.solvers.mapping.networks.network_search import LayerAnswer
from tilewright.workloads.selection import SelectedLayer


@dataclass(frozen=True)
class ExploreQuestion:
    """What is asked of a design space.

    Parameters
    ----------
    model, batch : what runs, for people
    layers : the distinct layers of it
    objective : what is minimised over all of them
    stated : the question about the machine as its file has it; its factors and demands hold for all designs
    costs : per design that is a machine, where a front is asked for
    phases : of a model that runs more than once
    """

    space: DesignSpace
    model: str
    batch: int
    layers: tuple[SelectedLayer, ...]
    objective: NetworkObjective
    stated: NetworkProblem
    settings: ExploreSettings
    costs: tuple[Fraction, ...] | None = None
    phases: PhasesRecord | None = None


def explore_document(question: ExploreQuestion, exploration: Exploration, wall: float) -> ExploreDocument:
    """The document of an exploration, finished or not."""
    goal = [answer for answer in exploration.goals if answer.goal.layer is None and not answer.goal.brief][-1]
    goal.refresh()
    best, counts = best_of(goal.values, question.costs), goal.goal.counts
    known = [
        _Known(place, goal.bound(place), bool(beaten)) for place, beaten in enumerate(goal.beaten().tolist())
    ]
    of_design = {design.index: own for design, own in zip(exploration.designs, known, strict=True)}
    records = [
        _design(question, exploration, goal, design, of_design.get(design.index))
        for design in question.space.designs
    ]
    bounds = [own.bound for own in known]
    chosen = None if best is None else _best(question, exploration, goal, best, bounds)
    layer_bests = _layer_bests(question, exploration) if question.settings.each_layer else []
    front = None
    if question.costs is not None:
        indices = front_of(goal.values, question.costs)
        unproven = [record for record in records if record.status in ("feasible", "open")]
        front = ExploreFront(
            against=question.settings.against or "",
            complete=not unproven,
            designs=[exploration.designs[place].index for place in indices],
        )
    proven = (
        chosen.optimal if chosen is not None else all(r.status in ("infeasible", "refused") for r in records)
    )
    return ExploreDocument(
        **ExploreDocument.head(),
        complete=proven
        and all(answer.optimal for answer in layer_bests)
        and (front is None or front.complete)
        and len(layer_bests) == (len(question.layers) if question.settings.each_layer else 0)
        and not any(record.status == "open" for record in records)
        and not (
            (question.settings.every or question.settings.values)
            and any(_unknown(answer) for answer in records)
        ),
        model=question.model,
        batch=question.batch,
        machine=question.space.name,
        machine_file=plain_data(question.space.description),
        cost_model=question.stated.cost_model,
        factors=question.stated.factors,
        objective=str(question.objective),
        constraints=[*question.stated.constraints],
        settings=question.settings,
        vary=[VariationRecord.of(axis) for axis in question.space.axes],
        phases=question.phases,
        layers=[
            ExploredLayer(
                name=layer.name,
                names=[*layer.names],
                count=layer.count,
                macs=layer.operator.macs,
                runs=layer.runs,
                least_runs=layer.least_runs,
            )
            for layer in question.layers
        ],
        figure=question.objective.figure(sum(counts)) if question.objective.ambiguous(sum(counts)) else "",
        best=chosen,
        layer_bests=layer_bests,
        front=front,
        designs=records,
        totals=_totals(records, exploration),
        wall_s=round(wall, 3),
        versions=versions(),
    )


def _unknown(record: DesignRecord) -> bool:
    """Whether a design that may have a value has none."""
    return record.value is None and record.status not in ("infeasible", "refused")


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a machine of the grid.

    Parameters
    ----------
    place : among those that are machines
    bound : of its value; ``None`` where a layer has no mapping
    beaten : whether that is above what rules it out
    """

    place: int
    bound: Fraction | None
    beaten: bool


def _design(
    question: ExploreQuestion, exploration: Exploration, goal: Progress, design: Design, known: _Known | None
) -> DesignRecord:
    fields = plain_data(question.space.changes(design.place))
    if known is None:
        return DesignRecord(
            index=design.index,
            fields=fields,
            status="refused",
            value=None,
            value_exact=None,
            bound=None,
            bound_exact=None,
            energy_pj=None,
            cycles=None,
            pes=None,
            capacity_bytes=None,
            proven_layers=0,
            message=design.refusal,
        )
    sizes, counts, counting = design_quantities(design), goal.goal.counts, goal.goal.counting
    place, bound = known.place, known.bound
    value = goal.values.get(place)
    energy: Fraction | None = None
    cycles: int | None = None
    summed: Number | None = None
    if value is not None:
        answers = exploration.state.reported(place, counts) or []
        energy = sum((count * (reported.energy or Fraction(0)) for count, reported in answers), Fraction(0))
        cycles = sum(count * (reported.cycles or 0) for count, reported in answers)
        if not question.objective.adds_up(sum(counts)):
            summed = number(
                question.objective.total(
                    (count, reported.value or Fraction(0)) for count, reported in answers
                )
            )
    status, rule, origin, message = _standing(exploration, goal, known)
    return DesignRecord(
        index=design.index,
        fields=fields,
        status=status,  # type: ignore[arg-type]
        value=None if value is None else number(value),
        value_exact=None if value is None else str(value),
        bound=None if bound is None else number(bound),
        bound_exact=None if bound is None else str(bound),
        energy_pj=None if energy is None else number(energy),
        cycles=cycles,
        sum_of_layers=summed,
        pes=int(sizes[PES]),
        capacity_bytes=number(sizes[CAPACITY]),
        cost=None if question.costs is None else number(question.costs[place]),
        proven_layers=sum(bool(exploration.state.proven[layer, place]) for layer in counting),
        rule=rule,  # type: ignore[arg-type]
        carried_from=origin,
        message=message,
    )


def _standing(exploration: Exploration, goal: Progress, known: _Known) -> tuple[str, str, int | None, str]:
    """Status of a design, the rule that discarded it, and the design that the rule's bound is from."""
    state, counting, place = exploration.state, goal.goal.counting, known.place
    failures = [
        answer.reported.message
        for layer in counting
        if (answer := state.known.get((layer, place))) is not None and answer.reported.status == "error"
    ]
    is_pruned = [layer for layer in counting if np.isinf(state.bounds[layer].low[place])]
    if is_pruned:
        return "infeasible", "", None, f"{state.layers[is_pruned[0]].name} has no mapping"
    proven = [bool(state.proven[layer, place]) for layer in counting]
    if all(proven) and goal.values.get(place) == known.bound:
        return "solved", "", None, ""
    if not known.beaten:
        reported = "; ".join(failures[:1])
        return ("feasible" if place in goal.values else "open"), "", None, reported
    if any(proven):
        return "discarded", "searched", None, ""
    bounds = [(state.bounds[layer], layer) for layer in counting]
    origins = {
        layer: bound.anchors[bound.why[place]].design
        for bound, layer in bounds
        if bound.why[place] != COMPULSORY
    }
    if not origins:
        return "discarded", "compulsory", None, ""
    if place in origins.values():
        return "discarded", "capped", None, ""
    heaviest = origins[max(origins, key=lambda layer: goal.share(layer, place))]
    return "discarded", "carried", exploration.designs[heaviest].index, ""


def _grid_bound(bounds: Iterable[Fraction | None], value: Fraction) -> Fraction:
    """No design has a value below this."""
    return min([value, *(bound for bound in bounds if bound is not None)])


def _best(
    question: ExploreQuestion,
    exploration: Exploration,
    goal: Progress,
    place: int,
    bounds: Iterable[Fraction | None],
) -> BestDesign:
    """The best design.

    Parameters
    ----------
    question, exploration, goal : what was asked and found
    place : of the design among those that are machines
    bounds : of all of these
    """
    design, value = exploration.designs[place], goal.values[place]
    bound = _grid_bound(bounds, value)
    gap = shown_gap(question.objective.layer, value, bound)
    return BestDesign(
        index=design.index,
        fields=plain_data(question.space.changes(design.place)),
        value=number(value),
        value_exact=str(value),
        bound=number(bound),
        bound_exact=str(bound),
        gap=0.0 if gap is None else gap,
        optimal=bound == value,
        result=_result(question, exploration, place),
    )


def _layer_bests(question: ExploreQuestion, exploration: Exploration) -> list[LayerBest]:
    bests: list[LayerBest] = []
    for goal in exploration.goals:
        if goal.goal.layer is None:
            continue
        layer = question.layers[goal.goal.layer]
        goal.refresh()
        place = best_of(goal.values, question.costs)
        if place is None:
            continue
        value = goal.values[place]
        bound = _grid_bound(map(goal.bound, range(len(goal.state.engines))), value)
        design = exploration.designs[place]
        bests.append(
            LayerBest(
                layer=layer.name,
                index=design.index,
                fields=plain_data(question.space.changes(design.place)),
                value=number(value),
                value_exact=str(value),
                bound=number(bound),
                bound_exact=str(bound),
                optimal=bound == value,
            )
        )
    return bests


def _result(question: ExploreQuestion, exploration: Exploration, place: int) -> ResultDocument:
    """The best design's layers as ``map`` would have written them."""
    settings, stated = question.settings, question.stated
    engine = exploration.state.engines[place]
    network = network_problem(
        question.layers, engine, stated.objective, stated.constraints, stated.cost_model, stated.factors
    )
    record = SettingsRecord(
        solver=settings.solver,
        time_limit_s=settings.time_limit_s,
        gap=settings.gap,
        threads=1,
        seed=0,
        deterministic=False,
        factors=stated.factors,
    )
    stated_network = replace(network, notes=())
    growing = GrowingDocument(question.model, question.batch, stated_network, record, question.phases)
    for index, (layer, state) in enumerate(zip(network.layers, network.states, strict=True)):
        reported = exploration.state.known[index, place].reported
        problem = state()
        mapping = Mapping.from_data(list(reported.mapping or ()), layer.name)
        evaluation = problem.evaluate(mapping)
        key = problem.key_of(evaluation)
        if evaluation.violations or key != reported.value:
            raise DisagreementError(
                f"{layer.name}: the evaluator finds {key}, the search found {reported.value}"
            )
        point = TracePoint(reported.wall_s, key, reported.bound, settings.solver, improved=True)
        result: Result[Any, Any] = Result(
            status=Status.OPTIMAL if reported.bound == key else Status.FEASIBLE,
            answer=mapping,
            evaluation=evaluation,
            key=key,
            bound=reported.bound,
            trace=(point,),
            method=settings.solver,
            version=versions()["tilewright"],
            seed=0,
            wall_seconds=reported.wall_s,
            input_hash=problem.content_hash,
        )
        growing.add(
            index, answer_record(network, LayerAnswer(layer, result, ClaimedSpace.of(problem), AnswerSets()))
        )
    return growing.document()


def _totals(records: Sequence[DesignRecord], exploration: Exploration) -> ExploreTotals:
    statuses: dict[Any, int] = {}
    rules: dict[Any, int] = {}
    for record in records:
        statuses[record.status] = statuses.get(record.status, 0) + 1
        if record.rule:
            rules[record.rule] = rules.get(record.rule, 0) + 1
    return ExploreTotals(
        designs=len(records),
        statuses=statuses,
        rules=rules,
        unsearched=sum(place not in exploration.searched for place in range(len(exploration.designs))),
        cells={how.value: count for how, count in exploration.counts.items()},
    )
