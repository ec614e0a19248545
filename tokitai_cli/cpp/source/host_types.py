"""Template arguments of a launch that the host leaves to the compiler, or to its own templates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tokitai_cli.cpp.source.launches import HostLaunch, arguments_at
from tokitai_cli.cpp.source.macro_text import WORD, split
from tokitai_cli.cpp.source.signatures import Kernel, Parameter
from tokitai_cli.cpp.whole import Program

_INSIDE = r"[^;{}()<>]{0,200}"
_TYPE = (
    r"(?:(?:unsigned|signed|long|short)\s+)*[A-Za-z_][\w:]*"
    rf"(?:\s*<{_INSIDE}(?:<{_INSIDE}>{_INSIDE})?>)?"
)
_NO_TYPE = {"return", "delete", "new", "else", "const", "case", "goto", "throw", "using", "struct"}
_CAST = re.compile(
    rf"\(\s*(?:const\s+)?({_TYPE})\s*\*\s*\)|\w+_cast\s*<\s*(?:const\s+)?({_TYPE})\s*\*"
)
_ELEMENTS = re.compile(r"[\w:]*(?:vector|[Bb]uffer|unique_ptr|shared_ptr|span)\s*<\s*([^,<>]+)")
_TEMPLATE = re.compile(r"\btemplate\s*<([^;{}]*?)>\s*(?=[A-Za-z_])", re.S)
# A class, a member of one that stands outside of it, or a function.
_HEAD = re.compile(r"\b(?:class|struct)\s+(\w+)|(\w+)\s*<[^;{}()]*>\s*::|([A-Za-z_]\w*)\s*\(")


def declared(before: str, argument: str) -> str:
    """Type of a number, or of an array's elements, that the host passes; empty where it is not seen.

    before: the host's text in front of the launch.
    """
    if cast := _CAST.search(argument):
        return _spaced(cast[1] or cast[2])
    made = re.match(rf"({_TYPE})\s*[({{]", argument.strip())
    if made and re.search(rf"\b(?:struct|class)\s+{made[1].partition('<')[0].strip()}\b", before):
        return _spaced(made[1])  # by its constructor
    for name in re.findall(r"[A-Za-z_]\w*", argument):
        if found := _declaration_of(name, before):
            held = _ELEMENTS.match(found)
            return _spaced(held[1] if held else found)
    return ""


def _declaration_of(name: str, before: str) -> str:
    """Type of the last declaration of `name`."""
    others = r"(?:[\w\s*=.()]{0,200},[\s*]*)??"
    declaration = (
        rf"(?<![\w.>:])({_TYPE})[\s*&]+(?:__restrict__\s+)?{others}{name}\b(?=\s*[;=,)({{\[])"
    )
    found = [match[1] for match in re.finditer(declaration, before[-40_000:])]
    return next((one for one in reversed(found) if one.split()[0] not in _NO_TYPE), "")


def instance_of(name: str, before: str, texts: Iterable[str]) -> str:
    """What the parameter `name` of the template around a launch stands for, by its first use.

    Empty where no template of that parameter stands in front, or nothing says what it is of.
    """
    for match in reversed(list(_TEMPLATE.finditer(before))):
        parameters = [re.findall(r"\w+", one.partition("=")[0])[-1:] for one in split(match[1])]
        place = next((at for at, words in enumerate(parameters) if words == [name]), None)
        head = _HEAD.search(before, match.end())
        if place is None or head is None:
            continue
        if nearer := re.findall(rf"\busing\s+{name}\s*=\s*([^;]+);", before[match.end() :]):
            return _spaced(nearer[-1])
        whose = head[1] or head[2] or head[3]
        own = {word for words in parameters for word in words}
        for text in texts:
            for use in re.finditer(rf"\b{whose}\s*<([^;{{}}()]+?)>\s*(?=[\w(&*{{;,])", text):
                given = split(use[1])
                if place < len(given) and own.isdisjoint(re.findall(r"\w+", given[place])):
                    return _spaced(given[place])
        return _of_call(name, whose, arguments_at(before, head.end() - 1), texts) if head[3] else ""
    return ""


def _of_call(name: str, function: str, parameters: Sequence[str], texts: Iterable[str]) -> str:
    """What the host passes where a function's parameter has the template's type `name`."""
    places = [at for at, one in enumerate(parameters) if name in re.findall(r"\w+", one)[:-1]]
    for text in texts:
        for call in re.finditer(rf"(?<![\w.>:])(?<!void ){function}\s*\(", text):
            given = arguments_at(text, call.end() - 1)
            for at in places:
                found = declared(text[: call.start()], given[at]) if at < len(given) else ""
                if found not in ("", name):
                    return found
    return ""


def _spaced(text: str) -> str:
    return " ".join(text.split())


def template_argument(program: Program, kernel: Kernel, launch: HostLaunch, index: int) -> str:
    """Template argument number `index` of the kernel that a launch starts, as far as the host says it.

    It is written there, or follows from what is passed; names of the host's own templates stand for
    what these are first used with. Empty where it is not seen.
    """
    before = program.texts[launch.source].plain[: launch.begin]
    if index < len(launch.template):
        text = launch.template[index]
    elif kernel.template[index].type:
        return ""
    else:
        text = _deduced(kernel.template[index].name, kernel.parameters, launch.args, before)
    texts = [one.plain for one in program.texts.values()]
    known = {name for pieces in program.pieces.values() for piece in pieces for name in piece.names}
    for _ in range(2):  # an alias may name parameters of the host's template
        for word in dict.fromkeys(WORD.findall(text)):
            if found := instance_of(word, before, texts):
                text = re.sub(rf"\b{word}\b(?!\s*<)", found, text)
        for word in set(WORD.findall(text)) - known:
            if found := _local_alias(word, texts):
                text = re.sub(rf"\b{word}\b", found, text)
    return text


def _local_alias(name: str, texts: Iterable[str]) -> str:
    """What a function's own `using` or `typedef` of a name stands for, with its own aliases put in."""
    for text in texts:
        told = re.search(rf"\busing\s+{name}\s*=\s*([^;]+);", text) or re.search(
            rf"\btypedef\s+([\w:<>, ]+?)\s+{name}\s*;", text
        )
        if told is not None:
            inner = _spaced(told[1])
            words = set(re.findall(r"(?<!:)\b[A-Za-z_]\w*\b(?!::)", inner)) - {name}
            for word in words:
                if found := re.search(rf"\busing\s+{word}\s*=\s*([^;<]+);", text):
                    inner = re.sub(rf"(?<!:)\b{word}\b(?!::)", _spaced(found[1]), inner)
            return inner
    return ""


def _deduced(name: str, parameters: Sequence[Parameter], args: Sequence[str], before: str) -> str:
    for one, argument in zip(parameters, args, strict=False):
        formal = _arguments(one.type)
        if name in formal and one.pointers <= 1:  # of a class of templates
            given = _arguments(declared(before, argument))
            if len(given) == len(formal):
                return given[formal.index(name)]
        if one.type != name or one.pointers > 1:
            continue
        literal = re.fullmatch(r"[-+]?\d+(\.\d*)?(?:[eE][-+]?\d+)?([fF]?)", argument.strip())
        if literal and not one.pointers:
            return "float" if literal[2] else "double" if literal[1] else "int"
        if found := declared(before, argument):
            return found
    return ""


def _arguments(type_name: str) -> list[str]:
    """Those of a class of templates; none of another type."""
    inner = re.fullmatch(r"[\w:\s]+<(.*)>", type_name.strip())
    return split(inner[1]) if inner else []
