"""Trees: validity, text, the six operators, and the space that they span."""

import itertools
from collections.abc import Callable
from random import Random

import pytest
from set_cases import part

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.released.networks import program_network
from tilewright.formulation.scheduling.tiled.set.trees.tree import (
    Cut,
    InvalidTreeError,
    Leaf,
    Node,
    chain,
    check_tree,
    layer_order,
)
from tilewright.formulation.scheduling.tiled.set.trees.tree_text import format_tree, parse_tree
from tilewright.heuristics.scheduling.tiled.set.operators import neighbours, random_step
from tilewright.heuristics.scheduling.tiled.set.wide_steps import change, merge, shift, split, wide_step
from tilewright.solvers.scheduling.tiled.set.trees.enumeration import all_trees, trees_over

COUNTS = {1: (10, 62, 430, 3194, 24850), 2: (28, 232), 4: (54, 558)}


@pytest.mark.parametrize(("batch", "counts"), COUNTS.items())
def test_numbers_of_trees(batch: int, counts: tuple[int, ...]) -> None:
    """Over one order of three layers and more there are as many trees as counted independently."""
    for layers, count in enumerate(counts, 3):
        trees = trees_over(tuple(range(layers)), batch)
        assert len(trees) == len(set(trees)) == count


@pytest.mark.parametrize(
    ("network", "layers", "batch"),
    [("resnet", (2, 3, 4, 5, 6), 1), ("resnet", (0, 1, 2, 5), 2), ("resnet", (3, 4, 5), 4)],
)
def test_operators_connect_the_space(network: str, layers: tuple[int, ...], batch: int) -> None:
    """Every tree is reached from SET's first one, and every step gives a valid tree of the space."""
    small = part(network, layers)
    every = set(all_trees(small, batch))
    first: Node = chain(tuple(range(len(small))), batch)
    seen, todo = {first}, [first]
    used = set()
    while todo:
        for number, tree in neighbours(todo.pop(), small):
            used.add(number)
            if tree not in seen:
                check_tree(tree, small, batch)
                seen.add(tree)
                todo.append(tree)
    assert seen == every
    assert used == ({1, 2, 3, 4, 5, 6} if batch > 1 else {1, 2, 3, 4})


@pytest.mark.parametrize("step", [random_step, wide_step])
def test_random_steps_stay_valid(step: Callable[[Node, SetNetwork, Random], Node | None]) -> None:
    """Hundreds of random steps on whole networks at batch 4 give valid trees, each one its text's tree."""
    random = Random(5)
    for name in ("resnet", "trans_cell"):
        network = program_network(name)
        row = chain(tuple(range(len(network))), 4, 2)
        alone = tuple(Cut("T", 4, 2, (Leaf(layer, 2),)) for layer in range(len(network)))
        for begun in (chain(tuple(range(len(network))), 4), Cut("T", 4, 1, (row,)), Cut("T", 4, 1, alone)):
            tree: Node = begun
            for _ in range(200):
                made = step(tree, network, random)
                if made is not None:
                    tree = made
                    check_tree(tree, network, 4)
            assert parse_tree(format_tree(tree, network), network, 4) == tree
            assert layer_order(tree) != tuple(range(len(network)))


def test_wide_steps_on_segments() -> None:
    """Two segments become one and fall apart again, a layer crosses their border."""
    small = part("darknet", (4, 5, 6, 7))
    lines = "T 4/1\n\tT 4/2\n\t\t{} 2\n\t\t{} 2\n\tS 4/4\n\t\t{} 1\n\t\t{} 1\n"
    tree = parse_tree(lines.format(*(layer.name for layer in small.layers)), small, 4)
    first, two = tree.children
    assert isinstance(first, Cut)
    assert isinstance(two, Cut)
    whole = merge(tree, (), 0, first)
    leafs = tuple(Leaf(layer, 2) for layer in range(4))
    assert whole == Cut("T", 4, 1, (Cut("T", 4, 2, (*leafs[:2], Cut("S", 2, 2, two.children))),))
    both = Cut("T", 4, 1, (Cut("T", 4, 2, leafs),))
    halves = split(both, (0,), 2)
    assert halves == Cut("T", 4, 1, (first, Cut("T", 4, 2, leafs[2:])))
    assert change(tree, (1,)) == Cut("T", 4, 1, (first, Cut("T", 4, 4, two.children)))
    longer = shift(tree, (), 0, 1, back=True)
    assert longer == Cut("T", 4, 1, (Cut("T", 4, 2, leafs[:3]), Leaf(3, 4)))
    assert shift(tree, (), 0, 2, back=False) is None


BROKEN = {
    "twice": "T 1/1\n\tconv1 1\n\tconv1 1\n",
    "reads": "T 1/1\n\tpool1 1\n\tconv1 1\n",
    "not in the tree": "T 1/1\n\tconv1 1\n\tpool1 1\n",
    "formula 8": "T 2/2\n\tconv1 2\n",
    "formula 4": "T 3/2\n\tconv1 1\n",
    "has children": "T 1/1\n\tS 1/1\n",
    "expected 'T b/g'": "T 1/1\n\tconv1\n",
    "unknown name": "T 1/1\n\tconvolution 1\n",
    "indented": "T 1/1\n\t\tconv1 1\n",
    "a second root": "T 1/1\n\tconv1 1\nT 1/1\n",
    "empty": "\n",
}


@pytest.mark.parametrize(("message", "text"), BROKEN.items())
def test_broken_trees_are_refused(message: str, text: str) -> None:
    """A tree that breaks a formula or cannot be read is refused with the node, line or formula."""
    with pytest.raises(InvalidTreeError, match=message.replace("(", r"\(")):
        parse_tree(text, program_network("resnet"))


def test_enumerated_trees_differ_and_are_valid() -> None:
    """Every enumerated tree is valid, and its cuts have at least two children."""
    small = part("resnet", (2, 3, 4, 5))
    for tree in all_trees(small, 2):
        check_tree(tree, small, 2)
    pairs = itertools.combinations(trees_over((0, 1, 2), 1), 2)
    assert all(first != other for first, other in pairs)
    assert Cut("T", 1, 1, (Leaf(0, 1), Leaf(1, 1))) != Cut("S", 1, 1, (Leaf(0, 1), Leaf(1, 1)))
