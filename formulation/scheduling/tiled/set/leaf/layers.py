"""Layers as SET sees them: a box of results, a window over inputs, and who makes these.

Results are channels x rows x columns (``K``, ``H``, ``W``); a tile's share of them is a box, and what it
reads of any producer is a box again (section 3.3.1 and 4.2.2; the released program's ``ofm_to_ifm``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate

from tilewright.foundation.errors import InputError

CONVOLUTION, GROUPED, SAMPLING, SWAPPED, SUMMED = 0, 1, 2, 3, 4
"""How a box of results becomes a box of inputs: all channels; those of its groups; the same; rows for
channels; a weight update: the channels of its rows, at all positions.
"""

SUM_BYTES = 4
"""Bytes of a sum that is carried from sample to sample."""

MOST_DOWN_SETS = 20_000
"""Beyond that only a network's own order is used."""


@dataclass(frozen=True, slots=True)
class Producer:
    """One layer whose results another reads.

    Parameters
    ----------
    layer : its number
    offset : where its channels begin in the operand
    channels : how many these are
    weights : whether they stand for weights (attention) rather than for inputs
    late : whether each result meets its own counterpart (an element-wise layer fused into this one)
    scattered : whether reshaping lies between, so that every tile reads its share of every part
    """

    layer: int
    offset: int
    channels: int
    weights: bool = False
    scattered: bool = False
    late: bool = False

    @property
    def role(self) -> int:
        """``0`` for inputs, ``1`` for weights, ``2`` for counterparts of results."""
        return 1 if self.weights else 2 if self.late else 0


