"""Layers that differ in sizes alone, such as the steps of a decoder behind a growing cache.

Let a layer have bounds ``b`` in some dimensions, and let ``a <= b`` be smaller ones.  *Cut off* at ``a``, a
mapping has ``min(tile, a)`` in place of every tile: it runs those iterations of its nest whose indices lie
below ``a``, in the same order and on the same instances.  So there are no more pieces, trips, instances or
iterations, and no piece has more elements: each is a part of one that was there before.  Counts of the
``hierarchy`` model are sums over pieces, its cycles grow with counts and first tiles, its capacities ask for
whole tiles.  A legal mapping cut off is therefore legal, and takes no more energy and no more cycles.

That says two things of a layer whose bounds lie between ``a`` and ``b``:

- the mapping of ``b``, cut off, is a mapping of it, so it costs no more than ``b``'s does;
- no mapping of it costs less than the best one at ``a`` over the tiles of all bounds from ``a`` to ``b``, cut
  off.  The tiles that the searched space has at ``a`` alone do not suffice: ``ceil(b / n)`` cut off need not
  be the least tile of its trip count at ``a``.  `spanning` therefore makes an operator with the bounds ``a``
  and all those tiles.

Buffers that share tiles are left out (fewer instances may keep larger shares), and so are set-up cycles,
drained levels, demands, windows and perfect factors, whose tiles differ from bound to bound.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import replace

from tilewright.formulation.mapping.mapping import Mapping, Node, Spatial, Temporal
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator


def grows(engine: Engine, model: str, factors: str | None, constraints: Sequence[str]) -> bool:
    """Whether costs are known to grow with bounds on a machine.

    Parameters
    ----------
    engine : the machine
    model : name of the cost model
    factors : ``perfect``, ``imperfect`` or ``None`` for the model's own choice
    constraints : the user's demands
    """
    shares = any(level.fanout is not None and level.fanout.sharing for level in engine.levels)
    sets_up = any(level.timing.set_up or level.timing.drained for level in engine.levels)
    plain = model == "hierarchy" and factors != "perfect" and not constraints
    return plain and not shares and not sets_up


def spanning(shorter: Operator, longer: Operator) -> Operator | None:
    """An operator that no layer between two costs less than; ``None`` where they differ in more than sizes.

    Parameters
    ----------
    shorter, longer : the same nest, the second with some larger bounds, twice the first's at most
    """
    grown = {
        dim: (bound, longer.bounds[dim])
        for dim, bound in shorter.bounds.items()
        if bound != longer.bounds.get(dim)
    }
    if any(not 1 < low < high <= 2 * low for low, high in grown.values()):
        return None
    if _resized(shorter, longer.bounds) != _resized(longer, longer.bounds):
        return None
    if any(
        axis.is_compound or axis.terms[0].stride != 1
        for tensor in shorter.tensors
        for axis in tensor.axes
        if any(term.dim in grown for term in axis.terms)
    ):
        return None
    dimensions = tuple(
        replace(dimension, upto=grown[dimension.name][1]) if dimension.name in grown else dimension
        for dimension in shorter.dimensions
    )
    return replace(shorter, dimensions=dimensions)


def cut_off(mapping: Mapping, bounds: MappingABC[str, int]) -> Mapping:
    """The mapping of a layer with smaller bounds that a mapping becomes: no tile is larger than its bound.

    Parameters
    ----------
    bounds : of the smaller layer, by dimension
    """
    tile: dict[str, int] = dict(bounds)
    nodes: list[Node] = []
    for node in mapping.nodes:
        if isinstance(node, Temporal | Spatial):
            inner = min(node.tile, bounds[node.dim])
            if inner == tile[node.dim]:
                continue  # a loop of one iteration, which no mapping has
            tile[node.dim] = inner
            nodes.append(replace(node, tile=inner))
        else:
            nodes.append(node)
    return Mapping(tuple(nodes))


def _resized(operator: Operator, bounds: MappingABC[str, int]) -> Operator:
    """An operator with other bounds, whose axes are as long as its loops span."""
    if bounds.keys() != operator.bounds.keys():
        return operator
    dimensions = tuple(replace(d, bound=bounds[d.name]) for d in operator.dimensions)
    tensors = tuple(
        replace(tensor, axes=tuple(replace(axis, size=axis.extent(bounds)) for axis in tensor.axes))
        for tensor in operator.tensors
    )
    return replace(operator, dimensions=dimensions, tensors=tensors)
