"""The clocks that limit tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CONFTEST = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from clocks import pytest_timeout_set_timer
"""

TESTS = """
import subprocess, sys, threading, time
import pytest

BURN = "import time\\nwhile time.process_time() < {}: pass"

@pytest.mark.timeout(0.3)
def test_waits():
    time.sleep(0.5)

@pytest.mark.timeout(0.3)
def test_hangs():
    time.sleep(30)

@pytest.mark.timeout(0.3)
def test_burns():
    end = time.monotonic() + 30
    while time.monotonic() < end:
        pass

@pytest.mark.timeout(0.3)
def test_burns_in_a_child():
    subprocess.run([sys.executable, "-c", BURN.format(30)])

@pytest.fixture(scope="module")
def worker():
    process = subprocess.Popen([sys.executable, "-c", BURN.format(0.4) + "\\nprint(flush=True)\\ninput()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    yield process
    process.communicate("")

@pytest.mark.timeout(5)
def test_starts_a_worker(worker):
    pass

@pytest.mark.timeout(0.3)
def test_is_not_charged_for_earlier_work(worker):
    worker.communicate("\\n")
    time.sleep(0.3)
"""


def test_tests_are_limited_by_the_processors_clock(tmp_path: Path) -> None:
    """A test may wait for a while; one that burns, itself or in a child, is ended at its limit."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "test_it.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "3 failed, 3 passed" in done.stdout, done.stdout
    assert {line.split()[1] for line in done.stdout.splitlines() if line.startswith("FAILED")} == {
        f"test_it.py::{name}" for name in ("test_hangs", "test_burns", "test_burns_in_a_child")
    }
    assert " s of the processor in " in done.stdout
