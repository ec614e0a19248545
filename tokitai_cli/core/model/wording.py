"""Text for people: hidden characters made visible, numbers with enough digits, counts in words."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from tokitai_cli.core.model.verdict import Verdict

if TYPE_CHECKING:
    from tokitai_cli.core.model.judged import Number

# What has no picture though Unicode calls it printable: joiners, fillers, variation selectors.
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
    + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)


class Escapes(dict[int, str]):
    """Table for `str.translate`: every character that a reader would not see becomes `escape` of it.

    Those are controls, separators but the space, formatting such as bidirectional overrides (they
    reorder what a reader sees, CVE-2021-42574) and zero-width marks, lone surrogates, and code points
    that are not assigned or for private use. `known` characters become what is said of them.
    """

    def __init__(self, escape: Callable[[int], str], known: Mapping[str, str]) -> None:
        super().__init__({ord(letter): text for letter, text in known.items()})
        self._escape = escape

    def applied(self, text: str) -> str:
        """`text` with its escapes; most text needs none, which is seen at a glance."""
        return text if text.isascii() and text.isprintable() else text.translate(self)

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        seen = letter.isprintable() and letter not in _BLANK
        return self.setdefault(code, letter if seen else self._escape(code))


def _escaped(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_LINE = Escapes(_escaped, dict.fromkeys("\t\n\r", " "))
_BLOCK = Escapes(_escaped, {"\t": "\t", "\n": "\n"})


def visible(text: str) -> str:
    """Put `text` on one line; hidden characters but tabs and line breaks become visible escapes."""
    return _LINE.applied(text)


def visible_block(text: str) -> str:
    """`text` with its line breaks and tabs kept and every other hidden character made visible."""
    return _BLOCK.applied(text.replace("\r\n", "\n"))


def shortened(text: str, most: int) -> str:
    """`text`, or its beginning and end with a word on what is left out, `most` characters in all."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} [{len(text) - 2 * half} characters left out] {text[-half:]}"


def error_line(error: BaseException) -> str:
    """`error` on one line, as a person reads it."""
    words = " ".join(visible(str(error)).split())
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def plural(count: int, noun: str) -> str:
    """`1 case`, `2 cases`, `2 guesses`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}{'es' if noun.endswith('s') else 's'}"


def counts_text(counts: Mapping[str, int]) -> str:
    """Counts by verdict such as `1 refuted, 12 verified`, worst first."""
    return ", ".join(f"{counts[one]} {one}" for one in Verdict if counts.get(one))


_WHOLE = 6  # digits of whole numbers that are shown as they are


def number(value: Number | None, digits: int = 6) -> str:
    """Show a number with `digits` significant digits; integers whole, None as a dash.

    One that is near 1 and not 1, such as an error of 0.999999993 of its limit, has as many as tell it.
    """
    if value is None:
        return "-"
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, int) or (value.is_integer() and abs(value) < 10 ** max(digits, _WHOLE)):
        return "-0" if str(value) == "-0.0" else str(int(value))
    texts = (f"{value:.{more}g}" for more in range(digits, 18))
    return next(text for text in texts if abs(float(text)) != 1.0)


def shape_text(shape: Mapping[str, int]) -> str:
    """m=64,n=64, in the order that the shape was made in; a dash where there is no parameter."""
    return ",".join(f"{name}={value}" for name, value in shape.items()) or "-"


class Placed(msgspec.Struct, frozen=True):
    """A place in a file; line and column count from 1, and are 0 where they are not known."""

    file: str
    line: int = 0
    column: int = 0


# In front of what a compiler, or the reader of a spec, says.
_PLACE = re.compile(r"(?=[./]*[^\s:./])(?P<file>[^\s:]+):(?:(?P<line>\d+):(?:(?P<column>\d+):)?)? ")
_RELATIVE = re.compile(r"(?<![\w/.~-])\.\.?/[^\s:]+(?=:\d+)")


def placed(text: str) -> tuple[Placed | None, str]:
    """The place that a text begins with, None where it begins with none, and what is said of it."""
    match = _PLACE.match(text)
    if match is None or not (match["line"] or "." in match["file"]):
        return None, text
    place = Placed(match["file"], int(match["line"] or 0), int(match["column"] or 0))
    return place, text[match.end() :]


def from_folder(text: str, spec: str) -> str:
    """`text` with the files that it names from the folder of the spec at the path `spec`, from here."""
    folder = posixpath.dirname(spec)
    if not folder:
        return text
    return _RELATIVE.sub(lambda file: posixpath.normpath(posixpath.join(folder, file[0])), text)