@dataclass(frozen=True, slots=True)
class SetLayer:
    """One layer.

    Parameters
    ----------
    name : unique in its network
    window : ``CONVOLUTION``, ``GROUPED``, ``SAMPLING`` or ``SWAPPED``
    is_mac : whether the MAC array does it rather than the vector units
    channels, rows, columns : of the results
    inputs : input channels of all groups; for element-wise layers those of one operand
    taps_rows, taps_columns, stride_rows, stride_columns : of the window
    groups : groups of channels
    spread : whether the window scatters into the results (error propagation through a stride): each result
        meets one in ``stride`` of the taps along an axis
    operands : tensors of the shape of the result that are combined (element-wise layers)
    input_rows, input_columns : of the inputs that exist
    pad_rows, pad_columns : rows and columns of padding before the first
    producers : layers whose results it reads
    external : input channels that come from outside the network
    weight_bytes : stored weights, or those that other layers make
    is_output : whether the results leave the network
    hop_rows : of a weight update, by how many rows of the inputs neighbouring rows of the gradient differ

    A weight update (``SUMMED``) has output channels x (input channels x filter rows) x filter columns as its
    results, of all samples together.  ``stride_rows`` are its filter rows, the taps are the positions of the
    gradient that arrives, which stands for weights: of a producer, or from outside where ``weight_bytes`` are
    its bytes of one sample.
    """

    name: str
    window: int
    is_mac: bool
    channels: int
    rows: int
    columns: int
    inputs: int
    taps_rows: int = 1
    taps_columns: int = 1
    stride_rows: int = 1
    stride_columns: int = 1
    groups: int = 1
    spread: bool = False
    operands: int = 1
    input_rows: int = 1
    input_columns: int = 1
    pad_rows: int = 0
    pad_columns: int = 0
    producers: tuple[Producer, ...] = ()
    external: int = 0
    weight_bytes: int = 0
    is_output: bool = False
    hop_rows: int = 1

    @property
    def makes_weights(self) -> bool:
        """Whether its weights are other layers' results."""
        return any(producer.weights for producer in self.producers)

    @property
    def is_summed(self) -> bool:
        """Whether the results are sums over all samples."""
        return self.window == SUMMED

    @property
    def depth(self) -> int:
        """Input channels that every result of a sample sums over."""
        return 1 if self.is_summed else self.inputs // self.groups

    @property
    def operations(self) -> int:
        """Multiply-accumulates, or operations of the vector units, of one sample."""
        rows, columns = self.positions(self.rows, self.columns)
        results = self.channels * rows * columns * self.taps_rows * self.taps_columns
        return results * (self.depth if self.is_mac else self.operands)

    def positions(self, rows: int, columns: int) -> tuple[int, int]:
        """Rows and columns of positions that make a box of results, each of which meets all taps."""
        if self.spread:
            rows = min(-(-rows // self.stride_rows), self.input_rows)
            columns = min(-(-columns // self.stride_columns), self.input_columns)
        return rows, columns

    def stored_bytes(self, batch: int) -> int:
        """Bytes of the results of some samples."""
        return self.output_bytes * (1 if self.is_summed else batch)

    @property
    def late_operands(self) -> int:
        """Tensors of the shape of the result that fused layers read."""
        return sum(producer.late and producer.offset == 0 for producer in self.producers)

    @property
    def input_bytes(self) -> int:
        """Bytes of one sample's inputs."""
        return self.inputs * self.input_rows * self.input_columns * self.operands

    @property
    def output_bytes(self) -> int:
        """Bytes of one sample's results."""
        return self.channels * self.rows * self.columns


@dataclass(frozen=True)
class SetNetwork:
    """Layers in a topological order.

    Raises
    ------
    InputError : for a repeated name, or a layer that reads one behind it
    """

    name: str
    layers: tuple[SetLayer, ...]
    index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {layer.name: i for i, layer in enumerate(self.layers)})
        if len(self.index) != len(self.layers):
            raise InputError(self.name, None, "two layers have one name")
        for number, layer in enumerate(self.layers):
            late = [producer.layer for producer in layer.producers if not 0 <= producer.layer < number]
            if late:
                raise InputError(
                    self.name, layer.name, f"reads layer {late[0]}, expected one before {number}"
                )

    def __len__(self) -> int:
        return len(self.layers)

    @cached_property
    def before(self) -> tuple[frozenset[int], ...]:
        """Per layer, the layers whose results it reads."""
        return tuple(frozenset(producer.layer for producer in layer.producers) for layer in self.layers)

    @cached_property
    def after(self) -> tuple[frozenset[int], ...]:
        """Per layer, the layers that read its results."""
        readers: list[set[int]] = [set() for _ in self.layers]
        for number, layers in enumerate(self.before):
            for layer in layers:
                readers[layer].add(number)
        return tuple(frozenset(numbers) for numbers in readers)

    @cached_property
    def masks(self) -> tuple[tuple[int, int], ...]:
        """Per layer, the layers before and after it as sets of bits."""
        return tuple(
            (sum(1 << other for other in b), sum(1 << other for other in a))
            for b, a in zip(self.before, self.after, strict=True)
        )

    def ready(self, done: int) -> Iterator[int]:
        """Layers that read nothing but what is done, a set of bits."""
        for layer, (before, _) in enumerate(self.masks):
            if not done >> layer & 1 and not before & ~done:
                yield layer

    def down_sets(self, most: int = MOST_DOWN_SETS) -> list[int] | None:
        """All sets of layers with all that these read, as sets of bits, smallest first; ``None`` where there
        are more than ``most``.
        """
        sets, level = [0], {0: [*self.ready(0)]}
        for _ in range(len(self)):
            larger: dict[int, list[int]] = {}
            for done, ready in level.items():
                for layer in ready:
                    end = done | 1 << layer
                    if end in larger:
                        continue
                    if len(sets) + len(larger) >= most:
                        return None
                    opened = (reader for reader in self.after[layer] if not self.masks[reader][0] & ~end)
                    larger[end] = [*(other for other in ready if other != layer), *opened]
            sets.extend(sorted(larger))
            level = larger
        return sets

    def part(self, layers: Sequence[int], name: str) -> SetNetwork:
        """Some of the layers as a network of its own; what they read of others comes from outside."""
        number = {layer: i for i, layer in enumerate(sorted(layers))}
        kept_layers = []
        for layer in sorted(layers):
            whole = self.layers[layer]
            inside = tuple(p for p in whole.producers if p.layer in number)
            if len(inside) < len(whole.producers) and (inside or whole.makes_weights):
                raise InputError(self.name, whole.name, "reads layers inside and outside of the part")
            kept = tuple(
                Producer(number[p.layer], p.offset, p.channels, p.weights, p.scattered, p.late)
                for p in inside
            )
            leaves = whole.is_output or any(other not in number for other in self.after[layer])
            fields = {name: getattr(whole, name) for name in SetLayer.__slots__}
            external = whole.external if inside or not whole.producers else whole.inputs
            kept_layers.append(
                SetLayer(**fields | {"producers": kept, "external": external, "is_output": leaves})
            )
        return SetNetwork(name, tuple(kept_layers))


@lru_cache(maxsize=65536)
def shares(size: int, parts: int) -> tuple[int, ...]:
    """Borders ``ceil(size * i / parts)`` of a dimension shared out; parts may be empty."""
    return tuple(-(-size * i // parts) for i in range(parts + 1))


def concatenated(channels: Sequence[int]) -> tuple[int, ...]:
    """Where each of several producers begins when their channels follow each other."""
    return (0, *accumulate(channels))[: len(channels)]
