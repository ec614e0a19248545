"""Types that a program names: their aliases put in, and what a spec may pass for them."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from tokitai_cli.cpp.elements import VECTORS, dtypes_of, spelled
from tokitai_cli.cpp.lexing import tokens
from tokitai_cli.cpp.source.classes import member_type
from tokitai_cli.cpp.structs import accessor_of, alias_of
from tokitai_cli.cpp.whole import Program

ENUM = ("int32", "uint32")  # of a parameter that is an enumerator
_FUNCTORS = frozenset({"plus", "multiplies", "maximum", "minimum", "negate", "identity"})
# Classes of headers that the tool has; bytes of those that are numbers.
CLASSES = {"complex<float>": 8, "complex<double>": 16}
# Fields of others, T and U what their templates' parameters stand for.
HEADERS = {
    "pair": (("first", "T"), ("second", "U")),
    "dim3": tuple((one, "unsigned") for one in "xyz"),
    **{
        f"{front}PitchedPtr": (
            ("ptr", "void*"),
            *((one, "size_t") for one in ("pitch", "xsize", "ysize")),
        )
        for front in ("hip", "cuda")
    },
}
_GENERATORS = ("curandstate", "hiprandstate", "hiprand_state", "rocrandstate", "rocrand_state")
_DROPPED = frozenset(
    {"const", "volatile", "struct", "class", "enum", "typename", "register", "mutable", "union"}
)


@functools.lru_cache(maxsize=1 << 12)
def unqualified(text: str) -> str:
    """A type without qualifiers, the word of its kind, and the namespace std."""
    found: list[str] = []
    for token in tokens(text):
        if token.startswith("::") and found[-1:] == ["std"]:
            found[-1] = ""
            found.append(token[2:])
        elif token not in _DROPPED:
            found.append(token)
    return " ".join("".join(found).split())


def of_header(name: str) -> str:
    """A class of a header without the namespace."""
    return "".join(name.removeprefix("thrust::").split())


def generator_bytes(name: str) -> int:
    """Bytes of a random generator's state, of cuRAND, hipRAND or rocRAND; 0 for another class."""
    plain = name.lower()
    if not plain.startswith(_GENERATORS) or "sobol" in plain or "mtgp" in plain:
        return 0
    return 64 if "philox" in plain else 48


def is_functor(name: str) -> bool:
    """Whether a class of a library's has no data, as `plus<float>`."""
    head, _, given = name.removesuffix(">").partition("<")
    plain = head.rpartition("::")[2] in _FUNCTORS and (given.isidentifier() or not given)
    return (plain and name.endswith(">")) or name == "hipcub::Sum"


class Types:
    """What the names of types stand for in a program."""

    def __init__(self, program: Program, *, guess: bool = False) -> None:
        self._program = program
        self._aliases: dict[str, dict[str, None]] = {}
        self._guess = guess
        self._classes: set[str] = set()
        self._pointed: set[str] = set()  # typedef struct { ... } *name;
        self._enums: set[str] = set()
        for tree in program.trees:
            for one in tree.declarations:
                if one.kind in {"type", "forward"}:
                    enum = one.node.type == "enum_specifier"
                    (self._enums if enum else self._classes).add(one.name)
                for name, told in alias_of(one.node) if one.kind == "alias" else ():
                    self._add_alias(name, told)
        for name, macros in program.macros.items():
            if all(one.parameters is None for one in macros):
                known = self._aliases.setdefault(name, {})
                known |= dict.fromkeys(" ".join(one.body.split()) for one in macros)

    def _add_alias(self, name: str, told: str) -> None:
        if told == f"{name}*":
            self._pointed.add(name)
        elif told.removeprefix("struct ") != name:  # of C, and no other name
            self._aliases.setdefault(name, {})[told] = None

    def resolved(self, text: str, bound: Mapping[str, str]) -> str:
        """`text` with aliases, macros and the template arguments `bound` put in; "" where it is open."""
        for _ in range(8):
            text = unqualified(text)
            scope, _, last = text.rpartition("::")
            if text in bound:
                text = bound[text]
            elif len(self._aliases.get(text, ())) == 1 or (self._guess and text in self._aliases):
                text = list(self._aliases[text])[-1]
            elif told := member_type(self._program, text):
                text = told
            elif scope.replace("::", "").isidentifier() and last in self._aliases:
                text = last
            else:
                shown = f"{text} *" if text in self._pointed else text
                return "" if text in self._aliases else shown
        return ""

    def kind_of(self, base: str) -> tuple[str, tuple[str, ...]]:
        """numbers, vector, struct or unknown, and the dtypes of its elements."""
        name = spelled(base)
        if dtypes := dtypes_of(name):
            return "vector" if name in VECTORS else "numbers", dtypes
        if name in self._enums or name.rpartition("::")[2] in self._enums:
            return "numbers", ENUM
        head = name.partition("<")[0].partition(" ")[0].rpartition("::")[2]
        known = is_functor(name) or name.lower().startswith(_GENERATORS) or accessor_of(name)
        if known or of_header(name) in CLASSES or of_header(name).partition("<")[0] in HEADERS:
            return "struct", ()
        return ("struct" if head in self._classes or name in self._classes else "unknown"), ()


def known_types(program: Program, *, guess: bool = False) -> Types:
    """The types of a program; read once."""
    key = ("types", guess)
    if key not in program.memory:
        program.memory[key] = Types(program, guess=guess)
    found: Types = program.memory[key]
    return found
