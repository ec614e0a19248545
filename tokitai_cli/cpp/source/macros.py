"""Macros with arguments, put in where a text calls them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tokitai_cli.cpp.source.macro_text import Macro, split

_SHORT, _LONGEST = 300, 1 << 16  # letters of a macro, and of a body with macros put in
_NESTED = 3  # macros within each other


def spread(body: str, macros: Mapping[str, Macro]) -> str:
    """`body` with expressions for the macros with arguments that stand for one."""
    short = {
        name: macro.bodies[0].strip()
        for name, macro in macros.items()
        if macro.parameters and len(set(macro.bodies)) == 1 and len(macro.bodies[0]) < _SHORT
        and not re.search(r"[;{}#]", macro.bodies[0])
    }  # fmt: skip
    plain = body
    for _ in range(_NESTED):
        for call in reversed(list(re.finditer(r"\b([A-Za-z_]\w*)\s*\(", body))):
            end = closing(body, call.end() - 1) if call[1] in short else -1
            given = split(body[call.end() : end]) if end > 0 else []
            named = dict(zip(macros[call[1]].parameters, given, strict=False)) if given else {}
            if len(body) > _LONGEST:
                return plain
            if given and len(named) == len(given):
                told = re.sub(r"\w+", lambda m, n=named: n.get(m[0], m[0]), short[call[1]])  # type: ignore[misc]
                body = f"{body[: call.start()]}({told}){body[end + 1 :]}"
    return re.sub(r"(?<![\w\])>])\(\s*([A-Za-z_]\w*)\s*\)(?=\s*(?:\[|\.|->))", r"\1", body)


def closing(text: str, opened: int) -> int:
    """Where the bracket that opens there closes; -1 where it does not."""
    depth = 0
    for at in range(opened, len(text)):
        depth += text[at] in "([{"
        depth -= text[at] in ")]}"
        if depth == 0:
            return at
    return -1
