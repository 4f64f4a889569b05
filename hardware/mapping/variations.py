"""Fields of a machine file that vary, and the values that they take: the axes of a design space.

``levels.SPM.capacity=16kB..1MB*2`` is a range in which each value is twice the one before,
``levels.SPM.fanout.axes.pe.size=64..256+64`` one in steps of 64, ``clock_mhz=500,800`` a list.  Fields that
change together have a colon between them, and so have their values:
``levels.A.capacity:levels.B.capacity=64kB:8kB,128kB:16kB``; a value without a colon is that of all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tilewright.foundation.errors import InputError
from tilewright.foundation.units import BYTES, exact
from tilewright.foundation.yaml_document import YamlError, parse_yaml
from tilewright.hardware.changes import plain
from tilewright.hardware.mapping.energies import bytes_text

FLAG = "--vary"
MAX_VALUES = 10_000
"""Of one range."""

_QUANTITY = r"([0-9]{1,15}(?:\.[0-9]{1,9})?) *([A-Za-z][A-Za-z/]*)?"
_RANGE = re.compile(rf"{_QUANTITY} *\.\. *{_QUANTITY} *([*+]) *{_QUANTITY}")
_EXPECTED = "expected FIELD=VALUES such as levels.SPM.capacity=16kB..1MB*2 or =64kB,96kB"


@dataclass(frozen=True, slots=True)
class Variation:
    """One axis of a design space.

    Parameters
    ----------
    fields : paths of fields that change together
    values : one entry per point of the axis, with a value for each field as a machine file writes it
    """

    fields: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]

    @property
    def title(self) -> str:
        """The fields as the user wrote them."""
        return ":".join(self.fields)

    def changes(self, index: int) -> dict[str, Any]:
        """What a point of the axis changes."""
        return dict(zip(self.fields, self.values[index], strict=True))

    def label(self, index: int) -> str:
        """A point of the axis in a few characters; fields of equal values share them."""
        texts = [_text(value) for value in self.values[index]]
        return texts[0] if len({*texts}) == 1 else ":".join(texts)


def parse_variation(text: str) -> Variation:
    """One ``FIELD=VALUES``; raises ``InputError``."""
    left, equals, right = text.partition("=")
    fields = tuple(part.strip() for part in left.split(":"))
    if not equals or not all(fields) or not right.strip():
        raise InputError(FLAG, text or None, _EXPECTED)
    if len(set(fields)) != len(fields):
        raise InputError(FLAG, text, "names a field twice")
    values: list[tuple[Any, ...]] = []
    for part in _split(right, ",", text):
        sides = [list(_values(side, text)) for side in _split(part, ":", text)]
        if len(sides) == 1:
            sides *= len(fields)
        if len(sides) != len(fields) or len({len(side) for side in sides}) > 1:
            raise InputError(FLAG, text, f"expected as many values as fields, {len(fields)}, in {part!r}")
        values += zip(*sides, strict=True)
    if len({repr(value) for value in values}) != len(values):
        raise InputError(FLAG, text, "has a value twice")
    return Variation(fields, tuple(values))


def variation(field: str | Sequence[str], values: object) -> Variation:
    """An axis from Python: a path or several, with a text as above or the values themselves.

    Raises
    ------
    InputError : for a text that cannot be read, or values that are none
    """
    fields = tuple(field.split(":")) if isinstance(field, str) else tuple(field)
    if isinstance(values, str):
        return parse_variation(f"{':'.join(fields)}={values}")
    if not isinstance(values, Sequence) or not values:
        raise InputError(FLAG, ":".join(fields), "expected a text such as 16kB..1MB*2 or a list of values")
    rows: list[tuple[Any, ...]] = []
    for value in values:
        row = tuple(map(plain, value)) if isinstance(value, tuple) else (plain(value),) * len(fields)
        if len(row) != len(fields):
            raise InputError(FLAG, ":".join(fields), f"expected {len(fields)} values in {value!r}")
        rows.append(row)
    return Variation(fields, tuple(rows))


def check_varies(axes: Sequence[Variation]) -> None:
    """Raise ``InputError`` where nothing varies."""
    if not axes:
        raise InputError(FLAG, None, f"nothing varies, {_EXPECTED}")


def check_variations(axes: Sequence[Variation]) -> None:
    """Raise ``InputError`` where a field varies on two axes."""
    seen: set[str] = set()
    for axis in axes:
        for field in axis.fields:
            if field in seen:
                raise InputError(FLAG, axis.title, f"{field} varies on two axes")
            seen.add(field)


def _split(text: str, mark: str, whole: str) -> list[str]:
    """Parts between marks that stand outside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if character == mark and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    texts = [part.strip() for part in parts]
    if not all(texts):
        raise InputError(FLAG, whole, "has an empty value")
    return texts


def _values(text: str, whole: str) -> Iterator[Any]:
    """A value, or those of a range."""
    match = _RANGE.fullmatch(text)
    if match is not None:
        yield from _range(match, whole)
        return
    if ".." in text:
        raise InputError(FLAG, whole, f"cannot read the range {text!r}, expected a..b*k or a..b+k")
    try:
        value = parse_yaml(text).data
    except YamlError as error:
        raise InputError(FLAG, whole, f"cannot read the value {text!r}: {error}") from None
    yield value


def _range(match: re.Match[str], whole: str) -> Iterator[Any]:
    first_unit, last_unit, step_unit = match[2] or match[4], match[4] or match[2], match[7]
    in_bytes = first_unit in BYTES and last_unit in BYTES
    if not in_bytes and first_unit != last_unit:
        raise InputError(FLAG, whole, f"expected one unit, got {first_unit} and {last_unit}")
    grows = match[5] == "*"
    if step_unit is not None and (grows or (step_unit not in BYTES if in_bytes else step_unit != last_unit)):
        raise InputError(FLAG, whole, f"did not expect the unit {step_unit} of the step")
    if step_unit is None:
        step_unit = first_unit
    scale = [BYTES.get(unit, 1) if unit else 1 for unit in (first_unit, last_unit, step_unit)]
    first, last = Fraction(match[1]) * scale[0], Fraction(match[3]) * scale[1]
    step = Fraction(match[6]) * (1 if grows else scale[2])
    if first > last or step <= (1 if grows else 0) or first == 0:
        wanted = "a factor above 1" if grows else "a step above 0"
        raise InputError(FLAG, whole, f"expected a range from above 0 upwards with {wanted}")
    count, value = 0, first
    while value <= last:
        count += 1
        if count > MAX_VALUES:
            raise InputError(FLAG, whole, f"expected at most {MAX_VALUES} values")
        yield _written(value, first_unit, in_bytes=in_bytes)
        value = value * step if grows else value + step


def _written(value: Fraction, unit: str | None, *, in_bytes: bool) -> Any:
    if in_bytes:
        return bytes_text(value)
    if unit is not None:
        return f"{exact(value)} {unit}"
    return int(value) if value.denominator == 1 else exact(value)


def _text(value: object) -> str:
    if isinstance(value, list):
        return "[" + ",".join(_text(entry) for entry in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value}"
