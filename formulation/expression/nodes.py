"""The nodes of an expression, built through functions that fold constants and share equal nodes.

All values are integers.  Sub-expressions are non-negative wherever a node's meaning needs it (products,
quotients, maxima); only sums may subtract.  Equal expressions are the same object, so readers memoise by
identity; several threads may build expressions at once.  A node is known by its children's identities, which
it keeps alive, and is forgotten with its last user: nothing is left of a problem for the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, cast
from weakref import ref

_interned: dict[Hashable, ref[Expr]] = {}  # those that are forgotten, too, until these are as many as others
_LEAST_ROOM = 1 << 13
_room = _LEAST_ROOM  # nodes at which those that are forgotten go
_constants: dict[int, Expr] = {}  # small ones stay
_SMALL = 1 << 12
_making = threading.RLock()
_NO_VARIABLES: frozenset[Variable] = frozenset()


class Expr:
    """An integer-valued expression.

    Attributes
    ----------
    support : the variables that it depends on
    group : the one axis group that all of its variables belong to; ``None`` if there is no such group
    """

    __slots__ = ("__weakref__", "group", "support")

    support: frozenset[Variable]
    group: str | None

    def __add__(self, other: Expr | int) -> Expr:
        return total([self, other])

    __radd__ = __add__

    def __sub__(self, other: Expr | int) -> Expr:
        return total([self, -1 * as_expr(other)])

    def __rsub__(self, other: Expr | int) -> Expr:
        return total([other, -1 * self])

    def __mul__(self, other: Expr | int) -> Expr:
        return product([self, other])

    __rmul__ = __mul__

    def children(self) -> tuple[Expr, ...]:
        """The nodes that this one is computed from."""
        return ()


def known_node(key: Hashable) -> Expr | None:
    """The node with this key, which begins with its class; ``None`` where it does not exist yet.

    Most expressions exist already, so it is looked up without a lock.
    """
    reference = _interned.get(key)
    return None if reference is None else reference()


def make_node(cls: type[Expr], children: Sequence[Expr], key: Hashable, **fields: object) -> Expr:
    """Make the one node with this key (:func:`known_node`), where it does not exist yet."""
    node = cls.__new__(cls)
    for name, value in fields.items():
        setattr(node, name, value)
    # Variables below a node, and the one axis group that they belong to, if it is one: such a node can be
    # tabulated.
    node.support, node.group = _below(children)
    return _keep(key, node)


def _keep(key: Hashable, node: Expr) -> Expr:
    """Have a node known by its key; returns it, or the one that another thread has made meanwhile."""
    global _room
    with _making:
        known = known_node(key)
        if known is not None:
            return known
        if len(_interned) >= _room:
            for forgotten in [key for key, reference in _interned.items() if reference() is None]:
                del _interned[forgotten]
            _room = max(_LEAST_ROOM, 2 * len(_interned))
        _interned[key] = ref(node)
    return node


def _below(children: Sequence[Expr]) -> tuple[frozenset[Variable], str | None]:
    """The variables below some nodes, and the axis group of all of them, if it is one."""
    support: frozenset[Variable] = frozenset()
    group: str | None = None
    for child in children:
        if child.support:
            if not support:
                support, group = child.support, child.group
            else:
                if child.group != group:
                    group = None
                if child.support is not support:
                    support |= child.support
    return support, group


class Constant(Expr):
    """An integer."""

    __slots__ = ("value",)
    value: int


class Variable(Expr):
    """A decision variable with an explicit finite domain.

    Parameters
    ----------
    name : unique in its problem
    domain : increasing integers
    axis_group : the group of dimensions whose tile sizes are chosen together; ``None`` for choices that
        belong to no dimension (loop orders, bypasses)
    """

    __slots__ = ("axis_group", "domain", "name")

    def __init__(self, name: str, domain: Sequence[int], axis_group: str | None = None) -> None:
        self.name = name
        self.domain = tuple(domain)
        self.axis_group = axis_group
        self.support = frozenset((self,))
        self.group = axis_group

    def __repr__(self) -> str:
        return f"Variable({self.name})"


class Sum(Expr):
    """``constant + sum(coefficient * term)``."""

    __slots__ = ("constant", "terms")
    terms: tuple[tuple[int, Expr], ...]
    constant: int

    def children(self) -> tuple[Expr, ...]:
        return tuple(term for _, term in self.terms)


class Product(Expr):
    """A product of at least two factors; those of one axis group are kept together as one factor.

    ``core`` is the product of all factors but a constant; ``None`` where no factor is one.
    """

    __slots__ = ("core", "factors")
    factors: tuple[Expr, ...]
    core: Expr | None

    def children(self) -> tuple[Expr, ...]:
        return self.factors


class Quotient(Expr):
    """``ceil(numerator / denominator)``; exact wherever the factors are perfect."""

    __slots__ = ("denominator", "numerator")
    numerator: Expr
    denominator: Expr

    def children(self) -> tuple[Expr, ...]:
        return (self.numerator, self.denominator)


class Maximum(Expr):
    """The largest of its arguments."""

    __slots__ = ("arguments",)
    arguments: tuple[Expr, ...]

    def children(self) -> tuple[Expr, ...]:
        return self.arguments


class IsOne(Expr):
    """1 where the argument (at least 1 everywhere) equals 1, else 0."""

    __slots__ = ("argument",)
    argument: Expr

    def children(self) -> tuple[Expr, ...]:
        return (self.argument,)


class Where(Expr):
    """``then`` where the 0-1 valued ``condition`` is 1, else ``otherwise``."""

    __slots__ = ("condition", "otherwise", "then")
    condition: Expr
    then: Expr
    otherwise: Expr

    def children(self) -> tuple[Expr, ...]:
        return (self.condition, self.then, self.otherwise)


class Choice(Expr):
    """The option whose index is the value of ``selector`` (a variable with domain 0, 1, ...)."""

    __slots__ = ("options", "selector")
    selector: Variable
    options: tuple[Expr, ...]

    def children(self) -> tuple[Expr, ...]:
        return (self.selector, *self.options)


class Function(Expr):
    """A named integer function of a few arguments that has no closed form in the other nodes.

    ``evaluate`` takes integers; ``evaluate_many``, if there is one, arrays of them (see `function`).
    """

    __slots__ = ("arguments", "evaluate", "evaluate_many", "name")
    name: str
    evaluate: Callable[..., int]
    evaluate_many: Callable[..., Any] | None
    arguments: tuple[Expr, ...]

    def children(self) -> tuple[Expr, ...]:
        return self.arguments


class Rounded(Expr):
    """``argument / denominator`` rounded to the nearest integer, halves to the even one."""

    __slots__ = ("argument", "denominator")
    argument: Expr
    denominator: int

    def children(self) -> tuple[Expr, ...]:
        return (self.argument,)


class Tightened(Expr):
    """``argument``, with the knowledge that the problem's constraints keep it within two bounds.

    Numbers read the argument alone; intervals and solvers may use the bounds.
    """

    __slots__ = ("argument", "lower", "upper")
    argument: Expr
    lower: Expr
    upper: int | None

    def children(self) -> tuple[Expr, ...]:
        return (self.argument, self.lower)


AnyExpr = (
    Constant
    | Variable
    | Sum
    | Product
    | Quotient
    | Maximum
    | IsOne
    | Where
    | Choice
    | Function
    | Rounded
    | Tightened
)
"""All kinds of expressions; a reader that handles each of them ends in ``assert_never``."""


def as_node(expr: Expr) -> AnyExpr:
    """The expression as one of the kinds that there are, for a type checker to count."""
    return cast(AnyExpr, expr)


def as_expr(value: Expr | int) -> Expr:
    """The expression itself, or an integer as a constant."""
    if isinstance(value, Expr):
        return value
    constant = _constants.get(value)
    if constant is None:
        constant = known_node((Constant, value)) or _constant(value)
        # Small constants stay for good; the interned table alone would forget them with their last user.
        if abs(value) < _SMALL:
            _constants[value] = constant
    return constant


def _constant(value: int) -> Expr:
    """A constant that does not exist yet."""
    node = Constant.__new__(Constant)
    node.value, node.support, node.group = value, _NO_VARIABLES, None
    return _keep((Constant, value), node)


def total(terms: Iterable[Expr | int]) -> Expr:
    """The sum of the terms, like terms collected."""
    collected: dict[Expr, int] = {}
    constant = 0
    for term in terms:
        constant += term.value if isinstance(term, Constant) else _collect(term, 1, collected)
    if not collected:
        return as_expr(constant)
    pairs = tuple([(coefficient, core) for core, coefficient in collected.items() if coefficient])
    if not pairs:
        return as_expr(constant)
    # One positive term is a product, so that products of sums do not hide factors from later products.
    if constant == 0 and len(pairs) == 1 and pairs[0][0] > 0:
        return _scaled(pairs[0][1], pairs[0][0])
    return _sum(pairs, constant)


def _collect(term: Expr | int, coefficient: int, collected: dict[Expr, int]) -> int:
    """Add a multiple of a term to those that are like it; its constant part is returned."""
    if isinstance(term, Product):
        # ``2*x`` and ``3*x`` are like terms, though they are different nodes.
        if term.core is not None:
            coefficient *= cast(Constant, term.factors[0]).value
            term = term.core
    elif isinstance(term, Constant):
        return coefficient * term.value
    elif isinstance(term, Sum):
        constant = coefficient * term.constant
        for inner, part in term.terms:
            constant += _collect(part, coefficient * inner, collected)
        return constant
    elif isinstance(term, int):
        return coefficient * term
    collected[term] = collected.get(term, 0) + coefficient
    return 0


def _sum(pairs: tuple[tuple[int, Expr], ...], constant: int) -> Expr:
    """The sum of a constant and some terms with their coefficients, at least one."""
    key = (Sum, frozenset([(coefficient, id(core)) for coefficient, core in pairs]), constant)
    return known_node(key) or make_node(Sum, [core for _, core in pairs], key, terms=pairs, constant=constant)


def product(factors: Iterable[Expr | int]) -> Expr:
    """The product of the factors: constants folded, factors of one axis group multiplied first."""
    constant = 1
    opened: list[Expr] = []
    for factor in factors:
        if isinstance(factor, Constant):
            constant *= factor.value
        elif isinstance(factor, Product):
            if factor.core is not None:
                number, *rest = factor.factors  # none of which is a product to be opened
                constant *= cast(Constant, number).value
                opened += rest
            elif factor.group is None:
                opened += factor.factors
            else:
                opened.append(factor)
        elif isinstance(factor, Expr):
            opened.append(factor)
        else:
            constant *= factor
    if not opened or not constant:
        return as_expr(constant)
    if len(opened) == 1:
        core = opened[0]
        return _sum(((constant, core),), 0) if constant < 0 else _scaled(core, constant)
    # Factors of one axis group form one factor: readers tabulate it, and its trip counts and tiles telescope
    # there.
    local: dict[str, list[Expr]] = {}
    mixed: list[Expr] = []
    for factor in opened:
        if factor.group is None:
            mixed.append(factor)
        elif factor.group in local:
            local[factor.group].append(factor)
        else:
            local[factor.group] = [factor]
    # A product of one group is opened only where others join it: alone it is the same node.
    groups = [
        items[0] if len(items) == 1 else _node([part for item in items for part in _parts(item)])
        for items in (local[name] for name in (sorted(local) if len(local) > 1 else local))
    ]
    core = _node(groups + mixed)
    # Factors are never negative, which interval readers rely on; a sign goes into a sum's coefficient.
    return _sum(((constant, core),), 0) if constant < 0 else _scaled(core, constant)


def _parts(factor: Expr) -> tuple[Expr, ...]:
    return factor.factors if isinstance(factor, Product) else (factor,)


def _node(factors: Sequence[Expr]) -> Expr:
    """The product of some factors without a constant, at least one."""
    if len(factors) == 1:
        return factors[0]
    # The key forgets the order of factors, so that equal products are one node.
    key = (Product, *sorted(map(id, factors)))
    return known_node(key) or make_node(Product, factors, key, factors=tuple(factors), core=None)


def _scaled(core: Expr, constant: int) -> Expr:
    if constant == 1:
        return core
    rest = _parts(core)
    key = (Product, "scaled", constant, *sorted(map(id, rest)))
    known = known_node(key)
    if known is not None:
        return known
    factors = (as_expr(constant), *rest)
    return make_node(Product, factors, key, factors=factors, core=core)
