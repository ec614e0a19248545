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
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{SPEC_SCHEMA.replace('/', ':')}",
        "title": "tokitai spec",
        "description": "A kernel's contract: arguments, launches, oracle, checks and inputs.",
        **schema,
    }
