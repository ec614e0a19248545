"""Blocks to a stream: with Rich on a terminal, as plain text anywhere else.

Rich costs tens of milliseconds to import, and is not touched where the stream is no terminal.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Literal, TextIO

from tokitai_cli.cli.terminal.styled_blocks import (
    BAD,
    DOUBTFUL,
    FAINT,
    GOOD,
    STRONG,
    Block,
    Column,
    Line,
    Table,
)
from tokitai_cli.core.model.wording import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_COLOURS = {GOOD: "green", BAD: "bold red", DOUBTFUL: "yellow", STRONG: "bold", FAINT: "dim"}
_GAP = "  "
# Letters from which on a cell of a wide column goes beyond it where a table is plain text.
_MOST_PLAIN = 60


def is_terminal(stream: IO[str], environ: Mapping[str, str] | None = None) -> bool:
    """Whether `stream` is a terminal that can do more than lines."""
    names = os.environ if environ is None else environ
    try:
        return stream.isatty() and names.get("TERM", "") != "dumb"
    except ValueError:  # a closed stream
        return False


def has_styles(stream: TextIO) -> bool:
    """Whether text gets styles: on a terminal, and where FORCE_COLOR asks for them, as CI systems do."""
    force = os.environ.get("FORCE_COLOR", "")
    asked = force not in {"", "0"} and not os.environ.get("NO_COLOR")
    return asked or (force != "0" and is_terminal(stream))


def emit(blocks: Iterable[Block], stream: TextIO) -> None:
    """Write `blocks` to `stream`. Characters that its encoding lacks are escaped."""
    if has_styles(stream):
        _styled(blocks, terminal(stream))
    else:
        for block in blocks:
            stream.write(encodable(plain(block), stream))


def terminal(stream: TextIO) -> Console:
    """Make a Rich console on `stream` that takes no markup and highlights nothing by itself."""
    from rich.console import Console

    # no_color: any value but the empty one, as no-color.org asks.
    return Console(
        file=stream,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=True,
        no_color=bool(os.environ.get("NO_COLOR")),
        # Where styles are asked for, the kind of terminal is not known.
        force_terminal=True if has_styles(stream) else None,
        color_system="auto" if is_terminal(stream) else "standard",
    )


def encodable(text: str, stream: TextIO) -> str:
    """`text` with what the stream's encoding cannot say as escapes (LC_ALL=C)."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def plain(block: Block) -> str:
    """One block as lines of text, columns aligned by spaces."""
    if isinstance(block, Line):
        label = f"{visible(block.label)} " if block.label else ""
        return f"{' ' * block.indent}{label}{visible(block.text)}".rstrip() + "\n"
    grid = [[column.heading for column in block.columns]]
    grid += [[visible(cell) for cell in row] for row in block.rows]
    widths = [
        _plain_width([*map(len, cells)], column.wide)
        for cells, column in zip(zip(*grid, strict=True), block.columns, strict=True)
    ]
    lines = []
    for row in grid:
        cells = [
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(row, widths, block.columns, strict=True)
        ]
        lines.append(_GAP.join(cells).rstrip() + "\n")
    return "".join(lines)


def _plain_width(lengths: Sequence[int], wide: bool) -> int:
    """Width of a column; a long cell of a wide one moves its own row, and does not pad the others."""
    short = [length for length in lengths if length <= _MOST_PLAIN]
    return max(short, default=_MOST_PLAIN) if wide else max(lengths)


def _styled(blocks: Iterable[Block], console: Console) -> None:
    for block in blocks:
        if isinstance(block, Table):
            _styled_table(block, console)
        else:
            show(block, console)


def show(line: Line, console: Console) -> None:
    """Print a line; on a terminal wrapped between words, which stay whole if they are too long."""
    from rich.text import Text

    text = styled(line)
    if line.verbatim or not is_terminal(console.file) or text.cell_len <= console.width:
        console.print(text)
        return
    first, *words = text[line.indent :].split(" ")
    row = Text(" " * line.indent).append_text(first)
    for word in words:
        if row.cell_len + 1 + word.cell_len > console.width:
            console.print(row)
            row = Text(" " * (line.indent + 2)).append_text(word)
        else:
            row.append(" ").append_text(word)
    console.print(row)


def styled(line: Line) -> Text:
    """Turn a line into Rich text: never parsed as markup, control characters made visible."""
    from rich.text import Text

    text = Text(" " * line.indent)
    if line.label:
        text.append(f"{visible(line.label)} ", _COLOURS[STRONG])
    return text.append(visible(line.text), _COLOURS.get(line.style, ""))


def _styled_table(block: Table, console: Console) -> None:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    rows = [[visible(cell) for cell in row] for row in block.rows]
    widths = fitting(block.columns, rows, console.width)
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style=_COLOURS[STRONG])
    for at, width in widths.items():
        column = block.columns[at]
        justify: Literal["left", "right"] = "right" if column.right else "left"
        table.add_column(Text(column.heading), justify=justify, overflow="fold", width=width)
    styles = block.styles or [""] * len(rows)
    for row, style in zip(rows, styles, strict=True):
        table.add_row(*(Text(row[at]) for at in widths), style=_COLOURS.get(style, ""))
    console.print(table)
    left_out = [one.heading for at, one in enumerate(block.columns) if at not in widths]
    if left_out:
        console.print(styled(Line(f"too narrow for: {', '.join(left_out)}", FAINT)))


def fitting(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int
) -> dict[int, int | None]:
    """Width of each column that is shown, by its place; None where Rich has to fold within words.

    Spare columns are left out until the others have room: for their longest cell, or for the longest
    word of those that are folded, which share what is left over.
    """
    texts = [[column.heading, *(row[at] for row in rows)] for at, column in enumerate(columns)]
    whole = [max(map(len, cells)) for cells in texts]
    least = [
        max((len(word) for cell in cells for word in cell.split()), default=0)
        if column.wide
        else whole[at]
        for at, (column, cells) in enumerate(zip(columns, texts, strict=True))
    ]
    kept = list(range(len(columns)))
    # A space at both edges, three between columns.
    while (left := room - sum(least[at] + 3 for at in kept) + 1) < 0:
        at = max(kept, key=lambda at: columns[at].spare)
        if not columns[at].spare:
            return dict.fromkeys(kept)
        kept.remove(at)
    widths: dict[int, int | None] = {at: least[at] for at in kept}
    hungry = sorted((whole[at] - least[at], at) for at in kept)
    for number, (more, at) in enumerate(hungry):
        share = min(more, left // (len(hungry) - number))
        widths[at] = least[at] + share
        left -= share
    return widths
