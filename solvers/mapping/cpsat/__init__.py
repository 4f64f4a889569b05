"""The whole mapping problem as one CP-SAT model."""

from tilewright.solvers.mapping.cpsat.solver import CpSat

__all__ = ["CpSat"]
