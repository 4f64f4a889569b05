"""The scheduling problem: tasks that depend on each other, and what each costs where it may run.

A task is one layer of one run of one network.  Its *options* say on which engine it may run, under which
layout, and what that costs; the mapping side has computed them.  An engine runs one task at a time, all
engines share one memory, and the first weights of a task may be fetched while the engine's previous task
runs (Herald, section IV-A, step 6).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import assert_never

import networkx as nx

from tilewright.formulation.mapping.mapping import Mapping
from tilewright.foundation.errors import InputError


class ScheduleObjective(StrEnum):
    """What a schedule is to minimise."""

    MAKESPAN = "makespan"  #: cycles until the last task ends
    ENERGY = "energy"  #: pJ of all tasks
    EDP = "edp"  #: their product

    def of(self, makespan: int, energy: Fraction) -> Fraction:
        match self:
            case ScheduleObjective.MAKESPAN:
                return Fraction(makespan)
            case ScheduleObjective.ENERGY:
                return energy
            case ScheduleObjective.EDP:
                return makespan * energy
            case _:
                assert_never(self)


@dataclass(frozen=True, slots=True)
class Option:
    """One way to run a task.

    Parameters
    ----------
    engine : index of the engine
    cycles : how long the engine is busy
    fetch : cycles that fetching the first weights takes beforehand, while the engine may still run the
        task before; no two fetches of an engine overlap, and none begins before the task before it has begun
    energy : pJ
    memory, fetch_memory : bytes of the shared memory taken while running, and while fetching
    layout : how the result is laid out in memory; reading another layout costs a context change
    mapping : what costs this, as evidence; two options that cost the same are equal whatever theirs
    input_spill : pJ that come to ``energy`` unless it reads results, and all of them stayed in the memory
    output_spill : pJ that come to it unless somebody reads its result, and all of them found it there
    proven : whether no mapping of the space has less by the metric
    """

    engine: int
    cycles: int
    energy: Fraction
    fetch: int = 0
    memory: int = 0
    fetch_memory: int = 0
    layout: str = ""
    mapping: Mapping | None = field(default=None, compare=False, repr=False)
    input_spill: Fraction = Fraction(0)
    output_spill: Fraction = Fraction(0)
    proven: bool = field(default=True, compare=False)

    @property
    def fetch_need(self) -> int:
        """Bytes taken while fetching; none where fetching takes no time."""
        return self.fetch_memory if self.fetch else 0

    @property
    def memory_need(self) -> int:
        """The most bytes taken at any time."""
        return max(self.memory, self.fetch_need)


@dataclass(frozen=True, slots=True)
class Task:
    """One layer of one run of a network.

    Parameters
    ----------
    instance : the run, such as ``unet/2``; runs of one network do not depend on each other
    network : the network, equal for all its runs
    layer : the layer's name in the network
    options : at most one per engine and layout
    result_bytes : of the shared memory, while the result stays there for those who read it, from the task's
        start to the end of the last of them; 0 where it never stays
    """

    instance: str
    network: str
    layer: str
    options: tuple[Option, ...]
    result_bytes: int = 0

    @property
    def name(self) -> str:
        return f"{self.instance}:{self.layer}"


@dataclass(frozen=True)
class SchedulingProblem:
    """Tasks, their order, and the machine they share.

    Parameters
    ----------
    name : for tables and results
    engines : names of the engines
    tasks : all tasks
    edges : pairs of task indices: the second reads the result of the first
    memory : bytes of the shared memory; ``None`` where it is no limit
    context_cycles, context_energy : what an edge costs whose ends run under different layouts

    Raises
    ------
    InputError : for a repeated task, an unknown engine or task, or tasks that depend on each other in a cycle
    """

    name: str
    engines: tuple[str, ...]
    tasks: tuple[Task, ...]
    edges: tuple[tuple[int, int], ...]
    memory: int | None = None
    context_cycles: int = 0
    context_energy: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if not self.tasks:
            raise InputError(self.name, "tasks", "expected at least one")
        names = [task.name for task in self.tasks]
        repeated = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else ()
        if repeated:
            raise InputError(self.name, min(repeated), "two tasks have this name")
        for task in self.tasks:
            for option in task.options:
                if not 0 <= option.engine < len(self.engines):
                    raise InputError(self.name, task.name, f"an option names engine {option.engine}")
                figures = option.fetch, option.memory, option.fetch_memory, task.result_bytes
                spills = option.input_spill, option.output_spill
                if option.cycles < 1 or min(figures) < 0 or min(spills) < 0:
                    raise InputError(
                        self.name, task.name, "expected at least one cycle and no negative figure"
                    )
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(range(len(self.tasks)))
        for edge in self.edges:
            if not all(0 <= end < len(self.tasks) for end in edge):
                raise InputError(self.name, "edges", f"{edge} names a task that does not exist")
            graph.add_edge(*edge)
        if not nx.is_directed_acyclic_graph(graph):
            cycle = " -> ".join(names[edge[0]] for edge in nx.find_cycle(graph))
            raise InputError(self.name, "edges", f"tasks depend on each other in a cycle: {cycle}")
        object.__setattr__(self, "_order", tuple(nx.lexicographical_topological_sort(graph)))

    @property
    def order(self) -> tuple[int, ...]:
        """Task indices, every task behind those that it depends on."""
        order: tuple[int, ...] = self._order  # type: ignore[attr-defined]
        return order

    @cached_property
    def before(self) -> tuple[tuple[int, ...], ...]:
        """Per task, the tasks whose results it reads."""
        producers: list[list[int]] = [[] for _ in self.tasks]
        for first, second in self.edges:
            producers[second].append(first)
        return tuple(map(tuple, producers))

    @cached_property
    def after(self) -> tuple[tuple[int, ...], ...]:
        """Per task, the tasks that read its result."""
        consumers: list[list[int]] = [[] for _ in self.tasks]
        for first, second in self.edges:
            consumers[first].append(second)
        return tuple(map(tuple, consumers))

    @cached_property
    def instances(self) -> dict[str, tuple[int, ...]]:
        """Task indices of every run, in topological order."""
        by_instance: dict[str, list[int]] = {}
        for index in self.order:
            by_instance.setdefault(self.tasks[index].instance, []).append(index)
        return {name: tuple(indices) for name, indices in by_instance.items()}

    @cached_property
    def energy_scale(self) -> int:
        """By which energies are multiplied to be integers."""
        energies = {
            energy.denominator
            for task in self.tasks
            for option in task.options
            for energy in (option.energy, option.input_spill, option.output_spill)
        }
        return math.lcm(self.context_energy.denominator, *energies)

    @cached_property
    def keeps_results(self) -> bool:
        """Whether results may stay in the shared memory, or energies depend on whether they do."""
        return any(
            task.result_bytes or any(o.input_spill or o.output_spill for o in task.options)
            for task in self.tasks
        )

    @cached_property
    def obstacle(self) -> str | None:
        """Why there is no schedule at all; ``None`` where there is one.

        Tasks may always run one after the other, so only a task that fits nowhere is in the way.
        """
        for task in self.tasks:
            if not task.options:
                return f"{task.name} fits on no engine"
            least = min(option.memory_need for option in task.options)
            if self.memory is not None and least > self.memory:
                return f"{task.name} needs {least} bytes of the shared memory, which has {self.memory}"
        return None

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of everything that a schedule's value depends on."""
        content: list[object] = [
            self.engines,
            [
                [
                    task.name,
                    [
                        [o.engine, o.cycles, str(o.energy), o.fetch, o.memory, o.fetch_memory, o.layout]
                        for o in task.options
                    ],
                ]
                for task in self.tasks
            ],
            sorted(self.edges),
            self.memory,
            self.context_cycles,
            str(self.context_energy),
        ]
        if self.keeps_results:
            content += [
                [task.result_bytes, [[str(o.input_spill), str(o.output_spill)] for o in task.options]]
                for task in self.tasks
            ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def feasible_options(problem: SchedulingProblem) -> list[tuple[Option, ...]]:
    """Per task, the options that fit the memory, without those that another option makes useless.

    Where an engine has several options of one layout, one that is no better than another in any figure is
    left out: exchanging it never makes a schedule worse or illegal.
    """
    result = []
    for task in problem.tasks:
        fitting = [
            option
            for option in task.options
            if problem.memory is None or option.memory_need <= problem.memory
        ]
        result.append(tuple(o for i, o in enumerate(fitting) if not _is_dominated(i, fitting)))
    return result


def _is_dominated(index: int, options: Sequence[Option]) -> bool:
    mine = _figures(options[index])
    for other, option in enumerate(options):
        same = option.engine == options[index].engine and option.layout == options[index].layout
        if other == index or not same:
            continue
        theirs = _figures(option)
        if all(a <= b for a, b in zip(theirs, mine, strict=True)) and (theirs != mine or other < index):
            return True
    return False


def _figures(option: Option) -> tuple[int | Fraction, ...]:
    return (
        option.cycles,
        option.energy,
        option.fetch,
        option.memory,
        option.fetch_need,
        option.input_spill,
        option.output_spill,
    )
