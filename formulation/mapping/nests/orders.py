"""Loop orders by their effect: which tensors stay put, and along which loop a window slides.

Inside one block of temporal loops (the loops of one memory level) an order matters only through

- the *leading run* of each tensor: the innermost loops that the tensor does not depend on; it is fetched
  once for all their iterations (dMazeRunner, algorithm 1), and
- the first loop outside that run: where it moves a window along an axis that two loops share (``P`` and
  ``R`` of a convolution's input), consecutive tiles overlap and only the new part is fetched.

Orders with the same effect are one choice (dMazeRunner, algorithm 2), and effects that are never better
than another one are dropped; ``docs/proofs.md`` shows that this loses nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import cast

from tilewright.workloads.mapping.operator import Axis, Operator, Tensor


@dataclass(frozen=True, slots=True)
class OrderClass:
    """All orders of a block with one effect.

    Parameters
    ----------
    permutation : a representative, outermost loop first
    reused : per tensor name, the dimensions of its leading run
    slides : per tensor name, the dimension along which its window slides, if any
    exact : whether mappings have this very effect (:func:`sequence`), where any order has it; else they may
        keep more in place
    ends : loops that a demand puts innermost, outermost first
    """

    permutation: tuple[str, ...]
    reused: MappingABC[str, frozenset[str]]
    slides: MappingABC[str, str | None]
    exact: bool = False
    ends: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The effect in words, such as ``O-stationary`` or ``W-stationary, I slides along P``."""
        parts = [f"{name}-stationary" for name, dims in self.reused.items() if dims]
        parts += [f"{name} slides along {dim}" for name, dim in self.slides.items() if dim]
        return ", ".join(parts) or "no reuse"

    @property
    def effect(self) -> tuple[tuple[frozenset[str], str | None], ...]:
        """The effect as a value that equal classes share."""
        return tuple((self.reused[name], self.slides[name]) for name in self.reused)

    def effect_on(self, tensors: Collection[str]) -> tuple[tuple[frozenset[str], str | None], ...]:
        """The effect on some tensors."""
        return tuple((self.reused[name], self.slides[name]) for name in self.reused if name in tensors)

    def dominates(self, other: OrderClass, tensors: Collection[str] | None = None) -> bool:
        """Whether this order never moves more data (of some tensors) than the other, whatever the trips."""
        return all(
            self.reused[name] >= other.reused[name] and other.slides[name] in (None, self.slides[name])
            for name in (self.reused if tensors is None else tensors)
        )


def sliding_dims(operator: Operator, tensor: Tensor) -> frozenset[str]:
    """Dimensions along which consecutive tiles of the tensor can overlap."""
    return frozenset(
        term.dim
        for axis in tensor.axes
        if axis.is_compound
        for term in axis.terms
        if _others_extent(operator, axis, term.dim) > term.stride
    )


def _others_extent(operator: Operator, axis: Axis, dim: str) -> int:
    return 1 + sum(t.stride * (operator.bounds[t.dim] - 1) for t in axis.terms if t.dim != dim)


def order_effect(
    operator: Operator, permutation: Sequence[str], sliding: MappingABC[str, frozenset[str]]
) -> OrderClass:
    """The effect of one order in which every loop iterates more than once.

    Parameters
    ----------
    permutation : the block's loops, outermost first
    sliding : per tensor name, the dimensions along which its window may slide
    """
    return _effect({tensor.name: tensor.dims for tensor in operator.tensors}, permutation, sliding)


def _effect(
    owned: MappingABC[str, frozenset[str]],
    permutation: Sequence[str],
    sliding: MappingABC[str, frozenset[str]],
) -> OrderClass:
    reused: dict[str, frozenset[str]] = {}
    slides: dict[str, str | None] = {}
    for name, dims in owned.items():
        run: list[str] = []
        first: str | None = None
        for dim in reversed(permutation):
            if dim in dims:
                first = dim
                break
            run.append(dim)
        reused[name] = frozenset(run)
        slides[name] = first if first in sliding[name] else None
    return OrderClass(tuple(permutation), reused, slides)


