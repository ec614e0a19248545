"""Launches of kernels: the host's functions are walked as kernels are, and what they launch is noted.

So a kernel behind a pointer or a wrapper's argument, a `dim3` that is set field by field, and the lambda
of a dispatch macro need no rules of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from tree_sitter import Node

from tokitai_cli.cpp.body.function_calls import call
from tokitai_cli.cpp.body.polynomial import Polynomial, constant, variable
from tokitai_cli.cpp.body.reader import READERS
from tokitai_cli.cpp.body.symbolic_values import (
    Cell,
    Function,
    Pointer,
    Record,
    Returned,
    Value,
    fields_of,
)
from tokitai_cli.cpp.body.walk import BudgetError, Walk
from tokitai_cli.cpp.declarations import Declaration
from tokitai_cli.cpp.program import Program
from tokitai_cli.cpp.tree import child, name_of, named, text_of
from tokitai_cli.cpp.tree import walk as nodes_of

_BUDGET = 40_000  # nodes of one host function, and of all of a file together three times that
_CALLERS = 3  # functions around the one that launches
_MOST = 200  # functions that are walked


class _Api(msgspec.Struct, frozen=True):
    """Which arguments of a function of the runtime say what; None for one that does not."""

    kernel: int
    grid: int | None
    block: int | None
    shared: int | None
    #: Where the kernel's own arguments begin.
    given: int | None


_APIS = {
    "hipLaunchKernelGGL": _Api(0, 1, 2, 3, 5),
    "hipLaunchKernelGGLInternal": _Api(0, 1, 2, 3, 5),
    **dict.fromkeys(
        ("cudaLaunchKernel", "hipLaunchKernel", "cudaLaunchCooperativeKernel"),
        _Api(0, 1, 2, 4, None),
    ),
    "hipLaunchCooperativeKernel": _Api(0, 1, 2, 4, None),
    "cudaLaunchKernelEx": _Api(1, None, None, None, 2),
    "hipLaunchKernelEx": _Api(1, None, None, None, 2),
}


class Launch(msgspec.Struct):
    """One launch as the host's function makes it. Extents and arguments are in the host's words."""

    kernel: Declaration
    template: tuple[str, ...]
    #: x, y and z; None for one that is not known.
    grid: tuple[Polynomial | None, ...]
    block: tuple[Polynomial | None, ...]
    shared: Polynomial | None
    #: As they are written.
    written: tuple[str, ...]
    #: None for what is no number, or none that is known.
    arguments: tuple[Polynomial | None, ...]
    #: Numbers in the fields of structs among the arguments, by paths from the kernel's parameters on.
    fields: dict[str, Polynomial]
    file: str
    line: int


class _Host(Walk):
    """A walk over a host's function that notes launches."""

    def __init__(self, program: Program, seen: list[Launch], budget: int) -> None:
        super().__init__(program, READERS._replace(call=_host_call), budget)
        self.seen = seen
        self.spent = budget


def launches_in(program: Program) -> list[Launch]:
    """All launches that the program's functions make, in the order in which they are reached."""
    seen: list[Launch] = []
    left = 3 * _BUDGET
    for one in _launching(program):
        walk = _Host(program, seen, min(_BUDGET, left))
        for parameter in one.parameters:
            walk.add_parameter(parameter)
        try:
            if one.body is not None:
                walk.execute(one.body)
        except (BudgetError, RecursionError):
            pass
        left -= walk.spent - max(walk.budget_left, 0)
        if left <= 0:
            break
    return seen


def _launching(program: Program) -> list[Declaration]:
    """Functions that launch, and those that call them."""
    hosts = [one for one in program.declarations if one.kind == "function" and one.body is not None]
    hosts += [
        method
        for struct in program.structs.values()
        for methods in struct.methods.values()
        for method in methods
        if method.body is not None and method.kind == "function"
    ]
    calls = {id(one): _called(one) for one in hosts}
    found = [one for one in hosts if calls[id(one)] & {"<<<", *_APIS}]
    names = {one.name for one in found if one.name}
    for _ in range(_CALLERS if names else 0):
        known = {id(one) for one in found}
        more = [one for one in hosts if id(one) not in known and calls[id(one)] & names]
        if not more or len(found) + len(more) > _MOST:
            break
        found += more
        names = {one.name for one in more if one.name}
    return found[:_MOST]


def _called(function: Declaration) -> set[str]:
    text = function.node.text or b""
    if b"(" not in text:
        return set()
    found = {"<<<"} if b"<<<" in text else set[str]()
    for one in nodes_of(function.node):
        if one.type == "call_expression":
            callee = child(one, "function")
            if callee is not None and callee.type == "field_expression":
                callee = child(callee, "field")
            found.add(name_of(callee).last or text_of(callee))
    return found


