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
"""

from __future__ import annotations

import operator as op
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.formulation.mapping.nest import Block, loop_hosts
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.errors import InputError
from tilewright.workloads.mapping.operator import Operator

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<=": op.le,
    ">=": op.ge,
    "==": op.eq,
    "=": op.eq,
    "!=": op.ne,
}
_RULE = re.compile(
    r"(?P<what>tile|trips|spatial)\((?P<dim>\w+)(?:@(?P<site>[\w-]+))?\)(?P<compare><=|>=|==|=|!=)(?P<number>\d+)$"
)
_METRIC = re.compile(r"(?P<what>energy|cycles|edp|utilization)(?P<compare><=|>=)(?P<number>[\d.eE+-]+)$")
_ONLY = re.compile(r"spatial=(?P<dims>\w+(?:,\w+)*)$")
_ORDER = re.compile(r"stationary@(?P<level>[\w-]+)=(?P<tensor>\w+)$")


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
        """As written, in a reproducible sequence."""
        texts = [cap.text for cap in self.caps]
        texts += [rule.text for rule in self.tiles]
        texts += [rule.text for rule in self.orders]
        return tuple(sorted(texts))

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
    """Parse constraint lines; raises ``InputError`` naming the line and what was expected.

    Rules on dimensions or tensors that the operator does not have are left out, so that one command line
    can map a whole network.
    """
    caps: list[MetricCap] = []
    tiles: list[TileRule] = []
    orders: list[OrderRule] = []
    levels = [level.name for level in engine.levels]
    axes = [axis.name for level in engine.levels for axis in (level.fanout.axes if level.fanout else ())]
    hosts = loop_hosts(operator, engine)
    for text in texts:
        line = text.replace(" ", "")
        if match := _METRIC.match(line):
            caps.append(_metric(text, match))
        elif match := _ONLY.match(line):
            allowed = match["dims"].split(",")
            tiles += [
                TileRule(line, "spatial", d, None, "=", 1, hosts) for d in operator.bounds if d not in allowed
            ]
        elif match := _ORDER.match(line):
            _known(text, match["level"], levels, "level")
            if any(tensor.name == match["tensor"] for tensor in operator.tensors):
                orders.append(OrderRule(line, match["level"], match["tensor"]))
        elif match := _RULE.match(line):
            if match["what"] == "spatial":
                if match["site"] is not None:
                    _known(text, match["site"], axes, "axis")
            else:
                _known(text, match["site"], levels, "level")
            if match["dim"] in operator.bounds:
                tiles.append(
                    TileRule(
                        line,
                        match["what"],
                        match["dim"],
                        match["site"],
                        match["compare"],
                        int(match["number"]),
                        hosts,
                    )
                )
        else:
            raise InputError(
                "--constraint",
                None,
                f"cannot read {text!r}, expected such as cycles<=1e6, utilization>=0.5, tile(K@SPM)<=64, "
                "trips(C@DRAM)=1, spatial(K)=16, spatial=C,K or stationary@SPM=O",
            )
    return Constraints(tuple(caps), tuple(tiles), tuple(orders))


def _known(text: str, name: str | None, names: Sequence[str], kind: str) -> None:
    if name not in names:
        raise InputError("--constraint", text, f"unknown {kind} {name!r}, expected one of {', '.join(names)}")


def _metric(text: str, match: re.Match[str]) -> MetricCap:
    floor = match["what"] == "utilization"
    if (match["compare"] == ">=") != floor:
        raise InputError("--constraint", text, f"{match['what']} takes {'>=' if floor else '<='}")
    try:
        limit = Fraction(Decimal(match["number"]))
    except InvalidOperation:
        raise InputError("--constraint", text, f"expected a number, got {match['number']!r}") from None
    if limit <= 0 or (floor and limit > 1):
        raise InputError("--constraint", text, "expected a positive number" + (" up to 1" if floor else ""))
    return MetricCap(text, match["what"], limit)
