"""Names of machines, models and methods, in both parts."""

from __future__ import annotations

from tilewright.foundation.errors import InputError
from tilewright.solvers.mapping.methods import method_names
from tilewright.solvers.scheduling.herald.registry import METHODS
from tilewright.solvers.scheduling.tiled.registry import METHODS as PLANNERS

WINGS = {"mapping": method_names, "scheduling": METHODS.names, "tiled": PLANNERS.names}


def methods(of: str = "mapping") -> list[str]:
    """Names of the methods that `solve` takes: exact solvers first, then heuristics.

    Parameters
    ----------
    of : ``mapping`` for layers and networks, ``scheduling`` for workloads on systems, ``tiled`` for networks
        on tiled machines

    Raises
    ------
    InputError : for anything else
    """
    if of not in WINGS:
        raise InputError("of", None, f"expected {' or '.join(WINGS)}, got {of!r}")
    return WINGS[of]()
