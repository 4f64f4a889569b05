"""The choice of one way for each tensor of a tree, so that residents fit together and the sum is the least.

All costs are whole numbers: pJ times the denominators of the machine's energies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tilewright.solvers.mapping.fused.trees.turn_engine import Homes, Rooms
from tilewright.workloads.mapping.operator import Role


@dataclass(frozen=True, slots=True)
class Option:
    """One way of a tensor to its turns.

    Parameters
    ----------
    traffic, inside : at least, of the resident's tiles and of its layer's turns
    level, place, bits : where it is resident and the room that it takes; level 0 for a streamed tensor
    around : indices of the layers in whose turns it takes room
    """

    traffic: int
    inside: int
    level: int
    place: int | None
    bits: int
    around: tuple[int, ...]

    @property
    def least(self) -> int:
        """Of both."""
        return self.traffic + self.inside

    def replaces(self, other: Option) -> bool:
        """Whether it costs and takes no more than another one in the same level, for no more layers."""
        return (
            self.level == other.level
            and self.traffic <= other.traffic
            and self.bits <= other.bits
            and set(self.around) <= set(other.around)
        )


def undominated(options: Iterable[Option]) -> tuple[Option, ...]:
    """Those that no other one replaces, the least first."""
    best: list[Option] = []
    for option in sorted(options, key=lambda option: (option.least, option.bits, len(option.around))):
        if not any(other.replaces(option) for other in best):
            best.append(option)
    return tuple(best)


@dataclass(frozen=True)
class RoomLayer:
    """A layer of a tree.

    Parameters
    ----------
    fixed : what its turns take whatever is resident
    homes : where the roles start whose tensors are passed on
    tensors : from outside the group, each with its role and its ways
    """

    fixed: int
    homes: dict[Role, int]
    tensors: tuple[tuple[Role, tuple[Option, ...]], ...]


_Sums = tuple[int, int, int]
"""Of the layers before, the same with a layer's residents, and of its turns."""


@dataclass
class RoomChoice:
    """The search of one tree.

    Parameters
    ----------
    layers : of the tree
    rooms : per layer, what homes leave
    floors : per layer, what it takes at least with its residents
    known : what a layer's turns are known to take at least, for the levels where its roles start; ``None``
        where nothing fits
    """

    layers: Sequence[RoomLayer]
    rooms: Sequence[Rooms]
    floors: Sequence[int]
    known: Callable[[int, Homes], int | None]
    _most: int | None = None
    _chosen: tuple[Homes, ...] | None = None
    _rest: list[list[int]] = field(default_factory=list)

    def least(self, most: int | None) -> tuple[int, tuple[Homes, ...]] | None:
        """The least sum, and where each layer's roles start; ``None`` where none is less than ``most``."""
        self._most = most
        self._left = [list(rooms) for rooms in self.rooms]
        after = 0
        for layer, floor in zip(reversed(self.layers), reversed(self.floors), strict=True):
            rest = [after]
            for _, options in reversed(layer.tensors):
                rest.append(rest[-1] + options[0].least)
            after += max(floor, rest[-1] - after + layer.fixed)
            self._rest.append(rest[::-1])
        self._rest.reverse()
        self._layer(0, 0, ())
        return None if self._chosen is None or self._most is None else (self._most, self._chosen)

    def _layer(self, at: int, least: int, chosen: tuple[Homes, ...]) -> None:
        """Go on with the next layer, with the costs of those before."""
        if at == len(self.layers):
            self._most, self._chosen = least, chosen
            return
        layer = self.layers[at]
        self._tensor(at, 0, (least, least, layer.fixed), layer.homes, chosen)

    def _tensor(
        self, at: int, number: int, sums: _Sums, homes: dict[Role, int], chosen: tuple[Homes, ...]
    ) -> None:
        """Choose a way for one more tensor of a layer.

        Parameters
        ----------
        at, number : the layer, and which of its tensors
        sums : of the layers before, the same with this layer's residents, and of this layer's turns
        homes : where its roles start
        chosen : the same for the layers before
        """
        tensors, (before, least, inside), rest = self.layers[at].tensors, sums, self._rest[at]
        if number == len(tensors):
            self._settle(at, sums, homes, chosen)
            return
        role, options = tensors[number]
        for option in options:
            if self._most is not None and least + inside + option.least + rest[number + 1] >= self._most:
                return
            if homes.get(role, option.level) == option.level and self._take(option):
                further = before, least + option.traffic, inside + option.inside
                self._tensor(at, number + 1, further, homes | {role: option.level}, chosen)
                self._give_back(option)

    def _settle(self, at: int, sums: _Sums, homes: dict[Role, int], chosen: tuple[Homes, ...]) -> None:
        """Count what is known of a layer's turns, when it is decided where its roles start."""
        starts = tuple(sorted((role, home) for role, home in homes.items() if home))
        known = self.known(at, starts)
        if known is None:
            return
        before, residents, inside = sums
        least = max(before + self.floors[at], residents + max(inside, known))
        if self._most is None or least + self._rest[at][-1] < self._most:
            self._layer(at + 1, least, (*chosen, starts))

    def _take(self, option: Option) -> bool:
        """Take an option's room, if there is as much."""
        place = option.place
        if place is None:
            return True
        for layer in option.around:
            room = self._left[layer][place]
            if room is not None and room < option.bits:
                return False
        self._move(option, -option.bits)
        return True

    def _give_back(self, option: Option) -> None:
        if option.place is not None:
            self._move(option, option.bits)

    def _move(self, option: Option, bits: int) -> None:
        assert option.place is not None
        for layer in option.around:
            room = self._left[layer][option.place]
            if room is not None:
                self._left[layer][option.place] = room + bits
