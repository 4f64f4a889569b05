"""A result document that grows layer by layer."""

from __future__ import annotations

from tilewright.report.records.mapping.build import totals_record, versions
from tilewright.report.records.mapping.document import LayerRecord, ResultDocument, SettingsRecord
from tilewright.report.records.mapping.engine import ArchRecord
from tilewright.report.records.mapping.phases import PhasesRecord
from tilewright.solvers.mapping.networks.network_problem import NetworkProblem


class GrowingDocument:
    """The document of a network whose layers are searched in any sequence; it lists them in their order.

    Parameters
    ----------
    model : the network's name, or the layer's text
    batch : samples
    network : what is asked
    settings : how the search was asked to run
    phases : of a model that runs more than once
    """

    def __init__(
        self,
        model: str,
        batch: int,
        network: NetworkProblem,
        settings: SettingsRecord,
        phases: PhasesRecord | None = None,
    ) -> None:
        self.network = network
        self._records: dict[int, LayerRecord] = {}
        self._model = model
        self._batch = batch
        self._settings = settings
        self._phases = phases
        self._arch = ArchRecord.of(network.engine)
        self._versions = versions()

    def add(self, index: int, layer: LayerRecord) -> None:
        """Take the record of the network's layer at that place, counted from 0."""
        self._records[index] = layer

    def document(self, *, ended: bool = True) -> ResultDocument:
        """The document so far; complete only where the run has ended with every layer present."""
        network = self.network
        layers = [self._records[index] for index in sorted(self._records)]
        missing = [layer.name for index, layer in enumerate(network.layers) if index not in self._records]
        return ResultDocument(
            **ResultDocument.head(),
            complete=ended and not missing,
            model=self._model,
            batch=self._batch,
            arch=self._arch,
            cost_model=network.cost_model,
            objective=str(network.objective),
            constraints=[*network.constraints],
            notes=[*network.notes],
            left_out=[*network.left_out],
            settings=self._settings,
            phases=self._phases,
            layers=layers,
            missing=missing,
            totals=totals_record(network.objective, network.engine, layers),
            versions=self._versions,
        )
