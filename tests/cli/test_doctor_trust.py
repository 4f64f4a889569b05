"""What ``doctor`` says of folders that others can write to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.cli.doctor import _kept
from tilewright.foundation.caches import VARIABLE


def test_doctor_tells_why_a_folder_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that is used, the one that is not, and the reason."""
    named = tmp_path / "cache"
    monkeypatch.setenv(VARIABLE, str(named))
    works, text = _kept()
    assert works
    assert "not trusted" not in text
    assert f"costs of layers in {named};" in text
    named.mkdir(mode=0o700)
    named.chmod(0o777)
    works, text = _kept()
    assert works
    assert f"costs of layers in {named};" not in text
    assert f"not trusted: {named}: others can write to (mode 0777)" in text
