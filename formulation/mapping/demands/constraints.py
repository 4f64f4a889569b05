"""What a user may demand of a mapping: caps on metrics, pinned or forbidden factors, orders, dataflows.

Written as one line each (``--constraint``, repeatable):

==============================  ==================================================================
``cycles<=1e6``                 a cap on ``energy`` (pJ), ``cycles`` or ``edp``
``utilization>=0.8``            iterations per cycle over the number of PEs
``tile(K@SPM)<=64``             the tile of a dimension that a level holds
``trips(C@DRAM)=1``             iterations of the dimension's loop at a level
``spatial(K)=16``               instances that the dimension is spread over; ``spatial(K@x)`` on one axis
``spatial=C,K``                 only these dimensions may be spread
``stationary@SPM=O``            the tensor that a level's loop order keeps in place
``innermost@SPM=C``             the dimension of a level's innermost loop, where it has loops
``order@DRAM=K,P,C``            the loops of a level stand in this order, outermost first; those that
                                are not named stand outside them
``tile(K@SPM)%16``              a multiple of 16, or the whole dimension
``set=gemmini``                 the lines of a set (`constraint_sets`)
``store(W)!=SPM``               the tensor bypasses the level; with ``=`` it is stored there
``weight-stationary``           the weights, by the loops that feed the innermost level; so with ``input-``
                                and ``output-``
==============================  ==================================================================

A name that differs from a known one in case alone is that one.  A name that nothing has is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tilewright.formulation.mapping.cost import CostModel, Limit, Statement
from tilewright.formulation.mapping.demands.constraint_sets import PREFIX, set_named, with_sets_written_out
from tilewright.formulation.mapping.demands.demand import (
    FLAG,
    Demand,
    Layers,
    fitted,
    narrowed,
    placed,
    read_demand,
    shared,
    unknown,
)
from tilewright.formulation.mapping.demands.rules import (
    PINNING,
    Evaluated,
    InnermostRule,
    MetricCap,
    OrderRule,
    Rule,
    SequenceRule,
    SpreadRule,
    StoreRule,
    TileRule,
)
from tilewright.formulation.mapping.evaluator import Evaluation, evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.nests.blocks import Block, loop_hosts
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.nests.orders import OrderClass
from tilewright.formulation.mapping.tiles.axis_groups import RowFilter
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator


@dataclass(frozen=True)
class Constraints:
    """All demands of a user, stated for an operator and an engine.

    Parameters
    ----------
    rules : each once, in the sequence of their texts
    """

    rules: tuple[Rule, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """In canonical form, each once, in a reproducible sequence."""
        return tuple(rule.text for rule in self.rules)

    @property
    def place_loops(self) -> bool:
        """Whether some demand looks at which level's a loop is, or at the order of a level's loops."""
        return any(
            isinstance(rule, (OrderRule, StoreRule, *PINNING))
            or (isinstance(rule, TileRule) and rule.what != "spatial")
            for rule in self.rules
        )

    def orders(
        self, engine: Engine, model: Callable[[int, bool], tuple[OrderClass, ...]], every: bool
    ) -> Callable[[int], tuple[OrderClass, ...]]:
        """The loop orders to choose from at every level: a cost model's, or of them what is demanded.

        Parameters
        ----------
        model : those of a level, undominated or every one
        every : whether dominated ones are wanted too
        """
        pinned = {rule.index(engine): rule for rule in self.rules if isinstance(rule, PINNING)}

        def at(level: int) -> tuple[OrderClass, ...]:
            rule = pinned.get(level)
            return model(level, every) if rule is None else rule.orders(model(level, True), every)

        return at

    def also(self, rules: Iterable[Rule]) -> Constraints:
        """These and others; of two with the same text the one that was there."""
        # Later entries win: the rules that were there come last.
        by_text = {rule.text: rule for rule in (*rules, *self.rules)}
        return Constraints(tuple(by_text[text] for text in sorted(by_text)))

    def row_filters(self, blocks: Sequence[Block], engine: Engine) -> list[RowFilter]:
        """Predicates over tables of tile sizes, of the rules that have one."""
        filters = (rule.row_filter(blocks, engine) for rule in self.rules)
        return [row_filter for row_filter in filters if row_filter is not None]

    def limits(self, statement: Statement, nest: Nest) -> tuple[Limit, ...]:
        """What a cost model's statement must satisfy besides its own limits."""
        return tuple(limit for rule in self.rules for limit in rule.limits(statement, nest))

    def broken_by(self, seen: Evaluated) -> tuple[str, ...]:
        """What a mapping breaks, in words."""
        return tuple(f"constraint {rule.text}" for rule in self.rules if rule.broken_by(seen))


def parse_constraints(demands: Sequence[str | Demand], operator: Operator, engine: Engine) -> Constraints:
    """State demands, each of them once.

    Parameters
    ----------
    demands : as lines or read

    Raises
    ------
    InputError : naming the line and what was expected, for one that cannot be read or that names a level,
        axis, dimension or tensor which engine and operator do not have
    """
    read = [
        read_demand(text)
        for text in with_sets_written_out((d for d in demands if isinstance(d, str)), operator, engine)
    ]
    demands_found: list[Demand] = []
    for demand in (*read, *(demand for demand in demands if isinstance(demand, Demand))):
        demand = placed(demand, engine)
        # A name that the operator lacks comes back as text, because the error lists all known ones.
        fitting = fitted(demand, operator)
        if isinstance(fitting, str):
            raise unknown(demand, fitting, [operator])
        demands_found.append(fitting)
    return Constraints().also(_rule(demand, operator, engine) for demand in demands_found)


