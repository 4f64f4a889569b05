"""Templates of Jinja, as Timeloop's files may be: rendered without code, in a process of its own."""

from __future__ import annotations

import json
import subprocess
from math import ceil
from pathlib import Path

from tilewright.foundation.disk import YAML_BYTES, size_text
from tilewright.foundation.errors import BudgetError, InputError, one_line
from tilewright.foundation.interpreter import python_command, python_environment
from tilewright.foundation.loading import remaining, too_slow

MEMORY = 2**29
"""Bytes of addresses that rendering may take, Python and Jinja included."""
SECONDS = 10.0
_TEXT = b"t"


def rendered(path: Path, text: str) -> str:
    """A template's text with its expressions and statements carried out.

    Templates reach no Python (Jinja's sandbox), no variable that they do not set, and no file outside of
    their folder.  ``include_text(file)`` and ``{% include %}`` bring files of that folder; ``add_to_path``
    does nothing.

    Parameters
    ----------
    path : of the file, whose folder includes may come from
    text : its content

    Raises
    ------
    InputError : naming file and line, for a template that is none or that fails
    BudgetError : for one that takes too long or grows too large
    """
    from tilewright.report.exchange import template_process  # Jinja is loaded where templates are

    where = str(path)
    seconds = min(SECONDS, max(0.0, remaining()))
    asked = {
        "text": text,
        "folder": str(path.parent),
        "bytes": YAML_BYTES,
        "memory": MEMORY,
        "seconds": ceil(seconds) + 1,
    }
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            python_command(template_process.__file__),
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            env=python_environment(),
        )
    except OSError as error:
        raise InputError(
            where, None, f"no process can be started for its template: {one_line(error)}"
        ) from None
    with process:
        try:
            answer, _ = process.communicate(json.dumps(asked).encode(), timeout=seconds)
        except subprocess.TimeoutExpired:
            if remaining() <= 0:
                raise too_slow(where) from None
            raise BudgetError(where, None, f"its template takes longer than {SECONDS:g} s") from None
        finally:
            process.kill()
    kind, told = answer[:1], answer[1:].decode(errors="replace")
    if kind == _TEXT:
        return told
    line, _, reason = told.partition(":")
    if not answer:
        raise BudgetError(where, None, f"its template takes more than {size_text(MEMORY)} or {SECONDS:g} s")
    place = f"{where}:{line}" if line else where
    raise InputError(place, None, f"its template cannot be rendered: {one_line(ValueError(reason))}")
