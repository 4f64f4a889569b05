"""Gaps of the default method on random machines of up to 4 x 4 engines, with random networks.

    python -m studies.tiled_random --problems 200 --seconds 2

Machines are meshes and tori with links of 2 to 32 B/cycle; networks have three to six layers.  Every problem
has one of four objectives.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.solvers.scheduling.tiled.running import plan_run, prepare
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds
from tilewright.workloads.mapping.convolutions import conv2d, depthwise_conv2d
from tilewright.workloads.mapping.matrices import fully_connected
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.pointwise import elementwise
from tilewright.workloads.mapping.pooling import pool2d
from tilewright.workloads.network import Layer, Link, Network

OBJECTIVES = ("makespan", "energy", "edp", "ed2p")


@dataclass(frozen=True, slots=True)
class Row:
    """What the search reached on one problem.

    Parameters
    ----------
    energy, cycles : of the plan, each over its bound
    """

    seed: int
    machine: str
    objective: str
    gap: float
    energy: float
    cycles: float

    def text(self) -> str:
        """As a line of a table."""
        cells = (self.seed, self.machine, self.objective, f"{100 * self.gap:.1f} %")
        return f"| {' | '.join(map(str, cells))} | {self.energy:.2f} | {self.cycles:.2f} |"


HEAD = "| seed | machine | objective | gap | energy / bound | cycles / bound |\n|---:|---|---|---:|---:|---:|"


def random_machine(rng: random.Random) -> TiledMachine:
    """A mesh or torus of up to 4 x 4 engines."""
    base = rng.choice(["atomic-8x8", "atomic-8x8", "set-edge-4x4", "atomic-2x2"])
    options = [
        f"engines={rng.randint(1, 4)}x{rng.randint(1, 4)}",
        f"link={rng.choice([2, 4, 8, 16, 32])}",
        f"topology={rng.choice(['mesh', 'torus'])}",
        f"ports={rng.choice(['sides', 'left', 'corners'])}",
        f"buffer={rng.choice([32, 64, 128])}",
        f"dram={rng.choice([8, 32, 128])}",
    ]
    if not base.startswith("set"):
        options.append(f"array={rng.choice(['8x8', '16x16'])}")
    machine = load_tiled_machine(f"{base}[{','.join(options)}]")
    if rng.random() < 0.25:
        engine = replace(machine.engine, static_power=rng.choice([1.0, 20.0]))
        machine = machine.changed(engine=engine)
    return machine


def random_network(rng: random.Random) -> Network:
    """Three to six layers: convolutions, depthwise ones, pools, sums with an earlier result, and at times a
    fully-connected layer at the end."""
    side, channels = rng.choice([7, 14, 28]), rng.choice([3, 16, 32, 64])
    layers: list[Layer] = []
    links: list[Link] = []
    made: list[tuple[str | None, int, int]] = [(None, channels, side)]

    def add(operator: Operator, reads: Sequence[tuple[str, tuple[str | None, int, int]]]) -> str:
        name = f"l{len(layers)}"
        layers.append(Layer(name, operator, "random"))
        for operand, (source, width, rows) in reads:
            links.append(Link(source, name, operand, source or "image", width * rows * rows))
        return name

    for _ in range(rng.randint(3, 6)):
        source = made[-1] if len(made) < 3 or rng.random() < 0.8 else made[-2]
        _, width, rows = source
        twins = [other for other in made[1:] if other is not source and other[1:] == source[1:]]
        kind = rng.choice(["conv", "conv", "conv", "depthwise", "pool", "sum"])
        stride = rng.choice([1, 1, 2]) if rows >= 14 else 1
        out = -(-rows // stride)
        if kind == "sum" and twins and source[0] is not None:
            name = add(elementwise(shape=(1, width, rows, rows)), [("I0", rng.choice(twins)), ("I1", source)])
            made.append((name, width, rows))
        elif kind == "pool" and rows >= 14:
            name = add(pool2d(c=width, h=rows, w=rows, r=2, s=2, stride=2), [("I", source)])
            made.append((name, width, rows // 2))
        elif kind == "depthwise":
            operator = depthwise_conv2d(c=width, h=rows, w=rows, r=3, s=3, stride=stride, pad=1)
            made.append((add(operator, [("I", source)]), width, out))
        else:
            kernel, wide = rng.choice([1, 3]), rng.choice([16, 32, 64, 128, 256])
            operator = conv2d(
                k=wide, c=width, h=rows, w=rows, r=kernel, s=kernel, stride=stride, pad=kernel // 2
            )
            made.append((add(operator, [("I", source)]), wide, out))
    if rng.random() < 0.2:
        maker, width, rows = made[-1]
        last, size = f"l{len(layers)}", width * rows * rows
        layers.append(Layer(last, fully_connected(k=rng.choice([10, 100]), c=size), "random"))
        links.append(Link(maker, last, "A", maker or "image", size, channel=None, moves=("Flatten",)))
    return Network("random", layers, links)


def random_problem(seed: int) -> TiledProblem:
    """A random network on a random machine, for a random objective."""
    rng = random.Random(seed)
    machine, network = random_machine(rng), random_network(rng)
    objective = tiled_objective(OBJECTIVES[seed % len(OBJECTIVES)])
    return TiledProblem(network, machine, objective, batch=rng.choice([1, 1, 1, 2]))


def measure(seeds: Sequence[int], method: str, seconds: float) -> Iterator[Row]:
    """Plan each problem in turn; those without a plan are named on the way.

    Parameters
    ----------
    seeds, method : which problems, and by which method
    seconds : of the processor, for each
    """
    prepare(method)
    for seed in seeds:
        problem = random_problem(seed)
        limits = Limits(seconds, threads=1, clock=time.process_time)
        result = plan_run(partial(random_problem, seed), method, limits).run()
        if result.evaluation is None:
            print(f"seed {seed}: {result.status} {result.message}", flush=True)
            continue
        least, plan = size_bounds(problem), result.evaluation
        yield Row(
            seed,
            problem.machine.name,
            problem.objective.name,
            result.gap or 0.0,
            plan.energy.total / least.energy,
            plan.cycles / least.cycles,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for, and print each row when it is known."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="seed of the first problem")
    parser.add_argument("--seconds", type=float, default=2.0, help="of the processor, for each problem")
    parser.add_argument("--method", default="auto")
    asked = parser.parse_args(arguments)
    print(HEAD, flush=True)
    gaps: dict[str, list[float]] = {}
    for row in measure(range(asked.first, asked.first + asked.problems), asked.method, asked.seconds):
        print(row.text(), flush=True)
        gaps.setdefault(row.objective, []).append(row.gap)
        gaps.setdefault("all", []).append(row.gap)
    for name, values in gaps.items():
        print(f"{name}: median {100 * statistics.median(values):.1f} %, worst {100 * max(values):.1f} %")


if __name__ == "__main__":
    main()
