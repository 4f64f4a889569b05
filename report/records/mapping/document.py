"""The results document ``tilewright.result/1``: what ``map`` prints and what ``check`` reads back.

Every record is checked when a file is read.  Numbers are integers where they are integral and floats
elsewhere; beside them stands the exact fraction as text, so that nothing is lost on the way.
``schemas/result-1.schema.json`` says the same as JSON Schema.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from tilewright.report.records.claims import (
    ClaimRecord,
    ExactText,
    KeyedRecord,
    Number,
    StatusName,
    TraceRecord,
)
from tilewright.report.records.head import Document
from tilewright.report.records.mapping.engine import ArchRecord
from tilewright.report.records.mapping.operator import OperatorRecord, Record
from tilewright.report.records.mapping.phases import PhasesRecord

FactorsName = Literal["perfect", "imperfect"]
StorageName = Literal["even", "uneven"]
TilesName = Literal["divisors", "ceil(outer/n)", "every integer"]
TilesAsked = Literal["trip-counts", "every"]


class AccessRecord(Record):
    """Accesses of one tensor at one level over the whole run and all instances, in elements."""

    level: str
    tensor: str
    reads: int
    fills: int = Field(description="elements written from the level outside")
    updates: int = Field(description="elements written from the level inside")
    tile: int = Field(description="elements that one instance holds")


class MetricsRecord(Record):
    """What the evaluator says of a mapping."""

    energy_pj: Number
    energy_pj_exact: ExactText
    cycles: int
    edp: Number = Field(description="energy_pj times cycles")
    time_s: float = Field(description="cycles at the engine's clock")
    macs: int
    utilization: float = Field(description="iterations per cycle over the number of PEs")
    energy_by_component_pj: dict[str, Number]
    accesses: list[AccessRecord]
    details: dict[str, int] = Field(description="further figures of the cost model")


class MappingRecord(Record):
    """A mapping as a list of nodes, outermost first."""

    nodes: list[dict[str, str | int]]


class SolutionRecord(Record):
    """A mapping and what it costs."""

    energy_pj: Number
    energy_pj_exact: ExactText
    cycles: int
    edp: Number = Field(description="energy_pj times cycles")
    mapping: MappingRecord


class SpaceRecord(Record):
    """The space that a claim is about: the bound holds for every mapping in it, and for no other."""

    storage: StorageName = Field(
        description="even: all tensors of a level begin to live at one point; uneven: each at its own"
    )
    factors: FactorsName
    tiles: dict[str, TilesName] = Field(
        description="per dimension of more than one iteration, the tiles that it may have inside another tile"
    )
    constraints: list[str] = Field(description="the demands of the call, sorted")

    @property
    def asked_storage(self) -> StorageName | None:
        """What to ask for to get this space again; ``None`` where it is the default."""
        return self.storage if self.storage == "uneven" else None

    @property
    def asked_tiles(self) -> TilesAsked | None:
        """The same of tiles."""
        return "every" if {*self.tiles.values()} == {"every integer"} else None


class BesideRecord(SolutionRecord):
    """A legal mapping from outside the space that was offered; no claim depends on it."""

    value: Number = Field(description="the objective")
    value_exact: ExactText
    reason: str = Field(description="why it is outside")
    source: str


class ThenRecord(KeyedRecord):
    """The least second objective among the mappings of the least first one; the layer's mapping has it."""

    objective: Literal["energy", "cycles"]
    status: StatusName
    value: Number | None
    value_exact: ExactText | None
    bound: Number | None = Field(description="no mapping that is optimal by the objective has less")
    bound_exact: ExactText | None
    solver: str
    wall_s: float


class FrontRecord(Record):
    """The Pareto front of energy and cycles."""

    complete: bool = Field(description="whether every mapping is at most as good as one of the points")
    wall_s: float
    points: list[SolutionRecord] = Field(description="one mapping per point, in increasing order of cycles")


class BestRecord(Record):
    """The best mappings by the objective."""

    complete: bool = Field(description="whether it is proven that none but these are the best")
    wall_s: float
    mappings: list[SolutionRecord] = Field(description="different mappings, the best one first")


class OptimaRecord(Record):
    """The mappings of the least objective."""

    complete: bool = Field(description="whether it is proven that there are no others")
    count: int = Field(ge=0)
    wall_s: float
    mappings: list[SolutionRecord]


class MethodEffortRecord(Record):
    """What one method did in a search."""

    method: str = Field(description="as in traces")
    nodes: int = Field(ge=0, description="partial mappings bounded, mappings scored, or branches of CP-SAT")
    nodes_per_s: float | None = Field(description="null where none were counted")
    trees: int = Field(ge=0, description="searches of partial mappings begun, those of parts among them")
    table_bytes: int = Field(ge=0, description="of the tables that bounds are read from, shared ones once")
    seconds: float = Field(description="at work, without methods that it called")


class EffortRecord(Record):
    """What a search took.  The counts of two deterministic searches are equal; seconds and memory are not."""

    methods: list[MethodEffortRecord] = Field(description="in the order in which they began")
    peak_memory_bytes: int = Field(
        ge=0, description="most that the process held until the search ended; 0 where unknown"
    )

    @property
    def nodes(self) -> int:
        """Of all methods."""
        return sum(method.nodes for method in self.methods)


