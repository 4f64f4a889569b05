"""What tasks cost on a tile from a machine file, counted from the mapping of each.

A task is the convolution of its trips (`task_operator`): a product is one of one filter tap, a depthwise
layer one of as many groups as channels.  Its operands lie in the tile's buffer, and its results go there; the
mapping says what is inside.  Which mapping a task has, the tile's `TaskPrices` say: those that a search
finds, those of a document, or the least that any mapping takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from tilewright.formulation.mapping.cost.registry import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.parts.compulsory import least_cycles, least_energy, touched
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.fitted import fitted
from tilewright.hardware.scheduling.own_engine import OwnTile
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.mapping.operator import Operator, Role

Window = tuple[int, int, int, int, int, int]
"""Filter taps, strides and dilations along rows and columns: (R, S, stride, stride, dilation, dilation)."""


class TaskShape(NamedTuple):
    """Trips of one task, outputs and inputs per group, and the bits of its elements where any are stated."""

    samples: int
    groups: int
    outputs: int
    inputs: int
    rows: int
    columns: int
    window: Window
    bits: tuple[int, ...] = ()

    @classmethod
    def of(cls, trips: Sequence[int], bits: Sequence[int] | None = None) -> TaskShape:
        """From its trips and its window in one sequence of twelve numbers.

        Parameters
        ----------
        bits : of inputs, weights, results and sums, 0 for the machine's; by default all are the machine's
        """
        samples, groups, outputs, inputs, rows, columns, r, s, *moves = trips
        down, across, apart, aside = moves
        window = (r, s, down, across, apart, aside)
        return cls(samples, groups, outputs, inputs, rows, columns, window, tuple(bits or ()))

    @property
    def macs(self) -> int:
        return math.prod(self[:6]) * self.window[0] * self.window[1]

    @property
    def results(self) -> int:
        """Elements of its result."""
        return self.samples * self.groups * self.outputs * self.rows * self.columns


class TaskPrice(NamedTuple):
    """Cycles of the grid, and pJ at the tile's buffer (but for writing each result once) and inside of it."""

    cycles: int
    buffer: float
    inside: float


class TaskPrices(Protocol):
    """Which mapping each task has, as what it costs; costs are remembered by it, so it has a hash."""

    def prices(self, own: OwnTile, shapes: Sequence[TaskShape]) -> Sequence[TaskPrice]:
        """What tasks cost on a tile."""
        ...

    def mapping(self, own: OwnTile, shape: TaskShape) -> tuple[Mapping, bool]:
        """The mapping of a task that has a price, and whether it is proven best; not of bounds."""
        ...


def task_operator(shape: TaskShape) -> Operator:
    """The layer that a task is on the mapping side."""
    taps_rows, taps_columns, *moves = shape.window
    operator = conv2d(
        n=shape.samples,
        k=shape.groups * shape.outputs,
        c=shape.groups * shape.inputs,
        p=shape.rows,
        q=shape.columns,
        r=taps_rows,
        s=taps_columns,
        stride=(moves[0], moves[1]),
        dilation=(moves[2], moves[3]),
        groups=shape.groups,
    )
    if not shape.bits:
        return operator
    inputs, weights, result, sums = (bits or None for bits in shape.bits)
    of_role = {Role.INPUT: inputs, Role.WEIGHT: weights, Role.OUTPUT: result}
    tensors = (
        replace(tensor, bits=of_role[tensor.role], sum_bits=sums if tensor.is_output else None)
        for tensor in operator.tensors
    )
    return replace(operator, tensors=tuple(tensors))


