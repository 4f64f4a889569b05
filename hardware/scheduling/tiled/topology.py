"""Links of a tiled machine, and the route from every place to every other.

Places are the engines, then the DRAM ports.  Directed links are numbered: into the network from each engine,
out of it to each engine, from DRAM and to DRAM at each port, then those between routers.  A route from a
fixed source to several places is a tree, since routing depends on nothing but position; a multicast loads
each of its links once.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilewright.foundation.arrays import Floats, Int32s, Int64s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine


@dataclass(frozen=True, eq=False)
class Topology:
    """Routes as arrays.

    Parameters
    ----------
    engines, ports : numbers of either
    starts, links : the route from place ``a`` to place ``b`` is ``links[starts[i] : starts[i + 1]]`` with
        ``i = a * (engines + ports) + b``; empty from a place to itself
    hops : links between routers on that route, by the same index
    rates : bytes per cycle of every link
    names : of every link, for messages
    routers : index of the first link between routers
    """

    engines: int
    ports: int
    starts: Int64s
    links: Int32s
    hops: Int32s
    rates: Floats
    names: tuple[str, ...]
    routers: int

    @property
    def places(self) -> int:
        return self.engines + self.ports

    def route(self, source: int, target: int) -> Int32s:
        """Links from one place to another, in order."""
        index = source * self.places + target
        return self.links[self.starts[index] : self.starts[index + 1]]

    def distance(self, source: int, target: int) -> int:
        """Links between routers from one place to another."""
        return int(self.hops[source * self.places + target])

    def place_name(self, place: int) -> str:
        """``engine 5`` or ``DRAM port 0``."""
        return f"engine {place}" if place < self.engines else f"DRAM port {place - self.engines}"


@lru_cache(maxsize=32)
def topology(machine: TiledMachine) -> Topology:
    """The routes of a machine."""
    router = _TreeRouter(machine) if machine.topology == "htree" else _GridRouter(machine)
    engines, ports = machine.engines, len(machine.dram_ports)
    at = [*range(engines), *(y * machine.width + x for x, y in machine.dram_ports)]
    names = [f"out of engine {e}" for e in range(engines)] + [f"into engine {e}" for e in range(engines)]
    names += [f"from DRAM port {p}" for p in range(ports)] + [f"to DRAM port {p}" for p in range(ports)]
    rates = [machine.port_rate] * (2 * engines) + [machine.dram_port_rate] * (2 * ports)
    routers = len(names)
    between: dict[tuple[int, int], int] = {}
    routes: list[list[int]] = []
    hops: list[int] = []
    for source in range(engines + ports):
        enter = source if source < engines else 2 * engines + source - engines
        for target in range(engines + ports):
            leave = engines + target if target < engines else 2 * engines + ports + target - engines
            if source == target or (source >= engines and target >= engines):
                routes.append([])
                hops.append(0)
                continue
            nodes = router.path(at[source], at[target])
            steps = list(itertools.pairwise(nodes))
            for step in steps:
                if step not in between:
                    between[step] = len(names)
                    names.append(f"link {router.name(step[0])}->{router.name(step[1])}")
                    rates.append(machine.link_rate)
            routes.append([enter, *(between[step] for step in steps), leave])
            hops.append(len(steps))
    starts = np.concatenate([[0], np.cumsum([len(route) for route in routes])]).astype(np.int64)
    return Topology(
        engines=engines,
        ports=ports,
        starts=starts,
        links=np.array([link for route in routes for link in route], dtype=np.int32),
        hops=np.array(hops, dtype=np.int32),
        rates=np.array(rates, dtype=np.float64),
        names=tuple(names),
        routers=routers,
    )


class _GridRouter:
    """XY routing: along the row first; on a torus the shorter way round, forwards where both are equal."""

    def __init__(self, machine: TiledMachine) -> None:
        self.width, self.height = machine.width, machine.height
        self.wraps = machine.topology == "torus"

    def name(self, node: int) -> str:
        return f"({node % self.width},{node // self.width})"

    def path(self, source: int, target: int) -> list[int]:
        x, y = source % self.width, source // self.width
        nodes = [source]
        for step in self._moves(x, target % self.width, self.width):
            x = (x + step) % self.width
            nodes.append(y * self.width + x)
        for step in self._moves(y, target // self.width, self.height):
            y = (y + step) % self.height
            nodes.append(y * self.width + x)
        return nodes

    def _moves(self, here: int, there: int, size: int) -> list[int]:
        ahead = there - here
        if self.wraps:
            ahead %= size
            if 2 * ahead > size:
                ahead -= size
        return [1 if ahead > 0 else -1] * abs(ahead)


class _TreeRouter:
    """A binary tree over the grid that halves the longer side at each level; engines are its leaves."""

    def __init__(self, machine: TiledMachine) -> None:
        self.width = machine.width
        self.above: dict[int, int] = {}
        self.depth: dict[int, int] = {}
        self.count = machine.engines
        root = self._grow(0, 0, machine.width, machine.height, 0)
        self.above[root] = root

    def _grow(self, x: int, y: int, width: int, height: int, depth: int) -> int:
        if width * height == 1:
            node = y * self.width + x
        else:
            node, self.count = self.count, self.count + 1
            if width >= height:
                parts = ((x, y, width // 2, height), (x + width // 2, y, width - width // 2, height))
            else:
                parts = ((x, y, width, height // 2), (x, y + height // 2, width, height - height // 2))
            for part in parts:
                self.above[self._grow(*part, depth + 1)] = node
        self.depth[node] = depth
        return node

    def name(self, node: int) -> str:
        return f"node {node}"

    def path(self, source: int, target: int) -> list[int]:
        up, down = [source], [target]
        while up[-1] != down[-1]:
            if self.depth[up[-1]] >= self.depth[down[-1]]:
                up.append(self.above[up[-1]])
            else:
                down.append(self.above[down[-1]])
        return up + down[-2::-1]
