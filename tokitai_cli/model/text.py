"""Text for people: control characters made visible, numbers with enough digits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokitai_cli.model.evidence import Number

# C0 and C1 controls, DEL, line and paragraph separators, bidirectional controls (they reorder what
# a reader sees, CVE-2021-42574), zero-width and byte-order marks, and lone surrogates.
_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
)
_BLOCK = re.compile(f"[{_HIDDEN}]")
_LINE = re.compile(f"[\t\n{_HIDDEN}]")


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def visible(text: str) -> str:
    """Put `text` on one line; control characters but tabs and line breaks become visible escapes."""
    return _LINE.sub(lambda m: " " if m.group() in "\t\n\r" else _escaped(m), text)


def visible_block(text: str) -> str:
    """`text` with its line breaks and tabs kept and every other control character made visible."""
    return _BLOCK.sub(_escaped, text.replace("\r\n", "\n"))


def error_line(error: BaseException) -> str:
    """`error` on one line, as a person reads it."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def number(value: Number | None, digits: int = 6) -> str:
    """Show a number with `digits` significant digits; integers whole, None as a dash."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, int) or (value.is_integer() and abs(value) < 10**digits):
        return "-0" if str(value) == "-0.0" else str(int(value))
    return f"{value:.{digits}g}"


def shape_text(shape: dict[str, int], params: Sequence[str] = ()) -> str:
    """m=64,n=64 in the order of `params`, others after them; a dash where there is no parameter."""
    ordered = [name for name in params if name in shape]
    ordered += [name for name in shape if name not in params]
    return ",".join(f"{name}={shape[name]}" for name in ordered) or "-"
