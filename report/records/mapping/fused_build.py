"""Fused documents made from what a search found."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch
from tilewright.formulation.mapping.fused.turns import MOST_TURNS
from tilewright.formulation.objective import Objective
from tilewright.formulation.result import Status, relative_gap
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.mapping.build import versions
from tilewright.report.records.mapping.engine import ArchRecord
from tilewright.report.records.mapping.fused_document import (
    FusedBeside,
    FusedDocument,
    FusedGraph,
    FusedGroupRecord,
    FusedLayer,
    FusedLine,
    FusedLink,
    FusedSettings,
    FusedSpace,
    FusedTotals,
    FusedTry,
    FusedUnfused,
    FusedUnlinked,
    fused_hash,
)
from tilewright.report.records.mapping.fused_evaluation import fused_metrics
from tilewright.report.records.mapping.fused_file import group_data
from tilewright.report.records.mapping.operator import OperatorRecord
from tilewright.solvers.mapping.fused.answers import Beside, Figures, FusionAnswer, GroupAnswer, status_of
from tilewright.solvers.mapping.fused.problem import FusionProblem
from tilewright.workloads.network import Network


def fused_document(
    problem: FusionProblem, answer: FusionAnswer, settings: FusedSettings, *, stopped: bool, seconds: float
) -> FusedDocument:
    """The document of a whole network.

    Parameters
    ----------
    problem, answer : what was asked and found
    settings : how the search was asked to run
    stopped : whether the user ended it
    seconds : of the whole call
    """
    groups = [
        _group_record(problem, group, _unfused_record(problem, figures, apart), stopped=stopped)
        for group, figures, apart in zip(answer.groups, answer.unfused, answer.apart, strict=True)
    ]
    costs = [group.evaluation for group in answer.groups]
    known = [cost for cost in costs if cost is not None]
    whole = len(known) == len(costs)
    used = {tuple(group.group.names) for group in answer.groups if group.is_fused}
    arch = ArchRecord.of(problem.engine)
    space = space_record(problem)
    layers = [layer for group in groups for layer in group.layers]
    graph, named = graph_record(problem.network), (problem.network.name, problem.network.batch)
    return FusedDocument.model_validate(
        {
            **FusedDocument.head(),
            "complete": not stopped and all(tried.is_settled for tried in answer.tried),
            "model": problem.network.name,
            "batch": problem.network.batch,
            "arch": arch,
            "cost_model": problem.model_name,
            "objective": str(problem.objective),
            "space": space,
            "input_hash": fused_hash(*named, arch, (str(problem.objective), space), layers, graph),
            "settings": settings,
            "graph": graph,
            "groups": groups,
            "tried": [
                FusedTry(
                    layers=tried.group.names,
                    used=tuple(tried.group.names) in used,
                    reason=tried.reason,
                    skeletons=tried.skeletons,
                    opened=tried.opened,
                    solves=tried.solves,
                    wall_s=round(tried.seconds, 3),
                    **_figures(problem, tried.value, tried.bound),
                )
                for tried in answer.tried
            ],
            "unlinked": [
                FusedUnlinked(
                    layer=pair.producer, reader=pair.reader, operand=pair.operand, reason=pair.reason
                )
                for pair in answer.unlinked
            ],
            "beside": [beside_record(problem.objective, problem.engine, own) for own in answer.beside],
            "totals": FusedTotals(
                infeasible=answer.impossible,
                gap=relative_gap(answer.value, answer.bound),
                **{f"unfused_{name}": part for name, part in _figures(problem, *answer.alone).items()},
                energy_pj=float(sum((cost.energy for cost in known), Fraction(0))) if whole else None,
                cycles=sum(cost.cycles for cost in known) if whole else None,
                macs=sum(cost.macs for cost in known) if whole else None,
                lines=[FusedLine(price=str(line.price), least=str(line.least)) for line in answer.lines],
                fewest_cycles=str(answer.fewest) if answer.lines else "0",
                **_figures(problem, answer.value, answer.bound),
            ),
            "wall_s": round(seconds, 3),
            "versions": versions(),
        }
    )


def space_record(problem: FusionProblem) -> FusedSpace:
    """The space that a problem's claims are about, as data."""
    return FusedSpace(
        most=problem.most,
        home=problem.home_level,
        shared_tiles="divisors" if problem.factors == "perfect" else "trip-counts",
        most_turns=MOST_TURNS,
        factors="perfect" if problem.factors == "perfect" else "imperfect",
        storage="uneven" if problem.storage == "uneven" else "even",
        online_softmax=problem.online_softmax,
    )


def graph_record(network: Network) -> FusedGraph:
    """Which layers wait for which, as data."""
    links = [
        FusedLink(
            layer=link.producer,
            reader=link.consumer,
            operand=link.operand,
            axes=None if link.axes is None else [*link.axes],
            offsets=[*link.offsets],
            rows=[*link.rows],
            softmax=link.softmax,
        )
        for link in network.links
        if link.producer is not None
    ]
    return FusedGraph(
        order=[layer.name for layer in network.layers], links=links, outputs=sorted(network.outputs)
    )


def _figures(problem: FusionProblem, value: Fraction | None, bound: Fraction) -> dict[str, Any]:
    shown = problem.objective.value
    return {
        "value": None if value is None else float(shown(value)),
        "value_exact": None if value is None else str(value),
        "bound": float(shown(bound)),
        "bound_exact": str(bound),
    }


def _unfused_record(problem: FusionProblem, figures: Figures, apart: tuple[GroupAnswer, ...]) -> FusedUnfused:
    leaves = [leaf for layer in apart if layer.tree is not None for leaf in layer.tree.leaves()]
    known = 1 < len(leaves) == len(apart)
    return FusedUnfused(
        tree=Branch((), tuple(leaves)).to_data() if known else None, **_figures(problem, *figures)
    )


def _layers(group: FusedGroup) -> list[FusedLayer]:
    return [
        FusedLayer(
            name=row["name"],
            operator=OperatorRecord.of(group.operator(row["name"])),
            reads=row.get("reads", {}),
            rows=row.get("rows", []),
            softmax=row.get("softmax", True),
        )
        for row in group_data(group)
    ]


def beside_record(objective: Objective, engine: Engine, beside: Beside) -> FusedBeside:
    """A mapping from outside the space, as data."""
    group, evaluation = beside.start.group, beside.evaluation
    key = objective.key(evaluation.energy, evaluation.cycles)
    return FusedBeside(
        layers=_layers(group),
        leaving=sorted(group.leaving),
        value=float(objective.value(key)),
        value_exact=str(key),
        reason=beside.reason,
        source=beside.start.source,
        tree=beside.start.tree.to_data(),
        metrics=fused_metrics(evaluation, engine),
    )


def _group_record(
    problem: FusionProblem, group: GroupAnswer, unfused: FusedUnfused, *, stopped: bool
) -> FusedGroupRecord:
    if group.value is not None:
        status = status_of(group.value, group.bound, stopped=stopped)
    else:
        status = Status.INFEASIBLE if group.impossible else Status.UNKNOWN
    return FusedGroupRecord(
        layers=_layers(group.group),
        leaving=sorted(group.group.leaving),
        status=status.value,
        gap=relative_gap(group.value, group.bound),
        unfused=unfused,
        tree=None if group.tree is None else group.tree.to_data(),
        metrics=None if group.evaluation is None else fused_metrics(group.evaluation, problem.engine),
        **_figures(problem, group.value, group.bound),
    )
