"""Small things of every day: completion, reasons under --quiet, doubtful machines, what stays on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
from calls import SMALL, Call

from tilewright.cli import completion
from tilewright.cli.doctor import _kept
from tilewright.cli.main import app
from tilewright.solvers.mapping.compiled.program import BOUNDS

NAMED = ("--arch", "--system", "--solver", "--method", "--methods", "--class", "--cost-model", "--factors")
ONE_PE = """\
clock_mhz: 500
compute: {mac_energy: 1, element_bits: 8}
levels:
  - {name: DRAM, energy: 100}
  - {name: RF, elements: 64, energy: 1}
"""


def test_a_shell_is_offered_names(tmp_path: Path) -> None:
    """What a shell's completion asks is answered with the presets that go on from the word."""
    asked = {"COMP_WORDS": "tilewright map resnet50 --arch nv", "COMP_CWORD": "4"}
    done = subprocess.run(
        [sys.executable, "-m", "tilewright"],
        env={**os.environ, "_TILEWRIGHT_COMPLETE": "complete_bash", **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["nvdla-256"]


def test_every_option_with_names_completes_them() -> None:
    """No verb takes the name of a machine, system or method without offering what there is."""
    silent = {
        f"{verb} {option}"
        for verb, command in typer.main.get_command(app).commands.items()  # type: ignore[attr-defined]
        if verb != "runs"  # filters a store by what is in there
        for param in command.params
        for option in param.opts
        if option in NAMED and param._custom_shell_complete is None
    }
    assert not silent


@pytest.mark.parametrize(
    ("complete", "word", "name"),
    [
        (completion.systems, "hda-edge-mael", "hda-edge-maelstrom"),
        (completion.workloads, "ar-vr", "ar-vr-a"),
        (completion.things, "tpu", "tpu-edge"),
        (completion.solvers, "branch,ann", "branch,annealing"),
        (completion.scheduling_methods, "herald", "herald"),
        (completion.planning_methods, "ls,ato", "ls,atomic"),
        (completion.suites, "ti", "tiny"),
    ],
)
def test_completions(complete: completion.Completion, word: str, name: str) -> None:
    """Every kind of name is found, the last one of a list as well."""
    assert name in complete(word)
    assert not complete("no-such-name")


def test_quiet_keeps_the_reason(call: Call) -> None:
    """Without progress, what ends a call with another exit code than 0 still stands on standard error."""
    infeasible = call("map", SMALL, "-a", "tpu-edge", "-q", "--constraint", "cycles<=1")
    assert infeasible.code == 3
    assert "no mapping satisfies: cycles<=1" in infeasible.err
    unproven = call("map", SMALL, "-a", "tpu-edge", "-q", "-s", "random[victory=1]", "--require-optimal")
    assert unproven.code == 6
    assert "feasible, not proven optimal" in unproven.err
    assert not call("map", SMALL, "-a", "tpu-edge", "-q").err


SWEEP = (
    "explore",
    "gpt2",
    "-a",
    "nvdla-256",
    "--layers",
    "block1.attention.scores",
    "--vary",
    "model.tokens=4,5",
)


@pytest.mark.parametrize(
    ("asked", "code", "expected"),
    [
        (("map", SMALL, "-a", "tpu-edge", "--fuse", "-t", "0.001"), 4, "no mapping is known of gemm"),
        (
            (
                "compare",
                SMALL,
                "--system",
                "atomic-2x2",
                "-m",
                "ls",
                "--jobs",
                "1",
                "--seeds",
                "1",
                "-t",
                "0.001",
            ),
            4,
            "no method has a plan",
        ),
        ((*SWEEP, "--constraint", "cycles<=1"), 3, "tokens=5"),
        ((*SWEEP, "-t", "0.001"), 4, "2 of 2 points were not reached"),
    ],
)
def test_every_verb_keeps_the_reason(call: Call, asked: tuple[str, ...], code: int, expected: str) -> None:
    """The same of fused networks, contests and sweeps."""
    outcome = call(*asked, "-q")
    assert outcome.code == code
    assert expected in outcome.err
    assert all(line.startswith("tilewright: ") for line in outcome.err.splitlines())


def test_a_machine_of_one_pe_is_questioned(call: Call, tmp_path: Path) -> None:
    """A file without any fanout is taken as it is written, and a line says so."""
    (tmp_path / "one.yaml").write_text(ONE_PE)
    question = "one: no level has a fanout, so this is taken for a machine with a single PE"
    assert question in call("show", "one.yaml").err
    outcome = call("map", SMALL, "-a", "one.yaml", "--format", "json")
    assert question in outcome.err
    assert outcome.document["notes"] == [question]


def test_the_doctor_names_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs of layers and machine code are found where it says."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    fine, text = _kept()
    assert fine
    assert str(tmp_path) in text
    assert str(BOUNDS.entries[0].folder) in text
