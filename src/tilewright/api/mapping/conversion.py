"""Files of other programs, both ways."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from tilewright.api.display import Displayed
from tilewright.api.mapping.layer import Layer
from tilewright.api.mapping.machine import Machine
from tilewright.foundation.disk import check_writable, write_file
from tilewright.foundation.units import parse_energy, parse_positive
from tilewright.report.exchange import convert as exchange
from tilewright.report.exchange.bundle import Settings
from tilewright.report.exchange.losses import Loss
from tilewright.report.exchange.mapping.tilewright_write import nest_text

Source = str | os.PathLike[str] | Machine | Layer


class Conversion(Displayed):
    """What a conversion gives: texts to write, and what does not carry over.

    Parameters
    ----------
    conversion : the conversion
    """

    def __init__(self, conversion: exchange.Conversion) -> None:
        self._conversion = conversion

    @property
    def texts(self) -> dict[str, str]:
        """The content of every file, by its name."""
        return {output.name: output.text for output in self._conversion.outputs}

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What does not carry over: where it stands, and whether it changes ``cost`` or ``space``."""
        return self._conversion.losses

    @property
    def complete(self) -> bool:
        """Whether nothing was lost that changes an answer."""
        return not self._conversion.grave

    @property
    def machine(self) -> Machine | None:
        """The machine, where there is one."""
        engine = self._conversion.bundle.engine
        return None if engine is None else Machine(engine, self._conversion.bundle.machine)

    @property
    def layers(self) -> list[Layer]:
        """The layers."""
        return [
            Layer(name, operator, f"nest:{nest_text(operator)}")
            for name, operator in self._conversion.bundle.layers
        ]

    @property
    def constraints(self) -> list[str]:
        """The constraints, as questions take them."""
        return list(self._conversion.bundle.constraints)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write all files into a folder that exists.

        Raises
        ------
        InputError : where a file cannot be written to
        OutputError : where writing fails
        """
        for name, text in self.texts.items():
            place = Path(folder) / name.replace("/", "-")
            check_writable(place)
            write_file(place, text)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return self._conversion.to_dict()

    def rows(self) -> list[dict[str, Any]]:
        """One row per loss."""
        return [loss.to_dict() for loss in self.losses]

    def views(self) -> Sequence[RenderableType]:
        """The names of the files, and the losses."""
        return [Text(", ".join(self.texts)), *(Text(loss.text) for loss in self.losses)]

    def __repr__(self) -> str:
        return f"Conversion({', '.join(self.texts)}: {len(self.losses)} losses)"


def convert(
    source: Source | Sequence[Source],
    to: str,
    *,
    arch: Machine | str | None = None,
    layer: Layer | str | None = None,
    energies: Mapping[str, float | str | tuple[float | str, float | str]] | None = None,
    element_bits: int | None = None,
    clock_mhz: float | str | None = None,
) -> Conversion:
    """Convert files of other programs, or machines, layers and mappings of this one; nothing is refused.

    Parameters
    ----------
    source : files, a machine or a layer, or several of them that belong together
    to : ``tilewright``, ``timeloop`` or ``zigzag``
    arch, layer : of a mapping or of constraints that come without
    energies : pJ per element read (or read and written) by level; ``MAC`` for the multiplier
    element_bits, clock_mhz : where the files do not state them, or state something else

    Raises
    ------
    InputError : naming file, line and field
    """
    several = [source] if isinstance(source, str | os.PathLike | Machine | Layer) else list(source)
    machines = [item for item in several if isinstance(item, Machine)]
    layers = [item for item in several if isinstance(item, Layer)]
    files = [os.fspath(item) for item in several if not isinstance(item, Machine | Layer)]
    engine = next((item.engine for item in machines), arch.engine if isinstance(arch, Machine) else arch)
    work = next(((item.name, item.operator) for item in layers), None)
    given = (layer.name, layer.operator) if isinstance(layer, Layer) else layer
    settings = Settings(
        {name: _pair(value) for name, value in (energies or {}).items()},
        element_bits,
        None if clock_mhz is None else parse_positive(str(clock_mhz)),
    )
    return Conversion(exchange.convert(files, to, arch=engine, layer=work or given, settings=settings))


def _pair(value: float | str | tuple[float | str, float | str]) -> tuple[Fraction, Fraction]:
    read, write = value if isinstance(value, tuple) else (value, value)
    return parse_energy(str(read)), parse_energy(str(write))
