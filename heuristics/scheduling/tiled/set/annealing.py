"""SET's annealing (section 4.2): all leaves under a root T cut at first, then one random operator per step.

``beta`` steps per layer; at step ``n`` of ``N`` the temperature is ``T0 (1 - n/N) / (1 + alpha n/N)``, and a
tree that costs more is accepted with probability ``exp((c - c') / (c T))``.  Costs of leaves and of segments
are cached, so a step costs only what it changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp
from random import Random

from tilewright.formulation.scheduling.tiled.kapla.chain import loads_of
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Node, chain
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
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

    def accepts(self, value: float, cost: float, passed: float, random: Random) -> bool:
        """Whether an annealing goes on from what costs ``value`` instead of ``cost``.

        Parameters
        ----------
        value, cost : of the change, and before it
        passed : part of the annealing that has passed
        random : the only source of chance
        """
        heat = self.start * (1 - passed) / (1 + self.speed * passed)
        return value <= cost or (heat > 0 and random.random() < exp((cost - value) / (cost * heat)))


def first_tree(form: ClosedForm) -> tuple[Node, float] | None:
    """All leaves under a root T cut, in the least number of groups that fits; with its value."""
    order = tuple(range(len(form.network)))
    for groups in range(1, form.batch + 1):
        if form.batch % groups == 0:
            tree = chain(order, form.batch, groups)
            cost = form.attempt(tree)
            if not isinstance(cost, Unfit):
                return tree, form.value(cost.energy, cost.cycles)
    return None


def objective(form: ClosedForm, tree: Node) -> float | None:
    """The value of a tree; ``None`` where it does not fit.

    Energy and cycles of the children of the root add up, and nobody asks for the traffic of all of them.
    """
    in_turn = isinstance(tree, Cut) and tree.kind == "T"
    groups = tree.groups if in_turn else 1
    loads = loads_of(form, groups)
    energy, cycles = 0.0, 0
    for child in tree.children if in_turn else (tree,):
        cost = form.segment(child, loads)
        if isinstance(cost, Unfit):
            return None
        energy, cycles = energy + cost.energy, cycles + cost.cycles
    return form.value(energy * groups, cycles * groups)


def anneal(
    form: ClosedForm,
    begun: tuple[Node, float],
    cooling: Cooling,
    random: Random,
    stop: Callable[[], bool],
    notify: Callable[[Node, float], None],
    used: Callable[[], float] = lambda: 0.0,
    step: Callable[[Node, SetNetwork, Random], Node | None] = random_step,
) -> tuple[Node, float]:
    """The best tree seen, with its value.

    Parameters
    ----------
    begun : tree and value to begin with
    notify : called with every better tree
    used : part of the time that has passed; where that is more than the part of the steps, the temperature
        falls with it, so that an annealing that the clock ends has cooled down by then
    step : makes a random change of a tree; the paper's operators unless others are given
    """
    now, cost = begun
    best = begun
    steps = cooling.steps * len(form.network)
    last = False
    for number in range(steps):
        if stop():
            break
        passed = max(number / steps, used())
        if passed >= 1:
            break
        if passed >= LAST and not last:
            last, (now, cost) = True, best
        made = step(now, form.network, random)
        if made is None:
            continue
        value = objective(form, made)
        if value is None:
            continue
        if cooling.accepts(value, cost, passed, random):
            now, cost = made, value
            if value < best[1]:
                best = made, value
                notify(made, value)
    return best


LAST = 0.9
"""Part of an annealing from which on it goes on from the best tree."""

FOREVER = 10**6
"""Steps per layer of an annealing that only the clock ends."""
