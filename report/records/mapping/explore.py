"""The document ``tilewright.explore/1``: a design space, what is known of every design, and the best one.

The best design stands in it as a whole ``tilewright.result/1``, with the mapping of every layer, so that the
file alone is evidence of its value.  ``schemas/explore-1.schema.json`` says the same as JSON Schema.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any, Literal

from pydantic import Field

from tilewright.formulation.network_objective import NetworkObjective, parse_network_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.variations import Variation
from tilewright.report.records.claims import ExactText, KeyedRecord, Number
from tilewright.report.records.head import Document
from tilewright.report.records.mapping.document import FactorsName, ResultDocument
from tilewright.report.records.mapping.operator import Record
from tilewright.report.records.mapping.phases import PhasesRecord

DesignStatus = Literal["solved", "discarded", "infeasible", "refused", "feasible", "open"]
RuleName = Literal["", "compulsory", "carried", "capped", "searched"]


def plain_data(value: Any) -> Any:
    """Data of a machine file as JSON has it; decimals as text, which a machine file reads alike."""
    if isinstance(value, dict):
        return {str(key): plain_data(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(entry) for entry in value]
    return str(value) if isinstance(value, Decimal) else value


class VariationRecord(Record):
    """An axis of the design space."""

    fields: list[str] = Field(min_length=1, description="paths of fields that change together")
    values: list[list[Any]] = Field(
        min_length=1, description="per point a value for each field, as in a file"
    )

    @classmethod
    def of(cls, axis: Variation) -> VariationRecord:
        """The record of an axis."""
        return cls(fields=[*axis.fields], values=[[*map(plain_data, row)] for row in axis.values])

    def build(self, where: str) -> Variation:
        """The axis; raises ``InputError`` where a point lacks a value."""
        if any(len(row) != len(self.fields) for row in self.values):
            raise InputError(where, "vary", f"expected a value for each of {':'.join(self.fields)}")
        return Variation(tuple(self.fields), tuple(map(tuple, self.values)))


class ExploreSettings(Record):
    """How the exploration was asked to run."""

    solver: str
    gap: float = Field(ge=0, lt=1, description="at which the search of a layer may end, between values")
    time_limit_s: float | None
    layer_limit_s: float
    every: bool = Field(description="whether every design was searched, discarded ones included")
    values: bool = Field(
        default=False, description="whether discarded designs got a value too, from a short search each"
    )
    each_layer: bool = Field(description="whether the best design of every layer alone was asked for")
    against: str | None = Field(description="the cost whose front with the objective was asked for")
    caps: list[str] = Field(
        default_factory=list, description="what designs may have at most, such as `area<=10mm2`"
    )


class ExploredLayer(Record):
    """A layer of the network."""

    name: str
    names: list[str] = Field(min_length=1)
    count: int = Field(ge=0)
    macs: int
    runs: int = Field(default=1, ge=0, description="as of the layers of a result")
    least_runs: int | None = Field(default=None, ge=0, description="as of the layers of a result")

    @property
    def least_count(self) -> int:
        """How often it counts in a bound."""
        return self.count if self.least_runs is None else len(self.names) * self.least_runs


class DesignRecord(KeyedRecord):
    """What is known of one design."""

    index: int = Field(ge=0)
    fields: dict[str, Any]
    status: DesignStatus = Field(
        description="solved: value proven; discarded: bound above the best value (of those that cost no "
        "more); infeasible: a layer has no mapping; refused: no machine; feasible: value not "
        "proven; open: not known"
    )
    value: Number | None = Field(
        description="the objective of total energy and total cycles; of sum-edp and the like the sum of the "
        "layers' objectives, each as often as the network has it"
    )
    value_exact: ExactText | None
    bound: Number | None = Field(description="no mappings give this design a smaller value")
    bound_exact: ExactText | None
    energy_pj: Number | None
    cycles: int | None
    sum_of_layers: Number | None = Field(
        default=None, description="sum of the layers' own objectives, if the value is another figure"
    )
    pes: int | None
    capacity_bytes: Number | None = Field(description="of all its memories but unbounded ones")
    cost: Number | None = Field(default=None, description="the cost of settings.against")
    proven_layers: int = Field(ge=0, description="layers whose optimum here is known")
    rule: RuleName = Field(
        default="",
        description="rule that discarded it: compulsory traffic, a bound carried from another design, a "
        "search below a cap, or the optima of some of its layers",
    )
    carried_from: int | None = Field(
        default=None, description="the design that most of a carried bound is from"
    )
    message: str = ""


class BestDesign(Record):
    """The best design."""

    index: int
    fields: dict[str, Any]
    value: Number
    value_exact: ExactText
    bound: Number = Field(description="no design of the space has a smaller value")
    bound_exact: ExactText
    gap: float
    optimal: bool
    result: ResultDocument


class LayerBest(Record):
    """The best design for one layer alone."""

    layer: str
    index: int
    fields: dict[str, Any]
    value: Number
    value_exact: ExactText
    bound: Number
    bound_exact: ExactText
    optimal: bool


class ExploreFront(Record):
    """Designs that no other one equals or beats in both value and cost."""

    against: str
    complete: bool = Field(description="whether it is proven that no design is missing")
    designs: list[int] = Field(description="indices, in increasing order of cost")


class ExploreTotals(Record):
    """How the space was explored."""

    designs: int
    statuses: dict[DesignStatus, int]
    rules: dict[RuleName, int] = Field(description="discarded designs by rule")
    unsearched: int = Field(
        description="designs that are machines and of which no layer was searched for a proof"
    )
    cells: dict[str, int] = Field(
        description="layers on designs: searched, read from the store, shared, carried (a mapping fits)"
    )


class ExploreDocument(Document[Literal["tilewright.explore/1"], Literal["explore"]]):
    """The whole document."""

    complete: bool = Field(description="whether everything that was asked for is proven")
    model: str
    batch: int
    machine: str
    machine_file: Any = Field(
        description="the machine file whose fields vary, as plain data; decimals as text"
    )
    cost_model: str
    factors: FactorsName | None
    objective: str
    constraints: list[str]
    settings: ExploreSettings
    vary: list[VariationRecord]
    phases: PhasesRecord | None = Field(
        default=None, description="of a language model that runs more than once"
    )
    layers: list[ExploredLayer]
    figure: str = Field(
        default="",
        description="what values are, where the objective of totals and the sum of layers' objectives "
        "differ; older documents lack it, and hold sums",
    )
    best: BestDesign | None
    layer_bests: list[LayerBest] = Field(default_factory=list)
    front: ExploreFront | None = None
    designs: list[DesignRecord]
    totals: ExploreTotals
    wall_s: float
    versions: dict[str, str]

    @property
    def goal(self) -> NetworkObjective:
        """What values are of; in documents that do not say so they are sums."""
        stated = parse_network_objective(self.objective)
        return stated if self.figure else replace(stated, summed=True)

    @property
    def instances(self) -> int:
        """How many layers the network has, each as often as it has it."""
        return sum(layer.count for layer in self.layers)

    def to_data(self) -> dict[str, Any]:
        """Plain data in the sequence of the contract."""
        data = super().to_data()
        if self.best is not None:
            data["best"]["result"] = self.best.result.to_data()
        return data
