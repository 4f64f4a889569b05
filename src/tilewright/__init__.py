"""Mappings and schedules of neural networks on spatial accelerators, with proofs.

The interface is loaded name by name, so that ``import tilewright`` is quick; ``docs/python.md`` has it all::

    import tilewright as tw

    layer = tw.layer("conv:K=64,C=64,P=56,Q=56,R=3,S=3,pad=1")
    result = tw.solve(layer.on(tw.machine("nvdla-256"), objective="edp"), stop=tw.seconds(60) | tw.gap(0.01))
    print(result)
"""

TYPE_CHECKING = False  # as in typing, which the program imports once it looks in no folder but Python's own

if TYPE_CHECKING:
    from tilewright.api.catalog import methods as methods
    from tilewright.api.checked import Check as Check
    from tilewright.api.documents import check as check
    from tilewright.api.documents import load as load
    from tilewright.api.mapping import gemmini as gemmini
    from tilewright.api.mapping.checking import MappingCheck as MappingCheck
    from tilewright.api.mapping.conversion import Conversion as Conversion
    from tilewright.api.mapping.conversion import convert as convert
    from tilewright.api.mapping.evaluation import MappingEvaluation as MappingEvaluation
    from tilewright.api.mapping.evaluation import evaluate as evaluate
    from tilewright.api.mapping.exploration import explore as explore
    from tilewright.api.mapping.exploration_document import ExplorationDocument as ExplorationDocument
    from tilewright.api.mapping.fusion import FusedResult as FusedResult
    from tilewright.api.mapping.fusion import NetworkFused as NetworkFused
    from tilewright.api.mapping.layer import Layer as Layer
    from tilewright.api.mapping.layer import LayerOnMachine as LayerOnMachine
    from tilewright.api.mapping.layer import layer as layer
    from tilewright.api.mapping.machine import Machine as Machine
    from tilewright.api.mapping.machine import machine as machine
    from tilewright.api.mapping.machine import machines as machines
    from tilewright.api.mapping.mapping import LayerMapping as LayerMapping
    from tilewright.api.mapping.network import Network as Network
    from tilewright.api.mapping.network import NetworkOnMachine as NetworkOnMachine
    from tilewright.api.mapping.network import models as models
    from tilewright.api.mapping.network import network as network
    from tilewright.api.mapping.network_call import map_network as map_network
    from tilewright.api.mapping.result import MappingDocument as MappingDocument
    from tilewright.api.mapping.result import MappingResult as MappingResult
    from tilewright.api.mapping.sweep import sweep as sweep
    from tilewright.api.mapping.sweep_document import Sweep as Sweep
    from tilewright.api.scheduling.checking import ScheduleCheck as ScheduleCheck
    from tilewright.api.scheduling.codesign import codesign as codesign
    from tilewright.api.scheduling.herald_question import WorkloadOnSystem as WorkloadOnSystem
    from tilewright.api.scheduling.plan import Codesign as Codesign
    from tilewright.api.scheduling.plan import Plan as Plan
    from tilewright.api.scheduling.system import System as System
    from tilewright.api.scheduling.system import system as system
    from tilewright.api.scheduling.system import systems as systems
    from tilewright.api.scheduling.tiled_machine import TiledMachine as TiledMachine
    from tilewright.api.scheduling.tiled_machine import tiled_machine as tiled_machine
    from tilewright.api.scheduling.tiled_machine import tiled_machines as tiled_machines
    from tilewright.api.scheduling.tiled_plan import PlanEvaluation as PlanEvaluation
    from tilewright.api.scheduling.tiled_plan import TiledPlan as TiledPlan
    from tilewright.api.scheduling.tiled_plan import evaluate_plan as evaluate_plan
    from tilewright.api.scheduling.tiled_question import NetworkOnTiles as NetworkOnTiles
    from tilewright.api.scheduling.workload import Workload as Workload
    from tilewright.api.scheduling.workload import list_workloads as list_workloads
    from tilewright.api.scheduling.workload import workload as workload
    from tilewright.api.solving import solve as solve
    from tilewright.formulation.limits import LimitReachedError as LimitReachedError
    from tilewright.formulation.result import Status as Status
    from tilewright.formulation.scheduling.tiled.evaluator import IllegalPlanError as IllegalPlanError
    from tilewright.formulation.search import DisagreementError as DisagreementError
    from tilewright.formulation.search import UnsoundBoundError as UnsoundBoundError
    from tilewright.formulation.stopping import Stop as Stop
    from tilewright.formulation.stopping import gap as gap
    from tilewright.formulation.stopping import seconds as seconds
    from tilewright.formulation.stopping import stagnation as stagnation
    from tilewright.foundation.errors import InputError as InputError
    from tilewright.foundation.errors import OutputError as OutputError
    from tilewright.foundation.errors import TilewrightError as TilewrightError
    from tilewright.solvers.observer import Observer as Observer

