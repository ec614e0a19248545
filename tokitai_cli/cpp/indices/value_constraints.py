"""What a kernel's text asks of the values that its arrays hold, so that loops end and asserts hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from tokitai_cli.cpp.indices.kernel_text import conditions
from tokitai_cli.cpp.source.macro_text import split
from tokitai_cli.cpp.source.macros import closing

_DEPTH = 3  # of functions that arrays are handed on to, of constants named after others
_LIMIT = re.compile(
    r"(?:U?(?:INT|LONG|LLONG)|U?INT(?:8|16|32|64))_MAX|\w*numeric_limits.*max\s*\(\)"
)
_NOTHING = re.compile(r"(?:\w+::)*([A-Z_]*(?:EMPTY|INVALID|UNUSED|NULL|NIL)[A-Z_]*)(?:<[\w,]+>)?")
_NUMBER = re.compile(r"([-~]?(?:0[xX][\da-fA-F]+|\d+))[uUlL]*")
_OPERATOR = r"(?:[<>]=?|[!=]=)(?![<>=])"
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
_SHIFTED = r"(?:\s*>>\s*\w+\s*\)*)?"  # a link beside other bits
_CALL = re.compile(
    r"\b(?!(?:if|for|while|switch|return|sizeof)\b)([A-Za-z_]\w*)\s*(?:<[\w\s,:*]*>)?\s*\("
)
_SWAPPED = re.compile(r"\batomicCAS\w*\s*\(")
_LOADED = r"(?:(?:atomic\w*|__ld\w+|\w*[lL]oad\w*)\s*\(\s*&?\s*)?"  # by a call
_INDEX = r"\[(?:[^\[\];&|=<>]|\[[^\[\]]*\])*\]"
_ADDRESS = r"(?:\([^()]*\*\s*\)\s*)?&?\s*\(?"


class ValueConstraint(NamedTuple):
    """What values of an array are to be."""

    #: `fixed` for `least` everywhere, `slots` for that at many places, `own` for the place of each,
    #: `range` from `least` to `most`, None where it has no such end.
    kind: str
    least: int | None = None
    most: int | None = None


_Number = Callable[[str], int | None]


class Values:
    """What loops and asserts compare with values of arrays.

    body: the kernel's text. reached: functions that it calls, heads and all. constants: what names of
    the source stand for.
    """

    def __init__(self, body: str, reached: str, constants: Mapping[str, str]) -> None:
        self._body, self._reached, self._constants = body, reached, constants

    def constraint(self, array: str, bits: int, signed: bool) -> ValueConstraint | None:
        """What whole numbers in the array have to be; None where the text asks nothing known."""
        uses = list(self._uses(self._body, array, _DEPTH))
        for rule in (_free, _awaited, _linked, _searched, _asserted):
            for text, name in uses:
                if found := rule(text, name, lambda one: self._number(one, bits, signed)):
                    return found
        return None

    def divides(self, array: str) -> bool:
        """Whether the kernel, or a function that the array is handed on to, divides by its elements."""
        uses = self._uses(self._body, array, _DEPTH)
        return any(re.search(rf"[/%]\s*{name}\s*\[", text) for text, name in uses)

    def _uses(self, text: str, array: str, depth: int) -> Iterator[tuple[str, str]]:
        """Texts that use the array, the kernel's and those of functions, with its name in each."""
        yield text, array
        for call in _CALL.finditer(text) if depth else ():
            end = closing(text, call.end() - 1)
            given = split(text[call.end() : end]) if end > 0 else []
            own = rf"{_ADDRESS}{re.escape(array)}\b(?!\s*\()"
            at = [index for index, one in enumerate(given) if re.match(own, one)]
            for names, body in self._defined(call[1]) if at else ():
                for index in at if len(names) >= len(given) else ():
                    yield from self._uses(body, names[index], depth - 1)

    def _defined(self, name: str) -> Iterator[tuple[list[str], str]]:
        """Parameters and body of each function of that name."""
        for head in re.finditer(rf"(?<![\w.]){name}\s*\(", self._reached):
            end = closing(self._reached, head.end() - 1)
            opened = re.compile(r"\s*(?:const\s*)?(?=\{)").match(self._reached, end + 1)
            if end > 0 and opened and (last := closing(self._reached, opened.end())) > 0:
                listed = split(self._reached[head.end() : end])
                names = [re.findall(r"[A-Za-z_]\w*", one.partition("=")[0])[-1:] for one in listed]
                if all(names):
                    yield [one for (one,) in names], self._reached[opened.end() : last]

    def _number(self, text: str, bits: int, signed: bool) -> int | None:
        """What a constant is in a type of so many bits; all of them for one that says it is none."""
        every = (1 << bits) - 1
        for _ in range(_DEPTH + 1):
            text = re.sub(r"^\(\s*[a-z][\w ]*\)\s*(?=[\w(~-])|\s+", "", text)
            text = text[1:-1] if text[:1] == "(" and closing(text, 0) == len(text) - 1 else text
            if _LIMIT.fullmatch(text):
                return every >> signed
            if plain := _NUMBER.fullmatch(text):
                number = int(plain[1].lstrip("-~"), 0)
                number = {"-": -number, "~": ~number}.get(text[0], number) & every
                return number - every - 1 if signed and number > every >> 1 else number
            given = rf"(?<![\w.]){re.escape(text)}\s*=(?!=)\s*([^;,]+)[;,]"
            own = {*re.findall(given, self._body), *re.findall(given, self._reached)}
            word = re.escape(text)
            stepped = rf"(?<![\w.]){word}\s*(?:\+\+|--|[-+*/%&|^]=)|(?:\+\+|--)\s*{word}\b"
            once = len(own) == 1 and not re.search(stepped, self._body + self._reached)
            text = self._constants.get(text) or (own.pop() if once else text)
        return (-1 if signed else every) if _NOTHING.fullmatch(text) else None