def all_order_classes(
    operator: Operator,
    dims: Iterable[str],
    sliding: MappingABC[str, frozenset[str]],
    tensors: Collection[str] | None = None,
) -> tuple[OrderClass, ...]:
    """One order for every distinct effect (on some tensors, by default all), dominated ones included.

    Parameters
    ----------
    operator : whose tensors say which loops reuse what
    dims : dimensions of the loops that are ordered
    sliding : per tensor name, the dimensions along which its window can slide
    tensors : names of tensors whose reuse distinguishes orders; by default all
    """
    considered = [t.name for t in operator.tensors if tensors is None or t.name in tensors]
    return _effects(*_structure(operator, dims, sliding), frozenset(considered))


_Owned = tuple[tuple[str, frozenset[str]], ...]  # dimensions of every tensor


def _structure(
    operator: Operator, dims: Iterable[str], sliding: MappingABC[str, frozenset[str]]
) -> tuple[_Owned, tuple[str, ...], _Owned]:
    """All that effects depend on; the layers of a network have few different ones."""
    owned = tuple((tensor.name, tensor.dims) for tensor in operator.tensors)
    return owned, tuple(dims), tuple((name, sliding[name]) for name, _ in owned)


@lru_cache(maxsize=256)
def _effects(
    owned: _Owned, names: tuple[str, ...], sliding: _Owned, considered: frozenset[str]
) -> tuple[OrderClass, ...]:
    """As `all_order_classes`."""
    by_effect: dict[object, OrderClass] = {}
    moving = [dims for name, dims in owned if name in considered]

    def extend(inner: tuple[str, ...]) -> None:
        """``inner`` holds the innermost loops, innermost first."""
        rest = [dim for dim in names if dim not in inner]
        undecided = any(dims.isdisjoint(inner) for dims in moving)
        if not rest or not undecided:
            order = _effect(dict(owned), (*reversed(rest), *reversed(inner)), dict(sliding))
            by_effect.setdefault(order.effect, replace(order, exact=True))
            return
        for dim in rest:
            extend((*inner, dim))

    extend(())
    return tuple(by_effect.values())


@lru_cache(maxsize=256)
def _undominated(
    owned: _Owned, names: tuple[str, ...], sliding: _Owned, considered: frozenset[str]
) -> tuple[OrderClass, ...]:
    """As `order_classes`."""
    by_effect: dict[object, OrderClass] = {}
    for order in _effects(owned, names, sliding, considered):
        by_effect.setdefault(order.effect_on(considered), order)
    kept = [
        replace(order, exact=False)
        for effect, order in by_effect.items()
        if not any(other.dominates(order, considered) for its, other in by_effect.items() if its != effect)
    ]
    return tuple(sorted(kept, key=lambda order: (order.label, order.permutation)))


def ended_by(
    orders: Iterable[OrderClass], dim: str, dims: MappingABC[str, frozenset[str]], every: bool
) -> tuple[OrderClass, ...]:
    """Of a block's distinct effects those that orders with a given innermost loop have.

    With ``dim`` innermost no tensor that depends on it has a leading run, and its window slides along
    ``dim`` or not at all; every other leading run holds ``dim``.  Conversely, where an effect is like that,
    moving ``dim`` inwards changes no leading run as a set (``docs/proofs.md``).

    Parameters
    ----------
    orders : every effect, dominated ones included
    dims : per tensor name, the dimensions that it depends on
    every : whether to keep effects that another of these dominates
    """
    orders = tuple(orders)
    slides = {
        name: dim if any(o.slides[name] == dim and not o.reused[name] for o in orders) else None
        for name in dims
    }
    fitting = [
        replace(
            order,
            permutation=(*(candidate for candidate in order.permutation if candidate != dim), dim),
            ends=(*(candidate for candidate in order.ends if candidate != dim), dim),
        )
        for order in orders
        if dim in order.permutation
        and all(
            not order.reused[name] and order.slides[name] == slides[name]
            if dim in own
            else dim in order.reused[name]
            for name, own in dims.items()
        )
    ]
    if not fitting:  # the loop never runs: no order matters
        return orders
    kept = [
        candidate
        for candidate in fitting
        if every
        or not any(other.dominates(candidate) for other in fitting if other.effect != candidate.effect)
    ]
    return tuple(kept)


