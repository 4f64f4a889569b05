"""Levels that store nothing have no loops in an even space.

Where every tensor bypasses a level, the level is left out: the level outside feeds the one inside, so an even
space is the union over storages of the spaces of machines whose levels all store something
(``docs/proofs.md``, storage patterns).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tilewright.formulation.expression import as_expr, choose, is_one, product, total
from tilewright.formulation.mapping.cost.base import Limit
from tilewright.formulation.mapping.nests.blocks import loop_hosts
from tilewright.formulation.mapping.nests.nest import Nest


def bypassable_blocks(nest: Nest) -> Iterator[tuple[int, int]]:
    """Temporal blocks whose level every tensor may bypass, each with that level's index.

    Levels that can store nothing at all count as the next one outside that can.
    """
    hosts = loop_hosts(nest.operator, nest.engine)
    for index in nest.temporal:
        level = hosts[nest.blocks[index].level]
        if all(
            any(level not in stores for stores in residency.alternatives)
            for residency in nest.residency.values()
        ):
            yield index, level


def loose_levels(nest: Nest) -> list[int]:
    """Levels that all tensors may bypass, outermost first."""
    return sorted({level for _, level in bypassable_blocks(nest)})


def idle_limits(nest: Nest) -> Iterator[Limit]:
    """What forbids loops at levels that store nothing, for every level that every tensor may bypass."""
    for index, level in bypassable_blocks(nest):
        left_out = [
            choose(
                residency.selector, [as_expr(int(level not in stores)) for stores in residency.alternatives]
            )
            for residency in nest.residency.values()
        ]
        iterates = 1 - is_one(product(nest.trips([index])))
        name = f"no loops at {nest.engine.levels[level].name}, where nothing is stored"
        yield Limit(name, total([iterates, *left_out]), len(left_out))


def loops_where_nothing_is_stored(
    nest: Nest, tiles: Sequence[Sequence[int]], stores: Sequence[Collection[int]]
) -> str | None:
    """Which loops of a mapping stand at a level that stores nothing, in words; ``None`` for none.

    Parameters
    ----------
    tiles : per boundary, the tile sizes in the sequence of the operator's dimensions
    stores : per tensor of the operator, the indices of the levels that store it
    """
    for index, level in bypassable_blocks(nest):
        looping = [
            dim
            for dim, outer, inner in zip(nest.operator.bounds, tiles[index], tiles[index + 1], strict=True)
            if outer != inner
        ]
        if looping and not any(level in held for held in stores):
            name = nest.engine.levels[level].name
            return f"loops over {', '.join(looping)} at {name}, where nothing is stored"
    return None
