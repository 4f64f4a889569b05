"""What a nest has counted on one machine holds on those with other prices, capacities, ports and arrays."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import engines, mappings, operators

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping, evaluation_of, exceeded, nest_of
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine, Fanout, MemoryLevel

PRICES = st.integers(0, 90).map(lambda price: Fraction(price, 7))


@st.composite
def repriced(draw: st.DrawFn, engine: Engine) -> Engine:
    """A machine with the same levels and axes, and other prices, capacities and networks."""

    def network(fan: Fanout) -> Fanout:
        if engine.dma is None:
            multicast, reduction, sharing = draw(st.tuples(*[st.booleans()] * 3))
            fan = replace(fan, multicast=multicast, reduction=reduction, sharing=sharing)
        return replace(fan, energy=draw(PRICES))

    def level(memory: MemoryLevel) -> MemoryLevel:
        fan = memory.fanout
        return replace(
            memory,
            capacity=None if memory.capacity is None else draw(st.integers(1, 300)),
            read_energy=draw(PRICES),
            write_energy=draw(PRICES),
            sliding_window=draw(st.booleans()) and engine.dma is None,
            fanout=None if fan is None else network(fan),
        )

    return replace(engine, mac_energy=draw(PRICES), levels=tuple(map(level, engine.levels)))


@pytest.mark.parametrize("model", ["hierarchy", "dmazerunner"])
@given(data=st.data())
@settings(max_examples=effort(25))
def test_counts_hold_at_other_prices(model: str, data: st.DataObject) -> None:
    """Energy, cycles, components and traffic of a nest that another machine counted are those of its own."""
    operator, costs = data.draw(operators()), cost_model(model)
    engine = data.draw(engines(model))
    mapping = data.draw(mappings(operator, engine, perfect=costs.perfect_only))
    try:
        costs.check(operator, engine)
        nest = nest_of(operator, engine, mapping)
        costs.statement(nest)
    except InputError:
        return
    for _ in range(2):
        machine = data.draw(repriced(engine))
        statement = costs.statement(nest.storing(machine, nest.residency))
        alone = costs.statement(nest_of(operator, machine, mapping))
        evaluated = evaluate_mapping(operator, machine, costs, mapping)  # which knows the nests before it
        for stated in (statement, alone):
            assert evaluation_of(stated, operator, machine, evaluated.violations) == evaluated
        assert set(exceeded(alone.limits)) <= set(evaluated.violations)
