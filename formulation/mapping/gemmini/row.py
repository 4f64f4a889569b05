"""Rows of Gemmini's public measurements: a mapping text, a layer and a machine.

A text has four levels, outermost first, each with its loops, outermost first; ``X`` marks a spatial one::

    L3[WIO] K48 - L2[WI] N1 K16X - L1[O] C48 P16 C16X - L0[W] P8

Columns are those of ucb-bar/dosa (Hong et al., MICRO 2023): ``mapping.mapping``, ``prob.*``, ``arch.*``;
values are texts or numbers.  ``P`` and ``R`` lie along columns of the picture, ``Q`` and ``S`` along rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

from tilewright.formulation.mapping.mapping import Mapping, Node, Spatial, Storage, Temporal
from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.mapping.operator import Operator

DIMS = ("N", "K", "C", "P", "Q", "R", "S")
COLUMNS = (
    *(f"prob.{dim}" for dim in DIMS),
    "prob.Hstride",
    "prob.Wstride",
    "arch.meshX",
    "arch.pe",
    "arch.mem1_entries",
    "arch.mem2_entries",
)
"""What is read beside the text."""
LEVELS = (("L3", "WIO"), ("L2", "WI"), ("L1", "O"), ("L0", "W"))
NAMES = {"L3": "DRAM", "L2": "Scratchpad", "L1": "Accumulator", "L0": "Registers"}
AXES = {"L2": ("k", "K"), "L1": ("c", "C")}
"""The array's two axes: which level feeds them, and the one dimension that each carries."""

