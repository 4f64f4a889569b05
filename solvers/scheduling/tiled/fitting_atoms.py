"""What atoms take because each of them must fit a buffer, over all sizes.

A layer is cut along samples, rows and columns into ``p`` boxes of pixels, along channels into ``q`` tiles and
along its sum into ``k`` parts.  That is a grid, so some atom has at least the ``p``-th part of all pixels,
the ``q``-th of the channels and the ``k``-th of the sum, and its weights, inputs and results are in one
buffer.  The array reads all weights for each box of pixels, and all inputs for each tile of channels where
these are more than its own passes; and ``k - 1`` unfinished sums of every result are written.  So the least
of that over all grids whose largest atom fits is a bound (docs/proofs.md, "Atoms that fit their buffers").
"""

from __future__ import annotations

import numpy as np

from tilewright.formulation.scheduling.tiled.atoms import SUM_BYTES
from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.widths import stated_bits
from tilewright.foundation.arrays import Int64s, distinct
from tilewright.solvers.scheduling.tiled.copies import SharedLayer, shared_layer, weight_elements

_ROUNDING = 1e-9
"""Part of a buffer that is added for the rounding of floats."""


def fitting_energy(problem: TiledProblem, whole: AtomicDag) -> list[float]:
    """Per unit, pJ that its atoms take beyond the layer as one atom: array reads, and written sums.

    Parameters
    ----------
    problem, whole : the network on its machine, and every layer as one atom
    """
    if problem.machine.engine.dataflow not in ("kc", "pairs"):
        return [0.0] * len(problem.units)
    layers = (shared_layer(problem, whole, unit) for unit in range(len(problem.units)))
    return [0.0 if layer is None else _beyond_whole(problem, layer) for layer in layers]


def _beyond_whole(problem: TiledProblem, layer: SharedLayer) -> float:
    """The least over all grids; 0 where the whole layer fits, or none does."""
    engine, operator = problem.machine.engine, problem.units[layer.unit].layer.operator
    shape = shape_of(operator)
    channels, rows, columns = shape.sizes
    pixels = problem.batch * rows * columns
    elements = weight_elements(operator)
    assert elements is not None
    finished = problem.result_bits[layer.unit] / 8
    # an unfinished sum is made, or read as what the atom adds to
    made, parts = _largest(channels)[:, None], _largest(shape.parts)
    result = np.where(parts < shape.parts, SUM_BYTES, finished)
    share = parts / shape.parts
    room = engine.buffer_bytes * (1 + _ROUNDING) - layer.weights * made / channels * share
    held = np.floor(room / (layer.inputs / pixels * share + made * result))
    boxes = -(-pixels // np.clip(held, 1, pixels))
    passes = -(-channels // (engine.columns if engine.dataflow == "kc" else engine.lanes))
    stated = stated_bits(operator)
    fetched = elements // channels * pixels * ((stated and stated.inputs) or 8 * engine.element_bytes) / 8
    again = layer.weights * (boxes - 1) + fetched * np.maximum(0, -(-channels // made) - passes)
    sums = SUM_BYTES * channels * pixels * (-(-shape.parts // parts) - 1)
    cost = engine.buffer_read_energy * again + engine.buffer_write_energy * sums
    least = float(np.min(cost, where=held >= 1, initial=np.inf))
    # what a whole layer reads ends with a whole byte
    return max(0.0, least - engine.buffer_read_energy) if least < np.inf else 0.0


def _largest(size: int) -> Int64s:
    """The least that the largest tile may be, for all numbers of tiles."""
    return distinct(-(-size // np.arange(1, size + 1)))
