"""Whether the head of a result document is that of its layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tilewright.formulation.mapping.cost.registry import MODELS
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.report.checks.mapping.phases import growth_faults, phase_faults
from tilewright.report.records.mapping.document import LayerRecord, ResultDocument
from tilewright.report.records.mapping.engine import ArchRecord
from tilewright.report.records.mapping.phases import PhasesRecord
from tilewright.solvers.mapping.methods import method
from tilewright.workloads.catalog import is_built_in, resolve_model
from tilewright.workloads.mapping.layer_text import is_layer_text
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.selection import SelectedLayer


def head_faults(document: ResultDocument) -> Iterator[str]:
    """What of the head contradicts the layers, the machine, or itself."""
    yield from arch_faults(document.arch)
    if document.cost_model not in MODELS:
        yield f"cost_model: {unknown_name(document.cost_model, MODELS.names())}"
    if document.batch < 1:
        yield f"batch: {document.batch}, expected at least 1"
    if "tilewright" not in document.versions:
        yield "versions: that of tilewright is missing"
    if document.objective != str(parse_objective(document.objective)):
        yield f"objective: {document.objective}, expected it as {parse_objective(document.objective)}"
    yield from _missing_faults(document)
    for index, layer in enumerate(document.layers):
        yield from (f"layers[{index}].{fault}" for fault in _layer_faults(document, layer))
    yield from _settings_faults(document)
    yield from _model_faults(document)


def arch_faults(arch: ArchRecord) -> Iterator[str]:
    """What of a machine's record contradicts itself, besides its hash."""
    if arch.name != arch.engine.name:
        yield f"arch.name: {arch.name}, the engine is {arch.engine.name}"
    if ArchRecord.of(arch.engine.build()).engine != arch.engine:
        yield "arch.engine: not as an engine is written down: a number unreduced, a list repeated or unsorted"


def _missing_faults(document: ResultDocument) -> Iterator[str]:
    """What is missing is not there, and a complete document misses nothing."""
    present = [name for layer in document.layers for name in layer.names]
    for name, times in Counter([*present, *document.missing]).items():
        if times > 1:
            yield f"{'missing' if name in document.missing else 'names'}: {name} stands there {times} times"
    if document.complete and document.missing:
        yield f"complete: true, but {len(document.missing)} layers are missing"


def _layer_faults(document: ResultDocument, layer: LayerRecord) -> Iterator[str]:
    if layer.name != layer.names[0]:
        yield f"name: {layer.name}, the first of its names is {layer.names[0]}"
    if layer.constraints != document.constraints:
        yield f"constraints: {layer.constraints}, the document's are {document.constraints}"
    settings = document.settings
    if settings.factors is not None and layer.factors != settings.factors:
        yield f"factors: {layer.factors}, settings.factors are {settings.factors}"
    space = layer.space
    if space is not None and space.storage != (settings.storage or "even"):
        yield f"space.storage: {space.storage}, settings.storage is {settings.storage or 'even'}"
    if space is not None and space.tiles and (space.asked_tiles == "every") != (settings.tiles == "every"):
        kinds = ", ".join(sorted(set(space.tiles.values())))
        yield f"space.tiles: {kinds}, settings.tiles is {settings.tiles}"
    if layer.seed != settings.seed:
        yield f"seed: {layer.seed}, settings.seed is {settings.seed}"
    for field, wanted, given in (
        ("then", settings.then is not None, layer.then is not None),
        ("front", settings.pareto, layer.front is not None),
        ("best", settings.best is not None, layer.best is not None),
        ("optima", settings.all_optimal is not None, layer.optima is not None),
    ):
        if given and not wanted:
            yield f"{field}: there, but settings do not ask for it"
        if wanted and not given and layer.mapping is not None:
            yield f"{field}: missing, settings ask for it"
    if layer.then is not None and settings.then not in (None, layer.then.objective):
        yield f"then.objective: {layer.then.objective}, settings.then is {settings.then}"
    if layer.best is not None and settings.best is not None and len(layer.best.mappings) > settings.best:
        yield f"best: {len(layer.best.mappings)} mappings, settings.best is {settings.best}"
    if layer.optima is not None and (settings.all_optimal or layer.optima.count) < layer.optima.count:
        yield f"optima: {layer.optima.count} mappings, settings.all_optimal is {settings.all_optimal}"


def _settings_faults(document: ResultDocument) -> Iterator[str]:
    settings = document.settings
    try:
        exact = method(settings.solver).exact
    except InputError as error:
        yield f"settings.solver: {error.message}"
        return
    if not 0 <= settings.gap <= 1:
        yield f"settings.gap: {settings.gap}, expected from 0 to 1"
    if settings.threads < 1:
        yield f"settings.threads: {settings.threads}, expected at least 1"
    if settings.time_limit_s is not None and settings.time_limit_s <= 0:
        yield f"settings.time_limit_s: {settings.time_limit_s}, expected more than 0"
    plain = not (settings.pareto or settings.best or settings.all_optimal or settings.then)
    for index, layer in enumerate(document.layers):
        if not exact and plain and layer.status in ("optimal", "infeasible"):
            yield f"layers[{index}].status: {layer.status} by {settings.solver}, which is a heuristic"


def _model_faults(document: ResultDocument) -> Iterator[str]:
    """Layers of a model that its name alone defines must be that model's.

    A file's name is no evidence, and may be that of a built-in network by chance; it is taken for the
    built-in one where at least half of the layers have the names of that one's layers.
    """
    if not document.model.strip():
        yield "model: empty"
        return
    if document.phases is not None:
        yield from _phase_faults(document, document.phases)
        return
    try:
        known = _known_layers(document)
    except InputError as error:
        yield f"model: {error}"
        return
    if known is None:
        return
    operators, batch = known
    names = [name for layer in document.layers for name in layer.names] + document.missing
    unknown = [name for name in names if name not in operators]
    if not is_layer_text(document.model) and 2 * len(unknown) > len(names):
        return
    if document.batch != batch:
        yield f"batch: {document.batch}, {document.model} has {batch}"
    if unknown:
        yield f"names: {document.model} has no layer {unknown[0]}"
    for index, layer in enumerate(document.layers):
        operator = layer.operator.build(f"layers[{index}]")
        for name in layer.names:
            if name in operators and operators[name] != operator:
                yield f"layers[{index}].operator: not that of {name} in {document.model}"


def _phase_faults(document: ResultDocument, phases: PhasesRecord) -> Iterator[str]:
    """The layers are those of the model's phases, and those that are left out cost less than others."""
    engine, asked = document.arch.build("arch"), document.settings.factors
    yield from growth_faults(phases, engine, document.cost_model, asked, document.constraints)
    layers = [
        SelectedLayer(
            layer.operator.build(f"layers[{index}]"), tuple(layer.names), layer.runs, layer.least_runs
        )
        for index, layer in enumerate(document.layers)
    ]
    yield from phase_faults(phases, document.model, layers, document.missing)


def _known_layers(document: ResultDocument) -> tuple[dict[str, Operator], int] | None:
    """Operators of all layers by name, and the batch; ``None`` where the model's name does not give them.

    Raises ``InputError`` for a text of a layer that is none.
    """
    text = document.model
    if not is_layer_text(text) and not is_built_in(text.removesuffix(":training")):
        return None
    network = resolve_model(text)
    if network.batch != document.batch:
        network = resolve_model(text, max(1, document.batch))
    return {layer.name: layer.operator for layer in network.layers}, network.batch
