"""Cuts whose leaves run and pass on in bands of rows: their bands, traffic, buffers and time."""

import itertools
from random import Random

import numpy as np
import pytest

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SAMPLING, Producer, SetLayer, SetNetwork
from tilewright.formulation.scheduling.tiled.set.leaf.partition import parse_partition
from tilewright.formulation.scheduling.tiled.set.leaf.stripes import stripe_borders
from tilewright.formulation.scheduling.tiled.set.networks import set_network
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm, engine_form
from tilewright.formulation.scheduling.tiled.set.trees.rules import Rules
from tilewright.formulation.scheduling.tiled.set.trees.striped import slot_cycles
from tilewright.formulation.scheduling.tiled.set.trees.tree import (
    Cut,
    InvalidTreeError,
    Leaf,
    check_tree,
    rooted,
)
from tilewright.formulation.scheduling.tiled.set.trees.tree_text import format_tree, parse_tree
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.formulation.scheduling.tiled.units import units_of
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.workloads.catalog import resolve_model

EDGE = load_tiled_machine("set-edge-4x4")


def form_of(model: str, partitions: dict[int, str] | None = None) -> ClosedForm:
    """Two samples of a network, some layers with given partitions."""
    network = set_network(units_of(resolve_model(model, 1), fuse=True), model)
    form = engine_form(network, EDGE, 2, Rules())
    form.partitions = {layer: parse_partition(text) for layer, text in (partitions or {}).items()}
    return form


def striped(kind: str, layers: range, bands: int) -> Cut:
    """A cut of leaves, one sample at a time."""
    return Cut("S" if kind == "S" else "T", 2, 2, tuple(Leaf(layer, 1) for layer in layers), bands)


def rows_read(layer: SetLayer, rows: range) -> set[int]:
    """Rows of the inputs of which some tap of some of the rows reads."""
    read_rows = set()
    for row in rows:
        for tap in range(layer.taps_rows):
            if layer.spread:
                at, rest = divmod(row - tap, layer.stride_rows)
                read_rows |= set() if rest else {at}
            else:
                read_rows.add(row * layer.stride_rows + tap - layer.pad_rows)
    return {number for number in read_rows if 0 <= number < layer.input_rows}


