"""Passes of the ``dmazerunner`` cost model, from which its energy and its cycles follow."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.formulation.expression import Expr, as_expr, choose, product
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.operator import Tensor


@dataclass(frozen=True, slots=True)
class Reuse:
    """One order of a block: the tensor whose tile stays, and how often its loops run."""

    stationary: Tensor | None
    reused: Expr


class Passes:
    """The passes of one nest: their tiles, how often they run, and what each order of loops keeps in place.

    Raises
    ------
    InputError : for a nest outside the published model
    """

    def __init__(self, nest: Nest) -> None:
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
        # What all PEs together hold: the tile just outside the spatial loops.
        self.array_tile = nest.spatial[0] if nest.spatial else self.rf_tile
        self._orders: dict[tuple[int, ...], list[Reuse]] = {}
        for blocks in (self.dram_blocks, self.spm_blocks):
            if len(blocks) > 1:
                raise InputError("mapping", "nodes", "dmazerunner needs each dimension once per level")

    def _position(self, level: int) -> int:
        """The boundary at which all tensors begin to live in a level."""
        for tensor in self.operator.tensors:
            if level not in self.nest.residency[tensor.name].positions:
                name = self.engine.levels[level].name
                raise InputError("mapping", "nodes", f"dmazerunner needs {tensor.name} stored in {name}")
        positions = {self.nest.residency[t.name].positions[level] for t in self.operator.tensors}
        if len(positions) != 1:
            raise InputError("mapping", "nodes", "dmazerunner needs an even mapping")
        return positions.pop()

    @property
    def places(self) -> tuple[Hashable, ...]:
        """All that passes depend on besides their loops: the boundaries of tiles, and names of levels."""
        return self.spm_tile, self.rf_tile, *(level.name for level in self.engine.levels)

    def trips(self, blocks: Sequence[int], dims: Sequence[str] | None = None) -> list[Expr]:
        """How often the loops of some blocks run, over some dimensions or all."""
        return self.nest.trips(blocks, dims)

    def own_dims(self, tensor: Tensor) -> list[str]:
        """Dimensions whose loops move a tensor."""
        return [dim for dim in self.operator.bounds if dim in tensor.dims]

    def other_dims(self, tensor: Tensor) -> list[str]:
        """Dimensions whose loops leave a tensor in place."""
        return [dim for dim in self.operator.bounds if dim not in tensor.dims]

    def orders(self, blocks: Sequence[int]) -> list[Reuse]:
        """What each order of a level keeps in place."""
        known = self._orders.get(tuple(blocks))
        if known is not None:
            return known
        result: list[Reuse] = []
        for order in self.nest.blocks[blocks[0]].orders if blocks else ():
            held = [t for t in self.operator.tensors if order.reused[t.name]]
            reused = self.trips(blocks, sorted(order.reused[held[0].name])) if held else []
            result.append(Reuse(held[0] if held else None, product(reused)))
        self._orders[tuple(blocks)] = result = result or [Reuse(None, as_expr(1))]
        return result

    def chosen(self, blocks: Sequence[int], option: Callable[[int], Expr]) -> Expr:
        """The option of the chosen order of a level."""
        count = len(self.orders(blocks))
        selector = self.nest.blocks[blocks[0]].selector if blocks else 0
        return choose(selector, [option(index) for index in range(count)])

    def by_moving(
        self, blocks: Sequence[int], tensor: Tensor, option: Callable[[Sequence[str], Expr | None], Expr]
    ) -> Expr:
        """The option of the chosen order of a level, made once for all orders that move a tensor alike.

        Parameters
        ----------
        blocks : of the level
        tensor : whose tiles the loops move or keep
        option : gets the dimensions whose loops move the tensor, and how often those run that keep it in
            place; ``None`` where the order keeps another tensor, or none
        """
        known: dict[tuple[frozenset[str], Expr | None], Expr] = {}

        def made(index: int) -> Expr:
            order, kept = self.orders(blocks)[index], self.reused_dims(blocks, index, tensor)
            key = kept, order.reused if order.stationary is tensor else None
            if key not in known:
                known[key] = option(sorted(set(self.operator.bounds) - kept), key[1])
            return known[key]

        return self.chosen(blocks, made)

    @cached_property
    def spatial(self) -> list[Expr]:
        """Extents of the loops over PEs."""
        return self.trips(self.nest.spatial)

    def spatial_trips(self, dims: Sequence[str]) -> list[Expr]:
        """Extents of the loops over PEs along some dimensions."""
        return self.trips(self.nest.spatial, dims)

    @cached_property
    def rf_passes(self) -> Expr:
        """RF passes of one SPM pass."""
        return product(self.trips(self.spm_blocks))

    @cached_property
    def spm_passes(self) -> Expr:
        """SPM passes of the layer."""
        return product(self.trips(self.dram_blocks))

    def reused_dims(self, blocks: Sequence[int], index: int, tensor: Tensor) -> frozenset[str]:
        """Dimensions whose loops leave a tensor in place under an order of a level."""
        if not blocks or not self.nest.blocks[blocks[0]].orders:
            return frozenset()
        return self.nest.blocks[blocks[0]].orders[index].reused[tensor.name]
