"""The parent's side of the worker process: it sends requests, reads replies and notices its death."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tilewright.foundation.interpreter import python_command, python_environment
from tilewright.solvers.background import Background

WORKER = Path(__file__).with_name("worker.py")
POLL = 0.05
GRACE = 0.6


class ChildError(RuntimeError):
    """The worker is missing, died or misbehaved."""


class Child:
    """One worker process.  It loads its solver while the search prepares; the first request waits for it.

    Parameters
    ----------
    solver : ``highs`` or ``cbc``
    expired : whether the search must end now
    command : what to run instead of the worker
    """

    def __init__(
        self, solver: str, expired: Callable[[], bool], command: Sequence[str] | None = None
    ) -> None:
        self._expired = expired
        self._replies: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._errors: list[str] = []
        self._ready = False
        self.version = ""
        self._process = subprocess.Popen(
            [*command, solver] if command else python_command(WORKER, solver),
            env=python_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A group of its own: CBC is a process of the worker's, and ends with it.
            start_new_session=True,
        )
        # Both pipes are read all the time: a full one would stop the worker.
        for work in (self._listen, self._collect_errors):
            Background(work, work.__name__).start()

    @property
    def pid(self) -> int:
        """The process, which leads a group of its own."""
        return self._process.pid

    def ready(self) -> bool:
        """Wait for the worker; whether it can be asked.

        Raises ``ChildError`` where PuLP or the solver is missing or gives wrong answers.
        """
        if not self._ready:
            first = self._next(lambda: None)
            if first is None:
                return False
            if first["type"] == "missing":
                raise ChildError(str(first["message"]))
            self.version = str(first.get("version", ""))
            self._ready = True
        return True

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_failure: object) -> None:
        self.close()

    def solve(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The replies to one request; the last has the type ``result`` unless a limit struck before it."""
        if not self.ready():
            return
        self._send(request)
        stopping: list[float] = []

        def stop() -> None:
            if not stopping:
                stopping.append(time.monotonic())
                self._send({"stop": True})

        while True:
            reply = self._next(stop)
            if reply is None:
                return
            yield reply
            if reply["type"] == "result":
                return

    def stop(self) -> None:
        """End the running solve with what it has."""
        self._send({"stop": True})

    def close(self) -> None:
        """End the process and everything that it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _next(self, stop: Callable[[], None]) -> dict[str, Any] | None:
        """The next reply; ``None`` where a limit struck and the worker did not end in time."""
        deadline: float | None = None
        while True:
            with suppress(queue.Empty):
                reply = self._replies.get(timeout=POLL)
                if reply is None:
                    raise ChildError(self._death_message())
                return reply
            if self._expired():
                if deadline is None:
                    # Asked once; a solver that does not listen is given up after the grace.
                    stop()
                    deadline = time.monotonic() + GRACE
                elif time.monotonic() > deadline:
                    return None

    def _death_message(self) -> str:
        code = self._process.wait()
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        last = " ".join(self._errors[-1:]).strip()
        return f"the solver process ended {how}" + (f": {last}" if last else "")

    def _send(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # its death shows on the other pipe
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        try:
            with suppress(ValueError, OSError):
                for line in self._process.stdout:
                    with suppress(json.JSONDecodeError):
                        self._replies.put(json.loads(line))
        finally:
            self._replies.put(None)

    def _collect_errors(self) -> None:
        assert self._process.stderr is not None
        with suppress(ValueError, OSError):
            for line in self._process.stderr:
                if line.strip():
                    self._errors.append(line)
                    del self._errors[:-20]
