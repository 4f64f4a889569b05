"""How many tiles each child of an S cut gets (section 3.3.2; the authors' note on optimal allocation).

The rule keeps the largest ``NPT / tiles`` small.  Every child gets the integer part of its proportional
share.  The children that lose most by rounding down get one more tile and are settled.  The others share the
remaining tiles in proportion again.
"""

from __future__ import annotations

from collections.abc import Sequence


def allocate(times: Sequence[float], tiles: int) -> tuple[int, ...] | None:
    """Tiles for each child, or ``None`` where there are more children than tiles.

    Parameters
    ----------
    times : normalized processing times (NPT), above 0
    tiles : to be divided
    """
    if not times or min(times) <= 0:
        raise ValueError(f"expected times above 0, got {list(times)}")
    if len(times) > tiles:
        return None
    allocated = [0] * len(times)
    open_children = list(range(len(times)))
    left, work = tiles, float(sum(times))
    while open_children:
        ideal = [times[child] / work * left for child in open_children]
        for child, share in zip(open_children, ideal, strict=True):
            allocated[child] = int(share)
        spare = left - sum(allocated[child] for child in open_children)
        if spare == 0:
            break
        rounded = sorted(
            (allocated[child] / share, child) for child, share in zip(open_children, ideal, strict=True)
        )
        for _, child in rounded[:spare]:
            allocated[child] += 1
            left -= allocated[child]
            work -= times[child]
            open_children.remove(child)
    return tuple(allocated)


def slowest(times: Sequence[float], tiles: Sequence[int]) -> float:
    """The time of the slowest child."""
    return max(time / count for time, count in zip(times, tiles, strict=True))


def utilization(times: Sequence[float], tiles: Sequence[int]) -> float:
    """Work over what all tiles could do while the slowest child runs."""
    return sum(times) / (sum(tiles) * slowest(times, tiles))
