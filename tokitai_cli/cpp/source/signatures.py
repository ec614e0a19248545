"""Signatures of a program's kernels: names, template parameters, parameters and their types.

What a macro or a template decides is left open: a reader of text does not know it, the compiler does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tokitai_cli.core import resources
from tokitai_cli.cpp.declarations import declared, parameters_of
from tokitai_cli.cpp.lexing import names_in, put_in
from tokitai_cli.cpp.source.classes import TemplateParameter, template_of
from tokitai_cli.cpp.source.source_files import SYSTEM
from tokitai_cli.cpp.source.types import Types, known_types, unqualified
from tokitai_cli.cpp.tree import child, declarator_of, first, name_of
from tokitai_cli.cpp.unit_text import is_standard
from tokitai_cli.cpp.whole import Program, remembered

if TYPE_CHECKING:
    from tree_sitter import Node

    from tokitai_cli.cpp.declarations import Declaration
    from tokitai_cli.cpp.declarations import Parameter as Declared
    from tokitai_cli.cpp.program import Program as Tree


class Parameter(msgspec.Struct, frozen=True):
    """One parameter. `type` is its element's, without const and pointers, typedefs put in."""

    name: str
    type: str
    #: Array (a pointer to numbers, or to what the kernel does not say), scalar, struct, structs (a
    #: pointer to them), pointers (to pointers), or unknown (of a template or a macro).
    kind: str
    #: Those that may be passed for it, empty where that is not known.
    dtypes: tuple[str, ...]
    pointers: int
    #: Of what is pointed to.
    const: bool
    default: str
    #: That too.
    volatile: bool = False

    @property
    def text(self) -> str:
        """As a declaration says it."""
        words = "const " * self.const + "volatile " * self.volatile
        return f"{words}{self.type}{'*' * self.pointers} {self.name}".strip()

    @property
    def integer(self) -> bool:
        """Whether a whole number can be passed for it."""
        return self.kind == "scalar" and any("int" in one or one == "bool" for one in self.dtypes)

    def takes(self, kind: str, dtype: str) -> bool:
        """Whether a buffer, list, scalar, struct, integer or zero of that dtype may be passed for it."""
        scalar = not self.pointers and (
            self.kind != "scalar" or (self.integer if kind == "integer" else dtype in self.dtypes)
        )
        if kind == "zero":
            return bool(self.pointers) or self.kind == "unknown" or self.takes("integer", dtype)
        array = self.kind == "array" and (not self.dtypes or dtype in self.dtypes)
        return {
            "buffer": self.kind in {"unknown", "structs"} or array,
            "list": self.pointers > 1 or self.kind in {"unknown", "struct"},
            "struct": self.kind in {"struct", "structs", "unknown"},
            "structs": self.kind in {"structs", "unknown"},
        }.get(kind, scalar)


class Kernel(msgspec.Struct, frozen=True):
    """A `__global__` function with a body. `text` is how it is declared, on one line."""

    name: str
    space: tuple[str, ...]
    template: tuple[TemplateParameter, ...]
    parameters: tuple[Parameter, ...]
    file: Path
    line: int
    text: str
    open: bool  # its parameters are not all known: a pack, or what could not be read
    parted: bool = False  # a condition of the preprocessor decides about some of them

    @property
    def qualified(self) -> str:
        """Its name with its namespaces."""
        return "::".join([*self.space, self.name])


@remembered
def kernels_of(program: Program) -> list[Kernel]:
    """All kernels of the program, in the order of its files and lines."""
    types = known_types(program)
    found: list[Kernel] = []
    for source in program.sources:
        for piece in source.parts:
            if not piece.kernel or not piece.names:
                continue
            head = " ".join(source.plain[piece.begin : piece.body].split())
            template = tuple(template_of(program, piece.node))
            lists = parameter_list(piece.node)
            open_names = {one.name for one in template}
            parameters = tuple(
                bindable(one, types, open_names) for one in parameters_of(piece.node)
            )
            name = name_of(declarator_of(child(piece.node, "declarator")).name)
            is_open = lists is None or lists.has_error or "..." in head
            found.append(
                Kernel(
                    name.last,
                    (*piece.space, *name.scopes),
                    template,
                    parameters,
                    source.file(piece.begin),
                    source.line(piece.begin),
                    head,
                    is_open,
                    source.is_parted(piece.begin, piece.body),
                )
            )
    order = {path: at for at, path in enumerate(program.files)}
    return sorted(found, key=lambda one: (order.get(one.file, len(order)), one.line))


def unlisted(program: Program) -> Iterator[tuple[Path, int, str]]:
    """Kernels that `kernels_of` does not list: file, line, and why."""
    tree = program.sources[0].tree  # the others are joined sources, and have theirs
    for node, name in tree.unlisted():
        yield *tree.place(node), f"{_told(name)} could not be read to its end"
    for file, line, name in tree.unit.inactive:
        why = "is in an inactive branch of the preprocessor: see -D"
        yield Path(file), line, f"{_told(name)} {why}"


