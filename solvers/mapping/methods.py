"""Every method for one layer by the text that users write: exact solvers and heuristics alike."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.formulation.mapping.search import LayerMethod
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.foundation.method_text import MethodText, parse_method
from tilewright.foundation.registry import Registry
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
    return _registered(text, flag, lambda registry, read: registry.make(read, flag))


def ready_method(text: str, flag: str = "--solver") -> LayerMethod:
    """The method of a text, which is about to run.

    Raises
    ------
    InputError : as for `method`, and where the library is missing that it needs
    """
    return _registered(text, flag, lambda registry, read: registry.ready(read, flag))


def _registered(
    text: str, flag: str, made: Callable[[Registry[LayerMethod], MethodText], LayerMethod]
) -> LayerMethod:
    read = parse_method(text, flag)
    for registry in sorted((SOLVERS, HEURISTICS), key=lambda registry: not registry.ships(read.name)):
        if read.name in registry:
            return made(registry, read)
    raise InputError(flag, None, unknown_name(read.name, method_names()))


def is_prepared(text: str) -> bool:
    """Whether nothing has to be compiled before the method can do all it does."""
    if parse_method(text).name not in COMPILED:
        return True
    from tilewright.solvers.mapping.compiled.program import is_compiled

    return is_compiled()


def prepare(text: str, over: Callable[[], bool] = lambda: False) -> None:
    """Compile or load what the method needs until the caller is over; then it goes on in the background."""
    if parse_method(text).name in COMPILED:
        from tilewright.solvers.mapping.compiled.program import await_compiled

        await_compiled(over)
