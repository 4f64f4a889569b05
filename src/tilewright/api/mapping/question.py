"""Layers on a machine: the questions that `solve` answers with mappings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypedDict

from tilewright.api.arguments import SearchRequest, interruptible, named_arguments
from tilewright.api.mapping.machine import Machine, machine_of
from tilewright.api.mapping.mapping import LayerMapping
from tilewright.api.mapping.result import MappingDocument, MappingResult
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError
from tilewright.report.records.mapping.answer_sets import answer_record
from tilewright.report.records.mapping.build import limits_of
from tilewright.report.records.mapping.document import SettingsRecord
from tilewright.report.records.mapping.growing import GrowingDocument
from tilewright.report.records.mapping.mapping_file import StoredMapping
from tilewright.report.records.mapping.stored_mappings import fitting, mappings_of, read_mappings
from tilewright.solvers.mapping.answer_set_searches import AnswerSetRequest
from tilewright.solvers.mapping.methods import method as method_of
from tilewright.solvers.mapping.network_problem import (
    Factors,
    NetworkProblem,
    Storage,
    Tiles,
    network_problem,
)
from tilewright.solvers.mapping.network_search import search_network
from tilewright.solvers.mapping.repeated_solves import check_lexicographic
from tilewright.solvers.mapping.solve import AUTO
from tilewright.workloads.selection import SelectedLayer

MOST_OPTIMA = 1000
"""Optimal mappings that are listed at most where all are asked for."""

Start = LayerMapping | MappingResult | MappingDocument | Mapping | str | Path


class Demands(TypedDict, total=False):
    """What is asked beside the objective: the keyword arguments of `LayerOnMachine`, which explains them."""

    constraints: Iterable[str]
    cost_model: str | None
    factors: Factors | None
    storage: Storage | None
    tiles: Tiles | None
    then: Literal["energy", "cycles"] | None
    pareto: bool
    best: int | None
    all_optimal: bool | int


class LayersOnMachine:
    """What the questions about one layer and about a network share.

    Parameters
    ----------
    name : of the model, as documents show it
    batch : samples
    layers : different layers, each with the names under which the model has it

    The others are those of `LayerOnMachine`.
    """

    def __init__(
        self,
        name: str,
        batch: int,
        layers: Sequence[SelectedLayer],
        machine: Machine | str | Path,
        objective: str = "energy",
        *,
        constraints: Iterable[str] = (),
        cost_model: str | None = None,
        factors: Factors | None = None,
        storage: Storage | None = None,
        tiles: Tiles | None = None,
        then: Literal["energy", "cycles"] | None = None,
        pareto: bool = False,
        best: int | None = None,
        all_optimal: bool | int = False,
    ) -> None:
        self.machine = machine_of(machine)
        if isinstance(constraints, str):
            raise InputError("constraints", None, f"expected a list of texts, got {constraints!r}")
        if best is not None and best < 1:
            raise InputError("best", None, f"expected at least 1, got {best}")
        optima = MOST_OPTIMA if all_optimal is True else all_optimal or None
        if optima is not None and optima < 1:
            raise InputError("all_optimal", None, f"expected at least 1, got {all_optimal}")
        self._name = name
        self._batch = batch
        self._sets = AnswerSetRequest(pareto, best, optima, then)
        with named_arguments():
            self._sets.check(storage)
            goal = parse_objective(objective)
            if then is not None:
                check_lexicographic(goal, parse_objective(then))
            self.stated: NetworkProblem = network_problem(
                layers, self.machine.engine, goal, tuple(constraints), cost_model, factors, storage, tiles
            )

    @property
    def objective(self) -> str:
        """What is minimised."""
        return str(self.stated.objective)

    @property
    def constraints(self) -> tuple[str, ...]:
        """What is demanded of every mapping."""
        return self.stated.constraints

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth knowing of the constraints."""
        return self.stated.notes

    def _document(self, request: SearchRequest) -> MappingDocument:
        solver, budget = request.method or AUTO, request.budget
        settings = SettingsRecord(
            solver=solver,
            time_limit_s=budget.seconds,
            gap=budget.gap,
            threads=budget.threads,
            seed=budget.seed,
            deterministic=request.deterministic,
            factors=self.stated.factors,
            storage=self.stated.storage,
            tiles=self.stated.tiles,
            then=self._sets.then,  # type: ignore[arg-type]
            pareto=self._sets.front,
            best=self._sets.best,
            all_optimal=self._sets.optima,
        )
        with named_arguments():
            method_of(solver)
            stored = _stored(request.warm_starts)
            growing = GrowingDocument(self._name, self._batch, self.stated, settings)
            with interruptible() as stop:
                limits = limits_of(settings, self.stated.objective, budget.started, stop)
                limits = replace(limits, until=budget.until)
                sets = replace(self._sets, solver=solver)
                answers = search_network(
                    self.stated,
                    solver,
                    limits,
                    sets,
                    lambda operator: fitting(stored, operator),
                    request.observer,
                )
                for answer in answers:
                    growing.add(answer.index, answer_record(self.stated, answer))
        return MappingDocument(growing.document(), self._name)


def _stored(starts: Start | Sequence[Start]) -> list[StoredMapping]:
    """Mappings to begin with, from wherever they are."""
    listed = [starts] if isinstance(starts, Start) else starts
    mappings: list[StoredMapping] = []
    for start in listed:
        if isinstance(start, MappingResult):
            if start.mapping is not None:
                mappings.append(StoredMapping(start.name, start.mapping.nodes, start.mapping.operator))
        elif isinstance(start, MappingDocument):
            mappings += mappings_of(start.record, start.where)
        elif isinstance(start, LayerMapping):
            mappings.append(StoredMapping(start.name, start.nodes, start.operator))
        elif isinstance(start, Mapping):
            mappings.append(StoredMapping("warm start", start))
        else:
            mappings += read_mappings(Path(start))
    return mappings
