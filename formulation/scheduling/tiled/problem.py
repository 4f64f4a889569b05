"""The problem: one network, one machine, an objective; and what judges a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.formulation.limits import Limits
from tilewright.formulation.objective import Objective, parse_objective
from tilewright.formulation.scheduling.tiled.build import build_dag
from tilewright.formulation.scheduling.tiled.dag import AtomicDag, PartialSums
from tilewright.formulation.scheduling.tiled.evaluator import Evaluation, evaluate
from tilewright.formulation.scheduling.tiled.plan import Plan
from tilewright.formulation.scheduling.tiled.tiling import AtomSize, Tiling, tiling
from tilewright.formulation.scheduling.tiled.units import Unit, units_of
from tilewright.formulation.scheduling.tiled.widths import result_bits
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.workloads.network import Network

MOST_SAMPLES = 10**6
"""Samples at most: bytes times links of more would not be 64-bit integers on large networks."""


@dataclass(frozen=True)
class TiledProblem:
    """A network of batch 1, as many samples of it as asked for, a machine and an objective.

    Parameters
    ----------
    network, machine, objective : what is to be done, where, and what is to be small
    batch : samples
    fuse : do element-wise layers on the way out of the layer that they follow; otherwise they are counted
    partial_sums : what dividing the sum over input channels means, see `build_dag`

    Raises
    ------
    InputError : for a batch below 1 or too large, or a network that was built for several samples
    """

    network: Network
    machine: TiledMachine
    objective: Objective
    batch: int = 1
    fuse: bool = True
    partial_sums: PartialSums = "chain"

    def __post_init__(self) -> None:
        if not 1 <= self.batch <= MOST_SAMPLES:
            limit = "least 1" if self.batch < 1 else f"most {MOST_SAMPLES:,}"
            raise InputError(self.network.name, "batch", f"expected at {limit}, got {self.batch}")
        if self.network.batch != 1:
            raise InputError(
                self.network.name, "batch", f"expected a network of batch 1, got {self.network.batch}"
            )

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The layers that are cut into atoms."""
        return units_of(self.network, fuse=self.fuse)

    @cached_property
    def result_bits(self) -> tuple[int, ...]:
        """Per unit, bits of one element of its result."""
        return result_bits(self.units, self.machine.engine)

    def dag(self, tilings: Sequence[Tiling | AtomSize], limits: Limits | None = None) -> AtomicDag:
        """The atomic DAG of one tiling (or size of atoms) per unit.

        Raises
        ------
        InputError : where an atom fits no buffer, naming its layer
        ValueError : for tilings that do not cover the units
        LimitReachedError : where limits strike on the way
        """
        dag = self.unchecked_dag(tilings, limits)
        worst = int(dag.needs.argmax())
        if dag.needs[worst] > self.machine.engine.buffer_bytes:
            raise InputError(
                self.machine.name,
                dag.task_name(worst),
                f"needs {int(dag.needs[worst])} bytes, a buffer has {self.machine.engine.buffer_bytes}",
            )
        return dag

    def unchecked_dag(
        self,
        tilings: Sequence[Tiling | AtomSize],
        limits: Limits | None = None,
        *,
        samples: int | None = None,
    ) -> AtomicDag:
        """As `dag`, but atoms may need more than a buffer has.

        Parameters
        ----------
        samples : of the DAG; by default the whole batch
        """
        batch = self.batch if samples is None else samples
        cuts = [
            tiling(unit, size, batch) if isinstance(size, AtomSize) else size
            for unit, size in zip(self.units, tilings, strict=True)
        ]
        return build_dag(
            self.units, cuts, self.machine.engine, batch=batch, partial_sums=self.partial_sums, limits=limits
        )

    def evaluate(self, dag: AtomicDag, plan: Plan) -> Evaluation:
        """Judge a plan; raises `IllegalPlanError`."""
        return evaluate(dag, self.machine, plan)

    def value(self, result: Evaluation) -> float:
        """The objective of an evaluated plan: energy in pJ and cycles to its powers."""
        return self.value_of(result.energy.total, result.cycles)

    def value_of(self, energy: float, cycles: float) -> float:
        """The objective of an energy and a number of cycles, bounds of them included."""
        a, b = float(self.objective.energy_power), float(self.objective.delay_power)
        return float(energy**a * cycles**b)


OBJECTIVES = ("makespan", "energy", "edp", "ed2p", "E^n*D^m")
"""What may be asked for: names, or whole powers of energy and delay (SET, section 5.1.1)."""


def tiled_objective(text: str, where: str = "--objective", field: str | None = None) -> Objective:
    """An objective by name or by its powers; ``makespan`` is the same as ``cycles``.

    Raises
    ------
    InputError : for anything else, at the place that is reported
    """
    try:
        objective = parse_objective("cycles" if text == "makespan" else text)
    except InputError as error:
        raise InputError(where, field, unknown_name(text, OBJECTIVES)) from error
    if objective.root > 1:
        raise InputError(where, field, f"expected whole powers on tiled machines, got {text!r}")
    return objective
