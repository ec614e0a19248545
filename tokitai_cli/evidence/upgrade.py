"""Evidence of earlier schemas in the form of the present one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from tokitai_cli.core.model.evidence import EVIDENCE_SCHEMA

V1 = "tokitai/evidence/v1"
V2 = "tokitai/evidence/v2"
READABLE = (EVIDENCE_SCHEMA, V2, V1)


def upgraded(tree: Mapping[str, Any]) -> dict[str, Any]:
    """A file's objects as the present schema has them, and what they lack as not known.

    v2 has none of the keys that v3 adds, each of which says what its absence means. v1 sorted the keys
    of a shape and kept their order in `params`, named saved arrays by their files alone, and knew no
    settings. Raises AttributeError, LookupError or TypeError for what follows
    neither schema.
    """
    if tree["schema"] in (EVIDENCE_SCHEMA, V2):
        return {**tree, "schema": EVIDENCE_SCHEMA}
    params = tree.get("params", [])
    now = {name: value for name, value in tree.items() if name != "params"}
    for name in ("cases", "groups", "left_out"):
        now[name] = [{**one, "shape": _ordered(one["shape"], params)} for one in tree[name]]
    for case in now["cases"]:
        case["saved_arrays"] = [_array(file) for file in case["saved_arrays"]]
    note = f"written as {V1}, with the digest {tree['digest']}"
    volatile = {**tree["volatile"], "notes": [*tree["volatile"]["notes"], note]}
    return {**now, "schema": EVIDENCE_SCHEMA, "volatile": volatile}


def _ordered(shape: Mapping[str, Any], params: Sequence[str]) -> dict[str, Any]:
    return {name: shape[name] for name in [*params, *shape] if name in shape}


def _array(file: str) -> dict[str, Any]:
    return {"name": PurePath(file).stem, "dtype": "", "shape": [], "sha256": "", "file": file}
