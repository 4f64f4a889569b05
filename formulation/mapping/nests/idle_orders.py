"""Orders of loops that keep nothing in place, because no loop of theirs iterates.

Such an order costs no less than any other of its block, so that one of them is enough (``docs/proofs.md``,
loop orders by their effect).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from tilewright.formulation.expression import Variable, as_expr, choose, is_one, product
from tilewright.formulation.mapping.cost.base import Limit
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.problem import LayerProblem


def idle_order_limits(problem: LayerProblem) -> Iterator[Limit]:
    """What forbids every order of a block but the first one where it keeps no tensor in place.

    They lose no optimum and no point of a front.  There are none for blocks in which windows slide, or one
    order dominates another: there every different mapping is asked for.
    """
    is_even = not problem.is_uneven and problem.even_space is None
    if problem.model.name != "hierarchy" or problem.constraints.rules or not is_even:
        return
    nest = problem.space.nest
    for block in nest.temporal:
        selector, orders = nest.blocks[block].selector, nest.blocks[block].orders
        stored = _stored_inside(nest, block)
        if (
            not isinstance(selector, Variable)
            or any(any(order.slides.values()) for order in orders)
            or any(order.dominates(other, stored) for order, other in permutations(orders, 2))
        ):
            continue
        kept = [{dim for name in stored for dim in order.reused[name]} for order in orders[1:]]
        idle = [is_one(product(nest.trips([block], sorted(dims)))) for dims in kept]
        name = f"orders at {nest.engine.levels[nest.blocks[block].level].name} that keep nothing in place"
        yield Limit(name, choose(selector, [as_expr(0), *idle]), 0)


def _stored_inside(nest: Nest, block: int) -> set[str]:
    """The tensors that some level inside a block may store."""
    return {
        name
        for name, residency in nest.residency.items()
        for levels in residency.alternatives
        if any(residency.positions[level] > block for level in levels)
    }
