"""Plans as plain data: borders of atoms per layer, and columns of whole numbers in little space.

A column is its numbers as 32-bit integers, little-endian, each but the first as the difference to the one
before it, compressed by zlib, in base64.  A plan of some thousand atoms has some ten thousand movements, so a
row for each would make documents of megabytes.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from pydantic import Field

from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.own_costs import RecordedPrices, TaskShape
from tilewright.formulation.scheduling.tiled.plan import Plan, Residency, Transfers
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.formulation.scheduling.tiled.tiling import Tiling
from tilewright.formulation.scheduling.tiled.trips import atom_shapes
from tilewright.formulation.scheduling.tiled.units import Unit
from tilewright.formulation.scheduling.tiled.widths import Bits
from tilewright.foundation.arrays import Int32s
from tilewright.foundation.errors import InputError
from tilewright.report.records.mapping.document import MappingRecord
from tilewright.report.records.mapping.operator import Record

_TRIPS = 12
"""Numbers that tell a kind of task."""

MOST_ROWS = 1 << 26
"""Rows of a column, at most."""

MOST_CELLS = 1 << 27
"""Steps times engines, at most: the evaluator keeps what every buffer holds in every step."""


def packed(column: npt.NDArray[np.integer]) -> str:
    """A column as text."""
    steps = np.diff(column.astype(np.int64), prepend=0)
    return base64.b64encode(zlib.compress(steps.astype("<i4").tobytes())).decode("ascii")


def unpacked(text: str, rows: int, where: str) -> Int32s:
    """The column of a text; raises ``InputError`` where it does not have so many rows."""
    try:
        reader = zlib.decompressobj()
        raw = reader.decompress(base64.b64decode(text, validate=True), 4 * rows + 1)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise InputError(where, None, f"not a packed column: {error}") from None
    if len(raw) != 4 * rows:
        raise InputError(where, None, f"expected {rows} whole numbers")
    numbers = np.cumsum(np.frombuffer(raw, dtype="<i4").astype(np.int64))
    if rows and not -(2**31) <= int(numbers.min()) <= int(numbers.max()) < 2**31:
        raise InputError(where, None, "numbers beyond 32 bits")
    return numbers.astype(np.int32)


class LayerAtomsRecord(Record):
    """How a layer is cut; borders ascend from 0 to the size of the axis."""

    layer: str
    atoms: int
    samples: list[int]
    channels: list[int]
    rows: list[int]
    columns: list[int]
    inputs: list[int] = Field(description="borders of partial sums over input channels, or a pool's window")
    across: list[int] = Field(default=[], description="borders of columns of a pool's window, none if whole")
    begins: list[int] = Field(
        default=[], description="per box of a sample, columns fastest, the part that its sum begins with"
    )

    def tiling(self, unit: Unit) -> Tiling:
        """The borders; in earlier documents a pool's window is a single part of size 1."""
        undivided = self.inputs == [0, 1] and not unit.layer.operator.is_mac
        parts = (0, shape_of(unit.layer.operator).parts) if undivided else tuple(self.inputs)
        samples, channels, rows, columns, across, begins = (
            tuple(along)
            for along in (self.samples, self.channels, self.rows, self.columns, self.across, self.begins)
        )
        return Tiling(samples, channels, rows, columns, parts, across, begins)


class TransfersRecord(Record):
    """Movements, a packed column per field; places are engines, then DRAM ports."""

    count: int = Field(ge=0, le=MOST_ROWS)
    block: str
    source: str
    target: str
    bytes: str
    first: str
    last: str


class ResidencyRecord(Record):
    """What lies in buffers when, a packed column per field."""

    count: int = Field(ge=0, le=MOST_ROWS)
    block: str
    engine: str
    start: str
    end: str


class TaskMappingRecord(Record):
    """The mapping of one kind of task on a tile that is a machine file."""

    trips: list[int] = Field(
        description="samples, groups, outputs and inputs per group, rows, columns; taps, strides, dilations"
    )
    mapping: MappingRecord
    proven: bool = Field(description="whether no mapping of the space is better")
    bits: list[int] = Field(
        default_factory=list,
        description="of inputs, weights, results and sums where the model states any, 0 for the machine's",
    )


