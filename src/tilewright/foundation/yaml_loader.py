"""A YAML loader for files from anywhere: what expands without end or cannot be built is one clear error."""

from __future__ import annotations

from typing import Any

import yaml

from tilewright.foundation.loading import begin_reading, check_limit

_EXPANSION = 20
_SMALL = 10_000
"""What aliases repeat may be so many times the nodes that the file has, or so many nodes."""
_DIGITS = 1000
"""Of a number, at most."""


class CarefulLoader(yaml.SafeLoader):
    """The safe loader, which by itself expands aliases without end and fails in many ways on odd values.

    It checks the limit of the call, with a ``BudgetError`` that `loading.naming` gives the file's name.
    """

    def get_single_node(self) -> yaml.Node | None:
        root: yaml.Node | None = super().get_single_node()
        if root is not None:
            _check_expansion(root)
        return root

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        begin_reading()

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        check_limit("YAML")
        return super().compose_node(parent, index)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        numeric = isinstance(node, yaml.ScalarNode) and node.tag.endswith((":int", ":float"))
        if numeric and len(node.value) > _DIGITS:
            raise _error(
                node, f"expected a number of at most {_DIGITS:,} characters, got {len(node.value):,}"
            )
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
            # what the constructors of numbers, dates and flags raise for a text that is none
            raise _error(node, f"cannot be read as {node.tag.rpartition(':')[2]}") from None


def _error(node: yaml.Node, problem: str) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _check_expansion(root: yaml.Node) -> None:
    """Raise ``ConstructorError`` for an alias inside its own anchor, and for aliases that multiply.

    The size of a node with every alias written out is one more than the sum over its children, each distinct
    node being visited once; merge keys copy at most as much.
    """
    sizes: dict[int, int | None] = {}  # None while a node's children are being counted
    stack: list[yaml.Node] = [root]
    while stack:
        node = stack[-1]
        children = _children(node)
        if id(node) not in sizes:
            sizes[id(node)] = None
            for child in children:
                if id(child) not in sizes:
                    stack.append(child)
                elif sizes[id(child)] is None:
                    raise _error(child, "an alias stands inside what it repeats")
            continue
        stack.pop()
        if sizes[id(node)] is None:
            parts = [sizes[id(child)] for child in children]
            if None in parts:
                raise _error(node, "an alias stands inside what it repeats")
            sizes[id(node)] = 1 + sum(part for part in parts if part is not None)
    expanded = sizes[id(root)] or 0
    most = max(_SMALL, _EXPANSION * len(sizes))
    if expanded > most:
        raise _error(root, f"aliases make more than {most:,} entries of {len(sizes):,}")


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []
