"""Streams that are closed, full or full of escapes: results survive, messages name the file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from calls import SMALL, Call

from tilewright.cli.terminal.console import rendered
from tilewright.formulation.result import Status
from tilewright.report.text.csv_text import csv_line
from tilewright.report.text.rendering import UNSAFE, cleaned

ARCH = ("-a", "tpu-edge")
PAIR = """\
- {name: up, layer: "gemm:M=3,N=4,K=5"}
- {name: down, layer: "gemm:M=3,N=2,K=4", reads: {A: up}}
"""


def shell(folder: Path, redirections: str, *args: str) -> subprocess.CompletedProcess[str]:
    """The command line under a shell's redirections."""
    command = f'"{sys.executable}" -m tilewright.cli map {SMALL} -a tpu-edge {" ".join(args)} {redirections}'
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "redirections",
    [
        ">&- 2>&-",
        "> /dev/full 2> /dev/full",
        *(pytest.param(text, marks=pytest.mark.slow) for text in (">&-", "> /dev/full")),
    ],
)
def test_a_lost_stdout_does_not_lose_the_file(tmp_path: Path, redirections: str) -> None:
    """Whatever becomes of standard output the document is whole; exit code and, if possible, a line tell."""
    done = shell(tmp_path, redirections, "--out", "r.json", "--log", "l.txt")
    assert done.returncode == 1
    assert json.loads((tmp_path / "r.json").read_text())["complete"] is True
    assert "optimal" in (tmp_path / "l.txt").read_text()
    assert ("standard output: cannot be written" in done.stderr) is ("2>" not in redirections)
    assert "Traceback" not in done.stderr
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["l.txt", "r.json"]


