"""Values of C++'s constant integer expressions, as a program's text has them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from tokitai_cli.cpp.source.macro_text import WORD, Macro, split
from tokitai_cli.cpp.source.types import ELEMENTS, sized
from tokitai_cli.cpp.tree import parse

if TYPE_CHECKING:
    from tree_sitter import Node

_LONGEST, _DEEPEST, _SHIFT, _LARGEST = 2000, 32, 64, 1 << 64
_FRONT = "int v = "
_PLACED = re.compile(r"(?<![\w>])\(\s*([A-Za-z_]\w*|\d\w*)\s*\)")  # `(N) - 1` is no cast


def _divided(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_BINARY: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divided,
    "%": lambda a, b: a - b * _divided(a, b), "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge, "<<": lambda a, b: a << min(max(b, 0), _SHIFT),
    ">>": lambda a, b: a >> min(max(b, 0), _SHIFT),
}  # fmt: skip
_UNARY: dict[str, Callable[[int], int]] = {
    "-": operator.neg, "+": operator.pos, "~": operator.invert, "!": operator.not_,
    "not": operator.not_,
}  # fmt: skip
_CALLED: dict[str, Callable[..., int]] = {"min": min, "max": max}


class OpenError(Exception):
    """The text does not say it."""


def constant(
    text: str, names: Mapping[str, str], macros: Mapping[str, Macro] | None = None
) -> int | None:
    """Value of an expression; None where it is no number.

    names: what names stand for. macros: those with arguments, by name.
    """
    try:
        return value(text, names.get, macros or {})
    except OpenError:
        return None


def value(
    text: str, named: Callable[[str], str | None], macros: Mapping[str, Macro], depth: int = 0
) -> int:
    """Value of an expression; `OpenError` where the text does not say it.

    named: what a name stands for, None where it is not known.
    """
    text = " ".join(_PLACED.sub(lambda m: m[0] if m[1] in ELEMENTS else f" {m[1]} ", text).split())
    if not text or len(text) > _LONGEST or depth > _DEEPEST or not text.isascii():
        raise OpenError
    if text.isdecimal() and not text.startswith("0"):
        return int(text)
    root = parse(f"{_FRONT}{text};".encode("ascii"))
    (declared, *more) = root.named_children
    held = declared.child_by_field_name("declarator")
    node = held.child_by_field_name("value") if held is not None else None
    if more or root.has_error or node is None or node.end_byte != len(_FRONT + text):
        raise OpenError
    found = int(_Expression(named, macros, depth).of(node))
    if abs(found) > _LARGEST:
        raise OpenError
    return found


def enumerators(node: Node) -> Iterator[tuple[str, str]]:
    """Enumerators below a declaration, each with the text of its value."""
    if node.type == "enumerator_list":
        before = ""
        for one in node.named_children:
            name, told = one.child_by_field_name("name"), one.child_by_field_name("value")
            if name is not None:
                before = _text(told) if told is not None else f"({before}) + 1" if before else "0"
                yield _text(name), before
                before = _text(name)
    for child in node.named_children:
        yield from enumerators(child)


class _Expression:
    def __init__(
        self, named: Callable[[str], str | None], macros: Mapping[str, Macro], depth: int
    ) -> None:
        self._named, self._macros, self._depth = named, macros, depth

    def of(self, node: Node) -> int:
        kind = node.type
        if kind == "number_literal":
            return _number(_text(node))
        if kind in {"true", "false"}:
            return int(kind == "true")
        if kind in {"identifier", "qualified_identifier"}:
            return self._name(_text(node))
        if kind == "parenthesized_expression" and len(node.named_children) == 1:
            return self.of(node.named_children[0])
        if kind == "conditional_expression":
            return self.of(
                _field(node, "consequence" if self._part(node, "condition") else "alternative")
            )
        if kind == "cast_expression":
            _plain_type(_text(_field(node, "type")))
            return self._part(node, "value")
        if kind == "sizeof_expression":
            return _plain_type(re.sub(r"^sizeof\s*\(?|\)$", "", _text(node)))
        if kind == "unary_expression" and (sign := _text(_field(node, "operator"))) in _UNARY:
            return int(_UNARY[sign](self._part(node, "argument")))
        return self._call(node) if kind == "call_expression" else self._binary(node)

    def _part(self, node: Node, name: str) -> int:
        return self.of(_field(node, name))

    def _binary(self, node: Node) -> int:
        sign = _text(_field(node, "operator"))
        left = self._part(node, "left")
        if sign in {"&&", "and", "||", "or"}:
            either = sign in {"||", "or"}
            return int(either if bool(left) == either else bool(self._part(node, "right")))
        right = self._part(node, "right")
        if sign not in _BINARY or (sign in "/%" and not right):
            raise OpenError
        return int(_BINARY[sign](left, right))

    def _name(self, name: str) -> int:
        told = self._named(name)
        if told is None and "::" in name:
            told = self._named(name.rpartition("::")[2])
        if told is None:
            raise OpenError
        return value(told, self._named, self._macros, self._depth + 1)

    def _call(self, node: Node) -> int:
        """A macro or a function that gives an expression, a cast, the least or the most."""
        name = _text(_field(node, "function")).removeprefix("std::")
        given = split(_text(_field(node, "arguments"))[1:-1])
        macro = self._macros.get(name)
        if (
            macro is not None
            and len(set(macro.bodies)) == 1
            and len(given) == len(macro.parameters)
        ):
            put = {one: f"({text})" for one, text in zip(macro.parameters, given, strict=True)}
            body = WORD.sub(lambda m: put.get(m[0], m[0]), macro.bodies[0])
            return value(body, self._named, self._macros, self._depth + 1)
        values = [value(one, self._named, self._macros, self._depth + 1) for one in given]
        name = name.partition("<")[0] if name.startswith(("min<", "max<")) else name
        if name in _CALLED and values:
            return int(_CALLED[name](values))
        cast = re.fullmatch(r"static_cast\s*<(.*)>", name)
        _plain_type(cast[1] if cast else name)
        if len(values) != 1:
            raise OpenError
        return values[0]


def _number(text: str) -> int:
    bare = re.sub(r"[uUlLzZ]+$", "", text).replace("'", "")
    try:
        return int(bare, 8 if re.fullmatch("0[0-7]+", bare) else 0)
    except ValueError as error:
        raise OpenError from error


def _plain_type(name: str) -> int:
    """Bytes of a plain whole or real type; open for another."""
    found = sized(name.strip())
    if found is None:
        raise OpenError
    return found


def _field(node: Node, name: str) -> Node:
    found = node.child_by_field_name(name)
    if found is None:
        raise OpenError
    return found


def _text(node: Node) -> str:
    return (node.text or b"").decode("ascii")
