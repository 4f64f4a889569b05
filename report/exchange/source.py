"""Files of other programs as plain data whose every field knows its line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from tilewright.foundation.description import Location
from tilewright.foundation.disk import YAML_BYTES, read_text
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.foundation.loading import naming
from tilewright.foundation.units import LIMIT, shown
from tilewright.foundation.yaml_document import Tagged, YamlDocument, YamlError, parse_yaml
from tilewright.hardware.arithmetic import parse_formula
from tilewright.report.exchange.losses import Effect, Ledger, Loss
from tilewright.report.exchange.templates import rendered

_TEMPLATE = re.compile(r"{%|{{")
_MOST_DIGITS = 40
_DEEPEST = 16
"""Variables that speak of each other."""


@dataclass(frozen=True)
class Field:
    """A value of a file, with the way that led to it.

    Parameters
    ----------
    where : the file
    value : plain data; ``None`` where the file has no such field
    location : keys and indices from the top of the file
    names : values that arithmetic may speak of, by name: variables of all files
    beside : the mapping that it is a field of, whose other fields arithmetic may speak of, too
    """

    where: str
    value: Any
    location: Location = ()
    document: YamlDocument | None = None
    names: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    beside: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def line(self) -> int | None:
        """Where it stands; where it is missing, the line of what it is missing in."""
        return None if self.document is None else self.document.line(self.location)

    @property
    def path(self) -> str | None:
        """Such as ``architecture.nodes[3].name``; ``None`` for the whole file."""
        text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.location)
        return text.removeprefix(".") or None

    @property
    def tag(self) -> str | None:
        """The tag of a mapping, without its exclamation mark."""
        return self.value.tag if isinstance(self.value, Tagged) else None

    def __bool__(self) -> bool:
        return self.value is not None

    def error(self, message: str) -> InputError:
        """What is wrong with it, in one line with file and line."""
        line = self.line
        return InputError(self.where if line is None else f"{self.where}:{line}", self.path, message)

    def lose(self, ledger: Ledger, effect: Effect, message: str) -> None:
        """Note that it does not carry over."""
        ledger.add(Loss(self.where, self.line, self.path, effect, message))

    def at(self, key: str | int) -> Field:
        """A field of a mapping or an entry of a list, there or not."""
        value = None
        if isinstance(self.value, dict):
            value = self.value.get(key)
        elif isinstance(self.value, list) and isinstance(key, int) and key < len(self.value):
            value = self.value[key]
        around = {str(k): v for k, v in self.value.items()} if isinstance(self.value, dict) else {}
        return Field(self.where, value, (*self.location, key), self.document, self.names, around)

    def fields(self) -> dict[str, Field]:
        """The fields of a mapping; none where it is missing.  Raises ``InputError`` for anything else."""
        if self.value is None:
            return {}
        if not isinstance(self.value, dict):
            raise self.error(f"expected a mapping of fields, got {shown(self.value)}")
        return {str(key): self.at(key) for key in self.value}

    def entries(self) -> list[Field]:
        """The entries of a list; none where it is missing.  Raises ``InputError`` for anything else."""
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            raise self.error(f"expected a list, got {shown(self.value)}")
        return [self.at(index) for index in range(len(self.value))]

    def text(self, expected: str = "a text") -> str:
        """A text that is not empty; raises ``InputError``."""
        if not isinstance(self.value, str) or not self.value.strip():
            problem = "missing" if self.value is None else f"got {shown(self.value)}"
            raise self.error(f"{problem}, expected {expected}")
        return self.value.strip()

    def words(self) -> list[str]:
        """A list of texts, or one text with white space or commas between them."""
        if isinstance(self.value, str):
            return self.value.replace(",", " ").split()
        return [entry.text() for entry in self.entries()]

    def flag(self) -> bool:
        """``true`` or ``false``, which is also what a missing field is; raises ``InputError``."""
        if self.value in (None, "False", "false", 0):
            return False
        if self.value in (True, "True", "true", 1):
            return True
        raise self.error(f"expected true or false, got {shown(self.value)}")

    @property
    def infinite(self) -> bool:
        """Whether it says that there is no limit."""
        return str(self.value).strip().lower() in ("inf", ".inf", "infinity")

    def number(self, expected: str = "a number") -> Fraction:
        """A number of at least 0, or arithmetic on numbers and variables; raises ``InputError``."""
        value = self.value
        own = str(self.location[-1]) if self.location else ""
        beside = {name: other for name, other in self.beside.items() if name != own or other is not value}
        number = _computed(value, self.names, beside, _DEEPEST)
        if number is None or not 0 <= number < LIMIT:
            problem = "missing" if value is None else f"got {shown(value)}"
            raise self.error(
                f"{problem}, expected {expected} of at least 0, or arithmetic on numbers and variables"
            )
        return number

    def whole(self, expected: str = "a whole number", least: int = 1) -> int:
        """A whole number; raises ``InputError``."""
        number = self.number(expected)
        if number.denominator != 1 or number < least:
            raise self.error(f"expected {expected} of at least {least}, got {shown(self.value)}")
        return number.numerator

    def one_of(self, known: dict[str, Any] | tuple[str, ...]) -> str:
        """One of the known texts; raises ``InputError`` with the nearest one."""
        name = self.text(f"one of: {', '.join(known)}")
        if name not in known:
            raise self.error(unknown_name(name, known))
        return name


def _computed(value: Any, names: Mapping[str, Any], beside: Mapping[str, Any], depth: int) -> Fraction | None:
    """A number, or what arithmetic makes of others; ``None`` for anything else, and for circles.

    A field beside hides a variable of its name, but not from itself: ``width: width * 4`` is the variable's.

    Parameters
    ----------
    names : variables
    beside : fields beside that arithmetic may speak of; none while a variable is computed
    depth : how often one may speak of another
    """
    if (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < _MOST_DIGITS
    ):
        return Fraction(value)
    if not isinstance(value, str) or not value.strip() or depth < 1:
        return None
    try:
        formula = parse_formula(value.replace("**", "^"), {**names, **beside})
        numbers = {}
        for name in formula.names:
            others = {key: other for key, other in beside.items() if key != name} if name in beside else {}
            spoken_of = beside[name] if name in beside else names[name]
            numbers[name] = _computed(spoken_of, names, others, depth - 1)
        return formula.value({name: number for name, number in numbers.items() if number is not None})
    except (ValueError, KeyError):
        return None


def read_source(path: Path) -> Field:
    """The content of a YAML file of another program, rendered where it is a template of Jinja.

    Raises
    ------
    InputError : naming file and line, for what cannot be read or is no YAML
    """
    where, text = str(path), read_text(path, YAML_BYTES, "a YAML file")
    if _TEMPLATE.search(text) is not None:
        text = rendered(path, text)
    try:
        with naming(where):
            document = parse_yaml(text, tags=True)
    except YamlError as problem:
        place = where if problem.line is None else f"{where}:{problem.line}"
        column = None if problem.column is None else f"column {problem.column}"
        raise InputError(place, column, f"not valid YAML: {problem}") from None
    if document.data is None:
        raise InputError(where, None, "the file is empty")
    return Field(where, document.data, (), document)
