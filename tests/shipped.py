"""Documents held against the schemas that are shipped."""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from tilewright.report.records.schemas import RESULT, result_schema


@cache
def validator(file: str) -> Draft202012Validator:
    """The validator of one kind of document; its schema is checked once."""
    schema = result_schema(file)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def follows_schema(document: Any, file: str = RESULT) -> None:
    """Raise ``jsonschema.ValidationError`` where a document is not as its schema says."""
    validator(file).validate(document)
