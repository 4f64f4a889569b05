"""What every mapping of a layer costs at least, whatever the points of storage: traffic that no reuse saves.

Every element that is read comes out of the outermost level once, and into every level that must store it;
every output goes back once; every multiply-accumulate takes its operands from the innermost stores, an
element for all PEs of the arrays below them that may share it at best.  It is a weak bound, but it needs no
statement, so it holds for what a limit left unstated.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from operator import ge

from tilewright.formulation.expression import as_expr
from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.mapping.cost.hierarchy_cycles import port_times
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, MemoryLevel
from tilewright.workloads.mapping.operator import Axis, Operator, Role, Tensor


def least_key(problem: LayerProblem) -> Fraction:
    """No mapping of the problem has an objective key below this; 0 where the cost model counts otherwise."""
    if problem.model.name != "hierarchy":
        return Fraction(0)
    operator, engine = problem.operator, problem.engine
    a, b = problem.objective.key_powers
    return least_energy(operator, engine) ** a * Fraction(least_cycles(operator, engine)) ** b


def least_energy(operator: Operator, engine: Engine) -> Fraction:
    """Compulsory energy, pJ."""
    energy = engine.mac_energy * operator.iterations
    for tensor in operator.tensors:
        elements = touched(operator, tensor)
        outermost = engine.levels[0]
        spent = outermost.write_energy_of if tensor.is_output else outermost.read_energy_of
        energy += elements * spent(tensor.role)
        musts = [
            index
            for index, level in enumerate(engine.levels)
            if index and tensor.role in level.keeps - level.may_bypass
        ]
        for index in musts:
            energy += elements * engine.levels[index].write_energy_of(tensor.role)
        last = max(
            (index for index, level in enumerate(engine.levels) if tensor.role in level.keeps), default=0
        )
        if last and last in musts:
            level, accesses = engine.levels[last], least_accesses(operator, engine, tensor, last)
            if tensor.is_output:
                energy += max(0, accesses - elements) * level.write_energy_of(tensor.role)
            else:
                energy += accesses * level.read_energy_of(tensor.role)
    return energy + engine.leak * least_cycles(operator, engine)


def least_cycles(operator: Operator, engine: Engine) -> int:
    """Cycles of a full array, or of compulsory transfers through the ports of some level."""
    return max(least_compute(operator, engine), least_transfers(operator, engine))


def least_compute(operator: Operator, engine: Engine) -> int:
    """Cycles with every PE at work in each of them."""
    return operator.turns * -(-operator.iterations // engine.instances)


def least_transfers(operator: Operator, engine: Engine) -> int:
    """Cycles in which the ports of some level move at least what must pass them, hidden or not.

    First fills and last drains come on top.
    """
    cycles, outside = [0], 1
    for index, level in enumerate(engine.levels):
        handed, taken = _passing(operator, engine, index)
        # One instance moves no less than all of them on average.
        reads, writes = (
            [(role, as_expr(-(-count // outside))) for role, count in moved] for moved in (handed, taken)
        )
        cycles += [evaluate(time, {}) for time in port_times(engine, level, reads, writes)]
        if level.fanout is not None:
            if level.fanout.sharing:
                break  # buffers inside hold parts of a tile and pass them on
            outside *= level.fanout.instances
    return operator.turns * max(cycles)


def _passing(
    operator: Operator, engine: Engine, index: int
) -> tuple[list[tuple[Role, int]], list[tuple[Role, int]]]:
    """Elements per role that a level's ports read and write at least, in all of its instances together.

    A level that must store a tensor takes each of its elements from one side and hands it to the other.
    """
    level = engine.levels[index]
    reads: list[tuple[Role, int]] = []
    writes: list[tuple[Role, int]] = []
    for tensor in operator.tensors:
        store, elements = engine.store_behind(index, tensor.role), touched(operator, tensor)
        if store is None or (store and tensor.role not in level.keeps - level.may_bypass):
            continue
        inside = elements
        if not any(tensor.role in inner.keeps for inner in engine.levels[index + 1 :]):
            inside = max(elements, least_accesses(operator, engine, tensor, index))
        if tensor.is_output:
            writes.append((tensor.role, inside))
        else:
            reads.append((tensor.role, inside))
            writes += [(tensor.role, elements)] * (store > 0)
    return reads, writes


def touched(operator: Operator, tensor: Tensor) -> int:
    """Elements of a tensor that some iteration needs; fewer where two axes move with one dimension."""
    dims = [term.dim for axis in tensor.axes for term in axis.terms]
    sizes = [_values(operator, axis) for axis in tensor.axes]
    return math.prod(sizes) if len(set(dims)) == len(dims) else max(sizes, default=1)


def _values(operator: Operator, axis: Axis) -> int:
    """Different indices along an axis."""
    return _different(tuple((term.stride, operator.bounds[term.dim]) for term in axis.terms))


@lru_cache(maxsize=1024)
def _different(loops: tuple[tuple[int, int], ...]) -> int:
    """Different sums of one multiple of every stride, of (stride, bound) each."""
    reached = {0}
    for stride, bound in loops:
        reached = {start + stride * i for start in reached for i in range(bound)}
    return len(reached)


def least_accesses(operator: Operator, engine: Engine, tensor: Tensor, level: int) -> int:
    """Accesses of all PEs at least to the stores of a tensor at its innermost level.

    Every iteration is one, except that PEs may share an element along an axis with a loop that leaves the
    tensor in place, or that moves it along with another loop, which is spread as well.

    Parameters
    ----------
    operator, engine : the layer and the machine
    tensor : whose elements PEs read, or add to
    level : index of the innermost level that stores it
    """
    levels = engine.levels[level:]
    together = most_sharers(operator, tensor, levels, sharing_dims(operator, tensor, levels))
    return -(-operator.iterations // together)


def sharing_dims(operator: Operator, tensor: Tensor, levels: Sequence[MemoryLevel]) -> frozenset[str]:
    """Dimensions that several PEs may need the same element of a tensor for, if they are spread.

    Parameters
    ----------
    levels : the innermost one that stores the tensor, and those inside it
    """
    places = [[term.dim for term in axis.terms] for axis in tensor.axes]
    moving = {
        dim
        for dims in places
        for dim in dims
        if sum(other.count(dim) for other in places) == 1
        and not any(may_spread(operator, other, levels) for other in {*dims} - {dim})
    }
    return frozenset(operator.bounds) - moving


def may_spread(operator: Operator, dim: str, levels: Sequence[MemoryLevel]) -> bool:
    """Whether an axis of the arrays of some levels may carry a dimension."""
    (like,) = (dimension.like for dimension in operator.dimensions if dimension.name == dim)
    axes = (axis for level in levels if level.fanout is not None for axis in level.fanout.axes)
    return any(axis.carries is None or like in axis.carries for axis in axes)


def most_sharers(
    operator: Operator, tensor: Tensor, levels: Sequence[MemoryLevel], dims: Collection[str]
) -> int:
    """Instances of the arrays of some levels that may share an access to an element at most.

    Parameters
    ----------
    dims : for which they may need the same element
    """
    sharing = {dimension.like for dimension in operator.dimensions if dimension.name in dims}
    axes = _axes_of_sharers(tensor, levels)
    return math.prod(axis.size for axis in axes if axis.carries is None or axis.carries & sharing)


def _axes_of_sharers(tensor: Tensor, levels: Sequence[MemoryLevel]) -> Iterator[ArrayAxis]:
    """The axes of arrays whose instances may share an access to a tensor's element."""
    for fan in (level.fanout for level in levels):
        if fan is not None and (fan.reduction if tensor.is_output else fan.multicast):
            yield from fan.axes


