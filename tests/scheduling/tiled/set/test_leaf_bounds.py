"""Bounds on leaves whose producers pass results on directly, and what partitions leaves may have at all."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from set_cases import EDGE, value_of

from tilewright.formulation.scheduling.tiled.set.leaf.layers import (
    CONVOLUTION,
    Producer,
    SetLayer,
    SetNetwork,
)
from tilewright.formulation.scheduling.tiled.set.released.builder import NetworkBuilder
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm, engine_form
from tilewright.formulation.scheduling.tiled.set.trees.rules import Rules
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, rooted
from tilewright.solvers.scheduling.tiled.set.leaf.layer_bounds import LayerBounds
from tilewright.solvers.scheduling.tiled.set.leaf.leaf_figures import LeafFigures
from tilewright.solvers.scheduling.tiled.set.trees.places import Places, places_of


def reshaped(tiles: int, *, scattered: bool) -> ClosedForm:
    """A producer of nearly two rows per tile of a column of tiles, and a reader of two windows over half of
    them each; all its channels read the same.
    """
    rows = 2 * tiles - 1
    made = SetLayer("made", CONVOLUTION, True, 1, rows, 1, 1, input_rows=rows, external=1, weight_bytes=1)
    reader = SetLayer(
        "reader", CONVOLUTION, True, tiles // 2, 2, 1, 1, taps_rows=tiles - 1, stride_rows=tiles,
        input_rows=rows, producers=(Producer(0, 0, 1, scattered=scattered),),
    )  # fmt: skip
    machine = EDGE.changed(width=1, height=tiles, dram_ports=((0, 0),), hop_energy=1e6, dram_energy=1e6)
    return engine_form(SetNetwork("reshaped", (made, reader)), machine, 1, Rules(), energy=1, delay=0)


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("tiles", [4, 8, 16])
@pytest.mark.parametrize("apart", [0, 1])
def test_no_leaf_undercuts_its_bound_whatever_its_producers_layout(
    tiles: int, apart: int, scattered: bool
) -> None:
    """Where results are reshaped on the way, a tile reads its part of every share rounded down, which may be
    nothing; bounds by place and by number of tiles are below every leaf then too.
    """
    form = reshaped(tiles, scattered=scattered)
    one_each = Places(
        tiles, 0, np.arange(-1, tiles, dtype=np.int64).clip(0), np.arange(1, tiles + 1, dtype=np.int64)
    )
    places = places_of(tiles) if apart else one_each
    lower_bounds = LayerBounds(form)
    least = LeafFigures(form, lower_bounds, places, 1).of(1, 1, False, 0, False)
    for count in range(1, tiles + 1):
        for partition in form.engine.menu(0, 1, count):
            producer = form.engine.partitioned(0, 1, 0, False, 1, (), partition)
            assert producer is not None
            for number in range(1, tiles + 1):
                for first in range(tiles - number + 1):
                    cost = form.engine.leaf(1, 1, first, number, False, 1, (producer.layout,))
                    place = places.begin[number] + first * places.apart
                    assert cost is None or least.energy[place] <= cost.energy * (1 + 1e-9)


def form_with_room(builder: NetworkBuilder, width: int, height: int, batch: int, room: int) -> ClosedForm:
    """A closed form of energy where buffers hold so many bytes, all of them for inputs and weights."""
    machine = EDGE.changed(width=width, height=height, dram_ports=((0, 0),), hop_energy=1000.0)
    rules = replace(Rules(), result_bytes=0, streamed_bytes=0)
    form = engine_form(builder.build(), machine, batch, rules, energy=1, delay=0)
    form.capacity = form.engine.capacity = room
    return form


@pytest.mark.parametrize(("part", "fits"), [(0.79, True), (0.81, False)])
@pytest.mark.parametrize("stripes", [1, 2])
def test_inputs_take_four_fifths_of_all_buffers(stripes: int, part: float, fits: bool) -> None:
    """A layer whose inputs take more of all buffers has to be cut along samples, rows or columns, which a
    single tile cannot do; so has one of whose inputs a stripe takes more.
    """
    builder = NetworkBuilder("two")
    builder.conv("wide", 8, 1, 100, source=(100, 100))
    builder.conv("narrow", 1, 1, 100)
    form = form_with_room(builder, 1, 1, 1, int(8 * 100 * 100 / stripes / part))
    tree = rooted([Cut("T", 1, 1, (Leaf(0, 1), Leaf(1, 1)), stripes)], 1)
    assert (value_of(form, tree) < math.inf) is fits


def test_a_lone_layer_in_stripes_holds_two() -> None:
    """While a tile works on one stripe of its inputs the next one arrives; of the partitions that leave room
    for both the best is taken, though a better one has room for one stripe.
    """
    builder = NetworkBuilder("lone")
    builder.conv("lone", 64, 64, 6, columns=5, source=(6, 5))
    tree = rooted([Cut("T", 2, 2, (Leaf(0, 1),), 3)], 2)
    form = form_with_room(builder, 2, 2, 2, 2368)
    energies = []
    for partition in form.engine.menu(0, 1, 4):
        alone = form_with_room(builder, 2, 2, 2, 2368)
        alone.partitions = {0: partition}
        energies.append(value_of(alone, tree))
    assert value_of(form, tree) == min(energies) < math.inf
    roomy = form_with_room(builder, 2, 2, 2, 10**6)
    assert value_of(roomy, tree) < min(energies)
