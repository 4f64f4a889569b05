"""Best mappings of layers on engines from machine files: proven on the mapping side, cached on disk.

The space is that of ``map``: even storage, imperfect factors, every solver of the portfolio.  A proof that
takes too long is left: the mapping stands with ``proven`` false, and a later call with more time takes it up
again.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.demands.dataflow import style_demands
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import IMPERFECT, LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.pool import Call, computed
from tilewright.foundation.store import Column, Layout, Table, Values
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.fitted import fitted
from tilewright.hardware.mapping.identity import engine_hash
from tilewright.hardware.mapping.styles import Fixed
from tilewright.solvers.mapping.solve import AUTO, solve
from tilewright.solvers.scheduling.shelf import CacheStore, Shelf
from tilewright.workloads.mapping.operator import Operator

LONGEST = 30.0
"""Seconds of one search at most, whatever time there is."""
_LEAST = 0.05
_FEW = 4  # searches that are not worth a second process
_FILE = "own-costs-1.sqlite"


@dataclass(frozen=True)
class MappingQuestion:
    """A layer on an engine: which mapping is the least one.

    Parameters
    ----------
    operator, engine : the layer and where it runs
    metric : ``cycles``, ``energy`` or ``edp``
    fixed : what is no choice
    """

    operator: Operator
    engine: Engine
    metric: str
    fixed: tuple[Fixed, ...] = ()

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def problem(self) -> LayerProblem:
        """The same as a problem of the mapping side."""
        return layer_problem(
            self.operator,
            self.engine,
            parse_objective(self.metric),
            factors=IMPERFECT,
            constraints=style_demands(self.fixed),
        )

    @cached_property
    def key(self) -> str:
        """Content hash of everything that the answer depends on."""
        fixed = [[rule.what, rule.name, rule.level] for rule in self.fixed]
        engine = fitted(self.engine, self.operator)
        content = [*operator_content(self.operator), engine_hash(engine), self.metric, fixed]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class MappingAnswer:
    """The best mapping known.

    Parameters
    ----------
    mapping : ``None`` where the layer fits nowhere, which is proven then
    proven : whether no mapping of the space is better
    seconds : that the search took
    """

    mapping: Mapping | None
    proven: bool
    seconds: float


def operator_content(operator: Operator) -> list[Any]:
    """What of a layer its costs depend on, as plain data, but for widths, which `fitted` machines have."""
    return [
        [(d.name, d.bound, d.like) for d in operator.dimensions],
        [
            [t.name, t.role, [[[(x.dim, x.stride) for x in axis.terms], axis.size] for axis in t.axes]]
            for t in operator.tensors
        ],
    ]


def best_mappings(
    questions: Iterable[MappingQuestion],
    limits: Limits,
    folder: Path | None = None,
    reported: Callable[[int, int], None] = lambda done, total: None,
    note: Callable[[str], None] = lambda text: None,
    *,
    anew: bool = False,
    continued: bool = True,
) -> dict[MappingQuestion, MappingAnswer]:
    """The best mapping for every question, in half of the time that is left at most.

    Parameters
    ----------
    limits : time, threads (as processes) and the event that stops the work
    folder : of the file of answers; by default the user's cache directory
    reported : called with the number of searches done, and of all
    note : called with a line about rejected rows, or a file that cannot be used
    anew : search everything, whatever the file holds
    continued : whether a search without a proof is taken up again where there is more time now

    Raises
    ------
    LimitReachedError : where a limit struck before a layer had any mapping
    """
    asked = list(dict.fromkeys(questions))
    known: dict[MappingQuestion, MappingAnswer] = {}

    def opened(patience: Callable[[], float]) -> OwnCostStore:
        return OwnCostStore(folder, patience, limits.stop)

    with Shelf(opened, limits, note, anew=anew) as shelf:
        for question in asked:
            answer = shelf.ask(partial(_find, question=question), None)
            if answer is not None:
                known[question] = answer
        shelf.tell()
        earlier = dict(known)
        slices = _Slices(limits, len(asked))
        longer = slices.first if continued else 0.0
        missing = [question for question in asked if _is_open(earlier.get(question), longer)]
        slices.left = len(missing)
        if missing:
            reported(0, len(missing))
        for done, (question, answer) in enumerate(_searched(missing, earlier, limits, slices)):
            known[question] = answer
            shelf.ask(partial(keep_answer, question=question, answer=answer), None)
            reported(done + 1, len(missing))
    return known


def _is_open(answer: MappingAnswer | None, seconds: float) -> bool:
    """Whether a search is due: there is no answer, or none proven and now twice the time."""
    return answer is None or (not answer.proven and seconds > 2 * answer.seconds)


class _Slices:
    """The time of the next search: its part of half of the call's time; more where that was too short."""

    def __init__(self, limits: Limits, left: int) -> None:
        self._limits, self.left, self.least = limits, max(1, left), _LEAST
        remaining = limits.remaining
        self._deadline = None if remaining is None else limits.elapsed + remaining / 2

    @property
    def first(self) -> float:
        """Seconds of the next search."""
        if self._deadline is None:
            return LONGEST
        workers = min(self._limits.threads, self.left)
        granted = (self._deadline - self._limits.elapsed) * workers / max(1, self.left)
        return min(LONGEST, max(self.least, granted))


