"""YAML files that describe a machine or a system: read, checked and built; every problem is one line that
names the file, the line and the field.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from tilewright.foundation.disk import DESCRIPTION_BYTES, read_text
from tilewright.foundation.errors import InputError
from tilewright.foundation.loading import naming
from tilewright.foundation.units import shown
from tilewright.foundation.yaml_document import YamlDocument, YamlError, parse_yaml

Location = tuple[str | int, ...]
_File = TypeVar("_File", bound=BaseModel)
_Built = TypeVar("_Built")

SUFFIX = ".yaml"
_SUFFIXES = (SUFFIX, ".yml")


class FieldError(ValueError):
    """A field whose value does not fit the rest of the file.

    Parameters
    ----------
    location : keys and indices from the top of the file
    message : what was expected
    """

    def __init__(self, location: Location, message: str) -> None:
        super().__init__(message)
        self.location = location


def names_a_file(name_or_path: str | os.PathLike[str]) -> bool:
    """Whether this is a file and not a preset's name: a path object, a text with a folder in it, a text that
    ends in ``.yaml`` or ``.yml``.
    """
    path = Path(name_or_path)
    return not isinstance(name_or_path, str) or path.suffix in _SUFFIXES or path.name != name_or_path


def read_description(path: Path) -> str:
    """The text of a file; raises ``InputError`` where it cannot be read."""
    return read_text(path, DESCRIPTION_BYTES, "a YAML file")


def parse_description(text: str, where: str, schema: type[_File], build: Callable[[_File], _Built]) -> _Built:
    """What a file's text describes.

    Parameters
    ----------
    text : YAML
    where : what errors call the file
    schema : the fields of the file
    build : from the fields to what they describe; may raise ``FieldError``

    Raises
    ------
    InputError : for text that is not YAML or does not fit the schema, with line and field
    """
    document = _parsed(text, where)
    return build_description(document.data, where, schema, build, document.line)


def read_data(text: str, where: str) -> Any:
    """The plain data of a YAML text, numbers with a point as ``Decimal``; raises ``InputError``."""
    return _parsed(text, where).data


def _parsed(text: str, where: str) -> YamlDocument:
    try:
        with naming(where):
            return parse_yaml(text)
    except YamlError as problem:
        place = where if problem.line is None else f"{where}:{problem.line}"
        column = None if problem.column is None else f"column {problem.column}"
        raise InputError(place, column, f"not valid YAML: {problem}") from None


def build_description(
    data: object,
    where: str,
    schema: type[_File],
    build: Callable[[_File], _Built],
    line_of: Callable[[Location], int | None] = lambda location: None,
) -> _Built:
    """What plain data describe, as a YAML file would hold them.

    Parameters
    ----------
    where, schema, build : as in `parse_description`
    line_of : the line of a field, where there are lines

    Raises
    ------
    InputError : for data that do not fit the schema, with the field
    """
    try:
        return build(schema.model_validate(data))
    except ValidationError as error:
        location, message = _first_problem(error)
    except FieldError as problem:
        location, message = problem.location, str(problem)
    except RecursionError:
        location, message = (), "nested too deeply"
    line = line_of(location)
    raise InputError(where if line is None else f"{where}:{line}", _field_text(location), message)


def _first_problem(error: ValidationError) -> tuple[Location, str]:
    """Location and message of the first thing wrong."""
    details = error.errors(include_url=False)[0]
    location, context = details["loc"], details.get("ctx", {})
    kind, value = details["type"], shown(details["input"])
    if kind == "section":
        return (*location, context["key"]), str(context["text"])
    if kind == "value_error":
        return location, str(context["error"])
    if kind == "list_type":
        return location, f"expected a list, got {value}"
    if kind == "too_short":
        return location, f"expected at least {context['min_length']} entries, got {context['actual_length']}"
    if kind == "too_long":
        return location, f"expected at most {context['max_length']} entries, got {context['actual_length']}"
    return location, f"{details['msg']}, got {value}"


def _field_text(location: Location) -> str | None:
    """``levels[1].fanout.axes[0].size``; ``None`` for the whole file."""
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".") or None
