"""The host's C++ in the language of sizes, as far as it can be said there."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from tokitai_cli.core import expressions
from tokitai_cli.core.errors import SpecError
from tokitai_cli.cpp.elements import sized
from tokitai_cli.cpp.indices.blocks import WARP


def in_sizes(
    text: str, given: Mapping[str, str], sizes: Collection[str], constants: Mapping[str, str]
) -> str:
    """The host's C++ as an expression of the sizes; empty where it is none.

    given: the spec's names of what the host calls otherwise, arguments of the launch among them.
    constants: what names of the source stand for.
    """
    for host, one in given.items():  # fields of a struct
        text = re.sub(rf"(?<![\w.]){re.escape(host)}\s*(?:\.|->)\s*(?=\w)", f"{one}_", text)
    names = {host: one for host, one in given.items() if one in sizes or one.isdigit()}
    text = re.sub(r"\bsizeof\s*\(([^()]*)\)", lambda m: bytes_of(m[1].strip(), constants), text)
    text = re.sub(r"(?<![\w.])[A-Za-z_]\w*", lambda m: names.get(m[0], m[0]), _plain(text))
    try:
        known = text and set(expressions.names_in(text)) <= {*sizes, WARP}
        if known and not expressions.is_comparison(text):
            return text
    except SpecError:
        pass
    return ""


def bytes_of(name: str, constants: Mapping[str, str]) -> str:
    """Bytes of a type that the host names; the name itself where they are not known."""
    name = constants.get(name, name)
    return str(sized(name) or name)


def _plain(text: str) -> str:
    text = re.sub(r"\bstd\s*::\s*|\b(?:dim3|unsigned|size_t|int)(?=\s*\()", "", text)
    text = re.sub(r"\b(min|max)\s*<[^<>]*>\s*\(", r"\1(", text)
    text = re.sub(r"\b(?:[A-Za-z_]\w*\s*(?:\.|->)\s*)?[wW]arp_?[sS]ize\b", WARP, text)
    text = re.sub(r"\b(\d+)\.0*[fF]?(?![\w.])", r"\1", text)
    text = re.sub(r"\(\s*(?:float|double)\s*\)|\b(?:float|double)(?=\s*\()|\b1\s*\*\s*", "", text)
    part = r"((?:[\w\s*+-]|\([\w\s*+-]*\))+)"
    text = re.sub(
        rf"\bceilf?\s*\(\s*\(?{part}/{part}\)?\s*\)",
        lambda m: f"ceil_div({m[1].strip()}, {m[2].strip()})", text,
    )  # fmt: skip
    text = re.sub(r"<<\s*(\d+)\b", lambda m: f"* {2 ** min(31, int(m[1]))}", text)
    text = re.sub(r">>\s*(\d+)\b", lambda m: f"// {2 ** min(31, int(m[1]))}", text)
    side = r"\(?\s*([\w\s*+%-]+?)\s*\)?"
    text = re.sub(rf"\({side}\s*([<>])=?\s*{side}\s*\)?\s*\?\s*{side}:{side}\)", _smaller, text)
    text = re.sub(rf"\({side}(?:(?:!=|>)\s*0\s*)?\)?\s*\?\s*1\s*:\s*0\s*\)", r"min(1, \1)", text)
    return re.sub(r"(?<!/)/(?!/)", "//", text)


def _smaller(choice: re.Match[str]) -> str:
    """min or max for a choice between what was compared; the choice itself where it is another."""
    one, sign, other, then, rest = (" ".join(told.split()) for told in choice.groups())
    if {one, other} != {then, rest}:
        return choice[0]
    return f"{'min' if (sign == '<') == (one == then) else 'max'}({one}, {other})"
