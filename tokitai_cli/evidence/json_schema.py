"""The JSON Schema of the tool's own files, generated from the structs."""

from __future__ import annotations

from typing import Any

import msgspec

from tokitai_cli.core.model.evidence import EVIDENCE_SCHEMA, Evidence


def schema(kind: type[msgspec.Struct] = Evidence, name: str = EVIDENCE_SCHEMA) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a file that holds a `kind` and names the schema `name`.

    Every object is closed, and every field is required: files always hold all of them.
    """
    body = msgspec.json.schema(kind)
    for definition in body["$defs"].values():
        if definition.get("type") == "object" and "properties" in definition:
            definition["required"] = sorted(definition["properties"])
            for field in definition["properties"].values():
                field.pop("default", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://tokitai.dev/schema/{name.removeprefix('tokitai/')}",
        "title": name,
        **body,
    }
