"""What engines must be sent because several of them share a layer: copies of weights, of inputs and of sums.

A convolution or matrix product multiplies for every channel, pixel and part of its sum; some engine does each
of these.  What an engine does needs the weights, the inputs and the sums that lie below it along the three
axes, so by Loomis and Whitney's inequality (Bulletin of the AMS 55, 1949) a share ``phi`` of the layer needs
parts ``a``, ``b`` and ``c`` of them with ``a b c >= phi**2`` and none below ``phi``.  With
``a = alpha phi``, ... that is ``alpha beta gamma >= 1 / phi``: over all engines at least ``alpha`` copies of
the weights, ``beta`` of the inputs and ``gamma`` of the sums, none below 1.  An engine whose share takes at
most the time that it has cannot have a large one, and the least sum of copies rises as shares fall
(docs/tiled-methods.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tilewright.formulation.scheduling.tiled.atoms import SUM_BYTES
from tilewright.formulation.scheduling.tiled.coordinates import (
    CHANNEL,
    COLUMN,
    PART,
    ROW,
    loop_ranges,
    shape_of,
)
from tilewright.formulation.scheduling.tiled.dag import WEIGHTS, AtomicDag
from tilewright.formulation.scheduling.tiled.memo import Memo
from tilewright.formulation.scheduling.tiled.overlap import OperandAxes, positions_read
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.reading import (
    Cuts,
    axes_along,
    from_outside,
    input_sizes,
    made_by,
)
from tilewright.formulation.scheduling.tiled.trips import operator_kind
from tilewright.formulation.scheduling.tiled.units import Read
from tilewright.formulation.scheduling.tiled.widths import tensor_bits
from tilewright.foundation.arrays import Floats
from tilewright.hardware.scheduling.tiled.machine import TiledMachine, TileEngine
from tilewright.workloads.mapping.operator import Operator, Role

MOST_PLACES = 4096
"""Rows or columns of results at most; a layer with more counts for nothing."""


@dataclass(frozen=True, slots=True)
class SharedLayer:
    """What copies of a layer come to.

    Parameters
    ----------
    unit : its number
    work : cycles that it takes one engine at the least
    weights, inputs, sums : bytes of all weights, of the inputs that its results meet one by one, and of its
        unfinished sums
    read : bytes of inputs that the whole layer reads
    outside : whether the inputs come from DRAM; otherwise an engine may have made its own
    pace : multiplications per cycle that no engine exceeds
    """

    unit: int
    work: float
    weights: int
    inputs: int
    sums: int
    read: int
    outside: bool
    pace: int = 1

    @property
    def coming(self) -> int:
        """Bytes that an engine cannot have made itself if it does all."""
        return self.weights + (self.inputs if self.outside else 0)


@dataclass(frozen=True, slots=True)
class Prices:
    """What a byte of each kind costs where it enters a buffer beyond the first time."""

    weights: float
    inputs: float
    sums: float


def energy_prices(machine: TiledMachine) -> Prices:
    """pJ per byte.

    A copy is written into a buffer, and passes a link or comes from DRAM once more.  The array of every
    engine that has a weight reads it.  An unfinished sum was written, and read, where it was made.
    """
    engine = machine.engine
    copy = engine.buffer_write_energy + min(machine.hop_energy, machine.dram_energy)
    made = engine.buffer_write_energy + engine.buffer_read_energy
    return Prices(copy + array_reads(engine), copy, copy + made)


def array_reads(engine: TileEngine) -> float:
    """pJ that one more engine takes to read a byte of weights; none where reads follow the pixels."""
    return 0.0 if engine.dataflow == "yx" else engine.buffer_read_energy


def beside_atoms(prices: Prices, engine: TileEngine) -> Prices:
    """What copies cost besides weights read by arrays and sums written, which energies of atoms may count."""
    return Prices(
        prices.weights - array_reads(engine), prices.inputs, prices.sums - engine.buffer_write_energy
    )


def copies(layer: SharedLayer, prices: Prices, engines: Floats) -> Floats:
    """The least cost of what enters buffers beyond one copy of everything.

    Parameters
    ----------
    engines : that share the layer at least: one over the largest share
    """
    kinds = (layer.weights * prices.weights, layer.inputs * prices.inputs, layer.sums * prices.sums)
    first = layer.weights * prices.weights + layer.read * prices.inputs + layer.sums * prices.sums
    extra: Floats = np.maximum(0.0, _least_sum(kinds, np.maximum(engines, 1.0)) - first)
    return extra


def _least_sum(kinds: Sequence[float], product: Floats) -> Floats:
    """The least sum of ``kinds`` times factors of 1 or more whose product is given.

    The cheapest are raised to a common level.
    """
    p, q, r = sorted(kinds)
    raised_first = p * product
    raised_two = np.sqrt(p * q * product)
    raised_all = np.cbrt(p * q * r * product)
    least: Floats = np.where(
        raised_first <= q, raised_first + q + r, np.where(raised_two <= r, 2 * raised_two + r, 3 * raised_all)
    )
    return least


def shared_layers(problem: TiledProblem, whole: AtomicDag) -> list[list[SharedLayer]]:
    """The layers whose copies can be told, in groups that read one tensor alike.

    Per tensor that is the group with the most work.

    Parameters
    ----------
    whole : every layer as one atom
    """
    groups: dict[int | str, dict[object, list[SharedLayer]]] = {}
    inputs: set[int | str] = set()
    for index, unit in enumerate(problem.units):
        # of an input of the network, the first reader's bytes are in the bounds that copies are added to
        new = {read.source for read in unit.reads if read.producer is None}
        first = not (new & inputs)
        inputs |= new
        layer = shared_layer(problem, whole, index)
        if layer is None:
            continue
        source = source_of(problem, index)
        alike = groups.setdefault(source.source, {})
        way = layer.inputs, layer.read, _way(problem, source)
        if first or not layer.outside or way in alike:
            alike.setdefault(way, []).append(layer)
    return [max(alike.values(), key=_work) for alike in groups.values() if alike]


def merged(layers: Sequence[SharedLayer]) -> SharedLayer:
    """Layers that read one tensor alike as one layer with the channels of all, at the pace of the fastest."""
    pace = max(layer.pace for layer in layers)
    return replace(
        layers[0],
        work=sum(layer.work * layer.pace for layer in layers) / pace,
        weights=sum(layer.weights for layer in layers),
        sums=sum(layer.sums for layer in layers),
        pace=pace,
    )


def _work(layers: Sequence[SharedLayer]) -> float:
    return sum(layer.work for layer in layers)


def _way(problem: TiledProblem, read: Read) -> object:
    """How a layer reads, whatever channels it makes, and the bits of its weights."""
    operator = read.layer.operator
    shape = shape_of(operator)
    others = [(name, bound) for name, bound in operator.bounds.items() if name not in shape.loops[CHANNEL]]
    weights = next(tensor for tensor in operator.inputs if tensor.role is Role.WEIGHT)
    width = tensor_bits(weights, problem.machine.engine)
    return operator.tensor(read.operand).axes, tuple(others), read.way, width


def work_and_weights(problem: TiledProblem, operator: Operator) -> tuple[float, int] | None:
    """Cycles that a layer takes one engine at the least, and bytes of its weights.

    ``None`` where not every channel has its own weights for each part of a sum, shared by all pixels.
    """
    weights = weight_elements(operator)
    if operator_kind(operator) != "mac" or weights is None:
        return None
    engine = problem.machine.engine
    _, rows, columns = shape_of(operator).sizes
    multiplications = weights * problem.batch * rows * columns
    tensor = next(tensor for tensor in operator.inputs if tensor.role is Role.WEIGHT)
    return multiplications / fastest(engine, operator), weights * tensor_bits(tensor, engine) // 8


def source_of(problem: TiledProblem, index: int) -> Read:
    """What a layer that engines share multiplies with its weights."""
    return next(read for read in problem.units[index].reads if not read.late)


def shared_layer(problem: TiledProblem, whole: AtomicDag, index: int) -> SharedLayer | None:
    """A layer's copies; ``None`` where its loops or reads have another form.

    Parameters
    ----------
    problem, whole, index : the layer
    """
    unit, engine = problem.units[index], problem.machine.engine
    operator = unit.layer.operator
    early = [read for read in unit.reads if not read.late]
    if len(early) != 1 or not unit.layer.stored_weights:
        return None
    if early[0].producer is None and len({read.source for read in unit.reads}) > 1:
        return None
    weighed, met = work_and_weights(problem, operator), _met(problem, early[0])
    if weighed is None or met is None:
        return None
    shape = shape_of(operator)
    channels, rows, columns = shape.sizes
    pixels = problem.batch * rows * columns
    blocks = whole.reads_of(index)
    mine = whole.block_parent[blocks] == (-1 if early[0].producer is None else early[0].producer)
    stored = whole.block_kind[blocks] == WEIGHTS
    producer = early[0].producer
    bits = (
        tensor_bits(operator.tensor(early[0].operand), engine)
        if producer is None
        else problem.result_bits[producer]
    )
    work, weights = weighed
    return SharedLayer(
        unit=index,
        work=work,
        weights=weights,
        inputs=met * shape.parts * pixels * bits // 8,
        sums=channels * pixels * SUM_BYTES,
        read=int(whole.block_bytes[blocks[mine & ~stored]].sum()),
        outside=early[0].producer is None,
        pace=fastest(engine, operator),
    )


def fastest(engine: TileEngine, operator: Operator) -> int:
    """Multiplications per cycle that no atom of a layer exceeds."""
    shape = shape_of(operator)
    channels, rows, columns = shape.sizes
    if engine.dataflow == "yx":
        return min(engine.rows, rows) * min(engine.columns, columns)
    if engine.dataflow == "kc":
        return min(engine.rows, shape.parts) * min(engine.columns, channels)
    lanes = min(engine.lanes, shape.parts) * min(engine.lanes, channels)
    return lanes * engine.rows * engine.columns


def weight_elements(operator: Operator) -> int | None:
    """Elements of the weights, if each channel has its own for each part of a sum, and pixels share them."""
    shape = shape_of(operator)
    tensors = [tensor for tensor in operator.inputs if tensor.role is Role.WEIGHT]
    if len(tensors) != 1 or len(operator.inputs) != 2 or shape.part is None or any(shape.scattered):
        return None
    like = {dimension.name: dimension.like for dimension in operator.dimensions}
    loops = shape.loops[CHANNEL]
    if any(like[name] != "K" for name in loops) or not all(len(axis.terms) == 1 for axis in tensors[0].axes):
        return None
    dims = [axis.terms[0].dim for axis in tensors[0].axes]
    pixels = {*shape.loops[ROW], *shape.loops[COLUMN]}
    if len(set(dims)) != len(dims) or not {*loops, shape.part} <= set(dims) or pixels & set(dims):
        return None
    # whatever else the operator sums over, the weights have, too: windows
    if any(name not in dims and name not in pixels for name in like if operator.bounds[name] > 1):
        return None
    return math.prod(operator.bounds[name] for name in dims)


def _met(problem: TiledProblem, read: Read) -> int | None:
    """Positions of the input that every result can be given as its own, per part of the sum."""
    operator = read.layer.operator
    shape = shape_of(operator)
    nothing: Cuts = ((), (), (), ())
    if read.producer is None:
        origin = from_outside(input_sizes(operator, read.operand, read.link), read.link, nothing)
    else:
        origin = made_by(problem.units[read.producer], read.link, nothing)
    along = axes_along(operator, read.operand, origin)
    if along is None or along[1]:
        return None
    channel, rows, columns = along[0]
    sizes = origin.sizes
    if channel.depends != (PART,) or channel.first != 0 or sizes[CHANNEL] != shape.parts:
        return None
    if rows.depends not in ((ROW,), ()) or columns.depends not in ((COLUMN,), ()):
        return None
    own = [
        _OWN.get(operator, (axes, sizes[axis], axis), partial(_own, operator, axes, sizes[axis], axis))
        for axis, axes in ((ROW, rows), (COLUMN, columns))
    ]
    return own[0] * own[1] or None


_OWN: Memo[int] = Memo(lambda value: 1)


def _own(operator: Operator, axes: OperandAxes, size: int, axis: int) -> int:
    """Positions along a coordinate that each result has to itself, by a greedy choice."""
    count = shape_of(operator).sizes[axis]
    if count > MOST_PLACES:
        return 0
    reads = [
        positions_read(operator, axes, size, loop_ranges(operator, axis, at, at + 1)).tolist()
        for at in range(count)
    ]
    for share in range(min(map(len, reads)), 0, -1):
        taken: set[int] = set()
        for positions in reads:
            free = [position for position in positions if position not in taken][:share]
            if len(free) < share:
                break
            taken.update(free)
        else:
            return share
    return 0
