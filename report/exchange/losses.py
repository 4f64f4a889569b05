"""What a conversion does not carry over: each thing with its place in the file and what it changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

SCHEMA = "tilewright.conversion/1"


class Effect(StrEnum):
    """What differs for want of a thing."""

    COST = "cost"  #: counts, energy or cycles of a mapping
    SPACE = "space"  #: which mappings are allowed
    NONE = "none"  #: nothing that is computed here


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing that does not carry over.

    Parameters
    ----------
    where : the file, or what stands for one
    line : its line, counted from 1; ``None`` where there are no lines
    field : the way to it, such as ``architecture.nodes[3].attributes.width``
    message : what is lost, and what stands in its place
    """

    where: str
    line: int | None
    field: str | None
    effect: Effect
    message: str

    @property
    def text(self) -> str:
        """One line."""
        place = self.where if self.line is None else f"{self.where}:{self.line}"
        named = f"{place}: {self.field}" if self.field else place
        return f"[{self.effect}] {named}: {self.message}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "file": self.where,
            "line": self.line,
            "field": self.field,
            "effect": self.effect.value,
            "message": self.message,
        }


@dataclass(slots=True)
class Ledger:
    """The losses of one conversion, in the order in which they were found."""

    losses: list[Loss] = field(default_factory=list)

    def add(self, loss: Loss) -> None:
        """Note a loss once."""
        if loss not in self.losses:
            self.losses.append(loss)

    def reported(self, where: str, effect: Effect, message: str, field: str | None = None) -> None:
        """Note a loss of something that has no line, as of a machine in memory.

        Parameters
        ----------
        where : the file, or the name of what is in memory
        effect : what the loss changes: nothing, costs or the space
        message : what is lost, as a sentence without its beginning
        field : dotted path inside ``where``
        """
        self.add(Loss(where, None, field, effect, message))

    @property
    def grave(self) -> list[Loss]:
        """Those that change an answer."""
        return [loss for loss in self.losses if loss.effect is not Effect.NONE]
