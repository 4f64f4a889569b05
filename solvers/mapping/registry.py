"""The exact solvers for one layer by name.  A new one is a module and a row here."""

from __future__ import annotations

from tilewright.formulation.mapping.search import LayerMethod
from tilewright.foundation.registry import Entry, Registry

SOLVERS: Registry[LayerMethod] = Registry(
    "--solver",
    {
        "auto": Entry(
            "tilewright.solvers.mapping.portfolio",
            "Portfolio",
            "branch and bound, with CP-SAT if a proof takes long",
        ),
        "branch": Entry(
            "tilewright.solvers.mapping.branch", "Branch", "branch and bound over the memory hierarchy"
        ),
        "cpsat": Entry("tilewright.solvers.mapping.cpsat", "CpSat", "the whole problem as one CP-SAT model"),
        "highs": Entry(
            "tilewright.solvers.mapping.mip", "Highs", "mixed-integer programs through PuLP, by HiGHS"
        ),
        "cbc": Entry("tilewright.solvers.mapping.mip", "Cbc", "mixed-integer programs through PuLP, by CBC"),
        "exhaustive": Entry(
            "tilewright.solvers.mapping.exhaustive", "Exhaustive", "every mapping of the space, evaluated"
        ),
    },
    group="solvers",
)
