"""The solvers by name.  Each is loaded when it is asked for: solver libraries are large."""

from __future__ import annotations

from importlib import import_module

from tilewright.solvers.base import Solver

_SOLVERS: dict[str, tuple[str, str]] = {
    "auto": ("tilewright.solvers.mapping.portfolio", "Portfolio"),
    "branch": ("tilewright.solvers.mapping.branch", "Branch"),
    "cpsat": ("tilewright.solvers.mapping.cpsat", "CpSat"),
    "highs": ("tilewright.solvers.mapping.mip", "Highs"),
    "cbc": ("tilewright.solvers.mapping.mip", "Cbc"),
    "exhaustive": ("tilewright.solvers.mapping.exhaustive", "Exhaustive"),
}


def solver_names() -> list[str]:
    """All names, in the sequence in which they are shown."""
    return [*_SOLVERS]


def solver(name: str) -> Solver:
    """The solver of that name; raises ``KeyError``."""
    module, attribute = _SOLVERS[name]
    found: Solver = getattr(import_module(module), attribute)()
    return found
