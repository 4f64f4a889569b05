"""Every method by the text that users write: exact solvers and heuristics alike."""

from __future__ import annotations

from tilewright.formulation.method import Method, parse_method
from tilewright.heuristics.mapping.registry import heuristic, heuristic_names
from tilewright.solvers.mapping.registry import solver, solver_names
from tilewright.workloads.errors import InputError, unknown_name


def method_names() -> list[str]:
    """All names: exact solvers first."""
    return [*solver_names(), *heuristic_names()]


def method(text: str, flag: str = "--solver") -> Method:
    """The method of a text such as ``auto`` or ``dmazerunner[opt=1-3]``.

    Raises
    ------
    InputError : for an unknown name or option, or a value that an option cannot have
    """
    read = parse_method(text, flag)
    if read.name in heuristic_names():
        return heuristic(read, flag)
    if read.name not in solver_names():
        raise InputError(flag, None, unknown_name(read.name, method_names()))
    if read.options:
        raise InputError(flag, text, f"{read.name} takes no options")
    return solver(read.name)
