"""Template arguments of a kernel in a draft: those of the host's launch, and guesses for others."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from tokitai_cli.cpp.declarations import parameters_of
from tokitai_cli.cpp.elements import ELEMENTS
from tokitai_cli.cpp.host.launch import Launch
from tokitai_cli.cpp.lexing import names_in
from tokitai_cli.cpp.program_parts import Part
from tokitai_cli.cpp.source.classes import TemplateParameter, template_of
from tokitai_cli.cpp.source.launches import arguments_at
from tokitai_cli.cpp.source.macro_text import WORD, split
from tokitai_cli.cpp.source.signatures import Kernel, declaration_of
from tokitai_cli.cpp.source.types import Types
from tokitai_cli.cpp.tree import text_of
from tokitai_cli.cpp.whole import Program

_PLAIN_ARGUMENT = re.compile(
    r"(?:float|double|bool|half|__half|__hip_bfloat16|unsigned|true|false|-?\d+[uUlL]*"
    r"|(?:(?:un)?signed )?(?:int|char|short|long(?: long)?)|(?:std::)?(?:u?int\d+_t|size_t)"
    r"|(?:double|float|int)[234])\*?"
)


_OF_LIBRARY = re.compile(r"(?:hipcub|cub|rocprim|thrust)::(?:\w+::)*\w+(?:<\w*>)?")
_FUNCTORS = {1: "std::negate<>", 2: "std::plus<>"}  # by the arguments that they take
_ENUM = re.compile(r"enum\s+(?:class\s+|struct\s+)?(\w+)[^{;]*\{\s*(\w+)")
_BUILTIN = {word for name in ELEMENTS for word in name.split()} | {"std", "true", "false"}


def template_arguments(
    kernel: Kernel, launch: Launch | None, program: Program
) -> tuple[list[str], list[str]]:
    """Arguments of the host's launch; where it leaves them to be found out, what is common.

    And the names of the parameters whose arguments are guesses.
    """
    return _Guesser(kernel, program).arguments(launch) if kernel.template else ([], [])


class _Guesser:
    def __init__(self, kernel: Kernel, program: Program) -> None:
        self._kernel, self._program = kernel, program
        self._pieces = [one for pieces in program.pieces.values() for one in pieces]
        names = {name for one in self._pieces for name in (*one.names, *one.space)}
        self._types = Types(program, guess=True)
        functions = {name for one in self._pieces if one.kind == "function" for name in one.names}
        others = {name for one in self._pieces if one.kind != "function" for name in one.names}
        self._functions = functions - others  # no values without a call
        self._known = names | program.macros.keys() | _BUILTIN

    def arguments(self, launch: Launch | None) -> tuple[list[str], list[str]]:
        found, guessed = [], []
        explicit = self._explicit()
        for index, one in enumerate(self._kernel.template):
            text = "" if launch is None else next(iter(launch.template[index : index + 1]), "")
            text = text or next(iter(explicit[index : index + 1]), one.default)
            if not self._fits(one, text):
                text = self._guess(one, text)
                guessed.append(one.name)
            found.append(qualified(text, self._pieces))
        return found, guessed

    def _explicit(self) -> tuple[str, ...]:
        """Arguments of the first explicit instantiation; empty for none."""
        known = declaration_of(self._program, self._kernel)
        return known[1].instances[0] if known and known[1].instances else ()

    def _fits(self, one: TemplateParameter, text: str) -> bool:
        """Whether a text can be an argument: a plain one, or of names that are known."""
        if not text or _PLAIN_ARGUMENT.fullmatch(text) or _OF_LIBRARY.fullmatch(text):
            return bool(text)
        words = set(WORD.findall(text))
        inner = [] if one.type else split(text.removesuffix(">").partition("<")[2])
        types = [text, *(told for told in inner if WORD.fullmatch(told))]
        called = set(re.findall(r"\b[A-Za-z_]\w*(?=\s*\()", text))
        plain = one.type and "(" not in one.type  # and no pointer to a function
        known = self._known - (self._functions - called if plain else set())
        return bool(words and words <= known and (one.type or all(map(self._is_type, types))))

    def _is_type(self, text: str) -> bool:
        bare = text.rpartition("::")[2].strip()
        if any(one.template for tree in self._program.trees for one in tree.by_name.get(bare, ())
               if one.kind == "type"):  # fmt: skip
            return False  # a template of classes, whose arguments are left out
        return self._types.kind_of(self._types.resolved(text, {}))[0] != "unknown"

    def _guess(self, one: TemplateParameter, text: str) -> str:
        if one.type:
            return self._enumerator(one, text) or _number(one, self._kernel)
        asked = self._of_concept(one.concept) if one.concept else ""
        return asked or self._class(one, text) or self._taken(one) or _type(one, self._kernel)

    def _of_concept(self, name: str) -> str:
        """A type that a concept allows, where it asks for whole numbers alone."""
        waiting, words = [name], set[str]()
        while waiting:
            word = waiting.pop()
            for node in (
                tree.concepts[word] for tree in self._program.trees if word in tree.concepts
            ):
                new = set(names_in(text_of(node))) - words
                words |= new
                waiting += sorted(new)
            words.add(word)
        whole = {one for one in words if "integral" in one}
        real = any("floating_point" in one or "arithmetic" in one for one in words)
        return "" if real or not whole else "unsigned" if "unsigned_integral" in whole else "int"

    def _taken(self, one: TemplateParameter) -> str:
        """A type that the functions which the kernel calls take for it, where `float` is none of them.

        They assert that it is one (`is_same`), or are overloads for plain types alone.
        """
        asserted = " ".join(re.findall(r"\bstatic_assert\s*\([^;]*;", self._text))
        asked = rf"\bis_same(?:_v)?\s*<\s*{one.name}\s*,\s*([\w:\s]+?)\s*>"
        if (kinds := re.findall(asked, asserted)) and "float" not in kinds:
            return str(kinds[0])
        held = "|".join(re.findall(_local(one.name), self._kernel.body)) or one.name
        alone = sum(not other.type for other in self._kernel.template) == 1
        for call in re.finditer(r"\b([A-Za-z_]\w*)\s*(?:<([\w\s,]*)>)?\s*\(", self._kernel.body):
            kinds = self._overloads.get(call[1], [])
            given = arguments_at(self._kernel.body, call.end() - 1)
            its = one.name in split(call[2] or "") or any(re.fullmatch(held, x) for x in given)
            special = alone and call[1] in self._specialised
            if kinds and "float" not in kinds and (its or special):
                return kinds[0]
        return ""

    @functools.cached_property
    def _specialised(self) -> set[str]:
        """Templates of functions that specialisations alone define."""
        special = [piece for piece in self._pieces if _is_special(piece)]
        whole = [one for one in self._pieces if one.kind == "function" and not _is_special(one)]
        names = {name for one in whole for name in one.names}
        return {name for piece in special for name in piece.names} - names

    @functools.cached_property
    def _overloads(self) -> dict[str, list[str]]:
        """Functions that are there for plain types alone: those of their first parameter."""
        found: dict[str, list[str]] = {}
        for piece in self._pieces:
            if piece.kind != "function" or piece.kernel or not piece.device:
                continue
            first = next(iter(parameters_of(piece.node)), None)
            words = first.type if first is not None else ""
            kind = self._types.resolved(words, {})
            plain = self._types.kind_of(kind)[0] in {"numbers", "vector"}
            for name in piece.names:
                found.setdefault(name, []).append(words if plain else "")
        return {name: kinds for name, kinds in found.items() if len(kinds) > 1 and all(kinds)}

    def _enumerator(self, one: TemplateParameter, text: str) -> str:
        """One of an enum: the host's word for one of a header's, the first of the program's."""
        for enum in self._program.pieces.values():
            for piece in enum:
                told = (
                    _ENUM.match((piece.node.text or b"").decode()) if piece.kind == "type" else None
                )
                if told is not None and told[1] == one.type.rpartition("::")[2]:
                    return f"{told[1]}::{told[2]}"
        of_template = (
            re.search(rf"\b{re.escape(one.type)}\s+{text}\b", self._text) if text else None
        )
        foreign = not of_template and one.type.split()[-1] not in _BUILTIN
        return text if foreign and re.fullmatch(r"(?:\w+::)*[A-Za-z_]\w*", text) else ""

    @functools.cached_property
    def _text(self) -> str:
        return "\n".join(one.plain for one in self._program.texts.values())

    def _class(self, one: TemplateParameter, text: str) -> str:
        """A class with the members that the kernel asks it for, or that the host names.

        Arguments of its own template that the host's text does not tell are guessed in their turn.
        """
        whole = self._kernel.text + self._kernel.body
        members = set(re.findall(rf"\b{one.name}\s*::\s*(?:template\s+)?(\w+)", whole))
        head, _, listed = text.removesuffix(">").partition("<")
        for piece in self._pieces if members else ():
            body = (piece.node.text or b"").decode()
            declared = all(re.search(rf"\b{name}\s*[=;({{\[]", body) for name in members)
            name = next(iter(re.findall(r"^\s*(?:class|struct)\s+(\w+)", body)), "")
            if piece.kind != "class" or not declared or name not in piece.names:
                continue
            formal = [*template_of(self._program, piece.node)]
            given = split(listed) if name == head.strip() else []
            if not formal:
                return name
            told = [
                argument if self._fits(other, argument) else other.default or self._guess(other, "")
                for other, argument in zip(formal, given + [""] * len(formal), strict=False)
            ]
            return f"{name}<{', '.join(told)}>"
        return ""


