"""Set-up cycles of the ``hierarchy`` cost model: per iteration, tile, row and instruction.

Every one is a non-negative constant times a count of loops or tiles, so less of what is counted never takes
longer, and the bounds of a nest's counts bound them too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from tilewright.formulation.expression import Expr, as_expr, ceil_div, choose, product, total
from tilewright.formulation.mapping.cost.hierarchy_counts import (
    in_all_turns,
    next_stores,
    selected_counts,
    spread_of,
)
from tilewright.formulation.mapping.nests.blocks import loop_hosts
from tilewright.formulation.mapping.nests.nest import Nest, Spread
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.workloads.mapping.operator import Role, Tensor

Charge = tuple[Fraction, Expr]
"""Cycles per count, and the count."""


def check_set_ups(engine: Engine) -> None:
    """Raise ``InputError`` where set-up cycles per iteration depend on a level that may be left out."""
    counts_loops = [level for level in engine.levels if level.timing.tile or level.timing.instruction]
    optional = [level.name for level in engine.levels if level.may_bypass]
    if counts_loops and optional:
        field = "setup.tile" if counts_loops[0].timing.tile else "setup.instruction"
        raise InputError(
            engine.name,
            f"levels.{counts_loops[0].name}.{field}",
            f"expected no level with may_bypass beside it, got {', '.join(optional)}: "
            "loops of a level that stores nothing belong to no level of their own",
        )


def issued(nest: Nest, level: int) -> Expr:
    """Cycles to issue every iteration of a level's loops and those outside."""
    count = _iterations(nest, [block for block, host in _hosted(nest) if host <= level])
    return rounded_up([(nest.engine.levels[level].timing.tile, count)])


def instructions(nest: Nest) -> list[Expr]:
    """Cycles of compute to begin every instruction: an iteration of the loops outside some level."""
    charges = [
        (
            level.timing.instruction,
            _iterations(nest, [block for block, host in _hosted(nest) if host < index]),
        )
        for index, level in enumerate(nest.engine.levels)
        if level.timing.instruction
    ]
    return [rounded_up(charges)] if charges else []


def _hosted(nest: Nest) -> list[tuple[int, int]]:
    """Temporal blocks, each with the level that its loops belong to."""
    hosts = loop_hosts(nest.operator, nest.engine)
    return [(index, hosts[nest.blocks[index].level]) for index in nest.temporal]


def sets_up(level: MemoryLevel) -> bool:
    """Whether a level's port takes cycles for every tile that it moves."""
    return bool(level.timing.transfer or level.timing.row)


def longest_row(engine: Engine, level: MemoryLevel, role: Role) -> int | None:
    """Elements of a role in a row that a level's port moves at most; ``None`` for a run of any length."""
    bits = level.timing.row_bits
    return None if bits is None else max(1, bits // engine.width(level, role))


def set_ups(nest: Nest, tensor: Tensor, place: tuple[int, int], among: Sequence[bool]) -> Iterator[Charge]:
    """Set-up cycles of the tiles of a tensor that a level's port moves, and of their rows.

    Parameters
    ----------
    nest : the loops and the choices of storage
    tensor : whose tiles move
    place : indices of the level whose port it is, and of the store outside of which the tiles are
    among : per alternative of the tensor's residency, whether it counts
    """
    level, source = nest.engine.levels[place[0]], place[1]
    if not sets_up(level):
        return
    timing, row = level.timing, longest_row(nest.engine, level, tensor.role)
    for boundary, spread, again, chosen in _inner_stores(nest, tensor, source, among):
        tiles, rows = nest.tile_rows(tensor, boundary, spread, row, every=again)
        for cycles, count in ((timing.transfer, tiles), (timing.row, rows)):
            if cycles:
                yield cycles, in_all_turns(nest, _where(nest, tensor, chosen, count))


def timed_reads(nest: Nest, tensor: Tensor, level: int, among: Sequence[bool]) -> Expr:
    """Elements that a level's port reads: as counted, or every tile anew for stores that refetch.

    Parameters
    ----------
    nest, tensor, among : as for :func:`set_ups`
    level : the store
    """
    left, anew = list(among), []
    for boundary, spread, again, chosen in _inner_stores(nest, tensor, level, among):
        if again and not tensor.is_output:
            left = [keeps and not taken for keeps, taken in zip(left, chosen, strict=True)]
            count = in_all_turns(nest, nest.refetched(tensor, boundary, spread))
            anew.append(_where(nest, tensor, chosen, count))
    return total([selected_counts(nest, tensor, level, whole_run=False, among=left).reads, *anew])


def rounded_up(charges: Sequence[Charge]) -> Expr:
    """Whole cycles of all charges together."""
    scale = math.lcm(*(cycles.denominator for cycles, _ in charges))
    return ceil_div(total(int(cycles * scale) * count for cycles, count in charges), scale)


def _inner_stores(
    nest: Nest, tensor: Tensor, level: int, among: Sequence[bool]
) -> Iterator[tuple[int, Spread, bool, list[bool]]]:
    """The stores that a level hands tiles to: boundary, instances, whether each is fetched anew, and when."""
    positions = nest.residency[tensor.name].positions
    if level not in positions:
        return
    for store, chosen in next_stores(nest, tensor, level).items():
        taken = [
            own and counts and level in stores
            for own, counts, stores in zip(
                chosen, among, nest.residency[tensor.name].alternatives, strict=True
            )
        ]
        if store is None or not any(taken):
            continue  # what PEs read is part of their pipeline
        between = nest.spatial_between(positions[level], positions[store])
        spread = spread_of(nest, tensor, frozenset(), between, store)
        yield positions[store], spread, nest.engine.levels[store].timing.refetch, taken


def _where(nest: Nest, tensor: Tensor, chosen: Sequence[bool], count: Expr) -> Expr:
    return choose(nest.residency[tensor.name].selector, [count if take else as_expr(0) for take in chosen])


def _iterations(nest: Nest, blocks: Sequence[int]) -> Expr:
    """Iterations of some temporal blocks, the outermost ones."""
    edge = max(blocks, default=-1) + 1
    count = product(nest.pieces(dim, edge, blocks) for dim in nest.operator.bounds)
    return in_all_turns(nest, count)
