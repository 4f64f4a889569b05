"""Problems on machines of four or five levels that tensors may pass by."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from instances import Instance, hierarchies, mappings, operators

from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem


@st.composite
def deep(draw: st.DrawFn, most: int) -> Instance:
    """A problem on a machine of four or five levels with one array, which tensors may pass by."""
    drawn = draw(hierarchies(levels=draw(st.sampled_from([4, 4, 5])), roomy=draw(st.booleans())))
    array = draw(st.integers(0, len(drawn.levels) - 1))
    levels = tuple(
        replace(
            level,
            may_bypass=level.keeps if index else level.may_bypass,
            sliding_window=False,
            double_buffered=index > 0 and draw(st.booleans()),
            fanout=level.fanout if index == array else None,
        )
        for index, level in enumerate(drawn.levels)
    )
    objective = draw(st.sampled_from(["energy", "edp", "edp", "ed2p"]))
    factors = draw(st.sampled_from(["perfect", "imperfect"]))
    return Instance(draw(operators(most=most)), replace(drawn, levels=levels), objective, factors=factors)


@st.composite
def legal_mappings(draw: st.DrawFn, problem: LayerProblem) -> list[Mapping]:
    """Some random mappings of a problem's space, those of six that break no limit."""
    drawn = mappings(problem.operator, problem.engine, False, problem.space.nest.perfect)
    judged = [(mapping, problem.judge(mapping)) for mapping in (draw(drawn) for _ in range(6))]
    return [mapping for mapping, own in judged if not own.violations and own.outside is None]
