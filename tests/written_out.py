"""Mappings of small problems written out, and random ones of others."""

from __future__ import annotations

from collections.abc import Iterator

from brute import every_mapping
from hypothesis import strategies as st
from instances import mappings

from tilewright.formulation.mapping.problem import LayerProblem


def keys_of_mappings(data: st.DataObject, problem: LayerProblem, enumerated: int) -> Iterator[float]:
    """The keys of legal mappings of a problem: of all, or of ten at random where there are many.

    Parameters
    ----------
    data : what draws them
    problem : of one layer
    enumerated : the size of the space up to which all are written out
    """
    operator, engine, perfect = problem.operator, problem.engine, problem.space.nest.perfect
    written = (
        every_mapping(operator, engine, perfect)
        if problem.space.size <= enumerated
        else (data.draw(mappings(operator, engine, False, perfect)) for _ in range(10))
    )
    for mapping in written:
        judgement = problem.judge(mapping)
        if not judgement.violations and judgement.outside is None:
            yield float(judgement.key)
