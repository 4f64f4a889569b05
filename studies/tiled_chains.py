"""Chains of segments by the closed form: Tangram, KAPLA with several k on both estimates, the proven best,
and the best over all orders of the layers (``--cover``).

python -m studies.tiled_chains resnet goog --batch 1 --pipelining spatial both

Names of the published program's networks take the figures of its tile, names of the catalog those of the
machine.
"""

from __future__ import annotations

import argparse
import sys
import time

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.kapla.chain import Chain
from tilewright.formulation.scheduling.tiled.set.networks import set_network
from tilewright.formulation.scheduling.tiled.set.released.networks import PROGRAM_NETWORKS, program_network
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import (
    ClosedForm,
    engine_form,
    program_form,
)
from tilewright.formulation.scheduling.tiled.set.trees.rules import Rules
from tilewright.formulation.scheduling.tiled.units import units_of
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.kapla.methods import ESTIMATES, ORDERS, PIPELINING
from tilewright.heuristics.scheduling.tiled.kapla.solver import KaplaSolver, Slicing, tangram_chain
from tilewright.solvers.scheduling.tiled.kapla.best_first import BestFirst
from tilewright.solvers.scheduling.tiled.kapla.cover import Cover
from tilewright.solvers.scheduling.tiled.linear import SOLVERS
from tilewright.workloads.catalog import resolve_model


def form_of(name: str, args: argparse.Namespace) -> ClosedForm:
    """A closed form that knows nothing yet."""
    machine = load_tiled_machine(args.system)
    if name in PROGRAM_NETWORKS:
        return program_form(program_network(name), machine, args.batch, Rules())
    network = set_network(units_of(resolve_model(name, 1), fuse=True), name)
    return engine_form(network, machine, args.batch, Rules())


HEAD = (
    "| network | batch | segments | method | EDP | over the proven | CPU s | priced | of schemes |\n"
    "|---|---:|---|---|---:|---:|---:|---:|---:|"
)


def study(name: str, pipelining: str, args: argparse.Namespace) -> None:
    """Print everything measured on one network with one kind of segments: a row for every method."""
    orders = ORDERS[args.orders]
    slicing = Slicing(PIPELINING[pipelining], args.spatial, args.temporal, orders, args.splits, args.bands)
    form, start = form_of(name, args), time.process_time()
    proven = BestFirst(form, slicing, stop=lambda: time.process_time() - start > args.seconds).solve()
    best = value(form, proven.chain)

    def report(method: str, reached: float, begun: float, priced: str, schemes: str) -> None:
        above = f"{100 * (reached / best - 1):.2f} %"
        cells = (name, str(args.batch), pipelining, method, f"{reached:.4g}", above)
        print(
            f"| {' | '.join(cells)} | {time.process_time() - begun:.1f} | {priced} | {schemes} |", flush=True
        )

    state = "`chains`, proven" if proven.proven else f"`chains`, bound {proven.bound:.4g}"
    report(state, best, start, f"{proven.kept:,}", f"{proven.schemes:,}")
    for solver in args.cover:
        form, start = form_of(name, args), time.process_time()
        limits = Limits(args.seconds, threads=1, started=start, clock=time.process_time)
        covered = Cover(form, limits, slicing, solver).solve()
        state = f"`cover` by {solver}, bound {covered.bound:.4g}"
        report(state, value(form, covered.chain), start, f"{covered.kept:,}", f"{covered.schemes:,}")
    if pipelining == "spatial":
        form, start = form_of(name, args), time.process_time()
        reached = value(form, tangram_chain(form, longest=args.spatial, stripes=args.bands))
        report("`tangram`", reached, start, "", "")
    for estimate, make in ESTIMATES.items():
        for keep in args.keep:
            form, start = form_of(name, args), time.process_time()
            solver = KaplaSolver(form, slicing, keep, make)
            reached = value(form, solver.solve())
            report(f"`kapla`, {estimate}, k = {keep}", reached, start, "", f"{solver.pruning.schemes:,}")


def value(form: ClosedForm, chain: Chain | None) -> float:
    """The objective of a chain; infinite for none."""
    return float("inf") if chain is None else form.value(chain.energy, chain.cycles)


def main(arguments: list[str] | None = None) -> int:
    """Run the study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--system", default="set-edge-4x4")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument(
        "--pipelining", nargs="+", default=["spatial", "temporal", "both"], choices=PIPELINING
    )
    parser.add_argument("--keep", nargs="+", type=int, default=[1, 4, 64], help="chains kept at every state")
    parser.add_argument("--orders", default="auto", choices=ORDERS)
    parser.add_argument("--spatial", type=int, default=8, help="layers of a spatial segment")
    parser.add_argument("--temporal", type=int, default=16, help="layers of a temporal segment")
    parser.add_argument("--bands", type=int, default=1, help="parts of a sample that layers pass on")
    parser.add_argument("--splits", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--cover", nargs="+", default=[], choices=SOLVERS, help="chains over all orders")
    parser.add_argument("--seconds", type=float, default=100, help="CPU seconds for a proof")
    args = parser.parse_args(arguments)
    print(HEAD, flush=True)
    for name in args.networks:
        for pipelining in args.pipelining:
            study(name, pipelining, args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