def in_sequence(
    orders: Iterable[OrderClass], dims: Sequence[str], owned: MappingABC[str, frozenset[str]]
) -> tuple[OrderClass, ...]:
    """Of a block's distinct effects those that one order of its loops has when some of them do not run.

    Loops that do not run change nothing, so they may as well stand outermost; every effect names the given
    order.

    Parameters
    ----------
    orders : every effect, dominated ones included
    dims : the loops, outermost first; those that are not the block's are passed over
    owned : per tensor name, the dimensions that it depends on
    """
    orders = tuple(orders)
    loops = [dim for dim in dims if any(dim in order.permutation for order in orders)]
    sliding = {
        name: frozenset(order.slides[name] for order in orders if order.slides[name] is not None)
        for name in owned
    }
    effects = set()
    for runs in product((False, True), repeat=len(loops)):
        idle = [dim for dim, run in zip(loops, runs, strict=True) if not run]
        running = [dim for dim in loops if dim not in idle]
        effects.add(_effect(owned, (*idle, *running), cast(MappingABC[str, frozenset[str]], sliding)).effect)
    given = tuple(loops)
    return tuple(replace(order, permutation=given, ends=given) for order in orders if order.effect in effects)


def order_classes(
    operator: Operator,
    dims: Iterable[str],
    sliding: MappingABC[str, frozenset[str]],
    tensors: Collection[str] | None = None,
) -> tuple[OrderClass, ...]:
    """The effects on some tensors that no other effect dominates, in a reproducible sequence.

    Parameters
    ----------
    operator, dims, sliding, tensors : as for :func:`all_order_classes`
    """
    considered = frozenset(t.name for t in operator.tensors if tensors is None or t.name in tensors)
    return _undominated(*_structure(operator, dims, sliding), considered)


def sequence(
    order: OrderClass, runs: Collection[str], operator: Operator, orders: Iterable[OrderClass]
) -> Sequence[str]:
    """The loops of a block that run, outermost first, in an order of a class.

    A loop that does not run ends no leading run, so the representative may keep more in place than the effect
    says.  Where that is to be exact, another order of those that run has the effect, if any has.

    Parameters
    ----------
    order : one of ``orders``, the effects of the block
    runs : dimensions whose loops run there, in the sequence of those that no effect mentions
    """
    loops = [*(dim for dim in runs if dim not in order.permutation), *order.permutation]
    loops = [dim for dim in loops if dim in runs]
    if not order.exact or len(loops) < 2:
        return loops
    owned = {tensor.name: tensor.dims for tensor in operator.tensors}
    slides: dict[str, set[str]] = {name: set() for name in owned}
    for other in orders:
        for name, dim in other.slides.items():
            slides[name].update(() if dim is None else (dim,))
    sliding = {name: frozenset(dims) for name, dims in slides.items()}

    def has_effect(own: OrderClass) -> bool:
        return all(
            own.reused[name] == order.reused[name].intersection(loops)
            and (own.slides[name] == slide or (slide is not None and slide not in loops))
            for name, slide in order.slides.items()
        )

    if has_effect(_effect(owned, loops, sliding)):
        return loops
    structure = tuple(owned.items()), tuple(loops), tuple(sliding.items())
    for own in _effects(*structure, frozenset(owned)):
        if has_effect(own):
            ends = [dim for dim in order.ends if dim in loops]
            return [*(dim for dim in own.permutation if dim not in ends), *ends]
    return loops
