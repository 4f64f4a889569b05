"""Scheduling problems as plain data, so that a schedule's file stands on its own.

Runs that are alike are written once, and so are the costs of layers that cost the same.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import groupby
from typing import Literal

from pydantic import Field

from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem, Task
from tilewright.foundation.errors import InputError
from tilewright.report.records.claims import ExactText
from tilewright.report.records.mapping.document import MappingRecord
from tilewright.report.records.mapping.operator import OperatorRecord, Record
from tilewright.workloads.mapping.operator import Operator

Operators = MappingABC[tuple[str, str], Operator]
"""The operator of every layer, by network and layer."""


class OptionRecord(Record):
    """One way to run a layer."""

    engine: str
    layout: str = Field(description="the dataflow under which it runs")
    cycles: int = Field(ge=1)
    energy_pj_exact: ExactText
    fetch: int = Field(ge=0, description="cycles that fetching the first weights takes beforehand")
    memory_bytes: int = Field(ge=0)
    fetch_bytes: int = Field(ge=0)
    mapping: MappingRecord | None = Field(
        default=None, description="the mapping behind these costs; null if unknown"
    )
    input_spill_pj_exact: ExactText = Field(default="0", description="unless all that it reads has stayed")
    output_spill_pj_exact: ExactText = Field(default="0", description="unless all readers find it in memory")


class OpenOptionRecord(OptionRecord):
    """One way to run a layer, with a mapping that was not proven best in time."""

    proven: Literal[False]


class CostsRecord(Record):
    """What layers cost that are alike."""

    operator: OperatorRecord | None = Field(description="null if the layer's nest is unknown")
    options: list[OptionRecord | OpenOptionRecord]
    result_bytes: int = Field(default=0, ge=0, description="while the result is resident; 0 if it never is")


class RunRecord(Record):
    """Runs of one network that are alike."""

    network: str
    instances: list[str] = Field(min_length=1)
    layers: dict[str, int] = Field(description="per layer, the index of its costs")
    edges: list[list[int]] = Field(description="pairs of layers by position: the second reads the first")


class ProblemRecord(Record):
    """A scheduling problem in full."""

    name: str
    engines: list[str] = Field(min_length=1)
    memory_bytes: int | None = Field(description="the shared memory; null if unlimited")
    context_cycles: int = Field(ge=0)
    context_energy_pj_exact: ExactText
    costs: list[CostsRecord]
    runs: list[RunRecord]
    edges: list[list[int]] = Field(description="pairs of tasks of different runs, by position among all")

    def build(self, where: str) -> SchedulingProblem:
        """The problem; raises ``InputError`` where the record contradicts itself."""
        places = {engine: index for index, engine in enumerate(self.engines)}
        options = [
            tuple(_option(option, places, f"{where}.costs[{index}]") for option in costs.options)
            for index, costs in enumerate(self.costs)
        ]
        tasks: list[Task] = []
        edges: list[tuple[int, int]] = []
        for index, run in enumerate(self.runs):
            here = f"{where}.runs[{index}]"
            if not all(0 <= costs < len(options) for costs in run.layers.values()):
                raise InputError(here, "layers", f"expected costs from 0 to {len(options) - 1}")
            for instance in run.instances:
                inside = _pairs(run.edges, len(run.layers), here)
                edges += [(len(tasks) + first, len(tasks) + second) for first, second in inside]
                tasks += [
                    Task(instance, run.network, layer, options[costs], self.costs[costs].result_bytes)
                    for layer, costs in run.layers.items()
                ]
        return SchedulingProblem(
            name=self.name,
            engines=tuple(self.engines),
            tasks=tuple(tasks),
            edges=(*edges, *_pairs(self.edges, len(tasks), where)),
            memory=self.memory_bytes,
            context_cycles=self.context_cycles,
            context_energy=Fraction(self.context_energy_pj_exact),
        )

    def operators(self, where: str) -> list[Operator]:
        """The operator of every task, in their order; raises ``InputError`` where one is missing or none."""
        operators: list[Operator] = []
        for index, costs in enumerate(self.costs):
            if costs.operator is None:
                raise InputError(f"{where}.costs[{index}]", "operator", "missing")
            operators.append(costs.operator.build(where))
        return [operators[costs] for run in self.runs for _ in run.instances for costs in run.layers.values()]


def problem_record(problem: SchedulingProblem, operators: Operators) -> ProblemRecord:
    """The record of a problem.

    Parameters
    ----------
    operators : of the layers, as far as they are known
    """
    costs: list[CostsRecord] = []
    made = {key: OperatorRecord.of(operator) for key, operator in operators.items()}
    texts = {key: operator.model_dump_json() for key, operator in made.items()}
    places: dict[tuple[str, tuple[Option, ...], int], int] = {}

    def costs_of(task: Task) -> int:
        layer = task.network, task.layer
        key = texts.get(layer, ""), task.options, task.result_bytes
        if key not in places:
            places[key] = len(costs)
            options = [_option_record(option, problem.engines) for option in task.options]
            costs.append(
                CostsRecord(operator=made.get(layer), options=options, result_bytes=task.result_bytes)
            )
        return places[key]

    runs: list[RunRecord] = []
    between: list[list[int]] = []
    first = 0
    for (instance, network), members in groupby(problem.tasks, lambda task: (task.instance, task.network)):
        layers = {task.layer: costs_of(task) for task in members}
        last = first + len(layers)
        inside = []
        for second in range(first, last):
            for source in problem.before[second]:
                if first <= source < last:
                    inside.append([source - first, second - first])
                else:
                    between.append([source, second])
        run = RunRecord(network=network, instances=[instance], layers=layers, edges=inside)
        if runs and _alike(runs[-1], run):
            runs[-1].instances.append(instance)
        else:
            runs.append(run)
        first = last
    return ProblemRecord(
        name=problem.name,
        engines=list(problem.engines),
        memory_bytes=problem.memory,
        context_cycles=problem.context_cycles,
        context_energy_pj_exact=str(problem.context_energy),
        costs=costs,
        runs=runs,
        edges=between,
    )


def _alike(run: RunRecord, other: RunRecord) -> bool:
    return (run.network, [*run.layers.items()], run.edges) == (
        other.network,
        [*other.layers.items()],
        other.edges,
    )


def _option_record(option: Option, engines: Sequence[str]) -> OptionRecord:
    if not option.proven:
        proven = _option_record(replace(option, proven=True), engines)
        return OpenOptionRecord(**dict(proven), proven=False)
    return OptionRecord(
        engine=engines[option.engine],
        layout=option.layout,
        cycles=option.cycles,
        energy_pj_exact=str(option.energy),
        fetch=option.fetch,
        memory_bytes=option.memory,
        fetch_bytes=option.fetch_memory,
        mapping=None if option.mapping is None else MappingRecord(nodes=option.mapping.to_data()),
        input_spill_pj_exact=str(option.input_spill),
        output_spill_pj_exact=str(option.output_spill),
    )


def _option(record: OptionRecord, places: MappingABC[str, int], where: str) -> Option:
    if record.engine not in places:
        raise InputError(where, "engine", f"no engine {record.engine!r}")
    return Option(
        engine=places[record.engine],
        cycles=record.cycles,
        energy=Fraction(record.energy_pj_exact),
        fetch=record.fetch,
        memory=record.memory_bytes,
        fetch_memory=record.fetch_bytes,
        layout=record.layout,
        input_spill=Fraction(record.input_spill_pj_exact),
        output_spill=Fraction(record.output_spill_pj_exact),
        proven=not isinstance(record, OpenOptionRecord),
    )


def _pairs(edges: Sequence[Sequence[int]], count: int, where: str) -> list[tuple[int, int]]:
    for edge in edges:
        if len(edge) != 2 or not all(0 <= end < count for end in edge):
            raise InputError(where, "edges", f"expected pairs of positions below {count}, got {edge}")
    return [(edge[0], edge[1]) for edge in edges]
