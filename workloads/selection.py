"""Which layers of a network are looked at: chosen by name, equal ones once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tilewright.foundation.errors import InputError, did_you_mean
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.network import Network


@dataclass(frozen=True, slots=True)
class SelectedLayer:
    """An operator, and the layers of the network that have it.

    Parameters
    ----------
    operator, names : of equal layers
    runs : how often each of them runs, where the model runs more than once
    least_runs : how many of the runs cost at least what these layers do; ``None`` for as many.  Layers that
        bound others run less often in a value than in its bound, or not at all
    """

    operator: Operator
    names: tuple[str, ...]
    runs: int = 1
    least_runs: int | None = None

    @property
    def name(self) -> str:
        """Of the first of the layers."""
        return self.names[0]

    @property
    def count(self) -> int:
        """How often the operator counts in a value."""
        return len(self.names) * self.runs

    @property
    def least_count(self) -> int:
        """How often it counts in a bound."""
        return len(self.names) * (self.runs if self.least_runs is None else self.least_runs)


def select_layers(
    network: Network, patterns: Sequence[str] = (), all_operators: bool = False
) -> list[SelectedLayer]:
    """The distinct operators among the chosen layers, in the order of their first appearance.

    Parameters
    ----------
    patterns : glob patterns of layer names, one of which must match; empty for all layers
    all_operators : pooling and element-wise layers too; a single layer counts whatever it is, and so does
        every layer of a network that asks for all

    Raises
    ------
    InputError : where a pattern matches no layer, or no layer is left; and where nothing that multiplies is
        left of a network of which nodes were left out
    """
    if network.left_out and not network.mac_layers:
        raise InputError(
            network.name,
            None,
            f"no layer that multiplies is left without {_counted(network.left_out)} that cannot be read, the "
            f"first of them {network.left_out[0]}",
        )
    names = [layer.name for layer in network.layers]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            many = ", expected one pattern for each --layers"
            hint = many if "," in pattern else did_you_mean(pattern, names)
            raise InputError("--layers", pattern, f"matches no layer of {network.name}{hint}")
    selected: list[SelectedLayer] = []
    every = all_operators or network.every_layer or len(network) == 1
    for distinct in network.distinct_layers(mac_only=not every):
        chosen = tuple(
            name for name in distinct.names if not patterns or any(fnmatchcase(name, p) for p in patterns)
        )
        if chosen:
            selected.append(SelectedLayer(distinct.layer.operator, chosen))
    if not selected:
        raise InputError(
            network.name, None, "no layer multiplies and accumulates, expected --all-operators for the others"
        )
    return selected


def _counted(left_out: Sequence[str]) -> str:
    return "the node" if len(left_out) == 1 else f"the {len(left_out)} nodes"
