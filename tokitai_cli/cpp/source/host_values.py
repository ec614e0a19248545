"""Numbers that a host passes to a kernel, where its text has them as literals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tokitai_cli.cpp.source.launches import HostLaunch
from tokitai_cli.cpp.source.macro_text import split
from tokitai_cli.cpp.source.signatures import Kernel
from tokitai_cli.cpp.whole import Program

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[fFuUlL]*"


def value_of(
    program: Program, kernel: Kernel, launch: HostLaunch | None, place: str
) -> float | None:
    """The number that a parameter, or a field of one (`a.lr`), begins with; None where it is not seen.

    An assignment goes before an initial value, and that before what the struct's own declaration has.
    """
    name, _, field = place.partition(".")
    names = [one.name for one in kernel.parameters]
    args = launch.args if launch is not None and len(launch.args) == len(names) else ()
    given = dict(zip(names, args, strict=False)).get(name, name).strip().lstrip("&*")
    texts = [one.plain for one in program.texts.values()]
    kind = next((one.type for one in kernel.parameters if one.name == name), "")
    for told in _numbers(texts, given, field, kind):
        if re.fullmatch(_NUMBER, told.strip()):
            return float(told.strip().rstrip("fFuUlL"))
    return None


def _numbers(texts: Sequence[str], given: str, field: str, kind: str) -> Iterator[str]:
    """What may be the number, the likeliest first."""
    yield given if not field else ""
    if not re.fullmatch(r"[A-Za-z_][\w.]*", given):
        return
    own = re.escape(given)
    for text in texts:
        if not field:
            yield from re.findall(rf"\b{own}\s*(?:=|\{{)\s*({_NUMBER})\s*[;,)}}]", text)
            continue
        yield from re.findall(rf"\b{own}(?:\.|->){re.escape(field)}\s*=\s*({_NUMBER})\s*;", text)
        for listed in re.findall(rf"\b{own}\s*=?\s*\{{([^{{}}]*)\}}", text):
            told = re.search(rf"\.{re.escape(field)}\s*=\s*({_NUMBER})", listed)
            yield told[1] if told else ""
            fields = _fields(texts, kind)
            if field in fields and "." + field not in listed:
                yield (split(listed) + [""] * len(fields))[fields.index(field)]
    body = _body(texts, kind) if field else ""
    yield from (
        re.findall(rf"\b{re.escape(field)}\s*(?:=|\{{)\s*({_NUMBER})\s*[;,}}]", body)
        if field
        else ()
    )


def _body(texts: Sequence[str], kind: str) -> str:
    made = (re.search(rf"\bstruct\s+{re.escape(kind)}\s*\{{([^{{}}]*)\}}", text) for text in texts)
    return next((one[1] for one in made if one), "")


def _fields(texts: Sequence[str], kind: str) -> list[str]:
    """Names of the struct's fields, in their order."""
    names = (split(line) for line in _body(texts, kind).split(";"))
    last = (re.findall(r"(\w+)\s*(?:=.*)?$", one.strip()) for line in names for one in line)
    return [one[0] for one in last if one]
