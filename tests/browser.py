"""A real browser for tests of pages: what it shows, says and complains about."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
CHECK = Path(__file__).with_name("page_check.js")
_READABLE, _LARGE = 4.5, 3.0  # contrast ratios of WCAG 2.2, success criterion 1.4.3, level AA
_PATIENCE = 20_000  # milliseconds


@dataclass
class Seen:
    """What a page is like in one window.

    Parameters
    ----------
    reported : what the script found, see ``page_check.js``
    console : errors and warnings
    tree : role and name of every node of the accessibility tree
    picture : the whole page as PNG
    """

    reported: dict[str, Any]
    console: list[str]
    tree: list[tuple[str, str]]
    picture: bytes = field(repr=False)

    def faint(self) -> list[str]:
        """Texts whose colour is too close to that of the pixels behind them."""
        import numpy as np
        from PIL import Image

        pixels = np.asarray(Image.open(io.BytesIO(self.picture)).convert("RGB")).astype(np.int64)
        faint = []
        for text in self.reported["texts"]:
            left, top, right, bottom = (round(edge) for edge in text["box"])
            piece = pixels[max(0, top) : bottom, max(0, left) : right].reshape(-1, 3)
            if not len(piece):
                continue
            codes = (piece[:, 0] << 16) | (piece[:, 1] << 8) | piece[:, 2]
            values, counts = np.unique(codes, return_counts=True)
            code = int(values[counts.argmax()])
            behind = (code >> 16, code >> 8 & 255, code & 255)
            ratio = contrast(mixed(text["colour"], behind, text["opacity"]), behind)
            if ratio < (_LARGE if text["large"] else _READABLE):
                faint.append(f"{ratio:.2f} {text['what']} ({text['colour']} on {behind})")
        return faint


def mixed(colour: str, behind: Sequence[int], opacity: float) -> tuple[float, ...]:
    """A CSS colour over another one."""
    numbers = [float(number) for number in re.findall(r"[\d.]+", colour)]
    share = opacity * (numbers[3] if len(numbers) > 3 else 1.0)
    return tuple(share * a + (1 - share) * b for a, b in zip(numbers[:3], behind, strict=True))


def contrast(first: Sequence[float], other: Sequence[float]) -> float:
    """The contrast ratio of two colours, as WCAG 2.2 defines it."""

    def luminance(colour: Sequence[float]) -> float:
        parts = [c / 255 for c in colour]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(first), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@contextmanager
def browser(profile: Path) -> Iterator[Any]:
    """A browser with an empty profile in that folder."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        launched = play.chromium.launch_persistent_context(
            str(profile), executable_path=CHROMIUM, args=[*FLAGS], headless=True, ignore_default_args=False
        )
        try:
            yield launched
        finally:
            launched.close()


def look(opened: Any, path: Path, width: int, theme: str, choices: int = 0) -> Seen:
    """Open a page in a window of that width and theme, and measure it.

    Parameters
    ----------
    choices : which entry every list of plots is set to, if it has so many
    """
    page = opened.new_page()
    console: list[str] = []
    page.on(
        "console",
        lambda message: console.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: console.append(str(error)))
    page.on("requestfailed", lambda request: console.append(f"failed: {request.url}"))
    try:
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(path.as_uri(), timeout=_PATIENCE)
        if choices:
            for chooser in page.query_selector_all("select"):
                if len(chooser.query_selector_all("option")) > choices:
                    chooser.select_option(index=choices)
        # a window as high as the page, so that a picture of it moves nothing
        height = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size({"width": width, "height": min(16_000, height)})
        page.wait_for_timeout(300)
        reported = page.evaluate(CHECK.read_text())
        session = opened.new_cdp_session(page)
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
        tree = [
            (node.get("role", {}).get("value", ""), node.get("name", {}).get("value", ""))
            for node in nodes
            if not node.get("ignored")
        ]
        return Seen(reported, console, tree, page.screenshot())
    finally:
        page.close()
