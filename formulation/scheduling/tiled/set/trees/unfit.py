"""What stands in the place of a cost where a machine cannot run a tree."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.foundation.errors import TilewrightError


@dataclass(frozen=True, slots=True)
class Unfit:
    """A valid tree or segment that does not fit the machine.

    Parameters
    ----------
    reason : the node that the machine cannot run, and why: too few tiles, a poor allocation, or full buffers
    """

    reason: str


class UnfitTreeError(TilewrightError, ValueError):
    """A valid tree that a machine cannot run; the message is the reason of an `Unfit`."""
