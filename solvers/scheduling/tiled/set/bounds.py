"""Lower bounds on the closed form of all trees of a network.

Energy is at least that of the layers (`layer_bounds.py`) with the network's inputs and outputs.  Time is at
least the largest of three: the work of all layers over all tiles, the compulsory traffic over DRAM's rate,
and the longest path of times.  A leaf with ``r`` runs of ``x`` cycles on ``t`` of ``n`` tiles adds
``x + (r - 1) x t / n`` to that path: one run, and the other runs in proportion to its tiles (docs/proofs.md).
Energy and time are bounded together (`frontier.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.solvers.scheduling.tiled.set.leaf.layer_bounds import LayerBounds
from tilewright.solvers.scheduling.tiled.set.trees.frontier import least_value, summed


@dataclass(frozen=True, slots=True)
class TreeBounds:
    """Lower bounds for one network.

    Parameters
    ----------
    energy : pJ
    work, dram, path : cycles by all work over all tiles, by compulsory traffic, by the longest path
    value : of the objective
    """

    energy: float
    work: int
    dram: int
    path: int
    value: float

    @property
    def cycles(self) -> int:
        """The most of the three."""
        return max(self.work, self.dram, self.path)


def tree_bounds(form: ClosedForm, lower_bounds: LayerBounds | None = None) -> TreeBounds:
    """Bounds on every tree of a closed form's network and batch.

    Parameters
    ----------
    lower_bounds : of the layers, where they are known; they may raise `LimitReachedError`
    """
    lower_bounds = LayerBounds(form) if lower_bounds is None else lower_bounds
    network, machine = form.network, form.machine
    if math.inf in lower_bounds.work:  # a layer that no tiles can run
        return TreeBounds(math.inf, 0, 0, 0, math.inf)
    moved = sum(lower_bounds.compulsory)
    ends = sum(member.is_output for member in network.layers) + sum(
        member.external > 0 for member in network.layers
    )
    spared = (len(network) + form.batch * ends) * lower_bounds.rounding
    spared += sum(lower_bounds.rounded_bytes(layer) for layer in range(len(network))) * machine.hop_energy
    rest = moved * lower_bounds.byte_energy - spared
    rest += sum(
        lower_bounds.tile_energy[layer] for layer in range(len(network)) if layer not in lower_bounds.path
    )
    hulls = [lower_bounds.hull(layer) for layer in lower_bounds.path]
    together = [(time, (energy + rest) * (1 - 1e-9)) for time, energy in summed(hulls)]
    work = math.ceil(sum(lower_bounds.work) / form.engine.grid.tiles - 1e-6)
    dram = math.ceil(moved / machine.dram_rate)
    path = math.ceil(together[0][0] - 1e-6)
    value = least_value(together, max(work, dram), form.value)
    return TreeBounds(together[-1][1], work, dram, path, value)
