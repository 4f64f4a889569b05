"""What every mapping with some tile of a level costs inside that level at least.

A tile tells much of what lies further inside: how many iterations an element serves before a small store
must take another one, how many PEs may share an access, and how much of an array is idle in the remainders
of the tile.  Each is told for one tensor and one store, so it may stand for what is not decided yet
(``docs/proofs.md``, outer levels).
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

from tilewright.formulation.expression import (
    Expr,
    Variable,
    as_expr,
    ceil_div,
    choose,
    is_one,
    maximum,
    product,
    total,
    where,
)
from tilewright.formulation.mapping.cost.base import whole
from tilewright.formulation.mapping.cost.hierarchy_counts import selected_counts
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.parts.compulsory import (
    least_accesses,
    may_spread,
    most_sharers,
    sharing_dims,
    splits,
    touched,
)
from tilewright.formulation.mapping.parts.storage_parts import energy_of_moving
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.workloads.mapping.operator import Tensor

_MOST = 40  # divisions of an array that are told apart

Place = tuple[int | None, str]
"""A level inside that stores a tensor, ``None`` for the PEs, and the tensor."""


class LeastInside:
    """Lower bounds of what moves into stores and PEs inside a level, by the loops up to its tile.

    Parameters
    ----------
    problem : every tensor of which has one choice of storage
    nest : its loops outside the tile; the last block stands for all that are inside
    scale : units of a pJ

    Attributes
    ----------
    energy : scaled, by place
    selectors : open choices of the divisions of arrays; the least option of each counts
    """

    def __init__(self, problem: LayerProblem, nest: Nest, scale: int) -> None:
        self._problem, self._nest, self._scale = problem, nest, scale
        self._last = len(nest.engine.levels) - 1
        self.energy: dict[Place, Expr] = {}
        self.selectors: list[Variable] = []
        for tensor in problem.operator.tensors:
            (stores,) = problem.space.nest.residency[tensor.name].alternatives
            for source, inside in pairwise(stores):
                if inside > self._last:
                    self.energy[inside, tensor.name] = self._moved(tensor, source, inside)
            self.energy[None, tensor.name] = self._accessed(tensor, stores[-1])

    def _moved(self, tensor: Tensor, source: int, inside: int) -> Expr:
        """Energy of what a store inside hands on or takes."""
        operator, levels = self._problem.operator, self._problem.engine.levels
        unit = int(energy_of_moving(levels[source], levels[inside], tensor) * self._scale)
        least = unit * touched(operator, tensor)
        if source > self._last or not has_own_loops(tensor):
            return as_expr(least)
        options = [as_expr(least), unit * served_anew(self._problem, self._nest, tensor, source, inside)]
        is_plain = all(term.stride == 1 for axis in tensor.axes for term in axis.terms)
        # Instances that start sums at zero are the same where no array is between.
        fans = any(level.fanout is not None for level in levels[self._last : inside])
        if source < self._last and is_plain and not (fans and tensor.is_output):
            reads, updates, fills = as_if_stored(self._problem, self._nest, tensor, source)
            role, (outside, store) = tensor.role, (levels[source], levels[inside])
            read, write, fill = (
                int(energy * self._scale)
                for energy in (
                    outside.read_energy_of(role),
                    outside.write_energy_of(role),
                    store.write_energy_of(role),
                )
            )
            options.append(total([read * reads, write * updates, fill * fills]))
        return maximum(options)

    def _accessed(self, tensor: Tensor, innermost: int) -> Expr:
        """Energy of accesses by PEs, and of reading sums again.

        PEs inside the last level share no more than its tile has of the loops that may be spread there and
        leave the tensor in place.  Sums are read again, but for the first of every element in every instance.

        Parameters
        ----------
        innermost : level that stores the tensor for the PEs
        """
        operator, levels, nest = self._problem.operator, self._problem.engine.levels, self._nest
        level = levels[innermost]
        count = self._accesses(tensor, innermost)
        if not tensor.is_output:
            return whole(level.read_energy_of(tensor.role), self._scale) * count
        updates = whole(level.write_energy_of(tensor.role), self._scale) * count
        if tensor.overlaps:
            return updates
        beyond = [
            store.fanout.instances for store in levels[self._last : innermost] if store.fanout is not None
        ]
        partners = nest.trips(nest.spatial, [dim for dim in operator.bounds if dim not in tensor.dims])
        starts = product([tensor.footprint(operator.bounds), *beyond, *partners])
        again = maximum([0, count - starts])
        return total([updates, whole(level.read_energy_of(tensor.role), self._scale) * again])

    def _accesses(self, tensor: Tensor, innermost: int) -> Expr:
        """Accesses of all PEs to the innermost stores of a tensor."""
        operator, engine, nest = self._problem.operator, self._problem.engine, self._nest
        place, levels = nest.temporal[-1], engine.levels
        inside = levels[max(innermost, self._last) :]
        full = max(least_accesses(operator, engine, tensor, innermost), touched(operator, tensor))
        dims = sharing_dims(operator, tensor, levels[innermost:])
        outside = most_sharers(operator, tensor, levels[innermost : self._last], dims)
        own = [dim for dim in operator.bounds if dim in dims and may_spread(operator, dim, inside)]
        options = splits(operator, tensor, inside, own)
        if len(options) > _MOST:
            tile = [nest.boundaries[place][dim] for dim in own]
            return maximum([full, ceil_div(operator.iterations, product([outside, *tile]))])
        others = [bound for dim, bound in operator.bounds.items() if dim not in own]
        steps = [
            product([*others, *(nest.cut_to(dim, place, size) for dim, size in split.items())])
            for split in options
        ]
        counts = [ceil_div(count, outside) for count in steps]
        if len(counts) == 1:
            return maximum([full, *counts])
        selector = Variable(f"array around {tensor.name}", tuple(range(len(counts))))
        self.selectors.append(selector)
        return maximum([full, choose(selector, counts)])


def has_own_loops(tensor: Tensor) -> bool:
    """Whether every axis of a tensor has one loop, which moves along no other axis."""
    dims = [term.dim for axis in tensor.axes for term in axis.terms]
    return len({*dims}) == len(dims) and not tensor.overlaps


def served_anew(problem: LayerProblem, nest: Nest, tensor: Tensor, source: int, inside: int) -> Expr:
    """Elements that a store inside takes, if it cannot hold the last level's tile; else 0.

    Some loop within that tile fills it anew then: an element serves no more iterations at a time than there
    are, in the tiles that share it, of the loops that leave it in place.

    Parameters
    ----------
    nest : the loops outside the tile; the last block stands for all that are inside
    tensor : of which every axis has a loop of its own
    source, inside : level that the tensor comes from, and the one inside
    """
    engine = problem.engine
    place, last, store = nest.temporal[-1], len(nest.engine.levels) - 1, engine.levels[inside]
    if tensor.role in store.partitions:
        bits: int | None = store.partitions[tensor.role] * engine.width(store, tensor.role)
    else:
        bits = engine.usable_bits(store)
    if bits is None:
        return as_expr(0)
    fans = [level.fanout for level in engine.levels[last:inside]]
    most = bits // engine.width(store, tensor.role)
    most *= math.prod(fan.instances for fan in fans if fan is not None)
    fits = is_one(ceil_div(product(nest.boundaries[place][dim] for dim in tensor.dims), most))
    return where(fits, 0, fetched_anew(problem, nest, tensor, source))


def fetched_anew(problem: LayerProblem, nest: Nest, tensor: Tensor, source: int) -> Expr:
    """Elements that a store inside takes at least, if some loop within the last level's tile moves them.

    Parameters
    ----------
    nest, tensor, source : as :func:`served_anew` takes them
    """
    place, bounds = nest.temporal[-1], problem.operator.bounds
    still = [dim for dim in bounds if dim not in tensor.dims]
    between = nest.spatial_between(nest.residency[tensor.name].positions[source], place)
    tile = nest.boundaries[place]
    served = product([*(tile[dim] for dim in still), *nest.trips(between, still)])
    return ceil_div(problem.operator.iterations, served)


def as_if_stored(problem: LayerProblem, nest: Nest, tensor: Tensor, source: int) -> tuple[Expr, Expr, Expr]:
    """What a level hands out and takes back, and a store inside takes, if the last level were that store.

    A store inside is filled at least as often.

    Parameters
    ----------
    nest : the loops outside the last level's tile; the last block stands for all that are inside
    source : the level outside the last one that the tensor comes from
    """
    last = len(nest.engine.levels) - 1
    residency = nest.residency[tensor.name]
    stores = (*(level for level in residency.alternatives[0] if level <= source), last)
    positions = {**residency.positions, last: nest.temporal[-1]}
    own = replace(residency, positions=positions, alternatives=(stores,))
    virtual = nest.storing(nest.engine, {**nest.residency, tensor.name: own})
    counts = selected_counts(virtual, tensor, source, whole_run=True)
    return counts.reads, counts.updates, selected_counts(virtual, tensor, last, whole_run=True).fills
