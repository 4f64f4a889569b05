"""KAPLA, Tangram and proven chains as methods: plans that the common evaluator judges."""

from random import Random

import pytest
from tiled_plans import random_network

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Status
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import TiledResult
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled.running import plan_run

METHODS = (
    "tangram",
    "kapla",
    "kapla[k=1,pipelining=temporal,orders=own,estimate=aggregate]",
    "chains[spatial=4,bands=4,rooms=small]",
    "nn-dataflow[spatial=3]",
    "directives[spatial=3,temporal=3]",
    "random[spatial=3,temporal=3]",
    "autotvm[spatial=2,temporal=2,iterations=1,batch=2]",
)


def solved(seed: int, method: str, objective: str) -> TiledResult:
    """What a method finds on a random network."""
    network = random_network(Random(seed))
    machine = load_tiled_machine("set-edge-4x4[engines=2x2]")
    problem = TiledProblem(network, machine, tiled_objective(objective), batch=1 + seed % 2)
    return plan_run(lambda: problem, method, Limits(60)).run()


@pytest.mark.parametrize("method", METHODS)
def test_plans_are_legal(method: str) -> None:
    """Every method has a legal plan above the bound over all sizes, and claims no proof for plans."""
    for seed, objective in enumerate(("makespan", "edp", "energy")):
        result = solved(seed, method, objective)
        assert result.status is Status.FEASIBLE
        assert result.key is not None
        assert result.bound is not None
        assert result.bound <= result.key


def test_proven_chains_say_so() -> None:
    """The message tells that the chain is proven by the closed form."""
    assert "proven" in solved(1, "chains", "edp").message


def test_options_are_checked() -> None:
    """A number of chains below 1 and an unknown kind of pipelining are refused."""
    for text in ("kapla[k=0]", "kapla[pipelining=sideways]", "tangram[k=2]", "random[probability=0]"):
        with pytest.raises(InputError):
            plan_run(lambda: None, text, Limits(1))  # type: ignore[arg-type, return-value]
