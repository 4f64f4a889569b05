"""Every command and every block of Python in the documents is run, or says why not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from page_blocks import KNOWN, ROOT, RUN, Block, Reader, blocks_of, indented_commands, said

from tilewright.cli.main import run

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ELSEWHERE = {"extending.md": "test_extending.py writes its files, runs its commands and judges the answers"}
"""Pages with a test of their own."""

BLOCKS = {path: blocks_of(path) for path in PAGES if path.name not in ELSEWHERE}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def followed(path: Path, folder: Path, capfd: pytest.CaptureFixture[str], *, slow: bool) -> None:
    """Run a page's blocks in their sequence, the slow ones only where they are wanted."""

    def printed() -> str:
        output = capfd.readouterr()
        return output.out + output.err

    reader = Reader(folder, run, printed)
    for block in BLOCKS[path]:
        if slow or not block.slow:
            reader.follow(block)


def has(path: Path, *, slow: bool) -> bool:
    return any(block.is_run and block.slow == slow for block in BLOCKS[path])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, and a terminal of 110 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", ""), str(ROOT)]  # studies are run from a clone
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    return tmp_path


@pytest.mark.parametrize("path", [path for path in BLOCKS if has(path, slow=False)], ids=name_of)
def test_quick_blocks_run(path: Path, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The blocks of a page that take no time do what the page says."""
    followed(path, folder, capfd, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in BLOCKS if has(path, slow=True)], ids=name_of)
def test_all_blocks_run(path: Path, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """All blocks of a page do what it says, long ones with the smaller limits that stand beside them."""
    followed(path, folder, capfd, slow=True)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_no_block_is_left_out(path: Path) -> None:
    """Every block with a command is run or has a reason, and its language is known."""
    wrong = [f"line {number}: a command outside a fence" for number in indented_commands(path)]
    for block in BLOCKS.get(path, []):
        reason = block.marks.get("not run", "-")
        if block.kind not in KNOWN:
            wrong.append(f"line {block.line}: the language {block.kind!r} is not among {', '.join(KNOWN)}")
        if not reason or ("not run" in block.marks and "slow" in block.marks):
            wrong.append(f"line {block.line}: a block is left out without a reason")
        if block.kind not in RUN and block.has_command and not {"not run", "output"} & set(block.marks):
            wrong.append(f"line {block.line}: a command in a block of {block.kind!r} that is not run")
    assert not wrong, "; ".join(wrong)


def test_the_marks_are_read(tmp_path: Path) -> None:
    """Comments before a fence count, across blank lines and other comments, and no further than one block."""
    page = tmp_path / "page.md"
    page.write_text(
        '<!-- slow -->\n<!-- with: "60" is "1", "a" is "b" -->\n\n'
        "```sh\ntilewright map a --time-limit 60\n```\n\n```python\nprint(1)\n```\n\n"
        "<!-- not run: it needs a cluster -->\n```sh\ntilewright list archs\n```\n\n"
        "    tilewright show me\n    more\n\n```text\ntilewright list archs\n```\n"
    )
    first, second, third, last = blocks_of(page)
    assert first.slow
    assert first.as_run == "tilewright mbp b --time-limit 1\n"
    assert second.is_run
    assert not second.slow
    assert (third.is_run, third.marks) == (False, {"not run": "it needs a cluster"})
    assert last.has_command
    assert indented_commands(page) == [17]


def test_a_failing_block_fails(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A wrong exit code, a wrong line and an exception of a page's block are found."""
    reader = Reader(folder, run, lambda: capfd.readouterr().out)
    reader.follow(Block("page.md", 1, "sh", "tilewright show nothing-like-it\n", {"fails": "2"}))
    with pytest.raises(AssertionError, match="exit code 2, not 0"):
        reader.follow(Block("page.md", 1, "sh", "tilewright show nothing-like-it\n"))
    with pytest.raises(AssertionError, match="exit code 3, not 0"):
        reader.follow(Block("page.md", 1, "sh", "exit 3; true\n"))
    reader.follow(Block("page.md", 1, "python", "print('one   two three')\n"))
    reader.follow(Block("page.md", 1, "text", "one two\none … three\n", {"output": ""}))
    with pytest.raises(AssertionError, match="not printed"):
        reader.follow(Block("page.md", 1, "text", "two one\n", {"output": ""}))
    with pytest.raises(ZeroDivisionError):
        reader.follow(Block("page.md", 1, "python", "1 / 0\n"))
    assert said("a … b", "a 1 b")


def test_pages_with_a_test_of_their_own() -> None:
    """That test reads the page it is said to run."""
    for page, reason in ELSEWHERE.items():
        test = ROOT / "tests" / "docs" / reason.split()[0]
        assert f'"docs" / "{page}"' in test.read_text(encoding="utf-8")
