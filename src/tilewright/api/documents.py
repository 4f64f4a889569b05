"""Documents of every kind: read back, and checked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.api.arguments import SearchRequest, interruptible, read_budget
from tilewright.api.checked import Check
from tilewright.api.mapping.checking import Reported, check_mappings
from tilewright.api.mapping.exploration_check import check_exploration
from tilewright.api.mapping.exploration_document import ExplorationDocument
from tilewright.api.mapping.fusion import FusedResult
from tilewright.api.mapping.fusion_check import check_fused
from tilewright.api.mapping.result import MappingDocument, MappingResult
from tilewright.api.mapping.sweep_check import check_sweep
from tilewright.api.mapping.sweep_document import Sweep
from tilewright.api.scheduling.checking import check_schedules
from tilewright.api.scheduling.contest import Contest, check_contest
from tilewright.api.scheduling.plan import Codesign, Plan
from tilewright.api.scheduling.tiled_plan import TiledPlan
from tilewright.formulation.limits import Limits
from tilewright.formulation.stopping import Stop
from tilewright.foundation.errors import InputError, located_in
from tilewright.report.records.files import read_data
from tilewright.report.records.kinds import AnyRecord, parse_any
from tilewright.report.records.mapping.document import ResultDocument
from tilewright.report.records.mapping.explore import ExploreDocument
from tilewright.report.records.mapping.fused_document import FusedDocument
from tilewright.report.records.mapping.sweep import SweepDocument
from tilewright.report.records.scheduling.herald.document import ScheduleDocument
from tilewright.report.records.scheduling.tiled.compare import CompareDocument
from tilewright.report.records.scheduling.tiled.document import PlanDocument

Document = MappingDocument | ExplorationDocument | Sweep | FusedResult | Plan | TiledPlan | Codesign | Contest


def load(path: str | os.PathLike[str]) -> Document:
    """Read a document that was saved, or that the command line wrote.

    Returns
    -------
    A `MappingDocument`, `ExplorationDocument`, `Sweep`, `FusedResult`, `Plan`, `TiledPlan`, `Codesign` or
    `Contest`

    Raises
    ------
    InputError : for a file that cannot be read or is no document, naming the field
    """
    return document_of(parsed(read_data(Path(path)), str(path)), str(path))


def document_of(record: AnyRecord, where: str) -> Document:
    """What shows a record, and writes its files.

    Parameters
    ----------
    where : what errors call it
    """
    if isinstance(record, ResultDocument):
        return MappingDocument(record, where)
    if isinstance(record, PlanDocument):
        return TiledPlan(record)
    if isinstance(record, CompareDocument):
        return Contest(record, where)
    if isinstance(record, ExploreDocument):
        return ExplorationDocument(record, where)
    if isinstance(record, FusedDocument):
        return FusedResult(record, where)
    if isinstance(record, SweepDocument):
        return Sweep(record, where)
    return Plan(record) if isinstance(record, ScheduleDocument) else Codesign(record)


def check(
    document: Document | MappingResult | Mapping[str, Any] | str | os.PathLike[str],
    *,
    prove: bool = False,
    stop: Stop | None = None,
    threads: int | None = None,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
) -> Check:
    """Compute every claim of a document anew from the document alone; the same as ``tilewright check``.

    Parameters
    ----------
    document : or the path of one, or its plain data as ``json.load`` gives them
    prove : ask other solvers for anything below the claimed bounds
    stop : ``seconds(60)``, for all of that together
    threads, seed : of those solvers
    store : with the plans of a contest; by default the one that its document names

    Raises
    ------
    InputError : for what is no document, a machine or objective that is none, or a store that is none
    """
    loaded = _loaded(document)
    where = getattr(loaded, "where", "document")
    kept = None if store is None else Path(store)
    if not prove:
        return checked(loaded.record, where, store=kept)
    budget = read_budget(stop, threads, seed)
    with interruptible() as event:
        limits = SearchRequest(None, budget, event).limits(gap=0.0)  # a proof leaves none
        return checked(loaded.record, where, limits, store=kept)


def _loaded(document: object) -> Document:
    """The document that an argument is, holds or names."""
    if isinstance(document, str | os.PathLike):
        return load(document)
    if isinstance(document, MappingResult):
        return document.document
    if isinstance(document, Mapping):
        return document_of(parsed(document, "document"), "document")
    if isinstance(document, Document):
        return document
    raise InputError(
        "document", None, f"expected a document, its data or its path, got {type(document).__name__}"
    )


def parsed(data: Any, where: str) -> AnyRecord:
    """The document that plain data hold; raises ``InputError``, which names the file."""
    with located_in(where):
        return parse_any(data, where)


def checked(
    record: AnyRecord,
    where: str,
    limits: Limits | None = None,
    reported: Reported | None = None,
    store: Path | None = None,
) -> Check:
    """Check a document of any kind.

    Parameters
    ----------
    limits : of all second opinions together; ``None`` to ask for none
    reported : called with every second opinion on a layer
    store : with the plans of a contest; ``None`` for the one that its document names

    Raises
    ------
    InputError : naming the file, for what it holds and cannot be
    """
    with located_in(where):
        return _checked(record, where, limits, reported, store)


def _checked(
    record: AnyRecord, where: str, limits: Limits | None, reported: Reported | None, store: Path | None
) -> Check:
    if isinstance(record, ResultDocument):
        return check_mappings(record, where, limits, reported)
    if isinstance(record, CompareDocument):
        return check_contest(record, where, limits, store)
    if isinstance(record, ExploreDocument):
        return check_exploration(record, where, limits, reported)
    if isinstance(record, SweepDocument):
        return check_sweep(record, where, limits, reported)
    if isinstance(record, FusedDocument):
        return check_fused(record, where, limits, reported)
    return check_schedules(record, where, limits)
