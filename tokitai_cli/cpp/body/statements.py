"""Statements: declarations, branches, and what control flow says of the guards behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tree_sitter import Node

from tokitai_cli.cpp.body.initialisers import initial, made
from tokitai_cli.cpp.body.local_arrays import declare_array
from tokitai_cli.cpp.body.loops import loop
from tokitai_cli.cpp.body.operators import as_condition, cast, join, opposite
from tokitai_cli.cpp.body.polynomial import Polynomial, constant
from tokitai_cli.cpp.body.symbolic_values import (
    Cell,
    Condition,
    Pointer,
    Record,
    Returned,
    Value,
    decided,
    lanes,
)
from tokitai_cli.cpp.body.walk import Walk
from tokitai_cli.cpp.declarations import marks_of
from tokitai_cli.cpp.elements import is_vector
from tokitai_cli.cpp.structs import resolved
from tokitai_cli.cpp.tree import (
    TYPE_SPECIFIERS,
    child,
    declarator_of,
    named,
    parsed_arguments,
    text_of,
)
from tokitai_cli.cpp.tree import (
    walk as nodes_of,
)

_ELEMENTS = {"subscript_expression", "pointer_expression", "field_expression"}
_PLACES = {
    *_ELEMENTS,
    "identifier",
    "parenthesized_expression",
    "call_expression",
    "conditional_expression",
}


def _block(walk: Walk, node: Node) -> bool:
    """Guards of a block that one of its paths leaves hold behind it, in the function around."""
    walk.scopes.append({})
    goes_on = True
    mark = len(walk.guards)
    for one in named(node):
        if not walk.execute(one):
            goes_on = False
            break
    walk.scopes.pop()
    del walk.guards[mark:]
    return goes_on


def _expression(walk: Walk, node: Node) -> bool:
    for one in named(node):
        inner = one
        while inner.type in {"cast_expression", "parenthesized_expression"} and named(inner):
            inner = named(inner)[-1]  # (void)x[i]; reads nothing
        if inner.type in _ELEMENTS:
            walk.place(inner)
        else:
            walk.evaluate(inner)
    return True


def _return(walk: Walk, node: Node) -> bool:
    inner = named(node)
    if not inner:
        if walk.returns is not None:
            walk.returns.append(Returned(None, None, dict(walk.store)))
        return False
    if walk.returns is None:
        walk.evaluate(inner[0])
        return False
    if walk.by_reference and inner[0].type in _PLACES:
        place = walk.place(inner[0])
        if place is not None:
            walk.returns.append(Returned(None, place, dict(walk.store), tuple(walk.guards)))
            return False
    value = initial(walk, inner[0])
    walk.returns.append(Returned(value, None, dict(walk.store), tuple(walk.guards)))
    return False


def _goto(walk: Walk, node: Node) -> bool:
    del node
    walk.facts.undecided.append("goto")
    return True


def _break(walk: Walk, node: Node) -> bool:
    del node
    walk.breaks.append(dict(walk.store))
    return False


def _continue(walk: Walk, node: Node) -> bool:
    del node
    walk.continues.append(dict(walk.store))
    return False


def _nothing(walk: Walk, node: Node) -> bool:
    del walk, node
    return True


def _inner(walk: Walk, node: Node) -> bool:
    """Labels and attributes: the statement behind them."""
    goes_on = True
    for one in named(node):
        is_statement = one.type.endswith(("statement", "loop")) or one.type == "declaration"
        if is_statement and not walk.execute(one):
            goes_on = False
            break
    return goes_on


def _alias(walk: Walk, node: Node) -> bool:
    name = child(node, "name") or declarator_of(child(node, "declarator")).name
    told = text_of(child(node, "type"))
    walk.types[text_of(name)] = resolved(walk.program, walk.types.get(told, told))
    return True


def _error(walk: Walk, node: Node) -> bool:
    """A part that the parser could not read: what its names lead to may be read and written."""
    walk.facts.undecided.append(f"line {walk.program.place(node)[1]} could not be read")
    for one in nodes_of(node):
        place = walk.find(text_of(one)) if one.type == "identifier" else None
        if isinstance(place, Cell):
            walk.escape(walk.store.get(place.number), "is in a part that could not be read")
    return True


def _other(walk: Walk, node: Node) -> bool:
    """A statement that nothing is known of."""
    for one in named(node):
        if one.type.endswith("statement") or one.type == "declaration":
            walk.execute(one)
        else:
            walk.escape(walk.evaluate(one), f"is in a {node.type}")
    return True


# Declarations


def _declaration(walk: Walk, node: Node) -> bool:
    kind = child(node, "type")
    told = walk.type_text(kind) if kind is None or kind.type not in TYPE_SPECIFIERS else ""
    for one in node.children_by_field_name("declarator"):
        has_value = one.type == "init_declarator"
        value = child(one, "value") if has_value else None
        inner = child(one, "declarator") if has_value else one
        _declared(walk, inner, value, told, "__shared__" in marks_of(node))
    return True


def _declared(
    walk: Walk, declarator: Node | None, value: Node | None, told: str, shared: bool
) -> None:
    if declarator is None:
        return
    if declarator.type == "structured_binding_declarator":
        _bindings(walk, declarator, value)
        return
    if declarator.type == "function_declarator" and value is None:
        _called_constructor(walk, declarator, told)
        return
    own = declarator_of(declarator)
    name = text_of(own.name)
    if own.reference and value is not None:
        inner = named(value)[0] if value.type in {"initializer_list", "argument_list"} else value
        place = walk.place(inner) if inner.type in _PLACES else None
        if place is not None and not (isinstance(place, Pointer) and place.rows):
            walk.scopes[-1][name] = place
            return
    extents = own.extents
    to_rows = bool(own.pointers and extents and not own.of_pointers)
    if extents and not to_rows:
        declare_array(walk, own, value, told, shared)
        return
    if value is not None:
        new = initial(walk, value, told + "*" * own.pointers)
        kind = resolved(walk.program, told)
        new = new if own.pointers or isinstance(new, Pointer) else cast(walk, new, told)
        if isinstance(new, Record) and not new.type and kind in walk.program.structs:
            new = Record(new.path, kind, new.fields)
        if isinstance(new, Pointer) and to_rows:
            rows = walk.row_sizes(tuple(text_of(one) for one in extents))
            new = Pointer(new.array, new.offset, new.unit, rows)
        walk.declare(name, new, walk.declared_kind(told + "*" * own.pointers, value))
        return
    unknown = _uninitialised(walk, name, resolved(walk.program, told), own.pointers)
    walk.declare(name, unknown, told + "*" * own.pointers)


def _uninitialised(walk: Walk, name: str, kind: str, pointers: int) -> Value:
    if pointers:
        return Pointer(f"local {name}", constant(0))
    if kind == "dim3":
        return Record("", kind, lanes([constant(1)] * 3))
    if kind in walk.program.structs or is_vector(kind):
        return Record(str(walk.fresh(name)), kind)
    return walk.fresh(name)


def _bindings(walk: Walk, declarator: Node, value: Node | None) -> None:
    """auto [x, y] = pair;"""
    whole = walk.evaluate(value)
    struct = walk.program.structs.get(whole.type) if isinstance(whole, Record) else None
    fields = [one.name for one in struct.fields] if struct is not None else list("xyzw")
    for one, field in zip(named(declarator), fields, strict=False):
        new = walk.member(whole, field) if isinstance(whole, Record) else walk.fresh(text_of(one))
        walk.declare(text_of(one), new)


def _called_constructor(walk: Walk, declarator: Node, told: str) -> None:
    """`int row(y * w);`, which the grammar takes for the declaration of a function."""
    listed = child(declarator, "parameters")
    given = parsed_arguments(text_of(listed)[1:-1])
    values = [walk.evaluate(one) for one in given]
    name = text_of(declarator_of(declarator).name)
    walk.declare(name, made(walk, values, told) if values else walk.fresh(name), told)


# Branches


def _decider(walk: Walk, node: Node | None) -> Value:
    """The value between the parentheses of a branch."""
    start = child(node, "initializer")
    if start is not None:
        walk.execute(start)
    inner = child(node, "value") or next(iter(reversed(named(node))), None)
    if inner is not None and inner.type == "declaration":
        walk.execute(inner)
        return Condition((), (), "")
    return walk.evaluate(inner)


def _condition(walk: Walk, node: Node | None) -> Condition:
    """What holds where a condition does, and where it does not."""
    test = _decider(walk, node)
    walk.facts.note_condition(test)
    if isinstance(test, Condition):
        return test
    return as_condition(walk, test) if isinstance(test, Polynomial) else Condition((), (), "?")


def _if(walk: Walk, node: Node) -> bool:
    walk.scopes.append({})
    test = _condition(walk, child(node, "condition"))
    holds, fails = test.holds, test.fails
    if (known := decided(holds)) is not None:
        goes_on = _taken(walk, node, known)
        walk.scopes.pop()
        return goes_on
    mark, before = len(walk.guards), dict(walk.store)
    walk.guards += holds
    yes, begun = child(node, "consequence"), len(walk.continues)
    on_yes = walk.execute(yes) if yes is not None else True
    if not on_yes and len(walk.continues) == begun:  # one of several comparisons is enough
        walk.note_guards(holds or [*map(opposite, fails)], "leave")
    after_yes = walk.store
    del walk.guards[mark:]
    walk.store = dict(before)
    walk.guards += fails
    other = child(node, "alternative")
    rest = named(other) if other is not None and other.type == "else_clause" else [other]
    on_no = all(walk.execute(one) for one in rest if one is not None)
    after_no = walk.store
    del walk.guards[mark:]
    walk.scopes.pop()
    if on_yes and on_no:
        join(walk, after_yes, after_no, test)
    elif on_yes:
        walk.store = after_yes
        walk.guards += holds
    else:
        walk.guards += fails if on_no else ()
    return on_yes or on_no


def _taken(walk: Walk, node: Node, holds: bool) -> bool:
    """The only branch that can be taken."""
    branch = child(node, "consequence" if holds else "alternative")
    parts = named(branch) if branch is not None and branch.type == "else_clause" else [branch]
    return all(walk.execute(one) for one in parts if one is not None)


def _switch(walk: Walk, node: Node) -> bool:
    """Each case begins as the switch does, or as the case before it ends."""
    decider = _decider(walk, child(node, "condition"))
    before, outer = dict(walk.store), walk.breaks
    walk.breaks = []
    for case in named(child(node, "body")):
        _note_label(walk, decider, case)
        join(walk, before, walk.store)
        walk.scopes.append({})
        mark = len(walk.guards)
        goes_on = _inner(walk, case)
        del walk.guards[mark:]
        walk.scopes.pop()
        if not goes_on:
            walk.store = dict(before)
    ends, walk.breaks = walk.breaks, outer
    for end in ends:
        join(walk, walk.store, end)
    return True


def _note_label(walk: Walk, decider: Value, case: Node) -> None:
    """Note that a case is for a value of what decides; `default` is for no certain one."""
    label = child(case, "value") if case.type == "case_statement" else None
    outer, walk.at = walk.at, case
    if label is not None and isinstance(decider, Polynomial):
        walk.note("==", decider, walk.evaluate(label))
    walk.at = outer


def _loop(walk: Walk, node: Node) -> bool:
    return loop(walk, node)


STATEMENTS: Mapping[str, Callable[[Walk, Node], bool]] = {
    "": _other,
    "compound_statement": _block,
    "declaration": _declaration,
    "expression_statement": _expression,
    "return_statement": _return,
    "goto_statement": _goto,
    "break_statement": _break,
    "continue_statement": _continue,
    "if_statement": _if,
    "for_statement": _loop,
    "while_statement": _loop,
    "do_statement": _loop,
    "for_range_loop": _loop,
    "switch_statement": _switch,
    "labeled_statement": _inner,
    "attributed_statement": _inner,
    "case_statement": _inner,
    "alias_declaration": _alias,
    "type_definition": _alias,
    "using_declaration": _nothing,
    "static_assert_declaration": _nothing,
    "comment": _nothing,
    "preproc_call": _nothing,
    "struct_specifier": _nothing,
    "ERROR": _error,
}
