"""Signatures of a program's kernels: names, template parameters, parameters and their types.

What a macro or a template decides is left open: a reader of text does not know it, the compiler does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tokitai_cli.core import resources
from tokitai_cli.cpp.source.classes import TemplateParameter, template_of
from tokitai_cli.cpp.source.source_files import SYSTEM
from tokitai_cli.cpp.source.types import DROPPED, Types, known_types
from tokitai_cli.cpp.tree import child, declarator_of, name_of
from tokitai_cli.cpp.unit_text import ALWAYS
from tokitai_cli.cpp.whole import Program, remembered

if TYPE_CHECKING:
    from tree_sitter import Node

    from tokitai_cli.cpp.declarations import Declaration
    from tokitai_cli.cpp.program import Program as Tree


# Digits of a number beyond those that any type holds: patterns over a body would go over them each time.
_DIGITS = re.compile(r"(?<=\d{1100})\d+")


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
    body: str
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
            template = tuple(template_of(piece.node))
            lists = parameter_list(piece.node)
            parameters = tuple(_parameters(lists, source.parsed, types, template)) if lists else ()
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
                    _DIGITS.sub("", source.plain[piece.body : piece.end]),
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
               if not ALWAYS.fullmatch(other) and not (ours / other).exists()):  # fmt: skip
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
    put = re.sub(r"(?<!:)\b[A-Za-z_]\w*", lambda m: bound.get(m[0], m[0]), one.type)
    base = types.resolved(put, bound)
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


def _parameters(
    node: Node, text: str, types: Types, template: tuple[TemplateParameter, ...]
) -> Iterator[Parameter]:
    open_names = {one.name for one in template}
    for one in node.named_children:
        if one.type not in {"parameter_declaration", "optional_parameter_declaration"}:
            continue
        default = one.child_by_field_name("default_value")
        end = default.start_byte if default is not None else one.end_byte
        whole = text[one.start_byte : end].rstrip().rstrip("=")
        declarator = one.child_by_field_name("declarator")
        name = name_of(declarator_of(declarator).name).last
        if whole.strip() == "void":
            continue
        yield _parameter(whole, name, text[default.start_byte : one.end_byte] if default else "",
                         types, open_names)  # fmt: skip


def parameter_of(text: str, name: str = "", types: Types | None = None) -> Parameter:
    """What is declared as `text`, a parameter or a variable, without extents and initial value.

    Without a name as a demangled symbol tells it: `float const*`. types: of the program, if any.
    """
    known = types or Types(Program(Path(), [], {}))
    return _parameter(text, name, "", known, set())


def _parameter(
    whole: str, name: str, default: str, types: Types, open_names: set[str]
) -> Parameter:
    bare = (
        re.sub(rf"\b{re.escape(name)}\b(?=[^\w]*(?:\[[^\]]*\]\s*)*$)", " ", whole)
        if name
        else whole
    )
    pointers = _pointers(bare)
    reference = "&" in bare
    front = re.split(r"\(\s*\*|[*&\[]", bare)[0]
    const = bool(re.search(r"\bconst\b", front)) and pointers > 0
    volatile = bool(re.search(r"\bvolatile\b", front)) and pointers > 0
    base = types.resolved(front, {})
    if "*" in base:  # an alias of a pointer
        pointers += base.count("*")
        const = const or base.strip().startswith("const")
        base = base.replace("*", " ").strip()
    kind, dtypes = types.kind_of(base)
    if not base or set(re.findall(r"\w+", base)) & open_names or reference:
        kind, dtypes = "unknown", ()
    shown = base or " ".join(DROPPED.sub(" ", front).split())
    return Parameter(
        name, shown, _kind(kind, pointers, base), dtypes, pointers, const, default.strip(), volatile
    )


def _pointers(bare: str) -> int:
    """Levels of pointers: `[2][3]` and `(*)[3]` are one, to elements that lie in one piece."""
    grouped = re.search(r"\(\s*\*([^)]*)\)", bare)
    stars, extents = bare.count("*"), bare.count("[")
    if grouped is not None:
        return stars + grouped[1].count("[")
    return stars + extents if stars else min(extents, 1)


def _kind(kind: str, pointers: int, base: str) -> str:
    if pointers > 1:
        return "pointers"
    if pointers and (base == "void" or kind in {"numbers", "vector"}):
        return "array"
    if kind in {"numbers", "vector"}:
        return "scalar" if kind == "numbers" else "struct"
    return "structs" if kind == "struct" and pointers else kind
