"""Questions, their live documents, and who listens: the same for Python and for the command line."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright.api.arguments import SearchRequest, read_budget
from tilewright.api.live import Listener, LiveDocument
from tilewright.api.saving import SavedDocument
from tilewright.cli.main import run

LAYER = "gemm:M=4,N=4,K=4"


class Hearing(Listener):
    """Keeps the names of what it hears, and the documents at the begin and the end."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.documents: list[Any] = []

    def begin(self, live: LiveDocument[Any]) -> None:
        self.heard.append("begin")
        self.documents.append(live.so_far())

    def part(self, index: int, part: Any) -> None:
        self.heard.append("part")

    def answered(self, index: int, part: Any, is_open: bool) -> None:
        self.heard.append("answered")

    def end(self, answer: Any) -> None:
        self.heard.append("end")
        self.documents.append(answer)


def untimed(document: dict[str, Any]) -> dict[str, Any]:
    """A result document without what differs from run to run."""
    for layer in document["layers"]:
        del layer["wall_s"], layer["trace"], layer["effort"]
    return document


def test_a_verb_gives_the_document_of_the_call(tmp_path: Path) -> None:
    """``map`` and `map_network` with the same arguments write the same document."""
    path = tmp_path / "r.json"
    assert (
        run(["map", LAYER, "-a", "tpu-edge", "--threads", "1", "-q", "-f", "json", "--out", str(path)]) == 0
    )
    answer = tw.map_network(LAYER, "tpu-edge", threads=1)
    assert untimed(json.loads(path.read_text())) == untimed(answer.to_dict())


def test_listeners_hear_the_search_in_order(tmp_path: Path) -> None:
    """The document begins empty, has a layer before that is answered, and ends complete; so does its file."""
    hearing, saved = Hearing(), SavedDocument(tmp_path / "r.json")
    question = tw.network(LAYER).on("tpu-edge")
    request = SearchRequest(None, read_budget(None, 1, 0), threading.Event(), listeners=(hearing, saved))
    answer = question.answer(request)
    assert hearing.heard == ["begin", "part", "answered", "end"]
    before, after = hearing.documents
    assert (before.complete, len(before), after) == (False, 0, answer)
    assert json.loads((tmp_path / "r.json").read_text()) == answer.to_dict()
    assert not saved.failures


def test_errors_name_what_the_caller_wrote(capsys: pytest.CaptureFixture[str]) -> None:
    """A verb's error names the flag, the call's error the argument, before and after a verb has run."""
    for _ in range(2):
        with pytest.raises(tw.InputError, match=r"^method: unknown name 'brunch'"):
            tw.map_network(LAYER, "tpu-edge", method="brunch")
        assert run(["map", LAYER, "-a", "tpu-edge", "--solver", "brunch"]) == 2
        assert "error: --solver: unknown name 'brunch'" in capsys.readouterr().err
