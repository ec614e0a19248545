"""What a program declares: data, as `program.Program` finds it in the tree."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator

import msgspec
from tree_sitter import Node

from tokitai_cli.cpp.tree import (
    TYPE_SPECIFIERS,
    Name,
    child,
    declarator_of,
    first,
    name_of,
    named,
    parse,
    text_of,
    walk,
)


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of a function or template, or a field of a struct."""

    name: str
    #: As it is written, without pointers, reference and extents; `type` or a type for a template's.
    type: str
    pointers: int = 0
    reference: bool = False
    #: Extents between brackets as text, the outermost first; "" for `[]`.
    extents: tuple[str, ...] = ()
    #: Its default, as text; empty where it has none.
    default: str = ""
    const: bool = False
    #: Whether it stands for any number of parameters.
    pack: bool = False
    node: Node | None = None
    volatile: bool = False
    #: Extents of an array of pointers, whose own level is one of `pointers`.
    pointer_extents: tuple[str, ...] = ()
    #: The concept that a template's type has to be of; empty for none.
    concept: str = ""

    @property
    def inner(self) -> tuple[str, ...]:
        """Extents of a row: behind a pointer to rows all, of an array all but the first."""
        return self.extents if self.pointers else self.extents[1:]


class Declaration(msgspec.Struct):
    """One declaration of a program at namespace scope."""

    #: kernel, function, prototype, variable, type, forward, enumerator, alias, instance, using.
    kind: str
    name: str
    #: Namespaces that it stands in; "" for one without a name.
    scope: tuple[str, ...]
    node: Node
    #: The node with `template <...>` before it.
    outer: Node
    template: tuple[Parameter, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    #: Template arguments of explicit instantiations, of a kernel.
    instances: list[tuple[str, ...]] = []

    @property
    def body(self) -> Node | None:
        """The braces of a function."""
        return child(self.node, "body")

    @property
    def space(self) -> tuple[str, ...]:
        """Its namespaces that have a name."""
        return tuple(one for one in self.scope if one)

    @property
    def qualified(self) -> str:
        """Its name with its namespaces."""
        return "::".join((*self.space, self.name))


class Struct(msgspec.Struct):
    """A class, struct or union with its members."""

    name: str
    declaration: Declaration
    #: With the arguments of their templates.
    bases: tuple[str, ...] = ()
    fields: list[Parameter] = []
    aliases: dict[str, str] = {}
    #: Functions with a body, by name; `operator()`, `operator[]`; constructors under the class's own.
    methods: dict[str, list[Declaration]] = {}
    #: Of a template that it specialises; None where it is none.
    arguments: tuple[str, ...] | None = None
    #: Static members and enumerators with the texts of their values.
    values: dict[str, str] = {}
    #: Whether it has members that others cannot name, or may have.
    hidden: bool = False
    #: Why its fields are not all told; empty where they are.
    unread: str = ""
    union: bool = False
    #: Whether a union without a name is among its members, of which the first is told.
    overlaid: bool = False

    @property
    def base_names(self) -> tuple[str, ...]:
        """The bases by the last parts of their names."""
        return tuple(one.partition("<")[0].rpartition("::")[2].strip() for one in self.bases)


def parameters_of(function: Node) -> tuple[Parameter, ...]:
    """Parameters of a function's definition or declaration, or of a lambda expression."""
    declarator = first(child(function, "declarator"), "function_declarator")
    listed = child(
        declarator if declarator is not None else child(function, "declarator"), "parameters"
    )
    if listed is None and function.type == "lambda_expression":
        listed = first(child(function, "declarator"), "parameter_list")
    return listed_parameters(listed)


def listed_parameters(listed: Node | None) -> tuple[Parameter, ...]:
    """Parameters in a pair of parentheses; `(void)` has none."""
    found = [parameter(one) for one in named(listed) if one.type.endswith("parameter_declaration")]
    plain = [one for one in found if one.name or one.type != "void" or one.pointers]
    return tuple(plain)


def parameter(node: Node) -> Parameter:
    """One parameter as its node declares it."""
    return parameter_in(node, child(node, "declarator"))


def parameter_in(node: Node, declarator: Node | None) -> Parameter:
    """What one declarator of a declaration declares."""
    told = declarator_of(declarator)
    front = {text_of(one) for one in node.children if one.type == "type_qualifier"}
    extents = tuple(text_of(one) for one in told.extents)
    return Parameter(
        text_of(told.name),
        spelled_type(node),
        told.pointers + told.of_pointers,
        told.reference,
        () if told.of_pointers else extents,
        text_of(child(node, "default_value")),
        "const" in front,
        node.type.startswith("variadic"),
        node,
        "volatile" in front,
        extents if told.of_pointers else (),
    )


def spelled_type(node: Node) -> str:
    """The type of a declaration as it is written, of a class its name; empty for one without."""
    kind = child(node, "type")
    specified = kind is not None and kind.type in TYPE_SPECIFIERS
    return text_of(child(kind, "name") if specified else kind)


@functools.lru_cache(maxsize=1 << 12)
def declared(text: str) -> Parameter | None:
    """The one parameter that a text declares, with or without a name; None for other text."""
    root = parse(f"void f({text});".encode())
    listed = first(root, "parameter_list")
    found = listed_parameters(listed)
    return found[0] if len(found) == 1 and not root.has_error else None


def template_parameters(template: Node, concepts: Collection[str] = ()) -> tuple[Parameter, ...]:
    """Parameters of `template <...>`: `type` is "type" for types, else that of the value.

    Of a pointer to a function it is the whole declaration. concepts: of the program, which stand in
    front of types as types do in front of values; the standard library's are known.
    """
    found = []
    asked = _constraints(template)
    for one in named(child(template, "parameters")):
        told = name_of(child(one, "type"))
        is_concept = told.last in concepts or _is_std_concept(told)
        is_type = (
            is_concept
            or "type_parameter" in one.type
            or one.type == "template_template_parameter_declaration"
        )
        declarator = child(one, "declarator")
        name = child(one, "name") or declarator_of(declarator).name
        if name is None and is_type:
            inner = one
            while named(inner) and inner.type != "type_identifier":
                inner = named(inner)[-1]
            default = child(one, "default_type")
            name = inner if inner.type == "type_identifier" and inner != default else None
        default = child(one, "default_value") or child(one, "default_type")
        function = first(declarator, "function_declarator") is not None
        own = text_of(one if function else child(one, "type"))
        unnamed = name is not None and name == child(one, "type")
        found.append(
            Parameter(
                "" if unnamed else text_of(name),
                "type" if is_type else own,
                default=text_of(default),
                pack="variadic" in one.type,
                node=one,
                concept=told.last if is_concept else asked.get(text_of(name), ""),
            )
        )
    return tuple(found)


def _constraints(template: Node) -> dict[str, str]:
    """Concepts that the `requires` clause of a template asks of its parameters, by their names."""
    clause = next((one for one in template.named_children if one.type == "requires_clause"), None)
    found: dict[str, str] = {}
    for one in walk(clause) if clause is not None else ():
        name = name_of(one) if one.type == "template_type" else None
        if name is not None and name.arguments is not None and len(name.arguments) == 1:
            found[name.arguments[0]] = name.last
    return found


def _is_std_concept(name: Name) -> bool:
    """Whether a name of the standard library is none of the types that a template's value may have."""
    of_value = name.last.endswith("_t") or name.last in {"byte", "memory_order"}
    return name.scopes == ("std",) and not of_value


def returns_reference(function: Node) -> bool:
    """Whether a function or lambda gives a reference, to which a call can assign."""
    declarator = child(function, "declarator")
    while declarator is not None and declarator.type == "pointer_declarator":
        declarator = child(declarator, "declarator")
    if declarator is not None and declarator.type == "reference_declarator":
        return True
    parts = declarator.children if declarator is not None else []
    trailing = next((one for one in parts if one.type == "trailing_return_type"), None)
    told = text_of(trailing) or text_of(child(function, "type"))
    return told.endswith("&") or told.startswith("decltype(auto)")


def marks_of(function: Node) -> frozenset[str]:
    """Words in front of a function's name: `__global__`, `static`, `inline`."""
    declarator = child(function, "declarator")
    end = declarator.start_byte if declarator is not None else function.end_byte
    front = [one for one in function.children if one.start_byte < end]
    words = {one.type for one in front}
    for one in front:
        if one.type in {"storage_class_specifier", "type_qualifier"}:
            words |= {inner.type for inner in one.children} | {text_of(one)}
    return frozenset(words)


def enumerators(node: Node) -> Iterator[tuple[str, str]]:
    """Enumerators below a declaration, each with the text of its value."""
    if node.type == "enumerator_list":
        before = ""
        for one in named(node):
            name, told = child(one, "name"), child(one, "value")
            if name is not None:
                before = text_of(told) if told is not None else f"({before}) + 1" if before else "0"
                yield text_of(name), before
                before = text_of(name)
    for inner in node.named_children:
        yield from enumerators(inner)
