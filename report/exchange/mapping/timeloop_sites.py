"""What Timeloop's targets name: levels, and arrays with their X and Y axes.

An array ``PE`` in X alone is the axis ``PE``, one in Y alone the axis ``PE_Y``, one in both ``PE_X`` and
``PE_Y``; axes of such names are written so again.  Timeloop's own mapper calls the array
``inter_PE_spatial``, its older inputs name the level outside it; all three are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

from tilewright.foundation.errors import unknown_name
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.exchange.source import Field

_INTER = re.compile(r"inter_(.+)_spatial")


def axis_names(array: str, width: int, height: int) -> list[tuple[str, int]]:
    """The axes of an array with their sizes, X first; those of one instance are none."""
    on_x = [(f"{array}_X" if height > 1 else array, width)] if width > 1 else []
    return on_x + ([(f"{array}_Y", height)] if height > 1 else [])


def is_on_y(array: str, axis: str) -> bool:
    """Whether an axis is an array's second direction."""
    return axis == f"{array}_Y"


@dataclass(frozen=True, slots=True)
class Sites:
    """Levels and arrays of a machine by the names that Timeloop has for them.

    Parameters
    ----------
    levels : outermost first
    arrays : per array its axes, X first; outermost first
    below : per array the level whose fan-out it belongs to
    """

    levels: tuple[str, ...]
    arrays: MappingABC[str, tuple[str, ...]]
    below: MappingABC[str, str]

    @classmethod
    def of(cls, engine: Engine) -> Sites:
        """Those of a machine."""
        arrays: dict[str, tuple[str, ...]] = {}
        below: dict[str, str] = {}
        fans = [[axis.name for axis in level.fanout.axes] if level.fanout else [] for level in engine.levels]
        taken = {level.name for level in engine.levels} | {name for names in fans for name in names}
        for level, names in zip(engine.levels, fans, strict=True):
            while names:
                first = names.pop(0)
                stem = first[:-2]
                free = bool(stem) and stem not in taken and stem not in arrays
                axes: tuple[str, ...] = (first,)
                array = stem if first.endswith("_Y") and free else first
                if first.endswith("_X") and free and names[:1] == [f"{stem}_Y"]:
                    array, axes = stem, (first, names.pop(0))
                arrays[array], below[array] = axes, level.name
        return cls(tuple(level.name for level in engine.levels), arrays, below)

    def level(self, target: Field) -> str:
        """The level of a target; raises ``InputError``."""
        name = target.text("a level's name")
        if name not in self.levels:
            raise target.error(unknown_name(name, self.levels))
        return name

    def array(self, target: Field) -> str:
        """The array of a spatial target; raises ``InputError``."""
        name = target.text("an array's name")
        inner = _INTER.fullmatch(name)
        for array in [name, *([inner[1]] if inner else [])]:
            if array in self.arrays:
                return array
        own = [array for array, level in self.below.items() if level == name]
        if len(own) == 1:
            return own[0]
        if not own:
            raise target.error(f"has no array below it: {unknown_name(name, self.arrays)}")
        raise target.error(f"has several arrays below it, expected one of: {', '.join(own)}")

    def is_array(self, target: Field) -> bool:
        """Whether a target is an array alone, at which nothing is stored."""
        name = target.text("a level's or an array's name")
        inner = _INTER.fullmatch(name)
        stem = inner[1] if inner else name
        return name not in self.levels and stem in self.arrays