def _host_call(walk: Walk, node: Node, operator: str = "") -> Returned:
    if operator or not isinstance(walk, _Host):
        return call(walk, node, operator)
    function = child(node, "function")
    given = [one for one in named(child(node, "arguments")) if one.type != "kernel_call_syntax"]
    written = next((one for one in node.named_children if one.type == "kernel_call_syntax"), None)
    if written is not None and function is not None:
        parts = named(written)
        _note(walk, node, function, (*parts[:3], None, None, None)[:3], given)
        return Returned()
    api = _APIS.get(text_of(function))
    if api is not None and len(given) > api.kernel:
        at = (api.grid, api.block, api.shared)
        told = [given[one] if one is not None and one < len(given) else None for one in at]
        rest = given[api.given :] if api.given is not None else []
        _note(walk, node, given[api.kernel], told, rest)
        return Returned()
    return call(walk, node)


def _note(
    walk: _Host, node: Node, callee: Node, parts: Sequence[Node | None], given: Sequence[Node]
) -> None:
    values = [walk.evaluate(one) for one in given]
    grid, block, shared = [None if one is None else walk.evaluate(one) for one in parts]
    if walk.dry:
        return
    kernels, arguments = _kernels(walk, callee)
    fitting = [one for one in kernels if not given or len(one.parameters) >= len(given)]
    words = {
        str(value): variable(text_of(one))
        for one, value in zip(given, values, strict=True)
        if one.type == "identifier" and isinstance(value, Polynomial) and "#" in str(value)
    }
    origin = walk.program.unit.origin(node.start_byte)
    for kernel in (fitting or kernels)[:1]:
        walk.seen.append(
            Launch(
                kernel,
                _template(walk, kernel, arguments, values),
                _extents(walk, grid, words),
                _extents(walk, block, words),
                _known(walk.number(shared)) if shared is not None else None,
                tuple(text_of(one) for one in given),
                tuple(_known(one) for one in values),
                dict(_fields(zip((one.name for one in kernel.parameters), values, strict=False))),
                origin.file,
                origin.line,
            )
        )


def _kernels(walk: Walk, node: Node) -> tuple[list[Declaration], tuple[str, ...]]:
    """Kernels that an expression may name, and their template arguments."""
    while node.type in {"parenthesized_expression", "pointer_expression", "cast_expression"}:
        if not named(node):
            break
        node = named(node)[-1]
    wrapped = named(child(node, "arguments")) if node.type == "call_expression" else []
    if wrapped:  # HIP_KERNEL_NAME(k<3>), reinterpret_cast<const void*>(k)
        return _kernels(walk, wrapped[-1])
    name = name_of(node)
    last, arguments = name.last, name.arguments or ()
    place = walk.find(last) if node.type == "identifier" else None
    value = walk.load(place) if isinstance(place, Cell) else None
    if isinstance(value, Cell):
        value = walk.load(value)
    if isinstance(value, Function):
        last, arguments = value.name, value.arguments or ()
    known = walk.program.by_name.get(last, ())
    return [one for one in known if one.kind == "kernel"], arguments


def _template(
    walk: Walk, kernel: Declaration, arguments: Sequence[str], values: Sequence[Value]
) -> tuple[str, ...]:
    """Template arguments: those that are written, their names put in, and those of what is passed."""
    found = []
    for told in arguments:
        place = walk.find(told)
        value = walk.load(place) if isinstance(place, Cell) else None
        number = value.number if isinstance(value, Polynomial) else None
        found.append(str(number) if number is not None else walk.types.get(told, told))
    for parameter in kernel.template[len(found) :]:
        told = ""
        for own, value in zip(kernel.parameters, values, strict=False):
            if own.type == parameter.name and isinstance(value, Pointer):
                told = told or walk.facts.arrays.get(value.array, "")
        if not told:
            break
        found.append(walk.types.get(told, told))
    return tuple(found)


def _extents(
    walk: Walk, value: Value, words: Mapping[str, Polynomial]
) -> tuple[Polynomial | None, ...]:
    """x, y and z of a grid or block; words: variables that are passed, by the names made up for them."""
    one = constant(1)
    every = (
        [walk.member(value, x) for x in "xyz"] if isinstance(value, Record) else [value, one, one]
    )
    told = (each.with_values(words) if isinstance(each, Polynomial) else each for each in every)
    return tuple(map(_known, told))


def _fields(values: Iterable[tuple[str, Value]]) -> Iterator[tuple[str, Polynomial]]:
    """Numbers in the fields of structs, null pointers as 0, by their paths."""
    for path, value in values:
        for name, inner in fields_of(value).items() if isinstance(value, Record) else ():
            here = f"{path}.{name}"
            if (number := _known(inner)) is not None:
                yield here, number
            yield from _fields([(here, inner)])


def _known(value: Value) -> Polynomial | None:
    """A number that the host's own words say; None for one that nothing is known of."""
    if not isinstance(value, Polynomial):
        return None
    return None if any("#" in name for name in value.names()) else value
