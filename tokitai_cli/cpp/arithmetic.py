"""Expressions of C++ outside of bodies: their polynomials, and the numbers that constants stand for."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

from tree_sitter import Node

from tokitai_cli.cpp.body.outer import outer_value
from tokitai_cli.cpp.body.polynomial import Polynomial, variable
from tokitai_cli.cpp.body.reader import READERS
from tokitai_cli.cpp.body.symbolic_values import Value
from tokitai_cli.cpp.body.walk import BudgetError, Walk
from tokitai_cli.cpp.declarations import marks_of
from tokitai_cli.cpp.lexing import names_in
from tokitai_cli.cpp.preprocessed_unit import Macro, preprocess
from tokitai_cli.cpp.program import Program
from tokitai_cli.cpp.tree import child, declarator_of, parsed_expression, text_of, walk

_LONGEST, _LARGEST = 2000, 1 << 64
_NAMES = frozenset({"identifier", "type_identifier", "qualified_identifier"})


@functools.lru_cache(maxsize=1 << 12)
def polynomial_of(text: str) -> Polynomial | None:
    """The polynomial of an expression; None where the text is none, or no number that is known."""
    value = _value(Walk(_of_functions(""), READERS), parsed_expression(text))
    known = isinstance(value, Polynomial) and not any("#" in name for name in value.names())
    return value if known and isinstance(value, Polynomial) else None


def constant(
    text: str,
    names: Mapping[str, str],
    macros: Mapping[str, Sequence[Macro]] | None = None,
    program: Program | None = None,
) -> int | None:
    """Value of an integer constant expression; None where it is no number.

    names: what names stand for. macros: definitions by name. program: whose constants and
    functions the text may speak of.
    """
    if text.isdecimal() and not text.startswith("0"):
        return int(text) if len(text) < _LONGEST else None
    node = parsed_expression(text) if text.isascii() and len(text) < _LONGEST else None
    if node is None:
        return None
    of = Walk(program or _of_functions("".join(_called(text, names, macros or {}))), READERS)
    _bind(of, node, names)
    value = _value(of, node)
    number = of.number(value).number if value is not None else None
    return number if number is not None and abs(number) <= _LARGEST else None


def _bind(of: Walk, node: Node, names: Mapping[str, str]) -> None:
    """Give the walk the values of names that an expression speaks of."""
    for one in walk(node):
        if one.type not in _NAMES:
            continue
        name = text_of(one)
        told = names.get(name, names.get(name.rpartition("::")[2]))
        if told is None or name in of.constants:
            continue
        of.constants[name] = variable(name)  # while its own value is read
        inner = parsed_expression(told) if len(told) < _LONGEST else None
        if inner is not None:
            _bind(of, inner, names)
            of.constants[name] = of.number(_value(of, inner))


def _value(of: Walk, node: Node | None) -> Value:
    try:
        return of.evaluate(node)
    except (BudgetError, RecursionError):
        return None


def _called(
    text: str, names: Mapping[str, str], macros: Mapping[str, Sequence[Macro]]
) -> Sequence[str]:
    """Macros with arguments that an expression leads to, as functions that return what they say."""
    found: dict[str, str] = {}
    waiting, seen = [text], set[str]()
    while waiting and macros:
        for word in set(names_in(waiting.pop())) - seen:
            seen.add(word)
            known = macros.get(word, ())
            if word in names:
                waiting.append(names[word])
            elif len(known) == 1 and known[0].parameters:
                taken = ", ".join(f"int {one}" for one in known[0].parameters)
                found[word] = f"int {word}({taken}) {{ return {known[0].body}; }}\n"
                waiting.append(known[0].body)
    return sorted(found.values())


@functools.lru_cache(maxsize=256)
def _of_functions(text: str) -> Program:
    return Program(preprocess(Path("-"), text=text))


def constants_in(program: Program) -> dict[str, str]:
    """Constants at namespace scope by name: their numbers, where these are known, else their texts."""
    of = Walk(program, READERS)
    found: dict[str, str] = {}
    for one in program.declarations:
        if one.kind != "variable" or not {"const", "constexpr"} & marks_of(one.node):
            continue
        try:
            value = outer_value(of, one.name)
        except (BudgetError, RecursionError):
            return found
        number = value.number if isinstance(value, Polynomial) else None
        for declarator in one.node.children_by_field_name("declarator"):
            if text_of(declarator_of(declarator).name) == one.name:
                told = text_of(child(declarator, "value"))
                found |= {one.name: str(number) if number is not None else told} if told else {}
    return found
