"""Results as records of the document."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version

from tilewright import __version__
from tilewright.formulation.effort import Effort
from tilewright.formulation.mapping.claimed_space import ClaimedSpace
from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerResult
from tilewright.formulation.network_objective import NetworkObjective
from tilewright.formulation.objective import Objective
from tilewright.formulation.result import Origin, OutOfSpaceSolution, Status, TracePoint
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.claims import (
    TraceRecord,
    at_most,
    claim,
    figures,
    number,
    shown_gap,
    shown_value,
)
from tilewright.report.records.mapping.document import (
    AccessRecord,
    BesideRecord,
    BestRecord,
    EffortRecord,
    FactorsName,
    FrontRecord,
    LayerRecord,
    MappingRecord,
    MethodEffortRecord,
    MetricsRecord,
    OptimaRecord,
    SolutionRecord,
    SpaceRecord,
    ThenRecord,
    TotalsRecord,
)
from tilewright.report.records.mapping.operator import OperatorRecord
from tilewright.solvers.mapping.answers.answer_sets import Solution
from tilewright.workloads.selection import SelectedLayer

_LIBRARIES = ("numpy", "ortools")


def key_gap(objective: Objective, gap: float) -> float:
    """The gap between keys that a gap between values amounts to."""
    return float(1 - (1 - gap) ** objective.root)


def metrics_record(evaluation: Evaluation, engine: Engine) -> MetricsRecord:
    """What the evaluator said, as data."""
    return MetricsRecord(
        energy_pj=number(evaluation.energy),
        energy_pj_exact=str(evaluation.energy),
        cycles=evaluation.cycles,
        edp=number(evaluation.energy * evaluation.cycles),
        time_s=_time(evaluation.cycles, engine),
        macs=evaluation.macs,
        utilization=evaluation.utilization,
        energy_by_component_pj={name: number(part) for name, part in evaluation.components.items()},
        accesses=[
            AccessRecord(
                level=row.level,
                tensor=row.tensor,
                reads=row.reads,
                fills=row.fills,
                updates=row.updates,
                tile=row.tile,
            )
            for row in evaluation.accesses
        ],
        details=dict(evaluation.details),
    )


def _time(cycles: int, engine: Engine) -> float:
    """Seconds that so many cycles take at the engine's clock."""
    return float(cycles / (engine.clock_mhz * 10**6))


def solution_record(solution: Solution) -> SolutionRecord:
    """A mapping with its energy and cycles, as data."""
    evaluation = solution.evaluation
    return SolutionRecord(
        energy_pj=number(evaluation.energy),
        energy_pj_exact=str(evaluation.energy),
        cycles=evaluation.cycles,
        edp=number(evaluation.energy * evaluation.cycles),
        mapping=MappingRecord(nodes=solution.mapping.to_data()),
    )


def solution_records(solutions: Iterable[Solution]) -> list[SolutionRecord]:
    """Several mappings, as data."""
    return [solution_record(solution) for solution in solutions]


def factors_of(problem: LayerProblem) -> FactorsName:
    """Whether the tiles of a problem's space divide the tiles around them."""
    return "perfect" if problem.space.nest.perfect else "imperfect"


def space_record(space: ClaimedSpace) -> SpaceRecord:
    """The space that claims are about, as data."""
    return SpaceRecord.model_validate(
        {
            "storage": space.storage,
            "factors": space.factors,
            "tiles": dict(space.tiles),
            "constraints": list(space.constraints),
        }
    )


def out_of_space_record(
    objective: Objective, beside: OutOfSpaceSolution[Mapping, Evaluation]
) -> BesideRecord:
    """A mapping from outside the space, as data."""
    reported = solution_record(Solution(beside.answer, beside.evaluation))
    return BesideRecord(
        **dict(reported),
        value=objective.value(beside.key),
        value_exact=str(beside.key),
        reason=beside.reason,
        source=beside.source,
    )


def trace_record(objective: Objective, point: TracePoint) -> TraceRecord:
    """One step of a search, as data."""
    return TraceRecord(
        seconds=round(point.seconds, 4),
        value=shown_value(objective, point.key),
        bound=shown_value(objective, point.bound),
        gap=shown_gap(objective, point.key, point.bound),
        source=point.source,
        improved=point.improved,
        heuristic=point.origin is not Origin.EXACT,
    )


def effort_record(effort: Effort) -> EffortRecord:
    """What a search took, as data."""
    methods = [
        MethodEffortRecord(
            method=method.method,
            nodes=method.nodes,
            nodes_per_s=None if method.nodes_per_second is None else round(method.nodes_per_second, 1),
            trees=method.trees,
            table_bytes=method.table_bytes,
            seconds=round(method.seconds, 4),
        )
        for method in effort.methods
    ]
    return EffortRecord(methods=methods, peak_memory_bytes=effort.peak_memory_bytes)


