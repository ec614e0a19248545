"""Values of expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tree_sitter import Node

from tokitai_cli.cpp.body.initialisers import hand_over, initial
from tokitai_cli.cpp.body.operators import as_condition, cast, combined, either, indicator
from tokitai_cli.cpp.body.outer import outer_place, outer_value
from tokitai_cli.cpp.body.polynomial import Polynomial, constant, variable
from tokitai_cli.cpp.body.symbolic_values import (
    Applied,
    Closure,
    Condition,
    Function,
    Pointer,
    Record,
    Value,
    truth,
)
from tokitai_cli.cpp.body.walk import OLD_LAUNCH, Walk
from tokitai_cli.cpp.structs import size_of
from tokitai_cli.cpp.tree import child, name_of, named, text_of

_MOST_DIGITS = 40
_ESCAPED = {r"\0": 0, r"\t": 9, r"\n": 10, r"\r": 13, r"\'": 39, r"\\": 92}
_FUNCTIONS = {"identifier", "qualified_identifier", "template_function"}
_SHOWN = 60  # letters of an expression that is named after itself


def read_other(walk: Walk, node: Node) -> Value:
    """An expression that nothing is known of: what stands in it may go anywhere."""
    for one in named(node):
        if one.type.endswith(("expression", "identifier", "literal", "list")):
            walk.escape(walk.evaluate(one), node.type)
        elif one.type.endswith("operand") and (value := child(one, "value")) is not None:
            hand_over(walk, value, node.type)  # of assembly
    return _itself(walk, node)


def _itself(walk: Walk, node: Node) -> Value:
    short = node.end_byte - node.start_byte < _SHOWN
    return variable(text_of(node)) if short else walk.fresh("?")


def _inner(walk: Walk, node: Node) -> Value:
    inner = named(node)
    return walk.evaluate(inner[0]) if inner else None


def _number(walk: Walk, node: Node) -> Value:
    text = text_of(node).replace("'", "")
    text = text.rstrip("uUlL") if text[:2] in {"0x", "0X"} else text.rstrip("uUlLzZ")
    if len(text) > _MOST_DIGITS:
        return walk.fresh("number")
    if len(text) > 1 and text[0] == "0" and text.isdigit():
        text = f"0o{text[1:]}"
    try:
        return constant(int(text, 0))
    except ValueError:
        return walk.marked(variable(text), "double")


def _character(walk: Walk, node: Node) -> Value:
    text = text_of(node)[1:-1]
    number = _ESCAPED.get(text, ord(text) if len(text) == 1 and text.isascii() else None)
    return constant(number) if number is not None else _itself(walk, node)


def _truth(walk: Walk, node: Node) -> Value:
    del walk
    return constant(int(node.type == "true"))


def _name(walk: Walk, node: Node) -> Value:
    name = text_of(node)
    place = walk.find(name) or outer_place(walk, name)
    if place is None and name in OLD_LAUNCH:
        return walk.member(variable(OLD_LAUNCH[name]), name[-1])
    return walk.load(place, node) if place is not None else outer_value(walk, name)


def _qualified(walk: Walk, node: Node) -> Value:
    name = name_of(node)
    kinds = {one.kind for one in walk.program.by_name.get(name.last, ())}
    if name.arguments is not None and "variable" not in kinds:
        return Function(name.last, name.arguments)
    place = outer_place(walk, name.last)
    if place is not None:
        return walk.load(place, node)
    whole = text_of(node)
    if whole in walk.constants:
        return walk.constants[whole]
    known = bool(kinds) or name.last in walk.constants
    return outer_value(walk, name.last) if known else _itself(walk, node)


def _this(walk: Walk, node: Node) -> Value:
    del node
    place = walk.find("*this")
    return walk.load(place) if place is not None else None


def _loaded(walk: Walk, node: Node) -> Value:
    if node.type == "subscript_expression" and (array := child(node, "argument")) is not None:
        whole = walk.evaluate(array) if array.type in {"identifier", "field_expression"} else None
        if isinstance(whole, Record) and whole.type in walk.program.structs:
            told = walk.call(node, "operator[]")
            return told.value if told.place is None else walk.load(told.place, node)
    place = walk.place(node)
    if place is not None:
        return walk.load(place, node)
    if node.type == "field_expression":
        return walk.member(walk.evaluate(child(node, "argument")), text_of(child(node, "field")))
    for one in (child(node, "argument"), *named(child(node, "indices"))):
        walk.evaluate(one)
    return _itself(walk, node)


def _pointer(walk: Walk, node: Node) -> Value:
    inner = child(node, "argument")
    if text_of(node)[0] != "&" or inner is None:
        return _loaded(walk, node)
    place = walk.place(inner)
    if isinstance(place, Pointer):
        return Pointer(place.array, place.offset, place.unit)
    if place is not None:
        return place
    return walk.evaluate(inner) if inner.type in _FUNCTIONS else walk.fresh("&")


def _unary(walk: Walk, node: Node) -> Value:
    value, sign = walk.evaluate(child(node, "argument")), text_of(child(node, "operator"))
    if sign == "!" and isinstance(value, Polynomial) and value.number is None:
        value = as_condition(walk, value)
    if sign == "!" and isinstance(value, Condition):
        return Condition(value.fails, value.holds, f"!({value.text})")
    if sign == "!" and isinstance(value, Pointer):
        walk.facts.note_condition(value)
        return Condition((), (), f"!{value.array}")
    number = walk.number(value)
    if sign == "-":
        return -number
    if sign == "+":
        return value
    if sign == "~":  # as -x - 1 says it
        return -number - constant(1)
    if sign == "!" and number.number is not None:
        return constant(int(not number.number))
    return walk.named(f"{sign}({number})", "?", Applied(sign, (number,)))


def _cast(walk: Walk, node: Node) -> Value:
    told, inner = walk.type_text(child(node, "type")), child(node, "value")
    sign = text_of(child(inner, "operator"))
    signed = inner is not None and inner.type in {"unary_expression", "pointer_expression"}
    if signed and sign in {"-", "+", "*", "&"} and _is_value(walk, told):  # `(n) - 1` is no cast
        return combined(walk, sign, _value_of(walk, told), walk.evaluate(child(inner, "argument")))
    return cast(walk, walk.evaluate(inner), told)


def _is_value(walk: Walk, name: str) -> bool:
    """Whether a name that may be a type's stands for a variable or a constant."""
    return walk.find(name) is not None or outer_value(walk, name) != variable(name)


