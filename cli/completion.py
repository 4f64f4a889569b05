"""What a shell offers for a half-written word: names of machines, models, methods and the like.

``tilewright --install-completion`` sets a shell up.  Where nothing fits, shells offer files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

Completion = Callable[[str], list[str]]


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    """The names that continue from what was written; after a comma, from what stands behind it."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in names if name.startswith(last)]


def one_of(*names: str) -> Completion:
    """Completion of one of a few words."""

    def complete(incomplete: str) -> list[str]:
        return _starting(names, incomplete)

    return complete


def machines(incomplete: str) -> list[str]:
    """Presets of machines."""
    from tilewright.hardware.mapping.load import list_presets

    return _starting(list_presets(), incomplete)


def cost_models(incomplete: str) -> list[str]:
    """Cost models."""
    from tilewright.hardware.mapping.cost_models import COST_MODELS

    return _starting(COST_MODELS.names(), incomplete)


def systems(incomplete: str) -> list[str]:
    """Systems of sub-accelerators, and tiled machines."""
    from tilewright.hardware.scheduling.herald.system_file import list_systems

    return [*_starting(list_systems(), incomplete), *tiled_machines(incomplete)]


def tiled_machines(incomplete: str) -> list[str]:
    """Presets of tiled machines."""
    from tilewright.hardware.scheduling.tiled.load import list_tiled_machines

    return _starting(list_tiled_machines(), incomplete)


def models(incomplete: str) -> list[str]:
    """Built-in networks, families with their parameters, and the models of the onnx package."""
    from tilewright.workloads.catalog import list_models
    from tilewright.workloads.families import completions

    return [*completions(incomplete)] if "[" in incomplete else _starting(list_models(), incomplete)


def workloads(incomplete: str) -> list[str]:
    """Workloads, and models, which are workloads of one network."""
    from tilewright.workloads.scheduling.workload_file import list_workloads

    return [*_starting(list_workloads(), incomplete), *models(incomplete)]


def things(incomplete: str) -> list[str]:
    """Whatever ``show`` knows by name."""
    return [*machines(incomplete), *systems(incomplete), *workloads(incomplete)]


def solvers(incomplete: str) -> list[str]:
    """Exact solvers and heuristics for one layer."""
    return _starting(["auto", *_methods("mapping")], incomplete)


def scheduling_methods(incomplete: str) -> list[str]:
    """Methods for schedules and for plans."""
    return [*_starting(_methods("scheduling"), incomplete), *planning_methods(incomplete)]


def planning_methods(incomplete: str) -> list[str]:
    """Methods for plans on tiled machines."""
    return _starting(_methods("tiled"), incomplete)


def _methods(of: str) -> list[str]:
    from tilewright.api.catalog import methods

    return methods(of)


def suites(incomplete: str) -> list[str]:
    """Suites of layers."""
    from tilewright.benchmarks.suites import suite_names

    return _starting(suite_names(), incomplete)
