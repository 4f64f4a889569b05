"""The solvers by name.  Each is loaded when it is asked for: solver libraries are large."""

from __future__ import annotations

from importlib import import_module

from tilewright.solvers.base import Solver

_SOLVERS: dict[str, tuple[str, str]] = {
    "auto": ("tilewright.solvers.portfolio", "Portfolio"),
    "branch": ("tilewright.solvers.branch", "Branch"),
    "cpsat": ("tilewright.solvers.cpsat", "CpSat"),
    "highs": ("tilewright.solvers.mip", "Highs"),
    "cbc": ("tilewright.solvers.mip", "Cbc"),
    "exhaustive": ("tilewright.solvers.exhaustive", "Exhaustive"),
}


def solver_names() -> list[str]:
    """All names, in the sequence in which they are shown."""
    return [*_SOLVERS]


def solver(name: str) -> Solver:
    """The solver of that name; raises ``KeyError``."""
    module, attribute = _SOLVERS[name]
    found: Solver = getattr(import_module(module), attribute)()
    return found
