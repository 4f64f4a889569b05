"""Fused mappings of AccelForge under its own rules, and the proven optimum of its space beside them.

    python -m studies.fused_peer fused_peer.json              price the mappings, search every case
    python -m studies.fused_peer fused_peer.json --price      price only
    python -m studies.fused_peer fused_peer.json --cases mm64 at64 --seconds 60
    python -m studies.fused_peer fused_peer.json --regression               values of AccelForge's own tests

The file has ``machines`` (nodes by name), ``cases`` (a machine, a workload of einsums, the objective, and for
``fused`` and ``unfused`` a mapping's lines with its counts in bits, its J and seconds), and ``small`` (chains
of products with their energies).  Rules are AccelForge's: divisors, no fill or drain, results read once more
where they leave, einsums in turn (``report/exchange/mapping/accelforge_rules.py``).  Each search is stopped
after so many CPU seconds; it minimises energy, and its answer is priced by the case's objective.
"""

from __future__ import annotations

import argparse
import json
import time
from ast import literal_eval
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from tilewright.formulation.limits import Limits
from tilewright.formulation.objective import Objective
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.exchange.mapping.accelforge_einsums import einsum_network
from tilewright.report.exchange.mapping.accelforge_fused import read_fused
from tilewright.report.exchange.mapping.accelforge_rules import Price, engine_of, price
from tilewright.solvers.mapping.fused.answers import FusionAnswer
from tilewright.solvers.mapping.fused.network import search_network_fusion
from tilewright.solvers.mapping.fused.problem import ENERGY, FusionProblem
from tilewright.workloads.network import Network

CLOSE = Fraction(1, 10**6)
"""AccelForge computes in single precision."""
CHAIN = 4
"""Einsums of a group at most."""


@dataclass(frozen=True)
class Case:
    """One question of the file, its network and machine read.

    Parameters
    ----------
    name, kind : of the case, and ``fused`` or ``unfused``
    objective : ``energy``, or anything that speaks of a product with delay
    row : what AccelForge found
    """

    name: str
    kind: str
    objective: str
    network: Network
    nodes: Sequence[dict[str, Any]]
    bits: int
    row: dict[str, Any]

    @property
    def engine(self) -> Engine:
        return engine_of(self.name, self.nodes, self.bits)

    def priced(self) -> Price:
        """AccelForge's mapping, priced here."""
        where = f"{self.name} {self.kind}"
        engine = self.engine
        return price(read_fused(self.row["mapping"], self.network, engine, where), engine, self.nodes)

    def differing(self, price: Price) -> list[str]:
        """Counts and latencies that are not AccelForge's."""
        theirs: dict[tuple[str, str, str], list[int]] = {}
        for text, bits in self.row["actions_bits_by_einsum_component_tensor_action"].items():
            einsum, component, tensor, action = literal_eval(text)
            if action != "compute":
                theirs.setdefault((einsum, component, tensor), [0, 0])[action == "write"] += round(bits)
        ours = {key: [self.bits * number for number in counts] for key, counts in price.counts.items()}
        wrong = [
            " ".join(key)
            for key in theirs.keys() | ours.keys()
            if theirs.get(key, [0, 0]) != ours.get(key, [0, 0])
        ]
        for text, seconds in self.row.get("latency_s_by_einsum_component", {}).items():
            einsum, component = literal_eval(text)
            if not close(price.latencies[einsum, component], Fraction(seconds)):
                wrong.append(f"{einsum} {component} latency")
        return sorted(wrong)

    def value(self, price: Price) -> Fraction:
        """What the case minimises."""
        return price.energy if self.objective.lower() == "energy" else price.energy * price.seconds

    def searched(self, seconds: float) -> FusionAnswer:
        """The best answer here, fused or not as the case is."""
        return searched(self.network, self.engine, CHAIN if self.kind == "fused" else 1, seconds)


def close(ours: Fraction, theirs: Fraction) -> bool:
    """Whether two figures are one but for single precision."""
    return abs(ours - theirs) <= CLOSE * max(abs(ours), abs(theirs))


def searched(
    network: Network, engine: Engine, most: int, seconds: float, objective: Objective = ENERGY
) -> FusionAnswer:
    """The least energy of a network in groups of so many einsums, with divisors and uneven storage.

    Parameters
    ----------
    network, engine : the einsums and the machine
    most : einsums of a group
    seconds : of the processor
    objective : instead of energy
    """
    names = tuple(layer.name for layer in network.layers)
    problem = FusionProblem(
        network, engine, names, "hierarchy", most, "perfect", "uneven", objective=objective
    )
    limits = Limits(seconds, threads=1, clock=time.process_time, started=time.process_time())
    return search_network_fusion(problem, limits)


