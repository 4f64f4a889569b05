"""Values of AccelForge's own regression tests, and the optimum of the wider space here, by the same prices.

    python -m studies.fused_peer fused_peer.json --regression
    python -m studies.fused_peer fused_peer.json --regression --cases matmuls --seconds 60

The file's ``regression`` has ``machines`` (nodes by name, with static power), ``workloads`` (einsums by name)
and ``cases`` (a machine, a workload, ``fused`` or ``unfused``, energy and latency of AccelForge's best
mapping).  AccelForge allows one fused loop there, so no value here may be above its own.

Least energy is proven by a search.  A product with delay is bounded by that energy, static power and the
least latency: every einsum takes at least its operations on all units, and at least what the outermost memory
must move.  Where the mapping of the least energy does not have that latency, products are searched as well,
and the least value counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from studies.fused_peer import CHAIN, CLOSE, searched
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.exchange.mapping.accelforge_einsums import einsum_network
from tilewright.report.exchange.mapping.accelforge_rules import PORTS, Price, engine_of, price
from tilewright.report.exchange.source import Field
from tilewright.solvers.mapping.fused.answers import FusionAnswer
from tilewright.workloads.network import Network

PRODUCTS = ("edp", "ed2p")
"""What is searched for.  Shared stores move between turns here and beside other transfers there, so that
what is best here need not be best there."""
HEADS = ("machine", "workload", "kind", "objective", "AccelForge", "here", "bound", "answer", "CPU s")


@dataclass(frozen=True)
class Regression:
    """One value of AccelForge's tests.

    Parameters
    ----------
    row : of the file
    network, nodes, bits : the einsums, the machine, and bits of a value
    """

    row: dict[str, Any]
    network: Network
    nodes: Sequence[dict[str, Any]]
    bits: int

    @property
    def name(self) -> str:
        return f"{self.row['machine']} {self.row['workload']} {self.row['kind']}"

    @cached_property
    def engine(self) -> Engine:
        return engine_of(str(self.row["machine"]), self.nodes, self.bits)

    @property
    def is_product(self) -> bool:
        return str(self.row["objective"]) != "energy"

    def theirs(self) -> Fraction:
        """AccelForge's value."""
        energy = Fraction(self.row["energy"])
        return energy * Fraction(self.row["latency"]) if self.is_product else energy

    def value(self, energy: Fraction, seconds: Fraction) -> Fraction:
        """What is minimised."""
        return energy * seconds if self.is_product else energy

    def searched(self, seconds: float, objective: str) -> FusionAnswer:
        """The best answer by some objective, fused or not as the row is."""
        most = CHAIN if self.row["kind"] == "fused" else 1
        return searched(self.network, self.engine, most, seconds, parse_objective(objective))

    def priced(self, answer: FusionAnswer) -> Price:
        """An answer by AccelForge's rules."""
        trees = [(group.group, group.tree) for group in answer.groups if group.tree is not None]
        return price(trees, self.engine, self.nodes)

    def bound(self, answer: FusionAnswer) -> Fraction:
        """No mapping has less, given the answer to the search for the least energy."""
        seconds = self.least_seconds()
        return self.value(answer.bound / 10**12 + self.static_power() * seconds, seconds)

    def static_power(self) -> Fraction:
        """Of all instances, W."""
        instances, power = 1, Fraction(0)
        for node in self.nodes:
            instances *= math.prod(int(axis["fanout"]) for axis in node.get("spatial", ()))
            power += Fraction(node.get("leak_power", 0)) * instances
        return power

    def least_seconds(self) -> Fraction:
        """No mapping takes less time."""
        outermost, *_, unit = self.nodes
        passed = {link.operand for link in self.network.links} if self.row["kind"] == "fused" else set()
        total = Fraction(0)
        for layer in self.network.layers:
            operator = layer.operator
            work = {"read": 0, "write": 0}
            for tensor in operator.tensors:
                if tensor.name not in passed:
                    kind = "write" if tensor.is_output else "read"
                    # Padding of a window may stay away.
                    sizes = [axis.size for axis in tensor.axes if not axis.is_compound]
                    work[kind] += self.bits * math.prod(sizes)
            times = [
                Fraction(number) / rate
                for kind, number in work.items()
                if (rate := _rate(outermost, kind)) is not None
            ]
            moved = (max if outermost.get("total_latency", PORTS) == PORTS else sum)([Fraction(0), *times])
            rate = _rate(unit, "compute")
            computed = Fraction(0) if rate is None else operator.iterations / (rate * self.engine.instances)
            total += max(moved, computed)
        return total


def _rate(node: dict[str, Any], action: str) -> Fraction | None:
    """Actions per second; ``None`` without a limit."""
    rate = Field(str(node["name"]), node["actions"][action]["per_second"], (action, "per_second"))
    return None if rate.infinite else rate.number("actions per second")


def regressions(data: dict[str, Any]) -> Iterator[Regression]:
    """All values of a file."""
    stated = data["regression"]
    for row in stated["cases"]:
        work = stated["workloads"][row["workload"]]
        network = einsum_network(str(row["workload"]), work["einsums"], work["bounds"])
        yield Regression(row, network, stated["machines"][row["machine"]], work["bits_per_value"])


def best(case: Regression, seconds: float) -> tuple[Fraction, Fraction]:
    """The least value that is found, and its bound.

    Parameters
    ----------
    case : what is asked
    seconds : of the processor, for each search
    """
    answer = case.searched(seconds, "energy")
    counted, bound = case.priced(answer), case.bound(answer)
    value = case.value(counted.energy, counted.seconds)
    if case.is_product and counted.seconds > case.least_seconds():
        for objective in PRODUCTS:
            counted = case.priced(case.searched(seconds, objective))
            value = min(value, case.value(counted.energy, counted.seconds))
    return value, bound


def regression(data: dict[str, Any], names: Sequence[str], seconds: float) -> Iterator[str]:
    """A line per value.

    Parameters
    ----------
    data : the file
    names : parts of rows' names; empty for all
    seconds : of the processor, for each search
    """
    yield "| " + " | ".join(HEADS) + " |"
    yield "|---" * 4 + "|---:" * 3 + "|---|---:|"
    for case in regressions(data):
        if names and not any(name in case.name for name in names):
            continue
        begun = time.process_time()
        value, bound = best(case, seconds)
        taken = time.process_time() - begun
        theirs, row = case.theirs(), case.row
        if abs(value - theirs) <= CLOSE * theirs:
            answer = "equal"
        else:
            answer = f"{100 * abs(float(value / theirs) - 1):.2f} % {'below' if value < theirs else 'ABOVE'}"
        proof = "proven" if value == bound else f"{float(bound):.6e}"
        cells = [row["machine"], row["workload"], row["kind"], row["objective"], f"{float(theirs):.6e}"]
        yield (
            "| " + " | ".join([*map(str, cells), f"{float(value):.6e}", proof, answer, f"{taken:.1f}"]) + " |"
        )
