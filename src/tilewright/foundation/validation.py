"""Pydantic's findings as one-line input errors."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as MappingABC
from typing import Any

from pydantic import ValidationError

from tilewright.foundation.errors import InputError, unknown_name

_EXPECTED = {
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "int_parsing": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text",
    "string_too_long": "a text of at most {max_length} characters",
    "list_type": "a list",
    "dict_type": "a mapping of fields",
    "model_type": "a mapping of fields",
    "too_short": "at least {min_length} entries",
    "too_long": "at most {max_length} entries",
}


def from_validation(where: str, error: ValidationError, known: Iterable[str] = ()) -> InputError:
    """The first finding of a validation, as an error that names the field and what was expected.

    An unknown field comes before a missing one, which it may be a misspelling of.

    Parameters
    ----------
    where : the text or file that was validated
    known : field names, for the suggestion when a field is unknown
    """
    findings = error.errors(include_url=False)
    finding = next(
        (candidate for candidate in findings if candidate["type"] == "extra_forbidden"), findings[0]
    )
    context: MappingABC[str, Any] = finding.get("ctx", {})
    path = [str(part) for part in finding["loc"]]
    field = ".".join(path) or None
    kind = finding["type"]
    if kind == "missing":
        return InputError(where, field, "missing")
    if kind == "extra_forbidden":
        return InputError(where, ".".join(path[:-1]) or None, unknown_name(path[-1], known))
    if kind in _EXPECTED:
        expected = _EXPECTED[kind].format(**context)
        return InputError(where, field, f"expected {expected}, got {_short(finding['input'])}")
    message = finding["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return InputError(where, field, message)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
