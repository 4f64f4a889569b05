"""Engines from presets and from machine files; every problem is one line with the file and the field."""

from __future__ import annotations

import os
from functools import cache
from importlib import resources
from pathlib import Path

from pydantic import ValidationError

from tilewright.hardware.build import FieldError, Location, build_engine
from tilewright.hardware.engine import Engine
from tilewright.hardware.identity import engine_hash, engine_to_dict
from tilewright.hardware.schema import MachineFile
from tilewright.hardware.units import shown
from tilewright.hardware.yaml_file import YamlError, parse_yaml
from tilewright.workloads.errors import InputError, unknown_name

__all__ = ["engine_hash", "engine_to_dict", "list_presets", "load_engine", "parse_engine"]

_SUFFIX = ".yaml"
_SUFFIXES = (_SUFFIX, ".yml")


def list_presets() -> list[str]:
    """Names of the machines that come with the package, sorted."""
    folder = resources.files("tilewright.hardware") / "presets"
    return sorted(item.name.removesuffix(_SUFFIX) for item in folder.iterdir() if item.name.endswith(_SUFFIX))


def load_engine(name_or_path: str | os.PathLike[str]) -> Engine:
    """The engine of a preset name or of a YAML file.

    A path object, a text with a folder in it and a text that ends in ``.yaml`` or ``.yml`` are files;
    any other text is a preset's name.

    Raises
    ------
    InputError : for an unknown name, an unreadable file, or a file that does not describe an engine
    """
    text = os.fspath(name_or_path)
    is_path = not isinstance(name_or_path, str) or Path(text).suffix in _SUFFIXES or Path(text).name != text
    return _load_file(Path(text)) if is_path else _load_preset(text)


def parse_engine(text: str, where: str, name: str) -> Engine:
    """The engine that a machine file's text describes.

    Parameters
    ----------
    text : YAML
    where : what errors call the file
    name : the engine's name

    Raises
    ------
    InputError : for text that is not YAML or does not describe an engine
    """
    try:
        document = parse_yaml(text)
    except YamlError as problem:
        place = where if problem.line is None else f"{where}:{problem.line}"
        column = None if problem.column is None else f"column {problem.column}"
        raise InputError(place, column, f"not valid YAML: {problem}") from None
    try:
        return build_engine(MachineFile.model_validate(document.data), name)
    except ValidationError as error:
        location, message = first_problem(error)
    except FieldError as problem:
        location, message = problem.location, str(problem)
    except RecursionError:
        location, message = (), "nested too deeply"
    line = document.line(location)
    place = where if line is None else f"{where}:{line}"
    raise InputError(place, field_text(location), message)


@cache
def _load_preset(name: str) -> Engine:
    if name not in list_presets():
        raise InputError(name, None, unknown_name(name, list_presets()))
    resource = resources.files("tilewright.hardware") / "presets" / f"{name}{_SUFFIX}"
    return parse_engine(resource.read_text(encoding="utf-8"), f"{name}{_SUFFIX}", name)


def _load_file(path: Path) -> Engine:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(str(path), None, "not a text file, expected YAML in UTF-8") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(str(path), None, f"cannot be read ({reason}), expected a YAML file") from None
    return parse_engine(text, str(path), path.stem)


def first_problem(error: ValidationError) -> tuple[Location, str]:
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


def field_text(location: Location) -> str | None:
    """``levels[1].fanout.axes[0].size``; ``None`` for the whole file."""
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".") or None
