"""Names of machines, models and methods, in both parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tilewright.foundation.errors import InputError, one_line
from tilewright.foundation.registry import Registry


@dataclass(frozen=True, slots=True)
class MethodLine:
    """A method in one line.

    Parameters
    ----------
    exact : whether it proves; ``None``, with ``-`` for the version, for one that cannot be loaded
    about : what it does, where it was published, and its options
    """

    name: str
    exact: bool | None
    version: str
    about: str


@dataclass(frozen=True, slots=True)
class _Kind:
    """The methods of a kind of question: their names, and what makes one of a text and a flag.

    ``ready`` is for one that is about to run.
    """

    names: Callable[[], list[str]]
    make: Callable[[str, str], Any]
    ready: Callable[[str, str], Any]


def _mapping() -> _Kind:
    from tilewright.solvers.mapping.methods import method, method_names, ready_method

    return _Kind(method_names, method, ready_method)


def _scheduling() -> _Kind:
    from tilewright.solvers.scheduling.herald.registry import METHODS

    return _Kind(METHODS.names, METHODS.make, METHODS.ready)


def _tiled() -> _Kind:
    from tilewright.solvers.scheduling.tiled.registry import METHODS

    return _Kind(METHODS.names, METHODS.make, METHODS.ready)


def _fused() -> _Kind:
    from tilewright.heuristics.mapping.fused.registry import FUSION_HEURISTICS

    return _Kind(FUSION_HEURISTICS.names, FUSION_HEURISTICS.make, FUSION_HEURISTICS.ready)


WINGS = {"mapping": _mapping, "scheduling": _scheduling, "tiled": _tiled, "fused": _fused}


def methods(of: str = "mapping") -> list[str]:
    """Names of the methods that `solve` takes: exact solvers first, then heuristics.

    Parameters
    ----------
    of : ``mapping`` for layers and networks, ``fused`` for their heuristics with ``fuse=True``,
        ``scheduling`` for workloads on systems, ``tiled`` for networks on tiled machines

    Raises
    ------
    InputError : for anything else
    """
    if of not in WINGS:
        raise InputError("of", None, f"expected {' or '.join(WINGS)}, got {of!r}")
    return WINGS[of]().names()


def made_method(text: str, of: str = "mapping", flag: str = "--method") -> Any:
    """The method of a text, with ``version``, ``exact`` and perhaps ``stochastic``.

    Parameters
    ----------
    text : a name with its options
    of : as for `methods`
    flag : what errors name

    Raises
    ------
    InputError : for an unknown method, or an option that it does not have
    """
    return WINGS[of]().make(text, flag)


def ready_method(text: str, of: str = "mapping", flag: str = "--method") -> Any:
    """The method of a text, which is about to run.

    Parameters
    ----------
    text, of, flag : as for `made_method`

    Raises
    ------
    InputError : as for `made_method`, and where the library is missing that the method needs
    """
    return WINGS[of]().ready(text, flag)


def mapping_solvers() -> Iterator[MethodLine]:
    """The exact solvers for layers; one that cannot be loaded says why."""
    from tilewright.solvers.mapping.registry import SOLVERS

    for name in SOLVERS.names():
        try:
            solver = SOLVERS.make(name)
            yield MethodLine(name, solver.exact, solver.version, _first_line(solver))
        except (ImportError, AttributeError) as error:
            yield MethodLine(name, None, "-", f"cannot be loaded: {one_line(error)}")


def mapping_heuristics() -> Iterator[MethodLine]:
    """The heuristics for layers, none of which is loaded."""
    from tilewright.heuristics.mapping.registry import HEURISTICS

    return (MethodLine(name, False, "", _about(HEURISTICS, name)) for name in HEURISTICS.names())


def fusion_heuristics() -> Iterator[MethodLine]:
    """The heuristics for fused mappings, none of which is loaded."""
    from tilewright.heuristics.mapping.fused.registry import FUSION_HEURISTICS

    known = FUSION_HEURISTICS
    return (MethodLine(name, False, "", _about(known, name)) for name in known.names())


def schedulers() -> Iterator[MethodLine]:
    """The methods for schedules."""
    from tilewright.solvers.scheduling.herald.registry import METHODS

    for name in METHODS.names():
        method, options = METHODS.make(name), METHODS.options(name)
        about = _first_line(method) + (f" Options: {options}." if options else "")
        yield MethodLine(name, method.exact, method.version, about)


def planners() -> Iterator[MethodLine]:
    """The methods for plans on tiled machines."""
    from tilewright.solvers.scheduling.tiled.registry import METHODS

    for name in METHODS.names():
        method = METHODS.make(name)
        yield MethodLine(name, method.exact, method.version, _about(METHODS, name))


def _first_line(method: object) -> str:
    return (method.__doc__ or "").partition("\n")[0]


def _about(registry: Registry[Any], name: str) -> str:
    entry, options = registry.entry(name), registry.options(name)
    source = f" Source: {entry.source}." if entry.source else ""
    return f"{entry.about}.{source}" + (f" Options: {options}." if options else "")
