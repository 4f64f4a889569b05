"""What a user decides of a model's branches and loops."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TypeVar

import onnx

Choice = TypeVar("Choice")


@dataclass(frozen=True, slots=True)
class Choices:
    """What a user decides of a model, by glob pattern of a node's name.

    Parameters
    ----------
    branches : ``then`` or ``else`` of nodes ``If``
    trips : rounds of nodes ``Loop`` and ``Scan``
    most : nodes that all branches and rounds may open
    """

    branches: dict[str, str] = field(default_factory=dict)
    trips: dict[str, int] = field(default_factory=dict)
    most: int = 2**17


class TooManyNodesError(Exception):
    """Loops open more nodes than a model may have."""


def chosen(choices: dict[str, Choice], node: onnx.NodeProto, stem: str) -> Choice | None:
    """What was chosen for a node, by its name in the file (`stem`), by its own, or by that of a result."""
    names = [name for name in (node.name, stem, *node.output) if name]
    for name in names:
        if name in choices:
            return choices[name]
    return next(
        (c for pattern, c in choices.items() if any(fnmatchcase(name, pattern) for name in names)), None
    )
