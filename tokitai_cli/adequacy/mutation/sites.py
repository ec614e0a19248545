"""Where a source can be changed: operators, bounds, indices, barriers, shared sizes, constants, casts.

The places are those of the functions and constants that the launched kernels reach, in the source and in
the files beside it that it takes in, as `cpp` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tokitai_cli.core.model.models import Models
from tokitai_cli.cpp import source_text
from tokitai_cli.cpp.declarations import marks_of
from tokitai_cli.cpp.dialect import readable
from tokitai_cli.cpp.elements import dtypes_of, is_vector, sized
from tokitai_cli.cpp.lexing import blank
from tokitai_cli.cpp.program_parts import Part
from tokitai_cli.cpp.programs import Programs
from tokitai_cli.cpp.reach import reached
from tokitai_cli.cpp.source.types import unqualified
from tokitai_cli.cpp.tree import child, name_of, parse
from tokitai_cli.cpp.whole import Program

_OPERATORS = {
    "+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "<<": ">>", ">>": "<<",
    "&": "|", "|": "&", "^": "&", "&&": "||", "||": "&&",
}  # fmt: skip
_BOUNDS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
_UPDATES = {
    "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "|=": "&=", "&=": "|=", "^=": "|=",
    "<<=": ">>=", ">>=": "<<=",
}  # fmt: skip
_CALLS = {"fmaxf": "fminf", "fminf": "fmaxf", "fmax": "fmin", "fmin": "fmax", "max": "min",
          "min": "max", "sinf": "cosf", "cosf": "sinf"}  # fmt: skip
_COORDINATES = {"threadIdx", "blockIdx", "blockDim", "gridDim"}
_AXES = {"x": "y", "y": "x", "z": "x"}
_BARRIERS = {"__syncthreads", "__syncwarp", "__threadfence", "__threadfence_block"}
# What an off constant is off by: no f16 result hides it, and no wrong digit of a constant is larger.
_OFF = "1.01f"
_SKIPPED = {"template_parameter_list", "template_argument_list", "static_assert_declaration"}


class Change(msgspec.Struct, frozen=True):
    """`text` in the place of `begin` to `end` of the file."""

    path: Path
    begin: int
    end: int
    text: str
    #: What is changed.
    kind: str
    #: The first's number.
    line: int
    #: The lines that hold the place, without and with the change.
    before: str
    after: str
    #: Names among those wanted that reach the place.
    kernels: frozenset[str]

    def applied(self, source: str) -> str:
        """The file's text with the change."""
        return source[: self.begin] + self.text + source[self.end :]


def changes_of(
    source: Path,
    folders: Sequence[Path],
    names: Collection[str],
    defines: Mapping[str, str] | None = None,
    models: Models | None = None,
) -> tuple[list[Change], Mapping[Path, str]]:
    """All changes of what the kernels of these `names` reach, in order; and the files' texts.

    folders: of headers. defines: macros of the command line. models: of the sources.
    """
    whole = (models or Models()).of(Programs).of(source, folders, defines)
    kernels = {name for one in _parts(whole) if one.kernel for name in one.names} & {*names}
    mine = {name: _places(whole, [name]) for name in kernels}
    texts = {
        path: (source_text.read(path) or b"").decode("utf-8", "replace") for path in whole.files
    }
    found: list[Change] = []
    for path, first in _places(whole, names):
        plain = blank(texts[path], quotes=True)
        node = _declaration(plain, first)
        for begin, end, text, kind in _Reader(plain).read(node) if node is not None else ():
            told = _lines(texts[path], begin, end, text)
            by = frozenset(name for name in kernels if (path, first) in mine[name])
            found.append(Change(path, begin, end, text, kind, *told, by or frozenset(kernels)))
    found.sort(key=lambda one: (one.path != source, str(one.path), one.begin))
    return list(dict.fromkeys(found)), texts


def _parts(program: Program) -> list[Part]:
    return [part for one in program.sources for part in one.parts]


def _places(program: Program, wanted: Collection[str]) -> set[tuple[Path, int]]:
    """File and line of what can be changed of that which kernels reach and no macro makes."""
    kept = reached(_parts(program), wanted)
    owners = [one for one in program.sources for _ in one.parts]
    found = set()
    for index, (part, one) in enumerate(zip(_parts(program), owners, strict=True)):
        place = one.unit.origin(part.node.start_byte)
        changes = part.kind == "function" or (part.kind == "variable" and "const" in part.head)
        if (
            index in kept
            and not place.macro
            and (changes or (part.kind == "variable" and part.device))
        ):
            found.add((Path(place.file), place.line))
    return found


def _declaration(plain: str, line: int) -> Any:
    """The declaration that begins on a line of a file's text, of a function its body."""
    waiting = [parse(readable(plain.encode("ascii", "replace")))]
    while waiting:
        node = waiting.pop()
        if node.type in {"function_definition", "declaration"} and node.start_point[0] + 1 == line:
            return child(node, "body") or node
        waiting += reversed(node.named_children)
    return None


def _lines(source: str, begin: int, end: int, text: str) -> tuple[int, str, str]:
    """Number of the first line that holds the place, and the lines without and with the text there."""
    first = source.rfind("\n", 0, begin) + 1
    last = source.find("\n", end)
    last = len(source) if last < 0 else last
    after = source[first:begin] + text + source[end:last]
    line = source.count("\n", 0, first) + 1
    return line, source[first:last], after


