"""The mapping problem of one layer: map space, cost statement, objective and constraints together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial

from tilewright.formulation.expression import Expr, Variable, product
from tilewright.formulation.mapping.cost import CostModel, Limit, Statement, cost_model
from tilewright.formulation.mapping.demands.constraints import (
    Constraints,
    check_orders,
    evaluate_under,
    parse_constraints,
)
from tilewright.formulation.mapping.demands.demand import Demand
from tilewright.formulation.mapping.demands.rules import MetricCap
from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.membership import outside, outside_uneven
from tilewright.formulation.mapping.nests.arrangement_rules import arrangement_limits, block_orders
from tilewright.formulation.mapping.nests.arrangements import (
    EVEN,
    STORAGES,
    UNEVEN,
    Arrangement,
    Reduction,
    arrangements,
    is_spread,
)
from tilewright.formulation.mapping.nests.idle_levels import idle_limits
from tilewright.formulation.mapping.nests.orders import OrderClass
from tilewright.formulation.mapping.space import Alike, MapSpace, build_space
from tilewright.formulation.mapping.tiles.axis_groups import (
    DIVISORS,
    EVERY_INTEGER,
    HALVED,
    ROUNDED_UP,
    SPARSE,
)
from tilewright.formulation.mapping.tiles.chains import Sizes
from tilewright.formulation.objective import Objective
from tilewright.formulation.search import Judgement
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.fitted import fitted
from tilewright.hardware.mapping.identity import engine_hash
from tilewright.workloads.mapping.operator import Operator

PERFECT, IMPERFECT = FACTORS = ("perfect", "imperfect")
TRIP_COUNTS, EVERY = TILES = ("trip-counts", "every")


@dataclass(frozen=True)
class LayerProblem:
    """Find the mapping of ``operator`` on ``engine`` that minimises ``objective``.

    Parameters
    ----------
    space : the decisions
    statement : energy, cycles and constraints over them
    limits : everything that a mapping must satisfy, the user's caps included
    storage : ``even``, or ``uneven``: then ``space`` and ``statement`` are those of the even part alone, and
        the union of all :meth:`parts` is what is asked for
    even_space : of one of those parts, the space of the even one
    alike : spaces of parts, and of machines that store other tensors, at other prices and capacities, where
        these share decisions
    """

    operator: Operator
    engine: Engine
    model: CostModel
    objective: Objective
    constraints: Constraints
    space: MapSpace
    statement: Statement
    limits: tuple[Limit, ...]
    storage: str = EVEN
    even_space: MapSpace | None = None
    alike: Alike | None = field(default=None, compare=False, repr=False)

    @property
    def is_uneven(self) -> bool:
        """Whether tensors of a level may begin to live at different points."""
        return self.storage == UNEVEN

    @property
    def reduction(self) -> Reduction:
        """What of the uneven space need not, or shall not, be searched (``docs/uneven.md``)."""
        # The proofs of both reductions move loops and replace tiles, which neither every integer tile nor
        # demands on places of loops allow.
        if self.space.tiles == EVERY_INTEGER or self.constraints.place_loops:
            return Reduction.NONE
        return Reduction.FORMS if self.space.nest.perfect else Reduction.LOOPS

    @property
    def idles(self) -> bool:
        """Whether levels that store nothing have no loops; demands on places of loops may ask for them."""
        return not self.is_uneven and self.even_space is None and not self.constraints.place_loops

    def parts(self, check: Callable[[], None] = lambda: None) -> Iterator[LayerProblem]:
        """The problem over the parts of its space, stated one after the other: one per arrangement.

        The even part comes first.  Where storage is even, it is all there is; in settled forms
        (:attr:`Reduction.FORMS`) the others have all that it has.

        Parameters
        ----------
        check : called between steps that may take long; what it raises goes through
        """
        yield self
        for slots in self.arrangements():
            check()
            yield self.arranged(slots, check)

    def arrangements(self) -> Iterator[Arrangement]:
        """Those of its parts but the even one, none of them stated."""
        if self.is_uneven and self.even_space is None:
            # Settled forms list each nest once, so even ones come among the arrangements; otherwise the even
            # part has them.
            every = self.reduction is Reduction.FORMS
            for slots in arrangements(self.operator, self.engine, self.reduction):
                if every or is_spread(self.engine, slots):
                    yield slots

    def arranged(self, slots: Arrangement, check: Callable[[], None] = lambda: None) -> LayerProblem:
        """The same problem over one arrangement of storage; ``check`` as in :func:`build_space`."""
        return self.stated(self.arranged_space(slots, check), slots)

    def arranged_space(self, slots: Arrangement, check: Callable[[], None] = lambda: None) -> MapSpace:
        """The decisions of one arrangement of storage."""
        # A demand on loop orders may forbid all undominated effects, so that a dominated one is needed.
        every = self.constraints.place_loops
        orders = partial(block_orders, self.operator, self.engine, slots, self.reduction, every=every)
        tiles = self.space.tiles
        return _space(self.operator, self.engine, orders, self.constraints, tiles, slots, check, self.alike)

    def stated(self, space: MapSpace, slots: Arrangement) -> LayerProblem:
        """The same problem over the decisions of one arrangement, or some of them."""
        statement = self.model.statement(space.nest)
        # Demands are stated anew: their expressions read this arrangement's nest.
        caps = self.constraints.limits(statement, space.nest)
        limits = (*statement.limits, *caps, *arrangement_limits(space.nest, slots, self.reduction))
        return replace(self, space=space, statement=statement, limits=limits, even_space=self.space)

    @cached_property
    def key(self) -> Expr:
        """The objective as an integer expression: energy in its scaled unit."""
        a, b = self.objective.key_powers
        return product([*[self.statement.energy] * a, *[self.statement.cycles] * b])

    @property
    def key_scale(self) -> int:
        """What the key expression must be divided by to be in pJ and cycles."""
        return int(self.statement.energy_scale ** self.objective.key_powers[0])

    def evaluate(self, mapping: Mapping, where: str = "mapping") -> Evaluation:
        """Evaluate any mapping against this problem's constraints, the user's included."""
        return evaluate_under(self.operator, self.engine, self.model, self.constraints, mapping, where)

    def judge(self, mapping: Mapping) -> Judgement[Mapping, Evaluation]:
        """What a mapping costs, which rules and demands it breaks, and whether it lies in the space."""
        return self.judged(mapping, self.evaluate(mapping))

    def counts_as(self, other: LayerProblem) -> bool:
        """Whether every mapping has the same evaluation here as in another problem."""
        return (
            self.operator is other.operator
            and self.engine is other.engine
            and self.model is other.model
            and self.constraints is other.constraints
        )

    def judged(self, mapping: Mapping, evaluation: Evaluation) -> Judgement[Mapping, Evaluation]:
        """What an evaluation of a mapping comes to here."""
        return Judgement(
            mapping, evaluation, self.key_of(evaluation), evaluation.violations, self.outside(mapping)
        )

    def outside(self, mapping: Mapping) -> str | None:
        """Why a mapping lies outside the space of this problem; ``None`` for one that lies in it.

        Whether it is legal is another question, which :meth:`evaluate` answers.
        """
        if not self.is_uneven:
            return outside(self.space, mapping, self.idles)
        # A part knows its own arrangement alone; membership is asked of the whole uneven space.
        return outside_uneven(self.even_space or self.space, mapping, self.reduction)

    def key_of(self, evaluation: Evaluation) -> Fraction:
        """The exact objective key of an evaluated mapping."""
        return self.objective.key(evaluation.energy, evaluation.cycles)

    def decode(self, assignment: MappingABC[Variable, int]) -> Mapping:
        """The mapping that an assignment of all decisions stands for."""
        return self.space.decode(assignment)

    def minimising(self, objective: Objective) -> LayerProblem:
        """The same problem with another objective."""
        return replace(self, objective=objective)

    def capped(self, metric: str, limit: Fraction | int) -> LayerProblem:
        """The same problem with a cap on ``energy`` (pJ), ``cycles`` or ``edp`` among the user's demands."""
        cap = MetricCap(f"{metric}<={limit}", metric, Fraction(limit))
        # A cap reads energy and cycles alone, so the space stays and nothing is built again.
        limits = (*self.limits, *cap.limits(self.statement, self.space.nest))
        return replace(self, constraints=self.constraints.also([cap]), limits=limits)

    def under(self, demands: Sequence[Demand]) -> LayerProblem:
        """The same problem with further demands.

        Raises
        ------
        InputError : for one that names what operator and engine do not have
        """
        further = parse_constraints(demands, self.operator, self.engine)
        return self._restated(self.constraints.also(further.rules))

    def with_every_order(self) -> LayerProblem:
        """The same problem with every different effect of loop orders, dominated ones included."""
        return self._restated(self.constraints, every=True)

    def with_perfect_factors(self) -> LayerProblem:
        """The same problem over tiles that divide each other."""
        return self._restated(self.constraints, tiles=DIVISORS)

    def with_halved_tiles(self) -> LayerProblem:
        """The same problem over tiles that are cut in two again and again: a small part of imperfect ones."""
        return self._restated(self.constraints, tiles=HALVED)

    def with_sparse_tiles(self, octave: float) -> LayerProblem:
        """The same problem over few sizes of tiles: a small part of imperfect ones.

        Parameters
        ----------
        octave : sizes while a tile doubles, one of those of `axis_groups.SPARSE`
        """
        return self._restated(self.constraints, tiles=SPARSE[octave])

    def with_least_tiles(self) -> LayerProblem:
        """The same problem over the least tile of every trip count: a small part of all integers."""
        return self._restated(self.constraints, tiles=ROUNDED_UP)

    def having(self, sizes: Sizes) -> LayerProblem:
        """The same problem over rows in which some tiles have some sizes only, where groups can tell.

        Parameters
        ----------
        sizes : by tile size of the space; what is not among them may be anything
        """
        groups = tuple(group.narrowed(sizes) if group.narrowed else group for group in self.space.groups)
        return replace(self, space=replace(self.space, groups=groups))

    def even(self) -> LayerProblem:
        """The same problem over even storage."""
        if not self.is_uneven:
            return self
        even = replace(self, storage=EVEN)
        return replace(even, limits=(*even.limits, *(idle_limits(even.space.nest) if even.idles else ())))

    def on(self, engine: Engine, alike: Alike | None = None) -> LayerProblem:
        """The same problem over even storage on another engine.

        Parameters
        ----------
        alike : of machines that differ from the engine in what levels store, prices and capacities alone

        Raises
        ------
        InputError : where a demand names something that the other engine does not have
        """
        texts, tiles = self.constraints.texts, self.space.tiles
        demands = parse_constraints(texts, self.operator, engine)
        return _stated(self.operator, engine, self.objective, self.model, demands, tiles, EVEN, alike=alike)

    def _restated(
        self, constraints: Constraints, tiles: str | None = None, every: bool = False
    ) -> LayerProblem:
        return _stated(
            self.operator,
            self.engine,
            self.objective,
            self.model,
            constraints,
            tiles or self.space.tiles,
            self.storage,
            every,
        )

    @cached_property
    def content_hash(self) -> str:
        """Content hash of everything that the answer depends on."""
        content = {
            "operator": [
                self.operator.kind,
                list(self.operator.bounds.items()),
                [
                    [
                        t.name,
                        t.role,
                        [[[(x.dim, x.stride) for x in axis.terms], axis.size] for axis in t.axes],
                    ]
                    for t in self.operator.tensors
                ],
            ],
            "likes": [dimension.like for dimension in self.operator.dimensions],
            "engine": engine_hash(self.engine),
            "cost_model": self.model.name,
            "objective": [str(power) for power in (self.objective.energy_power, self.objective.delay_power)],
            "constraints": self.constraints.texts,
            "perfect": self.space.nest.perfect,
        }
        # Fields are added only where they differ from the default, so that hashes of older documents stay.
        upto = [dimension.upto for dimension in self.operator.dimensions]
        if any(upto):
            content["upto"] = upto
        if self.operator.turns > 1:
            content["turns"] = self.operator.turns
        if self.operator.continued:
            content["continued"] = True
        if self.is_uneven:
            content["storage"] = self.storage
        if self.space.tiles == EVERY_INTEGER and self.space.groups:
            content["tiles"] = self.space.tiles
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def layer_problem(
    operator: Operator,
    engine: Engine,
    objective: Objective,
    model_name: str | None = None,
    constraints: Sequence[str | Demand] = (),
    factors: str | None = None,
    storage: str | None = None,
    tiles: str | None = None,
    alike: Alike | None = None,
) -> LayerProblem:
    """State the mapping problem of a layer.

    Parameters
    ----------
    model_name : the cost model; by default the one that the engine names
    constraints : the user's demands, read or as lines
        (:mod:`tilewright.formulation.mapping.demands.constraints`)
    factors : ``perfect`` (tile sizes divide each other) or ``imperfect`` (the last tile may be smaller);
        by default imperfect wherever the cost model counts it
    storage : ``even`` (all tensors of a level begin to live at one point; the default) or ``uneven`` (each at
        its own)
    tiles : of imperfect factors: ``trip-counts`` (the least tile of every trip count; the default) or
        ``every`` integer
    alike : of the same layer on machines that differ in prices and capacities alone

    Raises
    ------
    InputError : for an unknown cost model, one that does not apply, or a malformed constraint
    """
    model = cost_model(model_name or engine.cost_model)
    return state_problem(operator, engine, objective, model, constraints, factors, storage, tiles, alike)