class PlanRecord(Record):
    """A plan with the atoms that it runs, a packed column per field of the tasks."""

    layers: list[LayerAtomsRecord]
    tasks: int = Field(ge=1, le=MOST_ROWS)
    steps: int = Field(ge=1, le=MOST_ROWS)
    engine: str
    first: str
    last: str
    transfers: TransfersRecord
    residency: ResidencyRecord

    @classmethod
    def of(cls, answer: AtomicPlan) -> PlanRecord:
        """The record of a plan."""
        dag, plan = answer.dag, answer.plan
        moving, held = plan.transfers, plan.residency
        plain = PlanRecord(
            layers=layer_records(dag),
            tasks=dag.tasks,
            steps=plan.steps,
            engine=packed(plan.engine),
            first=packed(plan.first),
            last=packed(plan.last),
            transfers=TransfersRecord(
                count=len(moving),
                block=packed(moving.block),
                source=packed(moving.source),
                target=packed(moving.target),
                bytes=packed(moving.bytes),
                first=packed(moving.first),
                last=packed(moving.last),
            ),
            residency=ResidencyRecord(
                count=len(held),
                block=packed(held.block),
                engine=packed(held.engine),
                start=packed(held.start),
                end=packed(held.end),
            ),
        )
        mappings = task_mappings(dag)
        return MappedPlanRecord(**dict(plain), mappings=mappings) if mappings else plain

    def priced(self, problem: TiledProblem, where: str) -> TiledProblem:
        """The problem with the prices of tasks that the plan names, where its tiles are machine files."""
        if problem.machine.engine.own is not None:
            raise InputError(where, "mappings", "missing, expected one for every kind of task")
        return problem

    def build(self, problem: TiledProblem, where: str) -> AtomicPlan:
        """The plan; raises ``InputError`` where it does not fit the problem's layers."""
        engines = problem.machine.engines
        if self.steps * engines > MOST_CELLS:
            raise InputError(where, "steps", f"{self.steps}, expected at most {MOST_CELLS // engines}")
        dag = self.build_dag(problem, where)
        moving, held = self.transfers, self.residency
        block, source, target, size, first, last = (
            _column(moving, name, moving.count, f"{where}.transfers")
            for name in ("block", "source", "target", "bytes", "first", "last")
        )
        transfers = Transfers(block, source, target, size.astype(np.int64), first, last)
        residency = Residency(
            *(
                _column(held, name, held.count, f"{where}.residency")
                for name in ("block", "engine", "start", "end")
            )
        )
        tasks = [_column(self, name, self.tasks, where) for name in ("engine", "first", "last")]
        return AtomicPlan(dag, Plan(tasks[0], tasks[1], tasks[2], transfers, residency, self.steps))

    def build_dag(self, problem: TiledProblem, where: str) -> AtomicDag:
        """The atoms; raises ``InputError`` where they do not fit the problem's layers."""
        names = [unit.name for unit in problem.units]
        if [layer.layer for layer in self.layers] != names:
            raise InputError(where, "layers", f"expected the {len(names)} layers of the network, in order")
        cuts = [layer.tiling(unit) for layer, unit in zip(self.layers, problem.units, strict=True)]
        try:
            dag = self.priced(problem, where).dag(cuts)
        except ValueError as error:
            raise InputError(where, "layers", str(error)) from None
        if dag.tasks != self.tasks:
            raise InputError(where, "tasks", f"{self.tasks}, the layers are cut into {dag.tasks}")
        return dag


class MappedPlanRecord(PlanRecord):
    """A plan on tiles that are machine files, with the mapping of every kind of task."""

    mappings: list[TaskMappingRecord]

    def priced(self, problem: TiledProblem, where: str) -> TiledProblem:
        """The problem with the prices of tasks that these mappings have; raises ``InputError``."""
        engine = problem.machine.engine
        if engine.own is None:
            raise InputError(where, "mappings", "expected none, the tiles are no machine files")
        given = []
        for index, entry in enumerate(self.mappings):
            here = f"{where}.mappings[{index}]"
            if len(entry.trips) != _TRIPS or min(entry.trips) < 1:
                raise InputError(here, "trips", f"expected {_TRIPS} counts of at least 1")
            if len(entry.bits) not in (0, len(Bits._fields)) or min(entry.bits, default=0) < 0:
                raise InputError(here, "bits", f"expected none or {len(Bits._fields)} of at least 0")
            shape = TaskShape.of(entry.trips, entry.bits)
            given.append((shape, (Mapping.from_data(entry.mapping.nodes, here), entry.proven)))
        if len(dict(given)) < len(given):
            raise InputError(where, "mappings", "a kind of task has two")
        prices = RecordedPrices(tuple(given), f"{where}.mappings")
        return replace(problem, machine=problem.machine.changed(engine=replace(engine, prices=prices)))


def task_mappings(dag: AtomicDag) -> list[TaskMappingRecord]:
    """The mapping of every kind of task, on tiles that are machine files."""
    engine = dag.engine
    if engine is None or engine.own is None:
        return []
    shapes: dict[TaskShape, None] = {}
    for unit, tiling in zip(dag.units, dag.tilings, strict=True):
        atoms = atom_shapes(unit.layer.operator, tiling)
        if atoms.kind != "vector":
            shapes |= dict.fromkeys(atoms.tasks())
    records = []
    for shape in sorted(shapes):
        mapping, proven = engine.prices.mapping(engine.own, shape)
        trips = [*shape[:6], *shape.window]
        records.append(
            TaskMappingRecord(
                trips=trips, mapping=MappingRecord(nodes=mapping.to_data()), proven=proven, bits=[*shape.bits]
            )
        )
    return records


def _column(owner: Record, name: str, rows: int, where: str) -> Int32s:
    return unpacked(getattr(owner, name), rows, f"{where}.{name}")


def layer_records(dag: AtomicDag) -> list[LayerAtomsRecord]:
    """How every layer is cut."""
    counts = np.diff(dag.base)
    return [
        LayerAtomsRecord(
            layer=unit.name,
            atoms=int(count),
            samples=list(tiling.samples),
            channels=list(tiling.channels),
            rows=list(tiling.rows),
            columns=list(tiling.columns),
            inputs=list(tiling.parts),
            across=list(tiling.across),
            begins=list(tiling.begins),
        )
        for unit, tiling, count in zip(dag.units, dag.tilings, counts, strict=True)
    ]
