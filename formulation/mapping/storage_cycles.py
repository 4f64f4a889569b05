"""Cycles of the stores at one level: those of all levels together are no more than a mapping takes.

The latency of the ``hierarchy`` model is the slowest of all that overlaps, and on top of it what nothing
hides: the first fill and the last drain of every double-buffered level, which its own tiles decide.
Computing overlaps; it counts with the innermost level, whose tiles and arrays decide it.  What overlaps with
computing is left out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence

from tilewright.formulation.expression import Expr, maximum, tighten, total
from tilewright.formulation.mapping.cost.hierarchy_cycles import first_tiles, transfer
from tilewright.formulation.mapping.nest import Nest
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Tensor


def own_cycles(engine: Engine, level: int, nest: Nest, sources: MappingABC[str, int]) -> Expr:
    """Cycles of the stores at one level of a machine.

    Parameters
    ----------
    engine : the machine
    level : index of the level
    nest : on a machine that has one level for all those between two arrays, and the level as its last one;
        without it where nothing is stored there
    sources : by name of the tensors that the level stores, index of the level that each comes from
    """
    operator = nest.operator
    cycles: list[Expr] = []
    if level == len(engine.levels) - 1:
        peak = -(-operator.iterations // nest.cap(nest.spatial))
        cycles.append(tighten(nest.steps(), lower=peak))
    if engine.levels[level].double_buffered and not engine.starts:  # ports of fused layers are others
        for is_output in (False, True):
            tensors = [t for t in operator.tensors if t.name in sources and t.is_output is is_output]
            cycles += _slowest(engine, nest, tensors, sources)
    return operator.turns * total(cycles)


def _slowest(
    engine: Engine, nest: Nest, tensors: Sequence[Tensor], sources: MappingABC[str, int]
) -> list[Expr]:
    """Cycles in which the first tiles of some inputs, or the last ones of outputs, pass the busiest port."""
    arrays = [index for index, outer in enumerate(engine.levels) if outer.fanout is not None]
    inner = len(nest.engine.levels) - 1
    times: list[Expr] = []
    for source in dict.fromkeys(sources[tensor.name] for tensor in tensors):
        outer, run = engine.levels[source], bisect_left(arrays, source)
        own = [tensor for tensor in tensors if sources[tensor.name] == source]
        sizes = [(tensor.role, first_tiles(nest, tensor, run, inner)) for tensor in own]
        taken = [(role, size) for role, size in sizes if size is not None]
        assert len(taken) == len(own)
        is_output = own[0].is_output
        rates = (outer.write_bandwidth if is_output else outer.read_bandwidth, outer.shared_bandwidth)
        times += [transfer(engine, outer, taken, rate) for rate in rates if rate is not None]
    return [maximum(times)] if times else []
