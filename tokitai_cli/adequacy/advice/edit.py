"""Lines for a spec, and a spec's text with them: comments, order and all other lines stay."""

from __future__ import annotations

import difflib
import io
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from tokitai_cli.spec import dotted

Path = tuple[str | int, ...]


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


def _library() -> Any:
    from ruamel.yaml import YAML  # takes a twentieth of a second

    found = YAML()
    found.preserve_quotes = True
    found.width = 1 << 16
    return found


def _flow(value: Any) -> str:
    """YAML on one line."""
    stream = io.StringIO()
    library = _library()
    library.dump(_as_flow(value), stream)
    return stream.getvalue().removesuffix("\n").removesuffix("\n...")


def _as_flow(value: Any) -> Any:
    from ruamel.yaml.comments import CommentedMap, CommentedSeq
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    if isinstance(value, str) and re.search(r"[,:#{}\[\]*&!%|>'\"`@?-]", value):
        return DoubleQuotedScalarString(value)
    found: Any
    if isinstance(value, dict):
        found = CommentedMap({key: _as_flow(one) for key, one in value.items()})
    elif isinstance(value, list):
        found = CommentedSeq([_as_flow(one) for one in value])
    else:
        return value
    found.fa.set_flow_style()
    return found


def edited(text: str, edits: Sequence[Edit]) -> str:
    """The text of a spec with the edits; lines that they do not touch stay byte for byte."""
    library = _library()
    lists = [str(one.path[-1]) for one in edits if one.appended]
    for key in (*lists, r"[\w.-]+"):
        pattern = rf"^( *){key}:[ ]*(?:#.*)?\n(?:\s*#.*\n)*\1( *)- "
        if nested := re.search(pattern, text, re.MULTILINE):
            break
    offset = len(nested[2]) if nested else 2
    library.indent(mapping=2, sequence=offset + 2, offset=offset)
    tree = library.load(text)
    before = _dumped(library, tree)
    for one in edits:
        _set(tree, one)
    return _merged(text, before, _dumped(library, tree))


def _dumped(library: Any, tree: Any) -> str:
    stream = io.StringIO()
    library.dump(tree, stream)
    return stream.getvalue()


def _set(tree: Any, edit: Edit) -> None:
    place = tree
    for step, after in zip(edit.path, (*edit.path[1:], None), strict=True):
        last = after is None
        if last and not edit.appended:
            place[step] = _as_flow(edit.value)
            return
        if isinstance(place, dict) and (step not in place or place[step] is None):
            place[step] = [] if last else {}
        place = place[step]
    place.append(_as_flow(edit.value))
    _move_comment(place)


def _move_comment(items: Any) -> None:
    """What stands behind the last item of a list, above the next key, stays behind the last one."""
    comments = getattr(getattr(items, "ca", None), "items", {})
    last = len(items) - 1
    inner: Any = items[last - 1] if last else None
    held = getattr(getattr(inner, "ca", None), "items", {})
    if last - 1 in comments and any(
        c and "\n\n" in getattr(c, "value", "") for c in comments[last - 1]
    ):
        comments[last] = comments.pop(last - 1)
    elif held and not inner.fa.flow_style():
        key = list(inner)[-1]
        if key in held and held[key][2] is not None and held[key][2].value.startswith("\n"):
            comments[last] = [held[key][2], None, None, None]
            del held[key]


def _merged(text: str, before: str, after: str) -> str:
    """`text` with what changed from `before` to `after`, both of them as the library writes it.

    The library's text where its lines are not those of `text` one by one.
    """
    ours, old, new = (one.splitlines(keepends=True) for one in (text, before, after))
    if len(ours) != len(old):
        return after
    found: list[str] = []
    for kind, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        found += ours[i:j] if kind == "equal" else new[k:m]
    return "".join(found)
