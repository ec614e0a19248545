"""Pictures of recorded facts, by matplotlib: SVG for HTML, PDF pages for LaTeX."""

from __future__ import annotations

import io
import math
import re
import statistics
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tokitai_cli.model import queries
from tokitai_cli.model.text import visible
from tokitai_cli.model.verdict import Verdict
from tokitai_cli.report.outline import bins
from tokitai_cli.report.raw import Raw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tokitai_cli.model.batch import BatchIndex
    from tokitai_cli.model.evidence import CaseRecord, Evidence
    from tokitai_cli.model.judged import OutputRecord

Draw = Callable[["Axes"], None]

_MOST_HEATS, _MOST_LINES, _MOST_ROWS, _MOST_NAME = 4, 64, 60, 40
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tokitai",
    "text.parse_math": False,
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_ID = re.compile(r'(\bid="|url\(#|href="#)')
_GOOD, _BAD, _OPEN = "#2a8f4b", "#c0392b", "#a8701c"
_WRONG = {*queries.FAILING, Verdict.BUILD_FAILED, Verdict.INTERNAL_ERROR, Verdict.UNEXPECTED_PASS}


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


def figures_of(found: Evidence) -> list[Figure]:
    """All pictures that the recorded facts of a run give."""
    cases = queries.cases(found)
    outputs = [(case, output) for case in cases for output in case.outputs if output.metrics]
    made = [
        _histograms("error over bound", "bound_histogram", outputs),
        _histograms("error in ulp", "ulp_histogram", outputs),
        *_heats(outputs),
        _times(found, cases),
    ]
    return [one for one in made if one is not None]


def figures_of_index(index: BatchIndex) -> list[Figure]:
    """The verdict matrix of a batch, spec by spec."""
    from tokitai_cli.report.index_outline import outline_index

    return [
        Figure(
            f"{table.spec.name}: worst verdict by variant, shape and device, and by profile",
            2.5 + 0.35 * len(table.profiles),
            0.9 + 0.22 * len(table.rows[:_MOST_ROWS]),
            _matrix(table),
        )
        for table in outline_index(index).tables
        if table.rows
    ]


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
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _drawn(one).savefig(data, format="svg", bbox_inches="tight", metadata={"Date": None})
    text = data.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return Raw(_ID.sub(rf"\g<1>f{at}-", text))


def _name(text: str) -> str:
    line = visible(text)
    return line if len(line) <= _MOST_NAME else f"{line[:_MOST_NAME]}..."


def _histograms(
    what: str, field: str, outputs: Sequence[tuple[CaseRecord, OutputRecord]]
) -> Figure | None:
    """Elements by power of two, summed over the cases of each variant and output."""
    sums: dict[str, dict[str, int]] = {}
    for case, output in outputs:
        mine = sums.setdefault(f"{case.variant}, {output.name}", {})
        for end, count in getattr(output.metrics, field).items():
            mine[end] = mine.get(end, 0) + count
    sums = {name: counts for name, counts in sums.items() if counts}
    if not sums:
        return None
    ends = [end for end, _ in bins({end: 0 for one in sums.values() for end in one})]
    caption = f"Elements by {what}, over all cases; each bar up to the power of two below it"

    def draw(axes: Axes) -> None:
        width = 0.8 / len(sums)
        for at, (name, counts) in enumerate(sums.items()):
            places = [place - 0.4 + (at + 0.5) * width for place in range(len(ends))]
            axes.bar(places, [counts.get(end, 0) for end in ends], width, label=_name(name))
        _logarithmic(axes.yaxis, axes.set_yscale)
        axes.set_xticks(range(len(ends)), [_power(end) for end in ends], rotation=60)
        axes.set_xlabel(what)
        axes.set_ylabel("elements")
        if field == "bound_histogram":
            right = sum(float(end) <= 1 for end in ends) - 0.5
            axes.axvline(right, color=_BAD, linewidth=1)
        axes.legend(frameon=False)

    return Figure(caption, max(4.0, 1.5 + 0.25 * len(ends)), 2.6, draw)


