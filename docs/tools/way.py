"""The way of a question through the floors, as a call takes it.

``python docs/tools/way.py map gemm:M=4,N=4,K=4 -a nvdla-256`` runs the call in this process.  Then it prints
to stderr where functions of the command line and of other floors call each other, and the files of the call.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import tilewright
from tilewright.cli import main

TOP = Path(tilewright.__file__).parent
PLACES = {f"{entry.resolve()}/": entry.name for entry in TOP.iterdir() if entry.is_dir()}


@dataclass
class Way:
    """What a call went through.

    Parameters
    ----------
    files : in which a function was called in the main thread, in the order of the first call
    down, up : calls of the command line into other floors and back: file and function of both sides
    """

    files: dict[str, None] = field(default_factory=dict)
    down: dict[tuple[str, str, str, str], None] = field(default_factory=dict)
    up: dict[tuple[str, str, str, str], None] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def heard(self, frame: FrameType, event: str, _argument: object) -> None:
        """What the interpreter tells of every call."""
        name = self._name(frame)
        if event != "call" or not name or frame.f_code.co_name.startswith("<"):
            return
        caller = frame.f_back
        while caller is not None and not self._name(caller):
            caller = caller.f_back  # a library's frames, and the import system's
        if caller is not None and caller.f_code.co_name == "<module>":
            return
        if threading.current_thread() is threading.main_thread():
            self.files[name] = None
        if caller is not None:
            both = self._name(caller), caller.f_code.co_name, name, frame.f_code.co_name
            sides = both[0].startswith("cli/"), name.startswith("cli/")
            if sides[0] != sides[1]:
                (self.down if sides[0] else self.up)[both] = None

    def _name(self, frame: FrameType) -> str:
        """The file of a frame from its floor on; empty for what is not of this package."""
        path = frame.f_code.co_filename
        if path not in self._names:
            real = str(Path(path).resolve())
            base = next((base for base in PLACES if real.startswith(base)), "")
            self._names[path] = f"{PLACES[base]}/{real.removeprefix(base)}" if base else ""
        return self._names[path]


def way_of(words: Sequence[str]) -> Way:
    """The way that a call of the command line takes."""
    way = Way()
    threading.setprofile(way.heard)
    sys.setprofile(way.heard)
    try:
        main.run(words)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return way


def floors(calls: Iterable[tuple[str, str, str, str]]) -> dict[str, int]:
    """How many calls have their other side on each floor."""
    ends = [name.partition("/")[0] for by, _, of, _ in calls for name in (by, of)]
    return {name: ends.count(name) for name in sorted({*ends} - {"cli"})}


if __name__ == "__main__":
    taken = way_of(sys.argv[1:])
    for kind, calls in (("down", taken.down), ("up", taken.up)):
        for caller, by, target, of in calls:
            print(f"{kind}: {caller} {by} -> {target} {of}", file=sys.stderr)
    for kind, calls in (("down", taken.down), ("up", taken.up)):
        print(f"{len(calls)} calls {kind}: {floors(calls)}", file=sys.stderr)
    print(f"{len(taken.files)} files: {', '.join(taken.files)}", file=sys.stderr)
