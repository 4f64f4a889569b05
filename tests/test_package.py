"""The package as a whole: its version, what importing it costs, which verbs it loads."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
import yaml

import tilewright
from tilewright.cli.main import VERBS

TOP = Path(__file__).parents[1]
HEAVY = ("numpy", "numba", "onnx", "ortools", "networkx", "pydantic", "rich", "typer", "importlib.metadata")


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has after some code, without those that it starts with."""
    program = (
        "import json, sys; before = set(sys.modules)\n"
        f"{code}\n"
        "print('\\n' + json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_one_version() -> None:
    """The package, its metadata, the citation and the changelog name the same version and date."""
    with suppress(PackageNotFoundError):  # a source tree that was never installed
        assert version("tilewright") == tilewright.__version__
    citation = yaml.safe_load((TOP / "CITATION.cff").read_text())
    assert citation["version"] == tilewright.__version__
    heading = rf"^## \[{re.escape(tilewright.__version__)}\] - (\d{{4}}-\d\d-\d\d)$"
    dated = re.search(heading, (TOP / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert dated is not None
    assert dated[1] == str(citation["date-released"])


def test_import_is_light() -> None:
    """``import tilewright`` loads no library: it takes what reading one file takes."""
    assert not loaded_by("import tilewright") & set(HEAVY)


@pytest.mark.parametrize("verb", ["check", "list"])
def test_a_verb_loads_itself_only(verb: str) -> None:
    """The help of one verb imports the module of no other."""
    loaded = loaded_by(f"from tilewright.cli.main import run; run(['{verb}', '--help'])")
    modules = {name: place.partition(":")[0] for name, place in VERBS.items()}
    assert {name for name, module in modules.items() if module in loaded} == {verb}


def test_version_loads_no_verb() -> None:
    """``--version`` answers without any verb."""
    loaded = loaded_by("from tilewright.cli.main import run; run(['--version'])")
    assert not {place.partition(":")[0] for place in VERBS.values()} & loaded
