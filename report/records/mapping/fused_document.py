"""The document ``tilewright.fused/1``: which layers of a network are fused, and the proof.

Every group has its tree, from which its value follows; ``unfused`` has every layer alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from tilewright.report.records.claims import ExactText, StatusName
from tilewright.report.records.head import Document
from tilewright.report.records.mapping.document import FactorsName, StorageName
from tilewright.report.records.mapping.engine import ArchRecord
from tilewright.report.records.mapping.operator import OperatorRecord, Record


class FusedReading(Record):
    """An operand that is another layer's result."""

    layer: str
    axes: list[int] = Field(description="per axis of the operand, the axis of the result")
    offsets: list[int] = Field(description="per axis, elements of padding before the result's first one")
    rows: list[int] = Field(
        default_factory=list,
        description="axes of the operand along which what is applied in place needs all elements",
    )
    softmax: bool = Field(True, description="whether that is a softmax, where there are rows")


class FusedLayer(Record):
    """A layer of a group."""

    name: str
    operator: OperatorRecord
    reads: dict[str, FusedReading] = Field(default_factory=dict)
    rows: list[int] = Field(
        default_factory=list, description="axes of the result along which each element needs all others"
    )
    softmax: bool = Field(True, description="whether the layer is a softmax, where there are rows")

    def stated(self) -> dict[str, Any]:
        """What it states, as plain data, without rows where there are none, or what all rows are."""
        data = self.model_dump()
        for part in (data, *data["reads"].values()):
            if not part["rows"]:
                del part["rows"]
            if "rows" not in part or part["softmax"]:
                del part["softmax"]
        return data


class FusedValue(Record):
    """A value of the objective with its bound, energy in pJ; exact ones are what the search compares."""

    value: float | None
    value_exact: ExactText | None
    bound: float
    bound_exact: ExactText


class FusedUnfused(FusedValue):
    """The layers of a group one by one."""

    tree: list[Any] | None = Field(
        default=None,
        description="their mappings; none for one layer alone, and where one of several has no mapping",
    )


class FusedGroupRecord(FusedValue):
    """Layers that run as one, or one layer alone."""

    layers: list[FusedLayer] = Field(min_length=1)
    leaving: list[str] = Field(description="layers whose results are needed outside the group")
    status: StatusName
    gap: float | None
    unfused: FusedUnfused = Field(description="the same layers one by one")
    tree: list[Any] | None = Field(description="nodes as in a fused mapping file")
    metrics: dict[str, Any] | None


class FusedBeside(Record):
    """A legal mapping from outside the space with which the search was to begin; no claim depends on it."""

    layers: list[FusedLayer] = Field(min_length=1)
    leaving: list[str] = Field(description="as in groups")
    value: float = Field(description="of these layers")
    value_exact: ExactText
    reason: str = Field(description="why it lies outside")
    source: str
    tree: list[Any]
    metrics: dict[str, Any]


class FusedTry(FusedValue):
    """A group that was searched, used or not."""

    layers: list[str] = Field(min_length=2)
    used: bool
    reason: str = Field(description="why it is not fused, where no mapping takes less than its parts")
    skeletons: int = Field(description="trees without residents and mappings of turns")
    opened: int
    solves: int = Field(description="layers solved on engines with less room")
    wall_s: float


class FusedUnlinked(Record):
    """A layer that reads another one, and why the two cannot be fused."""

    layer: str
    reader: str
    operand: str
    reason: str


class FusedLink(Record):
    """A result that a layer reads."""

    layer: str
    reader: str
    operand: str
    axes: list[int] | None = Field(
        description="per axis of the operand, the axis of the result; null where that is not known"
    )
    offsets: list[int] = Field(default_factory=list, description="as in reads")
    rows: list[int] = Field(default_factory=list, description="as in reads")
    softmax: bool = Field(True, description="as in reads")


class FusedGraph(Record):
    """Which layers wait for which, also those that are not mapped."""

    order: list[str] = Field(description="all layers, each behind those that it reads")
    links: list[FusedLink]
    outputs: list[str] = Field(description="layers whose results the network returns")

    def stated(self) -> dict[str, Any]:
        """What it states, as plain data, without what all rows are."""
        data = self.model_dump()
        for link in data["links"]:
            if link["softmax"]:
                del link["softmax"]
        return data


class FusedSpace(Record):
    """The space that the claims are about."""

    most: int = Field(description="layers of a group at most; linked, and no other layer stands between them")
    home: str | None = Field(description="the only level that may be a home")
    shared_tiles: Literal["divisors", "trip-counts"] = Field(
        description="of shared loops: trip-counts are the least tiles for all numbers of trips, in groups "
        "without windows that have few of them, and divisors in others"
    )
    most_turns: int
    factors: FactorsName | None
    storage: StorageName
    online_softmax: bool = Field(
        False, description="whether shared loops may cut the rows of a softmax between two layers"
    )

    def stated(self) -> dict[str, Any]:
        """What it states, as plain data, without permissions that are not given."""
        data = self.model_dump()
        return data if self.online_softmax else {k: v for k, v in data.items() if k != "online_softmax"}


class FusedSettings(Record):
    """How the search was asked to run."""

    time_limit_s: float | None
    gap: float
    threads: int
    seed: int
    solver: str = Field("auto", description="auto for the search that proves, or a heuristic")


class FusedLine(Record):
    """Energy in pJ and cycles at some price of each, together, take so much at least."""

    price: ExactText = Field(description="pJ for each cycle")
    least: ExactText


class FusedTotals(FusedValue):
    """The whole network."""

    infeasible: bool = Field(
        False, description="whether it is proven that every cover has a group without a mapping"
    )
    gap: float | None
    unfused_value: float | None
    unfused_value_exact: ExactText | None
    unfused_bound: float
    unfused_bound_exact: ExactText
    energy_pj: float | None
    cycles: int | None
    macs: int | None
    lines: list[FusedLine] = Field(
        default_factory=list, description="from which the bound of a product of energy and cycles follows"
    )
    fewest_cycles: ExactText = Field("0", description="of any mapping of the network")


def fused_hash(
    model: str,
    batch: int,
    arch: ArchRecord,
    asked: tuple[str, FusedSpace],
    layers: Iterable[FusedLayer],
    graph: FusedGraph | None = None,
) -> str:
    """SHA-256 of everything that was asked.

    Parameters
    ----------
    model, batch : the network's name and batch
    arch : the machine, by its hash
    asked : the objective, and the space that was searched
    layers : with what they read, in any sequence
    graph : who waits for whom, where that is known
    """
    stated = sorted((layer.stated() for layer in layers), key=lambda layer: str(layer["name"]))
    objective, space = asked
    content: list[Any] = [model, batch, arch.hash, objective, space.stated(), stated]
    if graph is not None:
        content.append(graph.stated())
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


class FusedDocument(Document[Literal["tilewright.fused/1"], Literal["map"]]):
    """The whole document."""

    complete: bool = Field(description="whether the search ended by itself")
    model: str
    batch: int
    arch: ArchRecord
    cost_model: str
    objective: str
    space: FusedSpace
    input_hash: str = Field(description="of all that was asked")
    settings: FusedSettings
    graph: FusedGraph | None = Field(None, description="of which groups and covers are made")
    groups: list[FusedGroupRecord] = Field(min_length=1)
    tried: list[FusedTry]
    unlinked: list[FusedUnlinked] = Field(
        default_factory=list, description="layers that read each other and cannot be fused"
    )
    beside: list[FusedBeside] = Field(
        default_factory=list, description="mappings from outside the space that were offered"
    )
    totals: FusedTotals
    wall_s: float
    versions: dict[str, str]
