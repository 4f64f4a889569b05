"""A conversion: whatever was given is read part by part, and written for one program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.foundation.disk import YAML_BYTES, read_text
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.foundation.yaml_document import YamlError, parse_yaml
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import list_presets, load_engine
from tilewright.report.exchange import registry
from tilewright.report.exchange.bundle import Bundle, Settings
from tilewright.report.exchange.losses import SCHEMA, Effect, Ledger, Loss
from tilewright.report.exchange.outputs import Output
from tilewright.report.exchange.source import Field, read_source
from tilewright.report.records.files import is_result, read_data
from tilewright.report.records.mapping.mapping_file import is_mapping
from tilewright.report.records.mapping.stored_mappings import mappings_in
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.mapping.layer_text import is_layer_text
from tilewright.workloads.mapping.operator import Operator

OWN = "tilewright"
_YAML = (".yaml", ".yml")
_COSTLY = ("sparse_optimizations",)
"""Keys at the top of a file that nobody reads and that change what mappings cost."""


@dataclass(frozen=True)
class Conversion:
    """What a conversion gives.

    Parameters
    ----------
    target : the program that it is for
    inputs : what was read
    outputs : files to write
    losses : what does not carry over, in the order of the inputs
    bundle : the same things in this project's terms
    """

    target: str
    inputs: tuple[str, ...]
    outputs: tuple[Output, ...]
    losses: tuple[Loss, ...]
    bundle: Bundle

    @property
    def grave(self) -> tuple[Loss, ...]:
        """Losses that change an answer."""
        return tuple(self.bundle.ledger.grave)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "schema": SCHEMA,
            "to": self.target,
            "inputs": list(self.inputs),
            "outputs": [{"kind": output.kind, "name": output.name} for output in self.outputs],
            "complete": not self.grave,
            "losses": [loss.to_dict() for loss in self.losses],
        }


def convert(
    inputs: Sequence[str],
    target: str,
    *,
    arch: str | Engine | None = None,
    layer: str | tuple[str, Operator] | None = None,
    settings: Settings | None = None,
) -> Conversion:
    """Convert files of one program for another one.

    Parameters
    ----------
    inputs : files of other programs; or machines, models, layers, mappings and results of this one
    target : the program to write for (`tilewright.report.exchange.registry.targets`)
    arch, layer : machine and layer of a mapping or of constraints that come without one
    settings : what the files do not state

    Raises
    ------
    InputError : naming file, line and field, for what cannot be read, and for what the target cannot say
    """
    known = registry.targets()
    if target not in known:
        raise InputError("--to", None, unknown_name(target, known))
    if not inputs and arch is None and layer is None:
        raise InputError("convert", None, "expected at least one file")
    bundle = Bundle("machine", settings or Settings(), Ledger())
    if arch is not None:
        bundle.engine = load_engine(arch) if isinstance(arch, str) else arch
        bundle.name = bundle.engine.name
    if inputs:
        bundle.name = Path(inputs[0]).stem
    if layer is not None:
        bundle.layers += _layers(layer) if isinstance(layer, str) else [layer]
        bundle.layers_given = True
    foreign = [(path, read_source(Path(path))) for path in inputs if _may_be_foreign(path)]
    own = [path for path in inputs if not any(path == other for other, top in foreign if _recognised(top))]
    _read_foreign([top for path, top in foreign if path not in own], bundle)
    for path in own:
        if target == OWN:
            raise InputError(path, None, "has no known content of another program")
        _read_own(path, bundle)
    outputs = [output for writer in registry.writers(target) for output in writer.write(bundle)]
    if not outputs:
        raise InputError(bundle.name, None, f"has nothing that can be written for {target}")
    return Conversion(target, tuple(inputs), tuple(outputs), tuple(bundle.ledger.losses), bundle)


def foreign_program(path: str) -> str | None:
    """The program whose file this is, by the keys at its top; ``None`` for other files and for templates."""
    if not _may_be_foreign(path):
        return None
    try:
        data = parse_yaml(read_text(Path(path), YAML_BYTES, "a YAML file"), tags=True).data
    except (InputError, YamlError):
        return None
    return next((reader.PEER for reader in registry.readers() if reader.recognises(data)), None)


def _may_be_foreign(text: str) -> bool:
    """Whether this is a YAML file; what else there is can only be this project's."""
    return not is_layer_text(text) and Path(text).suffix.lower() in _YAML


