"""Calls: functions, members and lambdas of the program's are read where they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tree_sitter import Node

from tokitai_cli.cpp.body.initialisers import hand_over, initial
from tokitai_cli.cpp.body.intrinsics import known_call, note_barrier, result_of
from tokitai_cli.cpp.body.operators import cast, either, join
from tokitai_cli.cpp.body.polynomial import Polynomial, variable
from tokitai_cli.cpp.body.symbolic_values import (
    Cell,
    Choice,
    Closure,
    Function,
    Place,
    Pointer,
    Record,
    Returned,
    Value,
)
from tokitai_cli.cpp.body.walk import Walk
from tokitai_cli.cpp.declarations import (
    Declaration,
    Parameter,
    listed_parameters,
    returns_reference,
)
from tokitai_cli.cpp.elements import is_vector, sized
from tokitai_cli.cpp.program import takes
from tokitai_cli.cpp.structs import bare, resolved
from tokitai_cli.cpp.tree import (
    child,
    first,
    name_of,
    named,
    parsed_expression,
    text_of,
)

_DEEPEST = 16  # calls within each other
_CASTS = {"reinterpret_cast", "static_cast", "const_cast", "bit_cast", "dynamic_cast"}
_NAMED = {"identifier", "qualified_identifier", "template_function"}
_NO_PLACE = {"call_expression", "number_literal", "binary_expression", "true", "false"}


def call(walk: Walk, node: Node, operator: str = "") -> Returned:
    """What a call gives; operator: the member that `a[i]` calls."""
    if operator:
        whole, given = child(node, "argument"), named(child(node, "indices"))
        return _member(walk, whole, operator, given) or _unknown(walk, operator, given)
    function = child(node, "function")
    if function is None:
        return Returned(walk.fresh("?"))
    given = given_to(node)
    if function.type == "field_expression":
        name = name_of(child(function, "field")).last
        told = _member(walk, child(function, "argument"), name, given)
        told = told or _field_of_closure(walk, function, given)
        return told or _unknown(walk, text_of(function)[:40], given, child(function, "argument"))
    own = name_of(function) if function.type in _NAMED else name_of(None)
    last = own.last or text_of(function)
    if last in {"max", "lowest", "min"} and any("numeric_limits" in one for one in own.scopes):
        return Returned(variable(f"numeric_limits::{last}"))
    if last in _CASTS and own.arguments and len(given) == 1:
        return _cast(walk, given[0], walk.types.get(own.arguments[0], own.arguments[0]))
    if function.type == "primitive_type" or _is_number(walk, text_of(function)):
        new = initial(walk, given[0]) if len(given) == 1 else walk.number(None)
        return Returned(cast(walk, new, text_of(function)) if "*" not in text_of(function) else new)
    return _by_name(walk, node, function, last, own.arguments)


def _by_name(
    walk: Walk, node: Node, function: Node, name: str, arguments: Sequence[str] | None
) -> Returned:
    """A call of what a name stands for: a lambda, a function of the program's, or one of a library."""
    given = given_to(node)
    local = walk.find(name) if function.type == "identifier" else None
    if function.type in _NAMED:
        value = walk.load(local) if isinstance(local, Cell) else None
    else:
        value = walk.evaluate(function)
    if isinstance(value, Closure):
        return _closure(walk, value, given)
    if isinstance(value, Record):
        told = _method(walk, local, value, "operator()", given)
        return told or _unknown(walk, name, given, function)
    if isinstance(value, Function):
        name, arguments = value.name, value.arguments
    this = walk.find("*this") if local is None else None
    if isinstance(this, Cell) and isinstance(object_ := walk.load(this), Record):
        told = _method(walk, this, object_, name, given)
        if told is not None:
            return told
    functions = walk.program.functions(name, len(given))
    if functions:
        return _function(walk, functions, arguments, given)
    if resolved(walk.program, name) in walk.program.structs:
        return Returned(initial(walk, child(node, "arguments"), name))
    return known_call(walk, name, given, node) or _unknown(walk, name, given)


def given_to(node: Node) -> list[Node]:
    """Arguments of a call."""
    return [one for one in named(child(node, "arguments")) if one.type != "kernel_call_syntax"]


def _is_number(walk: Walk, name: str) -> bool:
    kinds = (bare(name), resolved(walk.program, walk.types.get(name, name)))
    return any(sized(one) is not None and not is_vector(one) for one in kinds)