def _value_of(walk: Walk, name: str) -> Value:
    place = walk.find(name)
    return walk.load(place) if place is not None else outer_value(walk, name)


def _binary(walk: Walk, node: Node) -> Value:
    sign, left = text_of(child(node, "operator")), walk.evaluate(child(node, "left"))
    mark = len(walk.guards)
    if isinstance(left, Condition) and sign in {"&&", "||"}:
        walk.guards += left.holds if sign == "&&" else left.fails
    right = walk.evaluate(child(node, "right"))
    del walk.guards[mark:]
    return combined(walk, sign, left, right)


def _conditional(walk: Walk, node: Node) -> Value:
    test = walk.evaluate(child(node, "condition"))
    walk.facts.note_condition(test)
    known = truth(test)
    if known is not None:
        return walk.evaluate(child(node, "consequence" if known else "alternative"))
    mark = len(walk.guards)
    if isinstance(test, Condition):
        walk.guards += test.holds
    yes = walk.evaluate(child(node, "consequence"))
    del walk.guards[mark:]
    if isinstance(test, Condition):
        walk.guards += test.fails
    no = walk.evaluate(child(node, "alternative"))
    del walk.guards[mark:]
    told = indicator(test)
    if told is not None and isinstance(yes, Polynomial) and isinstance(no, Polynomial):
        step = (yes - no).number
        if step is not None:
            return walk.number(no + told * constant(step))
    if isinstance(test, Polynomial):
        test = as_condition(walk, test)
    return either(walk, yes, no, test if isinstance(test, Condition) else None)


