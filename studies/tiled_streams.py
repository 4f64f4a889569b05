"""How close the bound of energies is: plans on few engines whose layers run channel by channel.

    python -m studies.tiled_streams mobilenet-v2 efficientnet-b0 --passes 2

A *stream* is a run of layers of which each reads the one before it channel by channel, as what expands,
normalises, scales, and moves windows over its channels do.  It is cut into tiles of channels, and each tile
passes all layers of the stream before the next one begins, so that wide results never lie in buffers as a
whole.  Every engine has a band of rows; a stream has as few bands as hold what lives beside it.  Then the
numbers of bands are changed one by one, as long as that saves energy.  Cycles do not count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tilewright.formulation.scheduling.tiled.coordinates import CHANNEL, shape_of
from tilewright.formulation.scheduling.tiled.dag import WEIGHTS
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.reading import axes_along, made_by
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.formulation.scheduling.tiled.tiling import Borders, Tiling
from tilewright.foundation.arrays import Int64s
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds, whole_layers
from tilewright.workloads.catalog import resolve_model

MOST_BANDS = 16
"""Bands of rows of a stream, at most."""

FILLED, ALIVE, ATOM, FULL = 1 / 3, 0.75, 0.5, 0.9
"""Parts of a buffer: for a tile of channels, for results that live beside a stream, for an atom of a pool,
and for one of weights with its inputs."""

NARROW, WIDE = 16, 64
"""Channels of a tile, at least and at most."""

STEPS = (-1, 1, -2, 2, 4, -4)
"""Changes of a number of bands that are tried."""

HEAD = "| network | system | bound | plan | gap | dram | network | buffer | cycles | s |\n" + (
    "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"
)


def even(size: int, count: int) -> Borders:
    """Borders of so many shares that are as equal as they can be."""
    return tuple(sorted({-(-size * at // count) for at in range(count + 1)}))


def near_ports(machine: TiledMachine) -> Int64s:
    """The engines of the first columns, downwards and upwards in turn."""
    columns = np.arange(machine.engines, dtype=np.int64).reshape(machine.height, machine.width).T.copy()
    columns[1::2] = columns[1::2, ::-1]
    return columns.ravel()[:MOST_BANDS]


@dataclass(frozen=True)
class Place:
    """Where the atoms of a layer run, and when.

    Parameters
    ----------
    stream, position : which stream, and which of its layers
    tiles : borders of the stream's tiles of channels
    groups : of tiles, each on an engine of its own in every band
    bands : of the stream
    """

    stream: int
    position: int
    tiles: Borders
    groups: int
    bands: int


class Streams:
    """The streams of a problem.

    Parameters
    ----------
    problem : a network on a machine
    """

    def __init__(self, problem: TiledProblem) -> None:
        self.problem = problem
        whole = whole_layers(problem)
        self._shapes = [shape_of(unit.layer.operator) for unit in problem.units]
        self._results = [int(size) for size in whole.block_bytes[: len(problem.units)]]
        read = [whole.reads_of(unit) for unit in range(len(problem.units))]
        stored = [whole.block_kind[blocks] == WEIGHTS for blocks in read]
        sizes = [whole.block_bytes[blocks] for blocks in read]
        self._weights = [int(size[mine].sum()) for size, mine in zip(sizes, stored, strict=True)]
        self._inputs = [int(size[~mine].sum()) for size, mine in zip(sizes, stored, strict=True)]
        self.streams: list[list[int]] = []
        for unit in range(len(problem.units)):
            if self._follows(unit):
                self.streams[-1].append(unit)
            else:
                self.streams.append([unit])

    def _follows(self, unit: int) -> bool:
        """Whether a layer reads the one before it channel by channel."""
        if unit == 0 or self._shapes[unit].sizes[0] != self._shapes[unit - 1].sizes[0]:
            return False
        for read in self.problem.units[unit].reads:
            if read.producer == unit - 1 and not read.late:
                origin = made_by(self.problem.units[unit - 1], read.link, ((), (), (), ()))
                along = axes_along(read.layer.operator, read.operand, origin)
                return along is not None and not along[1] and along[0][CHANNEL].depends == (CHANNEL,)
        return False

    def fewest(self) -> list[int]:
        """Per stream, bands whose buffers hold what lives beside it."""
        last = list(range(len(self._results)))
        for unit, layer in enumerate(self.problem.units):
            for read in layer.reads:
                if read.producer is not None:
                    last[read.producer] = unit
        room = ALIVE * self.problem.machine.engine.buffer_bytes
        bands = []
        for stream in self.streams:
            first, end = stream[0], stream[-1]
            living = [unit for unit in range(end + 1) if last[unit] > end or unit < first <= last[unit]]
            alive = sum(self._results[unit] for unit in living)
            if all(read.producer is None for read in self.problem.units[first].reads):
                alive += self._inputs[first]
            bands.append(max(1, min(MOST_BANDS, -(-alive // int(room)))))
        return self._fitting(bands)

    def _fitting(self, bands: list[int]) -> list[int]:
        """More bands for streams whose atoms fit no buffer, as far as there are more."""
        of = [at for at, stream in enumerate(self.streams) for _ in stream]
        while True:
            dag = self.problem.unchecked_dag(
                [tiling for at, count in enumerate(bands) for tiling, _ in self._cut(at, count)]
            )
            large = dag.needs > self.problem.machine.engine.buffer_bytes
            short = {of[unit] for unit in dag.unit[large].tolist() if bands[of[unit]] < MOST_BANDS}
            if not short:
                return bands
            bands = [count + (at in short) for at, count in enumerate(bands)]

    def plan(self, bands: Sequence[int]) -> AtomicPlan:
        """The plan of so many bands per stream.

        Raises
        ------
        InputError : where an atom fits no buffer
        """
        cut = [one for at, count in enumerate(bands) for one in self._cut(at, count)]
        dag = self.problem.dag([tiling for tiling, _ in cut])
        along = near_ports(self.problem.machine)
        engine, order = np.zeros(dag.tasks, dtype=np.int32), []
        for task in range(dag.tasks):
            tiling, place = cut[int(dag.unit[task])]
            _, (channel, _), (row, _), _, _ = dag.box(task)
            tile = int(np.searchsorted(place.tiles, channel, side="right")) - 1
            count = len(place.tiles) - 1
            group = tile * place.groups // count
            if len(tiling.rows) == 2 and place.position and place.bands > 1:
                at = tiling.channels.index(channel) % place.bands
            else:
                at = tiling.rows.index(row) * place.groups + group
            engine[task] = along[at % len(along)]
            turn = tile - -(-group * count // place.groups)
            order.append((place.stream, turn, place.position, channel - place.tiles[tile]))
        numbers = {key: step for step, key in enumerate(sorted(set(order)))}
        step = np.array([numbers[key] for key in order], dtype=np.int32)
        return AtomicPlan(dag, complete(dag, self.problem.machine, engine, step, ahead=1))

    def _cut(self, at: int, bands: int) -> list[tuple[Tiling, Place]]:
        """How the layers of a stream are cut, and where they run."""
        stream, room = self.streams[at], self.problem.machine.engine.buffer_bytes
        first, channels = stream[0], self._shapes[stream[0]].sizes[0]
        groups = 1
        if (
            len(stream) == 1
            and channels > 1
            and self._weights[first] > self._inputs[first] + self._results[first]
        ):
            # engines that share rows have channels of their own, so that weights need no copies
            beside = FULL * room - NARROW * self._weights[first] / channels
            rows = min(bands, -(-self._inputs[first] // max(1, int(beside))))
            bands, groups = rows, max(1, bands // rows)
        heights = [min(bands, self._shapes[unit].sizes[1]) for unit in stream]
        held = [
            (self._weights[unit] + min(len(stream), 2) * self._results[unit] / height) / channels
            for unit, height in zip(stream, heights, strict=True)
        ]
        # the array's columns are full where as many channels fit
        fits = int(FULL * room / max(*held, 1.0))
        wide = max(min(NARROW, fits), int(FILLED * room / max(*held, 1.0)) // NARROW * NARROW, 1)
        tiles = -(-channels // min(WIDE, wide, -(-channels // groups)))
        borders = even(channels, -(-tiles // groups) * groups)
        cut = []
        for position, (unit, height) in enumerate(zip(stream, heights, strict=True)):
            need = (self._inputs[unit] + self._results[unit]) / height / (len(borders) - 1)
            parts = -(-int(need) // int(ATOM * room)) if position and need > ATOM * room else 1
            inner = {low + share for low, high in pairwise(borders) for share in even(high - low, parts)}
            shape = self._shapes[unit]
            tiling = Tiling(
                (0, self.problem.batch),
                tuple(sorted(inner)),
                even(shape.sizes[1], height),
                (0, shape.sizes[2]),
                (0, shape.parts),
            )
            cut.append((tiling, Place(at, position, borders, groups, bands * groups)))
        return cut

    def energy(self, bands: Sequence[int]) -> float:
        """pJ of that plan; infinite where an atom fits no buffer."""
        try:
            answer = self.plan(bands)
        except InputError:
            return float("inf")
        return self.problem.evaluate(answer.dag, answer.plan).energy.total

    def climbed(self, passes: int) -> AtomicPlan:
        """The plan after every stream's number of bands has been changed so often where that saves energy."""
        best = self.fewest()
        least = self.energy(best)
        for _ in range(passes):
            before = least
            for at in range(len(best)):
                for step in STEPS:
                    bands = [*best]
                    bands[at] = max(1, min(MOST_BANDS, best[at] + step))
                    energy = self.energy(bands) if bands != best else least
                    if energy < least:
                        best, least = bands, energy
            if least == before:
                break
        return self.plan(best)


def row(name: str, system: str, passes: int) -> str:
    """The plan of one network, as a line of a table."""
    problem = TiledProblem(resolve_model(name, 1), load_tiled_machine(system), tiled_objective("energy"))
    begun = time.process_time()
    answer = Streams(problem).climbed(passes)
    took = time.process_time() - begun
    result, bound = problem.evaluate(answer.dag, answer.plan), size_bounds(problem).energy
    spent = result.energy
    parts = [bound, spent.total]
    values = [f"{pj / 1e6:.1f} µJ" for pj in parts]
    inside = [f"{pj / 1e6:.1f}" for pj in (spent.dram, spent.network, spent.buffer)]
    cells = (name, system, *values, f"{100 * (1 - bound / spent.total):.1f} %", *inside, f"{result.cycles:,}")
    return f"| {' | '.join(cells)} | {took:.1f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute what the command line asks for, and print each row when it is known."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--system", default="atomic-8x8[link=16]")
    parser.add_argument("--passes", type=int, default=2)
    asked = parser.parse_args(arguments)
    print(HEAD, flush=True)
    for name in asked.networks:
        print(row(name, asked.system, asked.passes), flush=True)


if __name__ == "__main__":
    main()
