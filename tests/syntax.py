"""Syntax trees of source files, parsed once in each process of a test run."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


def syntax_of(path: Path) -> ast.Module:
    """The syntax tree of a file, which nobody changes; links lead to the same tree."""
    return _parsed(path.resolve())


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
