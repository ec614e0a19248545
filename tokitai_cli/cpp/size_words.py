"""Polynomials in the language of sizes, and sizes as polynomials."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from tree_sitter import Node

from tokitai_cli.cpp.body.polynomial import (
    Atom,
    Monomial,
    Polynomial,
    Quotient,
    constant,
    quotient,
    variable,
)
from tokitai_cli.cpp.body.symbolic_values import Access, Facts, Guard, Stepped
from tokitai_cli.cpp.tree import child, named, parsed_expression, text_of


def in_sizes(extent: Polynomial, names: Mapping[str, str]) -> str:
    """An extent in the language of sizes; empty where it has names that `names` have no word for."""
    parts = []
    for key, count in sorted(extent.terms.items(), key=lambda one: -len(one[0])):
        factors = [_atom(atom, names) for atom in key]
        if len(key) > 1 or abs(count) != 1:
            factors = [f"({one})" if "//" in one else one for one in factors]
        if not all(factors):
            return ""
        number = [str(abs(count))] if abs(count) != 1 or not key else []
        parts.append(("-" if count < 0 else "+") + " " + " * ".join([*number, *factors]))
    text = " ".join(parts).removeprefix("+ ")
    return text if not text.startswith("-") else ""


def _atom(atom: Atom, names: Mapping[str, str]) -> str:
    if isinstance(atom, str):
        return names.get(atom, "")
    parts = [in_sizes(one, names) for one in atom.parts]
    if not all(parts):
        return ""
    if isinstance(atom, Quotient):
        return f"{grouped(parts[0])} // {grouped(parts[1])}"
    if atom.function in {"?>", "?!="} and parts[1:] == ["0", "1", "0"]:
        return f"min(1, {parts[0]})"
    return f"{atom.function}({', '.join(parts)})" if atom.function in {"min", "max"} else ""


def grouped(text: str) -> str:
    """As a part of a longer expression."""
    return f"({text})" if " " in text else text


def ungrouped(text: str) -> str:
    """An expression without parentheses around it all."""
    while text.startswith("(") and text.endswith(")"):
        depth = [0]
        for mark in text[:-1]:
            depth.append(depth[-1] + (mark == "(") - (mark == ")"))
        if 0 in depth[1:]:
            break
        text = text[1:-1]
    return text


def polynomial_of(text: str) -> Polynomial | None:
    """An expression of the language of sizes as a polynomial; None where it is none."""
    node = parsed_expression(text.replace("//", "/"))
    return _polynomial(node) if node is not None else None


def in_words(facts: Facts, values: Mapping[str, Polynomial]) -> Facts:
    """Facts with values in place of names of the kernel's."""
    if all(value == variable(name) for name, value in values.items()):
        return facts

    def put(one: Polynomial) -> Polynomial:
        return one.with_values(values)

    def guard(one: Guard) -> Guard:
        return Guard(put(one.left), one.sign, put(one.right))

    def access(one: Access) -> Access:
        return one._replace(offset=put(one.offset), guards=tuple(map(guard, one.guards)))

    return msgspec.structs.replace(
        facts,
        accesses=[*map(access, facts.accesses)],
        lent=[*map(access, facts.lent)],
        loops=[Stepped(one.counter, put(one.start), put(one.step)) for one in facts.loops],
        compared=[guard(one) for one in facts.compared],
        asserted=[guard(one) for one in facts.asserted],
        barriers=[tuple(map(guard, one)) for one in facts.barriers],
        local_accesses=[*map(access, facts.local_accesses)],
        products=_in_words(facts.products, values),
        called={put(value): names for value, names in facts.called.items()},
    )


def _in_words(
    products: Mapping[Monomial, Monomial], values: Mapping[str, Polynomial]
) -> dict[Monomial, Monomial]:
    """Products whose factors have names alone in place of their own."""
    found: dict[Monomial, Monomial] = {}
    for factors in products.values():
        told = [values.get(str(one), Polynomial({(one,): 1})) for one in factors]
        if all(len(one.terms) == 1 and set(one.terms.values()) == {1} for one in told):
            order = tuple(atom for one in told for key in one.terms for atom in key)
            found.setdefault(tuple(sorted(order, key=str)), order)
    return found


def _polynomial(node: Node) -> Polynomial | None:
    if node.type == "identifier":
        return variable(text_of(node))
    if node.type == "number_literal":
        return constant(int(text_of(node))) if text_of(node).isdigit() else None
    if node.type == "parenthesized_expression":
        return _polynomial(named(node)[0])
    left, right = child(node, "left"), child(node, "right")
    if node.type != "binary_expression" or left is None or right is None:
        return None
    one, other, sign = _polynomial(left), _polynomial(right), text_of(child(node, "operator"))
    if one is None or other is None:
        return None
    if sign == "/":
        return quotient(one, other) if other else None
    return {"+": one + other, "-": one - other, "*": one * other}.get(sign)
