"""One cut in the place of several counts no more than they do, piece by piece."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import product

import pytest

from tilewright.formulation.expression import as_expr
from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.mapping.nests.blocks import Block
from tilewright.formulation.mapping.nests.nest import Nest, Spread
from tilewright.formulation.mapping.nests.remainders import MergedCuts, counts_merged_cuts
from tilewright.hardware.mapping.engine import ArrayAxis
from tilewright.hardware.mapping.load import load_engine
from tilewright.workloads.mapping.einsum import nest as einsum
from tilewright.workloads.mapping.operator import Axis, Operator
from tilewright.workloads.mapping.operators import conv2d

Piece = tuple[tuple[int, ...], tuple[int, ...], int, int]
"""Steps in time, places on the array, the first iteration, and how many."""

AXIS = ArrayAxis("x", 1 << 20)
KINDS = "tsttt"  # a loop in time (that stands for several), an array, loops in time inside it


def walked(sizes: Sequence[int], counted: Sequence[bool], kinds: str) -> list[Piece]:
    """All pieces that nested loops cut, one after the other; of a cut that does not count the first one."""
    walked: list[Piece] = [((), (), 0, sizes[0])]
    for tile, counts, kind in zip(sizes[1:], counted, kinds, strict=True):
        inner: list[Piece] = []
        for time, place, start, size in walked:
            for index in range(math.ceil(size / tile) if counts else 1):
                first = start + index * tile
                step = (*time, index) if kind == "t" else time
                beside = (*place, index) if kind == "s" else place
                inner.append((step, beside, first, min(tile, start + size - first)))
        walked = inner
    return walked


def chain(draw: random.Random, bound: int, cuts: int) -> list[int]:
    """Tiles of tiles, each ``ceil(outer / n)``; many are no divisors."""
    sizes = [bound]
    for _ in range(cuts):
        sizes.append(math.ceil(sizes[-1] / draw.choice([1, 2, 2, 3, 4, 5])))
    return sizes


def elements(axis: Axis, pieces: dict[str, list[Piece]]) -> int:
    """Elements of all windows, of those beside each other at one time the different ones."""
    windows: set[tuple[object, int, int]] = set()
    for combination in product(*(pieces[term.dim] for term in axis.terms)):
        start = sum(term.stride * piece[2] for term, piece in zip(axis.terms, combination, strict=True))
        span = 1 + sum(
            term.stride * (piece[3] - 1) for term, piece in zip(axis.terms, combination, strict=True)
        )
        windows.add((tuple(piece[0] for piece in combination), start, span))
    return sum(span for _, _, span in windows)


def slid(axis: Axis, pieces: dict[str, list[Piece]], dim: str, at: int) -> int:
    """Elements of all windows that an instance did not hold in the step before of one loop of a dimension.

    Of windows beside each other that are the same, the one that lacks most counts.
    """
    steps: dict[tuple[tuple[int, ...], ...], dict[tuple[object, ...], range]] = {}
    for combination in product(*(pieces[term.dim] for term in axis.terms)):
        start = sum(term.stride * piece[2] for term, piece in zip(axis.terms, combination, strict=True))
        span = sum(term.stride * (piece[3] - 1) for term, piece in zip(axis.terms, combination, strict=True))
        beside = steps.setdefault(tuple(piece[0] for piece in combination), {})
        beside[tuple(piece[1] for piece in combination)] = range(start, start + span + 1)
    place = [term.dim for term in axis.terms].index(dim)
    count = 0
    for time, beside in steps.items():
        earlier = [*time[place]]
        earlier[at] -= 1
        before = steps.get((*time[:place], tuple(earlier), *time[place + 1 :]), {})
        lacking: dict[range, int] = {}
        for instance, window in beside.items():
            new = len({*window} - {*before.get(instance, ())})
            lacking[window] = max(lacking.get(window, 0), new)
        count += sum(lacking.values())
    return count


def stated(operator: Operator, sizes: dict[str, list[int]]) -> MergedCuts:
    """A nest with these tiles, whose first block stands for several."""
    blocks = tuple(Block(0, AXIS if kind == "s" else None) for kind in KINDS)
    boundaries = tuple(
        {dim: as_expr(sizes[dim][edge] if dim in sizes else 1) for dim in operator.bounds}
        for edge in range(len(blocks) + 1)
    )
    return MergedCuts.of(Nest(operator, load_engine("nvdla-256"), boundaries, blocks, {}, False), 0)


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (3, 2)])
def test_merged_cuts_count_no_more_than_several(stride: int, dilation: int) -> None:
    """Pieces, iterations and windows of random nests with up to three cuts in the place of one."""
    draw = random.Random(stride * 10 + dilation)
    for _ in range(150):
        bounds = {"P": draw.randint(2, 17), "R": draw.randint(1, 7)}
        operator = conv2d(
            n=1, k=2, c=2, p=bounds["P"], q=1, r=bounds["R"], s=1, stride=stride, dilation=dilation
        )
        axis = next(axis for axis in operator.tensors[0].axes if any(t.dim == "P" for t in axis.terms))
        merged, pieces, counted = {}, {}, {}
        edge = draw.randint(1, len(KINDS))
        inside = [draw.random() < 0.7 for _ in KINDS[1:edge]]
        for dim, bound in bounds.items():
            near = draw.randint(1, 3)
            sizes = chain(draw, bound, near + len(KINDS) - 1)
            merged[dim] = [bound, *sizes[near:-1], 1]
            counts = draw.random() < 0.8
            outer = [counts or draw.random() < 0.5 for _ in range(near)]
            pieces[dim] = walked(
                [*sizes[:near], *merged[dim][1 : edge + 1]], [*outer, *inside], "t" * near + KINDS[1:edge]
            )
            counted[dim] = [index for index, count in enumerate([counts, *inside]) if count]
        nest = stated(operator, merged)
        for dim, piece in pieces.items():
            assert evaluate(nest.pieces(dim, edge, counted[dim]), {}) <= len(piece)
            assert evaluate(nest.covered(dim, edge, counted[dim]), {}) <= sum(size for *_, size in piece)
        sides = [1] if inside[:1] == [True] else []
        bound = evaluate(nest.window(axis, edge, counted.__getitem__, sides), {})
        assert bound <= elements(axis, pieces)


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (3, 2)])
def test_windows_slide_over_merged_cuts(stride: int, dilation: int) -> None:
    """In a loop that one cut stands for, or further inside; nothing moves the window inside that loop."""
    draw = random.Random(stride * 10 + dilation)
    slides = tight = 0
    for _ in range(80):
        bounds = {"P": draw.randint(4, 17), "R": draw.randint(2, 7)}
        operator = conv2d(
            n=1, k=2, c=2, p=bounds["P"], q=1, r=bounds["R"], s=1, stride=stride, dilation=dilation
        )
        axis = next(axis for axis in operator.tensors[0].axes if any(t.dim == "P" for t in axis.terms))
        dim = draw.choice(["P", "R"])
        near = draw.randint(1, 3)
        edge = draw.randint(2, len(KINDS))
        kinds = "t" * near + KINDS[1:edge]
        sliding = draw.choice([place for place, kind in enumerate(kinds) if kind == "t"])
        merged, pieces = {}, {}
        for name, bound in bounds.items():
            sizes = chain(draw, bound, len(kinds))
            for place in range(sliding + 1, len(kinds)):
                if kinds[place] == "t" or draw.random() < 0.3:
                    sizes[place + 1] = sizes[place]
                sizes[place + 1] = min(sizes[place], sizes[place + 1])
            pieces[name] = walked(sizes, [True] * len(kinds), kinds)
            inner = sizes[near:]
            merged[name] = [bound, *inner, *[inner[-1]] * (len(KINDS) - edge)]
        nest = stated(operator, merged)
        exact = slid(axis, pieces, dim, kinds[:sliding].count("t"))
        slide, counted = (dim, max(0, sliding - near + 1)), dict.fromkeys(bounds, range(edge))
        bound, still = (
            evaluate(nest.window(axis, edge, counted.__getitem__, [1], own), {}) for own in (slide, None)
        )
        assert bound <= min(exact, still)
        slides += exact < elements(axis, pieces)
        tight += bound == exact
    assert slides > 3
    assert tight > 3


def test_one_cut_counts_itself() -> None:
    """Where tiles divide, nothing is lost."""
    operator = conv2d(n=1, k=2, c=2, p=24, q=1, r=1, s=1)
    nest = stated(operator, {"P": [24, 12, 6, 6, 3, 1]})
    assert evaluate(nest.pieces("P", 4, [0, 1, 3]), {}) == 8
    assert evaluate(nest.covered("P", 4, [0, 3]), {}) == 12


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (3, 1)])
def test_one_cut_of_windows_counts_itself(stride: int, dilation: int) -> None:
    """Windows with gaps, too: 24 rows in tiles of 6, seven taps in a tile of 4 and one of 3."""
    operator = conv2d(n=1, k=2, c=2, p=24, q=1, r=7, s=1, stride=stride, dilation=dilation)
    axis = next(axis for axis in operator.tensors[0].axes if any(t.dim == "P" for t in axis.terms))
    sizes = {"P": [24, 6, 6, 6, 6, 1], "R": [7, 4, 4, 4, 4, 1]}
    nest = stated(operator, sizes)
    pieces = {dim: walked(own[:2], [True], "t") for dim, own in sizes.items()}
    assert evaluate(nest.window(axis, 1, lambda _dim: [0]), {}) == elements(axis, pieces)


def test_several_cuts_may_count_less_than_one() -> None:
    """Ten in tiles of 5, 3 and 2 are six pieces, in tiles of 3 and 2 seven."""
    pieces = walked([10, 5, 3, 2], [True] * 3, "ttt")
    operator = conv2d(n=1, k=2, c=2, p=10, q=1, r=1, s=1)
    nest = stated(operator, {"P": [10, 3, 3, 2, 1, 1]})
    assert len(pieces) == 6
    assert evaluate(Nest.pieces(nest, "P", 3, [0, 2]), {}) == 6
    assert len(walked([10, 3, 2], [True] * 2, "tt")) == 7


def test_strided_tiles_count_at_least_their_elements() -> None:
    """An axis of one loop with a stride: what lies between elements counts in one tile only."""
    draw = random.Random(5)
    for _ in range(100):
        bound = draw.randint(2, 17)
        operator = conv2d(n=1, k=2, c=2, p=bound, q=1, r=1, s=1, stride=2)
        axis = next(axis for axis in operator.tensors[0].axes if any(t.dim == "P" for t in axis.terms))
        near = draw.randint(1, 3)
        sizes = chain(draw, bound, near + len(KINDS) - 1)
        merged = [bound, *sizes[near:-1], 1]
        pieces = walked([*sizes[:near], *merged[1:]], [True] * (near + 4), "t" * near + KINDS[1:])
        nest = stated(operator, {"P": merged})
        evaluation = evaluate(nest.window(axis, len(KINDS), lambda _dim: range(len(KINDS))), {})
        assert evaluation <= sum(2 * (size - 1) + 1 for *_, size in pieces)


def test_outputs_whose_tiles_gape_along_one_loop_are_not_merged() -> None:
    """What is subtracted there would have to be bounded from above; where loops share an axis it is."""
    assert counts_merged_cuts(conv2d(n=1, k=2, c=2, p=4, q=4, r=3, s=3))
    assert counts_merged_cuts(einsum("O[i+j] += A[i] * B[j]", bounds={"i": 3, "j": 2}))
    assert not counts_merged_cuts(einsum("O[2*i] += A[i,j] * B[j]", bounds={"i": 3, "j": 2}))


def test_of_outputs_whose_tiles_overlap_the_whole_is_taken_off() -> None:
    """Whatever the tiles: two rows of 3 * 4 + 1 + 1 elements."""
    operator = einsum("O[k,3*i+j] += A[i] * B[k,j]", bounds={"k": 2, "i": 5, "j": 2})
    whole = {dim: [operator.bounds[dim]] * (len(KINDS) + 1) for dim in "kj"}
    for tile in (5, 2, 1):
        merged = stated(operator, whole | {"i": [5] + [tile] * len(KINDS)})
        factors = merged.coverage(operator.output, 2, Spread())
        assert [evaluate(factor, {}) for factor in factors] == [2, 14]
