"""The package as a whole: its version, what importing it costs, which verbs it loads."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
import yaml

import tilewright
from tilewright.cli.main import VERBS
from tilewright.cli.verb_lines import LINES

TOP = Path(__file__).parents[1]
HEAVY = (
    *("numpy", "llvmlite", "onnx", "ortools", "networkx", "pydantic", "rich", "typer"),
    "importlib.metadata",
)


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


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_the_program_itself_loads_no_verb(flag: str) -> None:
    """``--version`` and ``--help`` answer without any verb, and without Rich."""
    loaded = loaded_by(f"from tilewright.cli.main import run; run(['{flag}'])")
    modules = {place.partition(":")[0] for place in VERBS.values()}
    assert not (modules | (set(HEAVY) - {"typer", "importlib.metadata"})) & loaded


def test_the_help_tells_of_verbs_what_they_tell_themselves() -> None:
    """Each verb's line is the beginning of its own help."""
    for name, place in VERBS.items():
        module, _, function = place.partition(":")
        reported = inspect.getdoc(getattr(import_module(module), function)) or ""
        assert " ".join(reported.partition("\n\n")[0].split()) == LINES[name]


def test_a_map_loads_what_it_needs(tmp_path: Path) -> None:
    """A small layer is proven without ONNX, CP-SAT and all that belongs to schedules."""
    words = ["map", "gemm:M=4,N=4,K=4", "-a", "nvdla-256", "-q", "--out", str(tmp_path / "found.json")]
    code = f"from tilewright.cli.main import run; run({words!r})"
    loaded_by(code)  # where nothing is kept yet, it compiles
    loaded = loaded_by(code)
    assert not {"onnx", "ortools", "networkx"} & loaded
    assert not [name for name in loaded if name.startswith("tilewright.") and "scheduling" in name]
