"""Cases made by hand for the tests of inputs and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tokitai_cli.core.expressions import evaluate
from tokitai_cli.core.model.case import BufferPlan, Case, LoadedSpec, Role
from tokitai_cli.core.model.spec import Spec

GEMM: dict[str, Any] = {
    "schema": "tokitai/spec/v1",
    "op": "gemm-bw",
    "title": "gemm backward",
    "params": {"m": {"default": 64}, "n": {"default": 64}, "k": {"default": 64}},
    "variants": {
        "grad-a": {
            "source": "gemm_bw.hip",
            "inputs": {
                "grad_c": {"dtype": "float16", "shape": ["m", "n"]},
                "b": {"dtype": "float16", "shape": ["k", "n"]},
            },
            "outputs": {"grad_a": {"dtype": "float16", "shape": ["m", "k"]}},
            "launches": [{"kernel": "k", "grid": ["m"], "block": [1], "args": []}],
            "oracle": "gemm-bw.grad-a",
            "replay": "gemm-bw.grad-a",
            "checks": [{"metric": "bound"}],
        },
        "grad-b": {
            "source": "gemm_bw.hip",
            "inputs": {
                "grad_c": {"dtype": "float16", "shape": ["m", "n"]},
                "a": {"dtype": "float16", "shape": ["m", "k"]},
            },
            "outputs": {"grad_b": {"dtype": "float16", "shape": ["k", "n"]}},
            "launches": [{"kernel": "k", "grid": ["k"], "block": [1], "args": []}],
            "oracle": "gemm-bw.grad-b",
            "replay": "gemm-bw.grad-b",
            "checks": [{"metric": "bound"}],
        },
    },
    "profiles": {
        "normal": {"draw": "normal"},
        "uniform": {"draw": {"kind": "uniform", "lo": 0.0, "hi": 1.0}},
        "log-uniform": {"draw": {"kind": "log-uniform", "lo": -8.0, "hi": 2.0}},
        "exact-int": {"draw": "exact-int"},
        "exact-int-ramp": {"draw": "exact-int-ramp"},
        "cancelling": {"draw": "cancelling"},
        "large": {"draw": "large"},
        "subnormal": {"draw": "subnormal"},
        "special": {"draw": "special"},
        "constant": {"draw": {"kind": "constant", "value": 0.3}},
    },
}
PROFILES = tuple(GEMM["profiles"])


def make_case(
    tree: Mapping[str, Any],
    variant: str,
    shape: Mapping[str, int],
    profile: str,
    *,
    seed: int = 0,
    folder: Path = Path(),
) -> Case:
    """Case of a spec given as a tree, with plain buffers and no launches."""
    spec = msgspec.convert(tree, Spec)
    parts = spec.variants[variant]
    buffers = []
    for role, group in (
        (Role.INPUT, parts.inputs),
        (Role.OUTPUT, parts.outputs),
        (Role.INOUT, parts.inout),
        (Role.SYMBOL, parts.symbols),
    ):
        for name, buffer in group.items():
            extents = tuple(int(evaluate(size, shape)) for size in buffer.shape)
            buffers.append(BufferPlan(name, role, buffer.dtype, extents))
    loaded = LoadedSpec(spec, folder / "spec.yaml", "", "")
    return Case(loaded, variant, dict(shape), profile, seed, tuple(buffers), ())


def gemm_case(
    variant: str = "grad-a",
    profile: str = "normal",
    *,
    m: int = 16,
    n: int = 16,
    k: int = 16,
    seed: int = 0,
    **changes: Any,
) -> Case:
    """Case of the backward product; `changes` replace keys of the variant."""
    tree = {**GEMM, "variants": {variant: {**GEMM["variants"][variant], **changes}}}
    return make_case(tree, variant, {"m": m, "n": n, "k": k}, profile, seed=seed)


def with_dtype(case: Case, dtype: str) -> Case:
    """The same case with every buffer of another dtype."""
    buffers = tuple(msgspec.structs.replace(buffer, dtype=dtype) for buffer in case.buffers)
    return msgspec.structs.replace(case, buffers=buffers)
