"""The ``dmazerunner`` cost model: passes, DMA invocations, operand networks, reduction stalls.

The execution model of dMazeRunner (section 4.3) as its authors' program computes it; ``docs/cost-models.md``
lists where the printed equations differ.  Three levels: DRAM feeds a scratchpad (SPM) by DMA, one *SPM
pass* works on what one filling of the SPM holds, one *RF pass* on what one filling of the register files
holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.formulation.expression import Expr, choose, is_one, product, rounded, total
from tilewright.formulation.mapping.cost.base import Limit, Statement, array_limits, capacity_limits
from tilewright.formulation.mapping.cost.dmazerunner_cycles import PassCycles
from tilewright.formulation.mapping.cost.dmazerunner_energy import PassEnergy
from tilewright.formulation.mapping.cost.dmazerunner_passes import Passes
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.nests.orders import OrderClass, all_order_classes, order_classes
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator


@dataclass(frozen=True)
class DMazeRunner:
    """Three levels, perfect nests in which every loop is reused by at most one tensor."""

    name = "dmazerunner"
    perfect_only = True
    even_only = True
    rounding_pj = 1

    def check(self, operator: Operator, engine: Engine) -> None:
        """Raise ``InputError`` for an engine or operator outside the published model."""
        shape = [level.fanout is not None for level in engine.levels]
        if shape != [False, True, False] or engine.dma is None:
            raise InputError(
                engine.name,
                "cost_model",
                "dmazerunner needs three levels, a PE array below the second and a DMA section",
            )
        if any(level.fanout is not None and level.fanout.sharing for level in engine.levels):
            raise InputError(engine.name, "levels", "dmazerunner knows no buffer sharing")
        for level in engine.levels:
            for field, has in level.particulars.items():
                if has:
                    raise InputError(engine.name, f"levels.{level.name}", f"dmazerunner knows no {field}")
        for tensor in operator.tensors:
            if any(tensor.role not in level.keeps for level in engine.levels):
                raise InputError(engine.name, "levels", f"dmazerunner keeps {tensor.role} at every level")
            if any(tensor.role in level.may_bypass for level in engine.levels):
                raise InputError(engine.name, "levels", f"dmazerunner has no level that {tensor.role} bypass")
        for dim, bound in operator.bounds.items():
            reusing = [tensor.name for tensor in operator.tensors if dim not in tensor.dims]
            if bound > 1 and len(reusing) > 1:
                raise InputError(
                    operator.kind,
                    dim,
                    f"dmazerunner cannot cost a loop reused by several tensors ({', '.join(reusing)}); "
                    "use --cost-model hierarchy",
                )

    def orders(
        self, operator: Operator, engine: Engine, level: int, every: bool = False
    ) -> tuple[OrderClass, ...]:
        """One maximal leading run per tensor, and no reuse at all where some loop moves every tensor.

        Parameters
        ----------
        operator, engine : the layer and the machine
        level : index of the memory level; only DRAM's and the scratch-pad's orders matter
        every : whether effects that another one dominates are given too
        """
        if level == len(engine.levels) - 1:
            return ()
        never = {tensor.name: frozenset[str]() for tensor in operator.tensors}
        dims = [dim for dim, bound in operator.bounds.items() if bound > 1]
        if every:
            return all_order_classes(operator, dims, never)
        kept = order_classes(operator, dims, never)
        # A loop that moves every tensor makes orders without any reuse legal even where others dominate them.
        if any(all(dim in tensor.dims for tensor in operator.tensors) for dim in dims):
            idle = [o for o in all_order_classes(operator, dims, never) if not any(o.reused.values())]
            kept = (*(order for order in kept if any(order.reused.values())), *idle)
        return tuple(replace(order, exact=True) for order in kept)

    def statement(self, nest: Nest) -> Statement:
        """Energy (a whole number of pJ), cycles and constraints."""
        if not nest.perfect:
            raise InputError("mapping", "nodes", "dmazerunner needs tile sizes that divide each other")
        scale, components, traffic = PassEnergy(nest).energy()
        passes = PassCycles(nest)
        # Machines of other prices have the same cycles.
        key = "layer cycles", *passes.places, nest.engine.dma, nest.engine.element_bits
        if key not in nest.counted:
            nest.counted[key] = *passes.layer_cycles(), _order_limits(passes)
        cycles, details, order_limits = nest.counted[key]
        return Statement(
            # The authors' program rounds a layer's energy to whole pJ, and so does this model.
            energy=rounded(total(components.values()), scale),
            energy_scale=1,
            cycles=cycles,
            limits=(*capacity_limits(nest), *array_limits(nest), *order_limits),
            components=components,
            component_scale=scale,
            traffic=traffic,
            details=details,
        )


def _order_limits(passes: Passes) -> list[Limit]:
    """An order names a leading run that does run; with no loops at all the first order stands."""
    limits: list[Limit] = []
    for blocks in (passes.dram_blocks, passes.spm_blocks):
        selector = passes.nest.blocks[blocks[0]].selector if blocks else 0
        if isinstance(selector, int):
            continue
        idle = is_one(product(passes.trips(blocks)))
        common = [d for d in passes.operator.bounds if all(d in t.dims for t in passes.operator.tensors)]
        wrong: list[Expr] = []
        for index, order in enumerate(passes.orders(blocks)):
            run = order.reused if order.stationary else product(passes.trips(blocks, common))
            wrong.append(is_one(run) - idle if index == 0 else is_one(run))
        name = passes.engine.levels[passes.nest.blocks[blocks[0]].level].name
        limits.append(Limit(f"order at {name}", choose(selector, wrong), 0))
    return limits
