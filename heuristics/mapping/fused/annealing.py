"""Simulated annealing over the trees of every group: shapes, tiles, orders, homes, halos and residents.

A worse tree is accepted with probability ``exp(-change / temperature)``, the change being that of the
logarithm of the energy.  Groups share the time that is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

from tilewright import __version__
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.fused.arena import FusionArena, Names, TreeChoice
from tilewright.formulation.method import Outcome
from tilewright.foundation.options import option

MEMBERS, WAYS = 24, 6
"""Numbers from which orders and homes, and ways of tensors, are drawn."""


@dataclass(frozen=True)
class Annealing:
    """One walker for each kind of group."""

    steps: int = option(150, "moves of the walker of each kind of group", low=1)
    hot: float = option(0.3, "first temperature, relative change of the energy", low=0)
    cold: float = option(0.003, "last temperature", low=0)

    name = "annealing"
    exact = False
    stochastic = True

    @property
    def version(self) -> str:
        return __version__

    def solve(self, arena: FusionArena) -> Outcome:
        """Anneal each kind of group once, small ones first."""
        kinds: dict[int, Names] = {}
        for names in arena.groups():
            if arena.shapes(names) and arena.alone(names) is not None:
                kinds.setdefault(arena.kind(names), names)
        for number, (kind, names) in enumerate(kinds.items()):
            mine = arena.limits.share(1 / (len(kinds) - number))
            self._walk(arena, names, Random(f"{arena.limits.seed} {kind}"), mine)
        return Outcome()

    def _walk(self, arena: FusionArena, names: Names, random: Random, limits: Limits) -> None:
        """Cool down once, or until a limit strikes; what does not fit is passed through on the way."""
        here, value = self._drawn(arena, names, random), None
        for step in range(self.steps):
            if limits.expired:
                return
            there = self._moved(arena, names, here, random)
            price = arena.price(names, there)
            if value is None or (price is not None and random.random() < self._chance(value, price, step)):
                here, value = there, price

    def _chance(self, value: Fraction, price: Fraction, step: int) -> float:
        """Metropolis' rule at the temperature of a step."""
        change = math.log(max(float(price), 1e-300)) - math.log(max(float(value), 1e-300))
        if change <= 0:
            return 1.0
        if self.hot <= 0 or self.cold <= 0:
            return 0.0
        return math.exp(-change / (self.hot * (self.cold / self.hot) ** (step / self.steps)))

    def _drawn(self, arena: FusionArena, names: Names, random: Random) -> TreeChoice:
        """Any tree."""
        shape = random.randrange(len(arena.shapes(names)))
        tiles = tuple(random.randrange(len(menu.tiles)) for menu in arena.menus(names, shape))
        return TreeChoice(shape, tiles, random.randrange(MEMBERS))

    def _moved(self, arena: FusionArena, names: Names, choice: TreeChoice, random: Random) -> TreeChoice:
        """A neighbour: mostly one tile a step further, else another order, way, or any other tree."""
        menus, draw = arena.menus(names, choice.shape), random.random()
        if draw < 0.6 and menus:
            place = random.randrange(len(menus))
            step = random.choice((-2, -1, 1, 2))
            tiles = [*choice.tiles]
            tiles[place] = min(max(tiles[place] + step, 0), len(menus[place].tiles) - 1)
            return replace(choice, tiles=tuple(tiles))
        if draw < 0.75:
            return replace(choice, member=random.randrange(MEMBERS))
        if draw < 0.9:
            ways = [*choice.ways] or [0] * arena.outside(names)
            ways[random.randrange(len(ways))] = random.randrange(WAYS)
            return replace(choice, ways=tuple(ways))
        return self._drawn(arena, names, random)
