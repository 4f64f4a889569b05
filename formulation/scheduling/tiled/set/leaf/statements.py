"""Leaves as the kernels read them: numbers, stripes, tiles, flows of data, and menus of partitions.

A *layout* says where a leaf's results lie; readers that take them directly name it by its number.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from tilewright.formulation.scheduling.tiled.set.leaf import leaf_kernel
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetLayer, SetNetwork, shares
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_kernel import Flow, Mesh
from tilewright.formulation.scheduling.tiled.set.leaf.menus import Menu, menu_of, share_cost
from tilewright.formulation.scheduling.tiled.set.leaf.partition import Partition, share_tiles
from tilewright.formulation.scheduling.tiled.set.leaf.stripes import Borders, known_rows, stripe_parts
from tilewright.formulation.scheduling.tiled.set.leaf.tile_costs import TileCosts
from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import ports_of
from tilewright.formulation.scheduling.tiled.set.trees.placement import grid_of
from tilewright.formulation.scheduling.tiled.set.trees.rules import Rules
from tilewright.foundation.arrays import Floats, Indices, Int64s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine


@dataclass(frozen=True, slots=True, eq=False)
class LeafStatement:
    """What the kernels need of a layer on its tiles.

    Parameters
    ----------
    leaf : its numbers
    borders : of its stripes; of a whole leaf, of the only one
    known : per stripe, the rows of inputs before which all is in the buffers already
    mesh : its tiles
    menu : partitions that are tried
    """

    leaf: leaf_kernel.Leaf
    borders: Int64s
    known: Int64s
    mesh: Mesh
    menu: Menu

    def part(self, rows: Indices) -> LeafStatement:
        """The same with some of its partitions only."""
        return replace(self, menu=self.menu.part(rows))


class LeafStatements:
    """States the leaves of a network on one machine; everything stated is cached.

    Parameters
    ----------
    costs : of shares on a tile
    rules : the paper's, or with defects of the released program
    """

    def __init__(self, network: SetNetwork, machine: TiledMachine, costs: TileCosts, rules: Rules) -> None:
        self.network, self.machine, self.costs, self.rules = network, machine, costs, rules
        self.grid = grid_of(machine)
        self.capacity = machine.engine.buffer_bytes
        self.layouts: list[Int64s] = []
        self._layout_numbers: dict[bytes, int] = {}
        self._menus: dict[tuple[object, ...], Menu] = {}
        self._statements: dict[tuple[object, ...], LeafStatement] = {}
        self._numbers: dict[tuple[int, int, bool], leaf_kernel.Leaf] = {}
        self._meshes: dict[tuple[int, int], Mesh] = {}
        self._ports = ports_of(self.grid.ports, self.grid.width, self.grid.height)

    @cached_property
    def shapes(self) -> tuple[int, ...]:
        """Per layer, the first layer that differs from it in nothing but its name and its producers'
        numbers.
        """
        first: dict[SetLayer, int] = {}
        shapes = []
        for number, layer in enumerate(self.network.layers):
            bare = tuple(replace(producer, layer=0) for producer in layer.producers)
            shapes.append(first.setdefault(replace(layer, name="", producers=bare, is_output=False), number))
        return tuple(shapes)

    def menu(self, layer: int, batch: int, tiles: int) -> list[Partition]:
        """Partitions that are tried."""
        return self._menu(self.shapes[layer], batch, tiles, (), None).partitions

    def statement(
        self,
        layer: int,
        batch: int,
        first: int,
        tiles: int,
        borders: Borders = (),
        fixed: Partition | None = None,
    ) -> LeafStatement:
        """What the kernels need of a layer on its tiles.

        Parameters
        ----------
        layer : its number in the network
        batch : samples of one run
        first, tiles : its first tile in the order of the grid, and their number
        borders : of its row stripes; none where it runs as a whole
        fixed : the only partition that is tried, where it is given
        """
        shape = self.shapes[layer]
        key = (shape, batch, first, tiles, borders, fixed)
        statement = self._statements.get(key)
        if statement is None:
            statement = self._statements[key] = self._stated(*key)
        return statement

    def _stated(
        self, shape: int, batch: int, first: int, tiles: int, borders: Borders, fixed: Partition | None
    ) -> LeafStatement:
        stated = self.network.layers[shape]
        rows = borders or (0, stated.taps_rows if stated.is_summed else stated.rows)
        return LeafStatement(
            self.numbers(shape, batch, bool(borders)),
            np.array(rows, dtype=np.int64),
            np.array(known_rows(stated, borders) if borders else (0,), dtype=np.int64),
            self.mesh(first, tiles),
            self._menu(shape, batch, tiles, borders, fixed),
        )

    def share_cost(self, layer: int, batch: int, parts: tuple[int, int, int, int]) -> tuple[float, Floats]:
        """Cycles of the largest share on its tile (0 where it cannot be mapped), and its pJ by component."""
        return share_cost(self.costs, self.network.layers[layer], batch, parts)

    def layout(
        self, layer: int, batch: int, first: int, partition: Partition, borders: tuple[int, ...] = ()
    ) -> int:
        """The number of the layout of a leaf's results.

        Parameters
        ----------
        layer : its number in the network
        batch : samples of one run
        first : its first tile in the order of the grid
        partition : of the results, and of every row stripe where it has any
        borders : of its row stripes; none where it runs as a whole
        """
        divided, grid = self.network.layers[layer], self.grid
        k, b, h, w = (
            np.array(shares(size, count), dtype=np.int64)
            for size, count in zip(
                (divided.channels, batch, divided.rows, divided.columns), partition.parts, strict=True
            )
        )
        at = first + share_tiles(partition)
        head = np.array([batch, *partition.parts], dtype=np.int64)
        if borders and not divided.is_summed:
            h = np.array(stripe_parts(borders, partition.parts[2]), dtype=np.int64)
            at = np.tile(at.reshape(partition.parts), (1, 1, len(borders) - 1, 1)).ravel()
            head[3] = len(h) - 1
        numbers = np.concatenate([head, k, b, h, w, grid.x[at], grid.y[at]])
        number = self._layout_numbers.setdefault(numbers.tobytes(), len(self.layouts))
        if number == len(self.layouts):
            self.layouts.append(numbers)
        return number

    def _menu(self, layer: int, batch: int, tiles: int, borders: Borders, fixed: Partition | None) -> Menu:
        key = (layer, batch, tiles, borders, fixed)
        menu = self._menus.get(key)
        if menu is None:
            stated = self.network.layers[layer]
            menu = menu_of(self.costs, stated, batch, tiles, self.capacity, borders, fixed)
            self._menus[key] = menu
        return menu

    def numbers(self, layer: int, batch: int, striped: bool = False) -> leaf_kernel.Leaf:
        """A leaf as the kernels read it, before it is cut into stripes.

        Parameters
        ----------
        striped : whether it is; a weight update runs over rows of the gradient then
        """
        key = (layer, batch, striped)
        if key not in self._numbers:
            numbered = self.network.layers[layer]
            reported = {"late", "weighs", "made", "batch", "first_row", "known_row", "hop_rows"}
            names = {field.name for field in fields(numbered)} & set(leaf_kernel.Leaf._fields) - reported
            values = {name: getattr(numbered, name) for name in names}
            made = numbered.makes_weights and not numbered.is_summed
            weighs = numbered.weight_bytes > 0 or made
            self._numbers[key] = leaf_kernel.Leaf(
                **values,
                late=numbered.late_operands,
                weighs=weighs,
                made=made,
                batch=batch,
                hop_rows=numbered.hop_rows if striped and numbered.is_summed else 0,
            )
        return self._numbers[key]

    def mesh(self, first: int, tiles: int) -> Mesh:
        """The tiles from ``first`` on as the kernels read them."""
        key = (first, tiles)
        if key not in self._meshes:
            grid, rules = self.grid, self.rules
            span = slice(first, first + tiles)
            self._meshes[key] = Mesh(
                grid.width,
                grid.height,
                grid.x[span].copy(),
                grid.y[span].copy(),
                self._ports,
                rules.idle_tiles_receive,
                rules.free_concatenation,
            )
        return self._meshes[key]

    def flow(self, layer: int, stored: bool, runs: int, direct: tuple[int, ...]) -> Flow:
        """Where a leaf's data comes from and goes to, as the kernels read it.

        Parameters
        ----------
        layer : its number in the network
        stored : whether its results go to DRAM
        runs : runs that share one load of its weights, or that a weight update sums up before it is stored
        direct : per producer, the number of the layout that it passes on directly, or -1
        """
        producers = self.network.layers[layer].producers
        rows = np.zeros((len(producers), 6), dtype=np.int64)
        used: list[Int64s] = []
        start = 0
        for i, (producer, number) in enumerate(zip(producers, direct, strict=True)):
            rows[i] = (  # in the order of `leaf_kernel.DIRECT` and the columns behind it
                number >= 0,
                producer.offset,
                producer.channels,
                producer.role,
                producer.scattered,
                start,
            )
            if number >= 0:
                used.append(self.layouts[number])
                start += len(used[-1])
        layouts = np.concatenate(used) if used else np.zeros(0, dtype=np.int64)
        return Flow(rows, layouts, stored, runs)