class AskedLayer(Record):
    """An operator of a network."""

    name: str = Field(description="the first layer with this operator")
    names: list[str] = Field(min_length=1, description="all layers with this operator")
    operator: OperatorRecord
    bounds: dict[str, int]
    count: int = Field(ge=0, description="how often the operator counts in a value: layers times runs")
    runs: int = Field(default=1, ge=0, description="how often each layer runs, in a model of several phases")
    least_runs: int | None = Field(
        default=None,
        ge=0,
        description="of how many runs a bound holds, if not of those: layers of several lengths of a cache "
        "are bounded by one that spans them, and none of them costs more than the longest",
    )

    @property
    def least_count(self) -> int:
        """How often the operator counts in a bound."""
        return len(self.names) * (self.runs if self.least_runs is None else self.least_runs)


class LayerRecord(ClaimRecord, AskedLayer):
    """The answer for one operator of a network, and everything that it depends on."""

    value: Number | None = Field(description="the objective")
    value_exact: ExactText | None = Field(description="the objective key, value**root, as a fraction")
    bound: Number | None = Field(description="no mapping of the space has a smaller value")
    gap: float | None = Field(description="(value - bound) / value")
    metrics: MetricsRecord | None
    mapping: MappingRecord | None
    solver: str
    solver_version: str
    seed: int
    wall_s: float
    input_hash: str | None
    constraints: list[str]
    factors: FactorsName | None = Field(
        default=None, description="whether tiles divide the tiles around them; null if no problem was stated"
    )
    space: SpaceRecord | None = Field(
        default=None, description="the space that status and bound are about; null if no problem was stated"
    )
    trace: list[TraceRecord]
    effort: EffortRecord | None = Field(
        default=None, description="what the search took; null in documents of versions before 0.3"
    )
    message: str = ""
    beside: BesideRecord | None = Field(
        default=None, description="the best mapping from outside the space that was offered"
    )
    clash: list[str] = Field(default_factory=list, description="constraints that contradict each other")
    then: ThenRecord | None = None
    front: FrontRecord | None = None
    best: BestRecord | None = None
    optima: OptimaRecord | None = None


class TotalsRecord(Record):
    """Sums over all layers, each counted as often as the network has it; null where one is missing."""

    layers: int
    distinct: int
    statuses: dict[StatusName, int]
    macs: int
    energy_pj: Number | None
    energy_pj_exact: ExactText | None
    cycles: int | None
    edp: Number | None = Field(description="total energy times total cycles")
    time_s: float | None
    value: Number | None = Field(description="sum of values, for the objectives energy and cycles")
    value_exact: ExactText | None
    bound: Number | None
    bound_exact: ExactText | None
    gap: float | None
    edp_bound: Number | None = Field(
        default=None, description="no mappings have less total energy times total cycles; for edp alone"
    )
    sum_of_layer_edp: Number | None = Field(
        default=None,
        description="sum of the layers' own energy times cycles, which is another figure than edp",
    )
    without_mapping: list[str] = Field(
        default_factory=list, description="layers that have no mapping, which leaves sums null"
    )


class SettingsRecord(Record):
    """How the search was asked to run."""

    solver: str
    time_limit_s: float | None
    gap: float
    threads: int
    seed: int
    deterministic: bool
    factors: FactorsName | None = Field(default=None, description="null for the cost model's own choice")
    storage: StorageName | None = Field(default=None, description="null for even")
    tiles: TilesAsked | None = Field(default=None, description="of imperfect factors; null for trip-counts")
    then: Literal["energy", "cycles"] | None = Field(default=None, description="the second objective")
    pareto: bool = False
    best: int | None = Field(default=None, ge=1, description="how many of the best mappings")
    all_optimal: int | None = Field(default=None, ge=1, description="at most how many optimal mappings")


class ResultDocument(Document[Literal["tilewright.result/1"], Literal["map"]]):
    """The whole document."""

    complete: bool = Field(description="whether every layer that was asked for is present")
    model: str
    batch: int
    arch: ArchRecord
    cost_model: str
    objective: str
    constraints: list[str]
    notes: list[str] = Field(default_factory=list, description="notes on the call")
    left_out: list[str] = Field(
        default_factory=list, description="nodes of the model that compute and are in no layer, with reasons"
    )
    settings: SettingsRecord
    phases: PhasesRecord | None = Field(
        default=None, description="of a language model that runs more than once; null for one run"
    )
    layers: list[LayerRecord]
    missing: list[str] = Field(description="layers that were asked for and are not present")
    totals: TotalsRecord
    versions: dict[str, str]

    def to_data(self) -> dict[str, Any]:
        """Plain data in the sequence of the contract."""
        data = super().to_data()
        data["layers"] = [layer_data(layer) for layer in self.layers]
        for field in ("notes", "left_out", "phases"):
            if not data[field]:
                del data[field]
        for field in ("edp_bound", "sum_of_layer_edp", "without_mapping"):
            if not data["totals"][field]:
                del data["totals"][field]
        return data


def layer_data(layer: LayerRecord) -> dict[str, Any]:
    """A layer as plain data; what is optional only where there is any."""
    data = layer.model_dump()
    if layer.runs == 1 and layer.least_runs is None:
        del data["runs"], data["least_runs"]
    for field in ("effort", "message", "beside", "clash", "then", "front", "best", "optima"):
        if not data[field]:
            del data[field]
    return data
