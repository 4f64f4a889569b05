"""Presets with parameters: ``gemmini[array=32,scratchpad=512kB]``.

A family is a frozen dataclass whose fields are options; it changes fields of the preset's file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml

from tilewright.foundation.errors import InputError
from tilewright.foundation.method_text import parse_method
from tilewright.foundation.options import option, option_text, options_of, with_options
from tilewright.foundation.units import parse_size


def _kilobytes(text: str) -> int:
    size = parse_size(text)
    if not size.in_bytes or size.amount % 1024 or not 1 <= size.amount // 1024 <= 1 << 20:
        raise ValueError("expected whole kB, such as 256kB")
    return int(size.amount // 1024)


def _shown(kilobytes: int) -> str:
    return f"{kilobytes}kB"


@dataclass(frozen=True)
class Gemmini:
    """The array's side, and both memories with both of their buffers."""

    array: int = option(16, "PEs along each side", low=1, high=1024)
    scratchpad: int = option(256, "of inputs and weights", read=_kilobytes, show=_shown)
    accumulator: int = option(64, "of outputs, all columns together", read=_kilobytes, show=_shown)

    def changed(self, data: dict[str, Any]) -> None:
        """Write the parameters into the preset's data; bandwidths grow with the array."""
        _, scratchpad, accumulator, _ = data["levels"]
        side = self.array
        column = Fraction(self.accumulator * 1024, side)
        words = int(column // 8) * 2  # whole words of 32 bits in each of two buffers
        if words < 2:
            raise InputError("--arch", f"gemmini[array={side}]", "expected an accumulator of a word a column")
        for level in (scratchpad, accumulator):
            level["fanout"]["axes"][0]["size"] = side
        scratchpad["capacity"] = f"{self.scratchpad} kB"
        scratchpad["bandwidth"] = {"shared": f"{2 * side} elements/cycle"}
        accumulator["capacity"] = f"{4 * words} B"
        data["description"] = (
            f"{side} x {side} weight-stationary array, {self.scratchpad} kB scratchpad, "
            f"{self.accumulator} kB accumulator (after Gemmini)"
        )


FAMILIES: Mapping[str, type[Gemmini]] = {"gemmini": Gemmini}


def is_parametrised(name: str | os.PathLike[str]) -> bool:
    """Whether a text is a preset's name with parameters."""
    return isinstance(name, str) and name.rstrip().endswith("]") and "[" in name and "/" not in name


def family_description(text: str, path: Callable[[str], Path]) -> tuple[str, str]:
    """A machine file of a preset with parameters, and the machine's name with all of them.

    Parameters
    ----------
    text : such as ``gemmini[array=32]``
    path : of a preset's file by its name

    Raises
    ------
    InputError : for a preset that takes none, or an unknown parameter or value
    """
    read = parse_method(text, "--arch")
    if read.name not in FAMILIES:
        path(read.name)  # an unknown name is told as such
        raise InputError("--arch", text, f"{read.name} takes no parameters")
    family = with_options(FAMILIES[read.name], read, "--arch")
    data = yaml.safe_load(path(read.name).read_text("utf-8"))
    family.changed(data)
    stated = ",".join(
        f"{field.name}={option_text(field, getattr(family, field.name))}"
        for field in options_of(type(family))
    )
    return yaml.safe_dump(data, sort_keys=False), f"{read.name}[{stated}]"
