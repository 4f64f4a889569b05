"""Mixed-integer programming through PuLP, with HiGHS or CBC."""

from tilewright.solvers.mapping.mip.solver import Cbc, Highs

__all__ = ["Cbc", "Highs"]