def splits(
    operator: Operator, tensor: Tensor, levels: Sequence[MemoryLevel], dims: Collection[str]
) -> list[dict[str, int]]:
    """How arrays may be divided among dimensions for which PEs share an access.

    Parameters
    ----------
    tensor : whose accesses are shared
    levels : whose arrays are divided
    dims : that may need the same element

    Returns instances by dimension; of divisions that another one exceeds, there are none.
    """
    like = {dimension.name: dimension.like for dimension in operator.dimensions}
    divided = {(1,) * len(dims)}
    for axis in _axes_of_sharers(tensor, levels):
        most = [
            min(axis.size, operator.bounds[dim]) if axis.carries is None or like[dim] in axis.carries else 1
            for dim in dims
        ]
        own = _largest(list(_within(axis.size, most)))
        divided = {
            tuple(a * b for a, b in zip(before, now, strict=True)) for before in divided for now in own
        }
    bounds = [operator.bounds[dim] for dim in dims]
    capped = {tuple(map(min, split, bounds)) for split in divided}
    return [dict(zip(dims, split, strict=True)) for split in sorted(_largest(list(capped)))]


def _within(size: int, most: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Numbers whose product is at most a size, none above its own most."""
    if not most:
        yield ()
        return
    for own in range(1, min(size, most[0]) + 1):
        for rest in _within(size // own, most[1:]):
            yield (own, *rest)


def _largest(splits: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Those that no other one is at least as large as in all places."""
    return [
        split
        for split in splits
        if not any(other != split and all(map(ge, other, split)) for other in splits)
    ]
