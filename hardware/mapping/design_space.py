"""A design space: a machine whose fields vary, and the designs on its grid."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from pydantic import ValidationError

from tilewright.foundation.description import build_description
from tilewright.foundation.errors import InputError
from tilewright.hardware.changes import changed
from tilewright.hardware.mapping.build import build_engine, level_bytes
from tilewright.hardware.mapping.design_caps import Cap
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.schema import LevelSection, MachineFile
from tilewright.hardware.mapping.variations import FLAG, Variation, check_variations

MOST_DESIGNS = 100_000


@dataclass(frozen=True)
class Design:
    """A machine of the grid.

    Parameters
    ----------
    index : its place, the last axis fastest
    place : its point on every axis
    engine : the machine; ``None`` where the fields contradict each other
    refusal : why they do, or which cap the machine breaks
    sizes : bytes of every level as the file has them, both buffers together; ``None`` for unbounded ones
    """

    index: int
    place: tuple[int, ...]
    engine: Engine | None
    refusal: str = ""
    sizes: tuple[Fraction | None, ...] = ()


@dataclass(frozen=True)
class DesignSpace:
    """All combinations of the values of some axes.

    Parameters
    ----------
    description : the machine file's plain data
    where : what errors call the file
    name : of the machine
    axes : what varies
    caps : what designs may have at most; others are refused
    """

    description: Any
    where: str
    name: str
    axes: tuple[Variation, ...]
    caps: tuple[Cap, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Points of every axis."""
        return tuple(len(axis.values) for axis in self.axes)

    def changes(self, place: Sequence[int]) -> dict[str, Any]:
        """The fields of a design."""
        changes: dict[str, Any] = {}
        for axis, index in zip(self.axes, place, strict=True):
            changes |= axis.changes(index)
        return changes

    def design_name(self, place: Sequence[int]) -> str:
        """The machine's name with the changes in brackets."""
        reported = ",".join(f"{field}={value}" for field, value in self.changes(place).items())
        return f"{self.name}[{reported}]"

    def build(self, place: Sequence[int]) -> Engine:
        """The machine at a point; raises ``InputError`` where its fields contradict each other."""
        return self._built(place)[0]

    def _built(self, place: Sequence[int]) -> tuple[Engine, tuple[Fraction | None, ...]]:
        data, name = changed(self.description, self.changes(place), self.where), self.design_name(place)
        self._read_levels(data)
        return build_description(
            data, self.where, MachineFile, lambda file: (build_engine(file, name), level_bytes(file))
        )

    def _read_levels(self, data: Any) -> None:
        """Replace levels by their sections, each different one read once; wrong ones stay as they are."""
        levels = data.get("levels") if isinstance(data, dict) else None
        if not isinstance(levels, list):
            return
        for index, level in enumerate(levels):
            with suppress(ValidationError):
                written = repr(level)
                if written not in self._sections:
                    self._sections[written] = LevelSection.model_validate(level)
                levels[index] = self._sections[written]

    @cached_property
    def _sections(self) -> dict[str, LevelSection]:
        """Levels that have been read, by what is written of them."""
        return {}

    @cached_property
    def designs(self) -> tuple[Design, ...]:
        """Every design in the order of the grid."""
        designs: list[Design] = []
        for index, place in enumerate(product(*map(range, self.shape))):
            try:
                engine, sizes = self._built(place)
                design = Design(index, place, engine, "", sizes)
                if self.caps:
                    from tilewright.hardware.mapping.design_cost import design_quantities

                    quantities = design_quantities(design)
                    broken = next(filter(None, (cap.broken(quantities) for cap in self.caps)), "")
                    design = Design(index, place, None, broken) if broken else design
                designs.append(design)
            except InputError as error:
                designs.append(Design(index, place, None, str(error)))
        return tuple(designs)


def design_space(
    description: Any, where: str, name: str, axes: Sequence[Variation], caps: Sequence[Cap] = ()
) -> DesignSpace:
    """The design space of a machine file.

    Parameters
    ----------
    description : the machine file's content, read but not yet checked
    where : the file's name, for errors
    name : of the family of machines
    axes : fields that vary, each with its values; the grid is their product
    caps : what designs may have at most

    Raises
    ------
    InputError : for a field on two axes or too many designs, and where not one design is a machine, with what
        is wrong with the first
    """
    check_variations(axes)
    for axis in axes:
        for field in axis.fields:
            _check_path(description, field)
    space = DesignSpace(description, where, name, tuple(axes), tuple(caps))
    if prod(space.shape) > MOST_DESIGNS:
        raise InputError(FLAG, None, f"{prod(space.shape):,} designs, expected at most {MOST_DESIGNS:,}")
    if all(design.engine is None for design in space.designs):
        raise InputError(space.designs[0].refusal, None, f"all {len(space.designs)} designs are refused so")
    return space


def _check_path(description: Any, field: str) -> None:
    """Raise ``InputError`` for a path that begins inside a level, with the paths that it may have meant."""
    levels = description.get("levels") if isinstance(description, dict) else None
    head, _, rest = field.partition(".")
    if head in MachineFile.model_fields or not isinstance(levels, list):
        return
    named = [level for level in levels if isinstance(level, dict) and "name" in level]
    meant = [f"levels.{field}" for level in named if level["name"] == head and rest]
    meant += [f"levels.{level['name']}.{field}" for level in named if head in level]
    if meant:
        raise InputError(FLAG, field, f"no field of a machine file, did you mean {' or '.join(meant)}?")
