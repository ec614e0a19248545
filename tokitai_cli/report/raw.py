"""Text that is ready for its target."""

from __future__ import annotations

from collections.abc import Callable

# Significant digits of numbers in a report; those of elements and exact values have their own.
DIGITS = 3
# What the picture of the first page shows.
NEARNESS = (
    "Largest error over its limit, by variant and kind of input, on a logarithmic axis; the mark "
    "in a bar shows what share of the error allowance is used; the allowance is the limit without the "
    "last rounding"
)


class Raw(str):
    """Text of a target that was made here, with every untrusted part escaped."""

    __slots__ = ()

    def __html__(self) -> str:
        """Itself: what Jinja and MarkupSafe ask before they escape."""
        return self


# What XML and HTML read as markup, in text and in attributes; the standard library's escapes load much
# more than they do, at every start.
MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


class Numeral(Raw):
    """A number as text; tables put it to the right."""

    __slots__ = ()


def printer(
    escape: Callable[[str], str], numeral: Callable[[float], str], nothing: str = "-"
) -> Callable[[object], str]:
    """What gives a template's values as text of a target: escaped, numbers with enough digits.

    nothing: for None. The function raises TypeError for anything whose text was not thought about.
    """

    def printed(value: object) -> str:
        if isinstance(value, Raw):
            return value
        if isinstance(value, str):
            return escape(value)
        if value is None:
            return nothing
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, int | float):
            return numeral(value)
        raise TypeError(f"a template prints {type(value).__name__}")

    return printed


def made(value: object, printed: Callable[[object], str]) -> str:
    """`value` as text of the target: as it is where it is such text, else printed."""
    return str(value) if hasattr(value, "__html__") else printed(value)
