"""The head of every document: which kind it is, which verb wrote it, and whether it is complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar, get_args

from pydantic import ConfigDict, Field

from tilewright.foundation.errors import InputError
from tilewright.report.records.mapping.operator import Record

SchemaName = TypeVar("SchemaName", bound=str)
CommandName = TypeVar("CommandName", bound=str)


class Document(Record, Generic[SchemaName, CommandName]):
    """Base of whole documents, with the names of their schema and of the verb as types.

    A document's fields stand in the sequence head, question, claims, and everything else; its bases
    are named from the last to the first.
    """

    model_config = ConfigDict(serialize_by_alias=True, populate_by_name=True)

    schema_name: SchemaName = Field(alias="schema")
    command: CommandName
    complete: bool

    @classmethod
    def head(cls) -> dict[str, Any]:
        """The fields that all documents of the kind share."""
        (command,) = get_args(cls.model_fields["command"].annotation)
        return {"schema": cls.schema_text(), "command": command}

    @classmethod
    def schema_text(cls) -> str:
        """The name of the kind with its version, such as ``tilewright.result/1``."""
        (name,) = get_args(cls.model_fields["schema_name"].annotation)
        return str(name)

    @classmethod
    def is_kind_of(cls, data: object) -> bool:
        """Whether plain data look like a document of this kind, of whatever version."""
        kind = cls.schema_text().partition("/")[0]
        return isinstance(data, dict) and str(data.get("schema", "")).startswith(f"{kind}/")

    def to_data(self) -> dict[str, Any]:
        """Plain data in the sequence of the contract."""
        return self.model_dump()


AnyDocument = Document[Any, Any]
Whole = TypeVar("Whole", bound=AnyDocument)


def kind_of(data: object, kinds: Sequence[type[Whole]], where: str) -> type[Whole]:
    """Which of some kinds plain data are of; raises ``InputError`` for another kind or version."""
    for kind in kinds:
        if isinstance(data, dict) and data.get("schema") == kind.schema_text():
            return kind
    near = [kind for kind in kinds if kind.is_kind_of(data)] or kinds
    expected = " or ".join(kind.schema_text() for kind in near)
    if not isinstance(data, dict) or "schema" not in data:
        raise InputError(where, "schema", f"missing, expected {expected}")
    raise InputError(where, "schema", f"expected {expected}, got {data['schema']!r}")
