"""Numbers of the host in the language of sizes, as far as they can be said there."""

from __future__ import annotations

from collections.abc import Mapping

from tokitai_cli.core import expressions
from tokitai_cli.core.errors import SpecError
from tokitai_cli.cpp.body.polynomial import Polynomial, constant
from tokitai_cli.cpp.elements import sized
from tokitai_cli.cpp.host.runtime import WARP
from tokitai_cli.cpp.size_words import in_sizes

_SIZEOF = "sizeof("


def said(number: Polynomial, words: Mapping[str, str]) -> str:
    """A number of the host's as an expression of the sizes; empty where it is none.

    words: the spec's for names of the host's.
    """
    warps = {name: WARP for name in number.names() if _is_warp(name)}
    text = in_sizes(number, warps | dict(words))
    try:
        return text if text and expressions.names_in(text) is not None else ""
    except SpecError:
        return ""


def _is_warp(name: str) -> bool:
    """`warpSize`, `properties.warpSize`."""
    last = name.replace("->", ".").rpartition(".")[2]
    return last.replace("_", "").lower() == "warpsize"


def bytes_of(kind: str, meaning: Mapping[str, str]) -> str:
    """Bytes of a type; its name where they are not known. meaning: what names stand for."""
    kind = meaning.get(kind, kind)
    return str(sized(kind) or kind)


def sizes_of_types(number: Polynomial, meaning: Mapping[str, str]) -> dict[str, Polynomial]:
    """Bytes of the types that a number asks for (`sizeof(T)`), by how it says that."""
    asked = {name: name.removeprefix(_SIZEOF).removesuffix(")") for name in number.names()
             if name.startswith(_SIZEOF)}  # fmt: skip
    told = {name: bytes_of(kind.strip(), meaning) for name, kind in asked.items()}
    return {name: constant(int(size)) for name, size in told.items() if size.isdigit()}
