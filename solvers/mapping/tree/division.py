"""The energy as a sum of parts, each of which costs something at least over the whole space.

A part is what moves into the stores at one boundary; wherever intervals know less of it than its least value
over the whole space, that counts instead (``docs/proofs.md``, energy by stores).  Cost models that do not
tell where energy goes are divided by their memory levels.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

from tilewright.formulation.expression import Choice, Constant, Expr, Variable, tighten, total
from tilewright.formulation.mapping.cost.base import ByStore, Limit, whole
from tilewright.formulation.mapping.demands.rules import PINNING
from tilewright.formulation.mapping.nests.merged import MergedNest
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.solvers.mapping.tables.stages import COARSE, Stage, rough_spreads
from tilewright.solvers.mapping.tree.layout import Layout


@dataclass(frozen=True, slots=True)
class Part:
    """A search for the least value of a part of the energy.

    Parameters
    ----------
    energy : the part, or something that is at most as much, whatever is decided in no stage
    limits : those that what is decided can break
    stages : in which decisions are made
    stored : what depends on storage
    """

    energy: Expr
    limits: tuple[Limit, ...]
    stages: Sequence[Stage]
    stored: tuple[Choice, ...]

    def under(self, storage: MappingABC[Variable, int]) -> Hashable:
        """What two storages of one least value have in common."""
        return tuple(choice.options[storage[choice.selector]] for choice in self.stored)


@dataclass(frozen=True, slots=True)
class Division:
    """The energy, and terms of it whose least values bound it.

    Parameters
    ----------
    energy : the whole, as a sum of such terms and others
    outer : terms that depend on outer tiles alone, searched as the problem is; the smallest first
    relaxed : terms that something smaller to search bounds from below
    inner : those of ``relaxed`` that are in no term of ``outer``
    """

    energy: Expr
    outer: dict[Expr, Part]
    relaxed: dict[Expr, Part]
    inner: tuple[Expr, ...] = ()

    @property
    def parts(self) -> dict[Expr, Part]:
        """All terms, the most significant first: innermost ones are the largest."""
        return {**dict(reversed(self.relaxed.items())), **self.outer}

    def others_of(self, term: Expr) -> tuple[Expr, ...]:
        """Terms whose least values add up with that of another one to a bound of the whole."""
        return (
            tuple(other for other in self.relaxed if other is not term)
            if term in self.relaxed
            else self.inner
        )


def divided(layout: Layout) -> Division:
    """The energy of a problem by stores where the cost model states them, else by levels."""
    problem = layout.problem
    model, nest = problem.model, problem.space.nest
    pinned = any(isinstance(rule, PINNING) for rule in problem.constraints.rules)
    if (
        not isinstance(model, ByStore)
        or pinned
        or problem.even_space is not None
        or model.statement(nest).energy is not problem.statement.energy  # it counts less, or knows more
    ):
        energy, terms = by_levels(problem)
        return Division(energy, _searched_as_stated(layout, terms), {})
    # A part is searched over fewer blocks: levels between count as one, which never costs more.
    merged = MergedNest(
        nest.operator, nest.engine, nest.boundaries, nest.blocks, nest.residency, nest.perfect
    )
    below = _at_stores(merged, model.energy_by_store(merged))
    relaxed: dict[Expr, Part] = {}
    chain: list[Expr] = []
    inner: list[Expr] = []
    outer: list[Expr] = []
    array = nest.spatial[0] if nest.spatial else len(nest.blocks)
    for boundary, term in terms_at_stores(problem).items():
        if not isinstance(term, Constant):
            relaxed[term] = _relaxed(layout, merged, boundary, below[boundary])
        # Terms outside the array depend on outer tiles alone and are searched as the whole is; sums of them,
        # from the outermost one inwards, are terms too.
        if 0 < boundary < array:
            chain = [tighten(total([*chain, term]))] if chain else [term]
            outer += [summand for summand in chain if summand not in relaxed]
        else:
            inner.append(term)
    inner_terms = tuple(term for term in inner if term in relaxed)
    # Static power belongs to cycles, so it is in no part.
    leakage = whole(problem.engine.leak, problem.statement.energy_scale) * problem.statement.cycles
    return Division(
        total([*chain, *inner, leakage]), _searched_as_stated(layout, outer), relaxed, inner_terms
    )


def terms_at_stores(problem: LayerProblem) -> dict[int, Expr]:
    """The energy of a problem whose cost model gives it by store, as terms by the boundary of the stores."""
    nest, model = problem.space.nest, problem.model
    assert isinstance(model, ByStore)
    return {place: tighten(part) for place, part in _at_stores(nest, model.energy_by_store(nest)).items()}


def _searched_as_stated(layout: Layout, terms: Iterable[Expr]) -> dict[Expr, Part]:
    """Searches for terms in the stages of the whole, under all that the machine demands."""
    limits = tuple(layout.machine)
    roots = [limit.expr for limit in limits]
    return {
        term: Part(term, limits, layout.stages, _choices([term, *roots], layout.owners)) for term in terms
    }


def _at_stores(nest: Nest, parts: MappingABC[int, Expr]) -> dict[int, Expr]:
    """Parts by boundary, what PEs read with what moves into the innermost level: both see the same tiles."""
    last = nest.temporal[-1]
    edges = dict.fromkeys(min(boundary, last) for boundary in parts)
    return {
        edge: total(part for boundary, part in parts.items() if min(boundary, last) == edge) for edge in edges
    }


def _relaxed(layout: Layout, nest: MergedNest, boundary: int, energy: Expr) -> Part:
    """The tile at a boundary, then what is spread around it; nothing of the levels between.

    Innermost tiles come first: a small store excludes most of them, and what lies outside is bounded well
    once they are known.
    """
    between = {block for run in nest.runs(boundary) for block in run[1:]}
    rest = tuple(edge for edge in range(1, boundary) if edge not in between)
    heads = [nest.blocks[run[0]].selector for run in nest.runs(boundary)]
    orders = tuple(head for head in heads if isinstance(head, Variable) and head in energy.support)
    arrays = [index for index in nest.spatial if index < boundary]
    stages = [
        Stage("rough tile", None, (boundary,), orders, coarse=COARSE),
        *rough_spreads(nest, arrays),
        Stage("tile", None, (boundary,), ()),
    ]
    if rest:
        stages += [Stage("rough rest", None, rest, (), coarse=COARSE), Stage("rest", None, rest, ())]
    stores = layout.owners
    decided = {expr for edge in (*rest, boundary) for expr in nest.boundaries[edge].values()}
    known = {*stores, *decided}
    limits = tuple(limit for limit in layout.machine if limit.expr.support <= known)
    return Part(energy, limits, stages, _choices([energy, *(stated.expr for stated in limits)], stores))


def _choices(roots: Iterable[Expr], selectors: Collection[Expr]) -> tuple[Choice, ...]:
    """The choices that some selectors make."""
    choices: dict[Choice, None] = {}
    seen: set[Expr] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen or not node.support.intersection(selectors):
            continue
        seen.add(node)
        if isinstance(node, Choice) and node.selector in selectors:
            choices[node] = None
        stack.extend(node.children())
    return tuple(choices)


def by_levels(problem: LayerProblem) -> tuple[Expr, tuple[Expr, ...]]:
    """The energy as a sum in which the outermost level, the two outermost, and so on are terms of their own.

    The two innermost levels are in no such term: there the whole is no harder.

    Returns the energy, and these terms, the outermost level's first.
    """
    statement = problem.statement
    names = [level.name for level in problem.engine.levels]
    split: dict[str, list[Expr]] = {name: [] for name in names}
    rest: list[Expr] = []
    for component, expr in statement.components.items():
        owner = next((name for name in names if component == name or component.startswith(f"{name} ")), None)
        (rest if owner is None else split[owner]).append(expr)
    if total(statement.components.values()) is not statement.energy:
        return statement.energy, ()
    parts: list[Expr] = []
    outer: list[Expr] = []
    for name in names[:-2]:
        part = tighten(total([*outer, *split[name]]))
        outer = [part]
        if part.group is None and part not in parts:
            parts.append(part)
    inner = [expr for name in names[-2:] for expr in split[name]]
    return total([*outer, *inner, *rest]), tuple(parts)
