"""Expressions and names inside a spec, each fault located."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tokitai_cli.core import expressions, resources
from tokitai_cli.core.errors import SpecError, near
from tokitai_cli.spec.reader.document import Document, KeyPath

_BUILTIN_ORACLE = re.compile(r"[a-z][a-z0-9]*(?:[-_.][a-z0-9]+)*")
_FILE_ORACLE = re.compile(r"(?P<file>.+\.py):(?P<function>[A-Za-z_][A-Za-z0-9_]*)")


def check_expression(
    document: Document, path: KeyPath, text: str | int, names: Collection[str]
) -> None:
    """Raise SpecError where `text` is not an integer expression over `names`."""
    try:
        if isinstance(text, str) and expressions.is_comparison(text):
            raise SpecError(f"`{text}` is a comparison where a number is expected")
        if isinstance(text, int):
            expressions.evaluate(text, {})
    except SpecError as error:
        hint = error.hint
        if isinstance(text, str) and text.count("(") > text.count(")"):
            # YAML ends an unquoted entry of [a, b] at the comma, also inside parentheses.
            hint = 'put an expression that holds a comma in quotes: ["ceil_div(n, 64)"]'
        raise document.fault(path, error.message, hint) from None
    _check_names(document, path, text, names)


def check_real(document: Document, path: KeyPath, text: str, names: Collection[str]) -> None:
    """Raise SpecError where `text` is no real expression over `names`."""
    try:
        if expressions.is_comparison(text, real=True):
            raise SpecError(f"`{text}` is a comparison where a number is expected")
    except SpecError as error:
        raise document.fault(path, error.message, error.hint) from None
    _check_names(document, path, text, names, real=True)


def check_comparison(
    document: Document, path: KeyPath, text: str, names: Collection[str], *, real: bool = False
) -> None:
    """Raise SpecError where `text` is not a comparison over `names`."""
    try:
        if not expressions.is_comparison(text, real=real):
            hint = f"compare it, such as {text} == 0"
            raise SpecError(f"`{text}` is not a comparison", hint=hint)
    except SpecError as error:
        raise document.fault(path, error.message, error.hint) from None
    _check_names(document, path, text, names, real=real)


def _check_names(
    document: Document,
    path: KeyPath,
    text: str | int,
    names: Collection[str],
    *,
    real: bool = False,
) -> None:
    for name in expressions.names_in(text, real=real):
        if name not in names:
            raise document.fault(path, f"unknown name `{name}` in `{text}`", near(name, names))


def check_known(
    document: Document, path: KeyPath, name: str, known: Iterable[str], what: str
) -> None:
    """Raise SpecError where `name` is none of the known names of a `what`."""
    names = list(known)
    if name not in names:
        raise document.fault(path, f"unknown {what} `{name}`", near(name, names))


def check_all_known(
    document: Document, path: KeyPath, names: Iterable[str], known: Mapping[str, Any], what: str
) -> None:
    """`check_known` for each entry of a list; one that is there and empty would mean all of them."""
    names = list(names)
    if not names and document.given(path):
        raise document.fault(path, "an empty list", "name some, or omit the key for all")
    for index, name in enumerate(names):
        check_known(document, (*path, index), name, known, what)


def check_function(document: Document, path: KeyPath, name: str) -> None:
    """Raise SpecError where an oracle is no built-in name and no `file.py:function` that is there."""
    match = _FILE_ORACLE.fullmatch(name)
    if match is None:
        if _BUILTIN_ORACLE.fullmatch(name) and not name.endswith(".py"):
            return
        hint = "write a built-in name such as gemm-bw.grad-a, or file.py:function next to the spec"
        raise document.fault(path, f"`{name}` names no function", hint)
    file = document.file.parent / match["file"]
    if not resources.is_file(file):
        hint = "the path is relative to the spec's folder"
        raise document.fault(path, f"no such file: {file}", hint)
