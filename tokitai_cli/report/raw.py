"""Text that is ready for its target."""

from __future__ import annotations


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
