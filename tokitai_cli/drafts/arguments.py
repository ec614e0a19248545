"""Template arguments of a kernel in a draft: those of the host's launch, and guesses for others."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from tokitai_cli.cpp.declarations import Declaration, parameters_of
from tokitai_cli.cpp.elements import ELEMENTS
from tokitai_cli.cpp.host.launch import Launch
from tokitai_cli.cpp.host.spelling import called_in, is_plain, parts, plain, with_names
from tokitai_cli.cpp.lexing import names_in
from tokitai_cli.cpp.program_parts import Part
from tokitai_cli.cpp.source.classes import TemplateParameter, template_of
from tokitai_cli.cpp.source.signatures import Kernel, declaration_of
from tokitai_cli.cpp.source.types import Types
from tokitai_cli.cpp.template_uses import (
    TemplateUses,
    asserted_types,
    declared_in,
    enumerator_of,
)
from tokitai_cli.cpp.tree import child, name_of, text_of, walk
from tokitai_cli.cpp.whole import Program

_LIBRARIES = frozenset({"hipcub", "cub", "rocprim", "thrust"})
_FUNCTORS = {1: "std::negate<>", 2: "std::plus<>"}  # by the arguments that they take
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
        known = declaration_of(program, kernel)
        self._uses = TemplateUses(known[1] if known else None)
        self._instances = known[1].instances if known else []
        self._pieces = [one for pieces in program.pieces.values() for one in pieces]
        names = {name for one in self._pieces for name in (*one.names, *one.space)}
        self._types = Types(program, guess=True)
        functions = {name for one in self._pieces if one.kind == "function" for name in one.names}
        others = {name for one in self._pieces if one.kind != "function" for name in one.names}
        self._functions = functions - others  # no values without a call
        self._known = names | program.macros.keys() | _BUILTIN

    def arguments(self, launch: Launch | None) -> tuple[list[str], list[str]]:
        found, guessed = [], []
        explicit = next(iter(self._instances), ())  # of the first explicit instantiation
        for index, one in enumerate(self._kernel.template):
            text = "" if launch is None else next(iter(launch.template[index : index + 1]), "")
            text = text or next(iter(explicit[index : index + 1]), one.default)
            if not self._fits(one, text):
                text = self._guess(one, text)
                guessed.append(one.name)
            found.append(qualified(self._of_enum(one, text), self._pieces))
        return found, guessed

    def _of_enum(self, one: TemplateParameter, text: str) -> str:
        """A number for one of an enum, which C++ does not take without a word: `Mode(2)`."""
        number = text.removeprefix("-").isdigit()
        return f"{one.type}({text})" if number and self._enum(one) is not None else text

    def _enum(self, one: TemplateParameter) -> Declaration | None:
        """The enum of the program's that a parameter's values are of."""
        kind = one.type.rpartition("::")[2]
        every = (each for tree in self._program.trees for each in tree.by_name.get(kind, ()))
        return next((one for one in every if one.kind == "type" and enumerator_of(one.node)), None)

    def _fits(self, one: TemplateParameter, text: str) -> bool:
        """Whether a text can be an argument: a plain one, or of names that are known."""
        told = parts(plain(text))
        if not text or is_plain(text) or (told.scopes and told.scopes[0] in _LIBRARIES):
            return bool(text)
        pointee = self._types.resolved(text.rstrip("* "), {})
        if one.type == "" and self._types.kind_of(pointee)[0] in {"numbers", "vector"}:
            return True
        words = set(names_in(text))
        inner = [] if one.type else told.arguments or ()
        types = [text, *(each for each in inner if each.isidentifier())]
        of_value = one.type and "(" not in one.type  # and no pointer to a function
        known = self._known - (self._functions - called_in(text) if of_value else set())
        return bool(words and words <= known and (one.type or all(map(self._is_type, types))))

    def _is_type(self, text: str) -> bool:
        bare = text.rpartition("::")[2].strip()
        if any(one.template for tree in self._program.trees for one in tree.by_name.get(bare, ())
               if one.kind == "type"):  # fmt: skip
            return False  # a template of classes, whose arguments are left out
        return self._types.kind_of(self._types.resolved(text, {}))[0] != "unknown"

    def _guess(self, one: TemplateParameter, text: str) -> str:
        if one.type:
            return self._enumerator(one, text) or self._number(one)
        asked = self._of_concept(one.concept) if one.concept else ""
        return asked or self._class(one, text) or self._taken(one) or self._type(one)

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
        kinds = [
            kind for tree in self._program.trees for kind in asserted_types(tree.root, one.name)
        ]
        if kinds and "float" not in kinds:
            return kinds[0]
        held = self._uses.locals_of(one.name) or {one.name}
        alone = sum(not other.type for other in self._kernel.template) == 1
        for call in self._uses.calls():
            kinds = self._overloads.get(call.name, [])
            its = one.name in call.template or bool(held & {*call.arguments})
            special = alone and call.name in self._specialised
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
        enum = self._enum(one)
        if enum is not None:
            return f"{enum.name}::{enumerator_of(enum.node)}"
        every = [each for tree in self._program.trees for each in tree.declarations]
        of_template = any(
            (own.name, own.type) == (text, one.type) for each in every for own in each.template
        )
        foreign = not of_template and one.type.split()[-1] not in _BUILTIN
        return text if foreign and text.replace("::", "_").isidentifier() else ""

    def _class(self, one: TemplateParameter, text: str) -> str:
        """A class with the members that the kernel asks it for, or that the host names.

        Arguments of its own template that the host's text does not tell are guessed in their turn.
        """
        members, named = self._uses.members_of(one.name), parts(plain(text))
        for piece in self._pieces if members else ():
            name = name_of(child(piece.node, "name")).last
            is_class = piece.kind == "class" and name in piece.names
            if not is_class or not members <= declared_in(piece.node):
                continue
            formal = [*template_of(self._program, piece.node)]
            given = [*(named.arguments or ())] if name == named.last else []
            if not formal:
                return name
            told = [
                argument if self._fits(other, argument) else other.default or self._guess(other, "")
                for other, argument in zip(formal, given + [""] * len(formal), strict=False)
            ]
            return f"{name}<{', '.join(told)}>"
        return ""

    def _mode(self, name: str) -> str:
        """The first enumerator of the program that the kernel compares a number with."""
        modes = {*self._uses.compared_with(name)}
        every = (node for tree in self._program.trees for node in walk(tree.root)) if modes else ()
        found = (text_of(child(one, "name")) for one in every if one.type == "enumerator")
        return next((one for one in found if one in modes), "")

    def _number(self, one: TemplateParameter) -> str:
        if one.type.split()[-1] == "bool":
            return "true"
        if mode := self._mode(one.name):
            return mode
        if self._uses.is_tile(one.name):
            return "32"
        if re.search("head", one.name, re.I):
            return "64"
        if one.name.endswith("KB"):
            return "48"  # thousands of bytes that each block may have
        of_block = re.search(r"block|thread|size|tile|dim", one.name, re.I)
        threads = any(re.search("thread", other.name, re.I) for other in self._kernel.template)
        beside = threads and not re.search("thread", one.name, re.I)
        return ("16" if beside else "256") if of_block else "4"

    def _type(self, one: TemplateParameter) -> str:
        """A common type; a functor where the kernel calls it; the name where none could be guessed."""
        for mine in (p for p in self._kernel.parameters if p.type == one.name and p.name):
            calls = [call for call in self._uses.calls() if call.name == mine.name]
            if calls and not mine.pointers:
                used = any(call.used for call in calls)
                return _FUNCTORS.get(len(calls[0].arguments), one.name) if used else one.name
            if mine.pointers and self._uses.indexes(mine.name):
                return "int"
        if self._uses.is_argument_of("make_unsigned", one.name):
            return "int"
        if self._uses.has_bits(one.name):
            return "unsigned"
        bits = re.search(r"bit|mask|hash|uint|word", one.name, re.I)
        whole_name = re.search(r"idx|index|int|key|ordinal|offset", one.name, re.I)
        return "unsigned" if bits else "int" if whole_name else "float"


def _is_special(piece: Part) -> bool:
    outer = piece.node.parent
    parameters = outer.child_by_field_name("parameters") if outer is not None else None
    return parameters is not None and not parameters.named_children


def qualified(text: str, pieces: Iterable[Part]) -> str:
    """`text` with the namespaces of the program's classes and enumerations in front of them."""
    named = (
        (name, one.space) for one in pieces if one.kind in {"class", "type"} for name in one.names
    )
    return with_names(text, {name: "::".join([*space, name]) for name, space in named})


def as_number(argument: str) -> str:
    """What a body compares a parameter with: `2` for the argument `Mode(2)`, `1` for `true`."""
    _, _, inner = argument.removesuffix(")").partition("(")
    told = inner if inner.removeprefix("-").isdigit() else argument
    return {"true": "1", "false": "0"}.get(told, told)
