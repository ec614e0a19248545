"""Expressions over case ids, as -k takes them: words joined by and, or, not and parentheses."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from tokitai_cli.core.errors import UsageError

Matcher = Callable[[str], bool]

# Far more than a person nests, and far less than Python's parser takes.
MAX_DEPTH = 50
_PIECE = re.compile(r"[\w.:\-=/,@]+|\S")
_WORD = re.compile(r"[\w.:\-=/,@]+|[()]")
_OPERATORS = frozenset({"and", "or", "not", "(", ")"})
_FORMS = "write words of the case's id, such as -k 'softmax and not (special or m=1)'"


def matcher(text: str) -> Matcher:
    """Test of a case id that `text` asks for; an empty text asks for nothing, and all ids pass.

    A word is a part of the id, in letters of either case; `not` binds tighter than `and`, and that
    tighter than `or`. Digits and the words true and false are words like others. Raises UsageError.
    """
    if not text:
        return lambda _: True
    words = text.strip()
    try:
        tree = ast.parse(_as_python(words), mode="eval")
    except SyntaxError as error:
        raise _unread(words, error.offset or len(words) + 1) from None
    except (RecursionError, MemoryError):
        raise _too_deep(words) from None
    return _test(tree.body, words, 0)


def _as_python(text: str) -> str:
    """`text` with operators in small letters, and each word as a name of the same length."""

    def name(match: re.Match[str]) -> str:
        piece = match.group().lower()
        if not _WORD.fullmatch(piece):
            hint = "words have letters, digits and . : _ - = / , @; operators are and, or, not, ( )"
            raise _fault(text, f"{match.group()!r} at position {match.start() + 1}", hint)
        return piece if piece in _OPERATORS else "x" * len(match.group())

    return _PIECE.sub(name, re.sub(r"\s", " ", text))


def _test(node: ast.expr, words: str, depth: int) -> Matcher:
    """Closures that evaluate the tree; a name in it stands where its word does in `words`."""
    if depth > MAX_DEPTH:
        raise _too_deep(words)
    if isinstance(node, ast.Name):
        word = words[node.col_offset : node.end_col_offset].casefold()
        return lambda id: word in id.casefold()
    if isinstance(node, ast.UnaryOp):
        negated = _test(node.operand, words, depth + 1)
        return lambda id: not negated(id)
    if isinstance(node, ast.BoolOp):
        tests = [_test(part, words, depth + 1) for part in node.values]
        every = all if isinstance(node.op, ast.And) else any
        return lambda id: every(test(id) for test in tests)
    # Parentheses with nothing in between, or behind an operand.
    before = node.func.end_col_offset if isinstance(node, ast.Call) else node.col_offset
    raise _unread(words, 1 + (before or 0))


def _unread(words: str, place: int) -> UsageError:
    return _fault(words, f"cannot be read at position {place}", _FORMS)


def _too_deep(words: str) -> UsageError:
    return _fault(words, f"nested deeper than {MAX_DEPTH}", "use a shorter expression")


def _fault(text: str, message: str, hint: str) -> UsageError:
    shown = text if len(text) <= 60 else text[:57] + "..."
    return UsageError(f"-k {shown!r}: {message}", hint=hint)
