"""A nest in which consecutive temporal blocks keep tiles in place as one block could.

Between two arrays, loops of several memory levels follow each other.  Whatever their orders, there is one
order of all of them together under which no tile is fetched more often (``docs/proofs.md``, energy by
stores).  So counts of a merged nest are lower bounds of the true ones in which the tiles of the levels in
between, and the orders of their loops, need not be decided.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as MappingABC

from tilewright.formulation.expression import Expr, Variable, ceil_div, choose, is_one, product, where
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.nests.orders import OrderClass
from tilewright.workloads.mapping.operator import Tensor

Leaf = Callable[[int | None, str | None, MappingABC[str, frozenset[int]]], Expr]


class MergedNest(Nest):
    """A nest whose counts of moved tiles see runs of temporal blocks, in the order of the outermost one."""

    def runs(self, boundary: int) -> list[tuple[int, ...]]:
        """Temporal blocks outside a boundary that follow each other, outermost first."""
        runs: list[tuple[int, ...]] = []
        for block in self.temporal:
            if block >= boundary:
                break
            if runs and runs[-1][-1] == block - 1:
                runs[-1] = (*runs[-1], block)
            else:
                runs.append((block,))
        return runs

    def _walk(self, tensor: Tensor, boundary: int, leaf: Leaf, slides: bool) -> Expr:
        """As in a nest with one block for each run; of the loops that may slide a window the best one."""
        runs = self.runs(boundary)
        own = [dim for dim in self.operator.bounds if dim in tensor.dims]

        def stopped(position: int, order: OrderClass) -> Expr:
            run = runs[position]
            outer = frozenset(block for other in runs[:position] for block in other)
            moving = {}
            for dim in self.operator.bounds:
                stays = dim not in own and dim in order.reused[tensor.name]
                inner = runs[position + 1 :] if dim in own else []
                here = () if stays else run
                moving[dim] = outer.union(here, *inner)
            slide = order.slides[tensor.name] if slides else None
            if slide is None:
                return leaf(None, None, moving)
            if len(run) == 1:
                return leaf(run[0], slide, moving)
            options = [leaf(None, None, moving), *(leaf(block, slide, moving) for block in run)]
            return choose(Variable(f"{tensor.name} slides@{boundary}", range(len(options))), options)

        def walk(position: int) -> Expr:
            if position < 0:
                outside = frozenset(block for run in runs for block in run)
                return leaf(
                    None, None, {d: outside if d in own else frozenset() for d in self.operator.bounds}
                )
            head, end = self.blocks[runs[position][0]], runs[position][-1] + 1
            outer, inner = self.boundaries[runs[position][0]], self.boundaries[end]
            still = is_one(product(ceil_div(outer[dim], inner[dim]) for dim in own))
            ended = choose(head.selector, [stopped(position, order) for order in head.orders])
            return where(still, walk(position - 1), ended)

        return walk(len(runs) - 1)
