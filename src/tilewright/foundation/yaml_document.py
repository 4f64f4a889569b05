"""YAML as plain data with exact numbers, repeated keys refused, and the line of every field at hand."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import yaml

from tilewright.foundation.yaml_loader import CarefulLoader

_PLAIN_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,30})")


class _Loader(CarefulLoader):
    """Decimals stay exact; octal, base-60 and date readings of YAML 1.1 stay text."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"field {key.value!r} is given twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def _decimal(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Decimal | str:
    try:
        return Decimal(node.value)
    except InvalidOperation:
        return str(node.value)


def _integer(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int | str:
    return int(node.value) if _PLAIN_INTEGER.fullmatch(node.value) else str(node.value)


def _text(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    return str(node.value)


_Loader.add_constructor("tag:yaml.org,2002:float", _decimal)
_Loader.add_constructor("tag:yaml.org,2002:int", _integer)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _text)


class Tagged(dict[Hashable, Any]):
    """A mapping under a tag of its own, such as ``!Container``.

    Parameters
    ----------
    tag : without the exclamation mark
    """

    def __init__(self, tag: str, content: dict[Hashable, Any]) -> None:
        super().__init__(content)
        self.tag = tag


class _TaggedLoader(_Loader):
    """The same for files of other programs: mappings may carry tags, and of repeated keys the last counts."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        return CarefulLoader.construct_mapping(self, node, deep=deep)


def _tagged(loader: _TaggedLoader, tag: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return Tagged(tag, loader.construct_mapping(node, deep=True))
    if isinstance(node, yaml.SequenceNode):
        return Tagged(tag, {"nodes": loader.construct_sequence(node, deep=True)})
    raise yaml.constructor.ConstructorError(None, None, f"a tag !{tag} on a value", node.start_mark)


_TaggedLoader.add_multi_constructor("!", _tagged)


@dataclass(frozen=True)
class YamlDocument:
    """A parsed document.

    Parameters
    ----------
    data : plain Python data; numbers with a point are ``Decimal``
    root : the tree that it was read from; ``None`` for an empty document
    """

    data: object
    root: yaml.Node | None

    def repeated(self) -> list[tuple[str, int]]:
        """Keys that a mapping has more than once, with the line of the last."""
        repeated: list[tuple[str, int]] = []
        seen: set[int] = set()
        left = [] if self.root is None else [self.root]
        while left:
            node = left.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, yaml.SequenceNode):
                left += node.value
            elif isinstance(node, yaml.MappingNode):
                lines: dict[str, list[int]] = {}
                for key, value in node.value:
                    left.append(value)
                    if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                        lines.setdefault(key.value, []).append(int(key.start_mark.line) + 1)
                repeated += [(key, at[-1]) for key, at in lines.items() if len(at) > 1]
        return sorted(repeated, key=lambda entry: entry[1])

    def line(self, location: Sequence[str | int]) -> int | None:
        """Line of a field, counted from 1; of the innermost container that exists where it is missing."""
        node = self.root
        if node is None:
            return None
        line = int(node.start_mark.line) + 1
        for step in location:
            child: yaml.Node | None = None
            if isinstance(node, yaml.MappingNode):
                for key, value in node.value:
                    if isinstance(key, yaml.ScalarNode) and key.value == step:
                        child, line = value, int(key.start_mark.line) + 1
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                child = node.value[step]
                line = int(child.start_mark.line) + 1
            if child is None:
                break
            node = child
        return line


class YamlError(ValueError):
    """Text that is not YAML.

    Parameters
    ----------
    message : one line
    line, column : where, counted from 1; ``None`` where unknown
    """

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


def parse_yaml(text: str, *, tags: bool = False) -> YamlDocument:
    """Parse one YAML document; raises ``YamlError``.

    Parameters
    ----------
    tags : whether mappings may carry tags, and become `Tagged`; a list under a tag is its ``nodes``.  Keys
        may then be repeated, which `YamlDocument.repeated` states
    """
    try:
        loader = _TaggedLoader(text) if tags else _Loader(text)
        try:
            root = loader.get_single_node()
            data = None if root is None else loader.construct_document(root)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = error.problem or error.context or "not valid YAML"
        where = (mark.line + 1, mark.column + 1) if mark else (None, None)
        raise YamlError(" ".join(message.split()), *where) from error
    except yaml.YAMLError as error:
        raise YamlError(" ".join(str(error).split())) from error
    except RecursionError as error:
        raise YamlError("nested too deeply") from error
    return YamlDocument(data, root)
