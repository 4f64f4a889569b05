"""The trade-off of energy and makespan: half-planes that hold every schedule, and the least product."""

from __future__ import annotations

import math
from fractions import Fraction

from tilewright.formulation.scheduling.herald.problem import ScheduleObjective
from tilewright.formulation.scheduling.herald.search import ScheduleSearch


class Front:
    """Half-planes ``energy_weight · E + time_weight · T >= least``, all weights non-negative.

    Parameters
    ----------
    energy, makespan : lower bounds of either alone
    """

    def __init__(self, energy: Fraction, makespan: Fraction) -> None:
        self.energy = energy
        self.makespan = makespan
        self._planes: dict[Fraction, Fraction] = {}  # pJ at no cycles, by pJ per cycle

    def add(self, energy_weight: Fraction, time_weight: Fraction, least: Fraction) -> None:
        """Every schedule meets this half-plane; of parallel ones the farthest is kept."""
        if energy_weight <= 0:
            return
        slope, height = time_weight / energy_weight, least / energy_weight
        self._planes[slope] = max(height, self._planes.get(slope, height))

    def least_energy(self, makespan: Fraction) -> Fraction:
        """No schedule of that makespan takes less."""
        planes = (height - slope * makespan for slope, height in self._planes.items())
        return max([self.energy, *planes])

    def least_product(self) -> tuple[Fraction, Fraction]:
        """A lower bound of energy times makespan, and the makespan at which it lies.

        The least energy is convex and piecewise linear in the makespan; on each piece the product is
        concave, so its minimum is at a corner.
        """
        return min((corner * self.least_energy(corner), corner) for corner in self._corners())

    def least_cost(self, price: Fraction) -> Fraction:
        """A lower bound of the makespan plus energy at its price, in cycles per pJ; at a corner, too."""
        return min(corner + price * self.least_energy(corner) for corner in self._corners())

    def _corners(self) -> set[Fraction]:
        """Makespans at which two of the lines meet, and the least one."""
        corners = {self.makespan}
        lines = [(height, -slope) for slope, height in self._planes.items()] + [(self.energy, Fraction(0))]
        for index, (height, slope) in enumerate(lines):
            for other_height, other_slope in lines[index + 1 :]:
                if slope != other_slope:
                    corner = (other_height - height) / (slope - other_slope)
                    if corner > self.makespan:
                        corners.add(corner)
        return corners


def raise_cost(search: ScheduleSearch, front: Front, price: Fraction, least: Fraction, source: str) -> None:
    """Report that no schedule's makespan plus energy at a price costs less.

    Parameters
    ----------
    search : of a makespan, for which energy has no price, or a product
    front : what is known of energy and makespan; raised
    price : cycles per pJ
    least : cycles
    source : who says so
    """
    if search.problem.objective is ScheduleObjective.MAKESPAN:
        front.makespan = max(front.makespan, Fraction(math.ceil(least)))
    else:
        front.add(price, Fraction(1), least)
    raise_key(search, front, source)


def raise_key(search: ScheduleSearch, front: Front, source: str) -> None:
    """Report what a front says of a makespan or a product."""
    by_makespan = search.problem.objective is ScheduleObjective.MAKESPAN
    search.raise_bound(front.makespan if by_makespan else front.least_product()[0], source)
