"""Workloads: networks to be scheduled together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from tilewright.api.display import Displayed
from tilewright.foundation.errors import InputError
from tilewright.workloads.network import Network as LayerGraph
from tilewright.workloads.scheduling.workload import Part
from tilewright.workloads.scheduling.workload import Workload as Networks
from tilewright.workloads.scheduling.workload_file import list_workloads as workload_names
from tilewright.workloads.scheduling.workload_file import resolve_workload

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tilewright.api.scheduling.herald_question import WorkloadOnSystem
    from tilewright.api.scheduling.system import System
    from tilewright.api.scheduling.tiled_machine import TiledMachine
    from tilewright.api.scheduling.tiled_question import NetworkOnTiles


class Workload(Displayed):
    """Several networks, each to be run a number of times.  Made by `workload`.

    Parameters
    ----------
    networks : with their numbers of runs
    """

    def __init__(self, networks: Networks) -> None:
        self.networks = networks

    @property
    def name(self) -> str:
        """As tables show it."""
        return self.networks.name

    @overload
    def on(
        self, system: System | str | Path, objective: str = "makespan", *, metric: str | None = None
    ) -> WorkloadOnSystem: ...

    @overload
    def on(
        self, system: TiledMachine, objective: str = "makespan", *, batch: int | None = None
    ) -> NetworkOnTiles: ...

    def on(
        self,
        system: System | TiledMachine | str | Path,
        objective: str = "makespan",
        *,
        metric: str | None = None,
        batch: int | None = None,
    ) -> WorkloadOnSystem | NetworkOnTiles:
        """The question for the best schedule on a system, which `solve` answers with a `Plan`; on a tiled
        machine for the best plan, a `TiledPlan`.

        Parameters
        ----------
        system : or a preset's name, or a system file; or a tiled machine
        objective, metric : as for `WorkloadOnSystem`
        batch : samples on a tiled machine, by default the number of runs

        Raises
        ------
        InputError : for an unknown name, or an argument that the system does not take
        """
        from tilewright.api.scheduling.herald_question import WorkloadOnSystem
        from tilewright.api.scheduling.tiled_machine import TiledMachine
        from tilewright.api.scheduling.tiled_question import NetworkOnTiles

        if isinstance(system, TiledMachine):
            if metric is not None:
                raise InputError("metric", None, "is not for tiled machines")
            return NetworkOnTiles(self, system, objective, batch=batch)
        if batch is not None:
            raise InputError("batch", None, "is for tiled machines; a workload states its own")
        return WorkloadOnSystem(self, system, objective, metric=metric)

    def to_dict(self) -> dict[str, Any]:
        """The networks and their totals as plain data."""
        from tilewright.report.records.scheduling.workload import workload_data

        return workload_data(self.networks)

    def rows(self) -> list[dict[str, Any]]:
        """One row per network."""
        rows: list[dict[str, Any]] = self.to_dict()["networks"]
        return rows

    def views(self) -> Sequence[RenderableType]:
        """A table of the networks."""
        from tilewright.report.text.scheduling.workload import workload_views

        return workload_views(self.networks)

    def __repr__(self) -> str:
        count = len(self.networks.parts)
        return f"Workload({self.name!r}, {count} networks, {self.networks.layer_count()} layers)"


def workload(text: str | Path) -> Workload:
    """A workload by its name or from a YAML file; a model or layer is one of its own.

    A file says of its ONNX models what `network` takes as arguments.

    Raises
    ------
    InputError : for an unknown name with the nearest one, or any fault of the file
    """
    return Workload(resolve_workload(str(text)))


def list_workloads() -> list[str]:
    """Names of the workloads that come with the package."""
    return [*workload_names()]


def only_network(graph: LayerGraph) -> Workload:
    """A network as a workload of its own."""
    return Workload(Networks(graph.name, (Part(graph.name, graph),)))
