"""The command line in this process, in an empty folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import TWO_LAYERS, Call, caller, end_started


@pytest.fixture(autouse=True)
def no_process_outlives_its_test() -> Iterator[None]:
    """Whatever a test has started and not finished is killed."""
    yield
    end_started()


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Calls the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return caller(capsys)


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """A file of three layers, two of them equal."""
    path = tmp_path / "layers.yaml"
    path.write_text(TWO_LAYERS)
    return path


@pytest.fixture
def result(call: Call, network: Path, tmp_path: Path) -> Path:
    """A result document of the three layers on tpu-edge."""
    path = tmp_path / "result.json"
    assert call("map", network, "-a", "tpu-edge", "-o", "edp", "-q", "--out", path).code == 0
    return path
