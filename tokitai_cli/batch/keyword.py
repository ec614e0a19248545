"""Expressions over case ids, as -k takes them: words joined by and, or, not and parentheses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import boolean  # type: ignore[import-untyped]

from tokitai_cli.errors import UsageError

Matcher = Callable[[str], bool]

# Far more than a person nests, and far less than Python's stack takes.
MAX_DEPTH = 50
_OPERATORS = {
    "and": boolean.TOKEN_AND,
    "or": boolean.TOKEN_OR,
    "not": boolean.TOKEN_NOT,
    "(": boolean.TOKEN_LPAR,
    ")": boolean.TOKEN_RPAR,
}
_PIECE = re.compile(r"[\w.:\-=/,@]+|\S")
_WORD = re.compile(r"[\w.:\-=/,@]+")
_FORMS = "write words of the case's id, such as -k 'softmax and not (special or m=1)'"

Token = tuple[int, str, int]


def matcher(text: str) -> Matcher:
    """Test of a case id that `text` asks for; an empty text asks for nothing, and all ids pass.

    A word is a part of the id, in letters of either case; `not` binds tighter than `and`, and that
    tighter than `or`. Digits and the words true and false are words like others. Raises UsageError.
    """
    if not text:
        return lambda _: True
    tokens = list(_checked(text, _tokens(text)))
    return _test(boolean.BooleanAlgebra().parse(tokens))


def _tokens(text: str) -> Iterator[Token]:
    """Tokens of boolean.py, whose own tokenizer would read 0, 1, true and none as constants."""
    for match in _PIECE.finditer(text):
        piece = match.group()
        kind = _OPERATORS.get(piece.lower(), boolean.TOKEN_SYMBOL)
        if kind == boolean.TOKEN_SYMBOL and not _WORD.fullmatch(piece):
            mend = "words have letters, digits and . : _ - = / , @; operators are and, or, not, ( )"
            raise _fault(text, f"{piece!r} at position {match.start() + 1}", mend)
        yield kind, piece, match.start()


def _checked(text: str, tokens: Iterator[Token]) -> Iterator[Token]:
    """Pass on well-formed tokens: boolean.py drops or joins what follows a whole operand."""
    open_at: list[int] = []
    operand_is_next = True
    negations = 0
    last = ""
    for kind, piece, start in tokens:
        starts = kind in (boolean.TOKEN_SYMBOL, boolean.TOKEN_NOT, boolean.TOKEN_LPAR)
        if starts is not operand_is_next:
            if kind == boolean.TOKEN_RPAR and last == "(":
                raise _fault(text, "nothing between the parentheses", _FORMS)
            wanted = "a word" if operand_is_next else "`and` or `or`"
            raise _fault(text, f"{wanted} is missing in front of {piece!r}", _FORMS)
        negations = negations + 1 if kind == boolean.TOKEN_NOT else 0
        if kind == boolean.TOKEN_LPAR:
            open_at.append(start)
        elif kind == boolean.TOKEN_RPAR:
            if not open_at:
                raise _fault(text, f"nothing opens the ) at position {start + 1}", _FORMS)
            open_at.pop()
        if len(open_at) + negations > MAX_DEPTH:
            raise _fault(text, f"nested deeper than {MAX_DEPTH}", "use a shorter expression")
        operand_is_next = kind not in (boolean.TOKEN_SYMBOL, boolean.TOKEN_RPAR)
        last = piece
        yield kind, piece, start
    if operand_is_next:
        raise _fault(text, f"a word is missing behind {last!r}" if last else "no word", _FORMS)
    if open_at:
        raise _fault(text, f"nothing closes the ( at position {open_at[-1] + 1}", _FORMS)


def _test(expression: Any) -> Matcher:
    """Closures that evaluate the tree; boolean.py's own evaluation wants every word's value."""
    if isinstance(expression, boolean.Symbol):
        word = expression.obj.casefold()
        return lambda text: word in text.casefold()
    tests = [_test(part) for part in expression.args]
    if isinstance(expression, boolean.NOT):
        negated = tests[0]
        return lambda text: not negated(text)
    if isinstance(expression, boolean.AND):
        return lambda text: all(test(text) for test in tests)
    return lambda text: any(test(text) for test in tests)


def _fault(text: str, message: str, mend: str) -> UsageError:
    shown = text if len(text) <= 60 else text[:57] + "..."
    return UsageError(f"-k {shown!r}: {message}", mend=mend)
