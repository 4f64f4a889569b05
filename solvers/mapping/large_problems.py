"""An initial mapping and bound for large problems, before their tables are filled.

With imperfect factors a dimension of tens of thousands of iterations has more than a million chains of tile
sizes; to tabulate them takes seconds, in which a limit may strike.  Perfect factors are a subset of them
with a few thousand chains, so branch and bound on that subset has its optimum in a fraction of the time; it
closes much of the whole space, and often is the best there.  Reading the objective with plain intervals
bounds it from below, and so does what each store costs at least; the tiles with which stores cost that little
are good ones for the whole.  Where stores bound nothing, tiles serve that are halved again and again, or cut
to fill an axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial

from tilewright.formulation.expression.interval import IntervalReader
from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.mapping.parts.compulsory import least_key
from tilewright.formulation.mapping.parts.inner_levels import firsts
from tilewright.formulation.mapping.parts.outer_levels import first_stores
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerMethod, LayerSearch
from tilewright.formulation.mapping.tiles.axis_groups import EVERY_INTEGER
from tilewright.solvers.mapping.beside import CLOSE
from tilewright.solvers.mapping.first_mapping import offer_any_mapping
from tilewright.solvers.mapping.levels.outer_bounds import OuterLevels
from tilewright.solvers.mapping.part_search import PartSearch
from tilewright.solvers.mapping.patterns.inner_bounds import EFFORT, InnerLevels, inner_keys
from tilewright.solvers.mapping.patterns.part_tiles import PartTiles
from tilewright.solvers.mapping.patterns.pattern_bounds import PatternBounds, has_store_bounds
from tilewright.solvers.mapping.patterns.pattern_machines import PatternSearch
from tilewright.solvers.mapping.presolve.encode import tile_sizes
from tilewright.solvers.mapping.problem_kinds import PERFECT, has_patterns, is_large
from tilewright.solvers.mapping.tree.goals import BAND, goal_of

HUGE = 200_000  # rows whose tables take seconds
VERY_MANY = 1_000_000  # rows from which on any mapping comes before all else
MOST = 120_000  # rows of perfect factors
SHARE = 0.25  # of the time that is left
LONGEST = 2.0  # seconds
_LOOK = 1.0  # seconds for a bound
_DEEP_SHARE, _DEEPEST = 0.5, 4.0  # of the time that is left, and seconds, for more of a bound
_FEW = 1000  # rows of perfect factors, with which halved tiles have as much time

_OUTER_SHARE, _OUTER_LONGEST = 0.35, 3.0  # of the time that is left, and seconds, for what outer levels cost
_INNER_SHARE, _INNER_LONGEST = 0.7, 8.0  # the same, for what inner levels cost
_OVER = (0.005, 0.02, 0.08)  # by how much the least is passed, step by step; of outer levels, once

_MOSTLY = 0.8  # of the time that is left, for the best part of a space whose tables are too large
_SPARSE = (8, 4, 2)  # sizes of sparse tiles while a tile doubles
_COARSE = (1, 0.5, 0.25)  # the same, where even halved tiles may be too many for memory
_LONG = 60.0  # seconds at most for halved tiles there
_MORE = (4, 16, 64)  # times the usual effort of rounds of bounds there

HALVED, OF_PARTS = "halved tiles", "tiles of parts"
SPARSE, LEAST_TILES, NEARBY = "sparse tiles", "least tiles", "tiles nearby"
OF_OUTER_LEVELS, OF_INNER_LEVELS = "tiles of outer levels", "tiles of inner levels"


def offer_initial_solution(search: LayerSearch, method: LayerMethod) -> None:
    """Offer perfect factors, tiles of parts or else halved ones, and bounds that need no tables.

    Where tiles are so many that those take seconds, too, any mapping comes before them.

    Parameters
    ----------
    method : searches these parts of the space
    """
    problem = search.problem
    if not problem.is_uneven:
        bound = _plain_bound(problem)
        if bound > 0:
            search.raise_bound(bound, "intervals")
    search.raise_bound(least_key(problem), "compulsory traffic")
    if has_patterns(problem):
        return  # each pattern has few rows, and the search begins with some of them
    if problem.space.rows > VERY_MANY:
        offer_any_mapping(search, lambda: search.done)
    bounds = None
    counts_cycles = bool(problem.objective.key_powers[1])
    if has_store_bounds(problem) and not search.done:
        bounds = PatternBounds(search.within(search.limits.part(SHARE, _LOOK)))
        if counts_cycles:  # which close most tiles of two levels; energy asks first for what each level costs
            _search_tiles_of_inner_levels(search, method, bounds, firsts(problem)[:1])
        if not search.done:
            _raise_bound_of_stores(search, bounds)
    if not search.done:
        offer_perfect_factors(search, method)
    if not search.done:
        _search_tiles_of_outer_levels(search, method)
    tiles = PartTiles(problem)
    if bounds is None and not problem.space.nest.perfect and problem.space.rows > HUGE and not search.done:
        before = search.key
        offer_halved_tiles(search, method)
        halved_are_many = search.key == before  # too many to be searched, or nothing better is among them
        if not (search.done or offer_sparse_tiles(search, method)) and halved_are_many:
            offer_sparse_tiles(search, method, _COARSE)
    if bounds is not None and not search.done:
        if not problem.space.nest.perfect:
            _know_more_of_stores(search, bounds)
            _offer_tiles_of_parts(search, tiles, bounds, method)
        if counts_cycles:
            _raise_bound_of_inner_levels(search, bounds)
            _offer_tiles_of_parts(search, tiles, bounds, method)
        else:
            _search_tiles_of_inner_levels(search, method, bounds, firsts(problem))


def offer_perfect_factors(search: LayerSearch, method: LayerMethod) -> bool:
    """Offer the best mapping with perfect factors that a method finds, where they are a part of the space.

    Returns whether they were searched to their end.
    """
    problem = search.problem
    if problem.space.nest.perfect:
        return False
    perfect = problem.with_perfect_factors()
    if perfect.space.rows > MOST:
        return False
    return _offer(search, perfect.even() if is_large(problem) else perfect, PERFECT, method)


def offer_halved_tiles(search: LayerSearch, method: LayerMethod) -> None:
    """Offer a much better mapping with halved tiles, with more time where perfect factors are very few."""
    problem = search.problem
    halved = problem.even().with_halved_tiles()
    worth = _while_worth(search)
    if problem.with_perfect_factors().space.rows > _FEW:
        _offer(worth, halved, HALVED, method)
    else:
        _offer(worth, halved, HALVED, method, _DEEP_SHARE, _DEEPEST)


def offer_sparse_tiles(
    search: LayerSearch,
    method: LayerMethod,
    octaves: Iterable[float] = _SPARSE,
    share: float = SHARE,
    longest: float = LONGEST,
) -> bool:
    """Offer a much better mapping over few sizes of tiles that have many, as many as are searched quickly.

    Parameters
    ----------
    octaves : how many sizes while a tile doubles; the first with which all rows are few
    share, longest : of the time that is left, and seconds

    Returns whether any has few.
    """
    problem = search.problem.even()
    for octave in octaves:
        sparse = problem.with_sparse_tiles(octave)
        if not is_large(sparse):
            _offer(_while_worth(search), sparse, SPARSE, method, share, longest)
            return True
    return False


def _while_worth(search: LayerSearch) -> LayerSearch:
    """The same search while it may gain much."""
    return search.within(replace(search.limits, gap=max(search.limits.gap, CLOSE)))


def go_on_without_tables(search: LayerSearch, whole: LayerMethod, method: LayerMethod) -> None:
    """Offer mappings of parts, and raise the bound, where the whole has too many tiles for memory.

    It ends with the time, or where these parts hardly tell more.

    Parameters
    ----------
    whole : searches least tiles where every integer is one, and goes on with parts of these in turn
    method : searches parts of the space, and ends where their tables are too large as well
    """
    problem = search.problem
    if problem.space.tiles == EVERY_INTEGER:
        _offer(search, problem.even().with_least_tiles(), LEAST_TILES, whole, _MOSTLY, math.inf)
        _offer_tiles_nearby(search, method)
    elif not problem.space.nest.perfect:
        halved = problem.even().with_halved_tiles()
        if not offer_sparse_tiles(search, method):
            offer_sparse_tiles(search, method, _COARSE, _DEEP_SHARE, _LONG)
        _offer(_while_worth(search), halved, HALVED, method, _DEEP_SHARE, _LONG)
    if problem.is_uneven and not search.done:
        _offer(search, problem.with_halved_tiles(), HALVED, method, 1.0, _LONG)
    if has_store_bounds(problem) and not search.done:
        with suppress(LimitReachedError):
            _know_more_of_inner_levels(search, method)


def _offer_tiles_nearby(search: LayerSearch, method: LayerMethod) -> None:
    """Offer better mappings whose tiles are some integers larger or smaller than those of the best one.

    Of any number of integers a few are searched in a moment; what is better has others nearby.
    """
    problem, reach = search.problem.even(), 1
    while search.answer is not None and not search.done:
        answer = search.answer
        near = {
            variable: frozenset(range(max(1, size - reach), size + reach + 1)) & {*variable.domain}
            for variable, size in tile_sizes(problem, answer).items()
        }
        part = problem.having(near)
        if is_large(part):
            return
        _offer(search, part, NEARBY, method, _DEEP_SHARE, _LONG)
        if all(len(sizes) == len(variable.domain) for variable, sizes in near.items()):
            return
        reach = 1 if search.answer is not answer else reach + 1


def _know_more_of_inner_levels(search: LayerSearch, method: LayerMethod) -> None:
    """Bound by what inner levels cost together with ever more effort, and search the tiles they have then.

    Raises ``LimitReachedError`` where a limit strikes, or tables are too large.
    """
    bounds = PatternBounds(search.within(search.limits.part(SHARE, _LOOK)))
    _raise_bound_of_stores(search, bounds)
    tiles = PartTiles(search.problem)
    for effort in (EFFORT * more for more in _MORE):
        asked = len(bounds.innermost)
        for key in inner_keys(search, bounds, bounds.known(), effort):
            _raise(search, key, "inner levels")
        _offer_tiles_of_parts(search, tiles, bounds, method)
        if search.done or all(answer.is_exact for answer in bounds.innermost[asked:]):
            break


def _offer_tiles_of_parts(
    search: LayerSearch, tiles: PartTiles, bounds: PatternBounds, method: LayerMethod
) -> None:
    """Offer the best mapping over the inner tiles of parts, unless they are those of last time.

    The part that was searched to its end last says most of the whole, so its tiles come first alone.

    Parameters
    ----------
    tiles : those of last time
    bounds : have the answers of parts
    """
    if sum(map(tiles.learn, bounds.innermost)):
        if search.answer is not None:
            tiles.mix(search.answer)
        alone = PartTiles(search.problem)
        having = [answer for answer in bounds.innermost if answer.tiles]
        alone.learn(([answer for answer in having if answer.is_exact] or having)[-1])
        for problem in (alone.problem, tiles.problem):
            if not (is_large(problem) or search.done):
                _offer(search, problem, OF_PARTS, method, _DEEP_SHARE, _DEEPEST)


def _raise_bound_of_stores(search: LayerSearch, bounds: PatternBounds) -> None:
    """Bound all mappings by what each store costs at least, before their tiles are tabulated."""
    taken = None
    with suppress(LimitReachedError):  # what was learned until then counts
        taken = bounds.take()
    _raise(search, min(bounds.least, math.inf if taken is None else taken.key), "stores")


def _know_more_of_stores(search: LayerSearch, bounds: PatternBounds) -> None:
    """Search what each store costs at least with more effort: tables of the whole take longer."""
    with suppress(LimitReachedError):
        for pattern in bounds.deepened(search.within(search.limits.part(_DEEP_SHARE, _DEEPEST))):
            _raise(search, pattern.key, "stores")


def _raise_bound_of_inner_levels(search: LayerSearch, bounds: PatternBounds) -> None:
    """Bound all mappings by what the innermost levels cost together, and their cycles."""
    with suppress(LimitReachedError):
        for key in inner_keys(search.within(search.limits.part(SHARE, LONGEST)), bounds, bounds.known()):
            _raise(search, key, "inner levels")


def _search_tiles_of_inner_levels(
    search: LayerSearch, method: LayerMethod, bounds: PatternBounds, inner: Iterable[int]
) -> None:
    """Bound all mappings by what the innermost levels cost together; search the tiles that are best there.

    Parameters
    ----------
    bounds : know what each level costs at least
    inner : levels that are searched with all inside them, one after the other
    """
    with suppress(LimitReachedError):
        for first in inner:
            if search.done:
                break
            limits = search.limits.part(_INNER_SHARE, _INNER_LONGEST)
            levels = InnerLevels(search.within(limits), first, bounds)
            better = partial(_search_tiles, search, method, key=0.0, source=OF_INNER_LEVELS)
            least = levels.least_key(better)
            _raise(search, min(least, _beyond_goal(search)), "inner levels")
            for share in (*_OVER, math.inf):
                key = min(least * (1 + share), levels.others, _beyond_goal(search))
                if search.done or not _search_tiles(search, method, levels.below(key), key, OF_INNER_LEVELS):
                    break


def _beyond_goal(search: LayerSearch) -> float:
    """A key, in pJ and cycles, just above what is of no interest any more; infinite while everything is."""
    goal = goal_of(search)
    return math.inf if goal is None else math.nextafter(float(goal), math.inf)


def _search_tiles_of_outer_levels(search: LayerSearch, method: LayerMethod) -> None:
    """Bound all mappings by what the outermost levels cost together; search the tiles that are best there.

    Those that cost hardly more than the least are few, so they need no tables of all others, and the best
    mappings are among them.  If nothing else can be better than what they have, it is optimal.  Where other
    bounds are as high, what is inside decides, and no tiles are searched.
    """
    if first_stores(search.problem) is None:
        return
    with suppress(LimitReachedError):
        levels = OuterLevels(search.within(search.limits.part(_OUTER_SHARE, _OUTER_LONGEST)))
        before = search.bound
        least = levels.least_key()
        _raise(search, least, "outer levels")
        if not 0 < least < math.inf or search.bound == before or search.done:
            return
        key = least * (1 + _OVER[0])
        part = levels.below(key)
        if part is not None:
            _search_tiles(search, method, part, key, OF_OUTER_LEVELS)


def _search_tiles(
    search: LayerSearch, method: LayerMethod, part: LayerProblem, key: float, source: str
) -> bool:
    """Search the whole over some tiles for what is better than the incumbent; whether to the end.

    Parameters
    ----------
    part : the whole over these tiles
    key : lower bound, in pJ and cycles, of what is better than the incumbent and has other tiles
    source : of bounds
    """
    inner = PatternSearch(search.within(search.limits.part(_DEEP_SHARE, _DEEPEST)), part)
    is_exhausted = method.solve(inner).exhausted
    if inner.bound is not None and inner.bound <= key:
        search.raise_bound(inner.bound, source)
    elif inner.bound is not None or is_exhausted:  # what has other tiles costs as much as the cutoff
        _raise(search, key, source)
    return is_exhausted


def _raise(search: LayerSearch, key: float, source: str) -> None:
    """Raise the bound to a lower bound of the key, in pJ and cycles: scaled keys are whole numbers."""
    scale = search.problem.key_scale
    if 0 < key < math.inf:
        search.raise_bound(Fraction(math.ceil(key * scale * (1 - BAND))) / scale, source)


def _offer(
    search: LayerSearch,
    part: LayerProblem,
    source: str,
    method: LayerMethod,
    share: float = SHARE,
    longest: float = LONGEST,
) -> bool:
    """Offer the best mapping of a part of the space, or what is found of it in a share of the time.

    Parameters
    ----------
    source : what the whole calls its mappings
    share, longest : of the time that is left, and seconds

    Returns whether the part was searched to its end.
    """
    with suppress(LimitReachedError):  # the share of this, not the limit of the search
        limits = search.limits.part(share, longest)
        return method.solve(PartSearch(search, part, limits, source)).exhausted
    return False


def _plain_bound(problem: LayerProblem) -> Fraction:
    """A lower bound of the objective key, without tables."""
    reader = IntervalReader({})
    key = 1.0
    roots = (problem.statement.energy, problem.statement.cycles)
    for root, power in zip(roots, problem.objective.key_powers, strict=True):
        if power:
            key *= max(0.0, float(reader.low(root))) ** power
    return Fraction(int(key * (1 - BAND))) / problem.key_scale
