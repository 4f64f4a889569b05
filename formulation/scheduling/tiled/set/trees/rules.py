"""What a tree costs is a matter of rules: the paper's by default, and what the released program does instead.

Each departure of the program (SET-ISCA2023) has a name here and is off by default; `PUBLISHED` has them all
on and reproduces the program's figures.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Rules:
    """How a tree is evaluated.

    Parameters
    ----------
    weight_shift : in a T cut just below a root T cut, without groups, only the weights of neighbouring
        children lie in the buffers together; not in the paper, and needed for long segments
    split_root_weights_once : a defect: weights are counted once per whole batch although a root T cut in
        groups loads them for every group (section 3.3.1)
    free_concatenation : a defect: an operand of several concatenated producers receives nothing from those
        after the first where they pass results on directly
    idle_tiles_receive : a defect: tiles whose share is empty are sent inputs and weights
    segment_bounds_only : a defect: links bound the time of children of the root alone, and DRAM that of
        leaves and of children of the root
    streamed_bytes : capacity of every buffer through which a layer streams its weights, anew at each run,
        where no partition leaves enough for all of them; 0 rejects such layers, as the program does
    least_utilization : an allocation of tiles to an S cut below that is not tried; 0.75 in the program
    result_bytes : capacity of every buffer that is reserved for results
    """

    weight_shift: bool = True
    split_root_weights_once: bool = False
    free_concatenation: bool = False
    idle_tiles_receive: bool = False
    segment_bounds_only: bool = False
    streamed_bytes: int = 64 * 1024
    least_utilization: float = 0.75
    result_bytes: int = 10 * 1024


DEFECTS = ("split_root_weights_once", "free_concatenation", "idle_tiles_receive", "segment_bounds_only")
"""Names of the fields of `Rules` that are defects of the released program."""


def rules_with(*names: str) -> Rules:
    """The paper's rules with some defects of the program.

    Raises
    ------
    ValueError : for a name that is none of `DEFECTS`
    """
    unknown = set(names) - set(DEFECTS)
    if unknown:
        raise ValueError(f"{min(unknown)!r}: expected some of {', '.join(DEFECTS)}")
    changed: dict[str, Any] = {rule.name: True for rule in fields(Rules) if rule.name in names}
    return Rules(**changed)


ROOMS = 16
"""Part of a small buffer that `in_small_buffers` gives to streamed weights, and to results."""


def in_small_buffers(rules: Rules, buffer_bytes: int) -> Rules:
    """The rules with at most a sixteenth of a buffer each for streamed weights and for results.

    SET's own capacities suit buffers of 1 MB; they would fill one of 32 kB.
    """
    most = buffer_bytes // ROOMS
    streamed, results = min(rules.streamed_bytes, most), min(rules.result_bytes, most)
    return replace(rules, streamed_bytes=streamed, result_bytes=results)


PUBLISHED = replace(rules_with(*DEFECTS), streamed_bytes=0)
"""What the released program computes."""
