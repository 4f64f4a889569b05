"""Cycles of the ``dmazerunner`` cost model: DMA, operand networks, computation and reduction of passes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import lcm

from tilewright.formulation.expression import (
    Expr,
    as_expr,
    ceil_div,
    is_one,
    maximum,
    product,
    tighten,
    total,
    where,
)
from tilewright.formulation.mapping.cost.dmazerunner_passes import Passes
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.workloads.mapping.operator import Tensor


@dataclass(frozen=True, slots=True)
class _SeveralPasses:
    """Cycles of several RF passes under one order of the scratch-pad's loops.

    Parameters
    ----------
    held : the tensor that moves less often than once a pass, if there is one
    rounds : trip counts of the loops that move it
    still, longer : cycles without and with its transfers
    moving : the same with the pauses that its moves cost
    """

    held: Tensor | None
    rounds: tuple[Expr, ...]
    still: Expr
    longer: Expr
    moving: Expr


class PassCycles(Passes):
    """The cycles of one nest; what several kinds of passes are made of is built once."""

    def __init__(self, nest: Nest) -> None:
        super().__init__(nest)
        self._products: dict[tuple[object, ...], Expr] = {}
        self._by_order: dict[int, _SeveralPasses] = {}

    def _network(self, tensor: Tensor, *factors: Expr) -> Expr:
        """Cycles to move a tensor's array tile, one element per cycle, times the factors."""
        key = ("network", tensor.name, *factors)
        if key not in self._products:
            self._products[key] = product([*self.nest.extents(tensor, self.array_tile), *factors])
        return self._products[key]

    def _compute(self, *factors: Expr) -> Expr:
        """Compute cycles of an RF pass, times the factors."""
        key = ("compute", *factors)
        if key not in self._products:
            self._products[key] = product([*self.trips(self.rf_blocks), *factors])
        return self._products[key]

    @cached_property
    def compute_per_spm_pass(self) -> Expr:
        """All compute cycles of an SPM pass; the array is never faster than all PEs at work."""
        tile = product(self.nest.boundaries[self.spm_tile].values())
        cap = self.nest.cap(self.nest.spatial)
        return tighten(self._compute(*self.trips(self.spm_blocks)), lower=ceil_div(tile, cap))

    def _reduction(self, *factors: Expr) -> Expr:
        """Cycles in which PEs add partial sums of an RF pass, times the factors."""
        key = ("reduction", *factors)
        if key not in self._products:
            partners = product(self.spatial_trips(self.other_dims(self.output))) - 1
            groups = self.spatial_trips(self.own_dims(self.output))
            tile = self.nest.extents(self.output, self.rf_tile)
            self._products[key] = product([*tile, *groups, partners, *factors])
        return self._products[key]

    def dma_cycles(self, tensor: Tensor) -> Expr:
        """Engine cycles to move a tensor's SPM tile: invocations times the cost of one burst.

        A burst runs along the innermost axes for as long as the tile spans them wholly.
        """
        dma = self.engine.dma
        assert dma is not None
        sizes = [self.nest.extent(axis, self.spm_tile) for axis in tensor.axes]
        # Start-up and slope are fractions of cycles; one common unit keeps the quotient exact.
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
            # A tile that spans an axis wholly continues in memory, so the burst runs on along the next axis
            # outwards.
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

        def many(index: int) -> Expr:
            """Several RF passes; the held tensor may stay from one SPM pass to the next."""
            several = self._several(index)
            if several.held is None or several.held is not reused_outside:
                return several.moving
            still = several.longer if transfer else several.still
            rounds = product([is_one(product(several.rounds)), continuing])
            return where(rounds, still, several.moving)

        alone = self._single(None, True)
        if reused_outside is not None:
            alone = where(continuing, self._single(reused_outside, transfer), alone)
        return where(is_one(self.rf_passes), alone, self.chosen(self.spm_blocks, many))

    def _single(self, still: Tensor | None, transfer: bool) -> Expr:
        """One RF pass, in which ``still`` moves only if it is a transfer, and every other tensor moves."""
        trips = self.trips(self.spm_blocks)
        nets = maximum(self._network(t, *trips) for t in self.operator.tensors if transfer or t is not still)
        compute = self.compute_per_spm_pass
        # With the output in place PEs compute while operands arrive; otherwise they wait for partial sums.
        return maximum([nets, compute]) if still is self.output else nets + compute + self._reduction(*trips)

    def _several(self, index: int) -> _SeveralPasses:
        """Several RF passes; one tensor (or none) moves less often than once a pass."""
        if index not in self._by_order:
            self._by_order[index] = self._several_of(index)
        return self._by_order[index]

    def _several_of(self, index: int) -> _SeveralPasses:
        trips = self.trips(self.spm_blocks)
        compute, reduction = self.compute_per_spm_pass, self._reduction(*trips)
        tensors = self.operator.tensors
        held = self.orders(self.spm_blocks)[index].stationary
        nets = maximum(self._network(t, *trips) for t in tensors if t is not held)
        if held is None:
            moving = nets + compute + reduction
            return _SeveralPasses(None, (), moving, moving, moving)
        kept = sorted(set(self.operator.bounds) - self.reused_dims(self.spm_blocks, index, held))
        rounds = self.trips(self.spm_blocks, kept)
        # where the held tensor moves, its transfer counts if it is slower than all other work
        others = [self._network(t, *trips) - self._network(t, *rounds) for t in tensors if t is not held]
        if held is self.output:
            others.append(self._compute(*trips) - self._compute(*rounds))
            base, added = maximum([nets, compute]), as_expr(0)
            pauses = self._compute(*rounds) + self._reduction(*rounds)
        else:
            base, added, pauses = nets, compute + reduction, as_expr(0)
        longer = maximum([base, maximum(others) + self._network(held, *rounds)]) + added
        return _SeveralPasses(held, tuple(rounds), base + added, longer, longer + pauses)

    def _stays_within_pass(self, tensor: Tensor) -> Expr:
        """1 where a tensor does not move between the RF passes of an SPM pass."""
        return is_one(product(self.trips(self.spm_blocks, self.own_dims(tensor))))

    def layer_cycles(self) -> tuple[Expr, dict[str, Expr]]:
        dma = {tensor: self.dma_cycles(tensor) for tensor in self.operator.tensors}
        # Outputs cross the DMA twice: partial sums come in, results go out.
        doubled = {t: (2 if t.is_output else 1) * cycles for t, cycles in dma.items()}
        every_pass = total(doubled.values())
        unshared = self._pass_cycles(None, as_expr(0))

        def option(index: int) -> Expr:
            order = self.orders(self.dram_blocks)[index]
            held = order.stationary
            # Without reuse by the DRAM loops all passes are alike: the slower of computing and transfers.
            plain = product([self.spm_passes, maximum([unshared, every_pass])])
            if held is None:
                return plain
            runs = 1 - is_one(order.reused)
            kept = sorted(set(self.operator.bounds) - self.reused_dims(self.dram_blocks, index, held))
            rounds = product(self.trips(self.dram_blocks, kept))
            work = self._pass_cycles(held, runs)
            stays = product([self._stays_within_pass(held), runs])
            # Of the passes between two moves of the held tensor, the first and the last carry its transfer.
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
            # All others move what is not held, and nothing else.
            seldom = product([self.spm_passes - 2 * rounds, base])
            reusing = total([seldom, *(product([rounds, cycles]) for cycles in transfers)])
            return where(runs, reusing, plain)

        cycles = self.chosen(self.dram_blocks, option)
        details = {"cycles of an SPM pass": unshared, "SPM passes": self.spm_passes}
        details |= {f"DMA cycles of {tensor.name}": value for tensor, value in dma.items()}
        cap = self.nest.cap(self.nest.spatial)
        return tighten(cycles, lower=-(-self.operator.iterations // cap)), details