def _is_special(piece: Part) -> bool:
    outer = piece.node.parent
    parameters = outer.child_by_field_name("parameters") if outer is not None else None
    return parameters is not None and not parameters.named_children


def _local(kind: str) -> str:
    """Pattern for the names of a kernel's own variables of a type."""
    return rf"\b{kind}\s+(\w+)\s*[=;\[]"


def qualified(text: str, pieces: Iterable[Part]) -> str:
    """`text` with the namespaces of the program's classes and enumerations in front of them."""
    spaces = {
        name: one.space for one in pieces if one.kind in {"class", "type"} for name in one.names
    }
    return re.sub(
        r"(?<![\w:])[A-Za-z_]\w*",
        lambda match: "::".join([*spaces.get(match[0], ()), match[0]]),
        text,
    )


def _number(one: TemplateParameter, kernel: Kernel) -> str:
    if one.type.split()[-1] == "bool":
        return "true"
    if re.search(
        rf"\b(?:tiled_partition|thread_block_tile)\s*<\s*{re.escape(one.name)}\b", kernel.body
    ):
        return "32"
    if re.search("head", one.name, re.I):
        return "64"
    of_block = re.search(r"block|thread|size|tile|dim", one.name, re.I)
    threads = any(re.search("thread", other.name, re.I) for other in kernel.template)
    beside = threads and not re.search("thread", one.name, re.I)
    return ("16" if beside else "256") if of_block else "4"


