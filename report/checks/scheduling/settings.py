"""What no search can have been asked for, in documents of schedules and plans."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingABC
from typing import Any

from tilewright.foundation.errors import InputError
from tilewright.foundation.registry import Registry
from tilewright.report.records.scheduling.settings import SearchSettingsRecord


def proves(method: str, methods: Registry[Any]) -> bool:
    """Whether a method claims proofs; an unknown one does not."""
    try:
        return bool(methods.make(method).exact)
    except InputError:
        return False


def settings_faults(
    settings: SearchSettingsRecord, methods: Registry[Any], versions: MappingABC[str, str]
) -> Iterator[str]:
    """Limits out of their range, an unknown method, and a document that does not say what made it.

    Parameters
    ----------
    methods : that may have searched
    versions : of the programs that took part
    """
    try:
        methods.make(settings.method)
    except InputError as error:
        yield f"settings.method: {error.message}"
    if not 0 <= settings.gap <= 1:
        yield f"settings.gap: {settings.gap}, expected from 0 to 1"
    if settings.threads < 1:
        yield f"settings.threads: {settings.threads}, expected at least 1"
    if settings.seed < 0:
        yield f"settings.seed: {settings.seed}, expected at least 0"
    if settings.time_limit_s is not None and settings.time_limit_s <= 0:
        yield f"settings.time_limit_s: {settings.time_limit_s}, expected more than 0"
    if "tilewright" not in versions:
        yield "versions: that of tilewright is missing"
