"""Options of a method: dataclass fields that users set by name, checked and explained."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import MISSING, Field, field, fields, is_dataclass
from typing import Any, TypeVar

from tilewright.foundation.errors import InputError, unknown_name
from tilewright.foundation.method_text import MethodText

Kind = TypeVar("Kind")
_BOOLEANS = {"on": True, "off": False}


def option(
    default: Kind,
    about: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: Collection[str] | None = None,
    read: Callable[[str], Kind] | None = None,
    show: Callable[[Kind], str] | None = None,
) -> Kind:
    """A dataclass field that is an option of its method.

    Parameters
    ----------
    default : what holds where the user says nothing; its type is the option's
    about : in a few words
    low, high : the range of a number, ends included
    choices : the texts that a text option may be
    read : how a text becomes the value, where the type alone does not determine it; raises ``ValueError``
        saying what was expected
    show : the inverse of ``read``
    """
    rules = {"about": about, "low": low, "high": high, "choices": choices, "read": read, "show": show}
    declared: Kind = field(default=default, metadata={"option": rules})
    return declared


def options_of(method: type[Any]) -> list[Field[Any]]:
    """The options of a method, in the sequence in which they are declared."""
    return (
        [candidate for candidate in fields(method) if "option" in candidate.metadata]
        if is_dataclass(method)
        else []
    )


def options_text(method: type[Any]) -> str:
    """Names, defaults and meanings in one line."""
    parts = [
        f"{entry.name}={option_text(entry, entry.default)} ({entry.metadata['option']['about']})"
        for entry in options_of(method)
    ]
    return ", ".join(parts)


def with_options(method: type[Kind], text: MethodText, flag: str) -> Kind:
    """The method with the options of a text.

    Raises
    ------
    InputError : for an unknown option, or a value that it cannot have
    """
    known = {entry.name: entry for entry in options_of(method)}
    if text.options and not known:
        raise InputError(flag, str(text), f"{text.name} takes no options")
    values: dict[str, Any] = {}
    for key, value in text.options.items():
        if key not in known:
            raise InputError(flag, str(text), f"option: {unknown_name(key, known)}")
        try:
            values[key] = _value(known[key], value)
        except ValueError as error:
            raise InputError(flag, str(text), f"option {key}: {error}") from None
    return method(**values)


def _value(option_field: Field[Any], text: str) -> Any:
    rules = option_field.metadata["option"]
    if rules["read"] is not None:
        return rules["read"](text)
    if option_field.default is MISSING:
        raise ValueError("has no default")
    if isinstance(option_field.default, bool):
        if text not in _BOOLEANS:
            raise ValueError(f"expected on or off, got {text!r}")
        return _BOOLEANS[text]
    if isinstance(option_field.default, str):
        if text not in (rules["choices"] or ()):
            raise ValueError(unknown_name(text, rules["choices"] or ()))
        return text
    return _number(text, type(option_field.default), rules["low"], rules["high"])


def _number(text: str, kind: type[Any], low: float | None, high: float | None) -> Any:
    what = "a whole number" if kind is int else "a number"
    if low is not None:
        what += f" of at least {low:g}"
    if high is not None:
        what += f"{' and' if low is not None else ''} at most {high:g}"
    try:
        if not text.isascii() or "_" in text:
            raise ValueError
        value = kind(text)
    except ValueError:
        raise ValueError(f"expected {what}, got {text!r}") from None
    if not ((low is None or value >= low) and (high is None or value <= high)):
        raise ValueError(f"expected {what}, got {text!r}")
    return value


def option_text(option_field: Field[Any], value: Any) -> str:
    """A value of an option as users write it."""
    show = option_field.metadata["option"]["show"]
    if show is not None:
        return str(show(value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
