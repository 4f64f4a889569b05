"""The whole mapping problem as one CP-SAT model."""

from tilewright.solvers.cpsat.solver import CpSat

__all__ = ["CpSat"]