def _told(name: str) -> str:
    return f"the kernel {name}" if name else "a kernel"


def may_declare(program: Program, name: str) -> bool:
    """Whether a kernel of that name may be there all the same: not read, or in a header not read."""
    ours = resources.kernels_dir() / "host"
    for one in program.sources:
        names = (told[1:-1] for _, _, told in one.unit.missing)
        if any((folder / other).exists() for other in names for folder in SYSTEM
               if not is_standard(other) and not (ours / other).exists()):  # fmt: skip
            return True
        if any(other == name or not other for _, _, other in one.unit.inactive):
            return True
    return any(name in part.words for one in program.sources for part in one.parts)


def bound_types(kernel: Kernel, arguments: list[str]) -> dict[str, str]:
    """Template arguments by the name of the parameter, defaults among them."""
    given = dict(zip((one.name for one in kernel.template), arguments, strict=False))
    rest = kernel.template[len(arguments) :]
    return given | {one.name: one.default for one in rest if one.default}


def declaration_of(program: Program, kernel: Kernel) -> tuple[Tree, Declaration] | None:
    """The kernel in the tree of its unit; None where the tree does not have it."""
    for tree in program.trees:
        for one in tree.by_name.get(kernel.name, ()):
            same = one.kind == "kernel" and len(one.parameters) == len(kernel.parameters)
            if same and tree.place(one.outer) == (kernel.file, kernel.line):
                return tree, one
    return None


def nests_declarators(program: Program, kernel: Kernel) -> bool:
    """Whether it has a parameter of rows, `x[][3]` or `(*x)[3]`, or of a function's address."""
    known = declaration_of(program, kernel)
    declared = known[1].parameters if known is not None else ()
    return any(one.inner or first(one.node, "function_declarator") for one in declared)


def instantiated(
    kernel: Kernel, program: Program, arguments: list[str], *, guess: bool = False
) -> tuple[Parameter, ...]:
    """Parameters of the kernel with its template arguments put in.

    guess: of an alias that has several meanings, by branches of the preprocessor, the last is taken.
    """
    bound = bound_types(kernel, arguments)
    types = known_types(program, guess=guess)
    return tuple(_with(one, types, bound) for one in kernel.parameters)


def _with(one: Parameter, types: Types, bound: Mapping[str, str]) -> Parameter:
    if one.kind != "unknown":
        return one
    base = types.resolved(put_in(one.type, bound), bound)
    stars = base.count("*")
    kind, dtypes = types.kind_of(base.replace("*", "").strip())
    shown = base.replace("*", "").strip() or one.type
    pointers = one.pointers + stars
    return msgspec.structs.replace(
        one, type=shown, kind=_kind(kind, pointers, base), dtypes=dtypes, pointers=pointers
    )


def types_of(parameters: Iterable[Parameter]) -> str:
    """Types of parameters, as a spec writes them behind the name of one of several kernels."""
    return ", ".join(msgspec.structs.replace(one, name="").text for one in parameters)


def parameter_list(node: Node) -> Node | None:
    """The parentheses of a function's declaration."""
    inner: Node | None = node.child_by_field_name("declarator")
    while inner is not None and inner.type != "function_declarator":
        inner = inner.child_by_field_name("declarator") or (
            inner.named_children[-1] if inner.named_children else None
        )
    return inner.child_by_field_name("parameters") if inner is not None else None


def parameter_of(text: str, name: str = "", types: Types | None = None) -> Parameter:
    """What is declared as `text`, a parameter or a variable, without extents and initial value.

    Without a name as a demangled symbol tells it: `float const*`. types: of the program, if any.
    """
    known = types or Types(Program(Path(), [], {}))
    told = declared(text)
    if told is None:
        return Parameter(name, " ".join(text.split()), "unknown", (), 0, False, "")
    return msgspec.structs.replace(bindable(told, known), name=name)


def bindable(declaration: Declared, types: Types, open_names: Collection[str] = ()) -> Parameter:
    """What a spec may pass for what is declared.

    open_names: of a template's parameters, which only its arguments decide.
    """
    pointers = declaration.pointers or bool(declaration.extents)
    base = types.resolved(declaration.type, {})
    pointers += base.count("*")  # an alias of a pointer
    base = base.replace("*", " ").strip()
    kind, dtypes = types.kind_of(base)
    if not base or not {*names_in(base)}.isdisjoint(open_names) or declaration.reference:
        kind, dtypes = "unknown", ()
    return Parameter(
        declaration.name,
        base or unqualified(declaration.type),
        _kind(kind, pointers, base),
        dtypes,
        pointers,
        declaration.const and pointers > 0,
        declaration.default,
        declaration.volatile and pointers > 0,
    )


def _kind(kind: str, pointers: int, base: str) -> str:
    if pointers > 1:
        return "pointers"
    if pointers and (base == "void" or kind in {"numbers", "vector"}):
        return "array"
    if kind in {"numbers", "vector"}:
        return "scalar" if kind == "numbers" else "struct"
    return "structs" if kind == "struct" and pointers else kind