def layer_record(
    layer: SelectedLayer,
    engine: Engine,
    objective: Objective,
    constraints: Sequence[str],
    result: LayerResult,
    factors: FactorsName | None = None,
    space: SpaceRecord | None = None,
    front: FrontRecord | None = None,
    best: BestRecord | None = None,
    optima: OptimaRecord | None = None,
    then: ThenRecord | None = None,
) -> LayerRecord:
    """The record of one layer's answer.

    Parameters
    ----------
    layer : an operator, and all layers of the network that have it
    constraints : the user's demands as written
    factors, space : those of the problem; ``None`` where none was stated
    """
    return LayerRecord(
        name=layer.name,
        names=list(layer.names),
        operator=OperatorRecord.of(layer.operator),
        bounds=dict(layer.operator.bounds),
        count=layer.count,
        runs=layer.runs,
        least_runs=layer.least_runs,
        **claim(objective, result),
        metrics=None if result.evaluation is None else metrics_record(result.evaluation, engine),
        mapping=None if result.answer is None else MappingRecord(nodes=result.answer.to_data()),
        solver=result.method,
        solver_version=result.version,
        seed=result.seed,
        wall_s=round(result.wall_seconds, 4),
        input_hash=result.input_hash or None,
        constraints=list(constraints),
        factors=factors,
        space=space,
        trace=[trace_record(objective, point) for point in result.trace],
        effort=effort_record(result.effort),
        message=result.message,
        beside=None if result.out_of_space is None else out_of_space_record(objective, result.out_of_space),
        clash=list(result.conflict),
        then=then,
        front=front,
        best=best,
        optima=optima,
    )


def then_record(objective: Objective, result: LayerResult) -> ThenRecord:
    """The record of a second objective's answer."""
    return ThenRecord(
        objective="energy" if objective.name == "energy" else "cycles",
        status=result.status.value,
        **figures(result.key, result.bound, objective.value),
        solver=result.method,
        wall_s=round(result.wall_seconds, 4),
    )


def totals_record(objective: Objective, engine: Engine, layers: Sequence[LayerRecord]) -> TotalsRecord:
    """Sums over layers, each as often as the network has it."""
    statuses: dict[str, int] = {}
    for layer in layers:
        statuses[layer.status] = statuses.get(layer.status, 0) + layer.count
    energy: Fraction | None = Fraction(0)
    cycles: int | None = 0
    for layer in layers:
        if layer.metrics is None or energy is None or cycles is None:
            energy = cycles = None
            break
        energy += layer.count * Fraction(layer.metrics.energy_pj_exact)
        cycles += layer.count * layer.metrics.cycles
    bounds = [(layer.least_count, layer.bound_key) for layer in layers]
    known = [(count, bound) for count, bound in bounds if bound is not None]
    is_edp = objective.key_powers == (1, 1) and objective.root == 1
    least = (
        NetworkObjective(objective).bound(known) if is_edp and known and len(known) == len(bounds) else None
    )
    is_sum = objective.root == 1 and sum(objective.key_powers) == 1
    value = _weighted([(layer.count, layer.value_key) for layer in layers]) if is_sum else None
    bound = _weighted(bounds) if is_sum else None
    products = [
        None if row.metrics is None else Fraction(row.metrics.energy_pj_exact) * row.metrics.cycles
        for row in layers
    ]
    summed = _weighted([(layer.count, edp) for layer, edp in zip(layers, products, strict=True)])
    return TotalsRecord(
        layers=sum(layer.count for layer in layers),
        distinct=len(layers),
        statuses={status.value: statuses[status] for status in Status if status in statuses},
        macs=sum(layer.count * OperatorRecord.build(layer.operator, layer.name).macs for layer in layers),
        energy_pj=None if energy is None else number(energy),
        energy_pj_exact=None if energy is None else str(energy),
        cycles=cycles,
        edp=None if energy is None or cycles is None else number(energy * cycles),
        time_s=None if cycles is None else _time(cycles, engine),
        **figures(value, bound, objective.value),
        gap=shown_gap(objective, value, bound),
        edp_bound=None if least is None else at_most(least),
        sum_of_layer_edp=None if summed is None else number(summed),
        without_mapping=[name for layer in layers if layer.metrics is None for name in layer.names],
    )


def _weighted(parts: Sequence[tuple[int, Fraction | None]]) -> Fraction | None:
    """The sum of counts times keys; ``None`` where one is missing."""
    total = Fraction(0)
    for count, key in parts:
        if key is None:
            return None
        total += count * key
    return total


def versions() -> dict[str, str]:
    """Versions of everything that the numbers depend on."""
    versions_used = {"tilewright": __version__, "python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            versions_used[library] = version(library)
        except PackageNotFoundError:
            continue
    return versions_used
