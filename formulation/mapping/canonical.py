"""Which mappings count as one: what is left of a nest without what makes no difference.

A loop of one iteration is none.  What lies between two places of storage is a *stretch*: the loops of a
level, and those of levels inside it that store nothing.  Nothing lives between its loops, so mappings differ
there in how each dimension is cut, by itself, and in which loops leave a tensor's tile in place; in the
innermost stretch no order matters (``docs/proofs.md``, different mappings).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.formulation.mapping.mapping import Mapping, Storage, Temporal
from tilewright.formulation.mapping.nests.orders import sliding_dims
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator, Tensor

Stored = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Cut:
    """A dimension is cut into tiles.

    Parameters
    ----------
    stored : tensors and levels of all storage outside
    axis : of the array on which the tiles are spread; ``None`` for a loop in time
    """

    stored: Stored
    axis: str | None
    tile: int


Chain = tuple[Cut, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """What the order of a stretch's loops means for one tensor.

    Parameters
    ----------
    still : per dimension of the leading run, how it is cut outside of it
    slides : the loop along which the tensor's window slides: its dimension, how that is cut outside, its tile
    """

    still: frozenset[tuple[str, Chain]]
    slides: tuple[str, Chain, int] | None


@dataclass(frozen=True, slots=True)
class CanonicalForm:
    """What two mappings differ in, if they are different.

    Parameters
    ----------
    stores : where tensors live
    cuts : per dimension of the operator, outermost first
    effects : per stretch but the innermost, and tensor
    """

    stores: Stored
    cuts: tuple[Chain, ...]
    effects: tuple[tuple[Stored, tuple[Effect, ...]], ...]


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop in time, and how its dimension is cut outside."""

    dim: str
    outside: Chain
    tile: int


def canonical_form(operator: Operator, engine: Engine, mapping: Mapping) -> CanonicalForm:
    """The canonical form of a mapping: equal for mappings that are one and the same, which cost the same."""
    tile = dict(operator.bounds)
    cuts: dict[str, Chain] = dict.fromkeys(operator.bounds, ())
    stored: Stored = frozenset()
    stretches: dict[Stored, list[_Loop]] = {}
    for node in mapping.nodes:
        if isinstance(node, Storage):
            stored |= {(node.tensor, node.level)}
        elif node.tile < tile[node.dim]:
            dim, outside = node.dim, cuts[node.dim]
            in_time = isinstance(node, Temporal)
            if in_time:
                # Loops with the same stores around them may change places; their effect on tensors is what
                # counts.
                stretches.setdefault(stored, []).append(_Loop(dim, outside, node.tile))
            axis = None if isinstance(node, Temporal) else node.axis
            # Two loops next to each other that cut evenly leave the same pieces as one.
            cuts[dim] = _joined(outside, Cut(stored, axis, node.tile))
            tile[dim] = node.tile
    effects = tuple(
        (
            outside,
            tuple(
                _effect(loops, tensor, _sliding(operator, engine, tensor, stored, outside))
                for tensor in operator.tensors
            ),
        )
        for outside, loops in stretches.items()
        # Inside the last store the order of loops changes nothing.
        if outside != stored
    )
    return CanonicalForm(stored, tuple(cuts.values()), effects)


def _joined(outside: Chain, inner: Cut) -> Chain:
    """One cut more; those just outside of its kind that it divides make no difference to the pieces."""
    while (
        outside
        and (outside[-1].stored, outside[-1].axis) == (inner.stored, inner.axis)
        and outside[-1].tile % inner.tile == 0
    ):
        outside = outside[:-1]
    return (*outside, inner)


def _effect(loops: Sequence[_Loop], tensor: Tensor, sliding: frozenset[str]) -> Effect:
    still: dict[str, Chain] = {}
    for loop in reversed(loops):
        if loop.dim in tensor.dims:
            slides = (loop.dim, loop.outside, loop.tile) if loop.dim in sliding else None
            return Effect(frozenset(still.items()), slides)
        still[loop.dim] = loop.outside
    return Effect(frozenset(still.items()), None)


def _sliding(
    operator: Operator, engine: Engine, tensor: Tensor, stored: Stored, outside: Stored
) -> frozenset[str]:
    """Dimensions along which a tensor's window slides, in a level that stores something further inside."""
    inner = {level for _, level in stored - outside}
    keeps = any(
        level.sliding_window and tensor.role in level.keeps and level.name in inner for level in engine.levels
    )
    return sliding_dims(operator, tensor) if keeps else frozenset()
