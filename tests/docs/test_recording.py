"""The README's picture of a terminal: today's figures, and nothing from the network."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tilewright.cli.main import run

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "figures" / "terminal.svg"
KEPT = ("conv ", "energy ", "bound ", "space ", "MAC ")


def lines_of(picture: Path) -> list[str]:
    """The lines that a recording shows."""
    lines: dict[float, list[tuple[float, str]]] = {}
    for text in ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}text"):
        if "clip-path" in text.attrib:
            words = (text.text or "").replace("\N{NO-BREAK SPACE}", " ")
            lines.setdefault(float(text.get("y", 0)), []).append((float(text.get("x", 0)), words))
    return ["".join(words for _, words in sorted(parts)).rstrip() for _, parts in sorted(lines.items())]


def test_the_recording_is_what_its_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """Figures that no tie between equally good mappings changes."""
    lines = lines_of(PICTURE)
    command = " ".join(lines[:2]).removeprefix("$ tilewright ").split()
    assert run([*command, "-q"]) == 0
    printed = capsys.readouterr().out.splitlines()
    for start in KEPT:
        [expected] = [line for line in printed if line.startswith(start)][:1]
        assert expected.split() in [line.split() for line in lines], expected
    assert "url(http" not in PICTURE.read_text(encoding="utf-8")
    assert "@font-face" not in PICTURE.read_text(encoding="utf-8")
