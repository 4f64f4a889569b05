"""Tasks on a Dask cluster: the same work, wherever the cluster's workers are."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from tilewright.foundation.errors import InputError, one_line
from tilewright.foundation.extras import CLUSTER
from tilewright.foundation.pool import Answer, AnyTask, Work
from tilewright.foundation.registry import own_names

_CONNECT = 10
"""Seconds that scheduler and first worker have to answer."""
_STEP = 0.2
_AHEAD = 2
"""Tasks per worker thread that the scheduler holds, so that no worker waits."""


def cluster_answers(
    work: Work[AnyTask, Answer], client: Any, tasks: Iterable[AnyTask], stop: threading.Event
) -> Iterator[tuple[AnyTask, Answer]]:
    """Answers in the order in which they come; what still runs when ``stop`` is set is cancelled.

    The scheduler gives a task whose worker died to another one; where that has happened several times, the
    task has failed.

    Parameters
    ----------
    client : as `connected` gives it; closed at the end
    tasks : as in :func:`tilewright.foundation.pool.local_answers`
    """
    waiting = iter(tasks)
    running: dict[Any, AnyTask] = {}
    wait = _dask().wait
    try:
        while not stop.is_set():
            free_slots = _AHEAD * max(1, sum(client.nthreads().values())) - len(running)
            for task in islice(waiting, max(0, free_slots)):
                if own := own_names(work.names(task)):
                    raise InputError("--cluster", None, f"its workers do not know {own[0]!r}")
                future = client.submit(work.run, task, task.key, key=f"tilewright-{task.key}", pure=False)
                running[future] = task
            if not running:
                break
            try:
                done = wait(list(running), timeout=_STEP, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                continue
            for future in done:
                task = running.pop(future)
                yield task, _outcome(work, future)
                future.release()
    finally:
        client.cancel(list(running), force=True)
        client.close(timeout=1)


def connected(address: str) -> Any:
    """A client of the cluster.

    Parameters
    ----------
    address : of the scheduler, such as ``tcp://10.0.0.1:8786``

    Raises
    ------
    InputError : where no scheduler, or no worker of it, answers, or Dask is not installed
    """
    try:
        dask = _dask()
        client = dask.Client(address, timeout=_CONNECT)
    except InputError:
        raise
    except (OSError, ValueError, TypeError) as error:
        raise InputError("--cluster", address, f"no Dask scheduler answers: {one_line(error, 80)}") from None
    try:
        client.wait_for_workers(1, timeout=_CONNECT)
    except TimeoutError:
        client.close()
        raise InputError("--cluster", address, "the scheduler has no workers") from None
    return client


def _dask() -> Any:
    try:
        import distributed
    except ImportError:
        raise CLUSTER.missing("--cluster") from None
    return distributed


def _outcome(work: Work[AnyTask, Answer], future: Any) -> Answer:
    error = future.exception()
    if error is None:
        answer: Answer = future.result()
        return answer
    return work.failed(f"{type(error).__name__}: {one_line(error)}")
