"""The language of sizes: integers, params, + - * // %, comparisons, and a few functions.

Expressions are read by a small parser of their own and evaluated over a tuple tree, so no text of a
spec is ever handed to Python's or a C compiler's evaluator. Text length, nesting and every
intermediate value are bounded. `//` and `%` round towards minus infinity.

    test       = both {"or" both}
    both       = comparison {"and" comparison}
    comparison = sum {("<" | "<=" | ">" | ">=" | "==" | "!=") sum}      (chains: 1 <= n <= 8)
    sum        = product {("+" | "-") product}
    product    = sign {("*" | "//" | "%") sign}
    sign       = ["-" | "+"] sign | atom
    atom       = INTEGER | NAME | FUNCTION "(" sum {"," sum} ")" | "(" test ")"

FUNCTION is min, max (one argument or more), ceil_div (two), next_pow2 or ceil_log2 (one).
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tokitai_cli.errors import SpecError, near

MAX_LENGTH = 200
MAX_DEPTH = 32
MAX_VALUE = 2**63 - 1

FUNCTIONS = ("ceil_div", "ceil_log2", "max", "min", "next_pow2")
KEYWORDS = ("and", "or", "not")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9][0-9A-Za-z_.]*)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>//|\*\*|<=|>=|==|!=|&&|\|\||[-+*/%<>=(),!.\[\]&|^]))"
)
_MENDS = {
    "/": "use // for the quotient rounded down, or ceil_div(a, b) for the one rounded up",
    "**": "powers are not part of the language; write the product",
    "=": "use == to compare",
    "&&": "use and",
    "||": "use or",
    "!": "use !=, or turn the comparison around",
    "not": "turn the comparison around: n != 0 instead of not n == 0",
    ".": "names are plain params, without dots",
}
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


class _Node(NamedTuple):
    """`truth` tells comparisons from numbers; `value` is an int, a name or nodes, by `kind`."""

    kind: str
    truth: bool
    position: int
    value: Any


def evaluate(text: str | int, names: Mapping[str, int]) -> int:
    """Value of an integer expression with `names` filled in; an int is returned as it is.

    Raises SpecError (without a location) for text that is no expression of this language, for a
    comparison, an unknown name, a division by zero, and for |value| >= 2^63.
    """
    if not isinstance(text, str):
        return _bounded(text, str(text))
    node = parse(text)
    if node.truth:
        raise SpecError(f"`{text}` is a comparison where a number belongs", mend="write a number")
    return _number(node, names, text)


def holds(text: str, names: Mapping[str, int]) -> bool:
    """Whether a comparison holds with `names` filled in; raises SpecError as `evaluate` does."""
    node = parse(text)
    if not node.truth:
        raise SpecError(
            f"`{text}` is a number where a comparison belongs",
            mend=f"compare it, such as {text} == 0",
        )
    return _truth(node, names, text)


def is_comparison(text: str) -> bool:
    """Whether `text` is a comparison; raises SpecError where it is no expression."""
    return parse(text).truth


def names_in(text: str | int) -> tuple[str, ...]:
    """Names that an expression refers to, each once, in order of appearance."""
    if not isinstance(text, str):
        return ()
    found: dict[str, None] = {}
    pending = [parse(text)]
    while pending:
        node = pending.pop()
        if node.kind == "name":
            found[node.value] = None
        elif node.kind != "integer":
            parts = node.value[1:] if node.kind in ("arithmetic", "call") else node.value
            pending.extend(part for part in reversed(parts) if isinstance(part, _Node))
    return tuple(found)


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> _Node:
    """Tree of an expression; raises SpecError with the position (from 1) of what is wrong."""
    if len(text) > MAX_LENGTH:
        raise SpecError(
            f"expression of {len(text)} characters is longer than {MAX_LENGTH}",
            mend="split it into params or several requirements",
        )
    return _Parser(text).whole()


def _fault(message: str, text: str, position: int, mend: str = "") -> SpecError:
    return SpecError(f"{message} at position {position + 1} of `{text}`", mend=mend)


def _tokens(text: str) -> list[_Token]:
    tokens = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            at = position + len(text[position:]) - len(text[position:].lstrip())
            raise _fault(f"unexpected character {text[at]!r}", text, at)
        kind = str(match.lastgroup)
        word = match.group(kind)
        start = match.start(kind)
        if kind == "number":
            _check_integer(word, text, start)
        elif word in _MENDS:
            raise _fault(f"`{word}` is not part of the language", text, start, _MENDS[word])
        elif kind == "name" and word in ("and", "or"):
            kind = "sign"
        tokens.append(_Token(kind, word, start))
        position = match.end()
    tokens.append(_Token("end", "", end))
    return tokens


def _check_integer(word: str, text: str, start: int) -> None:
    if not word.isdigit():
        mend = "numbers are decimal integers, such as 16"
        raise _fault(f"`{word}` is no integer", text, start, mend)
    if len(word) > 1 and word[0] == "0":
        plain = word.lstrip("0") or "0"
        raise _fault(f"`{word}` has a leading zero", text, start, f"write {plain}")


class _Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.index = 0
        self.depth = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.index]

    def whole(self) -> _Node:
        if self.token.kind == "end":
            raise SpecError("empty expression", mend="write an integer or a param")
        node = self.test()
        if self.token.kind != "end":
            raise _fault(f"unexpected `{self.token.text}`", self.text, self.token.position)
        return node

    def take(self, *texts: str) -> _Token | None:
        token = self.token
        if token.kind == "sign" and token.text in texts:
            self.index += 1
            return token
        return None

    def need(self, node: _Node, *, truth: bool) -> _Node:
        if node.truth != truth:
            have, want = (
                ("a comparison", "a number") if node.truth else ("a number", "a comparison")
            )
            raise _fault(f"{have} where {want} belongs", self.text, node.position)
        return node

    def test(self) -> _Node:
        return self.joined("or", self.both)

    def both(self) -> _Node:
        return self.joined("and", self.comparison)

    def joined(self, word: str, part: Callable[[], _Node]) -> _Node:
        node = part()
        parts = [node]
        while self.take(word):
            parts.append(self.need(part(), truth=True))
        if len(parts) == 1:
            return node
        self.need(node, truth=True)
        return _Node(word, True, node.position, tuple(parts))

    def comparison(self) -> _Node:
        node = self.sum()
        chain: list[Any] = [node]
        while token := self.take(*_COMPARE):
            self.need(chain[-1], truth=False)
            chain += [token.text, self.need(self.sum(), truth=False)]
        return node if len(chain) == 1 else _Node("compare", True, node.position, tuple(chain))

    def sum(self) -> _Node:
        return self.folded(self.product, "+", "-")

    def product(self) -> _Node:
        return self.folded(self.sign, "*", "//", "%")

    def folded(self, part: Callable[[], _Node], *signs: str) -> _Node:
        node = part()
        while token := self.take(*signs):
            self.need(node, truth=False)
            right = self.need(part(), truth=False)
            value = (token.text, node, right)
            node = _Node("arithmetic", False, token.position, value)
        return node

    def sign(self) -> _Node:
        token = self.take("-", "+")
        if token is None:
            return self.atom()
        self.enter()
        operand = self.need(self.sign(), truth=False)
        self.depth -= 1
        zero = _Node("integer", False, token.position, 0)
        return _Node("arithmetic", False, token.position, (token.text, zero, operand))

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            message = f"expression nested deeper than {MAX_DEPTH}"
            raise _fault(message, self.text, self.token.position, "use fewer parentheses")

    def atom(self) -> _Node:
        token = self.token
        self.index += 1
        if token.kind == "number":
            return _Node("integer", False, token.position, int(token.text))
        if token.kind == "name":
            return self.call(token) if self.token.text == "(" else self.name(token)
        if token.text == "(":
            self.enter()
            node = self.test()
            self.close(token)
            return node
        self.index -= 1
        what = f"`{token.text}`" if token.text else "the end"
        raise _fault(f"expected a number, a name or `(`, found {what}", self.text, token.position)

    def close(self, opening: _Token) -> None:
        if not self.take(")"):
            raise _fault("this `(` is never closed", self.text, opening.position)
        self.depth -= 1

    def name(self, token: _Token) -> _Node:
        if token.text in FUNCTIONS:
            mend = f"call it, such as {token.text}(...)"
            raise _fault(
                f"function `{token.text}` without arguments", self.text, token.position, mend
            )
        return _Node("name", False, token.position, token.text)

    def call(self, token: _Token) -> _Node:
        if token.text not in FUNCTIONS:
            mend = near(token.text, FUNCTIONS)
            raise _fault(f"unknown function `{token.text}`", self.text, token.position, mend)
        self.enter()
        opening = self.token
        self.index += 1
        arguments = [self.need(self.test(), truth=False)]
        while self.take(","):
            arguments.append(self.need(self.test(), truth=False))
        self.close(opening)
        wanted = {"ceil_div": 2, "ceil_log2": 1, "next_pow2": 1}.get(token.text)
        if wanted is not None and len(arguments) != wanted:
            message = f"`{token.text}` takes {wanted} argument{'s' * (wanted > 1)}"
            raise _fault(message, self.text, token.position)
        return _Node("call", False, token.position, (token.text, *arguments))


def _bounded(value: int, text: str) -> int:
    if abs(value) > MAX_VALUE:
        raise SpecError(f"`{text}` gives a value of 2^63 or more", mend="use smaller values")
    return value


def _number(node: _Node, names: Mapping[str, int], text: str) -> int:
    if node.kind == "integer":
        return _bounded(node.value, text)
    if node.kind == "name":
        if node.value not in names:
            mend = near(node.value, names)
            raise _fault(f"unknown name `{node.value}`", text, node.position, mend)
        return _bounded(names[node.value], text)
    word, *operands = node.value
    values = [_number(operand, names, text) for operand in operands]
    if node.kind == "call":
        return _bounded(_called(word, values, node, text), text)
    if word in ("//", "%") and values[1] == 0:
        raise _fault("division by zero", text, node.position)
    return _bounded(_ARITHMETIC[word](*values), text)


def _called(word: str, values: list[int], node: _Node, text: str) -> int:
    if word == "ceil_div":
        if values[1] <= 0:
            message = f"ceil_div divides by {values[1]}, which is not positive"
            raise _fault(message, text, node.position)
        return -(-values[0] // values[1])
    if word == "next_pow2":
        if values[0] < 0:
            raise _fault(f"next_pow2 of {values[0]}, which is negative", text, node.position)
        return 1 << max(values[0] - 1, 0).bit_length()
    if word == "ceil_log2":
        if values[0] < 1:
            raise _fault(f"ceil_log2 of {values[0]}, which is not positive", text, node.position)
        return (values[0] - 1).bit_length()
    return min(values) if word == "min" else max(values)


def _truth(node: _Node, names: Mapping[str, int], text: str) -> bool:
    if node.kind == "or":
        return any(_truth(part, names, text) for part in node.value)
    if node.kind == "and":
        return all(_truth(part, names, text) for part in node.value)
    values = [_number(part, names, text) for part in node.value[::2]]
    signs = node.value[1::2]
    pairs = zip(values, values[1:], signs, strict=False)
    return all(_COMPARE[sign](left, right) for left, right, sign in pairs)
