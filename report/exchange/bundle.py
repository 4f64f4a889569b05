"""What a conversion has read so far: a machine, layers, constraints and mappings, in this project's terms."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tilewright.foundation.units import ROUNDED_DECIMALS, exact
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.exchange.losses import Effect, Ledger
from tilewright.report.exchange.source import Field
from tilewright.report.records.mapping.mapping_file import StoredMapping
from tilewright.workloads.mapping.operator import Operator, Role


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user states in addition to the files.

    Parameters
    ----------
    energies : pJ per element (read, write) of a level, or of the multiplier, by name
    element_bits : bits of every element; ``None`` for what the files say
    clock_mhz : the machine's clock; ``None`` for what the files say
    """

    energies: MappingABC[str, tuple[Fraction, Fraction]] = field(default_factory=dict)
    element_bits: int | None = None
    clock_mhz: Fraction | None = None


@dataclass(slots=True)
class Bundle:
    """Parts of a conversion; readers fill it in, and each may look at what others have read before.

    Parameters
    ----------
    name : of the machine or the whole, from the first file's name
    machine : fields of a machine file
    engine : the machine, built; the user's own where no file has one
    layers : names and operators
    layers_given : whether they are the user's word and no file's
    constraints : lines as ``--constraint`` takes them
    mappings : with what their files say of layer and machine
    element_bits : bits by tensor role, where a workload states them
    final_bits : bits of finished outputs, likewise; ``None`` for those of partial sums
    targets : constraints that wait for the machine whose levels they name
    action_energies : pJ per action of a component, by component and action
    """

    name: str
    settings: Settings
    ledger: Ledger
    machine: dict[str, Any] | None = None
    engine: Engine | None = None
    layers: list[tuple[str, Operator]] = field(default_factory=list)
    layers_given: bool = False
    constraints: list[str] = field(default_factory=list)
    mappings: list[StoredMapping] = field(default_factory=list)
    element_bits: dict[Role, int] = field(default_factory=dict)
    final_bits: int | None = None
    targets: list[Field] = field(default_factory=list)
    action_energies: dict[str, dict[str, Fraction]] = field(default_factory=dict)

    @property
    def operator(self) -> Operator | None:
        """The one layer that everything is about; ``None`` where there are none or several."""
        return self.layers[0][1] if len(self.layers) == 1 else None

    def demand(self, text: str) -> None:
        """Add a constraint once."""
        if text not in self.constraints:
            self.constraints.append(text)


def energy_of(written: Fraction, field: Field, ledger: Ledger) -> Fraction:
    """An energy per element with at most six decimals, as machine files have them."""
    rounded = Fraction(round(written * 10**ROUNDED_DECIMALS), 10**ROUNDED_DECIMALS)
    if rounded != written:
        said = f"{float(written):.9g} pJ per element is rounded to {exact(rounded)}"
        field.lose(ledger, Effect.COST, said)
    return rounded
