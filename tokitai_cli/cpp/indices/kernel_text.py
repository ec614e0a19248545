"""A kernel's text made plain for guesses: variables, indices, and pointers that arrays are behind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tokitai_cli.cpp.elements import lanes
from tokitai_cli.cpp.source.macro_text import split
from tokitai_cli.cpp.source.macros import closing

CAST = re.compile(
    r"\(\s*(?:std::)?(?:size_t|int|long(?: long)?|u?int(?:32|64)_t|unsigned(?: int)?)\s*\)(?=\s*[\w(])"
    r"|static_cast\s*<[^<>]*>"
)
_WHOLE = (
    r"(?:(?:const|unsigned|std::)\s*)*"
    r"\b(?:u?int|size_t|long(?: long)?|unsigned|auto|u?int(?:32|64)_t)\s+"
)
_DECLARED = re.compile(rf"{_WHOLE}(?:const\s+)?(\w+\s*=[^;]+);")
_ACCESS = re.compile(r"\b__(?:ld(?:g|ca|cg|cs|cv|lu)|st(?:cg|cs|wb|wt))\s*\(")
_POINTERS = 4  # made from each array, one from another


def defined(body: str) -> Iterator[tuple[str, str]]:
    """Names of whole numbers and what they begin with."""
    for one in _DECLARED.findall(body):
        for part in split(one):
            if told := re.fullmatch(r"(\w+)\s*=\s*([^=]+)", " ".join(part.split())):
                yield told[1], told[2]


def scoped(body: str) -> str:
    """`body` with a name of its own for each variable of those that several loops or blocks declare."""
    loops = re.finditer(rf"\bfor\s*\(\s*{_WHOLE}(\w+)\s*=", body)
    own = [(one.start(), one[1], statement_end(body, one.start())) for one in loops]
    made = re.finditer(rf"(?<=[;{{}}])\s*{_WHOLE}(\w+)\s*(?:=|;)", body)
    own += [(one.start(), one[1], _block_end(body, one.end())) for one in made]
    names = [name for _, name, _ in own]
    shift: list[tuple[int, int]] = []  # places, and letters put in there
    for number, (begin, name, last) in reversed(list(enumerate(sorted(own)))):
        if names.count(name) > 1:
            end = last + sum(count for at, count in shift if at < last)
            new = re.sub(rf"(?<![\w.]){name}\b", f"{name}__{number}", body[begin:end])
            shift.append((begin, len(new) - (end - begin)))
            body = body[:begin] + new + body[end:]
    return body


def _block_end(text: str, at: int) -> int:
    """Where the block ends that holds the place."""
    depth = 0
    for mark in re.compile("[{}]").finditer(text, at):
        depth += 1 if mark.group() == "{" else -1
        if depth < 0:
            return mark.start()
    return len(text)


def conditions(text: str) -> Iterator[tuple[int, int, int]]:
    """Where each condition begins and ends, and where the statement ends that stands behind it."""
    for one in re.finditer(r"\b(?:if|for|while)\s*(?=\()", text):
        if (head := closing(text, one.end())) > 0:
            yield one.start(), head, statement_end(text, one.start())


def statement_end(text: str, at: int) -> int:
    """Where the statement that begins there ends, a loop's with what it repeats."""
    begun = re.compile(r"\s*(?:(?:for|while|if)\s*(?=\()|(?=\{))").match(text, at)
    if begun is None:
        return text.find(";", at) + 1 or len(text)
    end = closing(text, begun.end()) + 1
    if end == 0 or text[begun.end()] == "{":
        return end or len(text)
    return statement_end(text, end)


def indices(body: str, array: str) -> Iterator[str]:
    """What stands between the brackets behind the array's name."""
    for match in re.finditer(rf"(?<![\w.]){array}\s*\[", body):
        if (end := closing(body, match.end() - 1)) > 0:
            yield body[match.end() : end]


def without_pointers(body: str, arrays: Sequence[str]) -> str:
    """`body` without casts, and with arrays for pointers that are made from them or moved along."""
    body = _by_functions(CAST.sub("", body))
    for array in arrays:
        body = _in_numbers(re.sub(rf"(?<![\w.]){array}\s*->", f"{array}[0].", body), array)
        read = (
            rf"(?:\b(?:__ld\w+|atomic\w+|__builtin_nontemporal_load)\s*|\*\s*)\(\s*({array}\s*\+)"
        )
        for one in reversed(list(re.finditer(read, body))):
            end = closing(body, body.find("(", one.start()))
            told = split(body[one.end() : end])[0] if end > one.end() else ""
            at = one.end() + body[one.end() : end].find(told)
            if told:
                body = f"{body[: one.start(1)]}&{array}[{told}]{body[at + len(told) :]}"
        body = re.sub(rf"\*\s*{array}\b(?!\s*[\[+])", f" {array}[0]", body)
        for moved in reversed(list(re.finditer(rf"(?<![\w.]){array}\s*\+=\s*([^;]+);", body))):
            rest = body[moved.end() :]
            rest = re.sub(rf"(?<![\w.]){array}\s*\[", f"{array}[({moved[1]}) + ", rest)
            body = body[: moved.start()] + ";" + rest
    known = "|".join(map(re.escape, arrays))
    body = _either(body, known)
    qualifiers = r"(?:const|__restrict__|restrict)?\s*"
    made = re.compile(
        rf"(?<![\w:<>])[\w:<>]+\s*\*\s*{qualifiers}(\w+)\s*=\s*(?:&\s*)?"
        rf"(?:reinterpret_cast<[^<>]*>\s*\(\s*)?({known})\s*(\[|\+)?([^;]*);"
    )
    for _ in range(_POINTERS * len(arrays)):
        match = made.search(body)
        if match is None:
            break
        alias, array, kind, offset = match.groups()
        offset = offset.strip().removesuffix("]") if kind == "[" else offset.strip() or "0"
        rest = body[match.end() :]
        rest = re.sub(rf"(?<![\w.]){alias}\s*\[", f"{array}[({offset}) + ", rest)
        rest = re.sub(rf"\*\s*{alias}\b(?!\s*[\[+])", f" {array}[{offset}]", rest)
        rest = re.sub(rf"(?<![\w.]){alias}\b(?!\s*[\[(])", f"{array} + ({offset})", rest)
        body = body[: match.start()] + ";" + rest
    return body


