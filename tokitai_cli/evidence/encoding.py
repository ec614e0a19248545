"""Evidence as text: strict JSON for files, one canonical form for the digest."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, TypeVar

import msgspec

from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.wording import Escapes

# What JSON allows raw, but a terminal or a viewer would act on or not show; it occurs only inside
# strings, where the escaped form means the same.
_RAW = Escapes(
    lambda code: json.dumps(chr(code))[1:-1] if code != 0x7F else "\\u007f", {"\n": "\n"}
)

_AS_IT_IS = frozenset((int, bool, type(None)))
_T = TypeVar("_T", bound=msgspec.Struct)


def plain(record: msgspec.Struct) -> dict[str, Any]:
    """`record` as dicts, lists, text, numbers, bools and None; NaN and infinities as text."""
    tree = _strict(msgspec.to_builtins(record, enc_hook=_scalar))
    assert isinstance(tree, dict)
    return tree


def normal(record: _T) -> _T:
    """`record` as reading it back gives it: plain scalars, NaN and infinities as text.

    Raises msgspec.ValidationError where a field holds what the schema does not allow.
    """
    return msgspec.convert(plain(record), type(record))


def canonical(evidence: Evidence, *, is_normal: bool = False) -> str:
    """Everything but `volatile` and `digest` in one fixed spelling.

    is_normal: it is what `normal` gave, and need not be looked through again.

    It is `json.dumps(tree, sort_keys=True, separators=(",", ":"), ensure_ascii=False)` of Python's
    standard library, so that a digest can be recomputed without this tool.
    """
    return _canonical(msgspec.to_builtins(evidence) if is_normal else plain(evidence))


def digest(evidence: Evidence, *, is_normal: bool = False) -> str:
    """sha256 of the canonical form in UTF-8, in hex."""
    return hashlib.sha256(canonical(evidence, is_normal=is_normal).encode()).hexdigest()


def tree_digest(tree: dict[str, Any]) -> str:
    """The digest of evidence as it was read, of whatever version: of the objects of its file."""
    return hashlib.sha256(_canonical(tree).encode("utf-8", "backslashreplace")).hexdigest()


def sealed(evidence: Evidence) -> Evidence:
    """Normal evidence with its digest."""
    return msgspec.structs.replace(evidence, digest=digest(evidence, is_normal=True))


def _canonical(tree: dict[str, Any]) -> str:
    covered = {name: value for name, value in tree.items() if name not in ("volatile", "digest")}
    return json.dumps(
        covered, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def to_json(evidence: Evidence, *, is_normal: bool = False) -> str:
    """Write the whole evidence as strict JSON: indented by one, a line break at the end."""
    tree = evidence if is_normal else plain(evidence)
    return _text(msgspec.json.format(msgspec.json.encode(tree), indent=1))


def line(record: msgspec.Struct) -> bytes:
    """Any record as one line of strict JSON in UTF-8; NaN and infinities as text."""
    return _text(msgspec.json.encode(plain(record))).encode()


def case_to_json(case: CaseRecord) -> str:
    """One case of normal evidence as a line of JSON."""
    return _text(msgspec.json.encode(case))


def _text(data: bytes) -> str:
    return data.decode().translate(_RAW) + "\n"


def _scalar(value: object) -> object:
    """Give a numpy scalar as the Python number that it holds."""
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError(f"evidence cannot hold {type(value).__name__}")
    return item()


def _strict(tree: Any) -> Any:
    """`tree`, of what `to_builtins` gives, with text that is UTF-8 and no number that JSON has not."""
    kind = type(tree)
    if kind is str:
        return tree if tree.isascii() else utf8(tree)
    if kind is dict:
        return {
            key if key.isascii() else utf8(key): value
            if type(value) in _AS_IT_IS
            else _strict(value)
            for key, value in tree.items()
        }
    if kind is list:
        return [value if type(value) in _AS_IT_IS else _strict(value) for value in tree]
    if isinstance(tree, str):
        return utf8(tree)
    if isinstance(tree, float) and not math.isfinite(tree):
        return "nan" if math.isnan(tree) else "inf" if tree > 0 else "-inf"
    return tree


def utf8(text: str) -> str:
    """`text` with lone surrogates, left by undecodable bytes of a log or a path, as visible escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
