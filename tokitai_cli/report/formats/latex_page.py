r"""The first page of a report as a part of a LaTeX document, for an appendix: `\input{NAME.appendix}`.

It is the template of the other reports' first page, in LaTeX's words; needs booktabs, longtable, array.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from tokitai_cli.core.model.wording import visible_block
from tokitai_cli.report import columns
from tokitai_cli.report.formats.latex import escape
from tokitai_cli.report.formats.latex import numeral as numeral_of
from tokitai_cli.report.listing import pieces
from tokitai_cli.report.raw import DIGITS, NEARNESS, Raw, made, printer

if TYPE_CHECKING:
    from tokitai_cli.core.model.evidence import Evidence
    from tokitai_cli.report.format import ReportOptions
    from tokitai_cli.report.nearness import Nearness
    from tokitai_cli.report.templates import Target

# Of a line: what columns have between them, and the letters from which on one is no wider.
_GAP, _MOST_LETTERS, _LEAST_LETTERS = 0.025, 60, 6
_NUMBER_SHARE = 0.08
# Letters of the small face that a line of an article on A4 paper has room for, bold ones among them.
_LINE_LETTERS = 80
# A command with the brace behind it, and places where a line may break.
_COMMAND = re.compile(r"\\(?!allowbreak)[a-zA-Z]+\s?\{?|[{}]|\\(?=\W)")
_BREAK = re.compile(r"\\allowbreak|(?<=-)|\s+")
# A heading goes to the next page where not this many lines have room below it; a table that follows
# could else begin there. Right below another heading, of the author's own perhaps, the page never ends.
_LINES_BELOW = 7
_ROOM = (
    "\\csname if@nobreak\\endcsname\\else"
    f"\\par\\vskip0pt plus {_LINES_BELOW}\\baselineskip\\penalty-100"
    f"\\vskip0pt plus -{_LINES_BELOW}\\baselineskip"
    f"\\vskip{_LINES_BELOW}\\baselineskip\\penalty9999\\vskip-{_LINES_BELOW}\\baselineskip\\vskip0pt\\fi"
)
_LEVELS = {1: "subsection*", 2: "subsubsection*"}
_STYLES = {"keyword": r"\textbf", "comment": r"\textit", "text": r"\textsl"}
# Widths of the picture's bars and of their names, in parts of a line.
_BARS, _NAMES = 0.5, 0.3
# A word of code may break behind these.
_BREAKS = "/,.-=@;&"

# The same of text, in which a comma mostly has a space behind it.
_PARTS = re.compile(r"([/=_]|,(?=\S))")
_CODE = re.compile(r"`([^`\n]+)`")
_DIGEST = 8  # letters of a digest on a line at least


numeral = functools.partial(numeral_of, digits=DIGITS)


def _text(text: str) -> Raw:
    """`text` as text, whose long words may break behind their parts; code stands in backticks."""
    parts = _CODE.split(text)
    return Raw("".join(code(part) if at % 2 else _plain(part) for at, part in enumerate(parts)))


def _plain(text: str) -> Raw:
    return Raw(
        r"\allowbreak{}".join(escape(part) for part in _PARTS.sub("\\1\0", text).split("\0"))
    )


_printed = printer(_text, numeral, "--")
_made = functools.partial(made, printed=_printed)


def evidence(evidence: Evidence, report_options: ReportOptions) -> Iterator[bytes]:
    """The part of a document."""
    from tokitai_cli.report.outline import context
    from tokitai_cli.report.templates import rendered

    told = context(evidence)
    content = _lists(rendered(_target(), "first.j2", report_options, told))
    yield rendered(
        _target(), "appendix.tex.j2", report_options, {**told, "content": Raw(content)}
    ).encode()


@functools.cache
def _target() -> Target:
    from tokitai_cli.report.templates import Target

    names: dict[str, Callable[..., object]] = {
        "code": code,
        "digest": _digest,
        "fence": fence,
        "listing": listing,
        "bars": bars,
        "number": numeral,
        "h": heading,
        "p": paragraph,
        "li": lambda text: Raw(f"\\item {_made(text)}"),
        "table": table,
        "row": row,
        "badge": lambda verdict: Raw(f"\\textbf{{{escape(verdict)}}}"),
    }
    return Target(__file__, _printed, **names)


def code(text: str) -> Raw:
    """Code within a line, which may break behind a part."""
    if not str(text).strip():
        return Raw("--")
    return Raw(f"\\texttt{{{_breaking(str(text))}}}")


def _digest(text: str) -> Raw:
    """The beginning of a sha256, on two lines where there is no room."""
    return Raw(f"\\texttt{{{text[:_DIGEST]}\\allowbreak{{}}{text[_DIGEST : 2 * _DIGEST]}}}")


def _breaking(text: str) -> str:
    parts = []
    for letter in text:
        parts.append(f"{escape(letter) if letter != ' ' else ' '}")
        if letter in _BREAKS or letter == "_":
            parts.append(r"\allowbreak{}")
    return "".join(parts)


def fence(text: str, language: str = "text") -> Raw:
    """Lines of code; long ones go on below."""
    return _block([[("", line)] for line in visible_block(text).rstrip("\n").splitlines()])


def listing(text: str) -> Raw:
    """Python with its words told apart."""
    return _block(pieces(visible_block(text)))


def _block(lines: Sequence[Sequence[tuple[str, str]]]) -> Raw:
    rows = []
    for line in lines:
        words = "".join(
            f"{_STYLES[kind]}{{{_spaced(text)}}}" if kind in _STYLES else _spaced(text)
            for kind, text in line
        )
        rows.append(f"\\mbox{{}}{words}\\par")
    body = "\n".join(rows)
    return Raw(
        "\\par\\medskip\n{\\ttfamily\\footnotesize\\raggedright\\parindent0pt\\hangindent2em\n"
        f"{body}\n}}\\medskip\n"
    )


def _spaced(text: str) -> str:
    """Code with its spaces: those at the start of a line stay, others may break."""
    body = text.lstrip(" ")
    return "~" * (len(text) - len(body)) + _breaking(body)


def heading(level: int, text: object) -> Raw:
    """A heading without a number."""
    return Raw(f"\n{_ROOM}\n\\{_LEVELS[level]}{{{_made(text)}}}\n")


def paragraph(kind: str = "", *, caller: Callable[[], object]) -> Raw:
    """A paragraph."""
    return Raw(f"\n{' '.join(str(caller()).split())}\\par\n")


def row(*cells: object) -> Raw:
    """A row of a table."""
    return Raw(columns.joined([" ".join(str(_made(cell)).split()) for cell in cells]))


def table(*heads: str, caller: Callable[[], object]) -> Raw:
    """A table as wide as the line, which may go on on the next page."""
    found, rows = columns.table(heads, str(caller()))
    widths = _widths(found, rows)
    parts = [
        f">{{\\{'raggedleft' if head.number else 'raggedright'}\\arraybackslash}}"
        f"p{{{width - 0.00005:.4f}\\linewidth}}"
        for head, width in zip(found, widths, strict=True)
    ]
    names = " & ".join(f"\\textbf{{{_made(head.name)}}}" if head.name else "" for head in found)
    top = f"{names} \\\\\n\\midrule\n\\endhead\n" if names.strip(" &") else ""
    body = "\n".join(f"{' & '.join(cells)} \\\\" for cells in rows)
    return Raw(
        "\n{\\footnotesize\\setlength{\\tabcolsep}{0.0125\\linewidth}\n"
        f"\\begin{{longtable}}{{@{{}}{''.join(parts)}@{{}}}}\n\\toprule\n{top}{body}\n"
        "\\bottomrule\n\\end{longtable}}\n"
    )


def _widths(heads: Sequence[columns.Head], rows: Sequence[Sequence[str]]) -> list[float]:
    """Widths of columns in parts of a line: by their longest cells, none below its longest word."""
    texts = [at for at, head in enumerate(heads) if not head.number]
    room = 1 - _GAP * (len(heads) - 1) - _NUMBER_SHARE * (len(heads) - len(texts))
    least = {at: _longest_word(at, heads[at].name, rows) / _LINE_LETTERS for at in texts}
    wanted = {at: _letters(at, heads[at].name, rows) for at in texts}
    if sum(least.values()) > room:  # no widths fit: all words are cut alike
        wanted = least
    free, narrow = set(texts), set[int]()
    while free:
        left = room - sum(least[at] for at in narrow)
        share = {at: left * wanted[at] / sum(wanted[one] for one in free) for at in free}
        tight = {at for at in free if share[at] < least[at]}
        if not tight or tight == free:
            break
        narrow, free = narrow | tight, free - tight
    fixed = [least.get(at, _NUMBER_SHARE) for at in range(len(heads))]
    return [share[at] if at in free else fixed[at] for at in range(len(heads))]


def _longest_word(at: int, name: str, rows: Sequence[Sequence[str]]) -> int:
    cells = [name, *(row[at] for row in rows if at < len(row))]
    return max(len(_COMMAND.sub("", word)) for cell in cells for word in _BREAK.split(cell))


def _letters(at: int, name: str, rows: Sequence[Sequence[str]]) -> float:
    """How wide a column wants to be: by its longest cell, within bounds."""
    longest = max((len(row[at]) for row in rows if at < len(row)), default=0)
    return float(min(max(longest, len(name), _LEAST_LETTERS), _MOST_LETTERS))


def bars(nearness: Nearness) -> Raw:
    """The picture of the first page, made of rules; the limit is where the thin line is."""
    rows = []
    for bar in nearness.bars:
        filled = _BARS * bar.place
        mark = "" if bar.mark is None else _mark(filled - _BARS * bar.mark)
        limit = _at(_BARS * nearness.limit - filled, r"\rule[-2pt]{0.4pt}{10pt}")
        rows.append(
            f"{code(bar.name)} & \\rule{{{filled:.4f}\\linewidth}}{{5pt}}{mark}{limit} & "
            f"{numeral(bar.share)} \\\\"
        )
    more = f" {nearness.more} more have no bar." if nearness.more else ""
    return Raw(
        "\n\\par\\medskip\\noindent{\\footnotesize\n"
        f"\\begin{{tabular}}{{@{{}}>{{\\raggedright}}p{{{_NAMES:.2f}\\linewidth}}@{{\\quad}}"
        f"p{{{_BARS:.2f}\\linewidth}}@{{\\quad}}r@{{}}}}\n"
        + "\n".join(rows)
        + f"\n\\end{{tabular}}\\par\\smallskip {escape(NEARNESS + '.' + more)} The thin line is the "
        "limit; the axis goes from 0.0001 of it to 100 times of it.\\par}\n"
    )


def _mark(back: float) -> str:
    return _at(-back, r"\textcolor{white}{\rule[-1pt]{1.2pt}{7pt}}")


def _at(offset: float, what: str) -> str:
    """Something so far from here, which takes no room."""
    return f"\\rlap{{\\hspace*{{{offset:.4f}\\linewidth}}{what}}}"


def _lists(content: str) -> str:
    """`content` with each run of items in a list; no other line can begin as an item does."""
    lines: list[str] = []
    inside = False
    for line in content.splitlines():
        item = line.startswith("\\item ")
        if item != inside and line.strip():
            begin = "\\begin{itemize}\\setlength{\\itemsep}{0pt}"
            lines.append(begin if item else "\\end{itemize}")
            inside = item
        lines.append(line)
    return "\n".join([*lines, "\\end{itemize}"] if inside else lines)
