"""What a solver is: a method that proves (:mod:`tilewright.formulation.method`)."""

from tilewright.formulation.method import Method as Solver
from tilewright.formulation.method import Outcome

__all__ = ["Outcome", "Solver"]
