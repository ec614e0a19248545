"""Spellings of C++ and CUDA that the grammar has no rule for, written so that it reads them.

Each is blanked in a copy of the same length, so that offsets in the tree are those of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

# Attributes with arguments: __align__(16), alignas(8), __attribute__((packed)).
_ATTRIBUTES = (b"__align__", b"__builtin_align__", b"alignas", b"__attribute__", b"__declspec",
               b"__cluster_dims__")  # fmt: skip
# Words that say nothing of what is computed.
_WORDS = (b"__grid_constant__", b"__extension__", b"__managed__")
_SPACE = b" \t\r\n\f\v"
_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_CAPITALS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_BETWEEN = frozenset({b"static", b"inline", b"void"})


def readable(text: bytes) -> bytes:
    """The text with what the grammar does not know blanked."""
    new = bytearray(text)
    for begin, end in _unread(text):
        new[begin:end] = bytes(one if one in b"\r\n" else 32 for one in text[begin:end])
    return bytes(new)


def _unread(text: bytes) -> Iterator[tuple[int, int]]:
    for word in _WORDS:
        yield from _places(text, word)
    for word, read in _READERS.items():
        for begin, end in _places(text, word):
            yield from read(text, begin, end)


def _attribute(text: bytes, begin: int, end: int) -> Iterator[tuple[int, int]]:
    opened = _behind_space(text, end)
    if text[opened : opened + 1] == b"(":
        yield begin, _behind_bracket(text, opened)


def _typename(text: bytes, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """As an expression, `typename T::type(x)`: the word is of no use to a reader."""
    if _scope_follows(text, end):
        yield begin, end


def _template(text: bytes, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """`x.template f<3>()`, `x->template f<3>()`, `T::template f<3>()`."""
    start = max(0, begin - 64)
    front = text[start:begin].rstrip()
    line = text[text.rfind(b"\n", 0, start + len(front)) + 1 : begin]
    called = front.endswith((b".", b"->", b"::")) and b"//" not in line  # no end of a comment
    after = _behind_space(text, end)
    if called and text[after : after + 1] != b"<":
        yield begin, end


def _places(text: bytes, word: bytes) -> Iterator[tuple[int, int]]:
    """Where a word stands by itself."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        whole = at == 0 or text[at - 1] not in _LETTERS
        if whole and (end == len(text) or text[end] not in _LETTERS):
            yield at, end
        at = text.find(word, end)


def _behind_space(text: bytes, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _behind_name(text: bytes, at: int) -> int:
    while at < len(text) and text[at] in _LETTERS:
        at += 1
    return at


def _behind_bracket(text: bytes, at: int) -> int:
    """The offset behind the parenthesis that closes the one there; the same one where none does."""
    depth = 0
    for here in range(at, len(text)):
        depth += (text[here] == 40) - (text[here] == 41)
        if depth == 0:
            return here + 1
    return at


def _scope_follows(text: bytes, at: int) -> bool:
    """Whether a name, with template arguments or not, and `::` follow."""
    at = _behind_space(text, at)
    at = _behind_space(text, at + 2) if text[at : at + 2] == b"::" else at
    end = _behind_name(text, at)
    end_of_name = _behind_space(text, end)
    if text[end_of_name : end_of_name + 1] == b"<":
        closed = text.find(b">", end_of_name)
        inner = text[end_of_name + 1 : closed] if closed > 0 else b"<"
        if not any(one in inner for one in (b"<", b";", b"{", b"}")):
            end_of_name = _behind_space(text, closed + 1)
    return end > at and text[end_of_name : end_of_name + 2] == b"::"


def _range(text: bytes, _: int, at: int) -> Iterator[tuple[int, int]]:
    """`1 ...` of `case 1 ... 4:`, of GNU's C."""
    begin = _behind_space(text, at)
    dots = _behind_space(text, _behind_name(text, begin))
    if text[dots : dots + 3] == b"...":
        yield begin, dots + 3


def _macro(text: bytes, _: int, at: int) -> Iterator[tuple[int, int]]:
    """A macro of an absent header as an attribute: `__global__ void C10_LAUNCH_BOUNDS_1(n) k()`."""
    begin = _behind_space(text, at)
    end = _behind_name(text, begin)
    while text[begin:end] in _BETWEEN:
        begin = _behind_space(text, end)
        end = _behind_name(text, begin)
    opened = _behind_space(text, end)
    if (
        end - begin < 2
        or not _CAPITALS.issuperset(text[begin:end])
        or text[opened : opened + 1] != b"("
    ):
        return
    closed = _behind_bracket(text, opened)
    after = _behind_space(text, closed)
    if (
        after > closed
        and _behind_name(text, after) > after
        and not text[after : after + 1].isdigit()
    ):
        yield begin, closed


_READERS: Mapping[bytes, Callable[[bytes, int, int], Iterator[tuple[int, int]]]] = {
    **dict.fromkeys(_ATTRIBUTES, _attribute),
    b"typename": _typename,
    b"template": _template,
    b"case": _range,
    b"__global__": _macro,
}
