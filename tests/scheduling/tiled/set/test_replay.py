"""Imported trees of our own against a replay that follows every byte (`set_replay.py`)."""

import re
from dataclasses import replace

import numpy as np
import pytest
from set_cases import EDGE, form_of
from set_replay import Replay

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import (
    LINKS,
    aim,
    fetch,
    measure,
    no_targets,
    ports_of,
    send,
    store,
)
from tilewright.formulation.scheduling.tiled.set.released.builder import NetworkBuilder
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import program_form
from tilewright.formulation.scheduling.tiled.set.trees.rules import PUBLISHED
from tilewright.formulation.scheduling.tiled.set.trees.tree_text import parse_tree
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit


def small_network() -> SetNetwork:
    """Two branches side by side, a sum and a pooling, with strides and padding."""
    net = NetworkBuilder("small")
    a = net.conv("a", 3, 16, 8, taps=3, source=(8, 8))
    b = net.conv("b", 16, 16, 8, taps=3)
    c = net.conv("c", 16, 8, 8, (a,))
    d = net.conv("d", 24, 16, 8, (b, c))
    net.add("e", 16, 8, (a, d))
    net.pool("f", 16, 4, taps=3, stride=2)
    net.conv("g", 16, 32, 2, taps=3, stride=2)
    net.conv("h", 32, 8, 2)
    return net.build()


TREES = {
    "one by one": "T 4/1; a 4; b 4; c 4; d 4; e 4; f 4; g 4; h 4",
    "samples": "T 4/4; a 1; b 1; c 1; d 1; e 1; f 1; g 1; h 1",
    "S, T, S": "T 4/1; S 4/2;; T 2/1;;; a 2;;; S 2/2;;;; b 1;;;; c 1;;; d 2;; e 2; T 4/2;; f 2;; g 2; h 4",
    "T, S, T": "T 4/2; T 2/1;; a 2;; S 2/2;;; T 1/1;;;; b 1;;;; c 1;;; d 1;; e 2; S 2/1;; f 2;; g 2; h 2",
    "root S": "S 4/2; T 2/2;; a 1;; b 1;; S 1/1;;; c 1;;; d 1;; e 1;; f 1; T 2/1;; g 2;; h 2",
    "one segment": "T 4/1; T 4/1;; a 4;; S 4/4;;; b 1;;; c 1;; d 4;; e 4;; f 4;; g 4;; h 4",
    "uneven": "S 4/1; T 4/4;; a 1;; b 1; T 4/2;; c 2;; d 2;; e 2; T 4/1;; f 4;; T 4/4;;; g 1;;; h 1",
}
"""As many semicolons as a node is deep."""


@pytest.mark.parametrize("name", TREES)
def test_every_byte_of_a_tree(name: str) -> None:
    """Hops, DRAM, busiest link, buffers and cycles of every node are those of the replay."""
    network = small_network()
    text = re.sub(r"(;+) ", lambda match: "\n" + "\t" * len(match[1]), TREES[name])
    form = form_of(network, 4)
    cost = form.attempt(parse_tree(text, network, 4))
    assert not isinstance(cost, Unfit), cost
    replay = Replay(form, cost)
    assert not replay.faults


def chain_network() -> SetNetwork:
    """A chain: nothing is concatenated, so that all of a producer's results travel by any rules."""
    net = NetworkBuilder("chain")
    net.conv("a", 16, 16, 8, source=(8, 8))
    net.conv("b", 16, 16, 8, taps=3)
    net.pool("c", 16, 4, taps=2, stride=2)
    net.conv("d", 16, 32, 4)
    net.conv("e", 32, 16, 4, taps=3)
    return net.build()


MIXED = {
    "one segment": "T 8/1; T 8/1;; a 8;; S 8/8;;; b 1;;; c 1;; d 8;; S 8/4;;; e 2",
    "fewer and fewer": "T 8/1; S 8/1;; a 8;; T 8/2;;; b 4;;; T 4/2;;;; c 2;;;; T 2/2;;;;; d 1;;;;; e 1",
    "root S": "S 8/2; T 4/1;; a 4;; b 4; T 4/4;; c 1;; S 1/1;;; d 1;;; e 1",
    "more again": "T 8/1; T 8/1;; a 8;; T 8/8;;; b 1;; S 8/2;;; c 4;;; d 4;; e 8",
}
"""Producers run on other numbers of samples than their readers."""


@pytest.mark.parametrize("name", MIXED)
def test_links_of_readers_of_fewer_samples(name: str) -> None:
    """By the program's rules, too, a reader of fewer samples than its producer loads links with its own share
    of them: without idle tiles that receive, and with time bound everywhere, every figure is the replay's.
    """
    network = chain_network()
    text = re.sub(r"(;+) ", lambda match: "\n" + "\t" * len(match[1]), MIXED[name])
    rules = replace(PUBLISHED, idle_tiles_receive=False, segment_bounds_only=False)
    form = program_form(network, EDGE, 8, rules)
    cost = form.attempt(parse_tree(text, network, 8))
    assert not isinstance(cost, Unfit), cost
    assert not Replay(form, cost).faults


def test_every_byte_of_a_recurrent_cell() -> None:
    """Operands that come from outside in part, as states of the time step before do, travel once each."""
    net = NetworkBuilder("cell")
    net.copy("a", 8, 1, 1, source=(1, 1))
    first = net.conv("b", 16, 8, 1, (0,), outside=8)
    kept = net.add("c", 8, 1, (first,), outside=8)
    net.add("d", 8, 1, (first, kept))
    form = form_of(net.build(), 2)
    cost = form.attempt(
        parse_tree("T 2/1\n\tT 2/2\n\t\ta 1\n\t\tb 1\n\tS 2/1\n\t\tc 2\n\t\td 2", form.network)
    )
    assert not isinstance(cost, Unfit), cost
    assert not Replay(form, cost).faults
    assert cost.dram > 2 * (8 + 8 + 8 + 8)


def test_hops_are_the_same_without_loads_of_links() -> None:
    """What searches count, hops and DRAM alone, is what is counted with every link, and hops are the links'
    sum.
    """
    random = np.random.default_rng(3)
    at = np.array([[0, 0], [0, 3], [4, 0], [4, 3], [4, 1]])
    for count in (1, 1, 2, 5, 12):
        x, y = random.integers(0, 5, count), random.integers(0, 4, count)
        size = int(random.integers(1, 100))
        counted = []
        for loads in (True, False):
            counts = np.zeros(LINKS + 80, dtype=np.int64)
            targets, ports = no_targets(5, 4), ports_of(at, 5, 4)
            for place in zip(x, y, strict=True):
                aim(targets, *map(int, place))
            measure(targets)
            send(counts, 1, 2, targets, size, loads)
            fetch(counts, ports, targets, size, loads)
            store(counts, ports, int(x[0]), int(y[0]), targets, size, loads)
            counted.append(counts)
        assert (
            counted[0][:LINKS].tolist() == counted[1][:LINKS].tolist() == [counted[0][LINKS:].sum(), 2 * size]
        )
