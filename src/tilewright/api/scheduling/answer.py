"""What answers of scheduling share: the document is the record."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.api.claimed import Claimed
from tilewright.foundation.disk import check_writable, write_file
from tilewright.report.records.files import json_text, output_format
from tilewright.report.text.quantities import gap_text

if TYPE_CHECKING:
    from tilewright.report.records.scheduling.herald.document import CodesignDocument, ScheduleDocument
    from tilewright.report.records.scheduling.tiled.document import PlanDocument

    SchedulingDocument: TypeAlias = ScheduleDocument | CodesignDocument | PlanDocument


class SchedulingAnswer(Claimed):
    """What plans and co-designs share: the whole document is the record.

    Parameters
    ----------
    record : the document's content
    """

    record: SchedulingDocument

    @property
    def claims(self) -> SchedulingDocument:
        """The record of what is claimed."""
        return self.record

    def to_dict(self) -> dict[str, Any]:
        """The document as plain data: what the command line prints with ``--format json``."""
        return self.record.to_data()

    def to_text(self, form: str = "json") -> str:
        """The document as a file holds it; the one format is ``json``."""
        return json_text(self.record.to_data())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document as JSON.

        Raises
        ------
        InputError : for another suffix than .json, or a file that cannot be written to
        OutputError : where writing fails
        """
        path = Path(path)
        output_format(path, "", ("json",))
        check_writable(path)
        write_file(path, self.to_text())

    def _claim_text(self) -> str:
        gap = "" if self.gap is None else f", gap {gap_text(self.gap)}"
        return f"{self.record.status}, {self.record.objective} {self.value}{gap}"
