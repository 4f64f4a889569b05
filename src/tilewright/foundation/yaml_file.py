"""YAML files read with one-line errors, duplicate keys refused."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tilewright.foundation.disk import YAML_BYTES, read_text
from tilewright.foundation.errors import BudgetError, InputError, one_line
from tilewright.foundation.loading import naming
from tilewright.foundation.yaml_loader import CarefulLoader


class _Loader(CarefulLoader):
    """The careful loader, which by itself would let the last of two equal keys win in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is given twice", key_node.start_mark
                )
            if isinstance(key, Hashable):
                seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Any:
    """What a YAML file holds.

    Raises
    ------
    InputError : naming the file, and the line and column where known, for a file that cannot be read, that
        is not UTF-8 text or not YAML, that repeats a key, or that is empty
    """
    where = str(path)
    text = read_text(path, YAML_BYTES, "a YAML file")
    try:
        with naming(where):
            content = yaml.load(text, Loader=_Loader)
    except BudgetError:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else None
        raise InputError(where, place, f"not valid YAML: {error.problem or error.context}") from None
    except RecursionError:
        raise InputError(where, None, "not valid YAML: nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(where, None, f"not valid YAML: {one_line(error)}") from None
    if content is None:
        raise InputError(where, None, "the file is empty")
    return content


_PLACE = re.compile(r"(\w+)|\[(\d+)\]")


@contextmanager
def with_line_numbers(path: Path) -> Iterator[None]:
    """Let errors on a field of a YAML file name its line: ``m.yaml: nodes[3] (line 12): ...``."""
    try:
        yield
    except InputError as error:
        line = None
        again = path.suffix.lower() in (".yaml", ".yml") and os.path.isfile(path)
        if error.field is not None and error.where == str(path) and again:
            line = _line_of(path, error.field)
        if line is None:
            raise
        raise InputError(error.where, f"{error.field} (line {line})", error.message) from None


def _line_of(path: Path, field: str) -> int | None:
    """The line of a field such as ``nodes[3].tile``, or of the innermost part of it that the file has."""
    try:
        node = yaml.compose(read_text(path, YAML_BYTES, "a YAML file"), Loader=_Loader)
    except (InputError, yaml.YAMLError, RecursionError):
        return None
    line = None
    for match in _PLACE.finditer(field):
        name, index = match[1], match[2] or match[1]
        if isinstance(node, yaml.MappingNode):
            node = next((value for key, value in node.value if key.value == name), None)
        elif isinstance(node, yaml.SequenceNode) and index.isdecimal() and int(index) < len(node.value):
            node = node.value[int(index)]
        else:
            break
        if node is None:
            break
        line = node.start_mark.line + 1
    return line
