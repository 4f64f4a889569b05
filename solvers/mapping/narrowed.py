"""Methods that tabulate a whole space, made fit for spaces whose tables take too much memory or time.

Branch and bound leaves out rows of tiles before it tabulates all that it reads.  Other methods have a value
of every expression at every row: beyond some hundred thousand rows the models of CP-SAT and MIP take more
than a gigabyte, beyond a million the tables of heuristics do, and a limit strikes long before there is a
mapping.  They begin with tiles that are halved again and again, a small part of such a space.  What states
models goes on with the rows that a search may still want; if these are too many, the bound is that of what
was known before.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from tilewright.formulation.limits import LimitReachedError, TablesTooLargeError
from tilewright.formulation.mapping.parts.compulsory import least_key
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerMethod, LayerSearch
from tilewright.formulation.method import Outcome, states_models
from tilewright.solvers.mapping.part_search import PartSearch
from tilewright.solvers.mapping.tree.goals import Minimum
from tilewright.solvers.mapping.tree.layout import LegalTables

MOST_STATED = 200_000  # rows of tiles of all axis groups, in a model of a mathematical program
MOST_TABLED = 1_000_000  # rows of tables that other methods read
_SHARE = 0.5  # of the time that is left, for a mapping before the rows that are wanted are known

TOO_MANY = "tiles are too many for this method: at most a part of them was searched"


def solve_narrowed(search: LayerSearch, method: LayerMethod) -> Outcome:
    """Search with a method, which sees a part of the space where the whole has too many rows.

    Raises ``LimitReachedError`` where a limit strikes before the method is at work.
    """
    problem = search.problem
    is_stating = states_models(method)
    if problem.space.rows <= (MOST_STATED if is_stating else MOST_TABLED):
        return method.solve(search)
    compulsory = least_key(problem)
    if compulsory > 0 and (search.key is None or compulsory <= search.key):
        search.raise_bound(compulsory, "compulsory traffic")
    halved = None
    if not (problem.space.nest.perfect or problem.even_space):
        halved = PartSearch(search, problem.even().with_halved_tiles(), replace(search.limits, gap=0.0))
    if is_stating:
        return _stated(search, halved, method)
    outcome = Outcome() if halved is None else _solved(halved, method)
    if search.key is None and not search.done:
        return method.solve(search)  # a user's demands may leave no halved tiles
    return Outcome(False, outcome.message or TOO_MANY, outcome.error)


def _stated(search: LayerSearch, halved: LayerSearch | None, method: LayerMethod) -> Outcome:
    """Search with a method that states models: halved tiles for a mapping, then all that may be better.

    Parameters
    ----------
    halved : the search of these, where there is one
    """
    outcome = Outcome()
    if halved is not None:
        problem = _wanted(search, halved.problem, method.name)
        halved = None if problem is None else halved.over(problem)
    if halved is not None:
        outcome = _solved(halved.within(halved.limits.share(_SHARE)), method)
    problem = None if search.done else _wanted(search, search.problem, method.name)
    if problem is not None:
        return method.solve(search.over(problem))
    if halved is not None and not search.done:
        outcome = _solved(halved, method)
    return Outcome(False, outcome.message or TOO_MANY, outcome.error)


def _solved(part: LayerSearch, method: LayerMethod) -> Outcome:
    """How a search of a part ended, if with a limit that struck before the method was at work."""
    with suppress(LimitReachedError):
        return method.solve(part)
    return Outcome()


def _wanted(search: LayerSearch, problem: LayerProblem, source: str) -> LayerProblem | None:
    """A problem over rows of tiles with which mappings may be better than the best one known.

    ``None`` where they are too many.  Raises ``LimitReachedError`` where a limit strikes.

    Parameters
    ----------
    search : of the whole
    problem : the whole, or a part of it
    source : the method
    """
    # What is left out costs as much as the incumbent, so bounds of the rest hold for all.
    goal = Minimum(search.within(replace(search.limits, gap=0.0)), source)
    try:
        tables = LegalTables(problem, search.limits).wanted(goal).tables
    except TablesTooLargeError:
        return None
    if sum(tables.sizes) > MOST_STATED:
        return None
    groups = tuple(table.group.having(table.group.rows) for table in tables.tables)
    return replace(problem, space=replace(problem.space, groups=groups), alike=None)
