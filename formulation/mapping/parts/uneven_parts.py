"""Parts of storage patterns over uneven storage, which bound all sequences of points of storage at once.

What moves into one level's stores depends on the tiles there and on the loops around them alone.  So what a
level costs is least on a machine of its own, whatever the other levels' points are: between two array axes
there is one level besides (:mod:`tilewright.formulation.mapping.parts.storage_parts`), and its own points
stand in any of a few sequences.  Levels of a deep machine have millions of sequences together, and six each
(``docs/proofs.md``, levels of uneven storage).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import islice

from tilewright.formulation.expression import Expr, ceil_div
from tilewright.formulation.mapping.nests.arrangement_rules import arrangement_limits, block_orders
from tilewright.formulation.mapping.nests.arrangements import Reduction, arrangements
from tilewright.formulation.mapping.nests.nest import Nest, Spread
from tilewright.formulation.mapping.nests.remainders import MergedCuts, least_spanned, most_held
from tilewright.formulation.mapping.parts.storage_parts import (
    StoragePart,
    has_storage_parts,
    machine_of_part,
    stated_part,
)
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.space import Alike, build_space
from tilewright.workloads.mapping.operator import Axis, Tensor

_FEW, _FEW_OF_PATTERNS = 60, 30
"""Arrangements that other bounds tell as much of, without and with levels that may be bypassed; 60 are those
of one level outside the array and one inside it, which store all tensors."""


class FewestPieces(Nest):
    """A nest without arrays, whose counts are at most those of any nest with these tiles at the stores.

    Where tiles need not divide, any cuts of ``b`` iterations leave ``ceil(b / t)`` pieces of at most ``t`` or
    more.
    """

    def _imperfect_measure(self, measure: str, dim: str, boundary: int, counted: Collection[int]) -> Expr:
        """As if there were one cut into the innermost tile that counts; only outer cuts ever do alone."""
        bound, tile = self.boundaries[0][dim], self.boundaries[boundary][dim]
        last = self.boundaries[1 + max(counted)][dim] if counted else bound
        if measure == "pieces":
            return ceil_div(bound, last)
        return bound if last is tile else tile

    def window(
        self,
        axis: Axis,
        boundary: int,
        counted: Callable[[str], Collection[int]],
        sides: Collection[int] = (),
        slide: tuple[str, int] | None = None,
    ) -> Expr:
        """Of loops that share an axis what their pieces span at least; a first tile is a whole one.

        Parameters
        ----------
        axis : of a tensor; compound where several loops move along it
        boundary : place in the sequence of blocks at which the tiles are stored
        counted : per dimension, the blocks whose cuts count
        sides, slide : for arrays and sliding windows, of which there are none
        """
        cuts = {term.dim: counted(term.dim) for term in axis.terms}
        if self.perfect or not axis.is_compound:
            return super().window(axis, boundary, counted, sides, slide)
        if not any(cuts.values()):
            return self.extent(axis, boundary)
        counts = (
            (
                term.dim,
                self.pieces(term.dim, boundary, own),
                self.covered(term.dim, boundary, own),
                term.stride,
            )
            for term in axis.terms
            for own in (cuts[term.dim],)
        )
        return least_spanned(tuple(counts))

    def coverage(self, tensor: Tensor, boundary: int, spread: Spread) -> list[Expr]:
        """Of tiles that overlap the most: it counts against what comes back."""
        most = most_held(self, tensor)
        return super().coverage(tensor, boundary, spread) if most is None else most

    def _strided(self, axis: Axis, boundary: int, counted: Callable[[str], Collection[int]]) -> Expr:
        """Pieces of single iterations have no gaps."""
        strides = [term.stride for term in axis.terms]
        if self.perfect or strides == [1] or not strides:
            return super()._strided(axis, boundary, counted)
        (term,) = axis.terms
        cuts = counted(term.dim)
        return self.covered(term.dim, boundary, cuts) if cuts else self.extent(axis, boundary)


def has_several_patterns(problem: LayerProblem) -> bool:
    """Whether a level may be bypassed."""
    return any(len(own.alternatives) > 1 for own in problem.space.nest.residency.values())


def has_uneven_parts(problem: LayerProblem) -> bool:
    """Whether the parts of all patterns bound a problem with uneven storage.

    There is one array, with one level inside it.  Where there are few arrangements, as with a single level
    outside the array that always stores the same, other bounds of all of them tell more.
    """
    engine, roles = problem.engine, [tensor.role for tensor in problem.operator.tensors]
    few = _FEW_OF_PATTERNS if has_several_patterns(problem) else _FEW
    arrays = [index for index, level in enumerate(engine.levels) if level.fanout is not None]
    return (
        problem.is_uneven
        and problem.reduction is not Reduction.NONE
        and problem.objective.key_powers[0] > 0
        and len({*roles}) == len(roles)
        and arrays == [len(engine.levels) - 2] != [0]
        and not engine.starts
        and has_storage_parts(problem)
        and next(islice(problem.arrangements(), few, None), None) is not None
    )


def uneven_part_problems(
    problem: LayerProblem, part: StoragePart, weight: Fraction, alike: Alike | None = None
) -> Iterator[LayerProblem]:
    """Problems of energy, of which the least is no more than any mapping spends on a part of its pattern.

    Parameters
    ----------
    weight : what each of the part's own cycles costs besides, pJ
    alike : spaces of other parts of the same operator, which share decisions with these
    """
    operator, engine = problem.operator, machine_of_part(problem, part)
    is_innermost = part.level == len(problem.engine.levels) - 1
    reduction = problem.reduction if is_innermost else Reduction.FORMS
    if not is_innermost:  # what moves into its stores knows nothing of an array inside
        engine = replace(engine, levels=(*engine.levels[:-1], replace(engine.levels[-1], fanout=None)))
    elif not any(part.stored):  # there may be loops inside the array, though nothing is stored there
        innermost = replace(problem.engine.levels[-1], keeps=frozenset(), may_bypass=frozenset())
        engine = replace(engine, levels=(*engine.levels, innermost))
    for slots in arrangements(operator, engine, Reduction.FORMS):
        orders = partial(block_orders, operator, engine, slots, reduction)
        space = build_space(operator, engine, orders, (), problem.space.tiles, slots, alike=alike)
        nest = space.nest
        if not nest.perfect and is_innermost:
            nest = MergedCuts.of(nest, 0)
        elif not nest.perfect:
            nest = FewestPieces(
                operator, nest.engine, nest.boundaries, nest.blocks, nest.residency, nest.perfect
            )
        stated = stated_part(problem, part, weight, replace(space, nest=nest), alike)
        limits = (*stated.limits, *arrangement_limits(nest, slots, Reduction.FORMS))
        yield replace(stated, limits=limits, even_space=problem.space)
