"""Every method for one layer by the text that users write: exact solvers and heuristics alike."""

from __future__ import annotations

from tilewright.formulation.mapping.search import LayerMethod
from tilewright.formulation.method import parse_method
from tilewright.heuristics.mapping.registry import HEURISTICS
from tilewright.solvers.mapping.registry import SOLVERS
from tilewright.workloads.errors import InputError, unknown_name


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
    for registry in (SOLVERS, HEURISTICS):
        if read.name in registry:
            return registry.make(read, flag)
    raise InputError(flag, None, unknown_name(read.name, method_names()))
