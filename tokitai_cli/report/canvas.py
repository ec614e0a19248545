"""What pictures are drawn on, by matplotlib: SVG for HTML, pages of a PDF for LaTeX."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tokitai_cli.core.model.wording import visible
from tokitai_cli.report.raw import Raw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Draw = Callable[["Axes"], None]

# Six that are told apart without red and green, and on white as on black (Okabe and Ito).
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tokitai",
    "text.parse_math": False,
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
# In SVG, ink of this colour becomes that of the page around it, which may be light or dark.
_INK = "#010203"
_INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
_ID = re.compile(r'(\bid="|url\(#|href="#)')


class Figure(msgspec.Struct, frozen=True):
    """A picture: what it shows in words, its size in inches, and what draws it."""

    caption: str
    width: float
    height: float
    draw: Draw


class Shown(msgspec.Struct, frozen=True):
    """A picture as SVG."""

    caption: str
    svg: Raw


def svgs(figures: Sequence[Figure]) -> list[Shown]:
    """The pictures as SVG elements whose ids are their own."""
    return [Shown(one.caption, _svg(one, at)) for at, one in enumerate(figures)]


def pdf(figures: Sequence[Figure]) -> bytes:
    """The pictures as pages of one PDF."""
    import matplotlib as mpl
    from matplotlib.backends.backend_pdf import PdfPages

    data = io.BytesIO()
    with mpl.rc_context(_STYLE), PdfPages(data, metadata={"CreationDate": None}) as pages:
        for one in figures:
            pages.savefig(_drawn(one), bbox_inches="tight")
        if not figures:
            pages.savefig(_drawn(Figure("", 4, 1, lambda axes: axes.set_axis_off())))
    return data.getvalue()


def _drawn(one: Figure) -> Any:
    """The picture; not by pyplot, which looks for a display and keeps state."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(one.width, one.height))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font lacks
        one.draw(canvas.add_subplot())
        canvas.canvas.draw()
    return canvas


def _svg(one: Figure, at: int) -> Raw:
    import matplotlib as mpl

    data = io.StringIO()
    style = _STYLE | dict.fromkeys(_INKED, _INK)
    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        canvas = _drawn(one)
        canvas.savefig(
            data, format="svg", bbox_inches="tight", transparent=True, metadata={"Date": None}
        )
    text = data.getvalue()
    text = text[text.index("<svg") :].replace(_INK, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return Raw(_ID.sub(rf"\g<1>f{at}-", text))


def name(text: str, most: int = 40) -> str:
    """`text` as a label: what nobody sees as an escape, and of `most` characters."""
    line = visible(text)
    return line if len(line) <= most else f"{line[: most // 2]}...{line[-most // 2 :]}"


def legend(axes: Axes) -> None:
    """Names above the picture, where no bar is."""
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderpad=0)


def logarithmic(axis: Any, set_scale: Callable[[str], object]) -> None:
    """A logarithmic axis with plain numbers: its own are formulas, which names are not parsed as."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    set_scale("log")
    low, high = axis.get_view_interval()
    if high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
    axis.set_minor_formatter(NullFormatter())
