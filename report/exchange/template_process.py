"""The process that renders a template: run as a script, with what it needs as JSON on its input.

Jinja's sandbox keeps templates from Python; this process has limits of time, memory and size besides.  The
answer is a byte that says what it is, and the text or the reason.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
from typing import Any

import jinja2
from jinja2.sandbox import SandboxedEnvironment

TEXT, FAILED = b"t", b"f"


class _Folder(jinja2.BaseLoader):
    """Files of one folder, links out of it not followed."""

    def __init__(self, folder: str, most: int) -> None:
        self.folder = os.path.realpath(folder)
        self.most = most

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Any]:
        return self.read(template), template, None

    def read(self, name: str) -> str:
        """A file's text; raises ``TemplateError`` for one that lies elsewhere, is too large or is missing."""
        path = os.path.realpath(os.path.join(self.folder, name))
        if os.path.commonpath([path, self.folder]) != self.folder or not os.path.isfile(path):
            raise jinja2.TemplateError(f"{name!r} is no file in the template's folder")
        if os.path.getsize(path) > self.most:
            raise jinja2.TemplateError(f"{name!r} has more than {self.most:,} bytes")
        with open(path, encoding="utf-8") as file:
            return file.read()


def main() -> None:
    """Answer on standard output."""
    asked = json.load(sys.stdin)
    _limit(asked["memory"], asked["seconds"])
    loader = _Folder(asked["folder"], asked["bytes"])
    environment = SandboxedEnvironment(
        loader=loader, undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    )
    environment.globals.update(add_to_path=lambda *_: "", include_text=loader.read, cwd=lambda: ".")
    parts, length = [], 0
    try:
        for part in environment.from_string(asked["text"]).generate():
            parts.append(part)
            length += len(part)
            if length > asked["bytes"]:
                raise jinja2.TemplateError(f"makes more than {asked['bytes']:,} characters")
        answer = TEXT + "".join(parts).encode()
    except jinja2.TemplateSyntaxError as error:
        answer = FAILED + f"{error.lineno}:{error.message}".encode(errors="replace")
    except MemoryError:
        answer = FAILED + b":needs too much memory"
    except Exception as error:
        answer = FAILED + f":{error or type(error).__name__}".encode(errors="replace")
    sys.stdout.buffer.write(answer)


def _limit(memory: int, seconds: int) -> None:
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):  # a system without this limit
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


if __name__ == "__main__":
    main()