def windows(random: Random) -> SetNetwork:
    """A chain of windows over rows, some of them scattering, with a layer that meets its own producer's."""
    layers: list[SetLayer] = []
    rows = random.randint(30, 50)
    for number in range(4):
        made = (Producer(number - 1, 0, 8),) if number else ()
        taps, stride = random.choice([(1, 1), (2, 2), (3, 1), (3, 2), (5, 1)])
        pad = random.randint(0, taps // 2)
        spread = stride > 1 and number > 0 and random.random() < 0.3
        after = (rows - 1) * stride + taps if spread else (rows + 2 * pad - taps) // stride + 1
        layers.append(
            SetLayer(
                f"layer{number}",
                SAMPLING,
                False,
                8,
                after,
                7,
                8,
                taps,
                1,
                stride,
                1,
                spread=spread,
                input_rows=rows,
                input_columns=7,
                pad_rows=0 if spread else pad,
                producers=made,
                external=0 if number else 8,
                is_output=number == 3,
            )
        )
        rows = after
    return SetNetwork("windows", tuple(layers))


def test_bands_begin_as_soon_as_their_rows_are_there() -> None:
    """Bands of a reader read no row of later bands of its producer, and these could end no earlier."""
    seen = 0
    for seed in range(60):
        network, bands = windows(Random(seed)), Random(seed).randint(2, 4)
        borders = stripe_borders(network, range(4), bands)
        if borders is None:
            continue
        seen += 1
        for reader in range(1, 4):
            layer, made = network.layers[reader], borders[reader - 1]
            done: set[int] = set()
            for band in range(bands - 1):
                done |= rows_read(layer, range(borders[reader][band], borders[reader][band + 1]))
                assert max(done) + 1 == made[band + 1]
            assert made[-1] == network.layers[reader - 1].rows
    assert seen > 20


@pytest.mark.parametrize("kind", ["S", "T"])
def test_bands_move_every_byte_once(kind: str) -> None:
    """Where only columns are shared out, all bytes travel as for whole samples, over the same links."""
    layers = range(2, 6)
    tiles = [3, 5, 7, 1] if kind == "S" else [16] * 4
    form = form_of(
        "vgg16", {layer: f"W:{count},H:1,B:1,K:1" for layer, count in zip(layers, tiles, strict=True)}
    )
    form.capacity = form.engine.capacity = 1 << 40
    given = tuple(tiles)
    if kind == "S":
        form.allocation = lambda cut, tiles: given  # type: ignore[method-assign]
    whole = form.evaluate(rooted([striped(kind, layers, 1)], 2))
    for bands in (2, 7, 14):
        cost = form.evaluate(rooted([striped(kind, layers, bands)], 2))
        np.testing.assert_array_equal(cost.counts, whole.counts)
        assert cost.energy == pytest.approx(whole.energy, rel=0.02)  # arrays read the halos of bands twice
        assert cost.buffer.max() < whole.buffer.max()


def test_weight_updates_add_up_bands() -> None:
    """A weight update in bands of the gradient's rows reads and stores each byte once, and holds fewer."""
    update = form_of("alexnet:training").network.index["conv3.update"]
    form = form_of("alexnet:training", {update: "K:16,W:1,H:1,B:1"})
    form.capacity = form.engine.capacity = 1 << 40
    whole = form.evaluate(rooted([striped("T", range(update, update + 1), 1)], 2))
    for bands in (2, 4, 13):
        cost = form.evaluate(rooted([striped("T", range(update, update + 1), bands)], 2))
        np.testing.assert_array_equal(cost.counts, whole.counts)
        assert cost.cycles >= whole.cycles
        assert cost.buffer.max() < whole.buffer.max()


def test_buffers_hold_two_bands_with_their_halos() -> None:
    """A tile of a pipeline holds twice the inputs of its largest band, counted row by row, not whole maps."""
    form = form_of("vgg16")
    cut = striped("S", range(6, 9), 8)
    cost = form.evaluate(cut)
    borders = stripe_borders(form.network, range(6, 9), 8)
    assert borders is not None
    for child, number in zip(cost.children, range(6, 9), strict=True):
        assert child.leaf is not None
        layer, (_, _, high, wide) = form.network.layers[number], child.leaf.partition.parts
        columns = [-(-layer.columns * i // wide) for i in range(wide + 1)]
        most = 0
        for low, end in itertools.pairwise(borders[number]):
            for i in range(high):
                rows = range(low + -(-(end - low) * i // high), low + -(-(end - low) * (i + 1) // high))
                for left, right in itertools.pairwise(columns):
                    across = {
                        at + tap - layer.pad_columns
                        for at in range(left, right)
                        for tap in range(layer.taps_columns)
                    }
                    across = {column for column in across if 0 <= column < layer.input_columns}
                    most = max(most, len(rows_read(layer, rows)) * len(across) * layer.inputs)
        assert int(child.inputs.max()) == most
        results = form.rules.result_bytes
        assert int(cost.buffer[child.first]) == 2 * int(child.inputs[child.first]) + results


def test_slots_of_even_bands_are_the_closed_form_of_groups() -> None:
    """Even bands of equally fast layers take (bands of all samples + stages) slots; others the slowest's."""
    assert sum(slot_cycles([[5, 5], [5, 5], [5, 5]], [0, 1, 2], 3)) == (6 + 2) * 5
    assert list(slot_cycles([[5, 5], [3, 3], [4, 4]], [0, 1, 2], 1)) == [5, 5, 4, 4]
    assert list(slot_cycles([[9, 5], [8, 3]], [0, 1], 1)) == [9, 8, 3]


def test_trees_in_bands_are_written_and_read() -> None:
    """The number of bands stands behind the groups; only cuts of single samples just below a root have it."""
    network = form_of("mobilenet-v1").network
    inner = tuple(Leaf(layer, 1) for layer in range(len(network) - 2))
    tail = tuple(Leaf(layer, 2) for layer in range(len(network) - 2, len(network)))
    tree = Cut("T", 2, 1, (Cut("S", 2, 2, inner, 4), *tail))
    text = format_tree(tree, network)
    assert "S 2/2/4\n" in text
    assert parse_tree(text, network) == tree
    for bad in (
        Cut("T", 2, 2, tuple(Leaf(layer, 1) for layer in range(len(network))), 4),
        Cut("S", 2, 1, (Cut("S", 2, 2, inner, 4), *tail)),
        Cut("T", 2, 1, (Cut("S", 2, 1, tuple(Leaf(leaf.layer, 2) for leaf in inner), 4), *tail)),
    ):
        with pytest.raises(InvalidTreeError, match="bands"):
            check_tree(bad, network, 2)


def test_layers_without_rows_are_not_cut() -> None:
    """A classifier behind a convolution has one row, and the message says that it cannot run in bands."""
    form = form_of("mobilenet-v1")
    last = len(form.network)
    cost = form.attempt(striped("S", range(last - 2, last), 2))
    assert isinstance(cost, Unfit)
    assert "bands of rows" in cost.reason
