"""Pictures of recorded facts."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import shape_text
from tokitai_cli.evidence import queries
from tokitai_cli.report.canvas import COLOURS, Figure, legend, logarithmic, name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tokitai_cli.core.model.batch_record import BatchIndex
    from tokitai_cli.core.model.evidence import CaseRecord, Evidence
    from tokitai_cli.core.model.judged import HeatRecord, OutputRecord
    from tokitai_cli.report.index_outline import MatrixRow, MatrixTable

_MOST_HEATS, _MOST_LINES, _MOST_ROWS = 4, 64, 60
_WIDTH = 4.5  # inches, within the text of an article on A4 or letter paper
_MOST_SERIES, _MOST_BINS, _MOST_SHAPES, _MOST_TICKS = 6, 48, 30, 18
_GOOD, _BAD, _OPEN = "#2a8f4b", "#c0392b", "#a8701c"
_WRONG = {*queries.FAILING, Verdict.BUILD_FAILED, Verdict.INTERNAL_ERROR, Verdict.UNEXPECTED_PASS}


def figures_of(evidence: Evidence) -> list[Figure]:
    """All pictures that the recorded facts of a run give."""
    cases = queries.cases(evidence)
    outputs = [(case, output) for case in cases for output in case.outputs if output.metrics]
    return [
        *_histograms("error over bound", "bound_histogram", outputs),
        *_histograms("error in ulp", "ulp_histogram", outputs),
        *_heats(outputs),
        *_times(evidence, cases),
    ]


def figures_of_index(index: BatchIndex) -> list[Figure]:
    """The verdict matrix of a batch, spec by spec."""
    from tokitai_cli.report.index_outline import outline_index

    return [_matrix(table) for table in outline_index(index).tables if table.rows]


def _histograms(
    what: str, field: str, outputs: Sequence[tuple[CaseRecord, OutputRecord]]
) -> Iterator[Figure]:
    """Elements by power of two, summed over the cases of each variant and output."""
    sums: dict[str, dict[str, int]] = {}
    for case, output in outputs:
        mine = sums.setdefault(f"{case.variant}, {output.name}", {})
        for end, count in getattr(output.metrics, field).items():
            mine[end] = mine.get(end, 0) + count
    series = [(name, counts) for name, counts in sums.items() if counts]
    caption = f"Elements by {what}, over all cases; the number at a bar is the largest in it"
    caption += "; right of the line the bound is exceeded" if field == "bound_histogram" else ""
    for at in range(0, len(series), _MOST_SERIES):
        draw = functools.partial(_bars, series[at : at + _MOST_SERIES], what)
        yield Figure(caption, _WIDTH, 2.7, draw)


def _bars(series: Sequence[tuple[str, dict[str, int]]], what: str, axes: Axes) -> None:
    ends = [_exponent(end) for _, counts in series for end in counts]
    finite = [int(end) for end in ends if math.isfinite(end)] or [0]
    least, most = min(finite), min(max(finite), min(finite) + _MOST_BINS)
    first, last = least - (min(ends) < least), most + (max(ends) > most)
    width = 0.84 / len(series)
    for at, (of, counts) in enumerate(series):
        heights = dict.fromkeys(range(first, last + 1), 0)
        for end, count in counts.items():
            heights[int(min(max(_exponent(end), first), last))] += count
        places = [place - 0.42 + (at + 0.5) * width for place in heights]
        axes.bar(places, list(heights.values()), width, label=name(of), color=COLOURS[at])
    axes.set_ylim(bottom=0.7)
    logarithmic(axes.yaxis, axes.set_yscale)
    ticks = range(first, last + 1, -(-(last + 1 - first) // _MOST_TICKS))
    words = {least - 1: "0", most + 1: f">{_power(most)}"}
    axes.set_xticks(ticks, [words.get(one, _power(one)) for one in ticks], rotation=60)
    axes.set_xlabel(what)
    axes.set_ylabel("elements")
    if "bound" in what:
        axes.axvline(0.5, color=_BAD, linewidth=1)
    legend(axes)


def _exponent(end: str) -> float:
    """Exponent of the power of two that names a bin; infinite for 0 and for what is infinite."""
    value = float(end)
    if not 0 < value < math.inf:
        return value or -math.inf
    return math.frexp(value)[1] - 1


def _power(exponent: int) -> str:
    return str(2**exponent) if 0 <= exponent <= 3 else f"2^{exponent}"


def _heats(outputs: Sequence[tuple[CaseRecord, OutputRecord]]) -> Iterator[Figure]:
    """Of each variant and output the case with the largest error, of more than one element."""
    worst: dict[tuple[str, str], tuple[CaseRecord, OutputRecord]] = {}
    for case, output in outputs:
        if output.metrics is None or output.metrics.heat is None or output.elements == 1:
            continue
        place = (case.variant, output.name)
        if place not in worst or _size(output) > _size(worst[place][1]):
            worst[place] = (case, output)
    for case, output in list(worst.values())[:_MOST_HEATS]:
        heat = _map(output)
        yield Figure(
            f"{output.name} of {case.key}: largest error of each cell in units of "
            f"{'the bound' if heat.unit == 'bound' else 'ulp'}"
            f"{'; lines: blocks of the launch, whose grid fits so' if _lines(case, output) else ''}",
            _WIDTH,
            1.4 if heat.rows == 1 else 3.2,
            functools.partial(_heat, case, output),
        )


def _map(output: OutputRecord) -> HeatRecord:
    assert output.metrics is not None
    assert output.metrics.heat is not None
    return output.metrics.heat


def _size(output: OutputRecord) -> float:
    metrics = output.metrics
    assert metrics is not None
    return queries.magnitude(metrics.max_ulp if metrics.over_bound is None else metrics.over_bound)


def _lines(case: CaseRecord, output: OutputRecord) -> tuple[int, int] | None:
    """Rows and columns of a block of the only launch, where its grid fits the output in one way."""
    if len(case.launches) != 1:
        return None
    rows, columns = _map(output).rows, _map(output).columns
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


def _heat(case: CaseRecord, output: OutputRecord, axes: Axes) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap
    from matplotlib.ticker import MaxNLocator

    heat = _map(output)
    cells = [[-13 if one == "." else ord(one) - ord("m") for one in row] for row in heat.levels]
    colours = colormaps["viridis"].resampled(27)
    if heat.unit == "bound":  # the step from 1 to 2 is the one that refutes
        below, beyond = colormaps["Blues"], colormaps["OrRd"]
        shades = [below(0.06 + 0.05 * at) for at in range(14)]
        colours = ListedColormap([*shades, *(beyond(0.3 + 0.055 * at) for at in range(13))])
    image = axes.imshow(
        cells, cmap=colours, vmin=-13.5, vmax=13.5, aspect="auto", interpolation="nearest",
        extent=(0, heat.columns, heat.rows, 0),
    )  # fmt: skip
    down, across = _lines(case, output) or (heat.rows, heat.columns)
    axes.hlines(range(down, heat.rows, down), 0, heat.columns, color="#222222", linewidth=0.6)
    axes.vlines(range(across, heat.columns, across), 0, heat.rows, color="#222222", linewidth=0.6)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel("column")
    axes.set_ylabel("row")
    words = ["0", "2^-8", "2^-4", "1", "2^4", "2^8", ">2^12"]
    ticks = [-13, -8, -4, 0, 4, 8, 13]
    if heat.rows == 1:
        words, ticks = words[::3], ticks[::3]
    axes.figure.colorbar(image, ax=axes, ticks=ticks).ax.set_yticklabels(words)


def _times(evidence: Evidence, cases: Sequence[CaseRecord]) -> Iterator[Figure]:
    """Time by shape: median and quartiles over profiles and repetitions, per variant and device."""
    times: dict[str, dict[str, list[float]]] = {}
    sizes: dict[str, int] = {}
    for case in cases:
        if mine := evidence.volatile.case_times_ns.get(case.key):
            shape = shape_text(case.shape)
            sizes[shape] = max(sizes.get(shape, 0), sum(one.elements for one in case.outputs))
            line = times.setdefault(f"{case.variant} on {case.device}", {})
            line.setdefault(shape, []).extend(one / 1000 for one in mine)
    shapes = sorted(sizes, key=lambda one: sizes[one])[-_MOST_SHAPES:]
    classes = {evidence.devices[case.device].device_class for case in cases}
    caption = (
        "Time of the launches by shape, over all profiles: median, and a line between quartiles"
    )
    if len(shapes) < len(sizes):
        caption += f"; the {len(shapes)} shapes with the most output elements, of {len(sizes)}"
    caption += "; this says nothing about speed on a GPU" if "host-simt" in classes else ""
    for at in range(0, len(times), _MOST_SERIES):
        lines = list(times.items())[at : at + _MOST_SERIES]
        height = 0.9 + (0.12 + 0.08 * len(lines)) * len(shapes)
        yield Figure(caption, _WIDTH, height, functools.partial(_dots, lines, shapes))


def _dots(
    lines: Sequence[tuple[str, dict[str, list[float]]]], shapes: Sequence[str], axes: Axes
) -> None:
    for at, (of, times) in enumerate(lines):
        known = [(place, times[shape]) for place, shape in enumerate(shapes) if shape in times]
        down = [place + 0.8 * (at + 0.5) / len(lines) - 0.4 for place, _ in known]
        spread = [_quartiles(mine) for _, mine in known]
        axes.hlines(down, [low for low, _, _ in spread], [high for _, _, high in spread],
                    color=COLOURS[at], linewidth=1)  # fmt: skip
        middle = [one for _, one, _ in spread]
        axes.plot(middle, down, "os^Dv*"[at], markersize=3.5, color=COLOURS[at], label=name(of))
    logarithmic(axes.xaxis, axes.set_xscale)
    axes.set_yticks(range(len(shapes)), [name(one) for one in shapes])
    axes.set_ylim(len(shapes) - 0.5, -0.5)
    axes.grid(axis="y", linewidth=0.3)
    axes.set_xlabel("microseconds")
    legend(axes)


def _quartiles(times: Sequence[float]) -> tuple[float, float, float]:
    if len(times) == 1:
        return times[0], times[0], times[0]
    low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
    return low, middle, high


def _matrix(table: MatrixTable) -> Figure:
    """Rows of variant and shape, those with the worst verdicts where not all have room."""
    rows, of = table.rows, len(table.rows) + table.more
    if of > _MOST_ROWS:
        ranks = {id(row): min(cell.verdict.rank for cell in row.cells if cell) for row in rows}
        rows = sorted(rows, key=lambda row: ranks[id(row)])[:_MOST_ROWS]
    words = dict.fromkeys(cell.verdict for row in rows for cell in row.cells if cell)
    caption = f"{table.spec.name}: worst verdict by variant and shape, and by profile"
    caption += f"; the worst {len(rows)} of {of} rows" if len(rows) < of else ""
    caption += "; " + ", ".join(f"{str(one)[:2]}: {one}" for one in words)
    width, height = 2.2 + 0.4 * len(table.profiles), 0.8 + 0.18 * len(rows)
    return Figure(caption, width, height, functools.partial(_cells, rows, table.heads))


def _cells(rows: Sequence[MatrixRow], heads: Sequence[str], axes: Axes) -> None:
    from matplotlib.patches import Rectangle

    for down, row in enumerate(rows):
        for across, cell in enumerate(row.cells):
            if cell is not None:
                fine = cell.verdict in (Verdict.VERIFIED, Verdict.BUILT)
                colour = _GOOD if fine else _BAD if cell.verdict in _WRONG else _OPEN
                axes.add_patch(Rectangle((across, down), 0.94, 0.94, color=colour))
                # The word's beginning beside the colour.
                axes.text(across + 0.47, down + 0.5, str(cell.verdict)[:2], ha="center", va="center",
                          color="white", fontsize=6)  # fmt: skip
    axes.set_xlim(0, len(heads))
    axes.set_ylim(len(rows), 0)
    axes.xaxis.tick_top()
    axes.set_xticks(
        [at + 0.5 for at in range(len(heads))], map(name, heads), rotation=60, ha="left"
    )
    devices = len({row.device for row in rows}) > 1
    names = [(row.variant, row.shape, row.device if devices else "") for row in rows]
    words = [name(" ".join(filter(None, one)), 64) for one in names]
    axes.set_yticks([at + 0.5 for at in range(len(words))], words)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