def _free(text: str, name: str, number: _Number) -> ValueConstraint | None:
    """Locks and slots that are taken where they hold a constant are free."""
    for call in _SWAPPED.finditer(text):
        end = closing(text, call.end() - 1)
        given = split(text[call.end() : end]) if end > 0 else []
        mine = len(given) == 3 and re.match(rf"{_ADDRESS}{name}\b", given[0])
        if mine and (value := number(given[1])) is not None:
            return ValueConstraint("fixed", value)
    return None


def _awaited(text: str, name: str, number: _Number) -> ValueConstraint | None:
    """Flags that loops wait for, and that the kernel sets, are set."""
    calls = rf"\w*(?:[sS]tore|Exch)\w*\s*\(\s*&?\s*{name}\b[^;]*,"
    for _, loop in _loops(text):
        for sign, other in _compared(loop, name, loop):
            set_ = rf"(?:{name}\s*\[[^;]*\]\s*=(?!=)|{calls})\s*{re.escape(other)}\s*[;)]"
            value = number(other) if sign == "==" and re.search(set_, text) else None
            if value is not None:
                return ValueConstraint("fixed", value)
    return None


def _linked(text: str, name: str, number: _Number) -> ValueConstraint | None:
    """Links that a loop goes along end at once: with a constant, or each at its own place."""
    for _, loop in _loops(text):
        for new, old in re.findall(rf"(\w+)\s*=\s*{name}\s*\[\s*(\w+)\s*\]", loop):
            if new != old and not re.search(rf"\b{old}\s*=\s*{new}\s*[;,)]", loop):
                continue
            links = _comparisons(loop, rf"\b(?:{new}|{old})\b")
            for sign, other in (*links, *_compared(loop, name, loop)):
                if sign in {"==", "!="} and (value := number(other)) is not None:
                    return ValueConstraint("fixed", value)
            return ValueConstraint("own")
    return None


