"""What ten commands take from the shell: CPU seconds of the whole process, memory, and what they find.

    python -m studies.commands
    python -m studies.commands --programs before/bin/tilewright after/bin/tilewright --turns 3

Every command runs once to warm up and then so many times; of several programs in turn, so that a busy
machine is busy for all of them.  CPU seconds are medians, the wall is the quickest call's; with two programs
the last column is the second one's CPU seconds over the first one's.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

COMMANDS = {
    "help": "--help",
    "a product of 64 iterations": "map gemm:M=4,N=4,K=4 -a nvdla-256",
    "ResNet-50, EDP": "map onnx:resnet50 -a nvdla-256 -o edp",
    "SqueezeNet, energy, uneven": "map onnx:squeezenet -a nvdla-256 -o energy "
    "--storage uneven --factors perfect",
    "49 machines for one layer": "explore LAYERS --layers conv5_2 -a dmazerunner-256 -o edp --jobs 1 "
    "--vary levels.RF.capacity=16B..1kB*2 --vary levels.SPM.capacity=16kB..1MB*2",
    "AlexNet and MLP on two engines": "schedule WORKLOAD --system hda-edge-maelstrom -m herald",
    "ResNet-50 on 64 engines, in layers": "schedule resnet50 --system atomic-8x8 -m ls --out plan.json",
    "SqueezeNet on tiles, chains proven": "schedule onnx:squeezenet --system set-edge-4x4 "
    "-m chains -o edp -t 60",
    "two engines, co-designed": "codesign WORKLOAD --class edge --dataflows nvdla,shidiannao -o energy -t 20",
    "a contest of two methods": "compare alexnet --system atomic-2x2 --methods ls,il-pipe -t 5 --jobs 1 "
    "--store contest.sqlite",
    "the plan checked": "check plan.json",
}
"""Ten questions and the check of a plan, in a folder of their own."""
WORKLOAD = "networks:\n  - {model: alexnet}\n  - {model: mlp}\n"
LAYERS = Path(__file__).parents[1] / "examples" / "dmazerunner_layers.yaml"
OWN = str(Path(sys.executable).with_name("tilewright"))


@dataclass(frozen=True, slots=True)
class Taken:
    """CPU and wall seconds of a process and its children, and the most memory that it held, MiB."""

    cpu: float
    wall: float
    memory: float


def taken(program: str, arguments: str, folder: Path) -> Taken:
    """One call; raises ``CalledProcessError`` for an exit code that says that nothing was found."""
    words = [
        {"LAYERS": str(LAYERS), "WORKLOAD": "workload.yaml"}.get(word, word)
        for word in shlex.split(arguments)
    ]
    (folder / "contest.sqlite").unlink(missing_ok=True)
    begun = time.monotonic()
    with subprocess.Popen(
        [program, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, [program, *words])
    return Taken(used.ru_utime + used.ru_stime, time.monotonic() - begun, used.ru_maxrss / 1024)


def row(name: str, arguments: str, folders: dict[str, Path], turns: int) -> str:
    """Medians of a command for every program, each in its folder."""
    runs: dict[str, list[Taken]] = {program: [] for program in folders}
    for turn in range(turns + 1):
        for program, folder in folders.items():
            run = taken(program, arguments, folder)
            if turn:
                runs[program].append(run)
    cells, seconds = [], []
    for mine in runs.values():
        seconds.append(statistics.median(run.cpu for run in mine))
        wall = min(run.wall for run in mine)
        cells += [f"{seconds[-1]:.2f}", f"{wall:.2f}", f"{max(run.memory for run in mine):.0f}"]
    if len(folders) > 1:
        cells.append(f"{seconds[1] / seconds[0]:.2f}")
    return f"| {name} | {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print each row when it is known."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", nargs="+", default=[OWN], help="one, or two to compare")
    parser.add_argument("--turns", type=int, default=3, help="calls of every command after the first")
    parser.add_argument("--only", nargs="+", default=list(COMMANDS), choices=list(COMMANDS), metavar="NAME")
    asked = parser.parse_args(arguments)
    many = len(asked.programs) > 1
    heads = [f"{who}CPU s | wall s | MiB" for who in (("before: ", "after: ") if many else ("",))]
    print(f"| command | {' | '.join(heads)} |{' ratio of CPU s |' if many else ''}")
    print("|---|" + "---:|" * (3 * len(heads) + many), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        folders = {program: Path(folder) / str(place) for place, program in enumerate(asked.programs)}
        for own in folders.values():
            own.mkdir()
            (own / "workload.yaml").write_text(WORKLOAD, encoding="utf-8")
        for name in (name for name in COMMANDS if name in asked.only):
            print(row(name, COMMANDS[name], folders, asked.turns), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
