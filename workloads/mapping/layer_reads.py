"""Which operands of a layer are results of other layers of its file.

::

    - {name: qk, layer: "matmul:B=12,M=512,N=512,K=64"}
    - {name: av, layer: "matmul:B=12,M=512,N=64,K=512", reads: {A: qk}}
    - {name: tr, layer: "matmul:B=12,M=512,N=64,K=512", reads: {A: {layer: qk, axes: [0, 2, 1]}}}

Axes of the operand are those of the result, in its order, unless ``axes`` says for each axis of the operand
which of the result's it is.  ``offsets`` says how many elements of padding lie before the result's first one
along each axis; by default as many as the layer's own ``pad``.  ``rows`` names axes of the operand along
which a softmax is applied in place, which needs all elements at once; ``softmax: false`` beside them says
that it is another function, such as a normalisation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tilewright.foundation.errors import InputError, unknown_name
from tilewright.workloads.mapping.layer_fields import Conv, Depthwise, LayerFields, Pool
from tilewright.workloads.mapping.operator import Operator, Tensor


@dataclass(frozen=True, slots=True)
class Reading:
    """An operand of one layer that is the result of another.

    Parameters
    ----------
    reader, operand : the layer that reads, and as which of its tensors
    producer : the layer whose result it is
    axes : per axis of the operand, the axis of the result; in a file empty for the same order
    offsets : per axis of the operand, elements of padding before the result's first one
    rows : axes of the operand along which all elements are needed at once, for what is applied in place
    softmax : whether that is a softmax, where there are rows
    """

    reader: str
    operand: str
    producer: str
    axes: tuple[int, ...]
    offsets: tuple[int, ...]
    rows: tuple[int, ...] = ()
    softmax: bool = True

    def check(self, where: str, producer: Operator) -> None:
        """Raise ``InputError`` where the axes are not those of the result, each once."""
        number = len(producer.output.axes)
        if self.axes and sorted(self.axes) != list(range(number)):
            reason = f"expected each of 0 to {number - 1} once, got {[*self.axes]}"
            raise InputError(where, f"reads.{self.operand}.axes", reason)
        if len(self.offsets) != number:
            raise InputError(
                where,
                f"reads.{self.operand}",
                f"the operand has {len(self.offsets)} axes, the result of {self.producer} has {number}",
            )

    def check_sizes(self, where: str, producer: Operator, reader: Operator) -> None:
        """Raise ``InputError`` where the operand's sizes are not those of the result."""
        told = sizes_apart(self.ordered(producer), reader, producer.output)
        if told is not None:
            raise InputError(where, f"reads.{self.operand}", told)

    def ordered(self, producer: Operator) -> Reading:
        """The same with its axes written out."""
        return replace(self, axes=self.axes or tuple(range(len(producer.output.axes))))


def sizes_apart(read: Reading, reader: Operator, result: Tensor, *, whole: bool = False) -> str | None:
    """Why an operand cannot be a result by their sizes; ``None`` where it can.

    Behind the last window a stride may leave elements of the result unused.  Padding may follow the result as
    far as it comes before it, or as a window reaches.

    Parameters
    ----------
    read : with axes and offsets of every axis of the operand
    reader : the layer that reads
    result : that of the producer
    whole : whether all of the result has to be read, with any padding where a window or an offset has some
    """
    for axis, place, offset in zip(reader.tensor(read.operand).axes, read.axes, read.offsets, strict=True):
        size = result.axes[place].size
        unused = 0 if whole else max((term.stride for term in axis.terms), default=1) - 1
        told = f"axis {place} of the result of {read.producer} has {size} elements, the operand"
        if offset + size > axis.size + unused:
            return f"{told} only {axis.size - offset}"
        if whole and (offset or axis.is_compound):
            continue
        taps = [term for term in axis.terms if term.dim not in reader.output.dims]
        window = sum(term.stride * (reader.bounds[term.dim] - 1) for term in taps)
        padding = max(offset, window if axis.is_compound else 0)
        if offset + size + padding < axis.size:
            return f"{told} needs {axis.size - offset - padding}"
    return None


def padding_before(fields: LayerFields) -> tuple[int, int]:
    """Elements of padding before the first row and column of a layer's input."""
    if not isinstance(fields, Conv | Depthwise | Pool):
        return 0, 0
    pads = fields.pad
    return pads[0], pads[1] if len(pads) > 1 else pads[0]


def reads_of(where: str, asked: Any, layer: tuple[str, Operator], pads: tuple[int, int]) -> list[Reading]:
    """What the ``reads`` of an entry say.

    Parameters
    ----------
    where : what errors call the entry
    asked : plain data: per operand a layer's name, or ``{layer, axes, offsets, rows, softmax}``
    layer : name and operator of the entry
    pads : padding before the first row and column of its input
    """
    name, operator = layer
    if not isinstance(asked, dict):
        raise InputError(where, "reads", f"expected operands and layers, such as {{A: qk}}, got {asked!r}")
    operands = [tensor.name for tensor in operator.inputs]
    reads: list[Reading] = []
    for operand, source in asked.items():
        field = f"reads.{operand}"
        if operand not in operands:
            raise InputError(where, field, unknown_name(str(operand), operands))
        parts = source if isinstance(source, dict) else {"layer": source}
        for key in parts:
            if key not in (known := ("layer", "axes", "offsets", "rows", "softmax")):
                raise InputError(where, f"{field}.{key}", unknown_name(str(key), known))
        producer = parts.get("layer")
        if not isinstance(producer, str):
            raise InputError(where, field, f"expected the name of a layer, got {producer!r}")
        if producer == name:
            raise InputError(where, field, f"{name} reads itself")
        axes = operator.tensor(operand).axes
        windows = [0] * len(axes)
        if len(axes) >= 2 and any(pads):
            windows[-2:] = pads
        offsets = _numbers(where, f"{field}.offsets", parts.get("offsets", windows), len(axes))
        places = _numbers(where, f"{field}.axes", parts.get("axes", []), None)
        if places and len(places) != len(axes):
            raise InputError(where, f"{field}.axes", f"expected {len(axes)} numbers, got {[*places]}")
        rows = _numbers(where, f"{field}.rows", parts.get("rows", []), None)
        if any(row >= len(axes) for row in rows):
            raise InputError(
                where, f"{field}.rows", f"expected axes from 0 to {len(axes) - 1}, got {[*rows]}"
            )
        softmax = parts.get("softmax", True)
        if not isinstance(softmax, bool):
            raise InputError(where, f"{field}.softmax", f"expected true or false, got {softmax!r}")
        reads.append(Reading(name, operand, producer, places, offsets, tuple(sorted(set(rows))), softmax))
    return reads


def _numbers(where: str, field: str, values: Any, count: int | None) -> tuple[int, ...]:
    fine = isinstance(values, list) and all(
        isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2**31 for v in values
    )
    if not fine or (count is not None and len(values) != count):
        number = "" if count is None else f"{count} "
        raise InputError(where, field, f"expected a list of {number}whole numbers, got {values!r}")
    return tuple(values)