def _by_functions(body: str) -> str:
    """Elements for what functions load and store: `__stcs(y + i, v)` is `y[i] = v`."""
    for call in reversed(list(_ACCESS.finditer(body))):
        end = closing(body, call.end() - 1)
        given = split(body[call.end() : end]) if end > 0 else []
        place = (
            re.fullmatch(r"&?\s*(\w+)\s*(?:\+\s*(.+)|\[(.+)\])?", given[0], re.S) if given else None
        )
        if place is not None:
            told = f"{place[1]}[{place[2] or place[3] or '0'}]" + "".join(
                f" = {v}" for v in given[1:2]
            )
            body = f"{body[: call.start()]}{told}{body[end + 1 :]}"
    return body


def _either(body: str, known: str) -> str:
    """`body` with both arrays in place of a pointer to one or the other: `p = c ? x + i : y + j`."""
    side = rf"(?:&\s*)?({known})\s*(?:[\[+]([^;:?]*))?"
    made = re.compile(
        rf"(?<![\w:<>])[\w:<>]+\s*\*\s*(?:const\s+)?(\w+)\s*=([^;:?]*)\?\s*{side}:\s*{side};"
    )
    while match := made.search(body):
        alias, chosen, one, at, other, there = (part or "0" for part in match.groups())
        rest = body[match.end() :]
        for use in reversed(list(re.finditer(rf"(?<![\w.]){alias}\s*\[", rest))):
            end = closing(rest, use.end() - 1)
            index, behind = rest[use.end() : end], rest[end + 1 :]
            both = [f"{name}[({to.rstrip().removesuffix(']')}) + {index}]"
                    for name, to in ((one, at), (other, there))]  # fmt: skip
            sign = " = " if re.match(r"\s*=(?!=)", behind) else " + "
            rest = f"{rest[: use.start()]}{sign.join(both)}{behind}"
        body = f"{body[: match.start()]};({chosen});{rest}"
    return body


def flat(body: str, declared: str) -> str:
    """`body` with one index for each array that is `declared` with inner extents: `x[][n]`."""
    inner = r"((?:\s*\[[^\[\]]+\])+)"
    for name, told in [
        *re.findall(rf"\b(\w+)\s*\[[^\[\]]*\]{inner}\s*[,)]", declared),
        *re.findall(rf"\(\s*\*\s*(?:__restrict__\s+)?(\w+)\s*\){inner}\s*[,)]", declared),
    ]:
        extents = re.findall(r"\[([^\[\]]+)\]", told)
        for at in reversed([one.start() for one in re.finditer(rf"(?<![\w.]){name}\s*\[", body)]):
            opened, parts = body.find("[", at), list[str]()
            while len(parts) <= len(extents) and opened >= 0 and (end := closing(body, opened)) > 0:
                parts.append(body[opened + 1 : end])
                behind = re.compile(r"\s*\[").match(body, end + 1)
                opened = behind.end() - 1 if behind else -1
            if len(parts) == len(extents) + 1:
                index = f"({parts[0]})"
                for extent, part in zip(extents, parts[1:], strict=True):
                    index = f"({index} * ({extent}) + ({part}))"
                body = f"{body[:at]}{name}[{index}]{body[end + 1 :]}"
    return body


def _in_numbers(body: str, array: str) -> str:
    """`body` with the last number that is reached for each vector of an array that is cast to them."""
    kind = r"(?:const\s+)?(\w+)\s*(?:const\s*)?\*\s*(?:const\s*)?"
    made = rf"\(\s*\(\s*{kind}\)\s*{array}\s*\)|reinterpret_cast\s*<\s*{kind}>\s*\(\s*{array}\s*\)"
    cast = rf"(?:{made})\s*\["
    for one in reversed(list(re.finditer(cast, body))):
        end, count = closing(body, one.end() - 1), lanes(one[1] or one[2])
        if end > 0:
            index = body[one.end() : end]
            told = f"{count} * ({index}) + {count - 1}" if count > 1 else index
            body = f"{body[: one.start()]}{array}[{told}]{body[end + 1 :]}"
    return body
