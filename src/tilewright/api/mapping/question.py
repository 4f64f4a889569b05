"""Layers on a machine: the questions that `solve` answers with mappings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypedDict

from tilewright.api.arguments import SearchRequest, named_arguments
from tilewright.api.live import LiveDocument, Subject
from tilewright.api.mapping.machine import Machine, machine_of
from tilewright.api.mapping.mapping import LayerMapping
from tilewright.api.mapping.result import MappingDocument, MappingResult
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.unusual import assumptions
from tilewright.report.records.mapping.answer_sets import answer_record
from tilewright.report.records.mapping.build import key_gap
from tilewright.report.records.mapping.document import LayerRecord, SettingsRecord
from tilewright.report.records.mapping.growing import GrowingDocument
from tilewright.report.records.mapping.mapping_file import StoredMapping
from tilewright.report.records.mapping.phases import PhasesRecord
from tilewright.report.records.mapping.stored_mappings import fitting, mappings_of, read_mappings
from tilewright.solvers.mapping.answers.answer_set_searches import AnswerSetRequest
from tilewright.solvers.mapping.answers.repeated_solves import check_lexicographic
from tilewright.solvers.mapping.methods import ready_method
from tilewright.solvers.mapping.networks.network_problem import (
    Factors,
    NetworkProblem,
    Storage,
    Tiles,
    network_problem,
)
from tilewright.solvers.mapping.networks.network_search import LayerAnswer, search_network
from tilewright.solvers.mapping.solve import AUTO
from tilewright.workloads.selection import SelectedLayer

MOST_OPTIMA = 1000
"""Optimal mappings that are listed at most where all are asked for."""

Start = LayerMapping | MappingResult | MappingDocument | StoredMapping | Mapping | str | Path


class Demands(TypedDict, total=False):
    """The question besides its objective: the keyword arguments of `LayerOnMachine`, which explains them."""

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
    left_out : nodes of the network that compute and are in no layer, each with the reason

    The others are those of `LayerOnMachine`.
    """

    phases: PhasesRecord | None = None

    def __init__(
        self,
        name: str,
        batch: int,
        layers: Sequence[SelectedLayer],
        left_out: tuple[str, ...],
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
        with named_arguments():
            if best is not None and best < 1:
                raise InputError("--best", None, f"expected at least 1, got {best}")
        optima = MOST_OPTIMA if all_optimal is True else all_optimal or None
        if optima is not None and optima < 1:
            raise InputError("all_optimal", None, f"expected at least 1, got {all_optimal}")
        self._name = name
        self._batch = batch
        self._sets = AnswerSetRequest(pareto, best, optima, then)
        engine = self.machine.engine
        with named_arguments():
            self._sets.check(storage)
            goal = parse_objective(objective)
            if then is not None:
                check_lexicographic(goal, parse_objective(then))
            stated = network_problem(
                layers, engine, goal, tuple(constraints), cost_model, factors, storage, tiles
            )
        notes = (*assumptions(engine), *stated.notes, *(f"left out: {node}" for node in left_out))
        self.stated: NetworkProblem = replace(stated, notes=notes, left_out=left_out)

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
        """What is worth knowing of the machine, the constraints and the network."""
        return self.stated.notes

    def document(self, request: SearchRequest) -> MappingDocument:
        """Search layer by layer, and give the live document's last state.

        Raises
        ------
        InputError : for an unknown method, or warm starts that are none
        """
        solver, budget, stated = request.method or AUTO, request.budget, self.stated
        ready_method(solver)
        stored = stored_mappings(request.warm_starts)
        starts = [fitting(stored, layer.operator) for layer in stated.layers]
        settings = self._settings(solver, request)
        growing = GrowingDocument(self._name, self._batch, stated, settings, self.phases)
        live = LiveDocument(
            Subject(self._head, stated.notes, in_parts=True),
            lambda: MappingDocument(growing.document(ended=False), self._name),
            request.listeners,
        )
        records: dict[int, LayerRecord] = {}

        def keep(answer: LayerAnswer) -> None:
            records[answer.index] = answer_record(stated, answer)
            growing.add(answer.index, records[answer.index])
            live.part(answer.index, records[answer.index])

        live.begin()
        if stored and not any(starts):
            live.note("--warm-start: no mapping of the file is for one of these layers")
        answers = search_network(
            stated,
            solver,
            request.limits(gap=key_gap(stated.objective, budget.gap)),
            replace(self._sets, solver=solver),
            starts,
            live,
            keep,
            tracebacks=request.tracebacks,
        )
        for answer in answers:
            live.answered(answer.index, records[answer.index], answer.is_open)
        return live.end(MappingDocument(growing.document(), self._name))

    @property
    def _head(self) -> str:
        layers = self.stated.layers
        every = sum(layer.count for layer in layers)
        count = f"{len(layers)} distinct of {every} layers" if every > 1 else "1 layer"
        return f"{self._name} on {self.machine.name}, objective {self.objective}, {count}"

    def _settings(self, solver: str, request: SearchRequest) -> SettingsRecord:
        budget, stated, sets = request.budget, self.stated, self._sets
        return SettingsRecord(
            solver=solver,
            time_limit_s=budget.seconds,
            gap=budget.gap,
            threads=budget.threads,
            seed=budget.seed,
            deterministic=request.deterministic,
            factors=stated.factors,
            storage=stated.storage,
            tiles=stated.tiles,
            then=sets.then,  # type: ignore[arg-type]
            pareto=sets.front,
            best=sets.best,
            all_optimal=sets.optima,
        )


def stored_mappings(starts: Start | Sequence[Start]) -> list[StoredMapping]:
    """Mappings to begin with, from wherever they are; raises ``InputError`` for a file that has none."""
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
        elif isinstance(start, StoredMapping):
            mappings.append(start)
        elif isinstance(start, Mapping):
            mappings.append(StoredMapping("warm start", start))
        else:
            mappings += read_mappings(Path(start))
    return mappings
