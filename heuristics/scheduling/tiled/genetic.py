"""Sizes of atoms by a genetic search, with which Atomic Dataflow compares its annealing (figure 5b).

An individual is a size for every layer.  As printed, its energy is the variance of the layers' cycles, the
same that algorithm 1 lowers; repaired it is the coefficient of variation over all atoms times the work and
traffic of all layers, so that balance is not bought with slow atoms.  The paper prints neither operators nor
parameters: here the best of some drawn at random are parents, a child takes every layer's size from either,
some layers then take a size near their own or any other, and the best individual always survives.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.halting import check
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.heuristics.scheduling.tiled.annealing import SizedLayer, energy_of, size_of, sized_layers


@dataclass(frozen=True, slots=True)
class Genetics:
    """Parameters of the genetic search.

    Parameters
    ----------
    printed : whether the energy is the variance of the layers' cycles; otherwise repaired
    generations, population : at most, and individuals in each
    rivals : individuals of which the best becomes a parent
    mutation : expected number of layers of a child that change
    """

    printed: bool = False
    generations: int = 60
    population: int = 40
    rivals: int = 3
    mutation: float = 2.0


def genetic_sizes(
    problem: TiledProblem,
    random_numbers: random.Random,
    rules: Genetics,
    *,
    room: float = 0.5,
    limits: Limits | None = None,
) -> tuple[AtomSize, ...]:
    """Per layer the size of atoms of the best individual.

    Parameters
    ----------
    room : part of the buffer's capacity that an atom may need; where none needs as little, all of it

    Raises
    ------
    InputError : for a layer whose least atom fits no buffer
    LimitReachedError : where limits strike on the way
    """
    layers = sized_layers(problem, room, limits)
    least = sum(float(menu.cost.min()) for menu in layers)

    def energy(picks: list[int]) -> float:
        check(limits)
        spread = energy_of(layers, picks, rules.printed)
        if rules.printed:
            return spread
        cost = sum(float(menu.cost[i]) for menu, i in zip(layers, picks, strict=True))
        return (0.1 + spread) * cost / least

    best = evolved(layers, energy, random_numbers, rules)
    return tuple(size_of(menu, i) for menu, i in zip(layers, best, strict=True))


def evolved(
    layers: list[SizedLayer],
    energy: Callable[[list[int]], float],
    random_numbers: random.Random,
    rules: Genetics,
) -> list[int]:
    """The individual of least energy, as a size's number per layer.

    Parameters
    ----------
    layers : sizes that each layer may take
    energy : of an individual
    random_numbers : behind all choices
    rules : of selection and mutation
    """
    states = [[_nearest_to(menu, random_numbers, layers) for menu in layers] for _ in range(rules.population)]
    ranked = sorted((energy(menu), menu) for menu in states)
    for _ in range(rules.generations):
        children = [ranked[0]]
        while len(children) < rules.population:
            mother, father = (
                min(random_numbers.sample(ranked, min(rules.rivals, len(ranked))))[1] for _ in range(2)
            )
            child = [a if random_numbers.random() < 0.5 else b for a, b in zip(mother, father, strict=True)]
            for i, menu in enumerate(layers):
                if random_numbers.random() < rules.mutation / len(layers):
                    child[i] = _mutated(child[i], len(menu.cycles), random_numbers)
            children.append((energy(child), child))
        ranked = sorted(children)
    return ranked[0][1]


def _nearest_to(layer: SizedLayer, random_numbers: random.Random, layers: list[SizedLayer]) -> int:
    """The size whose cycles are nearest to those of any size of any layer."""
    other = random_numbers.choice(layers)
    return layer.nearest(float(random_numbers.choice(other.cycles)))


def _mutated(pick: int, count: int, random_numbers: random.Random) -> int:
    """A neighbour in the order of cycles, or any size."""
    if random_numbers.random() < 0.5:
        return min(count - 1, max(0, pick + random_numbers.choice((-1, 1))))
    return random_numbers.randrange(count)
