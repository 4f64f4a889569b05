"""The document ``tilewright.compare/1``: methods on one network and one machine, judged by one evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from statistics import median_low
from typing import Any, Final, Literal

from pydantic import ConfigDict, Field

from tilewright.report.records.claims import ExactText, Number, StatusName, number
from tilewright.report.records.mapping.operator import Record
from tilewright.report.records.scheduling.tiled.problem import ObjectiveText, TiledProblemRecord

COMPARE: Final = "tilewright.compare/1"

CLEAR: Final = 0.05
"""Lead below which none is called a win: the evaluator itself lies up to 10 % from a simulation of events."""


class RunRecord(Record):
    """One method with one seed."""

    seed: int = Field(ge=0)
    status: StatusName
    value: Number | None = Field(description="what the evaluator says of the plan")
    value_exact: ExactText | None
    closed_form: Number | None = Field(description="what the method's own formula says of it, if it has one")
    gap: float | None = Field(description="to the bound of the contest")
    wall_s: float = Field(ge=0)
    cycles: int | None = Field(ge=0)
    energy_pj: Number | None
    dram_bytes: int | None = Field(ge=0, description="read and written")
    hop_bytes: int | None = Field(ge=0, description="bytes times links between routers")
    utilization: float | None = Field(ge=0, le=1, description="of the PEs, memory delay included")
    atoms: int | None = Field(ge=1)
    message: str

    @property
    def value_key(self) -> Fraction | None:
        return None if self.value_exact is None else Fraction(self.value_exact)


class ContestantRecord(Record):
    """One method: its runs, and what they come to."""

    method: str
    runs: list[RunRecord] = Field(description="by seed; one where a method draws nothing at random")
    missing: int = Field(ge=0, description="runs that were not computed")
    best: Number | None
    median: Number | None = Field(description="the lower of the middle two where their number is even")
    worst: Number | None
    gap: float | None = Field(description="of the median, to the bound of the contest")

    @property
    def median_key(self) -> Fraction | None:
        """Exact key of the median; ``None`` where no run has a plan."""
        keys = keys_of(self.runs)
        return median_low(keys) if keys else None


class WinnerRecord(Record):
    """The method with the least median."""

    method: str
    second: str | None
    lead: float | None = Field(description="how much less its median is than the second's, of the second's")
    clear: bool = Field(description="whether the lead is large enough to be called a win")


class CompareSettingsRecord(Record):
    """How the contest was run."""

    methods: list[str]
    time_limit_s: float
    seeds: int = Field(ge=1)
    threads: int = Field(ge=1)
    clock: Literal["wall", "cpu"] = Field("wall", description="what the seconds of a run are read from")


class CompareDocument(Record):
    """The whole document of ``compare``."""

    model_config = ConfigDict(title=COMPARE, serialize_by_alias=True, populate_by_name=True)

    schema_name: Literal["tilewright.compare/1"] = Field(alias="schema")
    command: Literal["compare"]
    complete: bool = Field(description="whether every run has ended")
    workload: str
    system: str
    batch: int = Field(ge=1)
    objective: ObjectiveText
    settings: CompareSettingsRecord
    bound: Number = Field(description="no plan of any method has a smaller value")
    bound_exact: ExactText
    contestants: list[ContestantRecord]
    winner: WinnerRecord | None
    input_hash: str
    problem: TiledProblemRecord
    versions: dict[str, str]

    @property
    def bound_key(self) -> Fraction:
        return Fraction(self.bound_exact)

    def to_data(self) -> dict[str, Any]:
        """Plain data in the sequence of the contract."""
        return self.model_dump()


def is_contest(data: object) -> bool:
    """Whether data look like a document of a contest."""
    return isinstance(data, dict) and str(data.get("schema", "")).startswith("tilewright.compare/")


def keys_of(runs: Sequence[RunRecord]) -> list[Fraction]:
    """Exact keys of the runs that have a plan."""
    return [run.value_key for run in runs if run.value_key is not None]


def gap_of(value: Fraction | None, bound: Fraction) -> float | None:
    """Relative gap of a value to the bound of the contest."""
    return None if value is None or value == 0 else float((value - bound) / value)


def contestant(method: str, runs: Sequence[RunRecord], missing: int, bound: Fraction) -> ContestantRecord:
    """What the runs of a method come to."""
    keys = sorted(keys_of(runs))
    middle = median_low(keys) if keys else None
    return ContestantRecord(
        method=method,
        runs=list(runs),
        missing=missing,
        best=number(keys[0]) if keys else None,
        median=None if middle is None else number(middle),
        worst=number(keys[-1]) if keys else None,
        gap=gap_of(middle, bound),
    )


def winner_of(contestants: Sequence[ContestantRecord]) -> WinnerRecord | None:
    """The method with the least median, and whether it is far enough ahead; ``None`` without any plan."""
    ranked = sorted(
        ((key, one.method) for one in contestants if (key := one.median_key) is not None),
        key=lambda pair: pair[0],
    )
    if not ranked:
        return None
    (least, method), *others = ranked
    if not others:
        return WinnerRecord(method=method, second=None, lead=None, clear=False)
    key, second = others[0]
    lead = float((key - least) / key) if key else 0.0
    return WinnerRecord(method=method, second=second, lead=lead, clear=lead >= CLEAR)
