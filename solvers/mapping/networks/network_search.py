"""A network mapped layer by layer: distinct layers side by side, each within its share of the time."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.claimed_space import ClaimedSpace
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.parts.compulsory import least_key
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerResult, LayerSearch
from tilewright.formulation.mapping.space import Alike
from tilewright.formulation.result import Status
from tilewright.formulation.stopping import WhenSet
from tilewright.foundation.errors import InputError
from tilewright.solvers.kept import tell
from tilewright.solvers.mapping.answers.adoption import AnswerSets
from tilewright.solvers.mapping.answers.answer_set_searches import AnswerSetRequest, search_answer_sets
from tilewright.solvers.mapping.answers.minimal_conflicts import explained
from tilewright.solvers.mapping.first_mapping import offer_any_mapping, offer_one_mapping
from tilewright.solvers.mapping.methods import is_prepared, method, prepare
from tilewright.solvers.mapping.networks.layer_shares import after, is_spent, share_of_layer
from tilewright.solvers.mapping.networks.network_problem import NetworkProblem
from tilewright.solvers.mapping.problem_kinds import is_large
from tilewright.solvers.mapping.solve import AUTO, layer_run
from tilewright.solvers.observer import Observer, Unobserved
from tilewright.solvers.quick_tasks import Quick, quick_answers
from tilewright.solvers.running import no_result
from tilewright.solvers.side_by_side import in_order
from tilewright.workloads.selection import SelectedLayer

_LEAST_LEFT = 0.05
"""Seconds below which no search is begun again."""
_FIRST = 0.8
"""The part of the time that first turns have; in the rest layers without a mapping come first."""
_GREEDY = 0.25
"""The part of a search's time that finding any mapping takes at most once it is over."""
_BRIEF = 0.5
"""Seconds at most of a search that runs in a copy of this process."""
_MOMENT, _ONE = 0.25, 0.05
"""Seconds of a share that a search may not have a mapping in, or in which one evaluation is all there is."""
_LARGE = 0.5
"""The part of a large layer's share in which a first mapping is sought."""


@dataclass(frozen=True, slots=True)
class LayerAnswer:
    """What was found for one layer.

    Parameters
    ----------
    space : what was searched; ``None`` where the problem was not stated in time
    sets : what was asked for besides one mapping
    index : the layer's place in the network
    is_open : whether its search ended because its share of the time did
    """

    layer: SelectedLayer
    result: LayerResult
    space: ClaimedSpace | None
    sets: AnswerSets
    index: int = 0
    is_open: bool = False


def search_network(
    network: NetworkProblem,
    solver: str = AUTO,
    limits: Limits | None = None,
    sets: AnswerSetRequest | None = None,
    starts: Sequence[Sequence[Mapping]] = (),
    observer: Observer | None = None,
    ended: Callable[[LayerAnswer], None] = lambda answer: None,
    *,
    tracebacks: bool = False,
) -> Iterator[LayerAnswer]:
    """Search distinct layers, as many at a time as there are threads; answers come in their order.

    Each has its equal share of the time that is left.  Time that others did not use goes to layers that are
    open then: they come again, with what they had found, until none is open or the time is over.  Where more
    than one mapping is asked for, half of a layer's share is kept for the rest.

    Parameters
    ----------
    solver : a method with its options
    limits : for all layers together, the gap between keys; nothing follows once the user has stopped them
    sets : what is asked for besides one mapping per layer
    starts : per layer, mappings to begin with; empty for none
    observer : notified of what happens
    ended : given an answer as soon as it is there, whatever those before it do
    tracebacks : whether the observer gets the traceback of an exception that ended a search
    """
    limits = limits or Limits()
    search = _NetworkSearch(
        network, solver, limits, sets or AnswerSetRequest(solver=solver), starts, tracebacks
    )
    observer = observer or Unobserved()
    total = len(network.layers)
    _prepare(solver, limits, total, observer)
    yield from search.first_mappings(observer, ended)
    turn = list(range(total))
    while turn:
        yield from search.round(turn, observer, ended)
        turn = search.open_layers()


