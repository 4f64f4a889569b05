"""Named sets of constraints that differ from layer to layer (``set=NAME``, ``--constraint-set NAME``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tilewright.formulation.mapping.gemmini.library import library_demands
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator

PREFIX = "set="
CONSTRAINT_SETS: dict[str, Callable[[Operator, Engine], tuple[str, ...]]] = {"gemmini": library_demands}
"""By name: the lines for a layer on a machine; each raises ``InputError`` where there are none."""


def set_named(text: str) -> str | None:
    """The set that a line names; ``None`` for a line of another kind.

    Raises
    ------
    InputError : for an unknown set
    """
    line = "".join(text.split())
    if not line.startswith(PREFIX):
        return None
    name = line.removeprefix(PREFIX)
    if name not in CONSTRAINT_SETS:
        raise InputError("--constraint", line, unknown_name(name, list(CONSTRAINT_SETS)))
    return name


def with_sets_written_out(texts: Iterable[str], operator: Operator, engine: Engine) -> Iterator[str]:
    """Lines with those of every set in its place, for one layer.

    Raises
    ------
    InputError : for an unknown set, or a layer or machine that a set does not know
    """
    for text in texts:
        name = set_named(text)
        if name is None:
            yield text
        else:
            yield from CONSTRAINT_SETS[name](operator, engine)
