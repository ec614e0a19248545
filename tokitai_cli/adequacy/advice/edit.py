"""Lines for a spec, and a spec's text with them: every byte that they do not touch stays.

Places are those that PyYAML's marks tell of the parsed text, so that nothing is written anew.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import yaml

from tokitai_cli.spec import dotted

Path = tuple[str | int, ...]

_SPECIAL = re.compile(r"[,:#{}\[\]*&!%|>'\"`@?-]")
_MERGE = "<<"
_NULL = "tag:yaml.org,2002:null"


class Edit(msgspec.Struct, frozen=True):
    """`value` at `path`: appended to the list there (made where it is not there), or as the key's value.

    instead: the key has a value already, which goes.
    """

    path: Path
    value: Any
    appended: bool = False
    instead: bool = False

    @property
    def line(self) -> str:
        """Where it belongs, and the line as YAML."""
        where = dotted(self.path if self.appended else self.path[:-1])
        verb = "write" if self.instead else "add"
        key = "-" if self.appended else f"{self.path[-1]}:"
        return f"{verb} at {where}: {key} {_flow(self.value)}"


class Advice(msgspec.Struct, frozen=True):
    """What cannot be told now, and the edits that mend it."""

    text: str
    edits: tuple[Edit, ...] = ()
    #: A key of the spec that may go; none is ever taken away by `apply`.
    needless: str = ""

    @property
    def lines(self) -> list[str]:
        """The lines to add, each with its place."""
        return [one.line for one in self.edits]


class _Dumper(yaml.SafeDumper):
    """YAML on one line, with quotes around text that has a meaning in YAML somewhere."""

    def ignore_aliases(self, data: Any) -> bool:
        """Every value is written out."""
        return True


def _text_node(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _SPECIAL.search(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text_node)


def _flow(value: Any) -> str:
    """YAML on one line."""
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=True,
        sort_keys=False,
        allow_unicode=True,
        width=float("inf"),
    )
    return text.removesuffix("\n").removesuffix("\n...")


def edited(text: str, edits: Sequence[Edit]) -> str:
    """The text of a spec with the edits. Raises LookupError, TypeError and ValueError for a place that
    cannot be edited.
    """
    for one in edits:
        text = _with(text, one)
    return text


def _with(text: str, edit: Edit) -> str:
    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    for at, step in enumerate(edit.path):
        rest = edit.path[at + 1 :]
        inner = _child(node, step)
        if inner is None:
            return _with_key(text, node, edit.path[at:], edit)
        if not node.start_mark.index <= inner.start_mark.index <= _end(node):
            raise ValueError(f"{dotted(edit.path[: at + 1])} is an alias")
        if inner.tag == _NULL and (rest or edit.appended):
            return _replaced(text, inner, _flow(_nested(rest, edit)))
        node = inner
    return _with_item(text, node, edit.value) if edit.appended else _replaced(
        text, node, _flow(edit.value)
    )  # fmt: skip


def _nested(rest: Path, edit: Edit) -> Any:
    """The value of a key that is not there: with the further steps to the edit's place."""
    made = [edit.value] if edit.appended else edit.value
    for step in reversed(rest):
        if not isinstance(step, str):
            raise LookupError(f"{dotted(edit.path)} is not there")
        made = {step: made}
    return made


def _child(node: Any, step: str | int) -> Any:
    """The node at a step, None where a mapping has no such key."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        return node.value[step]
    if not isinstance(node, yaml.MappingNode) or not isinstance(step, str):
        raise TypeError(f"there is no {step} in a value that is not a collection")
    found = next((value for key, value in node.value if key.value == step), None)
    if found is None and any(key.value == _MERGE for key, _ in node.value):
        raise ValueError(f"{step} may come from a merge key")
    return found


def _end(node: Any) -> int:
    """Where the text of a node ends: the marks of blocks are those of what comes behind them."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def _replaced(text: str, node: Any, value: str) -> str:
    start, end = node.start_mark.index, _end(node)
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        end = start + len(text[start:end].rstrip())
    space = "" if start and text[start - 1].isspace() else " "
    return text[:start] + space * (start == end or not start) + value + text[end:]


def _with_key(text: str, node: Any, steps: Path, edit: Edit) -> str:
    """A mapping with the first of the steps as a key, and the others within it."""
    if node.flow_style:
        made = {steps[0]: _nested(steps[1:], edit)}
        return _in_flow(text, node, _flow(made)[1:-1])
    indent = " " * node.value[0][0].start_mark.column
    return _behind(text, node, [indent + one for one in _block(steps, edit)])


def _block(steps: Path, edit: Edit) -> list[str]:
    """Lines of a key, with what it leads to."""
    if len(steps) > 1:
        return [f"{steps[0]}:", *(f"  {one}" for one in _block(steps[1:], edit))]
    if edit.appended:
        return [f"{steps[0]}:", f"  - {_flow(edit.value)}"]
    return [f"{_flow(steps[0])}: {_flow(edit.value)}"]


def _with_item(text: str, node: Any, value: Any) -> str:
    if not isinstance(node, yaml.SequenceNode):
        raise TypeError("no list to which a line could be added")
    if node.flow_style:
        return _in_flow(text, node, _flow([value])[1:-1])
    start = node.start_mark
    behind = text[start.index + 1 : node.value[0].start_mark.index]
    gap = behind if behind and not behind.strip(" ") else " "
    return _behind(text, node, [f"{' ' * start.column}-{gap}{_flow(value)}"])


def _in_flow(text: str, node: Any, words: str) -> str:
    """Behind the last value between braces or brackets, or as their first."""
    if not node.value:
        at = node.start_mark.index + 1
        return text[:at] + words + text[at:]
    at = _end(node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1])
    return f"{text[:at]}, {words}{text[at:]}"


def _behind(text: str, node: Any, lines: Sequence[str]) -> str:
    """Lines behind the last line of a block, with the ends that the lines of the text have."""
    end = _end(node)
    while end > node.start_mark.index and text[end - 1] in "\r\n":  # a block scalar is the last
        end -= 1
    newline = re.compile(r"\r\n|\n|\r").search(text, end) or re.search(r"\r\n|\n|\r", text)
    ending = newline[0] if newline else "\n"
    at = newline.end() if newline and newline.start() >= end else len(text)
    front = "" if text[:at].endswith(("\n", "\r")) else ending
    tail = "" if front else ending
    return text[:at] + front + ending.join(lines) + tail + text[at:]
