"""Evidence of earlier schemas in the form of the present one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from tokitai_cli.core.model.evidence import EVIDENCE_SCHEMA

V1 = "tokitai/evidence/v1"
V2 = "tokitai/evidence/v2"
V3 = "tokitai/evidence/v3"
READABLE = (EVIDENCE_SCHEMA, V3, V2, V1)

Tree = Mapping[str, Any]


def upgraded(tree: Tree) -> dict[str, Any]:
    """A file's objects as the present schema has them, and what they lack as not known.

    Up to v3 some keys had other names. v2 has none of the keys that v3 adds, each of which says what its
    absence means. v1 sorted the keys of a shape and kept their order in `params`, named saved arrays by
    their files alone, and knew no settings. Raises AttributeError, LookupError or TypeError for what
    follows none of the schemas.
    """
    if tree["schema"] == EVIDENCE_SCHEMA:
        return dict(tree)
    now = _with_orders(tree) if tree["schema"] == V1 else tree
    return {**_with_present_names(now), "schema": EVIDENCE_SCHEMA}


def _with_present_names(tree: Tree) -> dict[str, Any]:
    """Keys of v3 and earlier by their names of now."""
    measured = tree["volatile"].get("measured") or {}
    volatile = {
        **tree["volatile"],
        "measured": {name: {**one, "outputs": _outputs(one)} for name, one in measured.items()},
    }
    status = {"untold": "undetected"}
    return {
        **tree,
        "devices": {name: _renamed(one, mend="hint") for name, one in tree["devices"].items()},
        "cases": [_case(one) for one in tree["cases"]],
        "watched": [_case(one) for one in tree.get("watched") or []],
        "groups": [
            {**one, "status": status.get(one["status"], one["status"])} for one in tree["groups"]
        ],
        "claims": [_renamed(one, opened="supported", opened_by="needed") for one in tree["claims"]],
        "volatile": volatile,
    }


def _case(case: Tree) -> dict[str, Any]:
    changes = [_renamed(one, untold="undetected") for one in case.get("changes") or []]
    mutants = [_renamed(one, told="shown_only") for one in case["mutants"]]
    return {**case, "outputs": _outputs(case), "mutants": mutants, "changes": changes}


def _outputs(record: Tree) -> list[dict[str, Any]]:
    return [
        {**one, "metrics": _renamed(one["metrics"], open_elements="undecided_elements")}
        if one.get("metrics")
        else dict(one)
        for one in record["outputs"]
    ]


def _renamed(tree: Tree, **names: str) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in tree.items()}


def _with_orders(tree: Tree) -> dict[str, Any]:
    """v1 with the orders of its shapes and the parts of its saved arrays."""
    params = tree.get("params", [])
    now = {name: value for name, value in tree.items() if name != "params"}
    for name in ("cases", "groups", "left_out"):
        now[name] = [{**one, "shape": _ordered(one["shape"], params)} for one in tree[name]]
    for case in now["cases"]:
        case["saved_arrays"] = [_array(file) for file in case["saved_arrays"]]
    note = f"written as {V1}, with the digest {tree['digest']}"
    return {**now, "volatile": {**tree["volatile"], "notes": [*tree["volatile"]["notes"], note]}}


def _ordered(shape: Tree, params: Sequence[str]) -> dict[str, Any]:
    return {name: shape[name] for name in [*params, *shape] if name in shape}


def _array(file: str) -> dict[str, Any]:
    return {"name": PurePath(file).stem, "dtype": "", "shape": [], "sha256": "", "file": file}
