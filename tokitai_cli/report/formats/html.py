"""HTML in one file: no network, no script; for screens light and dark, for paper, for screen readers."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tokitai_cli.core.model.wording import number, visible, visible_block
from tokitai_cli.report import columns
from tokitai_cli.report.listing import pieces
from tokitai_cli.report.raw import DIGITS, MARKUP, NEARNESS, Numeral, Raw, made, printer

if TYPE_CHECKING:
    from tokitai_cli.core.model.batch_record import BatchIndex, IndexCase
    from tokitai_cli.core.model.evidence import Evidence
    from tokitai_cli.core.model.judged import Number
    from tokitai_cli.report.format import ReportOptions
    from tokitai_cli.report.nearness import Nearness
    from tokitai_cli.report.templates import Target

_NUMBERS = ' class="n"'
_LONG = 60  # rows from which on a browser lays a table out when it comes into sight
# Letters of a bar's name.
_MOST_NAME = 30
# Parts of paths, names and shapes; what has none is cut, so that no column is wider than a page.
_PART = re.compile(r"[^,/_]{0,24}[,/_]+|[^,/_]{1,24}")
_SECTION = re.compile(r'<h2 id="[^"]*">([^<]*)</h2>')


def evidence(evidence: Evidence, report_options: ReportOptions) -> Iterator[bytes]:
    """Report of a run."""
    from tokitai_cli.report.outline import context

    yield _page("evidence.j2", report_options, context(evidence, report_options))


def index(
    index: BatchIndex, cases: Iterable[IndexCase], report_options: ReportOptions
) -> Iterator[bytes]:
    """Report of a batch: failures first."""
    from tokitai_cli.report.index_outline import index_context

    yield _page("batch.j2", report_options, index_context(index, report_options))


def _page(template: str, report_options: ReportOptions, context: Mapping[str, Any]) -> bytes:
    from tokitai_cli.report.templates import rendered

    content = _lists(rendered(_target(), template, report_options, context))
    sections = [Raw(name) for name in _SECTION.findall(content)]
    told = {"headline": context["headline"], "content": Raw(content), "sections": sections}
    return rendered(_target(), "page.html.j2", report_options, told).encode()


@functools.cache
def _target() -> Target:
    from tokitai_cli.report.outline import bins
    from tokitai_cli.report.templates import Target

    names: dict[str, Callable[..., object]] = {
        "code": code,
        "fence": fence,
        "listing": listing,
        "bars": bars,
        "number": numeral,
        "bins": bins,
        "linked": _linked,
        "h": heading,
        "case_heading": _case_heading,
        "p": paragraph,
        "li": _bullet,
        "item": _item,
        "table": table,
        "row": row,
        "more": _more,
        "badge": badge,
        "cell": _cell,
        "digest": _digest,
        "figure": _figure,
        "slug": _slug,
    }
    return Target(__file__, printed, **names)


def escape(text: str) -> Raw:
    """`text` as text, in an element or a quoted attribute."""
    return Raw(visible(text).strip().translate(MARKUP))


def numeral(value: Number | None, digits: int = DIGITS) -> Raw:
    """A number, which tables put to the right."""
    return Numeral(number(value, digits).translate(MARKUP))


printed = printer(escape, numeral)
_made = functools.partial(made, printed=printed)


def code(text: str) -> Raw:
    """`text` as code on one line, which may break behind a part; a dash where it is empty."""
    parts = _PART.findall(visible(str(text)).strip())
    line = "<wbr>".join(part.translate(MARKUP) for part in parts)
    return Raw(f"<code>{line}</code>" if line else "-")


def _digest(text: str) -> Raw:
    """The beginning of a sha256, which stands whole in the appendix."""
    return Raw(f'<code class="d">{escape(text[:16])}</code>' if text else "-")


def _linked(file: str) -> Raw:
    """A file beside the index, by its relative path."""
    from urllib.parse import quote

    return Raw(f'<a href="{quote(file)}">{escape(file)}</a>')


def fence(text: str, language: str = "text") -> Raw:
    """`text` as a block with its line breaks."""
    body = visible_block(text).rstrip("\n").translate(MARKUP)
    return Raw(f'<pre tabindex="0"><code>{body}</code></pre>')


def listing(code: str) -> Raw:
    """Python with its words told apart."""
    lines = (
        "".join(
            f'<span class="k-{kind}">{_body(text)}</span>' if kind else _body(text)
            for kind, text in row
        )
        for row in pieces(visible_block(code))
    )
    return Raw('<pre class="code" tabindex="0"><code>{}</code></pre>'.format("\n".join(lines)))


def _body(text: str) -> str:
    return text.translate(MARKUP)


_LABEL, _WIDE, _HIGH, _TOP, _SIDE = 190, 340, 18, 20, 90


def bars(nearness: Nearness) -> Raw:
    """The largest error over its limit, a bar each, with a mark at what it needs of its allowance."""
    height = _TOP + _HIGH * len(nearness.bars) + 4
    parts = []
    for place, word in nearness.ticks:
        x = _LABEL + _WIDE * place
        kind = "at" if place == nearness.limit else "tick"
        parts.append(f'<line class="{kind}" x1="{x:g}" x2="{x:g}" y1="{_TOP - 4}" y2="{height}"/>')
        parts.append(f'<text x="{x:g}" y="{_TOP - 8}" text-anchor="middle">{escape(word)}</text>')
    for at, bar in enumerate(nearness.bars):
        y = _TOP + _HIGH * at
        kind = "bad" if bar.place > nearness.limit else "good"
        name = escape(
            bar.name if len(bar.name) <= _MOST_NAME else f"{bar.name[: _MOST_NAME - 3]}..."
        )
        parts.append(f'<text x="{_LABEL - 6}" y="{y + 13}" text-anchor="end">{name}</text>')
        parts.append(
            f'<rect class="{kind}" x="{_LABEL}" y="{y + 4}" width="{_WIDE * bar.place:g}" '
            f'height="{_HIGH - 8}"/>'
        )
        if bar.mark is not None:
            x = _LABEL + _WIDE * bar.mark
            parts.append(f'<line class="mark" x1="{x:g}" x2="{x:g}" y1="{y + 1}" y2="{y + 17}"/>')
        words = f"{numeral(bar.share)}"
        parts.append(f'<text x="{_LABEL + _WIDE + 8}" y="{y + 13}">{words}</text>')
    width = _LABEL + _WIDE + _SIDE
    said = escape(NEARNESS)
    return Raw(
        f'<figure class="near"><svg role="img" aria-label="{said}" viewBox="0 0 {width} {height}">'
        f"{''.join(parts)}</svg><figcaption>{said}</figcaption></figure>\n"
    )


def _slug(name: object) -> Raw:
    return Raw(re.sub(r"[^a-z0-9]+", "-", str(name).lower()).strip("-"))


def heading(level: int, text: object) -> Raw:
    """A heading of level 1 to 6; those of level 2 are sections that can be linked."""
    made = _made(text)
    name = f' id="{_slug(made)}"' if level == 2 else ""
    return Raw(f"<h{level}{name}>{made}</h{level}>")


def _case_heading(verdict: str, key: str) -> Raw:
    return heading(3, Raw(f"{badge(verdict)}: {code(key)}"))


def badge(verdict: str, count: str = "") -> Raw:
    """A verdict in its colour; the word says it too."""
    word = escape(verdict)
    return Raw(
        f'<span class="v v-{_slug(verdict)}">{word}</span>{escape(count) and " " + escape(count)}'
    )


def paragraph(kind: str = "", *, caller: Callable[[], object]) -> Raw:
    """A paragraph of a class."""
    name = f' class="{_slug(kind)}"' if kind else ""
    return Raw(f"<p{name}>{str(caller()).strip()}</p>\n")


def _bullet(text: object) -> Raw:
    return Raw(f"<li>{_made(text)}</li>")


def _item(*, caller: Callable[[], object]) -> Raw:
    return Raw(f"<li>{' '.join(str(caller()).split())}</li>\n")


def table(*heads: str, caller: Callable[[], object]) -> Raw:
    """A table; see `columns.table` for its heads."""
    found, lines = columns.table(heads, str(caller()))
    cells = "".join(
        f'<th scope="col"{_NUMBERS if head.number else ""}>{_made(head.name)}</th>'
        for head in found
    )
    words = ", ".join(escape(head.name) for head in found if head.name)
    rows = "\n".join(f"<tr>{''.join(map(_td, range(len(line)), line))}</tr>" for line in lines)
    top = f"<thead><tr>{cells}</tr></thead>" if words else ""
    kind = "scroll long" if len(lines) > _LONG else "scroll"
    return Raw(
        f'<div class="{kind}" tabindex="0" role="region" aria-label="Table: {words}">\n'
        f"<table>{top}<tbody>\n{rows}\n"
        "</tbody></table></div>\n"
    )


def row(*cells: object) -> Raw:
    """A row of a table; its first cell names it."""
    marks = (columns.NUMBER if isinstance(one, int | float | Numeral) else "" for one in cells)
    return Raw(
        columns.joined([f"{mark}{_made(one)}" for mark, one in zip(marks, cells, strict=True)])
    )


def _td(at: int, cell: str) -> str:
    """A cell of a row; the first one names it."""
    if not at:
        return f'<th scope="row">{cell.removeprefix(columns.NUMBER)}</th>'
    number = cell.startswith(columns.NUMBER)
    return f"<td{_NUMBERS if number else ''}>{cell.removeprefix(columns.NUMBER)}</td>"


def _more(title: str, *, shown: bool = False, caller: Callable[[], object]) -> Raw:
    """A part that is folded, but where it is `shown`: what is folded is not printed."""
    how = " open" if shown else ""
    return Raw(f"<details{how}><summary>{_made(title)}</summary>\n{caller()}</details>\n")


def _cell(cell: object) -> Raw:
    if cell is None:
        return Raw("-")
    count = getattr(cell, "cases", 1)
    return badge(str(getattr(cell, "verdict", "")), f"({count})" if count != 1 else "")


def _figure(one: Any) -> Raw:
    """A picture with what it shows in words."""
    words = escape(one.caption)
    return Raw(
        f'<figure role="img" aria-label="{words}">{one.svg}<figcaption>{words}</figcaption></figure>'
    )


def _lists(content: str) -> str:
    """`content` with each run of list items in a list; no other line can begin as an item does."""
    lines: list[str] = []
    inside = False
    for line in content.splitlines():
        item = line.startswith("<li>")
        if item != inside and line.strip():
            lines.append("<ul>" if item else "</ul>")
            inside = item
        lines.append(line)
    return "\n".join([*lines, "</ul>"] if inside else lines)
