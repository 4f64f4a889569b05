"""Whole calls of an installation whose kept code others have replaced: none of it runs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tilewright
from tilewright.foundation import caches

CALLS = {
    "map": ("map", "gemm:M=96,N=80,K=72", "-a", "eyeriss-168", "--deterministic", "-f", "json"),
    "schedule": ("schedule", "alexnet", "--system", "atomic-2x2", "-m", "ls", "-t", "60", "-f", "json"),
}


def call(verb: str, package: Path, cache: Path) -> Any:
    """One call of an installation; its document."""
    environment = {**os.environ, "PYTHONPATH": str(package.parent), caches.VARIABLE: str(cache)}
    environment["TMPDIR"] = str(package.parents[1])
    command = [sys.executable, "-P", "-m", "tilewright", *CALLS[verb]]
    done = subprocess.run(command, env=environment, cwd=package.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("verb", CALLS)
@pytest.mark.parametrize("place", ["beside", "named"])
def test_no_call_runs_code_that_others_planted(tmp_path: Path, verb: str, place: str) -> None:
    """Every kept file is replaced, in folders that others can write to: the answer is as before."""
    package, cache = tmp_path / "installed" / "tilewright", tmp_path / "cache"
    source = Path(tilewright.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    if place == "named":
        for folder in (package, *(path for path in package.rglob("*") if path.is_dir())):
            (folder / "__pycache__").write_text("")  # no folder can be made here
    before = call(verb, package, cache)
    kept = [*tmp_path.rglob("*.code")]
    assert kept
    for file in kept:
        made_of, code = file.read_bytes()[:32], b"null\nno machine code"
        file.write_bytes(made_of + hashlib.sha256(code).digest() + code)
    planted = {file: file.read_bytes() for file in kept}
    for folder in {file.parent for file in kept} | ({cache} if place == "named" else set()):
        folder.chmod(0o777)
    after = call(verb, package, cache)
    assert {file: file.read_bytes() for file in kept} == planted
    if verb == "map":
        assert after["totals"]["value"] == before["totals"]["value"]
    assert after["layers"][0]["status"] == "optimal" if verb == "map" else after["value"] is not None
