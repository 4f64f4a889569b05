"""Partitions of layers over their tiles that are not the best of all: drawn at random, or learned.

Both take the place of the intra-layer engine, which counts the whole menu of a leaf and knows its best row.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log
from typing import Any

import numpy as np

from tilewright.formulation.scheduling.tiled.set.leaf.intra_layer import IntraLayerEngine
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_cost import LeafCost
from tilewright.formulation.scheduling.tiled.set.leaf.menus import Menu
from tilewright.formulation.scheduling.tiled.set.leaf.statements import LeafStatement
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.foundation.arrays import Indices
from tilewright.heuristics.boosted_trees import LEAST, Tuning


class _Chosen(IntraLayerEngine):
    """An engine in the place of a closed form's own."""

    def __init__(self, form: ClosedForm, seed: int) -> None:
        super().__init__(
            form.network, form.machine, form.costs, form.rules, form.energy_power, form.delay_power
        )
        self.random, self.seed = np.random.default_rng(seed), seed


class DrawnPartitions(_Chosen):
    """The best of a part of each leaf's partitions, drawn at random; further parts where none of it fits.

    Parameters
    ----------
    part : of the partitions that is looked at
    """

    def __init__(self, form: ClosedForm, seed: int, part: float) -> None:
        super().__init__(form, seed)
        self.part = part

    def best(self, layer: int, stated: LeafStatement, **run: Any) -> LeafCost | None:
        """The best of the first part in which any fits."""
        count = len(stated.menu.partitions)
        if not count:
            return None
        parts = max(1, min(count, round(1 / self.part)))
        for rows in np.array_split(self.random.permutation(count), parts):
            leaf_cost = super().best(layer, stated.part(rows), **run)
            if leaf_cost is not None:
                return leaf_cost
        return None


class LearnedPartitions(_Chosen):
    """The best partition that annealing guided by boosted trees meets, leaf by leaf.

    Parameters
    ----------
    iterations, batch : batches of a leaf, and partitions measured in each

    Attributes
    ----------
    stop : whether the time is up; leaves that begin afterwards measure one batch
    """

    def __init__(self, form: ClosedForm, seed: int, iterations: int, batch: int) -> None:
        super().__init__(form, seed)
        self.iterations, self.batch = iterations, batch
        self.stop: Callable[[], bool] = lambda: False
        self._near: dict[bytes, list[Indices]] = {}

    def best(self, layer: int, stated: LeafStatement, **run: Any) -> LeafCost | None:
        """Measure partitions in batches; the best of them."""
        menu, known = stated.menu, dict[int, LeafCost | None]()
        count, measured = len(menu.partitions), super().best
        if not count:
            return None
        near = self._neighbours(menu)

        def value(row: int) -> float:
            known[row] = leaf_cost = measured(layer, stated.part(np.array([row], dtype=np.intp)), **run)
            return inf if leaf_cost is None else log(max(self._value(leaf_cost), LEAST))

        seen = np.log2(menu.rows)  # shares and steps, all of them positive
        Tuning(
            draw=lambda number: self.random.permutation(count)[None, :number],
            move=lambda rows: np.array([[self._moved(near[row]) for row in rows[0]]]),
            features=lambda rows: seen[rows[0]],
            measure=lambda rows: np.array([value(int(row)) for row in rows[0]]),
            stop=lambda: bool(known) and self.stop(),
            batch=self.batch,
            seed=self.seed,
        ).run(self.iterations)
        return min((cost for cost in known.values() if cost is not None), key=self._value, default=None)

    def _moved(self, rows: Indices) -> int:
        """One of some partitions."""
        return int(rows[int(self.random.random() * len(rows))])

    def _value(self, leaf_cost: LeafCost) -> float:
        """The objective of a leaf."""
        prices = self.prices
        value: float = leaf_cost.energy**prices.energy_power * leaf_cost.cycles**prices.delay_power
        return value

    def _neighbours(self, menu: Menu) -> list[Indices]:
        """Per partition those of equal shares in another order, and those that move a factor between two
        dimensions; itself where there are none.
        """
        key = menu.rows.tobytes()
        if key not in self._near:
            shares = menu.rows[:, :4]
            differ = (shares[:, None] != shares).sum(axis=2)
            np.fill_diagonal(differ, 4)
            close = [np.flatnonzero(row <= 2) for row in differ]
            self._near[key] = [rows if len(rows) else np.array([row]) for row, rows in enumerate(close)]
        return self._near[key]
