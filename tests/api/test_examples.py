"""The examples and the reference's code run."""

from __future__ import annotations

import importlib.util
import re
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


@pytest.mark.parametrize("page", ["docs/python.md", "README.md"])
def test_code_of_the_pages_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python blocks of a page run one after the other, on small things in place of large ones."""
    monkeypatch.chdir(tmp_path)
    text = (TOP / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert blocks
    code = "\n".join(blocks)
    for large, small in (
        ("conv:K=64,C=64,P=56,Q=56,R=3,S=3,pad=1", "gemm:M=8,N=4,K=8"),
        ('"resnet50"', '"gemm:M=8,N=4,K=8"'),
        ('"ar-vr-a"', '"gemm:M=8,N=4,K=8"'),
        ("utilization>=0.8", "utilization>=0.01"),
    ):
        code = code.replace(large, small)
    exec(compile(code, page, "exec"), {})
