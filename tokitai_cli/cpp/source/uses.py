"""What a kernel does with an array or a variable, as its text has it: inputs, outputs or inout."""

from __future__ import annotations

import re

from tokitai_cli.cpp.source.signatures import Parameter
from tokitai_cli.cpp.source.variables import Variable

_CHANGED = re.compile(r"\s*(?:(?:[-+*/%&|^]|<<|>>)=|\+\+|--|\.\w+\s*[-+*/]?=(?!=))")


def role_of(parameter: Parameter, body: str) -> str:
    """How a kernel uses an array by its name: what it writes and never reads is an output."""
    if parameter.const:
        return "inputs"
    written = read = False
    for match in re.finditer(rf"(?<![\w.]){parameter.name}(?!\w)", body):
        before = body[max(0, match.start() - 40) : match.start()].rstrip()
        behind = _behind_index(body, match.end())
        if behind is None and _is_null_test(before, body[match.end() : match.end() + 40]):
            continue
        if behind is None:  # it is handed on, or moved along
            written = read = True
        elif re.match(r"\s*(?:=(?!=))", behind) and not before.endswith(("&", "++", "--")):
            written = True
        elif before.endswith("&") or _CHANGED.match(behind):
            written = read = True
        else:
            read = True
    if written:
        return "inout" if read else "outputs"
    return "inputs"


def reads_back(parameter: Parameter, body: str) -> bool:
    """Whether a kernel assigns elements of the array, and reads some further down in its text."""
    stored = False
    for match in re.finditer(rf"(?<![\w.]){parameter.name}(?!\w)", body):
        behind = _behind_index(body, match.end())
        if behind is None:
            continue
        if re.match(r"\s*=(?!=)", behind):
            stored = True
        elif stored and not _CHANGED.match(behind):
            return True
    return False


def _is_null_test(before: str, behind: str) -> bool:
    """Whether a pointer between these texts is only asked whether it is there."""
    compared = re.match(r"\s*[!=]=\s*(?:nullptr|NULL|0)\b", behind)
    asked = re.search(r"\bif\s*\($|&&$|\|\|$|!$", before) and re.match(r"\s*(?:\)|&&|\|\|)", behind)
    return bool(compared or asked or re.search(r"\b(?:nullptr|NULL)\s*[!=]=$", before)) or bool(
        re.match(r"\s*\?", behind)
    )


def _behind_index(body: str, at: int) -> str | None:
    """Text behind `[...]` at `at`, all of them; None where there is no index."""
    found = None
    while (opened := re.compile(r"\s*\[").match(body, at)) is not None:
        depth = 0
        for mark in re.compile(r"[\[\]]").finditer(body, opened.end() - 1):
            depth += 1 if mark.group() == "[" else -1
            if depth == 0:
                break
        else:
            return None
        at = mark.end()
        found = body[at : at + 40]
    return found


def variable_role(variable: Variable, text: str) -> str:
    """symbols, outputs or inout, by how a kernel's text uses a variable; empty where it does not."""
    place = re.escape(variable.element.name)
    if not re.search(rf"(?<![\w.]){place}\b", text):
        return ""
    if variable.constant:
        return "symbols"
    if variable.extents:
        role = role_of(variable.element, text)
        return "symbols" if role == "inputs" else role
    changed = rf"(?<![\w.]){place}\s*(?:=(?!=)|(?:[-+*/%&|^]|<<|>>)=|\+\+|--)"
    if re.search(rf"{changed}|(?:\+\+|--|&)\s*{place}\b", text):
        assigned = re.search(rf"(?<![\w.]){place}\s*=(?!=)", text)
        uses = re.findall(rf"(?<![\w.]){place}\b", text)
        return "outputs" if assigned and len(uses) == 1 else "inout"
    return "symbols"
