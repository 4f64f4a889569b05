"""Directives of whole pipelines: written, read, and held against the network."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.formulation.scheduling.tiled.kapla.chain import Chain, priced_chain
from tilewright.formulation.scheduling.tiled.kapla.directives import (
    ChainDirectives,
    LayerDirectives,
    SegmentDirectives,
    TensorPart,
    TileStack,
    directives_of,
)
from tilewright.formulation.scheduling.tiled.kapla.directives_reading import read_chain
from tilewright.formulation.scheduling.tiled.kapla.directives_text import parse_chain, write_chain
from tilewright.formulation.scheduling.tiled.kapla.segments import SegmentSpace
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.networks import set_network
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm, engine_form
from tilewright.formulation.scheduling.tiled.set.trees.rules import Rules
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.formulation.scheduling.tiled.units import units_of
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.kapla.solver import tangram_chain
from tilewright.workloads.catalog import resolve_model

MACHINE = load_tiled_machine("set-edge-4x4")


def some(what: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[Any]:
    """Up to three of them."""
    return st.lists(what, min_size=least, max_size=3).map(tuple)


names = st.text("abcXYZ019._-/", min_size=1, max_size=8)
numbers = st.integers(1, 10**6)
parts = st.builds(
    TensorPart,
    names,
    st.lists(st.tuples(st.sampled_from(["N", "K", "C", "Yo", "Xi"]), numbers), min_size=1, max_size=4).map(
        tuple
    ),
    st.sampled_from(["from tiles", "from DRAM", "to tiles", "to DRAM", "to tiles and DRAM"]),
)
stacks = st.builds(TileStack, st.sampled_from(["K", "N", "Yo", "Xo"]), numbers, numbers)
layers = st.builds(
    LayerDirectives,
    names,
    st.lists(parts, max_size=3).map(tuple),
    st.lists(stacks, max_size=3).map(tuple),
    numbers,
    st.integers(0, 99),
)
segments = st.builds(
    SegmentDirectives,
    st.sampled_from(["S", "T"]),
    numbers,
    st.lists(layers, min_size=1, max_size=3).map(tuple),
    st.integers(1, 9),
)
chains = st.builds(ChainDirectives, names, numbers, some(segments, 1))


@given(chains)
def test_text_comes_back(chain: ChainDirectives) -> None:
    """Whatever is written is read as the same, with comments and other spaces as well."""
    text = write_chain(chain)
    assert parse_chain(text) == chain
    spaced = "\n".join(f"  {line.replace(', ', ' ,  ').strip()}   # told" for line in text.splitlines())
    assert parse_chain(spaced.replace(" ,  ", ", ")) == chain


def form_of(name: str, batch: int) -> ClosedForm:
    """The closed form on the machine's engines."""
    network = set_network(units_of(resolve_model(name, 1), fuse=True), name)
    return engine_form(network, MACHINE, batch, Rules())


def random_chain(form: ClosedForm, random: Random) -> Chain:
    """Any chain that fits, in the network's own order."""
    space = SegmentSpace(
        form.network, form.batch, longest_spatial=4, longest_temporal=4, orders="own", stripes=4
    )
    while True:
        chosen, at = [], 0
        while at < space.starts[-1]:
            fit = [
                scheme
                for scheme in space.schemes(at)
                if not isinstance(form.segment(scheme.tree, form.batch), Unfit)
            ]
            chosen.append(random.choice(fit))
            at = chosen[-1].end
        priced = priced_chain(form, chosen, 1)
        if isinstance(priced, Chain):
            return priced


@pytest.mark.parametrize(
    ("name", "batch"), [pytest.param("alexnet", 2, marks=pytest.mark.slow), ("alexnet:training", 2)]
)
def test_chains_come_back_with_their_costs(name: str, batch: int) -> None:
    """Directives of random chains give the chain and partitions that cost the same, to the last byte."""
    form, random = form_of(name, batch), Random(3)
    for _ in range(3):
        chain = random_chain(form, random)
        written = write_chain(directives_of(form, chain))
        read = read_chain(form.network, parse_chain(written))
        assert (read.segments, read.splits) == (chain.segments, chain.splits)
        fixed = ClosedForm(
            form.network, form.machine, batch, form.engine.costs, form.rules, partitions=read.partitions
        )
        evaluation, other = form.evaluate(chain.tree), fixed.evaluate(read.tree)
        assert (evaluation.energy, evaluation.cycles, evaluation.dram) == (
            other.energy,
            other.cycles,
            other.dram,
        )


def test_tensors_and_updates_match_inside_segments() -> None:
    """What a layer reads from tiles is passed on there by a layer of its segment with an equal update."""
    form = form_of("alexnet", 4)
    for chain in (tangram_chain(form), random_chain(form, Random(1))):
        assert chain is not None
        for segment in directives_of(form, chain).segments:
            passing = {
                part.name: layer.step
                for layer in segment.layers
                for part in layer.tensors
                if part.place.startswith("to tiles")
            }
            read = [
                (p.name, layer.step)
                for layer in segment.layers
                for p in layer.tensors
                if p.place == "from tiles"
            ]
            assert all(passing[name] == step for name, step in read)
            assert set(passing) == {name for name, _ in read}


@pytest.fixture(scope="module")
def good() -> tuple[SetNetwork, str]:
    """A network, and the directives of a chain of it that runs in subbatches."""
    form = form_of("alexnet", 2)
    chain = tangram_chain(form)
    assert chain is not None
    text = write_chain(directives_of(form, chain))
    assert "update(N+=1)" in text
    return form.network, text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("chain alexnet", "chain alex net", "line 1"),
        ("chain alexnet", "chain lenet", "'lenet', expected 'alexnet'"),
        ("update(N+=1)", "update(N+=2)", "update"),
        ("update(N+=1)", "update(M+=1)", "cannot read 'update(M+=1)'"),
        ("update(N+=1)", "", "has no update"),
        ("tensor conv1.weights(K=", "tensor conv1.weights(K=1", "conv1.weights: expected conv1.weights(K="),
        ("  layer conv1\n", "  layer conv9\n", "expected a layer of the network"),
        ("from DRAM", "from disk", "cannot read"),
        ("C=3", "C=three", "cannot read 'C=three'"),
        ("segment", "piece", "expected segment"),
        ("update(N+=1)", "update(N+=1, Yo+=3)", "update(Yo+=3), expected 0 rows"),
        ("splits=1", "splits=0", "splits=0, expected at least 1"),
        ("update(N+=1)", "update(N+=" + "9" * 5000 + ")", "cannot read"),
    ],
)
def test_bad_input_is_one_line(good: tuple[SetNetwork, str], old: str, new: str, message: str) -> None:
    """A wrong word, size, layer or update is named with its line, or with its segment and layer."""
    network, text = good
    with pytest.raises(InputError) as caught:
        read_chain(network, parse_chain(text.replace(old, new, 1)))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_layers_are_all_there_and_in_order() -> None:
    """A chain without its last segment, or with two segments exchanged, is refused."""
    form = form_of("alexnet", 1)
    chain = tangram_chain(form)
    assert chain is not None
    whole = directives_of(form, chain)
    with pytest.raises(InputError, match="lacks"):
        read_chain(form.network, ChainDirectives(whole.network, 1, whole.segments[:-1]))
    with pytest.raises(InputError, match="precedes a layer that it reads"):
        read_chain(form.network, ChainDirectives(whole.network, 1, whole.segments[::-1]))
