"""The tiling that Gemmini's library takes by itself, as a mapping of the preset ``gemmini``.

The tiles are those of :mod:`tilewright.formulation.mapping.gemmini.auto`; inside them stands the loop unit's
order: blocks of weights outside, rows of outputs inside.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright import __version__
from tilewright.formulation.mapping.gemmini.auto import Memories, auto_tiles
from tilewright.formulation.mapping.mapping import Mapping, Node, Spatial, Storage, Temporal
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.method import Outcome
from tilewright.formulation.result import Origin
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator, Role

_LEVELS = ("DRAM", "Scratchpad", "Accumulator", "Registers")
_OUTER = ("N", "P", "Q", "K", "R", "S", "C")
_KINDS = ("conv2d", "gemm")


@dataclass(frozen=True)
class GemminiAuto:
    """One mapping: the library's own."""

    name = "gemmini-auto"
    exact = False

    @property
    def version(self) -> str:
        return __version__

    def solve(self, search: LayerSearch) -> Outcome:
        """Offer the library's tiling, where the machine and the layer are such as it knows."""
        operator, engine = search.problem.operator, search.problem.engine
        if tuple(level.name for level in engine.levels) != _LEVELS:
            return Outcome(False, "expects the machine gemmini")
        if operator.kind not in _KINDS:
            return Outcome(False, f"Gemmini's library has no tiling of its own for {operator.kind} layers")
        search.tally.nodes += 1
        search.offer(library_mapping(operator, engine), self.name, origin=Origin.HEURISTIC)
        return Outcome(False, "" if search.key is not None else "its tiling is not legal here")


def library_mapping(operator: Operator, engine: Engine) -> Mapping:
    """The library's tiling as loops and stores.

    Parameters
    ----------
    operator : a convolution or a product
    engine : the preset ``gemmini``, whose memories the tiles fit
    """
    scratchpad, accumulator = engine.levels[1], engine.levels[2]
    assert scratchpad.fanout is not None
    side = scratchpad.fanout.axes[0].size
    memories = Memories(side, 2 * (scratchpad.capacity or 0) // side, 2 * (accumulator.capacity or 0))
    names = {dim.like: dim.name for dim in operator.dimensions}
    bounds = {like: operator.bounds[names[like]] if like in names else 1 for like in _OUTER}
    # The library's rows are this project's ``P``; the measured data call them ``Q``.
    is_product = bounds["N"] * bounds["Q"] * bounds["R"] * bounds["S"] == 1
    turned = {} if is_product else {"P": "Q", "Q": "P", "R": "S", "S": "R"}
    tiles = auto_tiles({turned.get(d, d): n for d, n in bounds.items()}, _stride(operator, names), memories)
    tile = {like: min(bounds[like], tiles[turned.get(like, like)]) for like in _OUTER}
    held = {role: tensor.name for tensor in operator.tensors for role in (tensor.role,)}
    left = dict(bounds)
    nodes: list[Node] = [Storage(name, _LEVELS[0]) for name in held.values()]

    def cut(like: str, size: int, axis: str | None = None) -> None:
        size = max(1, size)
        if size < left[like]:
            name = names[like]
            nodes.append(Temporal(name, size) if axis is None else Spatial(name, size, axis))
            left[like] = size

    for like in _OUTER:
        cut(like, tile[like])
    nodes += [Storage(held[role], _LEVELS[1]) for role in (Role.WEIGHT, Role.INPUT)]
    cut("K", -(-left["K"] // side), "k")
    nodes.append(Storage(held[Role.OUTPUT], _LEVELS[2]))
    for like in ("K", "R", "S"):
        cut(like, 1)
    cut("C", side)
    strip = "Q" if "Q" in names and bounds["Q"] > 1 else "P"
    for like in ("N", *(each for each in "PQ" if each != strip)):
        if like in names:
            cut(like, 1)
    cut(strip, side)
    cut("C", 1, "c")
    nodes.append(Storage(held[Role.WEIGHT], _LEVELS[3]))
    cut(strip, 1)
    return Mapping(tuple(nodes))


def _stride(operator: Operator, names: dict[str, str]) -> int:
    image = next(tensor for tensor in operator.tensors if tensor.role is Role.INPUT)
    return next((t.stride for axis in image.axes for t in axis.terms if t.dim == names.get("P")), 1)
