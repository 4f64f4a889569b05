"""What is asked of a network whose layers may be fused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilewright.formulation.mapping.fused.group import FusedGroup, group_of
from tilewright.formulation.objective import Objective, parse_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.trees.turn_engine import TurnEngines, shared_levels
from tilewright.workloads.mapping.operator import Role
from tilewright.workloads.network import Network

ENERGY = parse_objective("energy")


@dataclass(frozen=True)
class FusionProblem:
    """What is asked of a network on a machine.

    Parameters
    ----------
    network, engine : the layers with their links, and the machine
    layers : names of those that are mapped, in the network's order
    model_name : the cost model
    most : layers of a group at most
    factors, storage : the space of the layers' own mappings
    home_level : the only level that may be a home; ``None`` for any
    objective : of the energy and cycles of all layers together
    online_softmax : whether shared loops may cut rows of a softmax, which is then rescaled part by part
    """

    network: Network
    engine: Engine
    layers: tuple[str, ...]
    model_name: str
    most: int
    factors: str | None = None
    storage: str | None = None
    home_level: str | None = None
    objective: Objective = ENERGY
    online_softmax: bool = False

    def group(self, names: Iterable[str]) -> FusedGroup:
        """Some layers as a group; raises ``InputError`` where an operand does not match what it reads."""
        return group_of(self.network, names, online_softmax=self.online_softmax)

    def turn_engines(self, engine: Engine) -> TurnEngines:
        """What turns see of a machine."""
        return TurnEngines(engine, perfect=self.factors == "perfect")

    def _has_homes(self) -> bool:
        """Whether a level outside all arrays can keep a result and an operand."""
        levels = self.engine.levels[1 : shared_levels(self.engine) + 1]
        return any(Role.OUTPUT in level.keeps and len(level.keeps) > 1 for level in levels)

    def check(self) -> None:
        """Raise ``InputError`` for a cost model, a machine or a home that cannot be."""
        if self.model_name != "hierarchy":
            raise InputError("--fuse", None, f"counts by the cost model hierarchy, not by {self.model_name}")
        timed = self.engine.leak or self.objective.delay_power
        counted = [level for level in self.engine.levels if level.timing.tile or level.timing.instruction]
        if timed and counted and self._has_homes():
            # To which level loops belong depends on what is stored there, and turns store less than layers.
            message = f"{self.engine.name} has set-up cycles for iterations of {counted[0].name}'s loops"
            raise InputError("--fuse", None, f"{message}, which fused mappings are not searched with")
        names = [level.name for level in self.engine.levels[1:]]
        if self.home_level is not None and self.home_level not in names:
            raise InputError("--fuse-at", None, f"unknown level {self.home_level!r}, expected one of {names}")