def _recognised(top: Field) -> bool:
    return any(reader.recognises(top.value) for reader in registry.readers())


def _read_foreign(tops: Sequence[Field], bundle: Bundle) -> None:
    """Read every part of every file, in the order in which one needs what another has provided."""
    for top in tops:
        for key, line in top.document.repeated() if top.document is not None else ():
            message = "appears more than once: the last one counts, which differs between programs"
            bundle.ledger.add(Loss(top.where, line, key, Effect.COST, message))
        read = [reader.TOPS for reader in registry.readers() if reader.recognises(top.value)]
        for key, extra in top.fields().items() if isinstance(top.value, dict) else ():
            if not any(key in tops for tops in read):
                effect = Effect.COST if key in _COSTLY else Effect.NONE
                extra.lose(bundle.ledger, effect, "is not read")
    names = _variables(tops)
    named = [replace(top, names=names) for top in tops]
    for reader in registry.readers():
        for top in named:
            if reader.recognises(top.value):
                reader.read(top, bundle)
    if bundle.targets:
        if bundle.engine is None:
            raise bundle.targets[0].error("expected an architecture with it, or --arch, to know the levels")
        from tilewright.report.exchange.mapping.timeloop_read_constraints import demand_all

        targets, bundle.targets = bundle.targets, []
        demand_all(bundle, bundle.engine, targets)


def _variables(tops: Sequence[Field]) -> dict[str, Any]:
    """Variables of all files, that arithmetic in any of them may speak of."""
    return {
        str(name): value
        for top in tops
        if isinstance(top.value, dict)
        for key, section in top.value.items()
        if str(key).startswith("variables") or str(key).endswith("variables")
        if isinstance(section, dict)
        for name, value in section.items()
    }


def _layers(text: str) -> list[tuple[str, Operator]]:
    network = resolve_model(text)
    network.expect_machine_widths("files of other programs")
    return [(layer.name, layer.operator) for layer in network.mac_layers]


def _read_own(text: str, bundle: Bundle) -> None:
    """A machine, a mapping, a result document, or layers of this project."""
    path = Path(text)
    if text in list_presets():
        bundle.name, bundle.engine = text, load_engine(text)
        return
    if not is_layer_text(text) and path.suffix.lower() in (*_YAML, ".json", ".jsonl"):
        data = read_data(path)
        if is_mapping(data) or is_result(data):
            _read_mappings(data, path, bundle)
            return
        if isinstance(data, dict) and {"levels", "compute"} & set(data):
            bundle.engine = load_engine(path)
            return
    network = resolve_model(text)
    network.expect_machine_widths("files of other programs")
    others = len(network.layers) - len(network.mac_layers)
    if others:
        message = f"{others} layers without multiply-accumulates are left out"
        bundle.ledger.reported(text, Effect.NONE, message, "layers")
    bundle.layers += [(layer.name, layer.operator) for layer in network.mac_layers]


def _read_mappings(data: Any, path: Path, bundle: Bundle) -> None:
    for stored in mappings_in(data, path):
        operator = stored.operator or bundle.operator
        engine = stored.engine or bundle.engine
        if operator is None or engine is None:
            missing = "layer" if operator is None else "arch"
            raise InputError(str(path), missing, f"missing, expected one in the file or as --{missing}")
        stored.mapping.validate(operator, engine, str(path))
        bundle.engine = engine
        if (stored.name, operator) not in bundle.layers:
            bundle.layers.append((stored.name, operator))
        bundle.mappings.append(replace(stored, operator=operator, engine=engine))