def _searched(
    questions: Sequence[MappingQuestion],
    earlier: dict[MappingQuestion, MappingAnswer],
    limits: Limits,
    slices: _Slices,
) -> Iterator[tuple[MappingQuestion, MappingAnswer]]:
    """Answers in the sequence in which they come; what has no mapping is asked again, for twice the time."""
    while questions:
        again, given = [], slices.first
        for question, answer in _searched_once(questions, earlier, limits, slices):
            if answer is None:
                again.append(question)
            else:
                slices.left -= 1
                yield question, answer
        if again and given >= LONGEST:
            raise LimitReachedError
        questions, slices.least = again, 2 * given


def _searched_once(
    questions: Sequence[MappingQuestion],
    earlier: dict[MappingQuestion, MappingAnswer],
    limits: Limits,
    slices: _Slices,
) -> Iterator[tuple[MappingQuestion, MappingAnswer | None]]:
    """Answers in the sequence in which they come, in processes of their own where that pays."""
    workers = min(limits.threads, len(questions))
    if workers < 2 or len(questions) <= _FEW:
        for question in questions:
            limits.check()
            own = replace(limits.share(longest=slices.first), threads=1)
            yield question, answered(question, own, earlier.get(question))
        return
    rest, answered_here = iter(questions), 0

    def call() -> Call[MappingQuestion] | None:
        question = next(rest, None)
        if question is None:
            return None
        return Call(question, (question, slices.first, earlier.get(question)))

    with closing(computed(_in_process, call, workers, lambda: limits.expired)) as answers:
        for question, future in answers:
            answered_here += 1
            yield question, future.result()
    if answered_here < len(questions):
        raise LimitReachedError


def _in_process(
    question: MappingQuestion, seconds: float, earlier: MappingAnswer | None
) -> MappingAnswer | None:
    return answered(question, Limits(seconds=seconds, threads=1), earlier)


def answered(
    question: MappingQuestion, limits: Limits, earlier: MappingAnswer | None = None
) -> MappingAnswer | None:
    """The best mapping that a search comes to; ``None`` where it came to none.

    Parameters
    ----------
    earlier : an answer whose mapping the search begins with
    """
    starts = () if earlier is None or earlier.mapping is None else (earlier.mapping,)
    begun = limits.elapsed
    result = solve(question.problem, AUTO, limits, warm_starts=starts)
    proven = result.status in (Status.OPTIMAL, Status.INFEASIBLE)
    if result.answer is None and not proven:
        return None
    return MappingAnswer(result.answer, proven, round(limits.elapsed - begun, 3))


def _answer(row: Values) -> MappingAnswer:
    mapping = None if row["mapping"] is None else Mapping.from_data(json.loads(row["mapping"]))
    return MappingAnswer(mapping, bool(row["proven"]), float(row["seconds"]))


_ANSWERS = Table(
    "answers",
    (
        Column("question", "TEXT NOT NULL", "content hash of layer, engine, metric and rules"),
        Column("mapping", "TEXT", "its nodes; null where the layer fits nowhere"),
        Column("proven", "INTEGER NOT NULL", "1 where no mapping is better"),
        Column("seconds", "REAL NOT NULL", "of the search"),
    ),
    _answer,
)


_LAYOUT = Layout(0, 0, (_ANSWERS,), "a file of mappings", is_cache=True)


class OwnCostStore(CacheStore):
    """The file of answers; parameters and errors as of `CacheStore`."""

    def __init__(
        self, folder: Path | None, patience: Callable[[], float], stop: threading.Event | None
    ) -> None:
        super().__init__(folder, _FILE, _LAYOUT, patience, stop)


def _find(store: OwnCostStore, question: MappingQuestion) -> MappingAnswer | None:
    return store.find(_ANSWERS, question=question.key)


def keep_answer(store: OwnCostStore, question: MappingQuestion, answer: MappingAnswer) -> None:
    """Write an answer, in the place of an earlier one."""
    mapping = answer.mapping
    text = None if mapping is None else json.dumps(mapping.to_data(), separators=(",", ":"))
    figures = {"mapping": text, "proven": int(answer.proven), "seconds": answer.seconds}
    store.add_all(_ANSWERS, [{"question": question.key, **figures}])
