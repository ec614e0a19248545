"""The parser of the language of sizes: integers, params, + - * // % **, comparisons, functions.

Expressions are read by a small parser of their own and evaluated over a tuple tree, so no text of a
spec is ever handed to Python's or a C compiler's evaluator. Text length, nesting and every
intermediate value are bounded. `//` and `%` round towards minus infinity.

    test       = both {"or" both}
    both       = comparison {"and" comparison}
    comparison = sum {("<" | "<=" | ">" | ">=" | "==" | "!=") sum}      (chains: 1 <= n <= 8)
    sum        = product {("+" | "-") product}
    product    = sign {("*" | "//" | "%") sign}
    sign       = ["-" | "+"] sign | atom ["**" sign]
    atom       = INTEGER | NAME | FUNCTION "(" sum {"," sum} ")" | "(" test ")"

FUNCTION is min, max (one argument or more), ceil_div (two), next_pow2 or ceil_log2 (one). Real
expressions have decimal numbers, `/` beside `*`, negative exponents, and sqrt too.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from tokitai_cli.core.errors import SpecError, near

MAX_LENGTH = 200
MAX_DEPTH = 32
FUNCTIONS = ("ceil_div", "ceil_log2", "max", "min", "next_pow2", "sqrt")
KEYWORDS = ("and", "or", "not")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
# Signs and functions of real expressions alone.
_REAL = ("/", "sqrt")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?[0-9A-Za-z_.]*)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>//|\*\*|<=|>=|==|!=|&&|\|\||[-+*/%<>=(),!.\[\]&|^]))"
)
_DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_MENDS = {
    "/": "use // for the quotient rounded down, or ceil_div(a, b) for the one rounded up",
    "sqrt": "roots are for scalars and draws of floating-point numbers",
    "=": "use == to compare",
    "&&": "use and",
    "||": "use or",
    "!": "use !=, or turn the comparison around",
    "not": "turn the comparison around: n != 0 instead of not n == 0",
    ".": "names are plain params, without dots",
}


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


class Node(NamedTuple):
    """`truth` tells comparisons from numbers; `value` is an int, a text or nodes, by `kind`."""

    kind: str
    truth: bool
    position: int
    value: Any


def is_comparison(text: str, *, real: bool = False) -> bool:
    """Whether `text` is a comparison; raises SpecError where it is no expression."""
    return parse(text, real=real).truth


def names_in(text: str | int, *, real: bool = False) -> tuple[str, ...]:
    """Names that an expression refers to, each once, in order of appearance."""
    if not isinstance(text, str):
        return ()
    found: dict[str, None] = {}
    pending = [parse(text, real=real)]
    while pending:
        node = pending.pop()
        if node.kind == "name":
            found[node.value] = None
        elif node.kind not in ("integer", "decimal"):
            parts = node.value[1:] if node.kind in ("arithmetic", "call") else node.value
            pending.extend(part for part in reversed(parts) if isinstance(part, Node))
    return tuple(found)


def arguments_of(text: str, function: str) -> list[list[str]]:
    """Arguments of each call of a function in an expression; raises SpecError where it is none."""
    parse(text)
    found: list[list[str]] = []
    tokens = _tokens(text, real=False)
    for at, token in enumerate(tokens):
        if (token.kind, token.text) != ("name", function):
            continue
        depth, begin, told = 0, tokens[at + 1].position + 1, list[str]()
        for one in tokens[at + 1 :]:
            depth += (one.text == "(") - (one.text == ")")
            if depth == 0 or (depth == 1 and one.text == ","):
                told.append(text[begin : one.position].strip())
                begin = one.position + 1
            if depth == 0:
                break
        found.append(told)
    return found


def caps_of(text: str | int) -> list[tuple[str, str]]:
    """What an expression is capped at: (`ceil_div(n, 64)`, `4`) of `min(ceil_div(n, 64), 4)`."""
    calls = arguments_of(text, "min") if isinstance(text, str) else []
    pairs = ((one, cap) for told in calls for one in told for cap in told)
    return [(one, cap) for one, cap in pairs if names_in(one) and not names_in(cap)]


@functools.lru_cache(maxsize=1024)
def parse(text: str, *, real: bool = False) -> Node:
    """Tree of an expression; raises SpecError with the position (from 1) of what is wrong."""
    if len(text) > MAX_LENGTH:
        raise SpecError(
            f"expression of {len(text)} characters is longer than {MAX_LENGTH}",
            hint="split it into params or several requirements",
        )
    return _Parser(text, real=real).whole()


def fault(message: str, text: str, position: int, hint: str = "") -> SpecError:
    """Error for what stands at a position (from 0) of an expression."""
    return SpecError(f"{message} at position {position + 1} of `{text}`", hint=hint)


def _tokens(text: str, real: bool) -> list[_Token]:
    tokens = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            at = position + len(text[position:]) - len(text[position:].lstrip())
            raise fault(f"unexpected character {text[at]!r}", text, at)
        kind = str(match.lastgroup)
        word = match.group(kind)
        start = match.start(kind)
        if kind == "number":
            kind = _number_kind(word, text, start, real)
        elif word in _MENDS and not (real and word in _REAL):
            raise fault(f"`{word}` is not part of the language", text, start, _MENDS[word])
        elif kind == "name" and word in ("and", "or"):
            kind = "sign"
        tokens.append(_Token(kind, word, start))
        position = match.end()
    tokens.append(_Token("end", "", end))
    return tokens


def _number_kind(word: str, text: str, start: int, real: bool) -> str:
    if not word.isdigit():
        if real and _DECIMAL.fullmatch(word):
            return "decimal"
        hint = "numbers are decimal integers, such as 16"
        raise fault(f"`{word}` is not an integer", text, start, hint)
    if len(word) > 1 and word[0] == "0":
        plain = word.lstrip("0") or "0"
        raise fault(f"`{word}` has a leading zero", text, start, f"write {plain}")
    return "integer"


class _Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str, *, real: bool) -> None:
        self.text = text
        self.tokens = _tokens(text, real)
        self.index = 0
        self.depth = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.index]

    def whole(self) -> Node:
        if self.token.kind == "end":
            raise SpecError("empty expression", hint="write an integer or a param")
        node = self.test()
        if self.token.kind != "end":
            raise fault(f"unexpected `{self.token.text}`", self.text, self.token.position)
        return node

    def take(self, *texts: str) -> _Token | None:
        token = self.token
        if token.kind == "sign" and token.text in texts:
            self.index += 1
            return token
        return None

    def need(self, node: Node, *, truth: bool) -> Node:
        if node.truth != truth:
            have, want = (
                ("a comparison", "a number") if node.truth else ("a number", "a comparison")
            )
            raise fault(f"{have} where {want} is expected", self.text, node.position)
        return node

    def test(self) -> Node:
        return self.joined("or", self.both)

    def both(self) -> Node:
        return self.joined("and", self.comparison)

    def joined(self, word: str, part: Callable[[], Node]) -> Node:
        node = part()
        parts = [node]
        while self.take(word):
            parts.append(self.need(part(), truth=True))
        if len(parts) == 1:
            return node
        self.need(node, truth=True)
        return Node(word, True, node.position, tuple(parts))

    def comparison(self) -> Node:
        node = self.sum()
        chain: list[Any] = [node]
        while token := self.take(*COMPARISONS):
            self.need(chain[-1], truth=False)
            chain += [token.text, self.need(self.sum(), truth=False)]
        return node if len(chain) == 1 else Node("compare", True, node.position, tuple(chain))

    def sum(self) -> Node:
        return self.folded(self.product, "+", "-")

    def product(self) -> Node:
        return self.folded(self.sign, "*", "//", "%", "/")

    def folded(self, part: Callable[[], Node], *signs: str) -> Node:
        node = part()
        while token := self.take(*signs):
            self.need(node, truth=False)
            right = self.need(part(), truth=False)
            value = (token.text, node, right)
            node = Node("arithmetic", False, token.position, value)
        return node

    def sign(self) -> Node:
        token = self.take("-", "+")
        if token is None:
            return self.power()
        self.enter()
        operand = self.need(self.sign(), truth=False)
        self.depth -= 1
        zero = Node("integer", False, token.position, 0)
        return Node("arithmetic", False, token.position, (token.text, zero, operand))

    def power(self) -> Node:
        base = self.atom()
        token = self.take("**")
        if token is None:
            return base
        self.enter()
        exponent = self.need(self.sign(), truth=False)
        self.depth -= 1
        value = (token.text, self.need(base, truth=False), exponent)
        return Node("arithmetic", False, token.position, value)

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            message = f"expression nested deeper than {MAX_DEPTH}"
            raise fault(message, self.text, self.token.position, "use fewer parentheses")

    def atom(self) -> Node:
        token = self.token
        self.index += 1
        if token.kind == "integer":
            return Node("integer", False, token.position, int(token.text))
        if token.kind == "decimal":
            return Node("decimal", False, token.position, token.text)
        if token.kind == "name":
            return self.call(token) if self.token.text == "(" else self.name(token)
        if token.text == "(":
            self.enter()
            node = self.test()
            self.close(token)
            return node
        self.index -= 1
        what = f"`{token.text}`" if token.text else "the end"
        raise fault(f"expected a number, a name or `(`, found {what}", self.text, token.position)

    def close(self, opening: _Token) -> None:
        if not self.take(")"):
            raise fault("this `(` is never closed", self.text, opening.position)
        self.depth -= 1

    def name(self, token: _Token) -> Node:
        if token.text in FUNCTIONS:
            hint = f"call it, such as {token.text}(...)"
            raise fault(
                f"function `{token.text}` without arguments", self.text, token.position, hint
            )
        return Node("name", False, token.position, token.text)

    def call(self, token: _Token) -> Node:
        if token.text not in FUNCTIONS:
            hint = near(token.text, FUNCTIONS)
            raise fault(f"unknown function `{token.text}`", self.text, token.position, hint)
        self.enter()
        opening = self.token
        self.index += 1
        arguments = [self.need(self.test(), truth=False)]
        while self.take(","):
            arguments.append(self.need(self.test(), truth=False))
        self.close(opening)
        wanted = {"ceil_div": 2, "ceil_log2": 1, "next_pow2": 1, "sqrt": 1}.get(token.text)
        if wanted is not None and len(arguments) != wanted:
            message = f"`{token.text}` takes {wanted} argument{'s' * (wanted > 1)}"
            raise fault(message, self.text, token.position)
        return Node("call", False, token.position, (token.text, *arguments))
