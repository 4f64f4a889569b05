"""What Timeloop's targets name: levels, and arrays with their X and Y axes.

An array of one direction is one axis of this project's; an array ``PE`` of two directions is the axes
``PE_X`` and ``PE_Y``, and two neighbouring axes of such names are written as one array.  Timeloop's own
mapper calls the array ``inter_PE_spatial``, its older inputs name the level outside it; all three are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

from tilewright.hardware.mapping.engine import Engine
from tilewright.report.exchange.source import Field
from tilewright.workloads.errors import unknown_name

_INTER = re.compile(r"inter_(.+)_spatial")


def axis_names(array: str, width: int, height: int) -> list[tuple[str, int]]:
    """The axes of an array with their sizes, X first; those of one instance are none."""
    both = width > 1 and height > 1
    sizes = (("X", width), ("Y", height))
    return [(f"{array}_{way}" if both else array, size) for way, size in sizes if size > 1]


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
        for level in engine.levels:
            names = [axis.name for axis in level.fanout.axes] if level.fanout else []
            while names:
                first = names.pop(0)
                stem = first.removesuffix("_X")
                if stem != first and names and names[0] == f"{stem}_Y":
                    arrays[stem] = (first, names.pop(0))
                else:
                    arrays[stem := first] = (first,)
                below[stem] = level.name
        return cls(tuple(level.name for level in engine.levels), arrays, below)

    def level(self, target: Field) -> str:
        """The level of a target; raises ``InputError``."""
        name = target.text("a level's name")
        if name not in self.levels:
            raise target.error(unknown_name(name, self.levels))
        return name

    def axes(self, target: Field) -> tuple[str, ...]:
        """The axes of a spatial target, X first; raises ``InputError``."""
        name = target.text("an array's name")
        inner = _INTER.fullmatch(name)
        for array in [name, *([inner[1]] if inner else [])]:
            if array in self.arrays:
                return self.arrays[array]
        own = [array for array, level in self.below.items() if level == name]
        if len(own) == 1:
            return self.arrays[own[0]]
        if not own:
            raise target.error(f"has no array below it: {unknown_name(name, self.arrays)}")
        raise target.error(f"has several arrays below it, expected one of: {', '.join(own)}")

    def is_array(self, target: Field) -> bool:
        """Whether a target is an array alone, at which nothing is stored."""
        name = target.text("a level's or an array's name")
        inner = _INTER.fullmatch(name)
        stem = inner[1] if inner else name
        return name not in self.levels and stem in self.arrays
