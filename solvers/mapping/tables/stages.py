"""Stages in which branch and bound makes its decisions, from the outermost tile inwards.

A stage fixes some decisions of all axis groups; :mod:`tilewright.solvers.mapping.tables.staged_tables` sorts
the rows of a group by what the stages decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from tilewright.formulation.expression import Variable
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.nests.remainders import MergedCuts
from tilewright.formulation.mapping.space import MapSpace
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Role


@dataclass(frozen=True, slots=True)
class Stage:
    """The boundaries and choices that one refinement decides.

    Parameters
    ----------
    name : in words
    spread : index of the memory level whose spatial loops it fixes, if any
    boundaries : boundaries whose tile sizes it fixes
    selectors : choices that it fixes
    coarse : it fixes only between which powers of this number those tile sizes lie, of spatial loops between
        which powers of two the instances that a dimension takes on all axes together; 0 where it fixes them
    loops : blocks of which it decides whether they have a loop, dimension by dimension
    """

    name: str
    spread: int | None
    boundaries: tuple[int, ...]
    selectors: tuple[Variable, ...]
    coarse: float = 0.0
    loops: tuple[int, ...] = ()


COARSE, MIDDLE, FINE = 3.0, 1.5, 1.2
STORAGE = "storage"
MANY = 1_000_000  # outermost tiles, before any limit
FEW_LEVELS = 3  # that keep tiles of all tensors


def stages_of(space: MapSpace, spread_first: bool = False, inner_first: bool = False) -> list[Stage]:
    """Storage, then outer tile first, the spatial split inside it, the next tile, down to single iterations.

    The order of a level's loops is decided together with the tile that they step through; which tensors
    levels store is decided before all else.  Tiles are many, so their sizes are decided roughly first: that
    of the outermost one where there are very many, and those of all levels before any exactly where storages,
    or levels of all tensors, are many, since most rough parts close whatever the exact tile around them is.
    Where cycles count, or exact outermost tiles are very many, a second rough stage is finer, and no tile is
    decided exactly before the next one is known roughly: what lies inside it closes most tiles that bounds
    of the outer levels leave open.
    Around a tile inside an array, how much of the array each dimension takes is decided roughly as soon as
    the tile is known roughly.
    In parts of a machine inside an array, all tiles are decided less roughly before any exactly.
    Where scratchpads of single tensors follow each other behind an array, and their tiles come first, it is
    decided before which loops iterate at all: one that does not leaves tiles in place, and one of two
    iterations fetches them twice, which rough sizes do not tell apart.

    Parameters
    ----------
    spread_first : whether spatial splits are decided before all tiles: they settle the cycles of computing
    inner_first : whether a tile inside an array is decided before what is spread: it must fit a small store
    """
    nest = space.nest
    temporal = [(index, nest.blocks[index]) for index in nest.temporal]
    orders = _choosable(nest, nest.temporal)
    stores = tuple(selector for selector in space.selectors if selector not in orders)
    levels = [nest.engine.levels[block.level] for _, block in temporal]
    whole = sum(level.keeps == set(Role) for level in levels)
    partial = bool(stores) or whole < len(levels) >= FEW_LEVELS  # some tensors may be stored in fewer levels
    all_roughly_first = whole > FEW_LEVELS or (partial and not nest.perfect)
    first: list[Stage] = []
    rough: list[list[Stage]] = []
    exact: list[list[Stage]] = []
    done = 0
    outermost = temporal[1][0] if len(temporal) > 1 else 0
    refined = not nest.perfect and not stores and (spread_first or _tiles(space, outermost) > MANY)
    for (place, _), (position, _) in pairwise(temporal):
        between = nest.spatial_between(place, position)
        chosen = _choosable(nest, [place])
        edges = tuple(range(done + 1, position + 1))
        arrays, around = spreads(nest, between), bool(between) and inner_first
        # Perfect tiles are few enough to be decided exactly at once.
        many = not nest.perfect and (
            refined or all_roughly_first or done > 0 or _tiles(space, position) > MANY
        )
        # With the inner tile first, what lies between is decided with the array around it.
        tile = Stage(f"tile of {space.sites[position]}", None, edges[-1:] if around else edges, chosen)
        roughly: list[Stage] = []
        if many or around:
            stage, tile = _twice(tile)
            roughly.append(stage)
            if refined:
                roughly.append(replace(stage, coarse=FINE, selectors=()))
        exactly = [tile]
        if around:
            roughly += rough_spreads(nest, between)
            exactly += _twice(Stage(f"array around {space.sites[position]}", None, edges[:-1], ()))
        elif spread_first:
            first += [*(rough_spreads(nest, between) if all_roughly_first else ()), *arrays]
        else:
            roughly = [*arrays, *roughly]
        rough.append(roughly)
        exact.append(exactly)
        done = position
    exact.append([Stage("innermost loops", None, tuple(range(done + 1, len(nest.boundaries))), ())])
    if all_roughly_first and inner_first and isinstance(nest, MergedCuts) and not nest.perfect:
        # Inside an array tiles limit each other: what one leaves of the others is known once all nearly are.
        *roughly, last = chain(*rough)
        finely = [replace(stage, coarse=MIDDLE, selectors=()) for stage in roughly if stage.boundaries]
        stages = [*first, *roughly, *finely, replace(last, coarse=MIDDLE), *chain(*exact)]
    elif all_roughly_first:
        stages = [*first, *chain(*rough), *chain(*exact)]
    else:
        # The exact stages of a tile follow its rough ones, or those of the next tile.
        rough += [[]] * (2 if refined else 1)
        exact = [[], *exact] if refined else exact
        stages = [
            *first,
            *chain.from_iterable(stage + other for stage, other in zip(rough, exact, strict=True)),
        ]
    if inner_first and has_scratchpads(nest.engine):
        stages = [Stage("loops", None, (), (), loops=tuple(nest.temporal[:-1])), *stages]
    return [Stage(STORAGE, None, (), stores), *stages] if stores else stages


def has_scratchpads(engine: Engine) -> bool:
    """Whether several levels stand behind the last array, each for one tensor alone."""
    array = last_array(engine)
    behind = engine.levels[array + 1 :] if array >= 0 else ()
    return len(behind) > 1 and all(len(level.keeps) == 1 for level in behind)


def last_array(engine: Engine) -> int:
    """The level that feeds the innermost array; -1 where none does."""
    return max((index for index, level in enumerate(engine.levels) if level.fanout is not None), default=-1)


def outer_stages(nest: Nest, stores: Sequence[int]) -> list[Stage]:
    """Which loops iterate, in what order; the tiles of some stores and the arrays around them.

    Which loops iterate at all decides how often tensors are fetched, and rough sizes do not tell a loop of
    one iteration from a loop of two.  Tiles of other stores outside the last one are left open.

    Parameters
    ----------
    stores : boundaries of the stores, outermost first
    """
    last = stores[-1]
    loops = tuple(block for block in nest.temporal if block < last)
    rough = [Stage("rough tile", None, (boundary,), (), coarse=COARSE) for boundary in stores]
    arrays = [block for block in nest.spatial if block < last]
    return [
        Stage("loops", None, (), _choosable(nest, loops), loops=loops),
        *rough,
        *rough_spreads(nest, arrays),
        *spreads(nest, arrays),
        *(replace(stage, coarse=0.0) for stage in rough),
    ]


def inner_stages(nest: Nest, last: int) -> list[Stage]:
    """What :func:`outer_stages` leave open, from a boundary inwards."""
    stages: list[Stage] = []
    for outside, position in pairwise(block for block in nest.temporal if block >= last):
        between = nest.spatial_between(outside, position)
        rough, exact = _twice(Stage("tile", None, (position,), ()))
        order = Stage("order", None, (), _choosable(nest, [outside]))
        stages += [*rough_spreads(nest, between), *spreads(nest, between)]
        stages += [rough, order, exact]
    return [*stages, Stage("all other tiles", None, tuple(range(1, len(nest.boundaries))), ())]


def _choosable(nest: Nest, blocks: Iterable[int]) -> tuple[Variable, ...]:
    """The choices of the orders of some blocks."""
    selectors = (nest.blocks[block].selector for block in blocks)
    return tuple(selector for selector in selectors if isinstance(selector, Variable))


def spreads(nest: Nest, blocks: Iterable[int]) -> list[Stage]:
    """A stage for every array among some spatial blocks."""
    levels = dict.fromkeys(nest.blocks[index].level for index in blocks)
    return [Stage(f"spread below {nest.engine.levels[level].name}", level, (), ()) for level in levels]


def rough_spreads(nest: Nest, blocks: Iterable[int]) -> list[Stage]:
    """A stage for every array among some spatial blocks: roughly what each dimension takes of it."""
    return [_roughly(stage) for stage in spreads(nest, blocks)]


def _roughly(stage: Stage) -> Stage:
    """The stage that decides roughly what another one decides exactly."""
    return replace(stage, name=f"rough {stage.name}", coarse=COARSE)


def _twice(stage: Stage) -> list[Stage]:
    """A stage that decides roughly, and then the stage itself."""
    return [_roughly(stage), replace(stage, selectors=())]


def _tiles(space: MapSpace, boundary: int) -> int:
    """How many tiles a boundary may have, were there no limits."""
    sizes = [expr for expr in space.nest.boundaries[boundary].values() if isinstance(expr, Variable)]
    return math.prod(len(size.domain) for size in sizes)
