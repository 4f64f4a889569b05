"""Methods that schedule on heterogeneous sub-accelerators, by name.  A new one is a module and a row here."""

from __future__ import annotations

from tilewright.formulation.scheduling.herald.search import ScheduleMethod
from tilewright.foundation.registry import Entry, Registry

METHODS: Registry[ScheduleMethod] = Registry(
    "--method",
    {
        "cpsat": Entry(
            "tilewright.solvers.scheduling.herald.cpsat",
            "CpSatScheduler",
            "exact: CP-SAT, relaxations for bounds, annealing and large neighbourhoods for schedules",
        ),
        "annealing": Entry(
            "tilewright.solvers.scheduling.herald.quick",
            "AnnealingScheduler",
            "Simulated annealing over options and priorities, from Herald's schedule",
        ),
        "lns": Entry(
            "tilewright.solvers.scheduling.herald.quick",
            "WindowScheduler",
            "Large-neighbourhood search with CP-SAT, from an annealed schedule",
        ),
        "herald": Entry(
            "tilewright.solvers.scheduling.herald.quick",
            "HeraldScheduler",
            "Preference, balancing, both orders, idle time eliminated",
            "Herald (Kwon et al.), section IV-D",
        ),
        "greedy": Entry(
            "tilewright.solvers.scheduling.herald.quick",
            "GreedyScheduler",
            "Every layer on its cheapest sub-accelerator: Herald's baseline",
            "Herald (Kwon et al.), section V",
        ),
    },
    group="herald_methods",
)