def check_orders(demands: Constraints, engine: Engine, *, uneven: bool = False) -> None:
    """Raise ``InputError`` for demands on loop orders that no search chooses.

    Those of the innermost level's loops are free; between points of uneven storage a level has several
    groups of loops; and a level has one innermost loop.
    """
    innermost = engine.levels[-1].name
    pinned: dict[str, InnermostRule | SequenceRule] = {}
    for rule in demands.rules:
        if not isinstance(rule, (OrderRule, *PINNING)):
            continue
        if rule.level == innermost:
            outer, hint = [level.name for level in engine.levels[:-1]], ""
            if outer and isinstance(rule, OrderRule):
                hint = f"; stationary@{outer[-1]}={rule.tensor} keeps {rule.tensor} in {innermost}"
            message = f"the loops of {innermost} feed the PEs, their order is free{hint}"
            raise InputError(FLAG, rule.text, message)
        if isinstance(rule, PINNING):
            if uneven:
                raise InputError(
                    FLAG, rule.text, "the order of a level's loops is known in even storage only"
                )
            # Two pinned dimensions of one level contradict each other whatever is chosen.
            other = pinned.setdefault(rule.level, rule)
            if other is not rule:
                raise InputError(FLAG, rule.text, f"contradicts {other.text}")


def _rule(demand: Demand, operator: Operator, engine: Engine) -> Rule:
    """What a demand means, its names being those of operator and engine."""
    text = demand.text
    match demand.kind:
        case "metric":
            return MetricCap(text, demand.names[0], demand.number)
        case "only":
            # Instances are counted over all axes: a dimension that is not spread has 1.
            hosts = loop_hosts(operator, engine)
            barred = [dim for dim in operator.bounds if dim not in demand.names]
            return SpreadRule(
                text, tuple(TileRule(text, "spatial", dim, None, "=", 1, hosts) for dim in barred)
            )
        case "stationary":
            return OrderRule(text, str(demand.site), demand.names[0])
        case "innermost" | "order":
            names = [level.name for level in engine.levels]
            hosting = [names[host] for host in loop_hosts(operator, engine)]
            if hosting.count(str(demand.site)) != 1:
                message = f"the loops of {demand.site} and of a level that stores nothing count as one"
                raise demand.error(message)
            if demand.kind == "innermost":
                return InnermostRule(text, str(demand.site), demand.names[0], tuple(operator.tensors))
            outside = [dim for dim in operator.bounds if dim not in demand.names]
            return SequenceRule(text, str(demand.site), (*outside, *demand.names), tuple(operator.tensors))
        case "store":
            return StoreRule(text, demand.names[0], str(demand.site), demand.compare == "=")
        case what:
            [dim] = demand.names
            hosts, number = loop_hosts(operator, engine), demand.number.numerator
            return TileRule(text, what, dim, demand.site, demand.compare, number, hosts)


def applicable(texts: Sequence[str], operator: Operator, engine: Engine) -> tuple[str, ...]:
    """The lines that say something about an operator, in canonical form, each once, sorted.

    Of lines for a whole network, those on dimensions or tensors that the operator lacks are left out;
    `network_constraints` makes sure that some layer has them.

    Raises
    ------
    InputError : for a line that cannot be read, and for an unknown level or axis
    """
    fitting = {
        demand.text
        for text in with_sets_written_out(texts, operator, engine)
        for demand in narrowed(placed(read_demand(text), engine), operator)
    }
    return tuple(sorted(fitting))


def network_constraints(
    texts: Sequence[str], layers: Layers, engine: Engine
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lines for the layers of a call in canonical form, each once and sorted, and what a user should know.

    Parameters
    ----------
    layers : name and operator of each

    Returns
    -------
    The lines; and a note for each that names what only some of the layers have

    Raises
    ------
    InputError : as `parse_constraints`, for a name that none of the layers has
    """
    sets = {f"{PREFIX}{name}" for text in texts if (name := set_named(text)) is not None}
    others = [text for text in texts if set_named(text) is None]
    demands = [shared(placed(read_demand(text), engine), layers) for text in others]
    notes = {demand.text: note for demand, note in demands} | dict.fromkeys(sets)
    return tuple(sorted(notes)), tuple(note for _, note in sorted(notes.items()) if note is not None)


def evaluate_under(
    operator: Operator,
    engine: Engine,
    model: CostModel,
    demands: Constraints,
    mapping: Mapping,
    where: str = "mapping",
) -> Evaluation:
    """Evaluate a mapping against the machine's rules and a user's demands, without stating a whole problem.

    Parameters
    ----------
    operator, engine : the layer and the machine
    model : the cost model that counts
    demands : the user's constraints, read for this layer and machine
    mapping : legal or not; broken demands are listed after the machine's own violations
    where : what errors call the mapping

    Raises
    ------
    InputError : where the mapping does not fit the operator and the engine, or the model does not apply
    """
    evaluation = evaluate_mapping(operator, engine, model, mapping, where)
    broken = demands.broken_by(Evaluated(operator, engine, mapping, evaluation))
    return replace(evaluation, violations=(*evaluation.violations, *broken)) if broken else evaluation