@pytest.mark.parametrize("redirections", ["2>&-", "2> /dev/full"])
def test_lost_progress_does_not_lose_results(tmp_path: Path, redirections: str) -> None:
    """Without standard error the search goes on and ends well."""
    done = shell(tmp_path, redirections, "-f", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["complete"] is True


@pytest.mark.parametrize("args", ["--help", "--version", "map --help", "--show-completion bash"])
def test_a_lost_help_is_told_in_one_line(tmp_path: Path, args: str) -> None:
    """What libraries print is standard output, too: a full one is named, and one that nobody reads is not."""
    program = f'"{sys.executable}" -m tilewright.cli {args}'
    command = f"set -o pipefail; {program} > /dev/full; echo $?; {program} 2>&1 >&3 3>&- | cat"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        ["bash", "-c", f"exec 3>&{writer}; {command}"],
        cwd=tmp_path,
        pass_fds=(writer,),
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(writer)
    told = "tilewright: error: standard output: cannot be written: No space left on device\n"
    assert (done.stdout, done.stderr, done.returncode) == ("1\n", told, 1)


def test_a_file_that_nobody_asked_for_is_named(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library's own file that cannot be used, as a shell's start file, is told by its name."""

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "/x/.bashrc")

    monkeypatch.setattr("tilewright.cli.terminal.help.HelpText.panel", refused)
    outcome = call("--help")
    told = "tilewright: error: /x/.bashrc: Permission denied (-v shows the traceback)\n"
    assert (outcome.code, outcome.out, outcome.err) == (1, "", told)


@pytest.mark.parametrize("flag", ["--out", "--log"])
def test_a_full_disk_is_told_by_name(call: Call, flag: str) -> None:
    """A file that cannot take the results is named, the answer reaches stdout, and the exit code is 1."""
    outcome = call("map", SMALL, *ARCH, "-q", "-f", "json", flag, "/dev/full")
    assert outcome.code == 1
    assert outcome.document["complete"] is True
    assert outcome.err == "tilewright: error: /dev/full: cannot be written: No space left on device\n"


def test_a_full_disk_leaves_other_outputs(call: Call, tmp_path: Path) -> None:
    """Fused mappings and converted files are there, whatever becomes of another file."""
    told = "tilewright: error: /dev/full: cannot be written: No space left on device\n"
    model = tmp_path / "pair.yaml"
    model.write_text(PAIR)
    fused = ("map", model, *ARCH, "--fuse", "--factors", "perfect", "-q", "--out", "/dev/full")
    outcome = call(*fused, "-f", "json")
    assert (outcome.code, outcome.err) == (1, told)
    assert outcome.document["totals"]["value"] is not None
    outcome = call(*fused)
    assert (outcome.code, outcome.err) == (1, told)
    assert "nJ" in outcome.out
    outcome = call("convert", "nvdla-256", "--to", "timeloop", "--lossy", "-q", "--report", "/dev/full")
    assert (outcome.code, outcome.err) == (1, told)
    assert "CBUF" in outcome.out


def test_formats_follow_suffixes(call: Call, tmp_path: Path) -> None:
    """An unknown suffix is refused with the list, unless --format names a file's format."""
    refused = call("map", SMALL, *ARCH, "-q", "--out", "r.txt")
    assert refused.code == 2
    assert "r.txt: expected a file that ends in one of: .json, .jsonl, .csv, .yaml, .yml" in refused.err
    assert call("map", SMALL, *ARCH, "-q", "-f", "csv", "--out", "r.txt").code == 0
    assert (tmp_path / "r.txt").read_text().startswith("name,count")
    reported = call("schedule", SMALL, "--system", "hda-edge-maelstrom-mlperf", "--out", "s.csv")
    assert (reported.code, ".json" in reported.err) == (2, True)
    assert ".sqlite" in call("bench", SMALL, *ARCH, "--out", "b.csv").err


def test_quiet_still_tells_why_a_layer_failed(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """With -q the reason of an error is on stderr."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the solver broke")

    monkeypatch.setattr("tilewright.solvers.running.run_method", broken)
    outcome = call("map", SMALL, *ARCH, "-q", "-f", "json")
    assert (outcome.code, outcome.document["layers"][0]["status"]) == (1, Status.ERROR.value)
    assert outcome.err == "tilewright: error: gemm: RuntimeError: the solver broke\n"


def test_names_do_not_reach_the_terminal_raw(call: Call) -> None:
    """Escapes, C1 controls and marks that turn text around are shown as signs; JSON keeps their meaning."""
    name = "a\x1b[31m\x9b2J\u202eb"
    layer = f"gemm:M=8,N=4,K=8,name={name}"
    for form in ("table", "csv", "json", "jsonl"):
        outcome = call("map", layer, *ARCH, "-f", form)
        assert outcome.code == 0
        assert not {"\x1b", "\x9b", "\u202e"} & set(outcome.out + outcome.err)
        if form == "json":
            assert outcome.document["layers"][0]["name"] == name
    error = call("check", "\x1b]0;title\x07.json").err
    assert "␛]0;title␇.json: cannot be read" in error
    assert rendered(name) == [cleaned(name)]


def test_what_is_printable_is_safe() -> None:
    """Texts of printable characters alone are not looked through before they are shown."""
    assert not [
        code for code in range(sys.maxunicode + 1) if chr(code).isprintable() and UNSAFE.match(chr(code))
    ]


def test_cells_are_text_and_no_formulas() -> None:
    """Texts that a spreadsheet would compute get an apostrophe; numbers keep their sign."""
    assert csv_line(["=1+1", "+a", "-a", "@a", "\ta", "a=1", -1, -2.5, None]) == (
        "'=1+1,'+a,'-a,'@a,'\ta,a=1,-1,-2.5,\n"
    )


def test_constraints_are_told_and_kept(call: Call, network: Path) -> None:
    """What no layer has is refused; what some lack is a note on stderr and in the document."""
    (network.parent / "both.yaml").write_text(f"- {SMALL}\n- conv:K=2,C=2,P=2,Q=2,R=1,S=1\n")
    refused = call("map", "both.yaml", *ARCH, "--constraint", "tile(ZZ@REG)<=4")
    assert (refused.code, refused.out) == (2, "")
    assert "tile(ZZ@REG)<=4: unknown dimension 'ZZ'" in refused.err
    rules = ("--constraint", "tile(r@reg) <= 1", "--constraint", "tile(R@REG)<=01", "--save-mappings", "m")
    outcome = call("map", "both.yaml", *ARCH, *rules, "-f", "json", "--out", "r.json")
    note = "constraint tile(R@REG)<=1: 1 of 2 layers has no dimension R (gemm)"
    assert (outcome.document["constraints"], outcome.document["notes"]) == (["tile(R@REG)<=1"], [note])
    assert outcome.err.count(note) == 1
    for verb, file in (("check", "r.json"), ("evaluate", "r.json"), ("evaluate", "m/gemm.yaml")):
        assert call(verb, file).code == 0
    assert call("evaluate", "r.json", "--constraint", "tile(Z@REG)<=1").code == 2
