"""A network mapped layer by layer: distinct layers side by side, each within its share of the time."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerResult
from tilewright.formulation.stopping import WhenSet
from tilewright.solvers.mapping.adoption import AnswerSets
from tilewright.solvers.mapping.answer_set_searches import AnswerSetRequest, search_answer_sets
from tilewright.solvers.mapping.clashing_demands import explained
from tilewright.solvers.mapping.methods import is_prepared, method, prepare
from tilewright.solvers.mapping.network_problem import NetworkProblem
from tilewright.solvers.mapping.solve import AUTO, layer_run
from tilewright.solvers.observer import Observer, Unobserved
from tilewright.solvers.running import no_result
from tilewright.solvers.side_by_side import in_order
from tilewright.workloads.errors import InputError
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.selection import SelectedLayer

Starts = Callable[[Operator], Sequence[Mapping]]


@dataclass(frozen=True, slots=True)
class LayerAnswer:
    """What was found for one layer.

    Parameters
    ----------
    problem : as far as it was stated
    sets : what was asked for besides one mapping
    """

    layer: SelectedLayer
    result: LayerResult
    problem: LayerProblem | None
    sets: AnswerSets


def search_network(
    network: NetworkProblem,
    solver: str = AUTO,
    limits: Limits | None = None,
    sets: AnswerSetRequest | None = None,
    starts: Starts = lambda operator: (),
    observer: Observer | None = None,
    ended: Callable[[int, LayerAnswer], None] = lambda index, answer: None,
    *,
    tracebacks: bool = False,
) -> Iterator[LayerAnswer]:
    """Search distinct layers, as many at a time as there are threads; answers come in their order.

    Each has its equal share of the time that is left.  Where more than one mapping is asked for, half of a
    layer's share is kept for the rest.

    Parameters
    ----------
    solver : a method with its options
    limits : for all layers together, the gap between keys; nothing follows once the user has stopped them
    sets : what is asked for besides one mapping per layer
    starts : mappings to begin with
    observer : told of what happens
    ended : given the place of a layer and its answer as soon as it is there, whatever those before it do
    tracebacks : whether the observer is told where an exception came from that ended a search
    """
    limits, sets = limits or Limits(), sets or AnswerSetRequest(solver=solver)
    observer = observer or Unobserved()
    total = len(network.layers)
    workers = min(limits.threads, total)
    _prepare(solver, limits, total, observer)
    over = Event()
    shared = limits.stopping(WhenSet(over)) if workers > 1 else limits

    def answer(index: int, observer: Observer) -> LayerAnswer | None:
        if limits.stop.is_set():
            return None
        layer, state, left = network.layers[index], network.states[index], total - index
        observer.layer(index + 1, total, layer)
        mine = share_of_layer(shared, left, workers)
        first = mine.share(0.5 if sets else 1.0)
        result, problem = _search(state, solver, first, starts(layer.operator), observer, tracebacks)
        result, found = search_answer_sets(sets, problem, result, mine, observer)
        result = explained(result, problem, mine, observer.phase)
        return LayerAnswer(layer, result, problem, found)

    def known(index: int, found: LayerAnswer | None) -> None:
        if found is not None:
            ended(index, found)

    tasks = [partial(answer, index) for index in range(total)]
    for found in in_order(tasks, workers, observer, over, known):
        if found is None:
            return
        yield found


def share_of_layer(limits: Limits, left: int, workers: int = 1) -> Limits:
    """Limits of one search of several that counts from now.

    Parameters
    ----------
    left : searches that have not begun, this one included
    workers : searches that run at the same time; they share time and threads
    """
    remaining = limits.remaining
    beside = min(workers, left)
    seconds = None if remaining is None else remaining / -(-left // beside)
    threads = max(1, limits.threads // beside)
    return replace(limits, seconds=seconds, started=limits.clock(), threads=threads)


def _prepare(solver: str, limits: Limits, layers: int, observer: Observer) -> None:
    """What is compiled once per installation is compiled before several layers share the time.

    That takes no more than half of it; where it takes longer it goes on beside the layers.
    """
    if layers < 2 or is_prepared(solver):
        return
    observer.phase("compiling the search, once for all")
    half = None if limits.seconds is None else limits.seconds / 2
    prepare(solver, lambda: limits.stop.is_set() or (half is not None and limits.elapsed > half))


def _search(
    state: Callable[[], LayerProblem],
    solver: str,
    limits: Limits,
    starts: Sequence[Mapping],
    observer: Observer,
    tracebacks: bool,
) -> tuple[LayerResult, LayerProblem | None]:
    """The answer of the solver that was asked for, and the problem as far as it was stated."""
    if limits.seconds == 0:
        message = "the time limit was reached before the search began"
        return no_result(solver, method(solver).version, limits, message), None
    run = layer_run(state, solver, limits, observer.point, starts)
    result = run.run()
    problem = None if run.search is None else run.search.problem
    if problem is not None:
        for told in filter(None, (unfit(problem, mapping) for mapping in starts)):
            observer.note(f"--warm-start: {told}")
    if run.failure is not None and tracebacks:
        observer.note("".join(traceback.format_exception(run.failure)).rstrip())
    return result, problem


def unfit(problem: LayerProblem, mapping: Mapping) -> str | None:
    """Why a mapping is no start: illegal here, or outside the searched space; ``None`` for one that is."""
    try:
        broken: tuple[str, ...] = problem.evaluate(mapping).violations
    except InputError as error:
        broken = (str(error),)
    if broken:
        return f"a mapping is illegal here: {'; '.join(broken)}"
    reason = problem.outside(mapping)
    return None if reason is None else f"a mapping lies outside the searched space: {reason}"
