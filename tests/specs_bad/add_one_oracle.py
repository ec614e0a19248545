"""Oracle of the specs beside it."""

from __future__ import annotations

from typing import Any


def add_one(params: dict[str, int], inputs: dict[str, Any], scalars: dict[str, Any]) -> Any:
    """Reference of add_one: y = x + 1."""
    return {"y": inputs["x"].astype("float64") + 1.0}
