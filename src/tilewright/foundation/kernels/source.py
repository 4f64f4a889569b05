"""The text of a kernel, taken apart once."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from functools import cached_property
from typing import Any

from tilewright.foundation.kernels.types import KernelTypeError
from tilewright.foundation.kernels.values import Value, literal

_OWN: dict[str, Any] = {
    name: value
    for name, value in vars(__import__("builtins")).items()
    if name in ("len", "max", "min", "range", "zip", "int", "float", "bool", "abs", "None", "True", "False")
}


class Source:
    """A function that is to be compiled.

    Parameters
    ----------
    function : in Python
    inline : whether its statements are written into those of its callers
    ieee : whether floats may be divided by 0
    """

    def __init__(self, function: Callable[..., Any], inline: bool, ieee: bool) -> None:
        self.function, self.inline, self.ieee = function, inline, ieee
        self.name = function.__name__

    @cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        return tuple(self.signature.parameters)

    @cached_property
    def _tree(self) -> ast.FunctionDef:
        tree = ast.parse(textwrap.dedent(inspect.getsource(self.function))).body[0]
        if not isinstance(tree, ast.FunctionDef) or tree.name != self.name:
            raise KernelTypeError(f"{self.name}: its file has changed since it was loaded")
        return tree

    @property
    def body(self) -> list[ast.stmt]:
        return self._tree.body

    @cached_property
    def assigned(self) -> frozenset[str]:
        """Names that are given values."""
        return frozenset(
            node.id
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )

    def place(self, node: ast.stmt) -> str:
        """Where a statement stands."""
        begin = self.function.__code__.co_firstlineno
        return f"{self.function.__module__}.{self.name}, line {begin + node.lineno - 1}"

    def outside(self, name: str) -> Value:
        """What a name means that the function does not set."""
        scope = self.function.__globals__
        if name in scope:
            return literal(scope[name])
        if name in _OWN:
            return literal(_OWN[name])
        raise KernelTypeError(f"{name} is not known here")


class Kernel:
    """What machine code calls: a function that is compiled with its callers.

    Attributes
    ----------
    source : of it
    """

    source: Source
