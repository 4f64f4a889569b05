"""What there is by name, in both wings; each wing's registry is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.foundation.errors import InputError


def _mapping() -> tuple[Callable[[], list[str]], Callable[[str], object]]:
    from tilewright.solvers.mapping.methods import method, method_names

    return method_names, method


def _scheduling() -> tuple[Callable[[], list[str]], Callable[[str], object]]:
    from tilewright.solvers.scheduling.herald.registry import METHODS

    return METHODS.names, METHODS.make


def _tiled() -> tuple[Callable[[], list[str]], Callable[[str], object]]:
    from tilewright.solvers.scheduling.tiled.registry import METHODS

    return METHODS.names, METHODS.make


WINGS = {"mapping": _mapping, "scheduling": _scheduling, "tiled": _tiled}
"""By kind of question, what gives the names of its methods, and what makes one of a text."""


def methods(of: str = "mapping") -> list[str]:
    """Names of the methods that `solve` takes: exact solvers first, then heuristics.

    Parameters
    ----------
    of : ``mapping`` for layers and networks, ``scheduling`` for workloads on systems, ``tiled`` for networks
        on tiled machines

    Raises
    ------
    InputError : for anything else
    """
    if of not in WINGS:
        raise InputError("of", None, f"expected {' or '.join(WINGS)}, got {of!r}")
    names, _ = WINGS[of]()
    return names()


def check_method(text: str, of: str = "mapping") -> None:
    """Raise ``InputError`` for an unknown method of a kind, or an option that it does not have.

    Parameters
    ----------
    text : a method with its options
    of : as for `methods`
    """
    _, make = WINGS[of]()
    make(text)
