"""Layers as users write them: ``conv:N=4,K=512,C=512,P=7,Q=7,R=3,S=3,stride=1,pad=1``, or a YAML file.

A text is ``kind:field=value,...``.  Kinds are ``conv``, ``depthwise``, ``tconv``, ``pool``, ``gemm``,
``matmul``, ``fc``, ``elementwise`` and ``nest``, whose text continues with a line of index notation.  Values
are integers, or several joined by ``x``: ``stride=2x1`` (rows, columns), ``pad=3x3`` (rows, columns) or
``pad=0x0x1x1`` (top, left, bottom, right).  ``name=...`` names the layer.

A YAML file holds one layer or a list of layers, each a text as above or a mapping with a ``kind``::

    - conv:N=1,K=64,C=3,H=224,W=224,R=7,S=7,stride=2,pad=3
    - {kind: gemm, name: classifier, M: 1, N: 1000, K: 2048}

An entry may say which of its operands are results of other entries (``reads``, see
`tilewright.workloads.mapping.layer_reads`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tilewright.foundation.errors import InputError, unknown_name
from tilewright.foundation.validation import from_validation
from tilewright.foundation.yaml_file import read_yaml
from tilewright.workloads.mapping.layer_fields import BATCHED, KINDS, LayerFields
from tilewright.workloads.mapping.layer_reads import Reading, padding_before, reads_of
from tilewright.workloads.mapping.operator import Operator

NamedOperator = tuple[str, Operator]


def is_layer_text(text: str) -> bool:
    """Whether a text begins with a layer kind and a colon."""
    return text.partition(":")[0].strip() in KINDS and ":" in text


def parse_layer(text: str, batch: int | None = None) -> NamedOperator:
    """The name and operator of one layer text.

    Parameters
    ----------
    text : the notation above
    batch : samples, for a kind with a batch loop ``N`` whose text does not give it

    Returns
    -------
    The layer's ``name``, or its kind where the text has none; and its operator

    Raises
    ------
    InputError : naming the text, the field and what was expected
    """
    name, operator, _ = _parsed(text, batch)
    return name, operator


def _parsed(text: str, batch: int | None) -> _PaddedOperator:
    kind, colon, rest = text.strip().partition(":")
    kind = kind.strip()
    if not colon:
        raise InputError(text, None, "expected kind:field=value,..., such as conv:K=64,C=3,P=8,Q=8,R=3,S=3")
    if kind not in KINDS:
        raise InputError(text, "kind", unknown_name(kind, KINDS))
    if kind == "nest":
        return _build(text, kind, {"text": rest.strip()}, batch)
    values: dict[str, Any] = {}
    for part in rest.split(",") if rest.strip() else []:
        field, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not field or not value:
            raise InputError(text, None, f"expected field=value, got {part.strip()!r}")
        if field in values:
            raise InputError(text, field, "given twice")
        values[field] = value if field == "name" else _number(text, field, value)
    return _build(text, kind, values, batch)


MOST_ALIKE = 10_000
"""Layers that one entry of a file stands for at most."""


def read_layers(path: Path, batch: int | None = None) -> tuple[NamedOperator, ...]:
    """The layers of a YAML file, in its order; repeated names get ``#2``, ``#3``, ...

    As `read_linked_layers`, without what they read of each other.

    Parameters
    ----------
    path : the file
    batch : as in `parse_layer`, for every layer
    """
    return read_linked_layers(path, batch)[0]


def read_linked_layers(
    path: Path, batch: int | None = None
) -> tuple[tuple[NamedOperator, ...], tuple[Reading, ...]]:
    """The layers of a YAML file, and which of their operands are results of others.

    An entry is a layer text, ``{name, layer: TEXT, count, reads}``, or the fields of a layer with its
    ``kind``, and ``count`` and ``reads`` beside them.

    Parameters
    ----------
    path : the file
    batch : as in `parse_layer`, for every layer

    Raises
    ------
    InputError : naming the file, the layer's position and field, and what was expected
    """
    content = read_yaml(path)
    if isinstance(content, list):
        return linked_layers(content, str(path), batch, f"{path}: layer {{}}")
    return linked_layers([content], str(path), batch, str(path))


def linked_layers(
    entries: list[Any], where: str, batch: int | None = None, place: str = "{}"
) -> tuple[tuple[NamedOperator, ...], tuple[Reading, ...]]:
    """The layers that the entries of a file describe, and what they read of each other.

    Parameters
    ----------
    entries : plain data
    where : what errors call the file
    batch : as in `parse_layer`, for every layer
    place : what errors call an entry, with a place for its number
    """
    if not entries:
        raise InputError(where, None, "expected at least one layer")
    layers: list[NamedOperator] = []
    reads: list[tuple[str, Reading]] = []
    names: set[str] = set()
    for i, entry in enumerate(entries):
        at = place.format(i + 1)
        entry, count = _counted(at, entry)
        entry, asked = (entry, {}) if not isinstance(entry, dict) else _without_reads(entry)
        name, operator, pads = _entry(at, entry, batch)
        layers += [(unique_name(name, names), operator) for _ in range(count)]
        if asked:
            if count > 1:
                raise InputError(at, "reads", f"for {count} layers at once, expected one entry for each")
            reads += [(at, read) for read in reads_of(at, asked, layers[-1], pads)]
    operators = dict(layers)
    for at, read in reads:
        if read.producer not in operators:
            raise InputError(at, f"reads.{read.operand}", unknown_name(read.producer, operators))
        read.check(at, operators[read.producer])
        read.check_sizes(at, operators[read.producer], operators[read.reader])
    return tuple(layers), tuple(read.ordered(operators[read.producer]) for _, read in reads)


def _without_reads(entry: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    return {field: value for field, value in entry.items() if field != "reads"}, entry.get("reads", {})


def unique_name(name: str, taken: set[str]) -> str:
    """``name``, or ``name#2``, ``name#3``, ... if it is taken; the answer is added to ``taken``."""
    candidate, number = name, 1
    while candidate in taken:
        number += 1
        candidate = f"{name}#{number}"
    taken.add(candidate)
    return candidate


