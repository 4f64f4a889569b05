"""Tasks in worker processes of this machine."""

from __future__ import annotations

import pickle
import queue
import subprocess
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from tilewright.foundation import worker
from tilewright.foundation.errors import one_line
from tilewright.foundation.interpreter import python_command, python_environment
from tilewright.foundation.processes import shielded
from tilewright.foundation.registry import own_names

_STEP = 0.1
_END = 1.0  # seconds that a killed process may take to be gone


class Task(Protocol):
    """Something to be computed: plain data."""

    @property
    def key(self) -> str:
        """Content hash of everything that the answer depends on."""

    @property
    def seconds(self) -> float:
        """Its own time limit."""


AnyTask = TypeVar("AnyTask", bound=Task)
Answer = TypeVar("Answer")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Work(Generic[AnyTask, Answer]):
    """How tasks of one kind are computed.

    Parameters
    ----------
    run : a function of a module, given a task and the key that it had where it was planned; another one where
        it runs means that another version would answer
    failed : the answer that a message stands for
    grace : seconds beyond twice its limit after which a task's worker is ended
    names : texts of the methods and models that a task names; workers know those that the package ships
    """

    run: Callable[[AnyTask, str], Answer]
    failed: Callable[[str], Answer]
    grace: float = 20.0
    names: Callable[[AnyTask], Iterable[str]] = lambda task: ()


class WorkerDiedError(RuntimeError):
    """A worker process ended before it had answered."""


@dataclass(frozen=True, slots=True)
class Call(Generic[Item]):
    """One item with the arguments that stand for it.

    Parameters
    ----------
    seconds : after which its worker is ended; ``None`` for never
    here : why it is computed in this process; empty where it is not
    """

    item: Item
    arguments: tuple[Any, ...]
    seconds: float | None = None
    here: str = ""


def local_answers(
    work: Work[AnyTask, Answer], jobs: int, tasks: Iterable[AnyTask], stop: threading.Event
) -> Iterator[tuple[AnyTask, Answer]]:
    """Answers in the order in which they come; what still runs when ``stop`` is set is dropped.

    A worker that dies, or that ignores its limit and is ended, is replaced, and its task has failed.  What
    needs something that this process has registered is computed here, with a warning.

    Parameters
    ----------
    jobs : worker processes
    tasks : asked for the next one whenever a worker is free; those that have none now may have one later, as
        long as something runs
    """
    waiting = iter(tasks)

    def call() -> Call[AnyTask] | None:
        task = next(waiting, None)
        if task is None:
            return None
        own = own_names(work.names(task))
        here = f"workers do not know {own[0]!r}, which was registered by this program" if own else ""
        return Call(task, (task, task.key), 2 * task.seconds + work.grace, here)

    with closing(computed(work.run, call, jobs, stop.is_set)) as answers:
        for task, future in answers:
            yield task, _outcome(work, future)


def _outcome(work: Work[AnyTask, Answer], future: Future[Answer]) -> Answer:
    try:
        return future.result()
    except TimeoutError:
        return work.failed("did not stop long after its time limit and was ended")
    except WorkerDiedError as error:
        return work.failed(str(error))


def computed(
    run: Callable[..., Answer],
    calls: Callable[[], Call[Item] | None],
    jobs: int,
    is_over: Callable[[], bool],
    *,
    fresh: bool = False,
) -> Generator[tuple[Item, Future[Answer]]]:
    """What a function returns for some items, computed in processes; they end with the iteration.

    Parameters
    ----------
    run : a function of a module
    calls : gives the next one, or ``None`` where there is none now; asked whenever a worker is free
    jobs : how many run side by side
    is_over : what runs is dropped once it says so
    fresh : whether every item has a process of its own

    Yields
    ------
    Items in the order in which they are done, each with what came of it.  Asked for its result a future
    raises what the function raised, ``TimeoutError`` where it was ended, and `WorkerDiedError`
    """
    replies: queue.SimpleQueue[tuple[_Worker, bytes]] = queue.SimpleQueue()
    idle: list[_Worker] = []
    busy: dict[_Worker, Call[Item]] = {}
    try:
        while not is_over():
            while len(busy) < jobs and (call := calls()) is not None:
                member = _free_worker(call, idle, replies)
                if member is None:
                    yield call.item, _computed_here(run, call)
                else:
                    busy[member] = call
                    member.ask(run, call)
            if not busy:
                return
            with suppress(queue.Empty):
                member, content = replies.get(timeout=_STEP)
                if member in busy:
                    answered, future = busy.pop(member), member.outcome(content)
                    if fresh:
                        member.end()
                    elif content:
                        idle.append(member)
                    yield answered.item, future
            for member in [working for working in busy if working.is_late]:
                member.end()
                late: Future[Answer] = Future()
                late.set_exception(TimeoutError())
                yield busy.pop(member).item, late
    finally:
        for member in (*idle, *busy):
            member.end()


def _free_worker(
    call: Call[Any], idle: list[_Worker], replies: queue.SimpleQueue[tuple[_Worker, bytes]]
) -> _Worker | None:
    """A process that can take a call; ``None``, with a warning, where there can be none."""
    why = call.here
    if not why:
        while idle:
            member = idle.pop()
            if member.is_alive:
                return member
            member.end()
        try:
            return _Worker(replies)
        except OSError as error:  # no interpreter, or no room for a process
            why = one_line(error)
    warnings.warn(f"computed in this process: {why}", RuntimeWarning, stacklevel=3)
    return None


def _computed_here(run: Callable[..., Answer], call: Call[Item]) -> Future[Answer]:
    future: Future[Answer] = Future()
    try:
        future.set_result(run(*call.arguments))
    except Exception as error:
        future.set_exception(error)
    return future


class _Worker:
    """A process that computes one thing after the other.

    Parameters
    ----------
    replies : where its answers go; an empty one says that it is gone
    """

    def __init__(self, replies: queue.SimpleQueue[tuple[_Worker, bytes]]) -> None:
        self._deadline: float | None = None
        script = Path(worker.__file__)
        with shielded():
            self._process = subprocess.Popen(
                python_command(script),
                env=python_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        self._send(worker.first_message())
        threading.Thread(target=self._listen, args=(replies,), daemon=True).start()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def is_late(self) -> bool:
        """Whether it should have answered by now."""
        return self._deadline is not None and time.monotonic() > self._deadline

    def ask(self, run: Callable[..., Any], call: Call[Any]) -> None:
        """Let it compute something."""
        self._deadline = None if call.seconds is None else time.monotonic() + call.seconds
        self._send(pickle.dumps((run, call.arguments)))

    def outcome(self, content: bytes) -> Future[Any]:
        """What an answer says."""
        future: Future[Any] = Future()
        if content:
            worked, outcome = worker.opened(content)
            if worked:
                future.set_result(outcome)
            else:
                future.set_exception(outcome)
        else:
            code = self.end()
            future.set_exception(WorkerDiedError(f"the worker process died with exit code {code}"))
        return future

    def end(self) -> int | None:
        """End the process, if it has not; its exit code."""
        if self._process.poll() is None:
            self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END)
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        return self._process.returncode

    def _send(self, content: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # its death shows on the other pipe
            worker.send(self._process.stdin, content)  # type: ignore[arg-type]

    def _listen(self, replies: queue.SimpleQueue[tuple[_Worker, bytes]]) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            try:
                while True:
                    replies.put((self, worker.receive(stream)))  # type: ignore[arg-type]
            except (EOFError, OSError):
                replies.put((self, b""))
