"""A sheet to draw on: rectangles, lines and texts as SVG elements, which know how wide a text is."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

INK, SOFT, PAPER, ROW, LINE = "#1b1f24", "#5c6670", "#ffffff", "#f4f8fb", "#8a949e"
MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
SIZE = 12
"""Of texts, pixels."""
LETTER = 0.605
"""Width of a letter of a monospaced font, of its size."""
MARGIN = 16


def text_width(text: str, size: int = SIZE) -> float:
    """Pixels that a text takes."""
    return LETTER * size * len(text)


class Canvas:
    """A drawing that grows; coordinates and sizes are pixels.

    Parameters
    ----------
    title : what the drawing shows, for readers who do not see it
    """

    def __init__(self, title: str) -> None:
        names = {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria-label": title}
        self._root = ElementTree.Element("svg", names)
        self._into = self._root

    def group(self, **data: object) -> ElementTree.Element:
        """What is drawn from now on belongs to a group with these data, until `ungroup`."""
        self._into = ElementTree.SubElement(self._root, "g", _data(data))
        return self._into

    def ungroup(self) -> None:
        """What is drawn from now on belongs to no group."""
        self._into = self._root

    def rectangle(
        self,
        box: tuple[float, float, float, float],
        fill: str = PAPER,
        stroke: str = INK,
        dash: str = "",
        **data: object,
    ) -> ElementTree.Element:
        """A rectangle.

        Parameters
        ----------
        box : left, top, width and height
        fill, stroke : colours
        dash : pattern of the outline; empty for a full one
        data : what it stands for
        """
        left, top, width, height = box
        attributes = {"x": _number(left), "y": _number(top), "width": _number(width)}
        attributes |= {"height": _number(height), "fill": fill, "stroke": stroke, "class": _class(fill)}
        if dash:
            attributes["stroke-dasharray"] = dash
        return ElementTree.SubElement(self._into, "rect", attributes | _data(data))

    def line(self, ends: tuple[float, float, float, float], stroke: str = LINE) -> None:
        """A line, from x and y to x and y."""
        names = zip(("x1", "y1", "x2", "y2"), map(_number, ends), strict=True)
        ElementTree.SubElement(self._into, "line", dict(names) | {"stroke": stroke})

    def text(
        self,
        place: tuple[float, float],
        text: str,
        fill: str = INK,
        bold: bool = False,
        size: int = SIZE,
        **data: object,
    ) -> float:
        """A text on its base line; gives its width.

        Parameters
        ----------
        place : left end and base line
        fill, bold, size : colour, weight and pixels
        data : what it states
        """
        attributes = {"x": _number(place[0]), "y": _number(place[1]), "fill": fill, "font-family": MONO}
        attributes |= {"font-size": str(size), "class": _class(fill), "xml:space": "preserve"}
        if bold:
            attributes["font-weight"] = "bold"
        ElementTree.SubElement(self._into, "text", attributes | _data(data)).text = text
        return text_width(text, size)

    def finished(self, width: float, height: float) -> Panel:
        """The drawing in a sheet of that size."""
        return Panel(self._root, width, height)


class Panel:
    """A finished drawing, alone or beside others.

    Parameters
    ----------
    root : its elements
    width, height : pixels
    """

    def __init__(self, root: ElementTree.Element, width: float, height: float) -> None:
        self.root = root
        self.width = width
        self.height = height

    def svg(self) -> str:
        """As text for a page."""
        size = f"{_number(self.width)} {_number(self.height)}"
        self.root.set("viewBox", f"0 0 {size}")
        self.root.set("width", _number(self.width))
        return ElementTree.tostring(self.root, encoding="unicode")


def side_by_side(title: str, columns: Sequence[Sequence[Panel]]) -> Panel:
    """Panels in columns on white paper."""
    canvas = Canvas(title)
    widths = [max(panel.width for panel in column) for column in columns]
    heights = [sum(panel.height + MARGIN for panel in column) for column in columns]
    width, height = sum(widths) + MARGIN * (len(columns) + 1), max(heights) + MARGIN
    canvas.rectangle((0, 0, width, height), PAPER, "none")
    sheet = canvas.finished(width, height)
    left = float(MARGIN)
    for column, step in zip(columns, widths, strict=True):
        top = float(MARGIN)
        for panel in column:
            moved = ElementTree.SubElement(
                sheet.root, "g", {"transform": f"translate({_number(left)} {_number(top)})"}
            )
            moved.extend(panel.root)
            top += panel.height + MARGIN
        left += step + MARGIN
    return sheet


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _data(data: dict[str, object]) -> dict[str, str]:
    return {f"data-{name.replace('_', '-')}": str(value) for name, value in data.items() if value is not None}


def _class(fill: str) -> str:
    """How a page's style names a colour, to replace it in the dark."""
    names = {INK: "ink", SOFT: "soft", PAPER: "paper", ROW: "row", LINE: "line"}
    return f"drawn-{names.get(fill, 'own')}"
