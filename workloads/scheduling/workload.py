"""Workloads of several networks that run at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.foundation.errors import InputError
from tilewright.workloads.network import Network


@dataclass(frozen=True, slots=True)
class Part:
    """One network of a workload.

    Parameters
    ----------
    name : unique in the workload
    network : what runs, with its own number of samples per run
    batches : how many times it runs; the runs do not depend on each other
    """

    name: str
    network: Network
    batches: int = 1


@dataclass(frozen=True, slots=True)
class Workload:
    """Several networks, each to be run a number of times, all independent of each other.

    Parameters
    ----------
    name, description : for tables and results
    parts : the networks, in order

    Raises
    ------
    InputError : for no parts, a name used twice, or a number of batches below 1
    """

    name: str
    parts: tuple[Part, ...]
    description: str = ""

    def __post_init__(self) -> None:
        if not self.parts:
            raise InputError(self.name, "networks", "expected at least one")
        seen: set[str] = set()
        for part in self.parts:
            if part.name in seen:
                raise InputError(self.name, part.name, "two networks have this name")
            seen.add(part.name)
            if part.batches < 1:
                raise InputError(
                    self.name, f"{part.name}.batches", f"expected at least 1, got {part.batches}"
                )

    def instances(self) -> Iterator[tuple[str, Network]]:
        """Every run on its own: ``resnet50/1``, ``resnet50/2``, ... and its network."""
        for part in self.parts:
            for i in range(part.batches):
                yield (part.name if part.batches == 1 else f"{part.name}/{i + 1}"), part.network

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all runs."""
        return sum(part.batches * part.network.macs for part in self.parts)

    @property
    def parameters(self) -> int:
        """Parameters of all networks; the runs of one network share them."""
        return sum(part.network.parameters for part in self.parts)

    def layer_count(self, *, mac_only: bool = True) -> int:
        """Layers of all runs, as Herald's table VII counts them."""
        return sum(
            part.batches * len(part.network.mac_layers if mac_only else part.network) for part in self.parts
        )
