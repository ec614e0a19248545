"""Triton kernels of common kinds with their formulas, for the gfx device and for NVIDIA GPUs."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokitai_cli import triton
from tokitai_cli.core.model.evidence import Evidence

#: What `build.py` beside the kernels wrote.
COMPILED = Path(__file__).parent / "kernels" / "triton"
KERNELS = COMPILED / "kernels.py"
Formula = Callable[[Any, Any, Any], Any]


def kernels() -> Any:
    pytest.importorskip("triton")
    spec = importlib.util.spec_from_file_location("triton_kernels", KERNELS)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules.setdefault("triton_kernels", made)
    spec.loader.exec_module(made)
    return made


def added(params, inputs, scalars):  # type: ignore[no-untyped-def]
    return {"c": inputs["a"] + inputs["b"]}


def added_twice(params, inputs, scalars):  # type: ignore[no-untyped-def]
    return {"c": inputs["a"] + 2 * inputs["b"]}


def softmaxed(params, inputs, scalars):  # type: ignore[no-untyped-def]
    e = np.exp(inputs["x"] - inputs["x"].max(axis=-1, keepdims=True))
    return {"y": e / e.sum(axis=-1, keepdims=True)}


def entropy(params, inputs, scalars):  # type: ignore[no-untyped-def]
    x = inputs["logits"]
    high = x.max(axis=-1)
    total = np.log(np.exp(x - high[:, None]).sum(axis=-1)) + high
    return {"loss": total - x[np.arange(params["rows"]), inputs["target"]]}


def ordered(params, inputs, scalars):  # type: ignore[no-untyped-def]
    return {"y": np.sort(inputs["x"], axis=-1)}


def scaled(params, inputs, scalars):  # type: ignore[no-untyped-def]
    return {"y": inputs["q"] * np.repeat(inputs["scale"], 64)[: params["n"]]}


def gelued(params, inputs, scalars):  # type: ignore[no-untyped-def]
    x = inputs["x"]
    return {"y": 0.5 * x * (1 + erf(x * 0.7071067811865476))}  # type: ignore[name-defined]  # noqa: F821


def same(params, inputs, scalars):  # type: ignore[no-untyped-def]
    return {"y": inputs["x"]}


def saturated(params, inputs, scalars):  # type: ignore[no-untyped-def]
    return {"y": np.clip(inputs["x"], -240, 240)}  # the greatest float8_e4m3fnuz


def looked_up(params, inputs, scalars):  # type: ignore[no-untyped-def]
    return {"y": inputs["table"][inputs["index"]]}


def turned(params, inputs, scalars):  # type: ignore[no-untyped-def]
    return {"y": inputs["x"].T}


def normed(params, inputs, scalars):  # type: ignore[no-untyped-def]
    off = inputs["x"] - inputs["x"].mean(axis=-1, keepdims=True)
    return {"y": off / np.sqrt((off * off).mean(axis=-1, keepdims=True) + scalars["eps"])}


def product(params, inputs, scalars):  # type: ignore[no-untyped-def]
    return {"c": inputs["a"] @ inputs["b"]}


def whole_product(params, inputs, scalars):  # type: ignore[no-untyped-def]
    return {"c": inputs["a"].astype(np.int64) @ inputs["b"].astype(np.int64)}


def doubled(params, inputs, scalars):  # type: ignore[no-untyped-def]
    return {"y": 2 * inputs["x"]}


def attended(params, inputs, scalars):  # type: ignore[no-untyped-def]
    score = inputs["q"] @ inputs["k"].T * 0.125
    e = np.exp(score - score.max(axis=-1, keepdims=True))
    weight = e.astype(np.float16)
    return {"y": (weight @ inputs["v"]) / e.sum(axis=-1, keepdims=True)}


BLOCK = {"BLOCK": 1024}
NAMES = {"m": 70, "n": 50, "k": 90}


def pointwise(types: dict[str, str], formula: Formula, **more: Any) -> dict[str, Any]:
    """Of arrays of n elements."""
    return {
        "signature": {**types, "n": "i32", "BLOCK": "constexpr"},
        "constexprs": BLOCK,
        "sizes": {"n": 1000},
        "shapes": {name: ["n"] for name in types},
        "grid": ["ceil_div(n, 1024)"],
        "formula": formula,
        **more,
    }


def matrices(kind: str, made: str, tile: tuple[int, int, int], **more: Any) -> dict[str, Any]:
    constants = dict(zip(("BM", "BN", "BK"), tile, strict=True))
    return {
        "signature": {
            "a": f"*{kind}", "b": f"*{kind}", "c": f"*{made}", **dict.fromkeys(NAMES, "i32"),
            **dict.fromkeys(constants, "constexpr"),
        },
        "constexprs": constants,
        "sizes": NAMES,
        "shapes": {"a": ["m", "k"], "b": ["k", "n"], "c": ["m", "n"]},
        "grid": [f"ceil_div(m, {tile[0]})", f"ceil_div(n, {tile[1]})"],
        "formula": product,
        "accumulate": "float32-truncated",
        **more,
    }  # fmt: skip


ATTENTION = {
    "signature": {
        **dict.fromkeys("qkvy", "*fp16"), "n": "i32",
        **dict.fromkeys(("D", "BM", "BN", "EVERY"), "constexpr"),
    },
    "constexprs": {"D": 64, "BM": 64, "BN": 32, "EVERY": True},
    "sizes": {"n": 90},
    "shapes": {name: ["n", 64] for name in "qkvy"},
    "grid": ["ceil_div(n, 64)"],
    "formula": attended,
    "accumulate": "float32-truncated",
}  # fmt: skip
# Triton's casts to float8 saturate: a third of these is greater than 240.
TO_FLOAT8 = pointwise(
    {"x": "*fp32", "y": "*fp8e4b8"},
    saturated,
    metric="exact",
    draws={"x": {"kind": "uniform", "lo": -360, "hi": 360}},
)
ROWS = {"rows": 5}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "add": ("add", pointwise({"a": "*fp32", "b": "*fp32", "c": "*fp32"}, added)),
    "gelu": ("gelu", pointwise({"x": "*fp16", "y": "*fp16"}, gelued)),
    "cast to bfloat16": ("cast", pointwise({"x": "*fp32", "y": "*bf16"}, same)),
    "cast from float8": ("cast", pointwise({"x": "*fp8e5", "y": "*fp16"}, same, metric="exact")),
    "cast from e4m3": ("cast", pointwise({"x": "*fp8e4nv", "y": "*fp16"}, same, metric="exact")),
    "cast to e4m3 fnuz": ("cast", TO_FLOAT8),
    "dequantise": (
        "dequantise",
        pointwise({"q": "*i8", "scale": "*fp32", "y": "*fp32"}, scaled)
        | {"shapes": {"q": ["n"], "scale": ["ceil_div(n, 64)"], "y": ["n"]}},
    ),
    "softmax": (
        "softmax",
        {
            "signature": {"x": "*fp32", "y": "*fp32", "columns": "i32", "BLOCK": "constexpr"},
            "constexprs": BLOCK,
            "sizes": {"columns": 781, **ROWS},
            "shapes": {"x": ["rows", "columns"], "y": ["rows", "columns"]},
            "grid": ["rows"],
            "formula": softmaxed,
        },
    ),
    "cross entropy": (
        "cross_entropy",
        {
            "signature": {
                "logits": "*fp32", "target": "*i32", "loss": "*fp32", "classes": "i32",
                "BLOCK": "constexpr",
            },
            "constexprs": BLOCK,
            "sizes": {"classes": 700, **ROWS},
            "shapes": {"logits": ["rows", "classes"], "target": ["rows"], "loss": ["rows"]},
            "draws": {"target": {"kind": "index-uniform", "below": "classes"}},
            "grid": ["rows"],
            "formula": entropy,
        },
    ),
    "sort": (
        "sort",
        {
            "signature": {"x": "*fp32", "y": "*fp32", "BLOCK": "constexpr"},
            "constexprs": {"BLOCK": 128},
            "sizes": ROWS,
            "shapes": {"x": ["rows", 128], "y": ["rows", 128]},
            "grid": ["rows"],
            "formula": ordered,
            "metric": "exact",
        },
    ),
    "embedding": (
        "embedding",
        {
            "signature": {
                "table": "*fp16", "index": "*i32", "y": "*fp16", "width": "i32", "BLOCK": "constexpr",
            },
            "constexprs": {"BLOCK": 128},
            "sizes": {"width": 100, "entries": 30, **ROWS},
            "shapes": {"table": ["entries", "width"], "index": ["rows"], "y": ["rows", "width"]},
            "draws": {"index": {"kind": "index-uniform", "below": "entries"}},
            "grid": ["rows"],
            "formula": looked_up,
            "metric": "exact",
        },
    ),
    "transpose": (
        "transpose",
        {
            "signature": {
                "x": "*fp32", "y": "*fp32", "rows": "i32", "columns": "i32", "BLOCK": "constexpr",
            },
            "constexprs": {"BLOCK": 32},
            "sizes": {"rows": 70, "columns": 50},
            "shapes": {"x": ["rows", "columns"], "y": ["columns", "rows"]},
            "grid": ["ceil_div(rows, 32)", "ceil_div(columns, 32)"],
            "formula": turned,
            "metric": "exact",
        },
    ),
    "group norm": (
        "group_norm",
        {
            "signature": {
                "x": "*fp32", "y": "*fp32", "n": "i32", "eps": "fp32", "BLOCK": "constexpr",
            },
            "constexprs": BLOCK,
            "sizes": {"n": 600, **ROWS},
            "shapes": {"x": ["rows", "n"], "y": ["rows", "n"]},
            "scalars": {"eps": 1e-5},
            "grid": ["rows"],
            "formula": normed,
        },
    ),
    "descriptors": (
        "scaled_by_descriptor",
        {
            "signature": {
                "x": "*fp16", "y": "*fp16", "rows": "i32", "columns": "i32",
                "BM": "constexpr", "BN": "constexpr",
            },
            "constexprs": {"BM": 32, "BN": 64},
            "sizes": {"rows": 70, "columns": 128},
            "divisible": ["columns"],
            "shapes": {"x": ["rows", "columns"], "y": ["rows", "columns"]},
            "grid": ["ceil_div(rows, 32)", "ceil_div(columns, 64)"],
            "formula": doubled,
            "metric": "exact",
        },
    ),
    "product of bfloat16": ("matmul", matrices("bf16", "bf16", (32, 32, 32))),
    "product in large tiles": ("matmul", matrices("fp16", "fp16", (64, 64, 32))),
    "product of integers": (
        "matmul_integers",
        {
            "signature": {
                "a": "*i8", "b": "*i8", "c": "*i32", "k": "i32",
                **dict.fromkeys(("BM", "BN", "BK"), "constexpr"),
            },
            "constexprs": {"BM": 32, "BN": 32, "BK": 32},
            "sizes": {"k": 64},
            "shapes": {"a": [32, "k"], "b": ["k", 32], "c": [32, 32]},
            "grid": [1],
            "formula": whole_product,
            "metric": "exact",
        },
    ),
    "attention": ("attention", ATTENTION),
}  # fmt: skip

# Kernels, and formulas, that are wrong in one way each.
WRONG: dict[str, dict[str, Any]] = {
    "add": CASES["add"][1] | {"formula": added_twice},
    "add_past": CASES["add"][1],
    "cast": TO_FLOAT8 | {"formula": same},  # does not saturate
    "cast_twice": TO_FLOAT8,
    "attention": ATTENTION | {"constexprs": {"D": 64, "BM": 64, "BN": 32, "EVERY": False}},
}

# Of CASES and of WRONG: Triton has their float8 for AMD GPUs alone.
AMD_ALONE = {"cast to e4m3 fnuz", "cast", "cast_twice"}


def verified(name: str, said: dict[str, Any], folder: Path) -> Evidence:
    """Evidence of the kernel of that name; skips without Triton."""
    return triton.verify(getattr(kernels(), name), out=folder, **said).evidence
