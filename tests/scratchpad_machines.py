"""Machines with a scratchpad for each tensor behind an array, drawn at random, and small layers for them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.workloads.mapping.operator import Role

LAYERS = (
    "gemm:M=4,N=3,K=5",
    "gemm:M=6,N=2,K=4",
    "conv:K=4,C=4,P=3,Q=1,R=1,S=1",
    "conv:K=2,C=2,P=3,Q=1,R=2,S=1",
    "matmul:B=2,M=3,N=2,K=4",
)
STRIDED = ("conv:K=2,C=2,P=4,Q=1,R=1,S=1,stride=2", "conv:K=2,C=1,P=5,Q=1,R=2,S=1,dilation=3")
ROLES = (Role.INPUT, Role.WEIGHT, Role.OUTPUT)


def scratchpads(draw: random.Random) -> Engine:
    """DRAM, perhaps a buffer that may be bypassed, an array, a scratchpad of each role, in any sequence."""
    return _drawn(draw, 0.6, [ROLES, ROLES[:2], ROLES[2:]])


def with_buffer(draw: random.Random) -> Engine:
    """The same with a buffer that every tensor may bypass."""
    return _drawn(draw, 1.0, [ROLES])


def _drawn(draw: random.Random, buffered: float, bypasses: Sequence[tuple[Role, ...]]) -> Engine:
    """A machine.

    Parameters
    ----------
    buffered : probability of a buffer
    bypasses : what may bypass it, of which one is drawn
    """

    def energy() -> Fraction:
        return Fraction(draw.randint(1, 40), 4)

    port = draw.choice([None, Fraction(4)])
    fan = Fanout((ArrayAxis("x", draw.choice([1, 2, 3])),), energy=Fraction(draw.randint(0, 2)))
    levels = [MemoryLevel("DRAM", None, 20 * energy(), 20 * energy(), shared_bandwidth=port)]
    if draw.random() < buffered:
        bypassed = frozenset(draw.choice(bypasses))
        levels.append(MemoryLevel("GLB", draw.choice([8, 16]), energy(), energy(), may_bypass=bypassed))
    levels[-1] = replace(levels[-1], fanout=fan)
    for role in draw.sample(ROLES, 3):
        size = draw.choice([1, 2, 4, 6])
        levels.append(MemoryLevel(role.value, size, energy() / 8, energy() / 8, keeps=frozenset({role})))
    leakage = {"PEs": Fraction(draw.randint(1, 8), 4)} if draw.random() < 0.5 else {}
    return Engine("drawn", "hierarchy", 16, Fraction(1), Fraction(500), tuple(levels), leakage=leakage)
