"""Series of contests: who is called a winner, parts of networks, and seconds of the processor."""

from __future__ import annotations

import io
from fractions import Fraction
from pathlib import Path

import pytest
from rich.console import Console

from tilewright.benchmarks.arena.contest import ContestProblem, entries
from tilewright.benchmarks.arena.series import (
    Series,
    beaten,
    documents,
    main,
    series_network,
    standings,
    tally,
)
from tilewright.benchmarks.store import Store
from tilewright.formulation.limits import Limits
from tilewright.foundation.errors import InputError
from tilewright.report.html.scheduling.tiled.compare import values_figure
from tilewright.report.plots.scheduling.tiled.compare import draw_contest
from tilewright.report.records.scheduling.tiled.compare import (
    CompareDocument,
    CompareSettingsRecord,
    ContestantRecord,
    RunRecord,
    contestant,
    ranked,
    winner_of,
)
from tilewright.report.text.scheduling.tiled.compare import compare_views, winner_text

LAYER = "conv:K=64,C=32,P=14,Q=14,R=3,S=3,pad=1"
QUICK = Series((LAYER,), ("atomic-2x2",), ("ls", "rammer"), seconds=20.0)


def runs(method: str, *values: int | None, missing: int = 0) -> ContestantRecord:
    """A method whose seeds came to these values; ``None`` for no plan."""
    runs = [
        RunRecord(
            seed=seed,
            status="unknown" if value is None else "feasible",
            value=None if value is None else float(value),
            value_exact=None if value is None else str(Fraction(value)),
            closed_form=None,
            gap=None,
            wall_s=1.0,
            cycles=1,
            energy_pj=1.0,
            dram_bytes=1,
            hop_bytes=1,
            utilization=0.5,
            atoms=1,
            message="",
        )
        for seed, value in enumerate(values)
    ]
    return contestant(method, runs, missing, Fraction(1))


def judged(*methods: ContestantRecord) -> CompareDocument:
    """A document with these methods alone."""
    return CompareDocument.model_construct(
        contestants=list(methods),
        winner=winner_of(methods),
        system="s",
        workload="w",
        objective="edp",
        bound=1.0,
        batch=1,
        complete=True,
        settings=CompareSettingsRecord(methods=[], time_limit_s=1.0, seeds=5, threads=1, clock="wall"),
        versions={},
    )


@pytest.mark.parametrize(
    ("first", "second", "text", "left_behind"),
    [
        (951, 1000, "no win: a 4.9 % ahead of b", "none"),
        (950, 1000, "a wins by 5.0 % over b", "b by 5.0 %"),
        (500, 1000, "a wins by 50.0 % over b", "b by 50.0 %"),
        (1000, 1000, "no win: a 0.0 % ahead of b", "none"),
    ],
)
def test_a_lead_below_five_percent_is_no_win(first: int, second: int, text: str, left_behind: str) -> None:
    """The rule is on medians of what the common evaluator says: below 5 % nobody wins, at 5 % one does."""
    document = judged(runs("a", first), runs("b", second))
    assert winner_text(document) == text
    assert beaten(document) == left_behind
    wins = "a 1; too close to call: 0 of 1" if " wins " in text else "none; too close to call: 1 of 1"
    assert tally([document]) == f"s: wins: {wins}"


def test_the_median_over_seeds_decides() -> None:
    """One lucky seed wins nothing; the first to be left behind is the best of those beyond 5 %."""
    document = judged(runs("lucky", 100, 1000, 1010), runs("steady", 800, 810, 820), runs("last", 1500))
    assert winner_text(document) == "steady wins by 19.0 % over lucky"
    assert beaten(document) == "lucky by 19.0 %"
    table = standings([document])
    assert "| +23.5 (910.0) | +0.0 (2.5) | +85.2 |" in table


def test_without_plans_nobody_wins() -> None:
    """A method alone, and none at all, are told apart from a win."""
    assert winner_text(judged(runs("a", 5), runs("b"))) == "a alone has a plan"
    assert winner_text(judged(runs("a"), runs("b"))) == "no method has a plan"