def counted_price(own: OwnTile, shape: TaskShape, mapping: Mapping, where: str = "mapping") -> TaskPrice:
    """What the evaluator finds for the mapping of a task.

    Parameters
    ----------
    own, shape : the tile and the task
    mapping : of the task's operator on the machine inside the tile
    where : what errors call the mapping

    Raises
    ------
    InputError : for a mapping of another task, or one that is illegal on the tile
    """
    operator, engine = task_operator(shape), own.inside
    evaluation = evaluate_mapping(operator, engine, cost_model(engine.cost_model), mapping, where)
    if evaluation.violations:
        raise InputError(where, None, f"illegal: {evaluation.violations[0]}")
    level = fitted(engine, operator).levels[0]
    roles = {tensor.name: tensor.role for tensor in operator.tensors}
    buffer = sum(
        (
            row.reads * level.read_energy_of(roles[row.tensor])
            + (row.fills + row.updates) * level.write_energy_of(roles[row.tensor])
            for row in evaluation.accesses
            if row.level == level.name
        ),
        Fraction(0),
    )
    inside = evaluation.energy - buffer - engine.mac_energy * shape.macs
    written = sum(t.footprint(operator.bounds) for t in operator.tensors if t.role is Role.OUTPUT)
    buffer -= written * level.write_energy_of(Role.OUTPUT)
    return TaskPrice(own.grid_cycles(evaluation.cycles), float(buffer), float(inside))


@dataclass(frozen=True)
class LeastPrices:
    """What no mapping of a task undercuts, nor those of its parts together if it is divided.

    Compulsory figures are sums and maxima of iterations and touched elements, divided by constants and
    rounded up: each is subadditive over a division of the iterations, in cycles of another clock, too.  No
    part can use more PEs than the whole.
    """

    def prices(self, own: OwnTile, shapes: Sequence[TaskShape]) -> Sequence[TaskPrice]:
        """Lower bounds."""
        return [_least(own, shape) for shape in shapes]

    def mapping(self, own: OwnTile, shape: TaskShape) -> tuple[Mapping, bool]:
        """There is none; raises ``LookupError``."""
        raise LookupError("bounds have no mappings")


@lru_cache(maxsize=1 << 12)
def _least(own: OwnTile, shape: TaskShape) -> TaskPrice:
    operator = task_operator(shape)
    engine = fitted(own.inside, operator)
    written = sum(touched(operator, tensor) for tensor in operator.tensors if tensor.is_output)
    energy = least_energy(operator, engine) - engine.mac_energy * shape.macs
    cycles = max(least_cycles(operator, engine), -(-shape.macs // _usable(engine, operator)))
    energy -= written * engine.levels[0].write_energy_of(Role.OUTPUT)
    return TaskPrice(own.grid_cycles(cycles), 0.0, float(energy))


def _usable(engine: Engine, operator: Operator) -> int:
    """PEs that an operator can keep busy: along an axis no more than iterations of what it carries."""
    usable = 1
    for level in engine.levels:
        for axis in () if level.fanout is None else level.fanout.axes:
            carried = [d.bound for d in operator.dimensions if axis.carries is None or d.like in axis.carries]
            usable *= min(axis.size, math.prod(carried))
    return usable


@dataclass(frozen=True)
class RecordedPrices:
    """Prices of tasks whose mappings are given.

    Parameters
    ----------
    mappings : by the tasks' shapes, with whether they are proven best
    where : what errors call them
    """

    mappings: tuple[tuple[TaskShape, tuple[Mapping, bool]], ...]
    where: str = "mappings"
    _known: dict[TaskShape, TaskPrice] = field(default_factory=dict, compare=False, repr=False)

    def prices(self, own: OwnTile, shapes: Sequence[TaskShape]) -> Sequence[TaskPrice]:
        """Counted from the mappings; raises ``InputError`` for a task without one."""
        given = dict(self.mappings)
        for shape in shapes:
            if shape not in self._known:
                if shape not in given:
                    raise InputError(self.where, None, f"none for the task of trips {[*shape]}")
                self._known[shape] = counted_price(own, shape, given[shape][0], self.where)
        return [self._known[shape] for shape in shapes]

    def mapping(self, own: OwnTile, shape: TaskShape) -> tuple[Mapping, bool]:
        """The given mapping."""
        return dict(self.mappings)[shape]


def task_costs(
    own: OwnTile, prices: TaskPrices, shapes: Iterable[TaskShape]
) -> tuple[Int64s, Floats, Floats]:
    """Cycles, and pJ at the buffer and inside, per task."""
    listed = list(shapes)
    distinct = list(dict.fromkeys(listed))
    known = dict(zip(distinct, prices.prices(own, distinct), strict=True))
    rows = [known[shape] for shape in listed]
    return (
        np.array([row.cycles for row in rows], dtype=np.int64),
        np.array([row.buffer for row in rows], dtype=np.float64),
        np.array([row.inside for row in rows], dtype=np.float64),
    )