Site = tuple[int, int, str, str]


class _Reader:
    """Places below a node of the parser. plain: the file's text without comments."""

    def __init__(self, plain: str) -> None:
        self._plain = plain
        self._rules: Mapping[str, Callable[[Any], Iterator[Site]]] = {
            "binary_expression": self._binary,
            "assignment_expression": self._assignment,
            "unary_expression": self._unary,
            "subscript_expression": self._subscript,
            "number_literal": self._number,
            "call_expression": self._call,
            "cast_expression": self._cast,
            "conditional_expression": self._choice,
            "if_statement": self._guard,
            "field_expression": self._coordinate,
            "expression_statement": self._barrier,
            "array_declarator": self._shared,
        }

    def read(self, node: Any) -> Iterator[Site]:
        """The places of the node and of all below it."""
        if node.type in _SKIPPED or node.type.startswith("preproc"):
            return
        if node.type in self._rules:
            yield from self._rules[node.type](node)
        for inner in node.named_children:
            if node.type == "array_declarator" and inner == node.child_by_field_name("size"):
                continue
            yield from self.read(inner)

    def _text(self, node: Any) -> str:
        return self._plain[node.start_byte : node.end_byte]

    def _swapped(self, node: Any, table: Mapping[str, str], kind: str) -> Iterator[Site]:
        operator = node.child_by_field_name("operator")
        if operator is not None and operator.type in table:
            yield operator.start_byte, operator.end_byte, table[operator.type], kind

    def _binary(self, node: Any) -> Iterator[Site]:
        yield from self._swapped(node, _OPERATORS, "operator")
        yield from self._swapped(node, _BOUNDS, "bound")

    def _assignment(self, node: Any) -> Iterator[Site]:
        yield from self._swapped(node, _UPDATES, "operator")

    def _unary(self, node: Any) -> Iterator[Site]:
        operator = node.child_by_field_name("operator")
        if operator is not None and operator.type in ("-", "!", "~"):
            yield operator.start_byte, operator.end_byte, "", "operator"

    def _subscript(self, node: Any) -> Iterator[Site]:
        indices = node.child_by_field_name("indices")
        if indices is not None and indices.named_child_count == 1:
            end = indices.named_children[0].end_byte
            yield end, end, " + 1", "index"

    def _number(self, node: Any) -> Iterator[Site]:
        text = self._text(node)
        is_float = not text.startswith(("0x", "0X")) and not set(".eEfF").isdisjoint(text)
        zero = not text.strip("0.fFuUlL")
        if is_float:
            new = "1.0f" if zero else f"({text} * {_OFF})"
        else:
            new = "1" if zero else f"({text} + 1)"
        yield node.start_byte, node.end_byte, new, "constant"

    def _call(self, node: Any) -> Iterator[Site]:
        function = node.child_by_field_name("function")
        if function is None:
            return
        name = self._text(function)
        if name in _CALLS:
            yield function.start_byte, function.end_byte, _CALLS[name], "operator"
        cast, arguments, _ = name_of(function)
        if cast == "static_cast" and arguments and _is_wide(arguments[0]):
            yield function.start_byte, function.end_byte, "static_cast<unsigned char>", "cast"

    def _cast(self, node: Any) -> Iterator[Site]:
        kind = node.child_by_field_name("type")
        if kind is not None and _is_wide(self._text(kind)):
            yield kind.start_byte, kind.end_byte, "unsigned char", "cast"

    def _choice(self, node: Any) -> Iterator[Site]:
        for side in ("consequence", "alternative"):
            chosen = node.child_by_field_name(side)
            if chosen is not None:
                yield node.start_byte, node.end_byte, f"({self._text(chosen)})", "bound"

    def _guard(self, node: Any) -> Iterator[Site]:
        condition = node.child_by_field_name("condition")
        inner = node.child_by_field_name("consequence")
        if condition is not None and inner is not None and inner.type == "return_statement":
            yield condition.start_byte, condition.end_byte, "(false)", "bound"

    def _coordinate(self, node: Any) -> Iterator[Site]:
        argument, field = node.child_by_field_name("argument"), node.child_by_field_name("field")
        if argument is not None and field is not None and self._text(argument) in _COORDINATES:
            new = _AXES.get(self._text(field))
            if new is not None:
                yield field.start_byte, field.end_byte, new, "index"

    def _barrier(self, node: Any) -> Iterator[Site]:
        call = next(iter(node.named_children), None)
        if call is not None and name_of(child(call, "function")).last in _BARRIERS:
            yield node.start_byte, node.end_byte, ";", "barrier"

    def _shared(self, node: Any) -> Iterator[Site]:
        size, outer = node.child_by_field_name("size"), node
        while outer.type == "array_declarator":
            outer = outer.parent
        if size is not None and "__shared__" in marks_of(outer):
            new = f"({self._text(size)} + 1) / 2"
            yield size.start_byte, size.end_byte, new, "shared size"


def _is_wide(kind: str) -> bool:
    """Whether a type is of whole numbers of two bytes or more."""
    plain = unqualified(kind)
    whole = any(one.startswith(("int", "uint")) for one in dtypes_of(plain))
    return whole and not is_vector(plain) and (sized(plain) or 0) > 1