def _cast(walk: Walk, given: Node, told: str) -> Returned:
    if "&" in told:
        place = walk.place(given)
        moved = cast(walk, place, told) if isinstance(place, Pointer) else None
        if isinstance(moved, Pointer):
            return Returned(None, moved)
    return Returned(cast(walk, walk.evaluate(given), told))


def _unknown(walk: Walk, name: str, given: list[Node], whole: Node | None = None) -> Returned:
    """A function that is not there: what it is handed may be read and written."""
    why = f"is handed to {name}"
    values = []
    if name.rpartition(".")[2] == "sync" or name.endswith("::sync"):
        note_barrier(walk)
    for one in given:
        values.append(hand_over(walk, one, why))
        if isinstance(values[-1], Closure):
            _closure(walk, values[-1], [])
    if whole is not None:
        hand_over(walk, whole, why)
    return Returned(result_of(walk, name, values))


def _field_of_closure(walk: Walk, function: Node, given: list[Node]) -> Returned | None:
    """A lambda or function that a field holds."""
    place = walk.place(function)
    value = walk.load(place) if isinstance(place, Cell) else None
    return _closure(walk, value, given) if isinstance(value, Closure) else None


def _closure(walk: Walk, value: Closure, given: list[Node]) -> Returned:
    listed = first(child(value.node, "declarator"), "parameter_list")
    scopes = [dict(one) for one in value.scopes]
    own = listed_parameters(listed)
    return _inlined(walk, value.node, own, given, scopes)


def _member(walk: Walk, whole: Node | None, name: str, given: list[Node]) -> Returned | None:
    """A member function of the program's; None for another."""
    if whole is None:
        return None
    held = walk.evaluate(whole) if name in {"size", "stride"} and walk.accessors else None
    if isinstance(held, Pointer) and held.array in walk.accessors:
        told = ", ".join(str(walk.number(walk.evaluate(one))) for one in given)
        return Returned(walk.named(f"{held.array}.{name}({told})"))
    place = walk.find("*this") if whole.type == "this" else walk.place(whole)
    value = walk.load(place) if isinstance(place, Cell) else None
    if place is None:
        value = walk.evaluate(whole)
        if isinstance(value, Record):
            place = walk.new_cell(value)
    return _method(walk, place, value, name, given)


def _method(
    walk: Walk, place: Place | None, value: Value, name: str, given: list[Node]
) -> Returned | None:
    if isinstance(value, Cell):  # a pointer to an object
        place, value = value, walk.load(value)
    if not isinstance(value, Record) or not isinstance(place, Cell):
        return None
    waiting, seen = [value.type], set[str]()
    while waiting:
        struct = walk.program.structs.get(waiting.pop(0))
        if struct is None or struct.name in seen:
            continue
        seen.add(struct.name)
        methods = [one for one in struct.methods.get(name, ()) if one.body is not None]
        for one in [each for each in methods if takes(each, len(given))][:1]:
            scopes = [_members(walk, place, value.type)]
            return _inlined(walk, one.node, one.parameters, given, scopes)
        waiting += [resolved(walk.program, base) for base in struct.base_names]
    return None


def _members(walk: Walk, place: Cell, type_name: str) -> dict[str, Place]:
    """Fields of an object by their names, as its member functions see them."""
    scope: dict[str, Place] = {"*this": place}
    waiting, seen = [type_name], set[str]()
    while waiting:
        struct = walk.program.structs.get(waiting.pop(0))
        if struct is None or struct.name in seen:
            continue
        seen.add(struct.name)
        for one in struct.fields:
            scope.setdefault(one.name, Cell(place.number, (*place.path, one.name)))
        waiting += [resolved(walk.program, base) for base in struct.base_names]
    return scope


def _function(
    walk: Walk, functions: list[Declaration], arguments: Sequence[str] | None, given: list[Node]
) -> Returned:
    """A function of the program's; of several of a name that are not told apart all are read."""
    one = functions[0]
    if len(functions) > 1 and any(
        len(each.parameters) != len(one.parameters) for each in functions
    ):
        functions = [each for each in functions if len(each.parameters) == len(given)] or functions
        one = functions[0]
    outer = walk.types
    told: list[Returned] = []
    for each in functions[:4]:
        walk.types = dict(outer)
        scopes = [_template(walk, each, arguments, given)]
        told.append(_inlined(walk, each.node, each.parameters, given, scopes))
    walk.types = outer
    if len(functions) > 4:
        return _unknown(walk, one.name, given)
    found = told[0]
    for result in told[1:]:
        found = Returned(either(walk, found.value, result.value), found.place)
    return found


