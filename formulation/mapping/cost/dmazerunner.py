"""The ``dmazerunner`` cost model: passes, DMA invocations, operand networks, reduction stalls.

The execution model of dMazeRunner (section 4.3) as its authors' program computes it; ``docs/cost-models.md``
lists where the printed equations differ.  Three levels: DRAM feeds a scratchpad (SPM) by DMA, one *SPM
pass* works on what one filling of the SPM holds, one *RF pass* on what one filling of the register files
holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lcm

from tilewright.formulation.expression import (
    Expr,
    as_expr,
    ceil_div,
    choose,
    is_one,
    maximum,
    product,
    rounded,
    tighten,
    total,
    where,
)
from tilewright.formulation.mapping.cost.base import (
    Limit,
    Statement,
    Traffic,
    array_limits,
    capacity_limits,
    energy_scale,
)
from tilewright.formulation.mapping.nest import Nest
from tilewright.formulation.mapping.orders import OrderClass, all_order_classes, order_classes
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.errors import InputError
from tilewright.workloads.mapping.operator import Operator, Tensor


@dataclass(frozen=True)
class DMazeRunner:
    """Three levels, perfect nests in which every loop is reused by at most one tensor."""

    name = "dmazerunner"
    perfect_only = True
    even_only = True

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
        """One maximal leading run per tensor, and no reuse at all where some loop moves every tensor."""
        if level == len(engine.levels) - 1:
            return ()
        never = {tensor.name: frozenset[str]() for tensor in operator.tensors}
        dims = [dim for dim, bound in operator.bounds.items() if bound > 1]
        if every:
            return all_order_classes(operator, dims, never)
        kept = order_classes(operator, dims, never)
        if any(all(dim in tensor.dims for tensor in operator.tensors) for dim in dims):
            idle = [o for o in all_order_classes(operator, dims, never) if not any(o.reused.values())]
            kept = (*(order for order in kept if any(order.reused.values())), *idle)
        return kept

    def statement(self, nest: Nest) -> Statement:
        """Energy (a whole number of pJ), cycles and constraints."""
        return _Model(nest).statement()


@dataclass(frozen=True, slots=True)
class _Reuse:
    """One order of a block: the tensor whose tile stays, and how often its loops run."""

    stationary: Tensor | None
    reused: Expr


class _Model:
    """The expressions of one nest."""

    def __init__(self, nest: Nest) -> None:
        if not nest.perfect:
            raise InputError("mapping", "nodes", "dmazerunner needs tile sizes that divide each other")
        self.nest = nest
        self.operator = nest.operator
        self.engine = nest.engine
        self.output = nest.operator.output
        self.dram, self.spm, self.rf = nest.engine.levels
        self.dram_blocks = [b for b in nest.temporal if nest.blocks[b].level == 0]
        self.spm_blocks = [b for b in nest.temporal if nest.blocks[b].level == 1]
        self.rf_blocks = [b for b in nest.temporal if nest.blocks[b].level == 2]
        self.spm_tile = self._position(1)
        self.rf_tile = self._position(2)
        self.array_tile = nest.spatial[0] if nest.spatial else self.rf_tile
        for blocks in (self.dram_blocks, self.spm_blocks):
            if len(blocks) > 1:
                raise InputError("mapping", "nodes", "dmazerunner needs each dimension once per level")

    def _position(self, level: int) -> int:
        for tensor in self.operator.tensors:
            if level not in self.nest.residency[tensor.name].positions:
                name = self.engine.levels[level].name
                raise InputError("mapping", "nodes", f"dmazerunner needs {tensor.name} stored in {name}")
        positions = {self.nest.residency[t.name].positions[level] for t in self.operator.tensors}
        if len(positions) != 1:
            raise InputError("mapping", "nodes", "dmazerunner needs an even mapping")
        return positions.pop()

    # -- trip counts ---------------------------------------------------------------------------------

    def _trips(self, blocks: Sequence[int], dims: Sequence[str] | None = None) -> list[Expr]:
        return self.nest.trips(blocks, dims)

    def _own(self, tensor: Tensor) -> list[str]:
        return [dim for dim in self.operator.bounds if dim in tensor.dims]

    def _others(self, tensor: Tensor) -> list[str]:
        return [dim for dim in self.operator.bounds if dim not in tensor.dims]

    def _orders(self, blocks: Sequence[int]) -> list[_Reuse]:
        """What each order of a level keeps in place."""
        result: list[_Reuse] = []
        for order in self.nest.blocks[blocks[0]].orders if blocks else ():
            held = [t for t in self.operator.tensors if order.reused[t.name]]
            reused = self._trips(blocks, sorted(order.reused[held[0].name])) if held else []
            result.append(_Reuse(held[0] if held else None, product(reused)))
        return result or [_Reuse(None, as_expr(1))]

    def _choose(self, blocks: Sequence[int], option: Callable[[int], Expr]) -> Expr:
        """The option of the chosen order of a level."""
        count = len(self._orders(blocks))
        selector = self.nest.blocks[blocks[0]].selector if blocks else 0
        return choose(selector, [option(index) for index in range(count)])

    @cached_property
    def spatial(self) -> list[Expr]:
        return self._trips(self.nest.spatial)

    def _spatial(self, dims: Sequence[str]) -> list[Expr]:
        return self._trips(self.nest.spatial, dims)

    # -- what one pass moves -------------------------------------------------------------------------

    @cached_property
    def rf_passes(self) -> Expr:
        """RF passes of one SPM pass."""
        return product(self._trips(self.spm_blocks))

    @cached_property
    def spm_passes(self) -> Expr:
        """SPM passes of the layer."""
        return product(self._trips(self.dram_blocks))

    def _network(self, tensor: Tensor, *factors: Expr) -> Expr:
        """Cycles to move a tensor's array tile, one element per cycle, times the factors."""
        return product([*self.nest.extents(tensor, self.array_tile), *factors])

    def _compute(self, *factors: Expr) -> Expr:
        """Compute cycles of an RF pass, times the factors."""
        return product([*self._trips(self.rf_blocks), *factors])

    @cached_property
    def compute_per_spm_pass(self) -> Expr:
        """All compute cycles of an SPM pass; the array is never faster than all PEs at work."""
        tile = product(self.nest.boundaries[self.spm_tile].values())
        cap = self.nest.cap(self.nest.spatial)
        return tighten(self._compute(*self._trips(self.spm_blocks)), lower=ceil_div(tile, cap))

    def _reduction(self, *factors: Expr) -> Expr:
        """Cycles in which PEs add partial sums of an RF pass, times the factors."""
        partners = product(self._spatial(self._others(self.output))) - 1
        groups = self._spatial(self._own(self.output))
        return product([*self.nest.extents(self.output, self.rf_tile), *groups, partners, *factors])

    # -- energy --------------------------------------------------------------------------------------

    def _moves(self, tensor: Tensor, payload: Sequence[Expr], again: int = 1) -> Expr:
        """``payload`` times the transfers between SPM and array; ``again`` where not continuously reused.

        A tensor that stays through a whole SPM pass and on through the next is reused continuously: it
        moves once per DRAM reuse.
        """

        def through(index: int) -> Expr:
            order = self._orders(self.dram_blocks)[index]
            if order.stationary is not tensor:
                return product([again, *payload, *inner, *self._trips(self.dram_blocks)])
            moving = sorted(set(self.operator.bounds) - self._reused(self.dram_blocks, index, tensor))
            once = product([*payload, *inner, *self._trips(self.dram_blocks, moving)])
            return where(is_one(order.reused), again * once, once)

        def stopped(index: int) -> Expr:
            moving = sorted(set(self.operator.bounds) - self._reused(self.spm_blocks, index, tensor))
            trips = [*self._trips(self.spm_blocks, moving), *self._trips(self.dram_blocks)]
            return product([again, *payload, *trips])

        inner = self._trips(self.spm_blocks, self._own(tensor))
        stays = is_one(product(inner))
        return where(stays, self._choose(self.dram_blocks, through), self._choose(self.spm_blocks, stopped))

    def _reused(self, blocks: Sequence[int], index: int, tensor: Tensor) -> frozenset[str]:
        if not blocks or not self.nest.blocks[blocks[0]].orders:
            return frozenset()
        return self.nest.blocks[blocks[0]].orders[index].reused[tensor.name]

    def _fetches(self, tensor: Tensor, payload: Sequence[Expr]) -> Expr:
        """``payload`` times the transfers between DRAM and SPM."""

        def option(index: int) -> Expr:
            moving = sorted(set(self.operator.bounds) - self._reused(self.dram_blocks, index, tensor))
            return product([*payload, *self._trips(self.dram_blocks, moving)])

        return self._choose(self.dram_blocks, option)

    def _partial_sum_reads(self) -> Expr:
        """Output elements read back from DRAM: every fetch but the zero-initialised first."""
        tile = self.nest.extents(self.output, self.spm_tile)
        once = self._trips(self.dram_blocks, self._own(self.output))

        def option(index: int) -> Expr:
            reused = self._reused(self.dram_blocks, index, self.output)
            again = [dim for dim in self._others(self.output) if dim not in reused]
            return product([*tile, *once, product(self._trips(self.dram_blocks, again)) - 1])

        return self._choose(self.dram_blocks, option)

    def _energy(self) -> tuple[int, dict[str, Expr], tuple[Traffic, ...]]:
        fan = self.spm.fanout
        assert fan is not None
        rf, noc = self.rf.read_energy, fan.energy
        spm, dram, mac = self.spm.read_energy, self.dram.read_energy, self.engine.mac_energy
        scale = energy_scale([rf, noc, spm, dram, mac])
        iterations = self.operator.iterations
        added = self._moves(
            self.output,
            [
                *self.nest.extents(self.output, self.rf_tile),
                *self._spatial(self._own(self.output)),
                product(self._spatial(self._others(self.output))) - 1,
            ],
        )
        parts: dict[str, list[Expr]] = {
            "MAC": [as_expr(int(mac * scale) * iterations), int(mac * scale) * added],
            "RF": [
                as_expr(int(rf * scale) * iterations * (len(self.operator.tensors) + 1)),
                int(rf * scale) * 3 * added,
            ],
            "network": [int(noc * scale) * added],
            "SPM": [],
            "DRAM": [],
        }
        traffic: list[Traffic] = []
        for tensor in self.operator.tensors:
            again = 2 if tensor.is_output else 1
            receivers = self._spatial(self._own(tensor)) if tensor.is_output else self.spatial
            hops = self._moves(tensor, [*self.nest.extents(tensor, self.rf_tile), *receivers], again)
            array = self._moves(tensor, self.nest.extents(tensor, self.array_tile), again)
            fetched = self._fetches(tensor, self.nest.extents(tensor, self.spm_tile))
            parts["network"].append(int(noc * scale) * hops)
            parts["SPM"].append(int(spm * scale) * array)
            moved = [fetched, self._partial_sum_reads()] if tensor.is_output else [fetched]
            parts["DRAM"].append(int(dram * scale) * total(moved))
            traffic += self._traffic(tensor, moved, array)
        return scale, {name: total(terms) for name, terms in parts.items()}, tuple(traffic)

    def _traffic(self, tensor: Tensor, moved: Sequence[Expr], array: Expr) -> list[Traffic]:
        """Elements that cross the DRAM and the SPM port, and what the levels hold."""
        whole = as_expr(tensor.footprint(self.operator.bounds))
        spm, rf = (self.nest.footprint(tensor, at) for at in (self.spm_tile, self.rf_tile))
        zero, uses = as_expr(0), as_expr(self.operator.iterations)
        if tensor.is_output:
            written, read = moved
            return [
                Traffic(self.dram.name, tensor.name, read, zero, written, whole),
                Traffic(self.spm.name, tensor.name, array, zero, zero, spm),
                Traffic(self.rf.name, tensor.name, uses, zero, uses, rf),
            ]
        return [
            Traffic(self.dram.name, tensor.name, moved[0], zero, zero, whole),
            Traffic(self.spm.name, tensor.name, array, zero, zero, spm),
            Traffic(self.rf.name, tensor.name, uses, zero, zero, rf),
        ]

    # -- cycles --------------------------------------------------------------------------------------

    def dma_cycles(self, tensor: Tensor) -> Expr:
        """Engine cycles to move a tensor's SPM tile: invocations times the cost of one burst.

        A burst runs along the innermost axes for as long as the tile spans them wholly.
        """
        dma = self.engine.dma
        assert dma is not None
        sizes = [self.nest.extent(axis, self.spm_tile) for axis in tensor.axes]
        startup = dma.startup * dma.clock_ratio
        slope = dma.per_byte * self.engine.element_bytes * dma.clock_ratio
        unit = lcm(startup.denominator, slope.denominator)

        def invocation(burst: list[Expr]) -> Expr:
            return ceil_div(int(startup * unit) + int(slope * unit) * product(burst), unit)

        def run(position: int, inner: int) -> Expr:
            """Bursts along an axis, if the tile spans the ``inner`` elements of all axes inside it."""
            here = invocation([as_expr(inner), sizes[position]])
            if position == 0:
                return here
            size = tensor.axes[position].size
            contiguous = is_one(ceil_div(size, sizes[position]))
            return where(contiguous, run(position - 1, inner * size), product([here, *sizes[:position]]))

        return run(len(sizes) - 1, 1) if sizes else invocation([as_expr(1)])  # a scalar has no axes

    def _pass_cycles(self, reused_outside: Tensor | None, continuing: Expr, transfer: bool = False) -> Expr:
        """Cycles of one SPM pass.

        Parameters
        ----------
        reused_outside : the tensor that the DRAM loops keep in place
        continuing : 1 where they do run, so that it is reused continuously if it also stays within the pass
        transfer : whether this is a pass in which even a tensor that is reused continuously moves
        """
        trips = self._trips(self.spm_blocks)
        tensors = self.operator.tensors
        compute, reduction = self.compute_per_spm_pass, self._reduction(*trips)

        def single(still: Tensor | None) -> Expr:
            """One RF pass, in which ``still`` does not move and every other tensor does."""
            nets = maximum(self._network(t, *trips) for t in tensors if transfer or t is not still)
            return maximum([nets, compute]) if still is self.output else nets + compute + reduction

        def many(index: int) -> Expr:
            """Several RF passes; one tensor (or none) moves less often than once a pass."""
            held = self._orders(self.spm_blocks)[index].stationary
            nets = maximum(self._network(t, *trips) for t in tensors if t is not held)
            if held is None:
                return nets + compute + reduction
            kept = sorted(set(self.operator.bounds) - self._reused(self.spm_blocks, index, held))
            rounds = self._trips(self.spm_blocks, kept)
            # where the held tensor moves, its transfer counts if it is slower than all else that goes on
            others = [self._network(t, *trips) - self._network(t, *rounds) for t in tensors if t is not held]
            if held is self.output:
                others.append(self._compute(*trips) - self._compute(*rounds))
                base, added = maximum([nets, compute]), as_expr(0)
                pauses = self._compute(*rounds) + self._reduction(*rounds)
            else:
                base, added, pauses = nets, compute + reduction, as_expr(0)
            longer = maximum([base, maximum(others) + self._network(held, *rounds)]) + added
            if held is not reused_outside:
                return longer + pauses
            still = longer if transfer else base + added
            return where(product([is_one(product(rounds)), continuing]), still, longer + pauses)

        alone = single(None)
        if reused_outside is not None:
            alone = where(continuing, single(reused_outside), alone)
        return where(is_one(self.rf_passes), alone, self._choose(self.spm_blocks, many))

    def _stays_within_pass(self, tensor: Tensor) -> Expr:
        """1 where a tensor does not move between the RF passes of an SPM pass."""
        return is_one(product(self._trips(self.spm_blocks, self._own(tensor))))

    def _layer_cycles(self) -> tuple[Expr, dict[str, Expr]]:
        dma = {tensor: self.dma_cycles(tensor) for tensor in self.operator.tensors}
        doubled = {t: (2 if t.is_output else 1) * cycles for t, cycles in dma.items()}
        every_pass = total(doubled.values())
        unshared = self._pass_cycles(None, as_expr(0))

        def option(index: int) -> Expr:
            order = self._orders(self.dram_blocks)[index]
            held = order.stationary
            plain = product([self.spm_passes, maximum([unshared, every_pass])])
            if held is None:
                return plain
            runs = 1 - is_one(order.reused)
            kept = sorted(set(self.operator.bounds) - self._reused(self.dram_blocks, index, held))
            rounds = product(self._trips(self.dram_blocks, kept))
            work = self._pass_cycles(held, runs)
            stays = product([self._stays_within_pass(held), runs])
            late = self._pass_cycles(held, runs, transfer=True)
            always = total(cycles for t, cycles in doubled.items() if t is not held)
            base = maximum([work, always])
            if held is self.output:
                early = work + product([stays, self._compute() + self._reduction()])
                others = maximum([0, *(self._network(t) for t in self.operator.tensors if t is not held)])
                late = tighten(
                    work + product([stays, maximum([0, self._network(held) - others])]), lower=late
                )
                transfers = [
                    maximum([base, early, always + dma[held]]),
                    maximum([base, late, always + dma[held]]),
                ]
            else:
                transfers = [maximum([base, always + dma[held]]), maximum([base, late])]
            seldom = product([self.spm_passes - 2 * rounds, base])
            reusing = total([seldom, *(product([rounds, cycles]) for cycles in transfers)])
            return where(runs, reusing, plain)

        cycles = self._choose(self.dram_blocks, option)
        details = {"cycles of an SPM pass": unshared, "SPM passes": self.spm_passes}
        details |= {f"DMA cycles of {tensor.name}": value for tensor, value in dma.items()}
        cap = self.nest.cap(self.nest.spatial)
        return tighten(cycles, lower=-(-self.operator.iterations // cap)), details

    # -- constraints ---------------------------------------------------------------------------------

    def _order_limits(self) -> list[Limit]:
        """An order names a leading run that does run; with no loops at all the first order stands."""
        limits: list[Limit] = []
        for blocks in (self.dram_blocks, self.spm_blocks):
            selector = self.nest.blocks[blocks[0]].selector if blocks else 0
            if isinstance(selector, int):
                continue
            idle = is_one(product(self._trips(blocks)))
            common = [d for d in self.operator.bounds if all(d in t.dims for t in self.operator.tensors)]
            wrong: list[Expr] = []
            for index, order in enumerate(self._orders(blocks)):
                run = order.reused if order.stationary else product(self._trips(blocks, common))
                wrong.append(is_one(run) - idle if index == 0 else is_one(run))
            name = self.engine.levels[self.nest.blocks[blocks[0]].level].name
            limits.append(Limit(f"order at {name}", choose(selector, wrong), 0))
        return limits

    def statement(self) -> Statement:
        """Energy, cycles, constraints and details."""
        scale, components, traffic = self._energy()
        cycles, details = self._layer_cycles()
        limits = [*capacity_limits(self.nest), *array_limits(self.nest), *self._order_limits()]
        return Statement(
            energy=rounded(total(components.values()), scale),
            energy_scale=1,
            cycles=cycles,
            limits=tuple(limits),
            components=components,
            component_scale=scale,
            traffic=traffic,
            details=details,
        )
