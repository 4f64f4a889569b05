"""What a user may demand of a mapping: caps on metrics, pinned or forbidden factors, orders, dataflows.

Written as one line each (``--constraint``, repeatable):

==============================  ==================================================================
``cycles<=1e6``                 a cap on ``energy`` (pJ), ``cycles`` or ``edp``
``utilization>=0.8``            iterations per cycle over the number of PEs
``tile(K@SPM)<=64``             the tile of a dimension that a level holds
``trips(C@DRAM)=1``             iterations of the dimension's loop at a level
``spatial(K)=16``               instances that the dimension is spread over; ``spatial(K@x)`` on one axis
``spatial=C,K``                 only these dimensions may be spread
``stationary@SPM=O``            the tensor that a level's loop order keeps in place
==============================  ==================================================================

A name that differs from a known one in case alone is that one.  A name that nothing has is an error.
"""

from __future__ import annotations

import operator as op
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.formulation.mapping.demand import (
    Demand,
    Layers,
    fitted,
    narrowed,
    placed,
    read_demand,
    shared,
    unknown,
)
from tilewright.formulation.mapping.nest import Block, loop_hosts
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<=": op.le,
    ">=": op.ge,
    "==": op.eq,
    "=": op.eq,
    "!=": op.ne,
}


@dataclass(frozen=True, slots=True)
class MetricCap:
    """``metric <= limit`` (or a floor on utilization)."""

    text: str
    metric: str
    limit: Fraction


@dataclass(frozen=True, slots=True)
class TileRule:
    """A comparison on the tile sizes of one dimension.

    Parameters
    ----------
    hosts : per memory level, the level that its temporal loops count as (`loop_hosts`)
    """

    text: str
    what: str
    dim: str
    site: str | None
    compare: str
    number: int
    hosts: tuple[int, ...]

    def holds(
        self, tiles: Sequence[NDArray[np.int64]], blocks: Sequence[Block], engine: Engine
    ) -> NDArray[np.bool_]:
        """Row by row, for the tile sizes of the dimension at every boundary."""
        names = [level.name for level in engine.levels]
        value = np.ones_like(tiles[0])
        levels = [self.hosts[block.level] if block.is_temporal else block.level for block in blocks]
        if self.what == "tile":  # what the first loops inside the level's stores walk through
            level = names.index(str(self.site))
            value = tiles[next((i for i, at in enumerate(levels) if at >= level), len(blocks))]
        for index, block in enumerate(blocks):
            trips = -(-tiles[index] // tiles[index + 1])
            if block.axis is None:
                counted = self.what == "trips" and names[levels[index]] == self.site
            else:
                counted = self.what == "spatial" and self.site in (None, block.axis.name)
            if counted:
                value = value * trips
        return np.asarray(_COMPARE[self.compare](value, self.number), dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class OrderRule:
    """A level's loops keep one tensor in place."""

    text: str
    level: str
    tensor: str


@dataclass(frozen=True)
class Constraints:
    """All demands of a user, parsed and checked against an operator and an engine."""

    caps: tuple[MetricCap, ...] = ()
    tiles: tuple[TileRule, ...] = ()
    orders: tuple[OrderRule, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """In canonical form, each once, in a reproducible sequence."""
        rules: list[MetricCap | TileRule | OrderRule] = [*self.caps, *self.tiles, *self.orders]
        return tuple(sorted({rule.text for rule in rules}))

    def row_filters(
        self, blocks: Sequence[Block], engine: Engine
    ) -> list[Callable[[Mapping[str, Sequence[NDArray[np.int64]]]], NDArray[np.bool_]]]:
        """The tile rules as predicates over tables of tile sizes."""

        def filter_of(
            rule: TileRule,
        ) -> Callable[[Mapping[str, Sequence[NDArray[np.int64]]]], NDArray[np.bool_]]:
            def keep(tiles: Mapping[str, Sequence[NDArray[np.int64]]]) -> NDArray[np.bool_]:
                if rule.dim in tiles:
                    return rule.holds(tiles[rule.dim], blocks, engine)
                return np.ones(len(next(iter(tiles.values()))[0]), dtype=np.bool_)

            return keep

        return [filter_of(rule) for rule in self.tiles]


def parse_constraints(texts: Sequence[str], operator: Operator, engine: Engine) -> Constraints:
    """Parse constraint lines, each of them once.

    Raises
    ------
    InputError : naming the line and what was expected, for one that cannot be read or that names a level,
        axis, dimension or tensor which engine and operator do not have
    """
    demands: dict[str, Demand] = {}
    for text in texts:
        demand = placed(read_demand(text), engine)
        found = fitted(demand, operator)
        if isinstance(found, str):
            raise unknown(demand, found, [operator])
        demands.setdefault(found.text, found)
    caps: list[MetricCap] = []
    tiles: list[TileRule] = []
    orders: list[OrderRule] = []
    hosts = loop_hosts(operator, engine)
    for text, demand in demands.items():
        match demand.kind:
            case "metric":
                caps.append(MetricCap(text, demand.names[0], demand.number))
            case "only":
                barred = [dim for dim in operator.bounds if dim not in demand.names]
                tiles += [TileRule(text, "spatial", dim, None, "=", 1, hosts) for dim in barred]
            case "stationary":
                orders.append(OrderRule(text, str(demand.site), demand.names[0]))
            case what:
                [dim] = demand.names
                number = demand.number.numerator
                tiles.append(TileRule(text, what, dim, demand.site, demand.compare, number, hosts))
    return Constraints(tuple(caps), tuple(tiles), tuple(orders))


def applicable(texts: Sequence[str], operator: Operator, engine: Engine) -> tuple[str, ...]:
    """The lines that say something about an operator, in canonical form, each once, sorted.

    Of lines for a whole network, those on dimensions or tensors that the operator lacks are left out;
    `network_constraints` makes sure that some layer has them.

    Raises
    ------
    InputError : for a line that cannot be read, and for an unknown level or axis
    """
    found = {one.text for text in texts for one in narrowed(placed(read_demand(text), engine), operator)}
    return tuple(sorted(found))


def network_constraints(
    texts: Sequence[str], layers: Layers, engine: Engine
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lines for the layers of a call in canonical form, each once and sorted, and what a user should know.

    Parameters
    ----------
    layers : name and operator of each

    Returns
    -------
    The lines; and a note for each that names what only some of the layers have

    Raises
    ------
    InputError : as `parse_constraints`, for a name that none of the layers has
    """
    demands = [shared(placed(read_demand(text), engine), layers) for text in texts]
    found = {demand.text: note for demand, note in demands}
    return tuple(sorted(found)), tuple(note for _, note in sorted(found.items()) if note is not None)
