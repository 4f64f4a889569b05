"""Layers that read each other, and the groups that may be fused: all of them, listed plainly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.workloads.mapping.operator import Operator


@dataclass(frozen=True)
class Linked:
    """The layers of a network and who waits for whom.

    Parameters
    ----------
    order : all layers, also those that are not mapped, in an order in which they can run
    operators : of those that are mapped
    waits : (producer, reader, how it reads); ``None`` for a link that does not know its axes
    outputs : layers whose results the network returns
    rows : (layer, axis of its result) along which every element of the result needs all others
    softmaxes : layers for which these are the rows of a softmax
    online_softmax : whether a softmax between two layers may be taken in parts
    """

    order: tuple[str, ...]
    operators: dict[str, Operator]
    waits: tuple[tuple[str, str, Reading | None], ...]
    outputs: frozenset[str]
    rows: frozenset[tuple[str, int]] = frozenset()
    softmaxes: frozenset[str] = frozenset()
    online_softmax: bool = False

    @cached_property
    def _reached(self) -> dict[str, frozenset[str]]:
        """Per layer, all that wait for it."""
        reached: dict[str, frozenset[str]] = {}
        for name in reversed(self.order):
            readers = {reader for producer, reader, _ in self.waits if producer == name}
            reached[name] = frozenset(readers).union(*(reached[reader] for reader in readers))
        return reached

    def groups(self, most: int) -> Iterator[tuple[str, ...]]:
        """Layers alone and all groups of linked ones between which no other layer stands.

        Parameters
        ----------
        most : layers at most
        """
        near: dict[str, set[str]] = {name: set() for name in self.operators}
        for producer, reader, reading in self.waits:
            if reading is not None and producer in near and reader in near:
                near[producer].add(reader)
                near[reader].add(producer)
        seen: set[frozenset[str]] = set()
        waiting = [frozenset({name}) for name in self.operators]
        while waiting:
            held = waiting.pop()
            if held not in seen:
                seen.add(held)
                if self._runs_as_one(held):
                    yield tuple(name for name in self.order if name in held)
                if len(held) < most:
                    around = {other for name in held for other in near[name]} - held
                    waiting += [held | {other} for other in around]

    def _runs_as_one(self, held: frozenset[str]) -> bool:
        between = [
            name
            for name in self.order
            if name not in held
            and any(name in self._reached[own] for own in held)
            and self._reached[name] & held
        ]
        inside = [reading for producer, reader, reading in self.waits if {producer, reader} <= held]
        return not between and None not in inside

    def group(self, names: tuple[str, ...]) -> FusedGroup:
        """Some layers as a group; raises ``InputError`` where an operand is not what it reads."""
        readings = [
            reading
            for producer, reader, reading in self.waits
            if reading is not None and producer in names and reader in names
        ]
        leaving = set(self.outputs & set(names))
        leaving |= {p for p, reader, _ in self.waits if p in names and reader not in names}
        return FusedGroup(
            tuple((name, self.operators[name]) for name in names),
            tuple(readings),
            frozenset(leaving),
            frozenset(row for row in self.rows if row[0] in names),
            self.softmaxes & set(names),
            self.online_softmax,
        )
