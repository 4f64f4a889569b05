"""Every method for one layer by the text that users write: exact solvers and heuristics alike."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.formulation.mapping.search import LayerMethod
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.foundation.method_text import parse_method
from tilewright.heuristics.mapping.registry import HEURISTICS
from tilewright.solvers.mapping.registry import SOLVERS

COMPILED = ("auto", "branch")  #: methods with machine code, compiled once per installation


def method_names() -> list[str]:
    """All names: exact solvers first."""
    return [*SOLVERS.names(), *HEURISTICS.names()]


def method(text: str, flag: str = "--solver") -> LayerMethod:
    """The method of a text such as ``auto`` or ``dmazerunner[opt=1-3]``.

    Raises
    ------
    InputError : for an unknown name or option, or a value that an option cannot have
    """
    read = parse_method(text, flag)
    for registry in sorted((SOLVERS, HEURISTICS), key=lambda registry: not registry.ships(read.name)):
        if read.name in registry:
            return registry.make(read, flag)
    raise InputError(flag, None, unknown_name(read.name, method_names()))


def is_prepared(text: str) -> bool:
    """Whether nothing has to be compiled before the method can do all it does."""
    if parse_method(text).name not in COMPILED:
        return True
    from tilewright.solvers.mapping.program import is_compiled

    return is_compiled()


def prepare(text: str, over: Callable[[], bool] = lambda: False) -> None:
    """Compile what the method needs, or load it, until whoever asks is over; it goes on beside them then."""
    if parse_method(text).name in COMPILED:
        from tilewright.solvers.mapping.program import await_compiled

        await_compiled(over)
