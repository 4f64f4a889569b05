"""Machine code that some tests need before the limits of their searches begin."""

from __future__ import annotations

import random

import pytest
from tiled_plans import random_problem

from tilewright.solvers.scheduling.tiled.exact.counts import Counts, twins
from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance
from tilewright.solvers.scheduling.tiled.exact.sequences import searched


@pytest.fixture(scope="session")
def sequences_compiled() -> None:
    """Sequences of rounds have been searched once."""
    problem, dag = random_problem(random.Random(0), "atomic-2x2")
    instance = RoundInstance(dag, problem.machine)
    searched(Counts(instance, twins(instance)), 1, lambda: False, lambda _: None, labels=1)
