"""How all plots look: fonts, sizes, and colours that colour-blind readers can distinguish."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.foundation.disk import check_writable, suffix_error, write_file
from tilewright.foundation.extras import MATPLOTLIB

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".pdf", ".svg")
WIDTH = 7.0
"""Of a plot over both columns of a paper, inches."""

#: M. Okabe and K. Ito, "Color Universal Design" (2008), without yellow, which is too light for lines.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#666666")
TENSORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
INK = "#101418"
"""Limits, and what else is no series."""
SHARED = "#B0B0B0"
"""What belongs to no tensor in particular."""
LAYERS = (*PALETTE[:6], "#8C6BB1", "#41AB5D", "#B8860B", "#C51B8A", "#5DA5A4")
"""Of layers in the order of a network; neighbours differ, and eleven layers later they come again."""
LOADS = ("#BFD7EA", "#8FBFE0", "#5B9FD0", "#FDB96B", "#F58B3C", "#DD5522", "#B02A0A")
"""From little to much, on light and dark pages."""
DASHES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D")

_SETTINGS: dict[Any, Any] = {
    "font.size": 9.0,
    "font.family": "sans-serif",
    "axes.titlesize": 9.0,
    "figure.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "pdf.fonttype": 42,  # text stays text
    "svg.fonttype": "none",
}


def check_plot_file(path: Path) -> None:
    """Raise ``InputError`` for a suffix that no plot can have, or a file that cannot be written."""
    if path.suffix.lower() not in SUFFIXES:
        raise suffix_error(path, SUFFIXES)
    check_writable(path)
    matplotlib_or_error(str(path))


def matplotlib_or_error(where: str = "--plot") -> None:
    """Raise ``InputError`` about a file or flag where matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MATPLOTLIB.missing(where) from None


def canvas(
    columns: int = 1, height: float = 3.0, rows: int = 1, *, sharex: bool = False, sharey: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure of this style with its axes, row by row.

    Parameters
    ----------
    columns, rows : of axes in the figure
    height : inches
    sharex, sharey : whether the axes have one scale
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey)
    return figure, list(axes.flat)


def save(draw: Callable[[], Figure], path: Path) -> None:
    """Draw in this style and write the figure; raises ``OutputError``."""
    from matplotlib import rc_context

    with rc_context(_SETTINGS):
        write_figure(draw(), path, 200)


def write_figure(figure: Figure, path: Path, dots: int) -> None:
    """Write a figure in the format of the file's suffix, whole or not at all; raises ``OutputError``.

    Parameters
    ----------
    dots : per inch
    """
    stream = io.BytesIO()
    figure.savefig(stream, format=path.suffix[1:].lower(), dpi=dots)
    write_file(path, stream.getvalue())


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour per name; they repeat beyond seven, with other dashes."""
    return {name: PALETTE[index % len(PALETTE)] for index, name in enumerate(names)}


def layer_colour(index: int) -> str:
    """The colour of a network's layer."""
    return LAYERS[index % len(LAYERS)]


def readable_on(colour: Any) -> str:
    """Black or white, whichever has the higher contrast to a colour that matplotlib knows."""
    from matplotlib.colors import to_rgb

    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if luminance > 0.179 else "white"


def load_colour(share: float) -> str:
    """The colour of a load as a share of the largest one."""
    return LOADS[min(len(LOADS) - 1, max(0, int(share * len(LOADS))))]


def tensor_colours(names: Sequence[str]) -> dict[str, str]:
    """A colour per tensor, and the one of what belongs to none under the empty name."""
    return {"": SHARED, **{name: TENSORS[index % len(TENSORS)] for index, name in enumerate(names)}}


def dashes(names: Sequence[str]) -> dict[str, str]:
    """A line style per name."""
    return {name: DASHES[index // len(PALETTE) % len(DASHES)] for index, name in enumerate(names)}


def markers(names: Sequence[str]) -> dict[str, str]:
    """A marker per name; seven names share one."""
    return {name: MARKERS[index // len(PALETTE) % len(MARKERS)] for index, name in enumerate(names)}


def measured(axis: Axis, label: str, unit: str) -> None:
    """An axis of quantities in a unit, which stands at its numbers with the prefix that fits."""
    from matplotlib.ticker import EngFormatter

    axis.set_major_formatter(EngFormatter(unit=unit, sep=" "))
    axis.set_label_text(label)


def percent_axis(axis: Axes, label: str) -> None:
    """A vertical axis of shares from 0 to 100 %."""
    from matplotlib.ticker import PercentFormatter

    axis.set_ylim(0, 1.02)
    axis.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0, symbol=" %"))
    axis.set_ylabel(label)


def logarithmic(axis: Axes) -> None:
    """A logarithmic horizontal axis with plain numbers at 1, 2, 5 of every decade, or at 1 alone."""
    from matplotlib.ticker import FuncFormatter

    axis.set_xscale("log")
    _few_ticks(axis.xaxis)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def logarithmic_quantities(axis: Axis, label: str, unit: str) -> None:
    """A logarithmic axis of quantities whose plot is drawn, with a few numbers in units that fit."""
    measured(axis, label, unit)
    _few_ticks(axis)


def _few_ticks(axis: Axis) -> None:
    """Ticks at 1, 2, 5 of every decade, or at 1 alone where there are many."""
    from matplotlib.ticker import LogLocator, NullFormatter

    least, most = sorted(axis.get_view_interval())
    axis.set_major_locator(LogLocator(subs=(1.0,) if most > 150 * least else (1.0, 2.0, 5.0), numticks=20))
    axis.set_minor_formatter(NullFormatter())
