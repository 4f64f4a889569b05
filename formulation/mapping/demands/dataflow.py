"""Dataflows: what a published execution style fixes, as demands on a mapping.

A dataflow says which dimensions are spread over the array, which tensor the loops of each level keep in
place, and which dimensions stay at one iteration in the PEs.  Dimensions are named as a convolution's
(``N G K C P Q R S``); those of other operators count as what they are like.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field, replace

from tilewright.formulation.mapping.demands.demand import Demand, no_loop, not_spread, one_held, stationary
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.styles import Fixed
from tilewright.workloads.mapping.operator import Operator, Role


@dataclass(frozen=True)
class Dataflow:
    """Restrictions of one execution style.

    Parameters
    ----------
    name, about : for people
    spread : dimensions that may be spread over the array, the most important first
    axes : per array axis name, the only dimensions that may be spread along it; axes that are absent take
        any of ``spread``
    inner, outer : role of the tensor that stays in place in the PEs, and in the levels outside them; the
        loops of the level that feeds them run accordingly
    single : dimensions of which a PE works on one iteration at a time
    """

    name: str
    about: str
    spread: tuple[str, ...]
    axes: MappingABC[str, tuple[str, ...]] = field(default_factory=dict)
    inner: Role | None = None
    outer: Role | None = None
    single: tuple[str, ...] = ()

    def demands(self, operator: Operator, engine: Engine) -> tuple[Demand, ...]:
        """The restrictions as demands on a mapping."""
        likes = {d.name: d.like for d in operator.dimensions if d.bound > 1}
        demands = [not_spread(dim) for dim, like in likes.items() if like not in self.spread]
        for axis, allowed in self.axes.items():
            # An axis with a list of its own takes nothing else, though other axes might.
            demands += [
                not_spread(dim, axis)
                for dim, like in likes.items()
                if like in self.spread and like not in allowed
            ]
        innermost = engine.levels[-1].name
        demands += [one_held(dim, innermost) for dim, like in likes.items() if like in self.single]
        return (*demands, *self._orders(operator, engine))

    def _orders(self, operator: Operator, engine: Engine) -> Iterator[Demand]:
        """What stays in place: for the loops just outside the PEs' stores, and for all outside those."""
        names = {tensor.role: tensor.name for tensor in operator.tensors}
        feeding = len(engine.levels) - 2
        for index, level in enumerate(engine.levels[:-1]):
            role = self.inner if index == feeding else self.outer
            if role in names:
                yield stationary(names[role], level.name)


def restricted(problem: LayerProblem, dataflow: Dataflow) -> LayerProblem:
    """The same problem with only the mappings of a dataflow."""
    return problem.under(dataflow.demands(problem.operator, problem.engine))


def style_demands(fixed: Iterable[Fixed]) -> tuple[Demand, ...]:
    """What a style fixes (`tilewright.hardware.mapping.styles`), as demands on a mapping."""
    makers = {"no loop": no_loop, "one held": one_held, "stationary": stationary}
    return tuple(makers[rule.what](rule.name, rule.level) for rule in fixed)


SOC = Dataflow(
    "soc",
    "Output-stationary, one output channel: output rows and columns spread, sums stay in the PEs",
    spread=("P", "Q"),
    inner=Role.OUTPUT,
    outer=Role.OUTPUT,
    single=("K", "N"),
)
MOC = replace(
    SOC,
    name="moc",
    about="Output-stationary, several output channels: as SOC, PE groups work on different output channels",
    spread=("P", "Q", "K"),
)
WS1 = Dataflow(
    "ws1",
    "Weight-stationary: filter rows and columns spread, then channels; weights stay in the PEs",
    spread=("R", "S", "C", "K"),
    inner=Role.WEIGHT,
    outer=Role.WEIGHT,
)
WS2 = replace(
    WS1,
    name="ws2",
    about="Coarse weight-stationary: output and input channels spread, as a systolic matrix product",
    spread=("K", "C"),
)
RS = Dataflow(
    "rs",
    "Row-stationary: output rows and filter rows spread, then channels; filter rows stay in the PEs, sums in "
    "the buffer",
    spread=("P", "R", "K", "C"),
    inner=Role.WEIGHT,
    outer=Role.OUTPUT,
)
DATAFLOWS = {dataflow.name: dataflow for dataflow in (SOC, MOC, WS1, WS2, RS)}
