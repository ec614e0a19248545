"""The JSON Schema of spec files, for editors."""

from __future__ import annotations

from typing import Any

import msgspec

from tokitai_cli.core.model.spec import SPEC_SCHEMA, Spec


def spec_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of schema tokitai/spec/v1, as plain JSON values.

    It holds the structure; names, expressions and limits are checked by `load` alone.
    """
    schema = msgspec.json.schema(Spec)
    _allow_nulls(schema["$defs"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{SPEC_SCHEMA.replace('/', ':')}",
        "title": "tokitai spec",
        "description": "A kernel's contract: arguments, launches, oracle, checks and inputs.",
        **schema,
    }


def _allow_nulls(kinds: dict[str, Any]) -> None:
    """Let `null` stand for a pointer in arguments and fields, where `load` reads it as 0."""
    for place in (
        kinds["Launch"]["properties"]["args"]["items"],
        kinds["Variant"]["properties"]["structs"]["additionalProperties"],
    ):
        _add_null(place)


def _add_null(kind: dict[str, Any]) -> None:
    choices = kind.get("anyOf", [])
    if any(one.get("type") == "integer" for one in choices):
        choices.append({"type": "null"})
    for one in (*choices, kind.get("items"), kind.get("additionalProperties")):
        if isinstance(one, dict):
            _add_null(one)