def state_problem(
    operator: Operator,
    engine: Engine,
    objective: Objective,
    model: CostModel,
    constraints: Sequence[str | Demand] = (),
    factors: str | None = None,
    storage: str | None = None,
    tiles: str | None = None,
    alike: Alike | None = None,
) -> LayerProblem:
    """Like :func:`layer_problem` with a cost model at hand.

    Parameters
    ----------
    operator, engine : the layer and the machine
    objective : what is minimised
    model : the cost model itself, which need not be a registered one
    constraints : the user's demands, read or as lines
    factors, storage, tiles, alike : the space, as for :func:`layer_problem`
    """
    engine = fitted(engine, operator)
    model.check(operator, engine)
    check_space(model, factors, storage, tiles)
    if storage == UNEVEN and any(level.timing.set_up for level in engine.levels):
        # What is left out of the uneven space is proven to lose nothing for traffic alone.
        raise InputError("--storage", UNEVEN, f"expected even: {engine.name} states set-up cycles")
    if any(dimension.upto for dimension in operator.dimensions):
        # What spans several sizes has the tiles of all their trip counts (growth.py), and no others.
        if storage == UNEVEN or tiles == EVERY:
            raise InputError(operator.kind, "upto", "expected even storage and the tiles of trip counts")
        if model.perfect_only or factors == PERFECT:
            raise InputError(operator.kind, "upto", "expected imperfect factors")
    demands = parse_constraints(constraints, operator, engine)
    check_orders(demands, engine, uneven=storage == UNEVEN)
    # The least tile of every trip count is enough for an optimum (docs/proofs.md), unless the user wants
    # every integer.
    kind = DIVISORS if model.perfect_only or factors == PERFECT else ROUNDED_UP
    kind = EVERY_INTEGER if tiles == EVERY else kind
    return _stated(operator, engine, objective, model, demands, kind, storage or EVEN, alike=alike)


