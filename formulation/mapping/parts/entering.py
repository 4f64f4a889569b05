"""Tensors that enter the array: what the loops around near stores tell of how often they are fetched.

Near levels are those between the outermost one and the first array.  Stores behind the array take a tensor
from the last near level that stores it, or from the outermost level, past all of them.  How often depends on
loops on both sides of the last near store: those inside must move it before those outside fetch it again.
They do where its tile within that store does not fit behind the array, and otherwise nothing is fetched less
often than if the tile were kept there.  The loops around near stores alone tell both (``docs/proofs.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tilewright.formulation.expression import Expr, as_expr, maximum, product, total
from tilewright.formulation.mapping.cost.base import whole
from tilewright.formulation.mapping.nests.nest import Nest, Spread
from tilewright.formulation.mapping.parts.compulsory import touched
from tilewright.formulation.mapping.parts.least_inside import fetched_anew, has_own_loops, served_anew
from tilewright.formulation.mapping.parts.near_storage import near_levels
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.workloads.mapping.operator import Tensor

SHARE = Fraction(1, 2)
"""Of the energy of reading such a tensor, what counts outside by default; the rest counts inside."""


@dataclass(frozen=True, slots=True)
class Entering:
    """A tensor that a store behind the array takes from a near level, or from the outermost one.

    Parameters
    ----------
    tensor : outputs only from near levels, where sums do not begin
    source : index of the level that it comes from
    inside : index of the first level that stores it behind the array
    read, write : energy of an element that is handed out, and of one that is taken back
    share : of these, what counts outside
    """

    tensor: Tensor
    source: int
    inside: int
    read: int
    write: int
    share: Fraction

    def energy(self, reads: Expr | int, updates: Expr | int, share: Fraction = Fraction(1)) -> Expr:
        """Energy of moving so many elements, or a share of it, in the unit of the problem's statement."""
        return total([int(share * self.read) * as_expr(reads), int(share * self.write) * as_expr(updates)])


def entering(problem: LayerProblem, share: Fraction = SHARE) -> tuple[Entering, ...]:
    """The entering tensors of a problem in which nothing may bypass a level.

    Those of which axes share loops are left out, and so are outputs that pass the near levels.

    Parameters
    ----------
    share : of the energy of reading those that pass the near levels, what counts outside
    """
    operator, engine = problem.operator, problem.engine
    near = near_levels(engine)
    if engine.starts or operator.turns > 1:
        return ()
    entered: list[Entering] = []
    scale, widest = problem.statement.energy_scale, len(engine.levels)
    for tensor in operator.tensors:
        stores = [0, *(index for index in range(1, widest) if tensor.role in engine.levels[index].keeps)]
        source = max(index for index in stores if index <= near[-1])
        behind = [index for index in stores if index > near[-1]]
        if not has_own_loops(tensor) or not behind or (tensor.is_output and not source):
            continue
        level = engine.levels[source]
        read = whole(level.read_energy_of(tensor.role), scale)
        write = whole(level.write_energy_of(tensor.role), scale) if tensor.is_output else 0
        if read + write:
            own = Fraction(0) if source else share
            entered.append(Entering(tensor, source, behind[0], read, write, own))
    return tuple(entered)


def moved_by(part: LayerProblem, entered: Sequence[Entering]) -> dict[Entering, tuple[Expr, Expr]]:
    """Elements of tensors that their source hands out, and takes back, as far as a part tells."""
    rows = {(row.level, row.tensor): row for row in part.statement.traffic}
    counted = {own: rows[part.engine.levels[own.source].name, own.tensor.name] for own in entered}
    return {own: (row.reads, row.updates) for own, row in counted.items()}


def least_moved(problem: LayerProblem, nest: Nest, entered: Entering) -> tuple[Expr, Expr]:
    """Elements of a tensor that its source hands out, and those that it takes back, at least.

    Parameters
    ----------
    nest : the loops around the near stores, and one block that stands for all that are inside
    """
    tensor = entered.tensor
    options: list[Expr | int] = [touched(problem.operator, tensor)]
    options.append(served_anew(problem, nest, tensor, entered.source, entered.inside))
    if all(term.stride == 1 for axis in tensor.axes for term in axis.terms):
        options.append(nest.delivered(tensor, nest.temporal[-1], Spread()))
    count = maximum(options)
    if not tensor.is_output:
        return count, as_expr(0)
    return count - tensor.footprint(problem.operator.bounds), count


def least_on_port(problem: LayerProblem, nest: Nest, entered: Entering) -> Expr:
    """Elements of an input that keep its source's port busy: all that are read, and the first fill once more.

    Nothing hides a first fill.  Either it is the whole tile of the last near store, or some loop inside that
    tile moves the tensor, so that it is fetched again by all loops outside.

    Parameters
    ----------
    nest : the loops around the near stores, and one block that stands for all that are inside
    """
    tensor = entered.tensor
    reads, _ = least_moved(problem, nest, entered)
    if not problem.engine.levels[entered.inside].double_buffered:
        return reads
    tile = product(nest.boundaries[nest.temporal[-1]][dim] for dim in tensor.dims)
    anew = maximum([reads, fetched_anew(problem, nest, tensor, entered.source)])
    return -1 * maximum([-1 * (reads + tile), -1 * anew])
