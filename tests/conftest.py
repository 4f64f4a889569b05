"""Settings that all tests share."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from clocks import SLOW_SECONDS, pytest_timeout_set_timer
from effort import effort
from hypothesis import HealthCheck, settings

__all__ = ["pytest_timeout_set_timer"]

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")

# Tests start some hundred processes, which share compiled modules: those beside the sources, or a folder of
# this run where the caller keeps Python from writing beside the sources.
if sys.dont_write_bytecode and not WORKER:
    bytecode = tempfile.TemporaryDirectory(prefix="tilewright-tests-", ignore_cleanup_errors=True)
    os.environ["PYTHONPYCACHEPREFIX"] = bytecode.name
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.pycache_prefix = os.environ.get("PYTHONPYCACHEPREFIX")
sys.dont_write_bytecode = False

# Under `nohup`, or in the background of a script, signals arrive ignored, and every process inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    """Runs that include slow tests try all instances, unless ``TEST_EFFORT`` says otherwise."""
    if config.option.markexpr != "not slow":
        os.environ.setdefault("TEST_EFFORT", "1")
    settings.register_profile(
        "local", deadline=None, max_examples=effort(60), suppress_health_check=[HealthCheck.too_slow]
    )
    settings.register_profile("ci", settings.get_profile("local"), derandomize=True, database=None)
    settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile all kernels that are missing once per run, before a worker or a test begins."""
    if not hasattr(session.config, "workerinput") and not session.config.option.collectonly:
        from tilewright.api.installation import compile_kernels

        compile_kernels()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Every other worker begins with the last file, so that each rewrites the assertions of half of them."""
    report = yield
    if isinstance(collector, pytest.Directory) and WORKER[-1:] in set("13579"):
        report.result.reverse()
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All workers have tests in one order; long proofs get a longer limit, unless a test states its own."""
    if WORKER:
        items.sort(key=lambda item: item.path.parts)
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))


def pytest_collection_finish() -> None:
    """Look for garbage as seldom as searches do, and not among what was collected."""
    from tilewright.foundation.garbage import IN_SEARCH

    gc.freeze()
    gc.set_threshold(*IN_SEARCH)


@pytest.fixture(scope="session")
def filled_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with every run of the small request; not to be written to."""
    from small_bench import run_here, small_request

    from tilewright.benchmarks.plan import make_plan
    from tilewright.benchmarks.store import Store

    path = tmp_path_factory.mktemp("stores") / "small.sqlite"
    with Store(path, create=True) as store:
        run_here(store, make_plan(small_request()))
    return path


@pytest.fixture
def copied_store(filled_store: Path, tmp_path: Path) -> Path:
    """A copy of the filled store."""
    from tilewright.benchmarks.store import Store

    path = tmp_path / "copy.sqlite"
    with Store(filled_store) as store:
        store.copy_to(path)
    return path
