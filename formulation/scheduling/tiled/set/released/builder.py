"""Networks of SET's released program are written down with this: boxes, windows, and who reads whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.formulation.scheduling.tiled.set.leaf.layers import (
    CONVOLUTION,
    GROUPED,
    SAMPLING,
    SWAPPED,
    Producer,
    SetLayer,
    SetNetwork,
    concatenated,
)


class NetworkBuilder:
    """Layers one after the other; a layer without producers reads the one before it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.layers: list[SetLayer] = []

    def conv(
        self,
        name: str,
        inputs: int,
        outputs: int,
        rows: int,
        reads: Sequence[int] | None = None,
        *,
        columns: int = 0,
        taps: int = 1,
        taps_columns: int = 0,
        stride: int = 1,
        groups: int = 1,
        weights: Sequence[int] = (),
        source: tuple[int, int] | None = None,
        outside: int = 0,
    ) -> int:
        """Add a convolution or matrix product; return its number.

        Parameters
        ----------
        name : unique in the network
        inputs, outputs : channels of all groups
        rows, columns : of the results; as many columns as rows where they are 0
        reads : numbers of the layers that it reads; by default the layer before
        taps, taps_columns : of the window, along rows and columns; square where the latter is 0
        stride : of the window, along both axes
        groups : groups of channels
        weights : numbers of the layers whose results are its weights
        source : rows and columns of an input from outside the network, where it reads that
        outside : channels from outside, before those of the layers that it reads
        """
        window = CONVOLUTION if groups == 1 else GROUPED
        layer = SetLayer(
            name=name,
            window=window,
            is_mac=True,
            channels=outputs,
            rows=rows,
            columns=columns or rows,
            inputs=inputs,
            taps_rows=taps,
            taps_columns=taps_columns or taps,
            stride_rows=stride,
            stride_columns=stride,
            groups=groups,
            weight_bytes=taps * (taps_columns or taps) * inputs // groups * outputs,
        )
        return self._add(layer, reads, weights, source, outside)

    def pool(
        self,
        name: str,
        channels: int,
        rows: int,
        reads: Sequence[int] | None = None,
        *,
        taps: int,
        stride: int = 0,
    ) -> int:
        """Add a pooling layer; return its number.

        Parameters
        ----------
        name : unique in the network
        channels : of inputs and results
        rows : rows, and columns, of the results
        reads : numbers of the layers that it reads; by default the layer before
        taps : rows, and columns, of the window
        stride : of the window; by default ``taps``
        """
        step = stride or taps
        layer = SetLayer(
            name=name,
            window=SAMPLING,
            is_mac=False,
            channels=channels,
            rows=rows,
            columns=rows,
            inputs=channels,
            taps_rows=taps,
            taps_columns=taps,
            stride_rows=step,
            stride_columns=step,
        )
        return self._add(layer, reads, (), None)

    def add(
        self,
        name: str,
        channels: int,
        rows: int,
        reads: Sequence[int],
        *,
        columns: int = 0,
        operands: int = 2,
        outside: int = 0,
    ) -> int:
        """Add an element-wise combination; return its number.

        Parameters
        ----------
        name : unique in the network
        channels : of the results and of each operand
        rows, columns : of the results; as many columns as rows where they are 0
        reads : numbers of the layers that it reads
        operands : tensors that are combined
        outside : channels from outside, before those of the layers that it reads
        """
        layer = SetLayer(name, SAMPLING, False, channels, rows, columns or rows, channels, operands=operands)
        return self._add(layer, reads, (), None, outside)

    def copy(
        self,
        name: str,
        channels: int,
        rows: int,
        columns: int,
        reads: Sequence[int] | None = None,
        *,
        source: tuple[int, int] | None = None,
    ) -> int:
        """Add a layer that moves results on as they are; return its number.

        Parameters
        ----------
        name : unique in the network
        channels, rows, columns : of the results
        reads : numbers of the layers that it reads; by default the layer before
        source : rows and columns of an input from outside the network, where it reads that
        """
        layer = SetLayer(name, SAMPLING, False, channels, rows, columns, channels)
        return self._add(layer, reads, (), source)

    def transpose(self, name: str, channels: int, rows: int, columns: int) -> int:
        """Add a layer in which rows become channels of the layer before; return its number.

        Parameters
        ----------
        name : unique in the network
        channels, rows, columns : of the results
        """
        layer = SetLayer(name, SWAPPED, False, channels, rows, columns, rows)
        return self._add(layer, None, (), None)

    def _add(
        self,
        layer: SetLayer,
        reads: Sequence[int] | None,
        weights: Sequence[int],
        source: tuple[int, int] | None,
        outside: int = 0,
    ) -> int:
        numbers = () if source else tuple(sorted(reads if reads is not None else (len(self.layers) - 1,)))
        made = [self.layers[producer] for producer in numbers]
        producers: list[Producer] = []
        offset = outside % layer.inputs
        for number, producer in zip(numbers, made, strict=True):
            producers.append(Producer(number, offset, producer.channels))
            offset += producer.channels
            if layer.operands > 1 and offset == layer.inputs:
                offset = 0
        keys = [self.layers[producer].channels for producer in weights]
        for number, channels, begin in zip(weights, keys, concatenated(keys), strict=True):
            producers.append(Producer(number, begin, channels, weights=True))
        rows, columns = source or (made[0].rows, made[0].columns)
        need_rows = (layer.rows - 1) * layer.stride_rows + layer.taps_rows
        need_columns = (layer.columns - 1) * layer.stride_columns + layer.taps_columns
        if layer.window == SWAPPED:
            need_rows, need_columns = layer.channels, layer.columns
        self.layers.append(
            replace(
                layer,
                producers=tuple(producers),
                external=layer.inputs if source else outside,
                input_rows=min(rows, need_rows),
                input_columns=min(columns, need_columns),
                pad_rows=max(0, need_rows - rows) // 2,
                pad_columns=max(0, need_columns - columns) // 2,
            )
        )
        return len(self.layers) - 1

    def build(self) -> SetNetwork:
        """The network; layers that nobody reads are its outputs."""
        read = {producer.layer for layer in self.layers for producer in layer.producers}
        return SetNetwork(
            self.name, tuple(replace(layer, is_output=i not in read) for i, layer in enumerate(self.layers))
        )
