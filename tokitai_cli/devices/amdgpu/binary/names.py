"""Names of kernels: C++ symbols as their sources spell them, and their parts."""

from __future__ import annotations

import contextlib
import functools
import re
from typing import Any

ANONYMOUS = "(anonymous namespace)"
MAX_NAME = 4096


def demangled(name: str) -> str:
    """A C++ symbol as its source spells it; what cannot be read stays as it is."""
    return _read(name)[0]


def parameter_types(name: str) -> tuple[str, ...]:
    """Types of a function's parameters as its symbol tells them; none where it does not."""
    return _read(name)[1]


@functools.lru_cache(maxsize=4096)
def _read(name: str) -> tuple[str, tuple[str, ...]]:
    """What a symbol spells, and its parameters' types."""
    if not name.startswith("_Z") or len(name) > MAX_NAME:
        return name, ()
    import itanium_demangler

    with contextlib.suppress(Exception):  # of another's parser, on another's names
        found = itanium_demangler.parse(name)
        if found is not None:
            types = tuple(_spelled(one) for one in getattr(found, "arg_tys", ()))
            return _spelled(found), types if types != ("void",) else ()
    return name, ()


def _spelled(part: Any) -> str:
    text = re.sub(r"\b_GLOBAL__N_\w*", ANONYMOUS, str(part))
    text = re.sub(r"\(bool\)([01])", lambda m: ("false", "true")[int(m[1])], text)
    return re.sub(r"\((?:unsigned )?(?:int|long|short|char)\)(?=-?\d)", "", text)


def plain(name: str) -> str:
    """A name without spaces beside marks, and numbers without the letters of their types."""
    name = re.sub(r"\s*([^\w\s])\s*", r"\1", name.strip())
    return re.sub(r"\b(\d+)[uUlL]+\b", r"\1", name)


def title(name: str) -> str:
    """A function's symbol as its name with its template arguments."""
    return parts(demangled(name))[0]


def parts(text: str) -> tuple[str, str]:
    """Of a demangled name: the function with its template arguments, and its parameters' types."""
    hollow = text.replace(ANONYMOUS, "_" * len(ANONYMOUS))
    start = depth = 0
    for at, mark in enumerate(hollow):
        depth += {"<": 1, ">": -1}.get(mark, 0)
        if depth == 0 and mark == " ":
            start = at + 1
        elif depth == 0 and mark == "(":
            return text[start:at], text[at + 1 : text.rindex(")")] if ")" in text[at:] else ""
    return text[start:], ""