def _template(
    walk: Walk, function: Declaration, arguments: Sequence[str] | None, given: Sequence[Node]
) -> dict[str, Place]:
    """Values of a template's parameters, as a call gives them."""
    scope: dict[str, Place] = {}
    walk.types |= walk.template_types(function, arguments or (), given)
    for one, told in zip(function.template, arguments or (), strict=False):
        if one.pack:
            break
        if one.type == "type":
            walk.types[one.name] = walk.types.get(told, told)
            continue
        node = parsed_expression(told)
        value = walk.evaluate(node) if node is not None else variable(told)
        scope[one.name] = walk.new_cell(value)
    return scope


def _inlined(
    walk: Walk,
    function: Node,
    own: Sequence[Parameter],
    given: list[Node],
    scopes: list[dict[str, Place]],
) -> Returned:
    """The function's body, read with what it is given."""
    body = child(function, "body")
    key = (function.start_byte, function.end_byte)
    if body is None or len(walk.calls) >= _DEEPEST or key in walk.calls:
        for one in given:
            hand_over(walk, one, "is handed on too deep")
        return Returned(walk.fresh("?"))
    before = dict.fromkeys(walk.store)
    frame: dict[str, Place] = {}
    for at, parameter in enumerate(own):
        if parameter.pack:
            for one in given[at:]:
                walk.escape(walk.evaluate(one), "is one of a pack")
            break
        if at < len(given):
            frame[parameter.name] = _argument(walk, parameter, given[at])
    saved, mark = (walk.scopes, walk.returns, walk.by_reference), len(walk.guards)
    returns: list[Returned] = []
    walk.scopes, walk.returns = [*scopes, frame], returns
    walk.by_reference = by_reference = returns_reference(function)
    walk.calls.append(key)
    for parameter in own[len(given) :]:
        default = child(parameter.node, "default_value")
        walk.declare(
            parameter.name, walk.evaluate(default) if default else variable(parameter.name)
        )
    try:
        goes_on = walk.execute(body)
    finally:
        walk.scopes, walk.returns, walk.by_reference = saved
        walk.calls.pop()
        del walk.guards[mark:]
    walk.store = _without_locals(walk.store, before, returns)
    ends = [{key: value for key, value in one.store.items() if key in before} for one in returns]
    if not goes_on and ends:
        walk.store = {**walk.store, **ends.pop()}
    for end in ends:
        join(walk, walk.store, {**walk.store, **end})
    return _joined(walk, returns, by_reference)


def _without_locals(
    store: Mapping[int, Value], before: Mapping[int, None], returns: Sequence[Returned]
) -> dict[int, Value]:
    """What variables hold behind a call: the function's own are gone, if nothing leads to them."""
    kept = {key: store[key] for key in before}
    places = [one.place for one in returns]
    values = (*kept.values(), *places, *(one.value for one in returns))
    return dict(store) if any(_leads_inside(one, before) for one in values) else kept


def _leads_inside(value: Value, before: Mapping[int, None]) -> bool:
    """Whether a value may lead to variables that were not there before."""
    if isinstance(value, Record):
        return any(_leads_inside(one, before) for _, one in value.fields)
    return isinstance(value, Closure) or (isinstance(value, Cell) and value.number not in before)


def _argument(walk: Walk, parameter: Parameter, given: Node) -> Place:
    told = walk.types.get(parameter.type, parameter.type)
    if parameter.reference and given.type == "call_expression":
        result = walk.call(given)
        return walk.bind(parameter, result.value) if result.place is None else result.place
    if parameter.reference and given.type not in _NO_PLACE:
        place = walk.place(given)
        if isinstance(place, Cell) or (isinstance(place, Pointer) and not place.rows):
            return place
    new = initial(walk, given, told)
    is_address = bool(parameter.pointers) or isinstance(new, Pointer)
    return walk.bind(parameter, new if is_address else cast(walk, new, told))


def _joined(walk: Walk, found: list[Returned], reference: bool) -> Returned:
    """One of what a function returns."""
    if not found:
        return Returned()
    if reference:
        places = {one.place for one in found}
        if len(places) == 1 and found[0].place is not None:
            return found[0]
        for one in found:
            walk.escape(
                one.place if isinstance(one.place, Pointer) else None, "is one of two places"
            )
        return Returned(walk.fresh("?"))
    value = found[0].value
    numbers = [(one.value, one.guards) for one in found if isinstance(one.value, Polynomial)]
    if len(numbers) == len(found) and any(one != value for one, _ in numbers):
        return Returned(walk.fresh("either", Choice(tuple(numbers))))
    for one in found[1:]:
        value = either(walk, value, one.value)
    return Returned(value)