def _declared_rows(left: Node) -> tuple[str, tuple[str, ...]] | None:
    """`float (*rows)[8] = ...`, which the grammar takes for an assignment: the name and the extents."""
    inner: list[str] = []
    node: Node | None = left
    while node is not None and node.type == "subscript_expression":
        inner.insert(0, text_of(child(node, "indices")).strip("[] "))
        node = child(node, "argument")
    kind = child(node, "function") if node is not None and node.type == "call_expression" else None
    pointer = next(iter(named(child(node, "arguments"))), None) if kind is not None else None
    if kind is None or kind.type != "primitive_type" or pointer is None or not inner:
        return None
    return text_of(child(pointer, "argument")), tuple(inner)


def _assignment(walk: Walk, node: Node) -> Value:
    left, right = child(node, "left"), child(node, "right")
    sign = text_of(child(node, "operator")) or "="
    value = initial(walk, right)
    if left is not None and (rows := _declared_rows(left)) is not None:
        name, inner = rows
        if isinstance(value, Pointer):
            value = Pointer(value.array, value.offset, value.unit, walk.row_sizes(inner))
        walk.declare(name, value)
        return value
    place = walk.place(left) if left is not None else None
    if place is None:
        walk.escape(value, "is stored where the reader does not follow")
        for one in named(left):
            walk.evaluate(one)
        # The grammar takes `a < b && c >= d` for an assignment to a template's instance.
        return walk.fresh("?") if left is not None and left.type == "binary_expression" else value
    if sign != "=":
        old = walk.element(place) if isinstance(place, Pointer) else walk.load(place, left)
        value = combined(walk, sign[:-1], old, value)
    elif isinstance(place, Pointer):
        walk.escape(value, "is stored in an array")
    walk.save(place, value, "write" if sign == "=" else "update", left)
    return value


def _step(walk: Walk, node: Node) -> Value:
    """`++i` and `i--`."""
    inner = child(node, "argument")
    place = walk.place(inner) if inner is not None else None
    if isinstance(place, Pointer):
        walk.touch(place, "update", node)
        return walk.fresh("?")
    if place is None:
        return walk.fresh("?")
    up = constant(1 if "++" in text_of(child(node, "operator")) else -1)
    old = walk.load(place)
    new = combined(walk, "+", old, up)
    walk.save(place, new, "write", node)
    return new if text_of(node)[0] in "+-" else old


def _comma(walk: Walk, node: Node) -> Value:
    values = [walk.evaluate(one) for one in named(node)]
    return values[-1] if values else None


def _lambda(walk: Walk, node: Node) -> Value:
    return Closure(node, tuple(dict(scope) for scope in walk.scopes))


def _listed(walk: Walk, node: Node) -> Value:
    return initial(walk, node)


def _literal(walk: Walk, node: Node) -> Value:
    return initial(walk, child(node, "value"), walk.type_text(child(node, "type")))


def _sizeof(walk: Walk, node: Node) -> Value:
    told = walk.type_text(child(node, "type"))
    if not told and (inner := child(node, "value")) is not None:
        told = text_of(inner).strip("() ")  # sizeof(T) may be read as sizeof of an expression
        told = walk.types.get(told, told)
    size = size_of(walk.program, told) if told else None
    return constant(size) if size else _itself(walk, node)


def _null(_: Walk, __: Node) -> Value:
    return constant(0)


def _call(walk: Walk, node: Node) -> Value:
    told = walk.call(node)
    return told.value if told.place is None else walk.load(told.place, node)


EXPRESSIONS: Mapping[str, Callable[[Walk, Node], Value]] = {
    "": read_other,
    "parenthesized_expression": _inner,
    "number_literal": _number,
    "true": _truth,
    "false": _truth,
    "identifier": _name,
    "template_function": _qualified,
    "qualified_identifier": _qualified,
    "this": _this,
    "subscript_expression": _loaded,
    "field_expression": _loaded,
    "pointer_expression": _pointer,
    "unary_expression": _unary,
    "cast_expression": _cast,
    "binary_expression": _binary,
    "conditional_expression": _conditional,
    "assignment_expression": _assignment,
    "update_expression": _step,
    "comma_expression": _comma,
    "lambda_expression": _lambda,
    "initializer_list": _listed,
    "argument_list": _listed,
    "compound_literal_expression": _literal,
    "sizeof_expression": _sizeof,
    "call_expression": _call,
    "null": _null,
    "char_literal": _character,
    **dict.fromkeys(("string_literal", "concatenated_string"), _itself),
}
