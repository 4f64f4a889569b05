"""The document ``tilewright.compare/1``: methods on one network and one machine, judged by one evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final, Literal

from pydantic import Field

from tilewright.report.records.claims import ExactText, KeyedRecord, Number, StatusName, number
from tilewright.report.records.head import Document
from tilewright.report.records.mapping.operator import Record
from tilewright.report.records.scheduling.tiled.document import PlanMetricsRecord
from tilewright.report.records.scheduling.tiled.plan import MappedPlanRecord, PlanRecord
from tilewright.report.records.scheduling.tiled.problem import ObjectiveText, TiledProblemRecord

ClockName = Literal["wall", "cpu"]

CLEAR: Final = 0.05
"""Lead below which none is called a win: the evaluator itself lies up to 10 % from a simulation of events."""


class RunRecord(KeyedRecord):
    """One method with one seed."""

    seed: int = Field(ge=0)
    status: StatusName
    value: Number | None = Field(description="the evaluator's figures of the plan")
    value_exact: ExactText | None
    closed_form: Number | None = Field(description="the figures of the method's own formula, if it has one")
    gap: float | None = Field(description="to the bound of the contest")
    wall_s: float = Field(ge=0)
    cycles: int | None = Field(ge=0)
    energy_pj: Number | None
    dram_bytes: int | None = Field(ge=0, description="read and written")
    hop_bytes: int | None = Field(ge=0, description="bytes times links between routers")
    utilization: float | None = Field(ge=0, le=1, description="of the PEs, memory delay included")
    atoms: int | None = Field(ge=1)
    message: str
    space: str = Field(default="", description="the plans that the run's own bound is about; empty for all")
    bound_exact: ExactText | None = Field(
        default=None, description="no plan of that space has a smaller key; the basis of the status"
    )
    evidence: str | None = Field(
        default=None, description="SHA-256 of the run's record in the store, plan included"
    )

    @property
    def bound(self) -> Number | None:
        """The run's own bound as it is shown."""
        key = self.bound_key
        return None if key is None else number(key)


class KeptRun(KeyedRecord):
    """What the store keeps of a run, as evidence: how it was asked, what it found, and the plan."""

    input_hash: str = Field(description="of the contest's problem and objective")
    method: str
    method_version: str
    seed: int
    time_limit_s: float
    threads: int
    clock: ClockName
    status: StatusName
    value_exact: ExactText | None
    bound_exact: ExactText | None
    space: str
    closed_form: Number | None
    wall_s: float
    message: str
    metrics: PlanMetricsRecord | None
    plan: PlanRecord | MappedPlanRecord | None

    def shown(self, bound: Fraction, evidence: str | None) -> RunRecord:
        """The run as a contest's document has it.

        Parameters
        ----------
        bound : of the contest
        evidence : hash of this record's text in the store
        """
        key, metrics = self.value_key, self.metrics
        return RunRecord(
            seed=self.seed,
            status=self.status,
            value=None if key is None else number(key),
            value_exact=self.value_exact,
            closed_form=self.closed_form,
            gap=gap_of(key, bound),
            wall_s=self.wall_s,
            cycles=None if metrics is None else metrics.cycles,
            energy_pj=None if metrics is None else metrics.energy_pj,
            dram_bytes=None if metrics is None else metrics.dram_read_bytes + metrics.dram_write_bytes,
            hop_bytes=None if metrics is None else metrics.hop_bytes,
            utilization=None if metrics is None else metrics.utilization,
            atoms=None if metrics is None else metrics.atoms,
            message=self.message,
            space=self.space,
            bound_exact=self.bound_exact,
            evidence=evidence,
        )


class ContestantRecord(Record):
    """One method: its runs, and what they come to; a run without a plan is worse than any plan."""

    method: str
    runs: list[RunRecord] = Field(description="by seed; one if a method is not random")
    missing: int = Field(ge=0, description="runs that were not computed")
    without_plan: int = Field(
        default=0, ge=0, description="runs that have no plan, those not computed included"
    )
    best: Number | None = Field(description="least value of its runs")
    median: Number | None = Field(
        description="over all runs, the lower of the middle two if their number is even; null if that "
        "run has no plan"
    )
    worst: Number | None = Field(description="largest value of its runs; null if one has no plan")
    gap: float | None = Field(description="of the median, to the bound of the contest")

    @property
    def median_key(self) -> Fraction | None:
        """Exact key of the median over all runs; ``None`` where that one has no plan."""
        keys = sorted(keys_of(self.runs))
        middle = (len(self.runs) + self.missing - 1) // 2
        return keys[middle] if 0 <= middle < len(keys) else None


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
    clock: ClockName = Field("wall", description="the clock of the runs' seconds")
    store: str | None = Field(
        default=None, description="the SQLite file with the runs' evidence, as named in the call"
    )


class CompareDocument(Document[Literal["tilewright.compare/1"], Literal["compare"]]):
    """The whole document of ``compare``."""

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


def keys_of(runs: Sequence[RunRecord]) -> list[Fraction]:
    """Exact keys of the runs that have a plan."""
    return [run.value_key for run in runs if run.value_key is not None]


def gap_of(value: Fraction | None, bound: Fraction) -> float | None:
    """Relative gap of a value to the bound of the contest."""
    return None if value is None or value == 0 else float((value - bound) / value)


def contestant(method: str, runs: Sequence[RunRecord], missing: int, bound: Fraction) -> ContestantRecord:
    """What the runs of a method come to.

    Parameters
    ----------
    method : as the user wrote it, with options
    runs : those that ended, one per seed
    missing : runs that were asked for and are not there
    bound : the contest's lower bound of the key, for gaps
    """
    keys = sorted(keys_of(runs))
    without = len(runs) - len(keys) + missing
    reported = ContestantRecord(
        method=method,
        runs=list(runs),
        missing=missing,
        without_plan=without,
        best=number(keys[0]) if keys else None,
        median=None,
        worst=number(keys[-1]) if keys and not without else None,
        gap=None,
    )
    middle = reported.median_key
    shown = None if middle is None else number(middle)
    return reported.model_copy(update={"median": shown, "gap": gap_of(middle, bound)})


def ranked(contestants: Sequence[ContestantRecord]) -> list[ContestantRecord]:
    """The least median first; then methods without one, those with the larger part of plans first."""

    def rank(record: ContestantRecord) -> tuple[bool, Fraction]:
        median = record.median_key
        if median is not None:
            return False, median
        return True, -Fraction(len(keys_of(record.runs)), max(1, len(record.runs) + record.missing))

    return sorted(contestants, key=rank)


def winner_of(contestants: Sequence[ContestantRecord]) -> WinnerRecord | None:
    """The method with the least median, and whether it is far enough ahead; ``None`` without any median."""
    medians = [
        (key, contestant.method)
        for contestant in ranked(contestants)
        if (key := contestant.median_key) is not None
    ]
    if not medians:
        return None
    (least, method), *others = medians
    if not others:
        return WinnerRecord(method=method, second=None, lead=None, clear=False)
    key, second = others[0]
    lead = float((key - least) / key) if key else 0.0
    return WinnerRecord(method=method, second=second, lead=lead, clear=lead >= CLEAR)
