"""Steepest descent over the tiles of one shape: cut the loop that helps most, until none does."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tilewright.formulation.mapping.fused.arena import FusionArena, Names, TreeChoice
from tilewright.formulation.mapping.fused.tree import Branch, Leaf


def flat_shapes(arena: FusionArena, names: Names) -> list[int]:
    """Shapes of one sequence alone."""
    return [index for index, shape in enumerate(arena.shapes(names)) if is_flat(shape)]


def is_flat(shape: Branch) -> bool:
    """Whether no sequence stands inside the outermost one."""
    return all(isinstance(child, Leaf) for child in shape.children)


def descend(arena: FusionArena, names: Names, shape: int) -> Fraction | None:
    """The energy at which no single step helps any more; ``None`` where nothing fits.

    Starts without loops.  As long as nothing fits, the loop with the largest tile is cut.

    Parameters
    ----------
    arena, names : whose group it is
    shape : of the tree
    """
    menus = arena.menus(names, shape)
    here = TreeChoice(shape, (0,) * len(menus))
    value = arena.price(names, here)
    while value is None:
        sizes = [menu.tiles[place] for menu, place in zip(menus, here.tiles, strict=True)]
        if max(sizes, default=1) == 1:
            return None
        here = _cut(here, sizes.index(max(sizes)), 1)
        value = arena.price(names, here)
    while True:
        best: tuple[Fraction, TreeChoice] | None = None
        for place, menu in enumerate(menus):
            for step in (1, -1):
                if 0 <= here.tiles[place] + step < len(menu.tiles):
                    there = _cut(here, place, step)
                    price = arena.price(names, there)
                    if price is not None and price < (value if best is None else best[0]):
                        best = price, there
        if best is None:
            return value
        value, here = best


def _cut(choice: TreeChoice, place: int, step: int) -> TreeChoice:
    tiles = [*choice.tiles]
    tiles[place] += step
    return replace(choice, tiles=tuple(tiles))
