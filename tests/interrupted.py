"""Calls of the command line, one after the other in one process, each interrupted while it runs.

    python interrupted.py CALLS SECONDS

``CALLS`` is a JSON file: per name the arguments.  A call writes its document to ``NAME.json`` too, and may
keep a log in ``NAME.log``.  Once one of them has an answer, or after a while without one, a signal is sent to
the process ``SECONDS`` later: Ctrl-C to every other call, SIGTERM to the others.  What each came to is a line
of JSON in ``told.jsonl``.  Where a library took the handling of signals away, the process dies, and lines are
missing.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

PATIENCE = 15.0
"""Seconds that a call has for its first answer."""


def answered(name: str) -> bool:
    """Whether the call's file holds an answer by now, or its log tells of one."""
    log = Path(f"{name}.log")
    if log.exists() and any(line[:2] in ("* ", "h ") for line in log.read_text().splitlines()):
        return True
    try:
        document = json.loads(Path(f"{name}.json").read_text())
    except (OSError, ValueError):
        return False
    return any(document.get(key) for key in ("plan", "schedule", "best", "methods", "points"))


class Sender:
    """Sends a signal to this process while a call runs, unless that has ended by itself."""

    def __init__(self, number: signal.Signals, name: str, seconds: float) -> None:
        self.number, self.name, self.seconds = number, name, seconds
        self.sent: float | None = None
        self._over, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._wait)
        self._thread.start()

    def _wait(self) -> None:
        end = time.monotonic() + PATIENCE
        while not self._over.is_set() and time.monotonic() < end and not answered(self.name):
            self._over.wait(0.02)
        self._over.wait(self.seconds)
        with self._lock:
            if not self._over.is_set():
                self.sent = time.monotonic()
                os.kill(os.getpid(), self.number)

    def end(self) -> None:
        with self._lock:
            self._over.set()
        self._thread.join()


def reported(name: str, arguments: list[str], number: signal.Signals, seconds: float) -> dict[str, Any]:
    """Run one call, and what became of it."""
    from tilewright.cli.main import run

    path = Path(f"{name}.json")
    path.unlink(missing_ok=True)
    out, err = io.StringIO(), io.StringIO()
    sender = Sender(number, name, seconds)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = int(run([*arguments, "-f", "json", "-q", "--out", str(path)]))
        finally:
            ended = time.monotonic()
            sender.end()
    return {
        "name": name,
        "code": code,
        "seconds": None if sender.sent is None else ended - sender.sent,
        "out": out.getvalue(),
        "file": path.read_text() if path.exists() else "",
        "err": err.getvalue(),
    }


def main() -> None:
    """All calls."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # one that comes when its call has just ended
    calls = json.loads(Path(sys.argv[1]).read_text())
    with Path("told.jsonl").open("w") as lines:
        for place, (name, arguments) in enumerate(calls.items()):
            number = (signal.SIGINT, signal.SIGTERM)[place % 2]
            lines.write(json.dumps(reported(name, arguments, number, float(sys.argv[2]))) + "\n")
            lines.flush()


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # threads that are deaf to signals are left behind