_LOOP = re.compile(r"([NKCPQRS])([1-9][0-9]{0,8})(X?)")
_LARGEST = 1 << 24
_WIDEST = 4096
"""Rows and columns of a convolution; the library's calls have 16 bits for them."""
_EXPECTED = "expected four levels such as 'L3[WIO] K48 - L2[WI] N1 K16X - L1[O] C48 C16X - L0[W] P8'"


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop of a text; ``factor`` is how often it repeats."""

    dim: str
    factor: int
    spatial: bool


@dataclass(frozen=True)
class Row:
    """One measurement's question: which mapping of which layer on which machine.

    Parameters
    ----------
    levels : per level of the text, its loops, outermost first
    bounds : of the layer's dimensions, padded to what the mapping's factors make
    stride : of the layer, the same along both axes
    array : PEs along each side, as the row says; ``None`` where it does not
    scratchpad, accumulator : words of the scratchpad and of one accumulator column; ``None`` likewise
    """

    levels: MappingABC[str, tuple[Loop, ...]]
    bounds: MappingABC[str, int]
    stride: int
    array: int | None = None
    scratchpad: int | None = None
    accumulator: int | None = None

    @property
    def operator(self) -> Operator:
        """The layer as a convolution; matrix products have ``Q``, ``R`` and ``S`` of one."""
        sizes = {dim.lower(): self.bounds[dim] for dim in DIMS}
        return conv2d(**sizes, stride=self.stride)

    @property
    def is_product(self) -> bool:
        """Whether the library runs it as a matrix product."""
        return self.bounds["Q"] == self.bounds["R"] == self.bounds["S"] == 1

    @property
    def tile(self) -> dict[str, int]:
        """What one call of the inner library function works on: the bounds inside of DRAM's loops."""
        outer = dict.fromkeys(DIMS, 1)
        for loop in self.levels["L3"]:
            outer[loop.dim] *= loop.factor
        return {dim: -(-self.bounds[dim] // outer[dim]) for dim in DIMS}

    @property
    def spatial(self) -> dict[str, int]:
        """Spatial factors of the two axes' dimensions."""
        spread = {"K": 1, "C": 1}
        for loops in self.levels.values():
            for loop in loops:
                if loop.spatial:
                    spread[loop.dim] *= loop.factor
        return spread

    def mapping(self) -> Mapping:
        """The mapping as nodes on the machine of the preset ``gemmini``."""
        # Tiles are products of the factors inside, which may pad the bound.
        inner = {dim: math.prod(self.factors(dim)) for dim in DIMS}
        nodes: list[Node] = []
        for name, roles in LEVELS:
            nodes += [Storage(role, NAMES[name]) for role in roles]
            loops = self.levels[name]
            for loop in (*(item for item in loops if not item.spatial), *(i for i in loops if i.spatial)):
                if loop.factor == 1:
                    continue
                inner[loop.dim] //= loop.factor
                tile = inner[loop.dim]
                nodes.append(
                    Spatial(loop.dim, tile, AXES[name][0]) if loop.spatial else Temporal(loop.dim, tile)
                )
        return Mapping(tuple(nodes))

    def factors(self, dim: str) -> list[int]:
        """How often every loop over a dimension repeats, outermost first."""
        return [loop.factor for loops in self.levels.values() for loop in loops if loop.dim == dim]


def read_text(text: object, where: str = "mapping.mapping") -> dict[str, tuple[Loop, ...]]:
    """The levels of a mapping text.

    Raises
    ------
    InputError : for anything else, in one line
    """
    if not isinstance(text, str) or len(text) > 1000:
        raise InputError(where, None, f"{_EXPECTED}, got {_shown(text)}")
    parts = [part.split() for part in text.strip().split(" - ")]
    if len(parts) != len(LEVELS):
        raise InputError(where, None, f"{_EXPECTED}, got {len(parts)} level(s)")
    levels: dict[str, tuple[Loop, ...]] = {}
    for (name, roles), part in zip(LEVELS, parts, strict=True):
        head = f"{name}[{roles}]"
        if not part or part[0] != head:
            raise InputError(where, name, f"expected {head}, got {_shown(part[0] if part else '')}")
        levels[name] = tuple(_loop(where, name, item) for item in part[1:])
    return levels


def _loop(where: str, level: str, text: str) -> Loop:
    match = _LOOP.fullmatch(text)
    if match is None:
        raise InputError(where, level, f"expected loops such as K48 or K16X, got {_shown(text)}")
    dim, spatial = match[1], bool(match[3])
    if spatial and (level not in AXES or AXES[level][1] != dim):
        raise InputError(where, level, f"expected spatial loops over K at L2 and over C at L1, got {text}")
    return Loop(dim, int(match[2]), spatial)


def read_row(row: MappingABC[str, object], where: str = "row") -> Row:
    """A row of the reference file; columns that are not used may be missing, measured ones are not read.

    Parameters
    ----------
    row : ``mapping.mapping`` and ``prob.*``; of ``arch.*`` the array's side and the two memories' words
    where : what errors call it

    Raises
    ------
    InputError : for a missing or unreadable value, or a mapping that does not cover the layer
    """
    if not isinstance(row, MappingABC):
        raise InputError(where, None, f"expected columns by name, got {_shown(row)}")
    if "mapping.mapping" not in row:
        raise InputError(where, "mapping.mapping", "missing, expected a mapping text")
    levels = read_text(row["mapping.mapping"], where)
    bounds = {dim: _number(row, where, f"prob.{dim}", 1 if dim == "N" else None) or 1 for dim in DIMS}
    strides = {_number(row, where, column, 1) for column in ("prob.Hstride", "prob.Wstride")}
    if len(strides) > 1:
        raise InputError(where, "prob.Wstride", "expected the stride of the other axis: Gemmini has one")
    read = Row(
        levels,
        bounds,
        strides.pop() or 1,
        _side(row, where),
        _number(row, where, "arch.mem2_entries", 0) or None,
        _number(row, where, "arch.mem1_entries", 0) or None,
    )
    if not read.is_product:
        for dim in "PQRS":
            if bounds[dim] > _WIDEST:
                raise InputError(
                    where, f"prob.{dim}", f"expected a picture of at most {_WIDEST}, got {bounds[dim]}"
                )
    for dim, bound in bounds.items():
        covered = math.prod(read.factors(dim))
        if covered < bound:
            raise InputError(where, "mapping.mapping", f"expected {bound} iterations of {dim}, got {covered}")
    return read


def _side(row: MappingABC[str, object], where: str) -> int | None:
    side = _number(row, where, "arch.meshX", 0)
    return side or math.isqrt(_number(row, where, "arch.pe", 0) or 0) or None


def _number(row: MappingABC[str, object], where: str, column: str, default: int | None) -> int | None:
    value = row.get(column, default)
    if value is None or value == "":
        if default is None:
            raise InputError(where, column, "missing, expected a number")
        return default
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if (
        isinstance(value, bool)
        or not (number >= (0 if default == 0 else 1))
        or number % 1
        or number > _LARGEST
    ):
        raise InputError(where, column, f"expected a whole number from 1 to {_LARGEST}, got {_shown(value)}")
    return int(number)


def _shown(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
