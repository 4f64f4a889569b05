"""The one call that answers every question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from tilewright.api.arguments import SearchRequest, interruptible, named_arguments, read_budget
from tilewright.api.live import as_listeners
from tilewright.formulation.stopping import Stop
from tilewright.solvers.observer import Observer

Answer_co = TypeVar("Answer_co", covariant=True)


class Question(Protocol[Answer_co]):
    """What `solve` answers: a layer or a network on a machine, a workload on a system."""

    def answer(self, request: SearchRequest) -> Answer_co:
        """Search as the request says."""


def solve(
    question: Question[Answer_co],
    *,
    method: str | None = None,
    stop: Stop | None = None,
    threads: int | None = None,
    seed: int = 0,
    warm_starts: Any | Sequence[Any] = (),
    observer: Observer | None = None,
    deterministic: bool = False,
) -> Answer_co:
    """Search for the best answer to a question, and prove how good it is.

    Ctrl-C returns what has been found, with the status ``interrupted``; a second one raises
    `KeyboardInterrupt`.

    Parameters
    ----------
    question : made by ``on``: a layer or a network on a machine, a workload on a system
    method : an exact solver or a heuristic with its options, such as ``cpsat`` or ``annealing[steps=1000]``
        (`methods` lists them); by default the exact one that serves the question best
    stop : ``seconds(60)`` for the whole call, ``gap(0.01)`` between the values that are shown,
        ``stagnation(10)``, or several joined by ``|``; by default only a proof stops
    threads : workers of parallel solvers; by default all cores
    seed : of every random choice
    warm_starts : mappings to begin with, results, documents or files of them; for layers, fused or not
    observer : notified of every step
    deterministic : whether every run gives the same answer and trace

    Returns
    -------
    A `MappingResult` for a layer, a `MappingDocument` for a network, a `Plan` for a workload

    Raises
    ------
    InputError : for an unknown method or option, or an argument out of its range
    """
    budget = read_budget(stop, threads, seed)
    with named_arguments(), interruptible() as event:
        request = SearchRequest(method, budget, event, warm_starts, deterministic, as_listeners(observer))
        return question.answer(request)
