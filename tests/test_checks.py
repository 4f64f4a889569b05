"""The scripts in ``.ci`` that look at the repository itself."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
CHECKS = TOP / ".ci"

pytestmark = pytest.mark.skipif(not CHECKS.is_dir(), reason="a source distribution has no .ci")


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """One script with its arguments."""
    call = [sys.executable, str(CHECKS / script), *map(str, arguments)]
    return subprocess.run(call, capture_output=True, text=True, check=False)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the pictures that may be binary, and a small file."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "docs" / "figures").mkdir(parents=True)
    (tmp_path / "docs" / "figures" / "one.png").write_bytes(b"\x89PNG\0")
    (tmp_path / "small.txt").write_text("text\n")
    return tmp_path


def sizes(repository: Path) -> subprocess.CompletedProcess[str]:
    """What the check of sizes says of everything in a repository."""
    subprocess.run(["git", "-C", str(repository), "add", "--all", "--force"], check=True)
    return run("sizes.py", repository)


def test_large_and_binary_files_are_refused(repository: Path) -> None:
    """Text of 500 kB passes; one byte more, a wheel, and an entry of the list without a file are named."""
    (repository / "large.txt").write_text("x" * 500_000)
    assert (sizes(repository).returncode, sizes(repository).stdout) == (0, "")
    (repository / "large.txt").write_text("x" * 500_001)
    (repository / "tool.whl").write_bytes(b"PK\3\4\0\0")
    (repository / "docs" / "figures" / "one.png").unlink()
    done = sizes(repository)
    assert done.returncode == 1
    lines = [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert lines == ["large.txt", "tool.whl", "docs/figures/*.png"]


def test_every_requirement_has_a_lowest_version(tmp_path: Path) -> None:
    """Each dependency, of extras too, has a lower bound that `.ci/lowest` can install."""
    project = TOP / "pyproject.toml"
    extras = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    done = run("pins.py", project, *extras)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", line) for line in done.stdout.splitlines())
    assert sum(line.startswith("numpy==") for line in done.stdout.splitlines()) == 1
    loose = tmp_path / "pyproject.toml"
    loose.write_text(project.read_text().replace('"networkx>=3.3"', '"networkx"'))
    done = run("pins.py", loose)
    assert (done.returncode, done.stderr) == (1, "networkx: no lower bound\n")


def test_documents_agree_on_how_long_the_tests_take() -> None:
    """README and CONTRIBUTING state the same number of tests and minutes for the same command."""
    times = [
        re.findall(r"([\d,]+)(?: tests,| in) ([\d.]+) minutes on two idle cores", (TOP / name).read_text())
        for name in ("README.md", "CONTRIBUTING.md")
    ]
    assert times[0] == times[1]
    assert len(times[0]) == 1