class _NetworkSearch:
    """The layers of a network and what is known of them, searched in rounds."""

    def __init__(
        self,
        network: NetworkProblem,
        solver: str,
        limits: Limits,
        sets: AnswerSetRequest,
        starts: Sequence[Sequence[Mapping]],
        tracebacks: bool,
    ) -> None:
        self._network, self._solver, self._limits, self._sets = network, solver, limits, sets
        self._starts, self._tracebacks = starts, tracebacks
        self._known: dict[int, LayerAnswer] = {}
        # Problems hold tables; only those of open layers are kept for another round.
        self._open: dict[int, LayerProblem | None] = {}
        # Searches that run at once share nothing; those that follow each other do.
        self._alike: list[Alike] = []
        self._is_first_round = True

    def open_layers(self) -> list[int]:
        """Layers that more time may do good, those without a mapping first; none where there is none."""
        if self._is_over:
            return []
        left = [answer for answer in self._known.values() if answer.is_open]
        left.sort(key=lambda answer: (answer.result.key is not None, answer.index))
        return [answer.index for answer in left]

    def first_mappings(
        self, observer: Observer, ended: Callable[[LayerAnswer], None]
    ) -> Iterator[LayerAnswer]:
        """A mapping of every layer before all else, where a layer's share of the time is a moment.

        Each is among those of an exact method; heuristics have none but their own.
        """
        limits, network = self._limits, self._network
        workers = min(limits.threads, len(network.layers))
        share = share_of_layer(limits, len(network.layers), workers).seconds
        engine = method(self._solver)
        if share is None or share >= _MOMENT or len(network.layers) < 2:
            return
        if not engine.exact or limits.deterministic or self._sets:
            return
        share /= workers  # one layer after the other
        alike = Alike(spaces=None)
        for index, layer in enumerate(network.layers):
            if limits.expired:
                return
            observer.layer(index + 1, len(network.layers), layer)
            began = limits.clock()
            problem = network.states[index](alike)
            own = replace(limits, started=began, seconds=limits.remaining)
            search = LayerSearch(problem, own, observer.point, exact=engine.exact)
            compulsory = least_key(problem)
            if compulsory > 0:
                search.raise_bound(compulsory, "compulsory traffic")
            if share < _ONE:
                offer_one_mapping(search)
            else:
                # Tables of a large layer take longer than its share; others are searched better than that.
                part = own.share(longest=share * _LARGE if is_large(problem) else 0.0)
                offer_any_mapping(search, partial(_is_over, part))
            result = search.result(self._solver, engine.version)
            # Searches that run at once share nothing.
            self._open[index] = problem if limits.threads == 1 else replace(problem, alike=None)
            space = ClaimedSpace.of(problem)
            answer = LayerAnswer(layer, result, space, AnswerSets(), index, is_open=True)
            self._known[index] = answer
            ended(answer)
            yield answer

    def round(
        self, turn: Sequence[int], observer: Observer, ended: Callable[[LayerAnswer], None]
    ) -> Iterator[LayerAnswer]:
        """Search some layers, each once."""
        workers = min(self._limits.threads, len(turn))
        over = Event()
        shared = self._limits.stopping(WhenSet(over)) if workers > 1 else self._limits
        # The first round leaves some time, so that layers that turn out hard can be searched again.
        if shared.seconds is not None and self._is_first_round and len(turn) > 1:
            shared = replace(shared, seconds=_FIRST * shared.seconds)
        self._is_first_round = False

        def known(answer: LayerAnswer | None) -> None:
            if answer is not None:
                self._known[answer.index] = answer
                ended(answer)

        quick: dict[int, Quick[LayerAnswer]] = {}
        told = 0
        for done in self._quick_answers(turn, shared, workers):
            quick[done.place] = done
            known(done.answer)
            while told in quick:
                yield _told(quick[told], observer)
                told += 1
        rest = [place for place in range(len(turn)) if place not in quick]

        def task(position: int, observer: Observer) -> LayerAnswer | None:
            index = turn[rest[position]]
            if self._limits.stop.is_set() or (index in self._known and self._is_over):
                return None
            # Counted when the task begins: what quick layers leave goes to those that follow.
            return self._answer(index, share_of_layer(shared, len(rest) - position, workers), observer)

        tasks = [partial(task, position) for position in range(len(rest))]
        answers = in_order(tasks, workers, observer, over, lambda _position, answer: known(answer))
        for place in range(told, len(turn)):
            answer = _told(quick[place], observer) if place in quick else next(answers)
            if answer is not None:
                yield answer

    def _quick_answers(
        self, turn: Sequence[int], shared: Limits, workers: int
    ) -> Iterator[Quick[LayerAnswer]]:
        """Layers that are proven at once, searched by as many processes as there are threads.

        Only where nothing depends on how long a search lasts: first turns of exact methods, on the wall's
        clock, with shares that are no shorter than that.
        """
        limits = self._limits
        if self._known or self._sets or limits.deterministic or limits.clock is not time.monotonic:
            return
        remaining = share_of_layer(shared, len(turn), workers).remaining
        if not method(self._solver).exact or (remaining is not None and remaining < _BRIEF):
            return

        def task(place: int, observer: Observer) -> LayerAnswer | None:
            share = share_of_layer(shared, len(turn) - place, workers)
            brief = replace(share.share(longest=_BRIEF), threads=1)
            try:
                answer = self._answer(turn[place], brief, observer)
            except InputError:  # raised again where the layer's turn comes
                return None
            return answer if answer.result.status in (Status.OPTIMAL, Status.INFEASIBLE) else None

        tasks = [partial(task, place) for place in range(len(turn))]
        sizes = [self._network.layers[index].operator.iterations for index in turn]
        middle = sorted(range(len(turn)), key=sizes.__getitem__)[len(turn) // 2]
        # The others wait for it, so it should not be the hardest one, nor one that says nothing of the rest.
        for done in quick_answers(tasks, workers, lambda: limits.expired, middle):
            if done.answer is not None:
                yield done

    @property
    def _is_over(self) -> bool:
        """Whether too little is left for a search to begin again."""
        remaining = self._limits.remaining
        return remaining is None or remaining < _LEAST_LEFT or self._limits.stop.is_set()

    def _answer(self, index: int, share: Limits, observer: Observer) -> LayerAnswer:
        """What is found for a layer in its share of the time, and what was known of it."""
        layer, earlier = self._network.layers[index], self._known.get(index)
        observer.layer(index + 1, len(self._network.layers), layer)
        own_limits, before = share, None
        if earlier is not None:
            # The earlier result goes on: its trace, its bound, and the seconds that it has taken.
            own_limits, before = after(share, earlier.result, self._limits), earlier.result
        # Half of the time for one best mapping, half for the sets that are asked for around it.
        first = own_limits.share(0.5 if self._sets else 1.0)
        if before is not None and before.status is Status.OPTIMAL:  # the sets are open
            result, problem = before, self._open.get(index)
        else:
            result, problem = self._searched(index, first, observer, before, self._open.get(index))
        # A search that gave up before its time would give up again.
        is_open = result.status in (Status.FEASIBLE, Status.UNKNOWN) and is_spent(first, share)
        has_none = is_open and result.status is Status.UNKNOWN and bool(share.seconds)
        # The limit struck while the problem was stated; a greedy mapping needs it.
        if has_none and problem is None and not self._limits.expired:
            problem = self._network.states[index]()
        if has_none and problem is not None and len(self._network.layers) > 1:
            result = self._with_any_mapping(result, problem, first, observer)
        result, answer_sets = search_answer_sets(self._sets, problem, result, own_limits, observer)
        if earlier is not None:
            answer_sets = earlier.sets.completed(answer_sets)
        is_open = is_open or (
            bool(self._sets) and not answer_sets.are_complete and is_spent(own_limits, share)
        )
        is_open = is_open and result.status not in (Status.INFEASIBLE, Status.ERROR, Status.INTERRUPTED)
        result = explained(result, problem, own_limits, observer.phase)
        self._open.pop(index, None)
        if is_open:
            self._open[index] = problem
        space = None if problem is None else ClaimedSpace.of(problem)
        return LayerAnswer(layer, result, space, answer_sets, index, is_open)

    def _searched(
        self,
        index: int,
        limits: Limits,
        observer: Observer,
        before: LayerResult | None,
        known: LayerProblem | None,
    ) -> tuple[LayerResult, LayerProblem | None]:
        """A layer's result, and its problem as far as it was stated.

        Searches that follow each other share tiles and tables; those that run at once do not.

        Parameters
        ----------
        before, known : the earlier result, and the problem, if there are any
        """
        alike = self._alike.pop() if self._alike else Alike(spaces=None)
        state = partial(self._network.states[index], alike) if known is None else partial(_given, known)
        starts = self._starts[index] if self._starts else ()
        result, problem = _search(state, self._solver, limits, starts, observer, self._tracebacks, before)
        if result.status in (Status.OPTIMAL, Status.INFEASIBLE) and not limits.expired:
            self._alike.append(alike)  # nothing of the search was left behind
        return result, None if problem is None else replace(problem, alike=None)

    def _with_any_mapping(
        self, result: LayerResult, problem: LayerProblem, limits: Limits, observer: Observer
    ) -> LayerResult:
        """A layer without a mapping with one that takes a moment to find, if it is legal."""
        search = LayerSearch(problem, limits, observer.point)
        if result.input_hash:
            search.resume(result)
        began, most = limits.clock(), _GREEDY * (limits.seconds or 0.0)
        offer_any_mapping(search, lambda: self._limits.expired or limits.clock() - began > most)
        return search.result(result.method, result.version, message=result.message)


def _told(done: Quick[LayerAnswer], observer: Observer) -> LayerAnswer:
    """A quick answer, after all that its search told."""
    assert done.answer is not None
    for event in done.told:
        tell(observer, event)
    return done.answer


def _is_over(limits: Limits) -> bool:
    return limits.expired


def _given(problem: LayerProblem) -> LayerProblem:
    return problem


def _prepare(solver: str, limits: Limits, layers: int, observer: Observer) -> None:
    """What is compiled once per installation is compiled before several layers share the time.

    That takes no more than half of it; where it takes longer it goes on in parallel with the layers.
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
    earlier: LayerResult | None,
) -> tuple[LayerResult, LayerProblem | None]:
    """The answer of the solver that was asked for, and the problem as far as it was stated."""
    if limits.remaining == 0:
        message = "the time limit was reached before the search began"
        return no_result(solver, method(solver).version, limits, message), None
    run = layer_run(state, solver, limits, observer.point, starts, earlier)
    result = run.run()
    problem = None if run.search is None else run.search.problem
    if problem is not None and earlier is None:
        for reported in filter(None, (unfit(problem, mapping) for mapping in starts)):
            observer.note(f"--warm-start: {reported}")
    if run.failure is not None and tracebacks:
        observer.note("".join(traceback.format_exception(run.failure)).rstrip())
    return result, problem


def unfit(problem: LayerProblem, mapping: Mapping) -> str | None:
    """Why a mapping is no start: illegal here, or outside the searched space; ``None`` for one that is."""
    try:
        broken: tuple[str, ...] = problem.evaluate(mapping).violations
    # A start may be of another layer or machine.
    except InputError as error:
        broken = (str(error),)
    if broken:
        return f"a mapping is illegal here: {'; '.join(broken)}"
    reason = problem.outside(mapping)
    return None if reason is None else f"a mapping lies outside the searched space: {reason}"
