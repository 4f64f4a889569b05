"""A running search: what is offered counts only if the evaluator confirms it."""

from __future__ import annotations

import threading
import time
from fractions import Fraction

import pytest

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.mapping import Mapping, Storage, Temporal
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Origin, Status, TracePoint, relative_gap
from tilewright.formulation.search import UnsoundBoundError
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.workloads.mapping.operators import gemm

ENGINE = Engine(
    "two",
    "hierarchy",
    16,
    Fraction(1),
    Fraction(500),
    (MemoryLevel("DRAM", None, Fraction(10), Fraction(10)), MemoryLevel("RF", 12, Fraction(1), Fraction(1))),
)


def problem() -> LayerProblem:
    return layer_problem(gemm(m=4, n=2, k=2), ENGINE, parse_objective("energy"))


def mapping(outer: str, inner: str = "") -> Mapping:
    """Loops outside the registers, outermost first, and the others inside them."""
    rest = "".join(dim for dim in "MNK" if dim not in outer)
    dram = [Storage(name, "DRAM") for name in "ABC"]
    rf = [Storage(name, "RF") for name in "ABC"]
    return Mapping((*dram, *(Temporal(d, 1) for d in outer), *rf, *(Temporal(d, 1) for d in inner or rest)))


def search(limits: Limits | None = None) -> LayerSearch:
    return LayerSearch(problem(), limits or Limits())


GOOD, BAD, ILLEGAL = mapping("M"), mapping("MNK"), mapping("")


def test_an_offer_is_re_evaluated_and_kept_if_better() -> None:
    """The key is the evaluator's; a worse mapping afterwards changes nothing."""
    state = search()
    expected = state.problem.key_of(state.problem.evaluate(GOOD))
    worse = state.problem.key_of(state.problem.evaluate(BAD))
    assert state.offer(BAD, "first") == worse == state.key
    assert state.offer(GOOD, "second") == expected == state.key
    assert state.offer(BAD, "third") == worse
    assert state.key == expected < worse
    assert state.answer == GOOD
    assert [point.source for point in state.trace] == ["first", "second"]


def test_an_illegal_offer_is_rejected() -> None:
    """A mapping that overflows its registers is no incumbent, and leaves no trace."""
    state = search()
    assert state.problem.evaluate(ILLEGAL).violations
    assert state.offer(ILLEGAL, "wrong") is None
    assert (state.key, state.answer, state.trace) == (None, None, ())


def test_an_offer_that_breaks_a_users_rule_is_rejected() -> None:
    """Rules count for offers from anywhere."""
    ruled = layer_problem(
        gemm(m=4, n=2, k=2), ENGINE, parse_objective("energy"), constraints=["trips(M@DRAM)=1"]
    )
    state = LayerSearch(ruled, Limits())
    assert state.offer(GOOD, "wrong") is None
    assert state.offer(mapping("NK"), "right") is not None


def test_an_offer_that_is_no_mapping_is_an_error() -> None:
    """A mapping of another operator does not pass as illegal: it is a mistake of the caller."""
    with pytest.raises(InputError):
        search().offer(Mapping((Temporal("P", 1),)), "wrong")


def test_bounds_only_rise() -> None:
    """A weaker bound than the known one is ignored."""
    state = search()
    for bound in (3, 5, 4, 5):
        state.raise_bound(Fraction(bound), "x")
    assert state.bound == 5
    assert [point.bound for point in state.trace] == [3, 5]


def test_the_trace_is_monotone_and_heard() -> None:
    """Values fall, bounds and times rise, every step is told, and heuristics are marked."""
    heard: list[TracePoint] = []
    state = LayerSearch(problem(), Limits(), heard.append)
    state.raise_bound(Fraction(1), "b")
    state.offer(BAD, "h", origin=Origin.HEURISTIC)
    state.raise_bound(Fraction(2), "b")
    state.offer(GOOD, "s")
    assert tuple(heard) == state.trace
    assert [(p.source, p.improved, p.origin is Origin.HEURISTIC) for p in heard] == [
        ("b", False, False),
        ("h", True, True),
        ("b", False, False),
        ("s", True, False),
    ]
    values = [p.key for p in heard if p.key is not None]
    assert values == sorted(values, reverse=True)
    assert [p.bound for p in heard] == [1, 1, 2, 2]
    seconds = [p.seconds for p in heard]
    assert seconds == sorted(seconds)


