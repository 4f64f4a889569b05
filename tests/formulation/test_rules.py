"""Demands as objects: where they come from does not matter, and a new kind needs no other code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tilewright.formulation.mapping.cost import Limit, Statement
from tilewright.formulation.mapping.demands.constraints import Constraints, parse_constraints
from tilewright.formulation.mapping.demands.dataflow import style_demands
from tilewright.formulation.mapping.demands.demand import no_loop
from tilewright.formulation.mapping.demands.rules import Evaluated
from tilewright.formulation.mapping.mapping import Spatial
from tilewright.formulation.mapping.nests.blocks import Block
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.mapping.tiles.axis_groups import RowFilter
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.arrays import Bools, Int64s
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import load_engine
from tilewright.hardware.mapping.styles import dataflow
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer

LAYER = parse_layer("conv:K=4,C=3,P=4,Q=3,R=3,S=3")[1]
MACHINE = load_engine("eyeriss-168")


@dataclass(frozen=True)
class SerialRule:
    """Nothing is spread over the array."""

    text: str = "serial"

    def row_filter(self, blocks: Sequence[Block], engine: Engine) -> RowFilter:
        spatial = [index for index, block in enumerate(blocks) if block.axis is not None]

        def keep(tiles: Mapping[str, Sequence[Int64s]]) -> Bools:
            equal = [own[i] == own[i + 1] for own in tiles.values() for i in spatial]
            return np.asarray(np.logical_and.reduce(equal))

        return keep

    def limits(self, statement: Statement, nest: Nest) -> Iterator[Limit]:
        yield Limit(self.text, statement.cycles, 10**9)

    def broken_by(self, seen: Evaluated) -> bool:
        return any(isinstance(node, Spatial) for node in seen.mapping.nodes)


def test_a_new_kind_of_demand_needs_no_other_code() -> None:
    """Rows, limits and violations of a rule that the package does not know are those of the problem."""
    free = layer_problem(LAYER, MACHINE, parse_objective("cycles"))
    serial = replace(free, constraints=Constraints().also([SerialRule()])).under([])
    assert "constraint serial" in serial.evaluate(_best(free)).violations
    assert not any(isinstance(node, Spatial) for node in _best(serial).nodes)
    assert not serial.evaluate(_best(serial)).violations
    assert [limit.bound for limit in serial.limits if limit.name == "serial"] == [10**9]
    assert serial.content_hash != free.content_hash


def _best(problem):  # type: ignore[no-untyped-def]
    answer = solve(problem, "branch").answer
    assert answer is not None
    return answer


@pytest.mark.parametrize("name", ["nvdla", "shidiannao", "eyeriss"])
def test_a_style_demands_what_a_user_could_write(name: str) -> None:
    """What a style fixes and the same demands as lines are equal rules."""
    style = dataflow(name)
    engine = style.engine_of((2, 2), MACHINE.clock_mhz, 96)
    demands = style_demands(style.fixes(LAYER))
    lines = [demand.text for demand in demands]
    assert parse_constraints(demands, LAYER, engine) == parse_constraints(lines, LAYER, engine)


def test_a_demand_that_nobody_wrote_is_named_by_its_text() -> None:
    """An error about a demand made by a program quotes what a user would have written."""
    with pytest.raises(InputError, match=r"trips\(X@DRAM\)=1: unknown dimension 'X'"):
        parse_constraints([no_loop("X", "DRAM")], LAYER, MACHINE)
