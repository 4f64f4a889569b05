"""The examples run."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

TOP = Path(__file__).parents[2]
EXAMPLES = sorted(path.stem for path in (TOP / "examples").glob("*.py"))


def example(name: str) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, TOP / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "certify_a_mapping"])
def test_example_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every example runs with its quick settings and tells something."""
    example(name).main(quick=True)
    assert capsys.readouterr().out


def test_a_mapping_is_certified(capsys: pytest.CaptureFixture[str]) -> None:
    """The example's mapping is legal and not far from the proven best."""
    assert 0 <= example("certify_a_mapping").main() < 1
    assert "legal" in capsys.readouterr().out


def test_the_sweep_draws(tmp_path: Path) -> None:
    """Eight proven points make a picture."""
    pytest.importorskip("matplotlib")
    sweep = example("sweep_a_buffer")
    rows = [{"kB": size, "energy": 1e6 + size, "bound": 1e6, "cycles": 1} for size in sweep.SIZES]
    sweep.draw(rows, tmp_path / "sweep.png")
    assert (tmp_path / "sweep.png").stat().st_size > 1000
