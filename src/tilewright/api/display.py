"""How objects of the interface are displayed: as text, and in notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.report.text.rendering import rendered_html, rendered_lines


class Displayed:
    """Something with views: ``print`` shows them as text, a notebook as a table of its own."""

    __slots__ = ()

    def views(self) -> Sequence[Any]:
        """What there is to see, as Rich renderables."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join(rendered_lines(self.views()))

    def _repr_html_(self) -> str:
        """For notebooks: the same as ``print`` shows, with colours."""
        return rendered_html(self.views())

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """For notebooks: plain text and HTML."""
        return {"text/plain": str(self), "text/html": self._repr_html_()}
