"""Cycles of the stores at one level: those of all levels together are no more than a mapping takes.

The latency of the ``hierarchy`` model is the slowest of all that overlaps, and on top of it what nothing
hides: the first fill and the last drain of every double-buffered level, which its own tiles decide.
Computing overlaps; it counts with the innermost level, whose tiles and arrays decide it.  Of what overlaps
with computing only what must pass the ports of some level counts, whatever the tiles.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from typing import NamedTuple

from tilewright.formulation.expression import Expr, maximum, tighten, total
from tilewright.formulation.mapping.cost.hierarchy_cycles import first_tiles, first_times
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.parts.compulsory import least_transfers
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Tensor


class Place(NamedTuple):
    """A level, by its index in a machine and in one that has a level for several of them."""

    level: int
    merged: int


def busy_cycles(engine: Engine, nest: Nest) -> Expr:
    """Cycles, in a turn, of what overlaps: of computing, and of what must pass the ports of some level.

    Parameters
    ----------
    engine : the machine
    nest : on a machine that has one level for several
    """
    operator = nest.operator
    peak = -(-operator.iterations // nest.cap(nest.spatial))
    transfers = least_transfers(operator, engine) // operator.turns
    computing = tighten(nest.steps(), lower=peak)
    return maximum([computing, transfers]) if transfers > peak else computing


def own_cycles(
    engine: Engine, nest: Nest, place: Place, sources: MappingABC[str, Place], busy: Expr | None = None
) -> Expr:
    """Cycles of the stores at one level of a machine.

    Parameters
    ----------
    engine : the machine
    nest : on a machine that has one level for several
    place : of the level; where nothing is stored there, the other machine may lack it
    sources : where those tensors come from that the level stores, by their names
    busy : cycles of all that overlaps, where they count with this level
    """
    operator = nest.operator
    cycles = [] if busy is None else [busy]
    if engine.levels[place.level].double_buffered and not engine.starts:  # ports of fused layers are others
        for is_output in (False, True):
            tensors = [t for t in operator.tensors if t.name in sources and t.is_output is is_output]
            times = _times(engine, nest, place.merged, tensors, sources)
            cycles += [maximum(times)] if times else []
    return operator.turns * total(cycles)


def _times(
    engine: Engine, nest: Nest, inner: int, tensors: Sequence[Tensor], sources: MappingABC[str, Place]
) -> list[Expr]:
    """Cycles in which first tiles of inputs, or last ones of outputs, pass the ports of their sources.

    Parameters
    ----------
    engine : has the ports
    nest, inner : has the tiles, at one of its levels
    tensors : all inputs, or all outputs
    sources : where they come from
    """
    times: list[Expr] = []
    for source in dict.fromkeys(sources[tensor.name] for tensor in tensors):
        outer = engine.levels[source.level]
        own = [tensor for tensor in tensors if sources[tensor.name] == source]
        sizes = [(tensor.role, first_tiles(nest, tensor, source.merged, inner)) for tensor in own]
        times += first_times(engine, outer, sizes, is_output=own[0].is_output)
    return times
