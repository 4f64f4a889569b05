"""SET's annealing (section 4.2): all leaves under a root T cut at first, then one random operator a step.

``beta`` steps per layer; at step ``n`` of ``N`` the temperature is ``T0 (1 - n/N) / (1 + alpha n/N)``, and a
tree that costs more is taken with probability ``exp((c - c') / (c T))``.  Costs of leaves and of segments are
kept, so a step costs what it changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp
from random import Random

from tilewright.formulation.scheduling.tiled.set.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.tree import Node, chain
from tilewright.heuristics.scheduling.tiled.set.operators import random_step


@dataclass(frozen=True, slots=True)
class Cooling:
    """The paper's parameters (section 5.1.4).

    Parameters
    ----------
    start : temperature at first
    speed : alpha
    steps : beta, steps per layer
    """

    start: float = 0.07
    speed: float = 8.0
    steps: int = 100


def first_tree(form: ClosedForm) -> tuple[Node, float] | None:
    """All leaves under a root T cut, in the least number of groups that fits; with its value."""
    order = tuple(range(len(form.network)))
    for groups in range(1, form.batch + 1):
        if form.batch % groups == 0:
            tree = chain(order, form.batch, groups)
            cost = form.attempt(tree)
            if not isinstance(cost, str):
                return tree, form.value(cost.energy, cost.cycles)
    return None


def anneal(
    form: ClosedForm,
    begun: tuple[Node, float],
    cooling: Cooling,
    random: Random,
    stop: Callable[[], bool],
    found: Callable[[Node, float], None],
) -> tuple[Node, float]:
    """The best tree seen, with its value.

    Parameters
    ----------
    begun : tree and value to begin with
    found : told of every better tree
    """
    now, cost = begun
    best = begun
    steps = cooling.steps * len(form.network)
    for number in range(steps):
        if stop():
            break
        if number == steps * 9 // 10:
            now, cost = best
        made = random_step(now, form.network, random)
        if made is None:
            continue
        judged = form.attempt(made)
        if isinstance(judged, str):
            continue
        value = form.value(judged.energy, judged.cycles)
        passed = number / steps
        heat = cooling.start * (1 - passed) / (1 + cooling.speed * passed)
        if value <= cost or (heat > 0 and random.random() < exp((cost - value) / (cost * heat))):
            now, cost = made, value
            if value < best[1]:
                best = made, value
                found(made, value)
    return best


FIRST = 20
"""Steps per layer of the first of several annealings."""


def anneal_for(
    form: ClosedForm,
    begun: tuple[Node, float],
    random: Random,
    used: Callable[[], float],
    stop: Callable[[], bool],
    found: Callable[[Node, float], None],
) -> tuple[Node, float]:
    """Annealings one after the other, each from the best tree of the one before, as long as there is time.

    The temperature falls with the steps, so an annealing that the clock cuts short never cools down: steps
    are chosen by the pace of those before, so that one ends when the time does.

    Parameters
    ----------
    used : part of the time that has passed; where that never changes there is one annealing
    """
    steps, best = FIRST, begun
    while not stop():
        before = used()
        best = anneal(form, best, Cooling(steps=steps), random, stop, found)
        spent = used() - before
        if spent <= 0:
            break
        steps = max(FIRST, int(steps * (1 - used()) / spent))
    return best
