"""A method's name with its options in one text, as users write it: ``branch`` or ``dmazerunner[opt=1-3]``."""

from __future__ import annotations

import re
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

from tilewright.foundation.errors import InputError

_TEXT = re.compile(r"(?P<name>[\w-]+)(?:\[(?P<options>.*)\])?")


@dataclass(frozen=True, slots=True)
class MethodText:
    """A method as users name it: ``name`` or ``name[option=value,...]``."""

    name: str
    options: MappingABC[str, str]

    def __str__(self) -> str:
        inside = ",".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.name}[{inside}]" if inside else self.name


def parse_method(text: str, flag: str = "--solver") -> MethodText:
    """Read a method's name and options; raises ``InputError`` for anything but ``name[option=value,...]``."""
    match = _TEXT.fullmatch("".join(text.split()))
    if match is None:
        raise InputError(flag, None, f"cannot read {text!r}, expected NAME or NAME[option=value,...]")
    options: dict[str, str] = {}
    for part in (match["options"] or "").split(","):
        key, equals, value = part.partition("=")
        if not part and not match["options"]:
            continue
        if not (key and equals and value):
            raise InputError(flag, text, f"cannot read {part!r}, expected option=value")
        if key in options:
            raise InputError(flag, text, f"option {key!r} is given twice")
        options[key] = value
    return MethodText(match["name"], options)
