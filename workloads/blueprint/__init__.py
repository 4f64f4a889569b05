"""Networks written down as their papers describe them; shapes are inferred and checked on the way."""

from __future__ import annotations

from tilewright.workloads.blueprint.base import Value
from tilewright.workloads.blueprint.sequences import Blueprint

__all__ = ["Blueprint", "Value"]
