"""The blocks of code in the documents, and how they are run.

A fenced block of ``sh`` or ``python`` is run as it stands.  Comments of Markdown before the fence, which no
reader of a page sees, say otherwise:

======================================  ==============================================================
``<!-- slow -->``                       too long for every day: only ``pytest -m slow`` runs it
``<!-- with: "this" is "that", … -->``  run with a text in place of another; may come again
``<!-- fails: 5 -->``                   the last command ends with this exit code
``<!-- output -->``                     the block before it printed these lines; ``…`` is any text
``<!-- not run: why -->``               left out, for a reason
======================================  ==============================================================

A block whose first line is ``# NAME.SUFFIX`` is a file.  All blocks of a page share a folder, and those of
Python their names.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMANDS = ("tilewright", "python", "python3", "pip", "pytest")
RUN = ("sh", "python")
KNOWN = (*RUN, "text", "yaml", "json", "bash", "toml")

_MARK = re.compile(r"<!-- (.+?) -->")
_PAIR = re.compile(r'"([^"]*)" is "([^"]*)"')
_NAME = re.compile(r"# ([\w-]+\.\w+)\n")
_SHELL = re.compile(r"[|<>;&$]|^(?:for|cd|export) ")


@dataclass(frozen=True)
class Block:
    """A fenced block with what its comments say."""

    page: str
    line: int
    kind: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def slow(self) -> bool:
        return "slow" in self.marks

    @property
    def is_run(self) -> bool:
        return self.kind in RUN and "not run" not in self.marks and self.file is None

    @property
    def file(self) -> str | None:
        """The file that the block is."""
        match = _NAME.match(self.text)
        return match[1] if match else None

    @property
    def as_run(self) -> str:
        """The text with all replacements."""
        text = self.text
        for old, new in _PAIR.findall(self.marks.get("with", "")):
            assert old in text, f"{self.page}:{self.line}: {old!r} is to be replaced and is not there"
            text = text.replace(old, new)
        return text

    @property
    def has_command(self) -> bool:
        """Whether a line of it looks like a command."""
        return any(is_command(line) for line in self.text.splitlines())


def is_command(line: str) -> bool:
    """Whether a line begins with one of the programs of these pages."""
    words = line.removeprefix("$ ").split()
    return len(words) > 1 and words[0].rpartition("/")[2] in COMMANDS and not line.rstrip().endswith(".")


def blocks_of(path: Path) -> list[Block]:
    """All fenced blocks of a page, in their sequence; what a slow one prints is slow too."""
    blocks = list(_read(path))
    ran = blocks[0] if blocks else None
    for place, block in enumerate(blocks):
        if block.is_run:
            ran = block
        elif "output" in block.marks and ran is not None and ran.slow:
            blocks[place] = replace(block, marks={**block.marks, "slow": ""})
    return blocks


def _read(path: Path) -> Iterator[Block]:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    marks: dict[str, str] = {}
    place = 0
    while place < len(lines):
        line = lines[place]
        fence = re.match(r"(`{3,})(\w*)$", line.rstrip())
        if fence:
            end = next(i for i in range(place + 1, len(lines)) if lines[i].rstrip() == fence[1])
            yield Block(path.name, place + 1, fence[2], "".join(lines[place + 1 : end]), marks)
            marks, place = {}, end
        elif match := _MARK.fullmatch(line.strip()):
            name, _, rest = match[1].partition(":")
            before = marks.get(name.strip())
            marks = {**marks, name.strip(): f"{before}, {rest.strip()}" if before else rest.strip()}
        elif line.strip():
            marks = {}
        place += 1


def indented_commands(path: Path) -> list[int]:
    """Lines of indented blocks that look like commands: they belong into a fence."""
    inside, numbers, before = False, [], ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        inside ^= line.startswith("```")
        if not inside and re.match(r" {4}\S", line) and is_command(line.strip()) and not before.strip():
            numbers.append(number)
        before = "" if line.startswith("    ") else line
    return numbers


def commands_of(text: str) -> list[str]:
    """The lines of a block of ``sh``, continued ones joined, without comments."""
    lines = [line.strip() for line in text.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


class Reader:
    """Somebody who follows a page in an empty folder.

    Parameters
    ----------
    folder : where files are written and commands run
    run : the command line in this process; gives the exit code
    printed : what was printed since it was last asked
    """

    def __init__(self, folder: Path, run: Callable[[list[str]], int], printed: Callable[[], str]) -> None:
        self.folder, self.run, self.printed = folder, run, printed
        self.names: dict[str, object] = {"__name__": "__page__"}
        for name in ("examples", "tests"):
            (folder / name).symlink_to(ROOT / name)
        programs = folder / ".programs"
        programs.mkdir()
        for name, call in (("tilewright", "-m tilewright.cli"), ("python", ""), ("python3", "")):
            (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {call} "$@"\n')
            (programs / name).chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        self.last = ""

    def follow(self, block: Block) -> None:
        """Write a file, run a block, or look for its lines in what the last one printed."""
        place = f"{block.page}:{block.line}"
        if block.file is not None:
            (self.folder / block.file).write_text(block.text, encoding="utf-8")
        elif "output" in block.marks:
            missing = [line for line in block.text.splitlines() if not said(line, self.last)]
            assert not missing, f"{place}: not printed: {missing}; but\n{self.last}"
        elif not block.is_run:
            return
        elif block.kind == "python":
            exec(compile(block.as_run, place, "exec"), self.names)
            self.last = self.printed()
        else:
            self._commands(block, place)

    def _commands(self, block: Block, place: str) -> None:
        lines = commands_of(block.as_run)
        self.last = ""
        for number, line in enumerate(lines, 1):
            expected = int(block.marks.get("fails", 0)) if number == len(lines) else 0
            words = shlex.split(line, comments=True)
            if words[0].rpartition("/")[2] == "tilewright" and not _SHELL.search(
                re.sub(r"'[^']*'", "", line)
            ):
                code = self.run(words[1:])
                self.last += self.printed()
            else:
                call = ["bash", "-euo", "pipefail", "-c", line]
                done = subprocess.run(
                    call,
                    cwd=self.folder,
                    env=self.environment,
                    text=True,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    check=False,
                )
                code = done.returncode
                self.last += done.stdout
            assert code == expected, f"{place}: {line}: exit code {code}, not {expected}:\n{self.last}"


def said(line: str, printed: str) -> bool:
    """Whether a line was printed; ``…`` stands for anything, and runs of spaces are one."""
    pieces = [re.escape(" ".join(piece.split())) for piece in line.split("…")]
    pattern = ".*".join(pieces).replace("\\ ", " ")
    return any(re.search(pattern, " ".join(printed_line.split())) for printed_line in printed.splitlines())
