"""KAPLA's dynamic programming over chains of segments (section IV-B): the best few at every state.

At every set of layers done, the ``keep`` partial chains with the least value continue.  An objective such as
energy times delay is not additive, so even with exact costs the best chain may be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from tilewright.formulation.scheduling.tiled.kapla.chain import Priced, Value
from tilewright.formulation.scheduling.tiled.kapla.segments import SegmentScheme


@dataclass(frozen=True, slots=True)
class _Row:
    """Segments up to some state, the last one and the row before it."""

    energy: float
    cycles: int
    last: Priced | None = None
    before: _Row | None = None


def top_chains(
    starts: Sequence[int], candidates: dict[int, list[Priced]], value: Value, keep: int
) -> list[tuple[SegmentScheme, ...]]:
    """The chains that are left at the end, best first; empty where none reaches it.

    Parameters
    ----------
    starts : all states, smallest first
    candidates : by where they start
    keep : partial chains that continue at every state
    """
    rows: dict[int, list[_Row]] = {starts[0]: [_Row(0.0, 0)]}
    for start in starts[:-1]:
        kept = nsmallest(
            keep, rows.pop(start, []), key=lambda candidate: value(candidate.energy, candidate.cycles)
        )
        for row in kept:
            for candidate in candidates.get(start, []):
                grown = _Row(row.energy + candidate.energy, row.cycles + candidate.cycles, candidate, row)
                rows.setdefault(candidate.scheme.end, []).append(grown)
    ends = nsmallest(
        keep, rows.get(starts[-1], []), key=lambda candidate: value(candidate.energy, candidate.cycles)
    )
    return [_segments(row) for row in ends]


def _segments(row: _Row) -> tuple[SegmentScheme, ...]:
    schemes = []
    while row.last is not None and row.before is not None:
        schemes.append(row.last.scheme)
        row = row.before
    return tuple(reversed(schemes))


def undominated(candidates: Iterable[tuple[Priced, int]]) -> list[Priced]:
    """Of schemes with their DRAM bytes, those that no other one of the same layers beats in energy, cycles
    and DRAM bytes together.
    """
    by_end: dict[tuple[int, int], list[tuple[float, int, int, Priced]]] = {}
    for candidate, dram in candidates:
        place = by_end.setdefault((candidate.scheme.start, candidate.scheme.end), [])
        place.append((candidate.energy, candidate.cycles, dram, candidate))
    kept = []
    for place in by_end.values():
        front: list[tuple[float, int, int, Priced]] = []
        for energy, cycles, dram, candidate in sorted(place, key=lambda entry: entry[:3]):
            if not any(other[1] <= cycles and other[2] <= dram for other in front):
                front.append((energy, cycles, dram, candidate))
        kept += [entry[3] for entry in front]
    return kept
