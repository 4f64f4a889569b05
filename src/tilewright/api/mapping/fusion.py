"""Fused mappings of a network on one machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from tilewright.api.arguments import SearchRequest, named_arguments
from tilewright.api.display import Displayed
from tilewright.api.mapping.machine import Machine, machine_of
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.disk import write_file
from tilewright.foundation.errors import InputError, located_in
from tilewright.heuristics.mapping.fused.registry import FUSION_HEURISTICS
from tilewright.report.records.files import json_text, read_data
from tilewright.report.records.mapping.fused_build import fused_document
from tilewright.report.records.mapping.fused_document import FusedDocument, FusedSettings
from tilewright.report.records.mapping.stored_fused_mappings import fused_mappings_in
from tilewright.report.text.mapping.fused_network import fused_document_views
from tilewright.solvers.mapping.fused.answers import FusedStart
from tilewright.solvers.mapping.fused.answers import GroupAnswer as GroupAnswer
from tilewright.solvers.mapping.fused.network import search_network_fusion
from tilewright.solvers.mapping.fused.problem import FusionProblem
from tilewright.solvers.mapping.networks.network_problem import Factors as Factors
from tilewright.solvers.mapping.networks.network_problem import Storage
from tilewright.solvers.mapping.solve import AUTO
from tilewright.workloads.network import Network as LayerGraph
from tilewright.workloads.passing import without_passed
from tilewright.workloads.selection import select_layers

if TYPE_CHECKING:
    from rich.console import RenderableType

MOST_LAYERS = 4


class FusedResult(Displayed):
    """Which layers of a network are fused, and the proof.

    Parameters
    ----------
    record : the document's content
    where : what errors call it
    notes : why mappings to begin with were of no use, a line each
    """

    def __init__(self, record: FusedDocument, where: str = "document", notes: Sequence[str] = ()) -> None:
        self.record = record
        self.where = where
        self.notes = tuple(notes)

    @property
    def value(self) -> float | None:
        """The objective of the whole network, energy in pJ; ``None`` where a layer has no mapping."""
        return self.record.totals.value

    @property
    def bound(self) -> float:
        """No cover of the searched space takes less."""
        return self.record.totals.bound

    @property
    def optimal(self) -> bool:
        """Whether value and bound are one."""
        return self.record.totals.value_exact == self.record.totals.bound_exact

    @property
    def infeasible(self) -> bool:
        """Whether it is proven that the network has no mapping, fused or not."""
        return self.record.totals.infeasible

    def rows(self) -> list[dict[str, Any]]:
        """One row per group."""
        return [
            {
                "layers": [layer.name for layer in group.layers],
                "status": group.status,
                "value": group.value,
                "bound": group.bound,
                "unfused": group.unfused.value,
            }
            for group in self.record.groups
        ]

    def to_dict(self) -> dict[str, Any]:
        """The document as plain data."""
        return self.record.to_data()

    def to_text(self) -> str:
        """The document as JSON."""
        return json_text(self.record.to_data())

    def save(self, path: str | Path) -> None:
        """Write the document as JSON."""
        write_file(Path(path), self.to_text())

    def save_report(self, path: str | Path, command: str = "") -> None:
        """Write the document as a page.

        Parameters
        ----------
        path : ends in ``.html``
        command : the command line that made it, if one did
        """
        from tilewright.report.html.mapping.fused import write_fused_report

        write_fused_report(Path(path), self.record, command)

    def views(self) -> Sequence[RenderableType]:
        """Groups, reasons and trees."""
        return fused_document_views(self.record)

    def __repr__(self) -> str:
        return f"FusedResult({self.record.model!r}, {len(self.record.groups)} groups, {self.value} pJ)"


class FuseDemands(TypedDict, total=False):
    """The keyword arguments of `NetworkFused`, which explains them."""

    layers: Sequence[str]
    all_operators: bool
    cost_model: str | None
    factors: Factors | None
    storage: Storage | None
    home: str | None
    max_group: int
    online_softmax: bool


FusedBeginning = FusedResult | str | Path


def fused_starts(given: FusedBeginning | Sequence[FusedBeginning]) -> list[FusedStart]:
    """Fused mappings to begin with: of results, and of files of fused mappings or documents.

    Raises
    ------
    InputError : naming a file that has none, and the field that is wrong
    """
    starts: list[FusedStart] = []
    for beginning in [given] if isinstance(given, FusedBeginning) else given:
        path = Path(beginning.where if isinstance(beginning, FusedResult) else beginning)
        with located_in(str(path)):
            data = beginning.to_dict() if isinstance(beginning, FusedResult) else read_data(path)
            stored = fused_mappings_in(data, path)
        starts += [FusedStart(str(path), own.group, own.tree) for own in stored]
    return starts


class NetworkFused:
    """The question which layers of a network are fused on a machine; `solve` gives a `FusedResult`.

    Parameters
    ----------
    network : the layers with their links
    machine : a `Machine`, or a name or file of one
    objective : of the energy and cycles of all layers together, as `parse_objective` takes it
    layers : glob patterns of layer names; by default all layers
    all_operators : pooling and element-wise layers too
    cost_model : by default the machine's own; fused mappings are counted by ``hierarchy`` alone
    factors, storage : the space of the layers' own mappings
    home : the only level that may be a home
    max_group : layers of a group at most, 2 to 4
    online_softmax : whether shared loops may cut rows of a softmax between two layers; its running maxima and
        sums, and what is scaled anew with every part of a row, are counted

    Raises
    ------
    InputError : for an objective, a cost model, a home, a size of group or a layer that cannot be
    """

    def __init__(
        self,
        network: LayerGraph,
        machine: Machine | str | Path,
        objective: str = "energy",
        *,
        layers: Sequence[str] = (),
        all_operators: bool = False,
        cost_model: str | None = None,
        factors: Factors | None = None,
        storage: Storage | None = None,
        home: str | None = None,
        max_group: int = MOST_LAYERS,
        online_softmax: bool = False,
    ) -> None:
        self.machine = machine_of(machine)
        engine = self.machine.engine
        with named_arguments():
            if not 2 <= max_group <= MOST_LAYERS:
                raise InputError("--max-group", None, f"expected 2 to {MOST_LAYERS} layers, got {max_group}")
            chosen = {name for layer in select_layers(network, layers, all_operators) for name in layer.names}
            names = tuple(layer.name for layer in network.layers if layer.name in chosen)
            self.problem = FusionProblem(
                without_passed(network, names),
                engine,
                names,
                cost_model or engine.cost_model,
                max_group,
                factors,
                storage,
                home,
                parse_objective(objective),
                online_softmax,
            )
            self.problem.check()

    def answer(
        self, request: SearchRequest, told: Callable[[GroupAnswer], None] = lambda answer: None
    ) -> FusedResult:
        """What `solve` calls.

        Parameters
        ----------
        request : may have a heuristic as its method, and no deterministic searches or observers
        told : hears of every layer and every group when its search is over
        """
        refused = {"deterministic": request.deterministic, "observer": bool(request.listeners)}
        for name, is_given in refused.items():
            if is_given:
                raise InputError(name, None, "cannot be used with fuse=True")
        with named_arguments():
            asked = None if request.method in (None, AUTO) else FUSION_HEURISTICS.ready(request.method)
        starts = fused_starts(request.warm_starts)
        limits = request.limits()
        started = time.monotonic()
        answer = search_network_fusion(self.problem, limits, told, asked, starts)
        settings = FusedSettings(
            time_limit_s=limits.seconds,
            gap=limits.gap,
            threads=limits.threads,
            seed=limits.seed,
            solver=request.method or AUTO,
        )
        record = fused_document(
            self.problem, answer, settings, stopped=limits.stop.is_set(), seconds=time.monotonic() - started
        )
        return FusedResult(record, notes=answer.refused)

    def __repr__(self) -> str:
        return f"NetworkFused({self.problem.network.name!r} on {self.machine.name!r})"
