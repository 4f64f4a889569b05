"""Tensors that pass the near levels: what the loops around near stores tell of how often they are fetched.

Near levels are those between the outermost one and the first array.  A tensor that none of them stores is
read from the outermost level for stores behind the array.  How often depends on loops on both sides of the
near stores: those inside must move it before those outside fetch it again.  They do where its tile within
the near stores does not fit behind the array, and otherwise nothing is fetched less often than if the tile
were kept there.  Both are told by the loops around the near stores alone (``docs/proofs.md``).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tilewright.formulation.expression import Expr, maximum
from tilewright.formulation.mapping.cost.base import whole
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.parts.compulsory import touched
from tilewright.formulation.mapping.parts.least_inside import as_if_stored, has_own_loops, served_anew
from tilewright.formulation.mapping.parts.near_storage import near_levels
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.workloads.mapping.operator import Tensor

SHARE = Fraction(1, 2)
"""Of the energy of reading such a tensor, what counts outside by default; the rest counts inside."""


@dataclass(frozen=True, slots=True)
class Passing:
    """A tensor that is read from the outermost level for a store behind the array.

    Parameters
    ----------
    tensor : an input or the weights
    inside : index of the first level that stores it behind the array
    price : energy of reading an element, in the unit of the problem's statement
    energy : what of that counts outside
    """

    tensor: Tensor
    inside: int
    price: int
    energy: int

    @property
    def rest(self) -> int:
        """What reading an element counts inside."""
        return self.price - self.energy


def passing(problem: LayerProblem, share: Fraction = SHARE) -> tuple[Passing, ...]:
    """The passing tensors of a problem in which nothing may bypass a level.

    Those of which axes share loops are left out, and so are outputs, whose sums begin at zero.

    Parameters
    ----------
    share : of the energy of reading them, what counts outside
    """
    operator, engine = problem.operator, problem.engine
    near = near_levels(engine)
    if engine.starts or operator.turns > 1:
        return ()
    passed: list[Passing] = []
    for tensor in operator.tensors:
        inner = [index for index, level in enumerate(engine.levels) if index and tensor.role in level.keeps]
        if tensor.is_output or not has_own_loops(tensor) or not inner or inner[0] <= near[-1]:
            continue
        price = whole(engine.levels[0].read_energy_of(tensor.role), problem.statement.energy_scale)
        if price:
            passed.append(Passing(tensor, inner[0], price, int(share * price)))
    return tuple(passed)


def least_read(problem: LayerProblem, nest: Nest, passed: Passing) -> Expr:
    """Elements of a passing tensor that the outermost level hands out at least.

    Parameters
    ----------
    nest : the loops around the near stores, and one block that stands for all that are inside
    """
    tensor = passed.tensor
    options: list[Expr | int] = [touched(problem.operator, tensor)]
    options.append(served_anew(problem, nest, tensor, 0, passed.inside))
    if all(term.stride == 1 for axis in tensor.axes for term in axis.terms):
        reads, _, _ = as_if_stored(problem, nest, tensor, 0)
        options.append(reads)
    return maximum(options)
