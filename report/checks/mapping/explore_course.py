"""What an exploration says of its course, against what its designs tell: proofs, rules, searches."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.report.records.mapping.explore import DesignRecord, ExploreDocument

_CELLS = {"searched", "kept", "shared", "carried"}


def course_faults(document: ExploreDocument) -> Iterator[str]:
    """Counts of proofs and searches that no search has which ends with these designs."""
    counting = sum(any((layer.count, layer.least_count)) for layer in document.layers)
    for record in document.designs:
        yield from _proof_faults(record, counting)
    best = document.best
    if best is not None and 0 <= best.index < len(document.designs):
        reported = document.designs[best.index].proven_layers
        proven = sum(
            layer.status == "optimal" and any((layer.count, layer.least_count))
            for layer in best.result.layers
        )
        if reported != proven:
            yield f"designs[{best.index}].proven_layers: {reported}, of its layers {proven} are optimal"
    yield from _search_faults(document)


def _proof_faults(record: DesignRecord, counting: int) -> Iterator[str]:
    """A design's status and rule say of how many layers the optimum is known."""
    here, proven = f"designs[{record.index}]", record.proven_layers
    # Where all layers have a mapping there is a value.
    least, most = 0, counting - (record.value is None and record.status != "infeasible")
    match record.status:
        case "solved":
            least = counting
        case "refused":
            most = 0
        case "discarded" if record.rule == "searched":
            least = 1
        case "discarded" if record.rule:
            most = 0
        case _:
            pass
    if not least <= proven <= most:
        rule = f" by the rule {record.rule}" if record.rule else ""
        wanted = str(least) if least == most else f"{least} to {most}"
        yield f"{here}.proven_layers: {proven}, a design that is {record.status}{rule} has {wanted}"


def _search_faults(document: ExploreDocument) -> Iterator[str]:
    """Every searched design has a cell that was searched or kept, and every carried bound comes from one."""
    designs, cells = document.designs, document.totals.cells
    if not set(cells) <= _CELLS or min(cells.values(), default=0) < 0:
        yield f"totals.cells: {cells}, expected counts of {', '.join(sorted(_CELLS))}"
        return
    machines = [record for record in designs if record.status != "refused"]
    searched = len(machines) - document.totals.unsearched
    answered = cells.get("searched", 0) + cells.get("kept", 0)
    sources = {record.index for record in designs if record.rule == "capped"}
    sources |= {record.carried_from for record in designs if record.carried_from is not None}
    refused = sources - {record.index for record in machines}
    if refused:
        yield f"designs: bounds are carried from {min(refused)}, which is no machine of the grid"
    # A short search for a value is none for a proof, yet its bound may be carried.
    least = 0 if document.settings.values else len(sources - refused)
    if not least <= searched <= len(machines):
        yield (
            f"totals.unsearched: {document.totals.unsearched} of {len(machines)} machines, "
            f"but bounds come from searches of {least}"
        )
    elif searched > answered:
        yield f"totals.cells: {answered} layers searched or kept, but {searched} designs were searched"
    known = sum(record.proven_layers for record in machines)
    if known and not answered:
        yield f"totals.cells: no layer searched or kept, but {known} are proven"
    # Earlier documents do not count what designs share.
    if cells.get("shared") and known > sum(cells.values()):
        yield f"totals.cells: {sum(cells.values())} layers on designs, but {known} are proven"