def _type(one: TemplateParameter, kernel: Kernel) -> str:
    """A common type; a functor where the kernel calls it; the name where none could be guessed."""
    for mine in (p for p in kernel.parameters if p.type == one.name and p.name):
        name = re.escape(mine.name)
        if not mine.pointers and (call := re.search(rf"\b{name}\s*\(", kernel.body)):
            given = arguments_at(kernel.body, call.end() - 1)
            used = re.search(rf"[=(,+*]\s*{name}\s*\(|\breturn\s+{name}\s*\(", kernel.body)
            return _FUNCTORS.get(len(given), one.name) if used else one.name
        whole = rf"\[[^;\[\]=]*\b{name}\s*\[|\bint\w*\s+\w+\s*=\s*(?:\w+\()?{name}\s*\["
        if mine.pointers and re.search(whole, kernel.body):
            return "int"
    if re.search(rf"make_unsigned\w*<\s*{one.name}\b", kernel.body):
        return "int"
    local = "|".join(re.findall(_local(one.name), kernel.body))
    if local and re.search(rf"\b(?:{local})\s*(?:<<|>>|[|&^%]=|[|^%])", kernel.body):
        return "unsigned"
    bits = re.search(r"bit|mask|hash|uint|word", one.name, re.I)
    whole_name = re.search(r"idx|index|int|key|ordinal|offset", one.name, re.I)
    return "unsigned" if bits else "int" if whole_name else "float"
