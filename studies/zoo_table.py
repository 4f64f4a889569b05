"""The built-in networks compared with their published figures, as the tables of `docs/networks.md`.

python -m studies.zoo_table
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from tilewright.foundation.yaml_file import read_yaml
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.network import Network
from tilewright.workloads.networks import builders
from tilewright.workloads.scheduling.workload_file import list_workloads, load_workload
from tilewright.workloads.shape_ratio import channel_activation_ratio

DATA = Path(__file__).parent / "published_networks.yaml"
TOLERANCE = 0.01
HERALD_RATIOS = {
    "mobilenet-v2": ("0.013", "13.714", "1280"),
    "resnet50": ("0.013", "18.286", "292.571"),
    "unet": ("0.002", "1.855", "34.133"),
    "handpose": ("0.016", "1024", "1024"),
    "depthnet": ("0.013", "4.571", "4096"),
}
"""Herald, table I: minimum, median and maximum."""
HERALD_LAYERS = {"ar-vr-a": 448, "ar-vr-b": 618, "mlperf-1": 181}
"""Herald, table VII."""


@dataclass(frozen=True, slots=True)
class Published:
    """One published figure of a network.

    Parameters
    ----------
    value : the figure; ``None`` where none is printed
    tolerance : how far ours may be from it, relatively
    source : where it stands, and what else is to be said
    differs : why ours is further from it, if it is
    """

    value: float | None
    tolerance: float
    source: str
    differs: str | None

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Published:
        """The figure of one entry of the file."""
        value = None if fields.get("value") is None else float(fields["value"])
        return cls(value, fields.get("tolerance", TOLERANCE), fields["source"], fields.get("differs"))

    @property
    def about(self) -> str:
        """Source and remark."""
        return self.source if self.differs is None else f"{self.source}; {self.differs}"

    def deviation(self, ours: int) -> float | None:
        """How far ours is from it, relatively."""
        return None if self.value is None else ours / self.value - 1


def published() -> dict[str, dict[str, Published]]:
    """Parameters and MACs of every built-in network that are published."""
    return {
        name: {kind: Published.read(entry[kind]) for kind in ("parameters", "macs")}
        for name, entry in read_yaml(DATA).items()
    }


def atomic_counts() -> dict[str, dict[str, Any]]:
    """Table I of the Atomic Dataflow paper: layers and parameters, and how they are to be understood."""
    return {name: entry["atomic"] for name, entry in read_yaml(DATA).items() if "atomic" in entry}


def run() -> None:
    """Build and print."""
    started = time.monotonic()
    networks = {name: resolve_model(name) for name in builders()}
    seconds = time.monotonic() - started
    _print_figures(networks)
    _print_sources()
    print_atomic(networks)
    print_ratios(networks)
    _print_workloads()
    print(f"\nAll {len(networks)} networks are built in {seconds:.1f} s.")


def _print_figures(networks: dict[str, Network]) -> None:
    known = published()
    print("| network | layers | MAC layers | distinct | parameters | published | | MACs | published | |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, network in networks.items():
        cells = [name, len(network), len(network.mac_layers), len(network.distinct_layers(mac_only=True))]
        for kind, ours in (("parameters", network.parameters), ("macs", network.macs)):
            figure = known[name][kind]
            deviation = figure.deviation(ours)
            cells += [
                f"{ours:,}",
                "–" if figure.value is None else f"{figure.value:,.0f}",
                "" if deviation is None else f"{100 * deviation:+.2f} %",
            ]
        print("| " + " | ".join(map(str, cells)) + " |")


def _print_sources() -> None:
    print("\n| network | source of the parameters | source of the MACs |\n|---|---|---|")
    for name, figures in sorted(published().items()):
        print(f"| {name} | {figures['parameters'].about} | {figures['macs'].about} |")


def print_atomic(networks: dict[str, Network]) -> None:
    """Table I of Atomic Dataflow beside the networks of that paper."""
    print("\n| network | layers, table I | ours | parameters, table I | ours | |\n|---|---|---|---|---|---|")
    for name, counts in atomic_counts().items():
        if name not in networks:
            continue
        ours, printed = networks[name], float(counts["parameters"])
        print(
            f"| {name} | {counts['layers']} | {len(ours)} | {printed / 1e6:.0f} M "
            f"| {ours.parameters / 1e6:.1f} M | {counts['note']} |"
        )


def print_ratios(networks: dict[str, Network]) -> None:
    """Table I of Herald beside the networks of that paper."""
    print("\n| network | min | table I | median | table I | max | table I |\n|---|---|---|---|---|---|---|")
    for name, printed in HERALD_RATIOS.items():
        ratios = [channel_activation_ratio(networks[name], layer) for layer in networks[name].mac_layers]
        ours = (min(ratios), statistics.median(ratios), max(ratios))
        cells = [f"{value:.3f} | {text}" for value, text in zip(ours, printed, strict=True)]
        print(f"| {name} | {' | '.join(cells)} |")


def _print_workloads() -> None:
    print("\n| workload | runs | MAC layers | all layers | Herald | GMAC |\n|---|---|---|---|---|---|")
    for name in list_workloads():
        work = load_workload(name)
        runs = ", ".join(f"{part.batches} x {part.name}" for part in work.parts)
        print(
            f"| {name} | {runs} | {work.layer_count()} | {work.layer_count(mac_only=False)} "
            f"| {HERALD_LAYERS.get(name, '–')} | {work.macs / 1e9:.1f} |"
        )


if __name__ == "__main__":
    typer.run(run)
