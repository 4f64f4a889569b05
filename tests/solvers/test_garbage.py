"""Looking for garbage while anything is searched, and afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

import tilewright as tw
from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Status
from tilewright.foundation.garbage import IN_SEARCH, seldom_collected
from tilewright.solvers.mapping.solve import layer_run, solve

OWN = (900, 7, 5)


@pytest.fixture(autouse=True)
def own_thresholds() -> Iterator[None]:
    """The thresholds of the program that calls."""
    before = gc.get_threshold()
    gc.set_threshold(*OWN)
    yield
    gc.set_threshold(*before)


def test_a_search_looks_seldom_and_leaves_no_trace() -> None:
    """The thresholds of the caller come back with the answer."""
    seen = set()
    question = tw.layer("gemm:M=8,N=4,K=8").on("nvdla-256")
    run = layer_run(lambda: question.problem, "auto", Limits(), lambda point: seen.add(gc.get_threshold()))
    assert run.run().status is Status.OPTIMAL
    assert (seen, gc.get_threshold()) == ({IN_SEARCH}, OWN)


def test_a_search_in_the_thread_of_its_caller_looks_seldom() -> None:
    """What is searched without a thread of its own has the same thresholds."""
    seen = set()
    problem = tw.layer("gemm:M=8,N=4,K=8").on("nvdla-256").problem
    solve(problem, listener=lambda point: seen.add(gc.get_threshold()))
    assert (seen, gc.get_threshold()) == ({IN_SEARCH}, OWN)


def test_searches_may_end_in_any_order() -> None:
    """Whichever of two searches ends last gives the thresholds back."""
    first, second = seldom_collected(), seldom_collected()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold() == IN_SEARCH
    second.__exit__(None, None, None)
    assert gc.get_threshold() == OWN


@pytest.mark.parametrize("own", [(0, 10, 10), (IN_SEARCH[0] + 1, 10, 10)])
def test_who_looks_more_seldom_stays_with_it(own: tuple[int, int, int]) -> None:
    """A process that never looks, or more seldom still, is left alone."""
    gc.set_threshold(*own)
    with seldom_collected():
        assert gc.get_threshold() == own
    assert gc.get_threshold() == own