@pytest.mark.parametrize(
    ("offers", "bound", "exhausted", "error", "stopped", "status"),
    [
        ((GOOD,), "value", True, False, False, Status.OPTIMAL),
        ((GOOD,), "value", False, True, True, Status.OPTIMAL),
        ((GOOD,), "half", False, False, False, Status.FEASIBLE),
        ((GOOD,), None, True, False, False, Status.FEASIBLE),
        ((), None, True, False, False, Status.INFEASIBLE),
        ((), "half", False, False, False, Status.UNKNOWN),
        ((), None, False, False, True, Status.INTERRUPTED),
        ((GOOD,), "half", False, False, True, Status.INTERRUPTED),
        ((), None, False, True, False, Status.ERROR),
        ((GOOD,), "half", False, True, False, Status.ERROR),
        ((ILLEGAL,), None, True, False, False, Status.INFEASIBLE),
    ],
)
def test_statuses(
    offers: tuple[Mapping, ...],
    bound: str | None,
    exhausted: bool,
    error: bool,
    stopped: bool,
    status: Status,
) -> None:
    """What a search ended with decides its status; only a bound that meets the value proves optimality."""
    state = search()
    for offer in offers:
        state.offer(offer, "x")
    best = state.problem.key_of(state.problem.evaluate(GOOD))
    if bound is not None:
        state.raise_bound(best if bound == "value" else best / 2, "x")
    if stopped:
        state.limits.stop.set()
    result = state.result("solver", "1", exhausted, "why", error)
    assert result.status is status
    assert result.key == (best if GOOD in offers else None)
    assert result.message == "why"
    assert (result.method, result.version) == ("solver", "1")
    assert result.trace == state.trace
    assert result.input_hash == state.problem.content_hash
    assert (result.answer is None) is (result.evaluation is None) is (result.key is None)


def test_a_bound_above_a_confirmed_value_is_an_error() -> None:
    """A wrong proof never passes in silence, whichever came first."""
    state = search()
    state.offer(BAD, "x")
    assert state.key is not None
    state.raise_bound(state.key, "wrong")
    assert state.result("solver", "1").status is Status.OPTIMAL
    state.offer(GOOD, "y")
    with pytest.raises(UnsoundBoundError, match="solver claims the bound"):
        state.result("solver", "1")


def test_gap_and_done() -> None:
    """The gap is relative to the value; a search is done once it is small enough."""
    state = search(Limits(gap=0.25))
    assert state.gap is None
    assert not state.done
    state.offer(GOOD, "x")
    assert not state.done
    assert state.key is not None
    state.raise_bound(state.key / 2, "x")
    assert state.gap == 0.5
    assert not state.done
    state.raise_bound(state.key * Fraction(3, 4), "x")
    assert state.gap == 0.25
    assert state.done


@pytest.mark.parametrize(
    ("value", "bound", "gap"), [(None, 1, None), (1, None, None), (4, 3, 0.25), (0, 0, 0.0), (5, 5, 0.0)]
)
def test_relative_gap(value: int | None, bound: int | None, gap: float | None) -> None:
    """Unknown without both ends, and zero for equal ones, even for a value of zero."""
    ends = [None if end is None else Fraction(end) for end in (value, bound)]
    assert relative_gap(*ends) == gap


def test_limits() -> None:
    """Time counts from the moment that it began; a stop from outside ends everything."""
    free = Limits()
    assert free.remaining is None
    assert not free.expired
    free.stop.set()
    assert free.expired
    late = Limits(seconds=1, started=time.monotonic() - 2)
    assert late.expired
    assert late.remaining == 0
    early = Limits(seconds=100)
    assert not early.expired
    assert early.remaining is not None
    assert 90 < early.remaining <= 100


def test_offers_from_threads_keep_the_best() -> None:
    """Many offers at once leave the least value, and a trace without a step up."""
    state = search()
    orders = ["M", "MN", "MNK", "NM", "KM", "KMN", "NKM", "MK"]
    threads = [
        threading.Thread(target=lambda o=order: [state.offer(mapping(o), o) for _ in range(5)])  # type: ignore[misc]
        for order in orders
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    keys = [state.problem.key_of(state.problem.evaluate(mapping(order))) for order in orders]
    assert state.key == min(keys)
    values = [point.key for point in state.trace if point.key is not None]
    assert values == sorted(values, reverse=True)


def test_input_hashes_tell_problems_apart() -> None:
    """Equal inputs hash alike; another size, objective, rule or factor does not."""
    base, engine = gemm(m=4, n=2, k=2), ENGINE
    energy = parse_objective("energy")
    variants = [
        layer_problem(base, engine, energy),
        layer_problem(gemm(m=2, n=4, k=2), engine, energy),
        layer_problem(gemm(m=4, n=2, k=2, transpose_b=True), engine, energy),
        layer_problem(base, engine, parse_objective("edp")),
        layer_problem(base, engine, energy, constraints=["cycles<=100"]),
        layer_problem(base, engine, energy, factors="perfect"),
    ]
    assert not variants[0].space.nest.perfect  # this model counts smaller last tiles
    assert len({variant.content_hash for variant in variants}) == len(variants)
    assert problem().content_hash == variants[0].content_hash