def check_space(
    model: CostModel, factors: str | None, storage: str | None = None, tiles: str | None = None
) -> None:
    """Raise ``InputError`` for factors, storage or tiles that a cost model does not count.

    Parameters
    ----------
    model : may know perfect factors or even storage only
    factors : ``perfect`` or ``imperfect``; ``None`` for the model's default
    storage : ``even`` or ``uneven``; ``None`` for even
    tiles : ``trip-counts`` or ``every``; ``None`` for trip counts
    """
    known = {"factors": (factors, FACTORS), "storage": (storage, STORAGES), "tiles": (tiles, TILES)}
    for flag, (given, names) in known.items():
        if given not in (None, *names):
            raise InputError(f"--{flag}", None, f"unknown {given!r}, expected {' or '.join(names)}")
    if factors == IMPERFECT and model.perfect_only:
        raise InputError("--factors", None, f"the {model.name} cost model knows perfect factors only")
    if tiles == EVERY and (model.perfect_only or factors == PERFECT):
        raise InputError("--tiles", None, "every integer tile needs imperfect factors")
    if storage == UNEVEN and model.even_only:
        raise InputError("--storage", None, f"the {model.name} cost model knows even storage only")


def _stated(
    operator: Operator,
    engine: Engine,
    objective: Objective,
    model: CostModel,
    demands: Constraints,
    tiles: str,
    storage: str,
    every: bool = False,
    alike: Alike | None = None,
) -> LayerProblem:
    """The problem over undominated effects of loop orders, or over every one."""
    orders = demands.orders(engine, partial(model.orders, operator, engine), every)
    space = _space(operator, engine, orders, demands, tiles, alike=alike)
    statement = model.statement(space.nest)
    problem = LayerProblem(
        operator=operator,
        engine=engine,
        model=model,
        objective=objective,
        constraints=demands,
        space=space,
        statement=statement,
        limits=(*statement.limits, *demands.limits(statement, space.nest)),
        storage=storage,
        alike=alike,
    )
    idle = tuple(idle_limits(space.nest)) if problem.idles else ()
    return replace(problem, limits=(*problem.limits, *idle)) if idle else problem


def _space(
    operator: Operator,
    engine: Engine,
    orders: Callable[[int], tuple[OrderClass, ...]],
    demands: Constraints,
    tiles: str,
    slots: Arrangement | None = None,
    check: Callable[[], None] = lambda: None,
    alike: Alike | None = None,
) -> MapSpace:
    """The map space under demands on tile sizes."""
    space = build_space(operator, engine, orders, (), tiles, slots, check, alike)
    filters = demands.row_filters(space.nest.blocks, engine)
    return build_space(operator, engine, orders, filters, tiles, slots, check) if filters else space
