"""Loop orderings of unique data reuse: algorithm 2 of the paper (section 4.2.1)."""

from __future__ import annotations

from itertools import combinations, permutations

from tilewright.formulation.mapping.cost.base import CostModel, Statement
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.nests.orders import OrderClass, order_effect
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator

Ordering = tuple[str, ...]


def loop_orderings(operator: Operator) -> list[Ordering]:
    """Algorithm 2: one ordering, outermost loop first, for every distinct reuse of the operands.

    An operand is reused along every non-empty set of the loops that it does not depend on, placed
    innermost; the loops that it depends on stand around them, the others outermost.  Of orderings with the
    same reuse the first stays.
    """
    loops = [dim for dim, bound in operator.bounds.items() if bound > 1]
    by_reuse: dict[tuple[frozenset[str], ...], Ordering] = {}
    for operand in operator.tensors:
        independent = [loop for loop in loops if loop not in operand.dims]
        dependent = [loop for loop in loops if loop in operand.dims]
        for size in range(1, len(independent) + 1):
            for chosen in combinations(independent, size):
                for inner in permutations(chosen):
                    missing = [loop for loop in independent if loop not in chosen]
                    ordering = (*missing, *dependent, *inner)
                    by_reuse.setdefault(_reused_loops(operator, ordering), ordering)
    return list(by_reuse.values())


def _reused_loops(operator: Operator, ordering: Ordering) -> tuple[frozenset[str], ...]:
    """Per operand the loops of its reuse; two orderings with the same sets have the same reuse vector."""
    none = {tensor.name: frozenset[str]() for tensor in operator.tensors}
    effect = order_effect(operator, ordering, none)
    return tuple(effect.reused[tensor.name] for tensor in operator.tensors)


class AllOrderings:
    """A cost model whose searches consider every ordering of algorithm 2 (OPT4 off)."""

    def __init__(self, model: CostModel) -> None:
        self.model = model
        self.name = model.name
        self.perfect_only = model.perfect_only
        self.even_only = model.even_only

    def check(self, operator: Operator, engine: Engine) -> None:
        """As the model itself."""
        self.model.check(operator, engine)

    def orders(
        self, operator: Operator, engine: Engine, level: int, every: bool = False
    ) -> tuple[OrderClass, ...]:
        """Those of the model, and whatever algorithm 2 adds to them.

        Parameters
        ----------
        operator, engine : the layer and the machine
        level : index of the memory level whose loops are ordered
        every : whether effects that another one dominates are given too
        """
        own = self.model.orders(operator, engine, level, every)
        if not own:
            return own
        none = {tensor.name: frozenset[str]() for tensor in operator.tensors}
        known = {tuple(order.reused.values()) for order in own}
        further = [order_effect(operator, ordering, none) for ordering in loop_orderings(operator)]
        return (*own, *(order for order in further if tuple(order.reused.values()) not in known))

    def statement(self, nest: Nest) -> Statement:
        """As the model itself."""
        return self.model.statement(nest)