def _searched(text: str, name: str, number: _Number) -> ValueConstraint | None:
    """What a search goes on until it finds is found soon."""
    for head, loop in _loops(text):
        for sign, other in _compared(head, name, loop):
            if sign in {"==", "!="} and (value := number(other)) is not None:
                fixed = sign == "==" or not _moved(loop, name)
                return ValueConstraint("fixed" if fixed else "slots", value + (sign == "=="))
        if re.fullmatch(r"\s*(?:true|1)\s*|[^;]*;\s*(?:true|1)?\s*;.*", head, re.S):
            for sign, other in _compared(loop, name, loop):
                left = rf"==\s*\(?{re.escape(other)}\)?\s*\)+\s*(?:\{{[^{{}}]*)?(?:return|break)\b"
                value = number(other) if sign == "==" and re.search(left, loop) else None
                if value is not None:
                    return ValueConstraint("slots", value)
    return None


def _asserted(text: str, name: str, number: _Number) -> ValueConstraint | None:
    """What asserts say of elements, and of variables that are read from them."""
    least: int | None = None
    most: int | None = None
    for call in re.finditer(r"\bassert\s*\(", text):
        told = text[call.end() : closing(text, call.end() - 1)]
        for sign, other in _compared(told, name, text) if "||" not in told else ():
            value = number(other)
            if value is not None and sign == "==":
                return ValueConstraint("fixed", value)
            if value is not None and (sign in {">", ">="} or (sign == "!=" and value == 0)):
                least = value + (sign != ">=")
            elif value is not None and sign in {"<", "<="}:
                most = value - (sign == "<")
    return None if least is None and most is None else ValueConstraint("range", least, most)


def _moved(loop: str, name: str) -> bool:
    """Whether the loop goes from one element to others that are not told by elements themselves."""
    told = " ".join(re.findall(rf"(?<![\w.]){name}\s*({_INDEX})", loop))
    words = {*re.findall(r"[A-Za-z_]\w*", told)}
    read = {*re.findall(rf"(\w+)\s*=\s*{_LOADED}{name}\s*\[", loop)}
    step = r"\b{0}\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))|(?:\+\+|--)\s*{0}\b"
    return not words & read and any(re.search(step.format(one), loop) for one in words)


def _compared(part: str, name: str, text: str) -> Iterator[tuple[str, str]]:
    """What elements, or variables that `text` reads from them, are compared with: sign, other side."""
    own = re.findall(rf"(\w+)\s*=\s*{_LOADED}{name}\s*\[", text)
    yield from _comparisons(part, rf"{_LOADED}(?<![\w.]){name}\s*{_INDEX}\s*(?:,[^();]*)?")
    for one in own:
        yield from _comparisons(part, rf"(?<![\w.]){one}\b")


def _comparisons(text: str, side: str) -> Iterator[tuple[str, str]]:
    """What stands at the other side of comparisons, and the sign as from `side` on."""
    other = r"((?:[\w:~-]|<\w+(?:,\s*\w+)*>|\(\s*\))+)"
    behind = rf"{side}\s*\)*{_SHIFTED}\s*({_OPERATOR})\s*\(?\s*{other}"
    yield from ((one[1], one[2]) for one in re.finditer(behind, text))
    front = rf"{other}\s*({_OPERATOR})\s*{side}"
    yield from ((_MIRRORED[one[2]], one[1]) for one in re.finditer(front, text))


def _loops(text: str) -> Iterator[tuple[str, str]]:
    """Conditions of loops, and all of each loop."""
    for begin, head, end in conditions(text):
        if not text.startswith("if", begin):
            yield text[text.index("(", begin) + 1 : head], text[begin:end]
    for one in re.finditer(r"\bdo\s*(?=\{)", text):
        end = closing(text, one.end())
        tail = re.compile(r"\s*while\s*(?=\()").match(text, end + 1) if end > 0 else None
        if tail and (last := closing(text, tail.end())) > 0:
            yield text[tail.end() + 1 : last], text[one.start() : last]
