"""A cost model's statement for one layer as formulas: named sub-terms first, long ones cut."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from tilewright.formulation.expression import Choice, Constant, Expr
from tilewright.formulation.expression.nodes import Where
from tilewright.formulation.expression.text import TextReader
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.foundation.units import exact

WIDTH = 80
LINES = 4
"""Lines after which a formula is cut."""


class _NamingReader(TextReader):
    """Writes the name of a sub-term where it has one, and options that read alike once."""

    def __init__(self, names: dict[Expr, str], labels: dict[str, Sequence[str]]) -> None:
        super().__init__(dict(names))
        self._labels = labels

    def product(self, factors: Sequence[str]) -> str:
        return " * ".join(factors)

    def choice(self, node: Choice) -> str:
        options: dict[str, list[str]] = {}
        labels = self._labels.get(node.selector.name, [])
        for index, option in enumerate(node.options):
            label = labels[index] if index < len(labels) else str(index)
            options.setdefault(self.read(option), []).append(label)
        if len(options) == 1:
            return next(iter(options))
        most = max(options, key=lambda text: len(options[text]))
        parts = [f"{' or '.join(names)}: {text}" for text, names in options.items() if text != most]
        return f"{node.selector.name}{{{'; '.join([*parts, f'else: {most}'])}}}"

    def where(self, node: Where) -> str:
        condition = self.read(node.condition).removeprefix("[").removesuffix("]")
        return f"(if {condition}: {self.read(node.then)}, else: {self.read(node.otherwise)})"


def statement_formulas(problem: LayerProblem, full: bool = False) -> str:
    """Traffic, energy, cycles and limits of a problem as text of 80 columns.

    Parameters
    ----------
    full : never cut a formula
    """
    return "\n".join(_lines(problem, None if full else LINES)) + "\n"


def _lines(problem: LayerProblem, most: int | None) -> Iterator[str]:
    space, statement = problem.space, problem.statement
    nest = space.nest
    names: dict[Expr, str] = {}
    for index, site in enumerate(space.sites):
        for dim in nest.operator.bounds:
            trips = nest.trip(index, dim)
            if not isinstance(trips, Constant):
                names.setdefault(trips, f"n({dim}@{site})")
    labels: dict[str, Sequence[str]] = {
        str(block.selector.name): [order.label for order in block.orders]
        for block in nest.blocks
        if not isinstance(block.selector, int)
    }
    yield f"{problem.operator.kind} on {problem.engine.name}, cost model {problem.model.name}"
    yield ""
    yield "  D@L      tile of dimension D at level L (L:a inside axis a of its array)"
    yield "  n(D@L)   iterations of D's loop there"
    yield "  order@L  the order of L's loops, by the tensor that stays in place"
    yield from ["", "tiles, elements"]
    for row in statement.traffic:
        yield from _formula(f"tile({row.tensor}@{row.level})", row.tile, _NamingReader(names, labels), most)
    for row in statement.traffic:
        if not isinstance(row.tile, Constant):
            names.setdefault(row.tile, f"tile({row.tensor}@{row.level})")
    yield from ["", "accesses, elements"]
    names_of: dict[Expr, str] = {}  # named only once all are told, so that none reads as a part of another
    for row in statement.traffic:
        for what, expr in (("reads", row.reads), ("fills", row.fills), ("updates", row.updates)):
            if isinstance(expr, Constant) and expr.value == 0:
                continue
            name = f"{what}({row.tensor}@{row.level})"
            if expr in names_of:
                yield f"  {name} = {names_of[expr]}"
                continue
            yield from _formula(name, expr, _NamingReader(names, labels), most)
            if not isinstance(expr, Constant):
                names_of[expr] = name
    names |= names_of
    scale = statement.component_scale
    yield from ["", "energy, pJ" if scale == 1 else f"energy, 1/{scale} pJ"]
    for component, expr in statement.components.items():
        yield from _formula(component, expr, _NamingReader(names, labels), most)
    yield from ["", f"cycles at {exact(problem.engine.clock_mhz)} MHz"]
    for detail, expr in statement.details.items():
        yield from _formula(detail, expr, _NamingReader(names, labels), most)
        if not isinstance(expr, Constant):
            names.setdefault(expr, f"[{detail}]")
    yield from _formula("cycles", statement.cycles, _NamingReader(names, labels), most)
    yield from ["", "limits"]
    for limit in problem.limits:
        text = f"{_NamingReader(names, labels).read(limit.expr)} <= {limit.bound}"
        yield from _wrapped(limit.name, text, most)


def _formula(name: str, expr: Expr, reader: TextReader, most: int | None) -> list[str]:
    text = reader.read(expr)
    return _wrapped(name, text[1:-1] if _is_enclosed(text) else text, most)


def _wrapped(name: str, text: str, most: int | None) -> list[str]:
    lines = textwrap.wrap(
        f"{name} = {text}" if "<=" not in text else f"{name}: {text}",
        WIDTH - 4,
        initial_indent="  ",
        subsequent_indent="      ",
        break_on_hyphens=False,
    )
    if most is not None and len(lines) > most:
        return [*lines[:most], f"      … {len(text):,} characters in all"]
    return lines


def _is_enclosed(text: str) -> bool:
    """Whether one pair of parentheses encloses the whole text."""
    if not text.startswith("("):
        return False
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return place == len(text) - 1
    return False