def _counted(where: str, entry: Any) -> tuple[Any, int]:
    """An entry without its count."""
    if not isinstance(entry, dict) or "count" not in entry:
        return entry, 1
    count = entry["count"]
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_ALIKE:
        raise InputError(where, "count", f"expected a whole number from 1 to {MOST_ALIKE:,}, got {count!r}")
    return {field: value for field, value in entry.items() if field != "count"}, count


_PaddedOperator = tuple[str, Operator, tuple[int, int]]  # and padding before its first row and column


def _named(where: str, entry: dict[str, Any], batch: int | None) -> _PaddedOperator:
    """An entry ``{name, layer: TEXT}``."""
    for field in entry:
        if field not in ("name", "layer"):
            raise InputError(where, field, unknown_name(field, ("name", "layer", "count", "reads")))
    text, name = entry["layer"], entry.get("name")
    if not isinstance(text, str) or not is_layer_text(text):
        raise InputError(where, "layer", f"expected a layer such as gemm:M=512,N=768,K=768, got {text!r}")
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise InputError(where, "name", f"expected text, got {name!r}")
    own, operator, pads = _entry(where, text, batch)
    return name or own, operator, pads


def _entry(where: str, entry: Any, batch: int | None) -> _PaddedOperator:
    if isinstance(entry, str):
        try:
            return _parsed(entry, batch)
        except InputError as error:
            raise InputError(f"{where}: {error.where}", error.field, error.message) from None
    if not isinstance(entry, dict) or not all(isinstance(key, str) for key in entry):
        raise InputError(where, None, "expected a layer text or a mapping with a kind")
    if "layer" in entry:
        return _named(where, entry, batch)
    if "kind" not in entry:
        raise InputError(where, "kind", f"missing, expected one of: {', '.join(KINDS)}")
    kind = entry["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(where, "kind", unknown_name(str(kind), KINDS))
    return _build(where, kind, {field: value for field, value in entry.items() if field != "kind"}, batch)


def _build(where: str, kind: str, values: dict[str, Any], batch: int | None) -> _PaddedOperator:
    if batch is not None:
        if kind not in BATCHED:
            if batch > 1:
                raise InputError(where, "batch", f"a {kind} layer has no batch loop, write its sizes instead")
        elif values.setdefault("N", batch) != batch:
            raise InputError(where, "N", f"{values['N']} contradicts the batch {batch}")
    try:
        fields: LayerFields = KINDS[kind].model_validate(values)
        return fields.name or kind, fields.build(), padding_before(fields)
    except ValidationError as error:
        fault = from_validation(where, error, KINDS[kind].model_fields)
        field = fault.field.partition(".")[0] if fault.field else None
        raise InputError(where, field, fault.message) from None
    except InputError as error:
        raise InputError(where, error.field, error.message) from None


def _number(text: str, field: str, value: str) -> int | list[int]:
    if not re.fullmatch(r"-?[0-9]{1,18}(x[0-9]{1,18})*", value):
        raise InputError(text, field, f"expected an integer (or several, such as 2x1), got {value!r}")
    numbers = [int(part) for part in value.split("x")]
    return numbers[0] if len(numbers) == 1 else numbers