@pytest.mark.parametrize("plans", range(6))
def test_runs_without_a_plan_are_worse_than_any(plans: int) -> None:
    """Of five seeds the third best decides: with two plans or fewer a method has no median and ranks last."""
    values = sorted([100 + seed for seed in range(plans)])
    lucky = runs("lucky", *values, *[None] * (5 - plans))
    document = judged(lucky, runs("steady", 800, 810, 820, 830, 840))
    first, last = [contestant.method for contestant in ranked(document.contestants)]
    assert lucky.without_plan == 5 - plans
    assert lucky.worst == (104 if plans == 5 else None)
    assert document.winner is not None
    if plans >= 3:
        assert (first, lucky.median, lucky.gap) == ("lucky", 102, float(Fraction(101, 102)))
        assert winner_text(document) == "lucky wins by 87.6 % over steady"
    else:
        assert (last, lucky.median, lucky.gap) == ("lucky", None, None)
        told = "steady alone has plans for half of its runs" if plans else "steady alone has a plan"
        assert winner_text(document) == told


def test_runs_that_were_not_computed_have_no_plan() -> None:
    """A contest that was stopped after one lucky seed has no winner by it."""
    document = judged(runs("lucky", 100, missing=4), runs("late", missing=5))
    assert document.winner is None
    assert winner_text(document) == "no method has plans for half of its runs"
    assert (document.contestants[0].median, document.contestants[0].best) == (None, 100)


def test_tables_plots_and_pages_agree_on_missing_plans(tmp_path: Path) -> None:
    """A method without a median has its plans in every form, no bar and no place before another."""
    document = judged(
        runs("lucky", 100, None, None, None, None), runs("steady", 800, 810, None), runs("none", None)
    )
    console = Console(width=100, record=True, file=io.StringIO())
    for view in compare_views(document):
        console.print(view)
    lines = console.export_text().splitlines()
    table = [line for line in lines if line.startswith(("lucky ", "steady ", "none "))]
    assert [line.split()[0] for line in table[:3]] == ["steady", "lucky", "none"]
    assert "1 of 5 have plans" in table[1]
    assert "1 without" in table[0]
    assert "unknown" in table[2]
    figure = values_figure(document)
    bars, dots = figure["data"]
    assert (bars["y"], dots["y"]) == (["steady"], ["lucky", "steady", "steady"])
    draw_contest(document, tmp_path / "contest.svg")
    row = standings([document]).splitlines()[-1]
    assert "1 of 5 have plans" in row
    assert "+0.0, 1 without plan" in row


def test_a_part_of_a_network() -> None:
    """The layers of one encoder layer, with what they read from outside as inputs."""
    cell = series_network("bert-base/layer1")
    assert all(layer.name.startswith("layer1.") for layer in cell.layers)
    assert cell.outputs == {"layer1.feed_forward.norm"}
    assert any(link.producer is None for link in cell.links)
    with pytest.raises(InputError, match="no layer of bert-base begins with layer99"):
        series_network("bert-base/layer99")


def test_a_series_resumes_and_counts_the_processor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second call computes nothing; runs by another clock are other runs."""
    args = ["--networks", LAYER, "--systems", "atomic-2x2", "--methods", "ls", "rammer", "--seconds", "20"]
    store = ["--store", str(tmp_path / "s.sqlite")]
    assert main([*args, *store, "--only-print"]) == 0
    assert "not run" in capsys.readouterr().out
    assert main([*args, *store]) == 0
    assert main([*args, *store]) == 0
    told = capsys.readouterr()
    assert "0 of 2 runs to do" in told.err
    assert told.out.count("| atomic-2x2 |") == 2
    with Store(tmp_path / "s.sqlite", create=True) as kept:
        (document,) = documents(QUICK, kept)
    assert document.complete
    assert document.settings.clock == "cpu"
    (contest,) = QUICK.contests()
    (first, *_) = entries(contest)
    stated = ContestProblem.model_validate_json(first.task.problem)
    assert stated.hashed != stated.model_copy(update={"clock": "wall"}).hashed
    assert main([*args, *store, "--systems", "nowhere"]) == 2


def test_limits_read_their_own_clock() -> None:
    """Seconds of a clock that stands still do not run out, whatever time passes."""
    now = [5.0]
    limits = Limits(seconds=2.0, started=5.0, clock=lambda: now[0])
    assert (limits.remaining, limits.expired) == (2.0, False)
    now[0] = 7.0
    assert (limits.remaining, limits.expired) == (0.0, True)
