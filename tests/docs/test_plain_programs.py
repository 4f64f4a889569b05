"""Python of the documents as readers keep it: in a file without a guard, on standard input, in a notebook."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from page_blocks import ROOT, Reader, blocks_of

from tilewright.cli.main import run as run_command

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
CELL = "import sys\nsys.path.insert(0, '')\nexec(compile(open('program.py').read(), '<cell>', 'exec'))"
WAYS = {"file": ["program.py"], "input": ["-"], "notebook": ["-P", "-c", CELL]}
QUICK = ("README.md",)

PROGRAMS: dict[str, str] = {
    f"{path.relative_to(ROOT)}{', all' if slow else ''}": "\n".join(chosen)
    for path in PAGES
    for slow in (False, True)
    if path.name != "extending.md"  # its files are modules
    and (chosen := [b.as_run for b in blocks_of(path) if b.is_run and b.kind == "python" and slow >= b.slow])
    and (not slow or any(b.slow for b in blocks_of(path) if b.is_run and b.kind == "python"))
}
"""By page, its blocks one after the other; of pages with slow ones, all and those that are not."""

UNGUARDED = """
import tilewright as tw

with open("layers.yaml", "w") as file:
    file.write("".join(f"- gemm:M=8,N=4,K={8 * k},name=layer{k}\\n" for k in range(1, 8)))
plan = tw.solve(tw.workload("layers.yaml").on(tw.system("hda-edge-maelstrom")), stop=tw.seconds(60))
print(plan.status)
sizes = {"levels.RF.capacity": "64B,128B"}
print(tw.explore("gemm:M=8,N=4,K=8", "dmazerunner-256", sizes, jobs=2, stop=tw.seconds(60)).optimal)
"""


def run(folder: Path, text: str, way: str, *arguments: str) -> str:
    """Run a program in a folder; what it prints."""
    (folder / "program.py").write_text(text)
    done = subprocess.run(
        [sys.executable, *WAYS[way], *arguments],
        cwd=folder,
        input=text if way == "input" else None,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "way"),
    [
        pytest.param(name, way, marks=() if name in QUICK and way == "file" else pytest.mark.slow)
        for name in PROGRAMS
        for way in WAYS
    ],
)
def test_blocks_run_as_programs(
    tmp_path: Path, name: str, way: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What a page shows runs as it stands, after what stands before it, with nothing on standard error."""
    page, _, every = name.partition(", ")
    monkeypatch.chdir(tmp_path)
    reader = Reader(tmp_path, run_command, lambda: capfd.readouterr().out)
    blocks = [
        block for block in blocks_of(ROOT / page) if "output" not in block.marks and (every or not block.slow)
    ]
    last = max(place for place, block in enumerate(blocks) if block.is_run and block.kind == "python")
    for block in blocks[:last]:
        if page != "README.md":  # its program needs nothing of its commands
            reader.follow(block)
    run(tmp_path, PROGRAMS[name], way)


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
@pytest.mark.parametrize("way", WAYS)
def test_examples_run_without_their_guard(tmp_path: Path, path: Path, way: str) -> None:
    """Programs that are shipped run from a copy in which nothing asks for the name of the module."""
    quick = "main(quick=True)" if "quick" in path.read_text() else "main()"
    text = path.read_text().partition('if __name__ == "__main__":')[0] + quick
    run(tmp_path, text, way)


@pytest.mark.parametrize(
    "way", ["file", *(pytest.param(way, marks=pytest.mark.slow) for way in list(WAYS)[1:])]
)
def test_workers_need_no_guard(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cost tables and explorations in many processes, from a program that they do not run again."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    printed = run(tmp_path, UNGUARDED, way)
    assert printed.split() == ["optimal", "True"]
