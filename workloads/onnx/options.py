"""How an ONNX model is imported, and how errors recommend it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

BRANCH, TRIP = "branch", "trip"
"""A reason ends with one of them and a node's name, ``{branch:NAME}``, where it recommends a choice."""
_CHOICE = re.compile(r"\{(branch|trip):(.*)\}$", re.DOTALL)
Asker = Literal["flags", "arguments", "fields"]
_SAMPLES = {"dim": "224", "branch": "then", "trip": "8"}
_SIGN = "is not supported"


def is_certain(reason: str) -> bool:
    """Whether a reason holds whatever the sizes of the inputs are."""
    return _SIGN in reason or "condition depends on the data" in reason


@dataclass(frozen=True, slots=True)
class OnnxOptions:
    """What a user may say of an ONNX model.

    Parameters
    ----------
    dims : sizes of open axes of its inputs, by symbol or by input and axis
    skip : leave out nodes that are not supported, and say so, instead of refusing the model
    branches : ``then`` or ``else``, by name of a node ``If`` or by glob pattern
    trips : rounds, by name of a node ``Loop`` or ``Scan`` or by glob pattern
    stored_widths : let layers state the bits of elements as a quantised model stores them
    asker : how these are given to who imports the model: flags of a verb, arguments of a function, fields of
        a workload's file; ``None`` where they cannot be given, so that no error recommends them
    """

    dims: Mapping[str, int] = field(default_factory=dict)
    skip: bool = False
    branches: Mapping[str, str] = field(default_factory=dict)
    trips: Mapping[str, int] = field(default_factory=dict)
    asker: Asker | None = None
    stored_widths: bool = False

    @property
    def given(self) -> str | None:
        """The first of them that differs from the default, as a flag."""
        named = {"--dim": self.dims, "--branch": self.branches, "--trip": self.trips}
        named["--skip-unsupported"] = self.skip  # type: ignore[assignment]
        named["--stored-widths"] = self.stored_widths  # type: ignore[assignment]
        return next((flag for flag, value in named.items() if value), None)

    def hint(self, what: str, names: Collection[str]) -> str:
        """How the caller sets sizes, branches or rounds, in brackets behind a message."""
        if self.asker is None or not names:
            return ""
        sample = _SAMPLES[what]
        if self.asker == "flags":
            return f" ({' '.join(f'--{what} {_quoted(name)}={sample}' for name in names)})"
        values = repr(sample) if what == "branch" else sample
        inside = ", ".join(f"{name!r}: {values}" for name in names)
        plural = "branches" if what == "branch" else f"{what}s"
        if self.asker == "arguments":
            return f" ({plural}={{{inside}}})"
        return f" ({plural}: {{{inside}}} in a workload's file)"

    @property
    def skip_hint(self) -> str:
        """How the caller leaves out what is not supported."""
        ways = {
            "flags": "--skip-unsupported",
            "arguments": "skip=True",
            "fields": "skip: true in a workload's file",
        }
        return "" if self.asker is None else f" ({ways[self.asker]} leaves them out)"

    def spelled(self, reason: str) -> str:
        """A reason with the choice that it recommends as the caller writes it."""
        return _CHOICE.sub(lambda match: self.hint(match[1], [match[2]]), reason)


def _quoted(name: str) -> str:
    return f"'{name}'" if set(name) & set(" *?[]$&;|<>()") else name
