"""Memory of a source as its text tells it: dynamic shared arrays, shared classes, constants."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tokitai_cli.cpp.lexing import blank

# `extern __shared__ T name[];`, with attributes and in any order, and HIP's macro for it.
_TOKEN = re.compile(
    r"\bnamespace\b(?P<space>[\s\w:]*)\{|(?P<open>\{)|(?P<close>\})"
    r"|(?:\bextern\b(?=[^;{}]*\b__shared__\b)|\b__shared__\b(?=[^;{}]*\bextern\b))"
    r"[^;{}]*?\b(?P<name>[A-Za-z_]\w*)\s*\[\s*\]\s*;"
    r"|\bHIP_DYNAMIC_SHARED\s*\([^;]*,\s*(?P<macro>[A-Za-z_]\w*)\s*\)"
)

# What is shared and not declared with a type of C alone.
_OF_CLASS = re.compile(
    r"(?<!extern )\b__shared__\s+"
    r"(?!extern\b)(?!(?:\s|\b(?:const|volatile|static|extern|unsigned|signed)\b|\b__align__\(\w+\))*"
    r"\b(?:bool|char|short|int|unsigned|long|float|double|size_t|u?int(?:8|16|32|64)_t)\b)"
)

_UNNAMED = "_GLOBAL__N_1"  # a namespace without a name


# A declarator behind `__constant__`: what stands in front of an extent, an initial value or the end.
_CONSTANT = re.compile(r"\b__constant__\b([^;={}()]*?)\b([A-Za-z_]\w*)\s*(?=[\[;={])")


def constant_names(texts: Iterable[str]) -> list[str]:
    """Names of the `__constant__` variables of a source's texts, sorted; of a declaration the first."""
    found = (_CONSTANT.finditer(blank(text)) for text in texts if "__constant__" in text)
    return sorted({one[2] for matches in found for one in matches})


def shares_classes(texts: Iterable[str]) -> bool:
    """Whether shared memory of a source may hold classes (structs, __half, template parameters)."""
    return any("__shared__" in text and _OF_CLASS.search(blank(text)) for text in texts)


def dynamic_shared_names(texts: Iterable[str]) -> list[str]:
    """Linker names of all `extern __shared__` arrays of the texts of a source and its headers, sorted.

    Mangled as the Itanium C++ ABI does for variables: the plain name in the global namespace, else
    _ZN <length name>... E (section 5.1.2); compilers name a namespace without a name _GLOBAL__N_1.
    """
    found: set[str] = set()
    for text in texts:
        if "__shared__" in text or "HIP_DYNAMIC_SHARED" in text:
            found |= _names_in(blank(text))
    return sorted(found)


def _names_in(plain: str) -> set[str]:
    found: set[str] = set()
    scopes: list[list[str]] = []
    for token in _TOKEN.finditer(plain):
        if token["open"] is not None:
            scopes.append([])
        elif token["close"] is not None:
            if scopes:
                scopes.pop()
        elif token["space"] is not None:
            words = token["space"].replace("inline", " ").split("::")
            scopes.append([word.strip() for word in words if word.strip()] or [_UNNAMED])
        else:
            found.add(
                _mangled(
                    [word for scope in scopes for word in scope], token["name"] or token["macro"]
                )
            )
    return found


def _mangled(spaces: list[str], name: str) -> str:
    if not spaces:
        return name
    return "_ZN" + "".join(f"{len(word)}{word}" for word in [*spaces, name]) + "E"
