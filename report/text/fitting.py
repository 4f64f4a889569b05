"""Tables that fit narrow terminals: nothing is cut, columns that have no room stand below the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table
from rich.text import Text

_LEAST = 14
"""Columns that a folded name takes at least, where it is as long."""


class FittingTable(Table):
    """A table that becomes several below each other where it is too wide, each with the names of the rows.

    Parameters
    ----------
    names : how many of the first columns name a row
    """

    names: int = 1

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = [self._natural(column) for column in self.columns]
        available = options.max_width
        if sum(widths) - self.gap <= available or len(self.columns) <= self.names:
            yield from super().__rich_console__(console, options)
            return
        lead = self._lead(widths, available)
        for number, group in enumerate(self._groups(widths, available - sum(lead))):
            if number:
                yield Text()
            yield from self._part(lead, group, [widths[index] for index in group], available).plain(
                console, options
            )

    def plain(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table as it is."""
        return super().__rich_console__(console, options)

    @property
    def gap(self) -> int:
        """Spaces between columns."""
        return self.padding[1]

    def _natural(self, column: Column) -> int:
        texts = [column.header, *column.cells]
        lines = (line for text in texts for line in (str(text).split("\n") or [""]))
        return max((cell_len(line) for line in lines), default=0) + self.gap

    def _lead(self, widths: Sequence[int], available: int) -> list[int]:
        """Widths of the columns of names: as wide as they are where that takes no table more, else folded."""
        natural = list(widths[: self.names])
        widest = max(widths[self.names :]) - self.gap
        least = [min(width, _LEAST + self.gap) for width in natural]
        if sum(least) + widest > available:
            least = [min(width, max((available - widest) // self.names, _LEAST // 2)) for width in natural]

        def tables(lead: Sequence[int]) -> int:
            return len([*self._groups(widths, available - sum(lead))])

        lead, fewest = least, tables(least)
        for place in reversed(range(self.names)):
            for width in range(natural[place], lead[place], -1):
                wider = [*lead[:place], width, *lead[place + 1 :]]
                if sum(wider) + widest <= available and tables(wider) == fewest:
                    lead = wider
                    break
        return lead

    def _groups(self, widths: Sequence[int], available: int) -> Iterator[list[int]]:
        """Indices of columns that stand side by side."""
        group: list[int] = []
        taken = -self.gap
        for index in range(self.names, len(widths)):
            if group and taken + widths[index] > available:
                yield group
                group, taken = [], -self.gap
            group.append(index)
            taken += widths[index]
        yield group

    def _part(
        self, lead: Sequence[int], group: Sequence[int], widths: Sequence[int], available: int
    ) -> FittingTable:
        part = copy(self)
        part.columns = []
        left = available - sum(lead)
        for place, (index, width) in enumerate([*enumerate(lead), *zip(group, widths, strict=True)]):
            column = copy(self.columns[index])
            column._index = place
            column.overflow = "fold"
            column.min_width = None
            if index < self.names:
                column.no_wrap = False
                column.width = max(1, width - self.gap)
            else:
                column.no_wrap = width - self.gap <= left
                column.width = max(1, min(width - self.gap, left))
            part.columns.append(column)
        return part
