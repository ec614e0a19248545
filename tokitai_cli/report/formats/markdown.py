"""Markdown (CommonMark 0.31 with GitHub's tables and autolinks), and how text is escaped in it.

Text of specs, logs, compilers and paths is untrusted: it must come out as text, on its line, in its
table cell. `Raw` marks what is Markdown already; everything else is escaped when it is printed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tokitai_cli.model.text import counts_text, number, shape_text, visible, visible_block

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment

    from tokitai_cli.model.batch import BatchIndex, IndexCase
    from tokitai_cli.model.evidence import Evidence
    from tokitai_cli.model.judged import Number

_SPECIAL = re.compile(r"[\\`*_\[\]|~$]")
# What opens a heading, a list, a rule or an underline at the start of a block.
_LEADING = re.compile(r"^(?:#{1,6}(?=\s|$)|[+-](?=\s|$)|[-=](?=[-=\s]*$)|\d{1,9}(?=[.)](?:\s|$)))")
_PUNCTUATION = re.compile(r"[^\w\s]|_")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}


class Raw(str):
    """Markdown that was made here, with every untrusted part escaped."""

    __slots__ = ()


def evidence(found: Evidence, cache: Path | None) -> Iterator[bytes]:
    """Report of a run."""
    from tokitai_cli.model import queries
    from tokitai_cli.report.outline import outline

    text = (
        _environment(cache)
        .get_template("evidence.md.j2")
        .render(
            evidence=found,
            outline=outline(found),
            counts=queries.counts(found),
            reason=queries.reason(found),
            decision=queries.decision,
            shape=shape_text,
        )
    )
    yield text.encode()


def index(found: BatchIndex, cases: Iterable[IndexCase], cache: Path | None) -> Iterator[bytes]:
    """Report of a batch: failures first."""
    from tokitai_cli.report.index_outline import outline_index

    template = _environment(cache).get_template("batch.md.j2")
    text = template.render(index=found, outline=outline_index(found), counted=counts_text)
    yield text.encode()


@functools.cache
def _environment(cache: Path | None) -> SandboxedEnvironment:
    # Jinja costs as much at start-up as all else that `tokitai --help` needs.
    from tokitai_cli.report.outline import bins
    from tokitai_cli.report.templates import environment

    filters: dict[str, Callable[..., object]]
    filters = {"code": code, "fence": fence, "number": numeral, "bins": bins, "own": Raw}
    return environment(printed, filters, source=__file__, cache=cache)


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


def fence(text: str, language: str = "text") -> Raw:
    """`text` as a fenced block, the fence longer than any run of backticks inside."""
    body = visible_block(text).rstrip("\n")
    longest = max((len(run) for run in re.findall("`+", body)), default=0)
    ticks = "`" * max(3, longest + 1)
    return Raw(f"{ticks}{language}\n{body}\n{ticks}")


def numeral(value: Number | None, digits: int = 6) -> Raw:
    """Show a number, or one of the words for those that JSON cannot hold."""
    text = number(value, digits)
    return escape(text) if isinstance(value, str) else Raw(text)


def printed(value: object) -> str:
    """Give what a template prints for a value: escaped text, or a number with enough digits.

    Raises TypeError for anything whose text was not thought about.
    """
    if isinstance(value, Raw):
        return value
    if isinstance(value, str):
        return escape(value)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return numeral(value)
    raise TypeError(f"a template prints {type(value).__name__}")
