"""A result document that grows layer by layer."""

from __future__ import annotations

from tilewright.report.records.mapping.build import totals_record, versions
from tilewright.report.records.mapping.document import SCHEMA, LayerRecord, ResultDocument, SettingsRecord
from tilewright.report.records.mapping.engine import ArchRecord
from tilewright.solvers.mapping.network_problem import NetworkProblem


class GrowingDocument:
    """The document of a network whose layers are searched one after the other.

    Parameters
    ----------
    model : the network's name, or the layer's text
    batch : samples
    network : what is asked
    settings : how the search was asked to run

    Attributes
    ----------
    layers : the records so far
    """

    def __init__(self, model: str, batch: int, network: NetworkProblem, settings: SettingsRecord) -> None:
        self.layers: list[LayerRecord] = []
        self.network = network
        self._model = model
        self._batch = batch
        self._settings = settings
        self._arch = ArchRecord.of(network.engine)
        self._versions = versions()

    def document(self, *, ended: bool = True) -> ResultDocument:
        """The document so far; complete only where the run has ended with every layer present."""
        network = self.network
        missing = [layer.name for layer in network.layers[len(self.layers) :]]
        return ResultDocument(
            schema=SCHEMA,
            command="map",
            complete=ended and not missing,
            model=self._model,
            batch=self._batch,
            arch=self._arch,
            cost_model=network.cost_model,
            objective=str(network.objective),
            constraints=[*network.constraints],
            notes=[*network.notes],
            settings=self._settings,
            layers=list(self.layers),
            missing=missing,
            totals=totals_record(network.objective, network.engine, self.layers),
            versions=self._versions,
        )