def cases_of(data: dict[str, Any]) -> Iterator[Case]:
    """All cases of a file."""
    for row in data.get("cases", []):
        work = row["workload"]
        network = einsum_network(row["case"], work["einsums"], work["bounds"])
        for kind in ("fused", "unfused"):
            if kind in row:
                nodes = data["machines"][row["machine"]]
                bits = work["bits_per_value"]
                yield Case(row["case"], kind, row["objective"], network, nodes, bits, row[kind])


def chain(row: dict[str, Any]) -> tuple[Network, Engine]:
    """A small row's chain of products, and its machine: 1 pJ for a bit in the buffer and for an operation."""
    number = row["einsums"]
    bounds = {"m": row["m"], **{f"n{place}": row["kn"] for place in range(number + 1)}}
    lines = [f"E{i}: T{i + 1}[m,n{i + 1}] += T{i}[m,n{i}] * W{i}[n{i},n{i + 1}]" for i in range(number)]

    def actions(energy: int, *names: str) -> dict[str, Any]:
        joules = Decimal(energy).scaleb(-12)
        return {name: {"joule_per_bit_or_op": joules, "per_second": "inf"} for name in names}

    rates = actions(1, "compute")
    rates["compute"]["per_second"] = 10**9
    nodes = [
        {"name": "DRAM", "bits": "inf", "actions": actions(row["dram_energy_per_bit"], "read", "write")},
        {"name": "GLB", "bits": row["glb_bits"], "actions": actions(1, "read", "write")},
        {"name": "MAC", "actions": rates},
    ]
    return einsum_network("chain", lines, bounds), engine_of("small", nodes, 8)


def study(data: dict[str, Any], names: Sequence[str], seconds: float | None) -> Iterator[str]:
    """A line per case.

    Parameters
    ----------
    data : the file
    names : cases; empty for all, ``small`` for the small chains
    seconds : CPU seconds of each search; ``None`` to price only
    """
    heads = ["case", "objective", "counts", "AccelForge", "its mapping here"]
    if seconds is not None:
        heads += ["optimum here", "bound", "CPU s there", "here"]
    yield "| " + " | ".join(heads) + " |"
    yield "|---" * 3 + "|---:" * (len(heads) - 3) + "|"
    for case in cases_of(data):
        if names and case.name not in names:
            continue
        counted = case.priced()
        wrong = case.differing(counted)
        counts = "equal" if not wrong else f"{len(wrong)} differ: {wrong[0]}"
        if counted.violations:
            counts += f"; {counted.violations[0]}"
        cells = [f"{case.name} {case.kind}", case.objective, counts, f"{case.row['value']:.6e}"]
        cells.append(f"{float(case.value(counted)):.6e}")
        if seconds is not None:
            begun = time.process_time()
            answer = case.searched(seconds)
            taken = time.process_time() - begun
            trees = [(group.group, group.tree) for group in answer.groups if group.tree is not None]
            best = case.value(price(trees, case.engine, case.nodes))
            proof = "proven" if answer.value == answer.bound else f"{float(answer.bound) / 1e12:.6e}"
            cells += [f"{float(best):.6e}", proof, f"{case.row['cpu_s']['all']:.2f}", f"{taken:.2f}"]
        yield "| " + " | ".join(cells) + " |"
    if seconds is None or (names and "small" not in names):
        return
    for row in data.get("small", {}).get("rows", []):
        begun = time.process_time()
        answer = searched(*chain(row), row["einsums"] if row["fused"] else 1, seconds)
        taken = time.process_time() - begun
        label = f"{row['einsums']} products, {row['glb_bits']} bits, {'fused' if row['fused'] else 'unfused'}"
        proof = "proven" if answer.value == answer.bound else str(float(answer.bound))
        value = "none" if answer.value is None else f"{float(answer.value):.0f}"
        cells = [label, "energy", "–", f"{row['energy']:.0f}", "–", value, proof, f"{row['cpu_s']}"]
        yield "| " + " | ".join([*cells, f"{taken:.2f}"]) + " |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--cases", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--price", action="store_true")
    parser.add_argument("--regression", action="store_true")
    given = parser.parse_args()
    data = json.loads(given.file.read_text(), parse_float=Decimal)
    if given.regression:
        from studies.fused_regression import regression

        for line in regression(data, given.cases, given.seconds):
            print(line, flush=True)
        return
    for line in study(data, given.cases, None if given.price else given.seconds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
