"""Markdown (CommonMark 0.31 with GitHub's tables and autolinks), and how text is escaped in it.

Text of specs, logs, compilers and paths is untrusted: it must come out as text, on its line, in its
table cell. `Raw` marks what is Markdown already; everything else is escaped when it is printed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from tokitai_cli.core.model.wording import number, visible, visible_block
from tokitai_cli.report import columns
from tokitai_cli.report.raw import DIGITS, Numeral, Raw, made, printer

if TYPE_CHECKING:
    from tokitai_cli.core.model.batch_record import BatchIndex, IndexCase
    from tokitai_cli.core.model.evidence import Evidence
    from tokitai_cli.core.model.judged import Number
    from tokitai_cli.report.format import ReportOptions
    from tokitai_cli.report.templates import Target

_SPECIAL = re.compile(r"[\\`*_\[\]|~$]")
# What opens a heading, a list, a rule or an underline at the start of a block.
_LEADING = re.compile(r"^(?:#{1,6}(?=\s|$)|[+-](?=\s|$)|[-=](?=[-=\s]*$)|\d{1,9}(?=[.)](?:\s|$)))")
_PUNCTUATION = re.compile(r"[^\w\s]|_")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
_FENCE = re.compile("`{3,}")


def evidence(evidence: Evidence, report_options: ReportOptions) -> Iterator[bytes]:
    """Report of a run."""
    from tokitai_cli.report.outline import context
    from tokitai_cli.report.templates import rendered

    yield _tidy(rendered(_target(), "evidence.j2", report_options, context(evidence))).encode()


def index(
    index: BatchIndex, cases: Iterable[IndexCase], report_options: ReportOptions
) -> Iterator[bytes]:
    """Report of a batch: failures first."""
    from tokitai_cli.report.index_outline import index_context
    from tokitai_cli.report.templates import rendered

    yield _tidy(rendered(_target(), "batch.j2", report_options, index_context(index))).encode()


@functools.cache
def _target() -> Target:
    # Jinja costs as much at start-up as all else that `tokitai --help` needs.
    from tokitai_cli.report.outline import bins
    from tokitai_cli.report.templates import Target

    names: dict[str, Callable[..., object]] = {
        "code": code,
        "fence": fence,
        "listing": listing,
        "bars": _bars,
        "number": numeral,
        "bins": bins,
        "linked": code,
        "h": heading,
        "case_heading": _case_heading,
        "p": paragraph,
        "li": _bullet,
        "item": _item,
        "table": table,
        "row": row,
        "more": _more,
        "badge": _badge,
        "cell": _cell,
        "digest": _digest,
        "figure": _figure,
    }
    return Target(__file__, printed, **names)


def escape(text: str) -> Raw:
    """`text` as one line of plain words: no markup, no HTML, no links, no control characters."""
    line = visible(text).strip()
    line = "".join(_ENTITIES.get(letter, letter) for letter in line)
    line = _SPECIAL.sub(lambda match: "\\" + match.group(), line)
    line = line.replace("://", "&#58;//").replace("www.", "www&#46;")
    return Raw(_LEADING.sub(_not_leading, line))


def _not_leading(match: re.Match[str]) -> str:
    """Keep a line from starting a heading, a list or an underline."""
    start = match.group()
    return f"&#{ord(start[0])};{start[1:]}"


def code(text: str) -> Raw:
    """`text` as inline code on one line; a dash where it is empty.

    Text with a backtick or a table's bar becomes an HTML code element with all punctuation as
    character references: there no rule of Markdown, inside a table or out of it, can apply.
    """
    line = visible(str(text)).strip()
    if not line:
        return Raw("-")
    if "`" in line or "|" in line:
        safe = _PUNCTUATION.sub(lambda match: f"&#{ord(match.group())};", line)
        return Raw(f"<code>{safe}</code>")
    return Raw(f"`{line}`")


def _digest(text: str) -> Raw:
    """The beginning of a sha256, which stands whole in the appendix."""
    return code(text[:16])


def fence(text: str, language: str = "text") -> Raw:
    """`text` as a fenced block, the fence longer than any run of backticks inside."""
    body = visible_block(text).rstrip("\n")
    longest = max((len(run) for run in re.findall("`+", body)), default=0)
    ticks = "`" * max(3, longest + 1)
    return Raw(f"\n{ticks}{language}\n{body}\n{ticks}\n")


def listing(code: str) -> Raw:
    """Python as a block."""
    return fence(code, "python")


def _bars(found: object) -> Raw:
    return Raw("")  # the table of variants and profiles says it


def numeral(value: Number | None, digits: int = DIGITS) -> Raw:
    """Show a number, or one of the words for those that JSON cannot hold."""
    text = number(value, digits)
    return escape(text) if isinstance(value, str) else Numeral(text)


printed = printer(escape, numeral)
_made = functools.partial(made, printed=printed)


def _line(text: object) -> str:
    return " ".join(str(text).split())


def heading(level: int, text: object) -> Raw:
    """A heading of level 1 to 6."""
    return Raw(f"\n{'#' * level} {_made(text)}\n")


def _case_heading(verdict: str, key: str) -> Raw:
    return heading(3, Raw(f"{escape(verdict)}: {code(key)}"))


def paragraph(kind: str = "", *, caller: Callable[[], object]) -> Raw:
    """A paragraph; the lines of the template are those of the text."""
    lines = [line.strip() for line in str(caller()).splitlines()]
    return Raw("\n{}\n\n".format("\n".join(filter(None, lines))))


def _bullet(text: object) -> Raw:
    return Raw(f"- {_made(text)}")


def _item(*, caller: Callable[[], object]) -> Raw:
    return Raw(f"- {_line(caller())}\n")


def table(*heads: str, caller: Callable[[], object]) -> Raw:
    """A table; see `columns.table` for its heads."""
    found, lines = columns.table(heads, str(caller()))
    names = " | ".join(_made(head.name) for head in found)
    rules = "|".join("--:" if head.number else "---" for head in found)
    rows = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return Raw(f"\n| {names} |\n|{rules}|\n{rows}\n\n")


def row(*cells: object) -> Raw:
    """A row of a table."""
    return Raw(columns.joined([_line(_made(cell)) for cell in cells]))


def _more(title: str, *, shown: bool = False, caller: Callable[[], object]) -> Raw:
    return Raw(f"{heading(3, title)}\n{caller()}\n")


def _badge(verdict: str, count: str = "") -> Raw:
    return escape(f"{verdict}{count}")


def _cell(cell: object) -> Raw:
    if cell is None:
        return Raw("-")
    count = getattr(cell, "cases", 1)
    return _badge(str(getattr(cell, "verdict", "")), f" ({count})" if count != 1 else "")


def _figure(one: object) -> Raw:
    return Raw("")


def _tidy(text: str) -> str:
    """`text` with one blank line between blocks and none between list items, fences as they are."""
    lines: list[str] = []
    fenced, blank = "", True
    for line in text.splitlines():
        ticks = _FENCE.match(line)
        if fenced:
            lines.append(line)
            fenced = "" if line == fenced else fenced
            continue
        if not line.strip():
            blank = True
            continue
        listed = lines and line.startswith("- ") and lines[-1].startswith("- ")
        if lines and (
            (blank and not listed) or lines[-1].startswith("- ") != line.startswith("- ")
        ):
            lines.append("")
        lines.append(line)
        fenced = ticks.group() if ticks else ""
        blank = False
    return "\n".join(lines) + "\n"
