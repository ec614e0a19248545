"""Kernels as a spec names them: a name, template arguments, and the types of parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokitai_cli.cpp.lexing import KERNEL_NAME, words_of

if TYPE_CHECKING:
    from tokitai_cli.cpp.tree import Name

_CLOSING = {"<": ">", "(": ")", "[": "]"}


def is_kernel_name(name: str) -> bool:
    """Whether `name` may be a kernel's: a name, or an instantiation such as `space::k<-1, float*>`.

    Behind either may stand the types of its parameters, as `k(float*, int)`. Brackets are balanced, and
    nothing in it can end the expression that it stands in. What the words mean is left to the compiler.
    """
    match = KERNEL_NAME.fullmatch(name)
    return match is not None and all(map(_is_balanced, (match["arguments"], match["types"])))


def overload(name: str) -> tuple[str, str]:
    """A kernel's name and the types of its parameters, empty where they are not said."""
    match = KERNEL_NAME.fullmatch(name)
    return (match["name"], match["types"]) if match and match["types"] else (name, "")


def last_name(name: str) -> str:
    """A kernel's name without namespaces, template arguments and types of parameters."""
    match = KERNEL_NAME.fullmatch(name)
    return match["last"] if match else name


def instance(name: str) -> Name:
    """A kernel's name in parts, its template arguments among them."""
    from tokitai_cli.cpp.tree import parsed_name  # a parser, which a warm run does without

    return parsed_name(overload(name)[0])


def _is_balanced(text: str | None) -> bool:
    words = words_of(text or "")
    expected: list[str] = []  # the brackets that are to close, the innermost last
    for mark in words or ():
        if mark in "<>" and expected and expected[-1] != ">":
            continue  # within ( ) and [ ] they compare and shift
        if mark in _CLOSING:
            expected.append(_CLOSING[mark])
        elif mark in _CLOSING.values() and (not expected or expected.pop() != mark):
            return False
    return words is not None and not expected
