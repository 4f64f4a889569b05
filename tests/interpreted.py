"""Kernels as plain Python, where an index beyond an array is an error; machine code reads on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tilewright.foundation.compiled import CompiledFunction


@contextmanager
def interpreted() -> Iterator[None]:
    """Within this, compiled functions and those that they call run as Python."""

    def call(function: CompiledFunction, *arguments: Any, **named: Any) -> Any:
        return function.source.function(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompiledFunction, "__call__", call)
        yield
