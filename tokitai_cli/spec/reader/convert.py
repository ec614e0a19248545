"""A Document to the spec's structs, strictly, with an error that says where and how to mend it."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import inspect

from tokitai_cli.core.errors import SpecError, near
from tokitai_cli.core.model.spec import SPEC_SCHEMA, Buffer, Spec
from tokitai_cli.core.model.textures import with_textures
from tokitai_cli.spec.reader.document import Document, KeyPath

_LAYOUT = re.compile(r"strides?|layouts?|order|pitch|leading|ld[abc]?|offsets?|padding|alignment")
_PATTERNS = {
    r"^[A-Za-z_]": "a letter or _, then letters, digits or _, at most 63 in all",
    r"^([A-Za-z_]": "the name of a __device__ variable, such as total or space::total",
    r"^[a-z][": "lower-case words and digits joined by - _ or ., such as grad-a",
}
_WORDS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
# Words of other tools for keys of ours.
_SYNONYMS = {
    "arguments": "args", "atol": "limit", "blocks": "grid", "dims": "shape", "file": "source",
    "kernels": "launches", "rtol": "limit", "size": "shape", "threads": "block",
    "tolerance": "limit", "type": "dtype",
}  # fmt: skip
_EXAMPLE = "docs/spec.md has a whole example"


def to_spec(document: Document) -> Spec:
    """Convert to the structs; raises SpecError at the first key or value that does not fit."""
    _check_schema(document)
    root = without_nulls(document.root)
    try:
        return with_textures(msgspec.convert(root, Spec))
    except msgspec.ValidationError as error:
        message = str(error)
    # msgspec names neither the key of a mapping nor a line: look for the fault ourselves.
    _explain(document, (), root, _types())
    raise document.fault((), message, _EXAMPLE)


def without_nulls(root: Any) -> Any:
    """The root with 0 for every `null` among the arguments of launches and the fields of structs.

    What is passed for a pointer is 0 there; that it is one, signatures tell.
    """
    variants = root.get("variants") if isinstance(root, dict) else None
    if not isinstance(variants, dict):
        return root
    return {**root, "variants": {name: _variant(one) for name, one in variants.items()}}


def _variant(variant: Any) -> Any:
    if not isinstance(variant, dict):
        return variant
    changed = dict(variant)
    if "structs" in variant:
        changed["structs"] = _zeros(variant["structs"])
    if isinstance(variant.get("launches"), list):
        changed["launches"] = [
            {**one, "args": _zeros(one["args"])}
            if isinstance(one, dict) and isinstance(one.get("args"), list)
            else one
            for one in variant["launches"]
        ]
    return changed


def _zeros(value: Any) -> Any:
    """A list or mapping with 0 for null at every depth; `null` in place of all of it stays."""
    if isinstance(value, dict):
        return {name: 0 if one is None else _zeros(one) for name, one in value.items()}
    if isinstance(value, list):
        return [0 if one is None else _zeros(one) for one in value]
    return value


def _check_schema(document: Document) -> None:
    root = document.root
    if not isinstance(root, dict):
        message = f"a spec is a mapping of keys, found {_describe(root)}"
        raise document.fault((), message, _EXAMPLE)
    hint = f"write schema: {SPEC_SCHEMA}"
    if "schema" not in root:
        raise document.fault((), "no `schema` key: is this a spec?", hint)
    schema = root["schema"]
    if schema == SPEC_SCHEMA:
        return
    version = re.fullmatch(r"tokitai/spec/v([0-9]{1,9})", str(schema))
    if version is not None and int(version[1]) > 1:
        message = f"{schema} is a newer schema than this tool's {SPEC_SCHEMA}"
        raise document.fault(("schema",), message, "update the tool")
    raise document.fault(("schema",), f"unknown schema {_describe(schema)}", hint)


@functools.cache
def _types() -> inspect.Type:
    return inspect.type_info(Spec)


def _explain(document: Document, path: KeyPath, value: Any, kind: inspect.Type) -> None:
    """Raise SpecError for the first fault of `value`, in the order of the file."""
    match kind:
        case inspect.StructType():
            _explain_struct(document, path, value, kind)
        case inspect.DictType():
            _need(document, path, value, dict, "a mapping")
            for key, item in value.items():
                _explain_key(document, (*path, key), key, kind.key_type)
                _explain(document, (*path, key), item, kind.value_type)
            if len(value) < (kind.min_length or 0):
                raise document.fault(path, "nothing in here", "at least one entry is needed")
        case inspect.ListType():
            _need(document, path, value, list, "a list")
            for index, item in enumerate(value):
                _explain(document, (*path, index), item, kind.item_type)
            if len(value) < (kind.min_length or 0):
                raise document.fault(path, "an empty list", "at least one entry is needed")
        case inspect.UnionType():
            _explain_union(document, path, value, kind)
        case _:
            if not _fits(value, kind):
                raise _misfit(document, path, value, (kind,))


def _need(document: Document, path: KeyPath, value: Any, kind: type, name: str) -> None:
    if isinstance(value, kind):
        return
    hint = f"write [{value}]" if kind is list and isinstance(value, str | int) else ""
    if kind is dict and isinstance(value, list):
        hint = "name each entry: `name: ...` lines without dashes"
    raise document.fault(path, f"expected {name}, found {_describe(value)}", hint)


def _explain_struct(
    document: Document, path: KeyPath, value: Any, kind: inspect.StructType
) -> None:
    _need(document, path, value, dict, "a mapping")
    fields = {field.encode_name: field for field in kind.fields}
    for key, item in value.items():
        if key in fields:
            _explain(document, (*path, key), item, fields[key].type)
            continue
        here = (*path, key)
        if kind.cls is Buffer and _LAYOUT.fullmatch(key):
            message = f"{key} are not supported: arrays are row-major and contiguous"
            hint = "remove the key, and give the shape of the whole array in memory"
            raise document.fault(here, message, hint, at_key=True)
        raise document.fault(here, "unknown key", _key_hint(key, item, fields), at_key=True)
    for name, field in fields.items():
        if field.required and name not in value:
            raise document.fault(path, f"key `{name}` is missing", _EXAMPLE)


def _key_hint(key: str, value: Any, fields: Collection[str]) -> str:
    hint = near(key, fields)
    if hint.startswith("did"):
        return hint
    synonym = get_close_matches(key.lower(), _SYNONYMS, n=1, cutoff=0.8)
    if synonym and _SYNONYMS[synonym[0]] in fields:
        return f"the key for it is `{_SYNONYMS[synonym[0]]}`"
    # YAML ends an entry of {a: b} at the comma, and reads what follows as a key without a value.
    return "between braces, put text that holds a comma in quotes" if value is None else hint


def _explain_key(document: Document, path: KeyPath, key: str, kind: inspect.Type) -> None:
    if not _fits(key, kind):
        message = f"{_shown(key)} is not allowed as a name here"
        raise document.fault(path, message, _rule(kind), at_key=True)


def _explain_union(document: Document, path: KeyPath, value: Any, kind: inspect.UnionType) -> None:
    nested = inspect.StructType | inspect.DictType if isinstance(value, dict) else inspect.ListType
    parts = [part for part in kind.types if isinstance(part, nested)]
    if parts and isinstance(value, dict | list):
        _explain(document, path, value, parts[0])
    elif not any(_fits(value, part) for part in kind.types):
        raise _misfit(document, path, value, kind.types)


def _fits(value: Any, kind: inspect.Type) -> bool:
    match kind:
        case inspect.NoneType():
            return value is None
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool)
        case inspect.FloatType():
            return isinstance(value, int | float) and not isinstance(value, bool)
        case inspect.LiteralType():
            return value in kind.values
        case inspect.StrType():
            return (
                isinstance(value, str)
                and (kind.min_length or 0) <= len(value) <= (kind.max_length or len(value))
                and (kind.pattern is None or re.search(kind.pattern, value) is not None)
            )
    return False


def _misfit(
    document: Document, path: KeyPath, value: Any, kinds: tuple[inspect.Type, ...]
) -> SpecError:
    wanted = " or ".join(dict.fromkeys(_wanted(kind) for kind in kinds if _wanted(kind)))
    message = f"expected {wanted}, found {_describe(value)}"
    return document.fault(path, message, _hint(value, kinds))


def _hint(value: Any, kinds: tuple[inspect.Type, ...]) -> str:
    if isinstance(value, str):
        for kind in kinds:
            if isinstance(kind, inspect.BoolType):
                return f"write {_WORDS.get(value.lower(), 'true or false')}"
            if isinstance(kind, inspect.LiteralType):
                return near(value, map(str, kind.values))
            if isinstance(kind, inspect.FloatType | inspect.IntType) and _is_number(value):
                return "write the number without quotes"
            if isinstance(kind, inspect.StrType):
                return _rule(kind, value)
        return ""
    texts = any(isinstance(kind, inspect.StrType) for kind in kinds)
    integers = any(isinstance(kind, inspect.IntType) for kind in kinds)
    if isinstance(value, float) and integers:
        return f"write {int(value)}" if value.is_integer() else "write an integer"
    if isinstance(value, bool | int | float) and texts:
        return "put it in quotes if it is text"
    return ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _rule(kind: inspect.Type, value: str = "") -> str:
    if not isinstance(kind, inspect.StrType):
        return ""
    if kind.pattern is not None and len(value) > (kind.max_length or len(value)):
        return f"at most {kind.max_length} characters"
    if kind.pattern is not None:
        return next(text for start, text in _PATTERNS.items() if kind.pattern.startswith(start))
    return f"between {kind.min_length or 0} and {kind.max_length} characters"


def _wanted(kind: inspect.Type) -> str:
    match kind:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return "an integer"
        case inspect.FloatType():
            return "a number"
        case inspect.LiteralType():
            values = kind.values
            return f"`{values[0]}`" if len(values) == 1 else f"one of {', '.join(map(str, values))}"
        case inspect.StrType():
            return "text"
        case inspect.StructType():
            return "a mapping"
    return ""


def _describe(value: Any) -> str:
    if value is None:
        return "no value"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {_shown(value)}"
    if isinstance(value, int | float):
        return f"the number {value}"
    return "a list" if isinstance(value, list) else "a mapping"


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
