"""The first calls of an installation: limits and signals hold while machine code is compiled."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from clocks import delay

import tilewright
from tilewright.foundation import caches

COLD = ("schedule", "alexnet", "--system", "set-edge-4x4", "-m", "set", "--format", "json")
BUDGET = 40.0
"""Seconds of the processor in which all kernels are compiled."""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package in folders of its own, with its bytecode."""
    path, source = tmp_path_factory.mktemp("installed") / "tilewright", Path(tilewright.__file__).parent
    shutil.copytree(source, path, ignore=shutil.ignore_patterns("*.code"), copy_function=os.symlink)
    return path


@pytest.fixture
def fresh(tmp_path: Path, package: Path) -> dict[str, str]:
    """The environment of a package without machine code, and of a user whose home is empty."""
    for code in package.rglob("*.code"):
        code.unlink()
    home = tmp_path / "home"
    home.mkdir()
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(package.parent)}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # that of the package is there
    for name in (caches.VARIABLE, "XDG_CACHE_HOME"):
        environment.pop(name, None)
    return environment


def begun(fresh: dict[str, str], folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tilewright", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=fresh, cwd=folder, stdout=pipe, stderr=pipe, text=True)


def test_a_limit_holds_while_compiling(fresh: dict[str, str], tmp_path: Path) -> None:
    """Compiling counts: the answer is what there is by then, and the next call goes on from there."""
    started = time.monotonic()
    limit = min(6.0, 0.4 * delay())  # a busy machine takes half of it to begin
    process = begun(fresh, tmp_path, *COLD, "-t", f"{limit}")
    out, err = process.communicate()
    assert time.monotonic() - started < limit + 2 + delay()
    assert process.returncode in (0, 4), err
    document = json.loads(out)
    assert document["status"] in ("unknown", "feasible")
    assert "compiling machine code" in err
    assert document["wall_s"] < limit + 0.5 + delay()


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_ends_compiling(fresh: dict[str, str], tmp_path: Path, number: signal.Signals) -> None:
    """Within 2 s there is a document, and no worker is left."""
    process = begun(fresh, tmp_path, *COLD)
    assert process.stderr is not None
    for line in process.stderr:
        if "compiling machine code" in line:
            break
    time.sleep(0.3)
    process.send_signal(number)
    sent = time.monotonic()
    out, err = process.communicate()
    assert time.monotonic() - sent < 2 + delay()
    assert process.returncode == 130, err
    assert json.loads(out)["status"] == "interrupted"


def test_quiet_stays_quiet(fresh: dict[str, str], tmp_path: Path) -> None:
    """Nothing is said of compiling."""
    process = begun(fresh, tmp_path, *COLD, "-q", "-t", "2")
    assert "compiling" not in process.communicate()[1]


@pytest.mark.slow  # compiles everything: some 15 s of the processor
def test_everything_is_compiled_within_the_budget(fresh: dict[str, str], tmp_path: Path) -> None:
    """On a fresh installation the doctor compiles all kernels, then tests, and all is well."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = begun(fresh, tmp_path, "doctor")
    out, err = process.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert process.returncode == 0, out + err
    assert "all is well" in out
    assert "kernels in" in out
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < BUDGET
    again = begun(fresh, tmp_path, "doctor")
    assert "compiled before" in again.communicate()[0]


@pytest.mark.slow  # a fresh installation, with processes side by side
def test_the_first_plan_comes_early(fresh: dict[str, str], tmp_path: Path) -> None:
    """A method whose machine code takes long has a plan of another one within 10 s."""
    process = begun(fresh, tmp_path, *COLD, "-t", str(10 + delay()))
    document = json.loads(process.communicate()[0])
    assert document["status"] == "feasible"
    assert document["trace"]
