"""Macros by name, and text taken apart at commas."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?P<word>\w*)(?P<rest>(?:\\\r?\n|[^\n])*)", re.MULTILINE)
DEFINE = re.compile(r"[ \t]*(?P<name>\w+)(?P<parameters>\([^)]*\))?(?P<body>.*)", re.DOTALL)
_SPLITS = re.compile(r"<<|>>|[-=]>|[()<>\[\]{},]")


class Macro(msgspec.Struct, frozen=True):
    """All definitions of a macro, and what it takes as arguments, if anything."""

    called: bool
    bodies: tuple[str, ...]
    parameters: tuple[str, ...] = ()


def split(text: str) -> list[str]:
    """Parts of a list of arguments, split at its own commas; `<<` and `>>` may be shifts."""
    found, depth, angles, at = [], 0, 0, 0
    for match in _SPLITS.finditer(text):
        mark = match.group()
        if mark == "," and depth + angles == 0:
            found.append(text[at : match.start()].strip())
            at = match.end()
        elif mark == ">>":
            angles = angles - 2 if angles > 1 else angles
        elif mark in "<>":
            angles += 1 if mark == "<" else -1
        elif mark not in {"<<", "->", "=>"}:
            depth += (mark in "([{") - (mark in ")]}")
    return [*found, text[at:].strip()] if text.strip() else []


def macros_of(texts: Iterable[str]) -> dict[str, Macro]:
    """Macros that the texts define, by name."""
    found: dict[str, list[tuple[str, bool]]] = {}
    parameters: dict[str, tuple[str, ...]] = {}
    for text in texts:
        for line in DIRECTIVE.finditer(text):
            match = DEFINE.match(line["rest"]) if line["word"] == "define" else None
            if match is not None:
                body = re.sub(r"\\\r?\n", "  ", match["body"])
                found.setdefault(match["name"], []).append((body, match["parameters"] is not None))
                parameters[match["name"]] = tuple(re.findall(r"[\w.]+", match["parameters"] or ""))
    return {
        name: Macro(
            any(called for _, called in bodies),
            tuple(body for body, _ in bodies),
            parameters[name],
        )
        for name, bodies in found.items()
    }
