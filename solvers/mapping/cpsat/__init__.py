"""The whole mapping problem as one CP-SAT model.

OR-Tools is loaded only when the solver itself is asked for: other solvers use the filters and the descent
of this package, and must not load it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.solvers.mapping.cpsat.solver import CpSat

__all__ = ["CpSat"]


def __getattr__(name: str) -> object:
    if name == "CpSat":
        from tilewright.solvers.mapping.cpsat.solver import CpSat

        return CpSat
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