def _logarithmic(axis: Any, set_scale: Callable[[str], object]) -> None:
    """A logarithmic axis with plain numbers: its own are formulas, which names are not parsed as."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    set_scale("log")
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _power(end: str) -> str:
    value = float(end)
    if not 0 < value < math.inf:
        return end
    exponent = math.frexp(value)[1] - 1
    return end if 0 <= exponent <= 3 else f"2^{exponent}"


def _heats(outputs: Sequence[tuple[CaseRecord, OutputRecord]]) -> Iterator[Figure]:
    """Of each variant and output the case with the largest error over bound."""
    worst: dict[tuple[str, str], tuple[CaseRecord, OutputRecord]] = {}
    for case, output in outputs:
        if output.metrics is None or output.metrics.heat is None:
            continue
        place = (case.variant, output.name)
        if place not in worst or _size(output) > _size(worst[place][1]):
            worst[place] = (case, output)
    for case, output in list(worst.values())[:_MOST_HEATS]:
        assert output.metrics is not None
        assert output.metrics.heat is not None
        yield Figure(
            f"{output.name} of {case.key}: largest error in units of "
            f"{'the bound' if output.metrics.heat.unit == 'bound' else 'ulp'}, by rows and columns"
            f"{'; lines: blocks of the launch, whose grid fits so' if _lines(case, output) else ''}",
            3.8,
            3.2,
            _heat(case, output),
        )


def _size(output: OutputRecord) -> float:
    metrics = output.metrics
    assert metrics is not None
    return queries.magnitude(metrics.max_ulp if metrics.over_bound is None else metrics.over_bound)


def _lines(case: CaseRecord, output: OutputRecord) -> tuple[int, int] | None:
    """Rows and columns of a block of the only launch, where its grid fits the output in one way."""
    metrics = output.metrics
    if len(case.launches) != 1 or metrics is None or metrics.heat is None:
        return None
    rows, columns = metrics.heat.rows, metrics.heat.columns
    wide, high = [*case.launches[0].grid, 1][:2]
    across, down = [*case.launches[0].block, 1][:2]
    if high == 1 and wide == rows > 1:
        found = {(1, columns)}
    else:
        found = {
            (tall, broad)
            for tall, broad, grid in ((down, across, (high, wide)), (across, down, (wide, high)))
            if (-(-rows // tall), -(-columns // broad)) == grid
        }
    step = found.pop() if len(found) == 1 else (rows, columns)
    blocks = max(-(-rows // step[0]), -(-columns // step[1]))
    return step if 1 < blocks <= _MOST_LINES else None


def _heat(case: CaseRecord, output: OutputRecord) -> Draw:
    def draw(axes: Axes) -> None:
        assert output.metrics is not None
        heat = output.metrics.heat
        assert heat is not None
        cells = [[-13 if one == "." else ord(one) - ord("m") for one in row] for row in heat.levels]
        extent = (0, heat.columns, heat.rows, 0)
        image = axes.imshow(
            cells, cmap="viridis", vmin=-13, vmax=13, extent=extent, aspect="auto",
            interpolation="nearest",
        )  # fmt: skip
        if step := _lines(case, output):
            for at in range(step[0], heat.rows, step[0]):
                axes.axhline(at, color="white", linewidth=0.5)
            for at in range(step[1], heat.columns, step[1]):
                axes.axvline(at, color="white", linewidth=0.5)
        axes.set_xlabel("column")
        axes.set_ylabel("row")
        bar = axes.figure.colorbar(image, ax=axes, ticks=[-13, -8, -4, 0, 4, 8, 13])
        bar.ax.set_yticklabels(["0", "2^-8", "2^-4", "1", "2^4", "2^8", ">2^12"])

    return draw


def _times(found: Evidence, cases: Sequence[CaseRecord]) -> Figure | None:
    """Median time by the number of elements of the outputs, a line for each variant and device."""
    lines: dict[str, dict[int, list[float]]] = {}
    for case in cases:
        times = found.volatile.case_times_ns.get(case.key)
        elements = sum(output.elements for output in case.outputs)
        if times and elements:
            line = lines.setdefault(f"{case.variant} on {case.device}", {})
            line.setdefault(elements, []).append(statistics.median(times) / 1000)
    if not lines:
        return None
    classes = {found.devices[case.device].device_class for case in cases}
    note = "; no statement of speed on a GPU" if "host-simt" in classes else ""
    caption = f"Median time of a launch sequence by output elements, all profiles{note}"

    def draw(axes: Axes) -> None:
        for name, points in lines.items():
            sizes = sorted(points)
            middle = [statistics.median(points[size]) for size in sizes]
            axes.plot(sizes, middle, marker="o", markersize=3, linewidth=1, label=_name(name))
        _logarithmic(axes.xaxis, axes.set_xscale)
        _logarithmic(axes.yaxis, axes.set_yscale)
        axes.set_xlabel("output elements")
        axes.set_ylabel("microseconds")
        axes.legend(frameon=False)

    return Figure(caption, 4.2, 2.8, draw)


def _matrix(table: Any) -> Draw:
    def draw(axes: Axes) -> None:
        from matplotlib.patches import Rectangle

        rows = table.rows[:_MOST_ROWS]
        for down, row in enumerate(rows):
            for across, cell in enumerate(row.cells):
                if cell is not None:
                    fine = cell.verdict in (Verdict.VERIFIED, Verdict.BUILT)
                    colour = _GOOD if fine else _BAD if cell.verdict in _WRONG else _OPEN
                    axes.add_patch(Rectangle((across, down), 0.94, 0.94, color=colour))
                    # The word's beginning beside the colour.
                    axes.text(across + 0.47, down + 0.5, str(cell.verdict)[:2], ha="center", va="center",
                              color="white", fontsize=6)  # fmt: skip
        axes.set_xlim(0, len(table.profiles))
        axes.set_ylim(len(rows), 0)
        heads = [_name(profile or "all") for profile in table.profiles]
        axes.set_xticks([at + 0.5 for at in range(len(heads))], heads, rotation=60, ha="right")
        names = [
            _name(" ".join(filter(None, (row.variant, row.shape, row.device)))) for row in rows
        ]
        axes.set_yticks([at + 0.5 for at in range(len(names))], names)
        axes.tick_params(length=0)

    return draw
