"""dMazeRunner's search: all valid tilings that its prunings leave, with every order of unique reuse."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product as cartesian

import numpy as np

from tilewright import __version__
from tilewright.formulation.expression import Variable
from tilewright.formulation.expression.batch import BatchReader
from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.mapping.parts.relaxation import root_bound, usable_rows
from tilewright.formulation.mapping.problem import LayerProblem, state_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.formulation.method import Outcome
from tilewright.formulation.result import Origin
from tilewright.foundation.arrays import Floats, Indices
from tilewright.foundation.options import option
from tilewright.heuristics.mapping.dmazerunner.orderings import AllOrderings
from tilewright.heuristics.mapping.dmazerunner.prunings import (
    LOSSY,
    Prunings,
    conditions,
    fixed_residencies,
    kept_rows,
    read_opts,
)
from tilewright.heuristics.mapping.dmazerunner.tilings import Tilings

_WEAKER = 0.5  # factor on OPT1's thresholds where nothing reaches them
_NONE_LEFT = 0.01


@dataclass(frozen=True, slots=True)
class BestOfBatch:
    """The best of a lot: objective key (energy in scaled units), rows and choices."""

    key: float
    rows: tuple[int, ...]
    chosen: dict[Variable, int]


def _shown_opts(opts: frozenset[int]) -> str:
    return "1-3" if opts == LOSSY else "+".join(map(str, sorted(opts))) or "none"


@dataclass(frozen=True)
class DMazeRunnerSearch:
    """Enumeration of the tilings and loop orders that dMazeRunner's prunings leave."""

    opt: frozenset[int] = option(
        LOSSY, "which of OPT1 to OPT3: 1-3, 1+2, none", read=read_opts, show=_shown_opts
    )
    opt4: bool = option(True, "only orders of maximal reuse")
    opt5: bool = option(True, "threads")
    pe: float = option(0.8, "OPT1: least share of the PEs", low=0, high=1)
    rf: float = option(0.8, "OPT1: least share of the innermost memory", low=0, high=1)
    spm: float = option(0.5, "OPT1: least share of every other bounded memory", low=0, high=1)
    relax: bool = option(True, "halve OPT1's thresholds until some tiling reaches them")

    name = "dmazerunner"
    exact = False

    @property
    def version(self) -> str:
        return __version__

    def solve(self, search: LayerSearch) -> Outcome:
        """List valid tilings, evaluate them and offer the best, until done or a limit strikes."""
        problem = search.problem if self.opt4 else _with_all_orders(search.problem)
        prunings = Prunings(self.opt, self.pe, self.rf, self.spm)
        tables = _tables(search, problem, prunings, self.name)
        scale, seen = 1.0, 0
        while True:
            scaled = prunings.relaxed(scale)
            for count, scored in self._evaluated(search, problem, scaled, tables):
                seen += count
                search.tally.nodes += count
                _offer(search, problem, tables, scored, self.name)
                if search.done:
                    return Outcome(False)
            found_any = seen > 0 and search.key is not None
            if found_any or search.done or not (self.relax and 1 in self.opt and scale > 0):
                break
            scale = scale * _WEAKER if scale * _WEAKER >= _NONE_LEFT else 0.0
        return Outcome(False, _message(seen, scale, search.key is not None))

    def _evaluated(
        self, search: LayerSearch, problem: LayerProblem, prunings: Prunings, tables: Tables
    ) -> Iterator[tuple[int, BestOfBatch | None]]:
        """Size and best of every lot, in the sequence of enumeration; OPT5 evaluates several at once."""
        if not all(len(table) for table in tables.tables):
            return
        workers = search.limits.threads if self.opt5 else 1
        nest = problem.space.nest
        with ThreadPoolExecutor(workers) as pool:
            running: deque[tuple[int, Future[BestOfBatch | None]]] = deque()
            for residency in fixed_residencies(nest):
                tilings = Tilings(
                    nest, tables, conditions(nest, prunings), residency, lambda: bool(search.done)
                )
                for rows in tilings.batches():
                    job = pool.submit(_best, search, problem, tables, rows, residency)
                    running.append((rows.shape[1], job))
                    if len(running) > workers:
                        size, future = running.popleft()
                        yield size, future.result()
            while running:
                size, future = running.popleft()
                yield size, future.result()


def _with_all_orders(problem: LayerProblem) -> LayerProblem:
    factors = "perfect" if problem.space.nest.perfect else "imperfect"
    return state_problem(
        problem.operator,
        problem.engine,
        problem.objective,
        AllOrderings(problem.model),
        problem.constraints.texts,
        None if problem.model.perfect_only else factors,
    )


def _tables(search: LayerSearch, problem: LayerProblem, prunings: Prunings, source: str) -> Tables:
    """Tables of objective, constraints and prunings over the rows that are left; states the root bound.

    The bound is that of the whole space, not of the pruned one.
    """
    nest = problem.space.nest
    roots = [problem.statement.energy, problem.statement.cycles]
    roots += [limit.expr for limit in problem.limits]
    roots += [condition.expr for condition in conditions(nest, prunings)]
    tables = Tables(problem.space.groups, roots, search.limits)
    bound = root_bound(problem, tables)
    if bound is not None and (search.key is None or bound <= search.key):
        search.raise_bound(bound, source)
    usable = usable_rows(problem, tables, search.limits)
    return tables.restricted(
        [
            rows[kept_rows(table, nest, prunings)[rows]]
            for table, rows in zip(tables.tables, usable, strict=True)
        ]
    )


def _best(
    search: LayerSearch, problem: LayerProblem, tables: Tables, rows: Indices, residency: dict[Variable, int]
) -> BestOfBatch | None:
    """The best legal candidate among all orders of some tilings."""
    known = tables.known([*rows])
    free = [selector for selector in problem.space.selectors if selector not in residency]
    a, b = problem.objective.key_powers
    best: BestOfBatch | None = None
    for values in cartesian(*(selector.domain for selector in free)):
        if search.limits.expired:
            break
        chosen = {**residency, **dict(zip(free, values, strict=True))}
        reader = BatchReader(chosen, known, search.limits.check)
        keys: Floats = np.ones(rows.shape[1])
        try:
            for power, expr in ((a, problem.statement.energy), (b, problem.statement.cycles)):
                keys = keys * reader.read(expr) ** power if power else keys
            for limit in problem.limits:
                keys = np.where(reader.read(limit.expr) <= limit.bound, keys, np.inf)
        except LimitReachedError:
            break
        place = int(np.argmin(keys))
        if np.isfinite(keys[place]) and (best is None or keys[place] < best.key):
            best = BestOfBatch(float(keys[place]), tuple(int(row) for row in rows[:, place]), chosen)
    return best


def _offer(
    search: LayerSearch, problem: LayerProblem, tables: Tables, best: BestOfBatch | None, source: str
) -> None:
    if best is None:
        return
    if search.key is None or best.key < float(search.key * problem.key_scale):
        mapping = problem.decode({**tables.assignment(best.rows), **best.chosen})
        search.offer(mapping, source, origin=Origin.HEURISTIC)


def _message(seen: int, scale: float, has_legal: bool) -> str:
    if not has_legal:
        return f"none of {seen} tilings is legal" if seen else "no tiling is left by the prunings"
    if scale < 1:
        return f"{seen} tilings, OPT1's thresholds scaled by {scale:g}"
    return ""