__version__ = "0.2.0"

_PLACES = {
    "tilewright.api.catalog": ("methods",),
    "tilewright.api.checked": ("Check",),
    "tilewright.api.documents": ("check", "load"),
    "tilewright.api.mapping.checking": ("MappingCheck",),
    "tilewright.api.mapping.conversion": ("Conversion", "convert"),
    "tilewright.api.mapping.sweep": ("sweep",),
    "tilewright.api.mapping.sweep_document": ("Sweep",),
    "tilewright.api.mapping.result": ("MappingDocument", "MappingResult"),
    "tilewright.api.mapping.evaluation": ("MappingEvaluation", "evaluate"),
    "tilewright.api.mapping.exploration": ("explore",),
    "tilewright.api.mapping.exploration_document": ("ExplorationDocument",),
    "tilewright.api.mapping.fusion": ("FusedResult", "NetworkFused"),
    "tilewright.api.mapping.layer": ("Layer", "LayerOnMachine", "layer"),
    "tilewright.api.mapping.machine": ("Machine", "machine", "machines"),
    "tilewright.api.mapping.mapping": ("LayerMapping",),
    "tilewright.api.mapping.network_call": ("map_network",),
    "tilewright.api.mapping.network": ("Network", "NetworkOnMachine", "models", "network"),
    "tilewright.api.scheduling.checking": ("ScheduleCheck",),
    "tilewright.api.scheduling.codesign": ("codesign",),
    "tilewright.api.scheduling.plan": ("Codesign", "Plan"),
    "tilewright.api.scheduling.system": ("System", "system", "systems"),
    "tilewright.api.scheduling.tiled_machine": ("TiledMachine", "tiled_machine", "tiled_machines"),
    "tilewright.api.scheduling.tiled_plan": ("PlanEvaluation", "TiledPlan", "evaluate_plan"),
    "tilewright.api.scheduling.herald_question": ("WorkloadOnSystem",),
    "tilewright.api.scheduling.tiled_question": ("NetworkOnTiles",),
    "tilewright.api.scheduling.workload": ("Workload", "list_workloads", "workload"),
    "tilewright.api.solving": ("solve",),
    "tilewright.formulation.limits": ("LimitReachedError",),
    "tilewright.formulation.result": ("Status",),
    "tilewright.formulation.scheduling.tiled.evaluator": ("IllegalPlanError",),
    "tilewright.formulation.search": ("DisagreementError", "UnsoundBoundError"),
    "tilewright.formulation.stopping": ("Stop", "gap", "seconds", "stagnation"),
    "tilewright.solvers.observer": ("Observer",),
    "tilewright.foundation.errors": ("InputError", "OutputError", "TilewrightError"),
}
"""The names of the interface by the module that has them."""

_MODULES = {name: module for module, names in _PLACES.items() for name in names}
_WHOLE = {"gemmini": "tilewright.api.mapping.gemmini"}
"""Modules that are names of the interface themselves."""

__all__ = [
    "Check",
    "Codesign",
    "Conversion",
    "DisagreementError",
    "ExplorationDocument",
    "FusedResult",
    "IllegalPlanError",
    "InputError",
    "Layer",
    "LayerMapping",
    "LayerOnMachine",
    "LimitReachedError",
    "Machine",
    "MappingCheck",
    "MappingDocument",
    "MappingEvaluation",
    "MappingResult",
    "Network",
    "NetworkFused",
    "NetworkOnMachine",
    "NetworkOnTiles",
    "Observer",
    "OutputError",
    "Plan",
    "PlanEvaluation",
    "ScheduleCheck",
    "Status",
    "Stop",
    "System",
    "TiledMachine",
    "TiledPlan",
    "TilewrightError",
    "UnsoundBoundError",
    "Workload",
    "WorkloadOnSystem",
    "__version__",
    "check",
    "codesign",
    "convert",
    "evaluate",
    "evaluate_plan",
    "explore",
    "gap",
    "layer",
    "list_workloads",
    "load",
    "machine",
    "machines",
    "map_network",
    "methods",
    "models",
    "network",
    "seconds",
    "solve",
    "stagnation",
    "system",
    "systems",
    "tiled_machine",
    "tiled_machines",
    "workload",
]


def __getattr__(name: str) -> object:
    """A name of the interface, loaded when it is first asked for."""
    if name not in _MODULES and name not in _WHOLE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = (
        import_module(_WHOLE[name]) if name in _WHOLE else getattr(import_module(_MODULES[name]), name)
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_WHOLE})
