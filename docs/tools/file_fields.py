"""Tables of the fields of YAML files, from the models that read them and ``files.yaml``.

A model knows a field's name, whether it must be there, what stands in its place, and often what it means;
``files.yaml`` adds how a value is written, an example that the model takes, and a meaning where none is.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from tilewright.foundation.units import exact
from tilewright.hardware.mapping import schema
from tilewright.hardware.scheduling.herald import system_file
from tilewright.hardware.scheduling.tiled import machine_file
from tilewright.report.records.mapping import mapping_file
from tilewright.report.records.scheduling.tiled import set_tree
from tilewright.workloads.mapping import layer_fields
from tilewright.workloads.scheduling import workload_file

MODULES = (schema, system_file, machine_file, workload_file, mapping_file, set_tree, layer_fields)
LAYERS = [model.__name__ for model in layer_fields.KINDS.values()]
NOTES: dict[str, dict[str, list[Any]]] = yaml.safe_load(
    (Path(__file__).parent / "files.yaml").read_text(encoding="utf-8")
)


def models() -> dict[str, type[BaseModel]]:
    """Every model that a table is made of, by its class's name."""
    return {name: found for name in NOTES for found in [_model(name)]}


def _model(name: str) -> type[BaseModel]:
    for module in MODULES:
        found = getattr(module, name, None)
        if isinstance(found, type) and issubclass(found, BaseModel):
            return found
    raise LookupError(f"files.yaml: no model is called {name}")


def notes(model: str, field: str) -> list[Any]:
    """How a field is written, an example, and perhaps its meaning; layers share what convolutions have."""
    if field in NOTES[model]:
        return NOTES[model][field]
    if model in LAYERS and field in NOTES["Conv"]:
        return NOTES["Conv"][field]
    raise LookupError(f"files.yaml: {model}.{field} has no entry")


def default(info: FieldInfo) -> str:
    """What stands in a field's place: ``required``, a value, or nothing at all."""
    if info.is_required():
        return "required"
    value = info.get_default(call_default_factory=True)
    if value is None or value == "" or isinstance(value, BaseModel):
        return "–"
    if isinstance(value, Fraction):
        value = exact(value)
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def table(name: str) -> Iterator[str]:
    """The lines of one table."""
    yield "| field | value | default | example | meaning |"
    yield "|---|---|---|---|---|"
    for field, info in _model(name).model_fields.items():
        form, example, *about = notes(name, field)
        meaning = about[0] if about else info.description
        if meaning is None:
            raise LookupError(f"files.yaml: {name}.{field} has no meaning")
        cells = (f"`{field}`", form, default(info), f"`{_written(example)}`", meaning)
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _written(example: Any) -> str:
    return str(example).lower() if isinstance(example, bool) else str(example)


def check_examples() -> list[str]:
    """Fields whose example their model does not take, and entries of which no model has the field."""
    wrong = []
    for name, model in models().items():
        for field in NOTES[name]:
            info = model.model_fields.get(field)
            if info is None:
                wrong.append(f"{name} has no field {field}")
                continue
            written = notes(name, field)[1]
            value = yaml.safe_load(written) if isinstance(written, str) and written[:1] in "{[" else written
            try:
                TypeAdapter(Annotated[info.annotation, info]).validate_python(_exact(value))  # type: ignore[valid-type]
            except ValueError as error:
                wrong.append(f"{name}.{field}: {written!r}: {str(error).splitlines()[-1].strip()}")
    return wrong


def _exact(value: Any) -> Any:
    """Numbers with a point as the files' reader gives them."""
    from decimal import Decimal

    if isinstance(value, float):
        return Decimal(str(value))
    if isinstance(value, dict):
        return {key: _exact(one) for key, one in value.items()}
    return [_exact(one) for one in value] if isinstance(value, list) else value
