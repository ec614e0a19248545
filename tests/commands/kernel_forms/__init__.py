"""Twenty formulas as specs, each with right kernels in other forms than its own, and wrong ones."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

Tree = Mapping[str, Any]
KINDS = ("right", "cancelling", "wrong")

_HEAD = """#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#define COLS for (int c = t, k = r * cols + t; c < cols; c += 64, k += 64)
#define SUM(v) over_block(v, false)
#define TOP(v) over_block(v, true)

__device__ float over_block(float v, bool largest) {
    __shared__ float part[64];
    __syncthreads();
    part[threadIdx.x] = v;
    __syncthreads();
    for (int h = 32; h > 0; h /= 2) {
        if (threadIdx.x < h) {
            float other = part[threadIdx.x + h];
            part[threadIdx.x] = largest ? fmaxf(part[threadIdx.x], other) : part[threadIdx.x] + other;
        }
        __syncthreads();
    }
    return part[0];
}
"""
_INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
# By an entry's launch: text in front of a kernel's own, grid, block, sizes of arrays that name none.
_LAUNCHES: Mapping[str, tuple[str, str, int, tuple[str, ...]]] = {
    "each": (f"{_INDEX} if (i >= n) return;", "ceil_div(n, 128)", 128, ("n",)),
    "cell": (
        f"{_INDEX} if (i >= rows * cols) return; int r = i / cols, c = i % cols;",
        "ceil_div(rows * cols, 128)",
        128,
        ("rows", "cols"),
    ),
    "row": ("int r = blockIdx.x, t = threadIdx.x;", "rows", 64, ("rows", "cols")),
}
_SHAPES: Mapping[tuple[str, ...], list[tuple[int, ...]]] = {
    ("n",): [(1,), (77,), (256,), (1000,)],
    ("rows", "cols"): [(1, 2), (5, 67), (3, 128), (33, 200)],
}
_C = {"float32": "float", "float16": "__half", "int32": "int", "int8": "signed char"}


@functools.cache
def table() -> Tree:
    """The formulas of forms.yaml by name."""
    found: Tree = yaml.safe_load(Path(__file__).with_name("forms.yaml").read_text("utf-8"))
    return found


def kernels(name: str) -> dict[str, str]:
    """Bodies of an entry's kernels by name: right-branch, wrong-no-half."""
    return {
        f"{kind}-{kernel}": body
        for kind in KINDS
        for kernel, body in table()[name].get(kind, {}).items()
    }


def write(folder: Path, name: str) -> Path:
    """Write spec, kernels and formula of one entry into `folder`, with its first kernel as a variant."""
    entry = table()[name]
    head, _, _, sizes = _LAUNCHES[entry["launch"]]
    arrays = {
        role: {array: _array(text, sizes) for array, text in entry.get(role, {}).items()}
        for role in ("inputs", "inout", "outputs")
    }
    first = next(iter(kernels(name)))
    spec: dict[str, Any] = {
        "schema": "tokitai/spec/v1",
        "op": name,
        "title": name,
        "summary": f"{name}, as formula.py says it.",
        "params": {size: {"default": 50} for size in (*sizes, *entry.get("params", {}))},
        "sizes": entry.get("sizes", {}),
        "variants": {first: _variant(name, arrays, first)},
        "profiles": {"normal": {"draw": "normal", "inputs": entry.get("draws", {})}},
        "suites": {"quick": [_shape(sizes, shape) for shape in _SHAPES[sizes]]},
    }
    parameters = ", ".join(
        [
            f"{'const ' * (role == 'inputs')}{_C[plan['dtype']]}* {array}"
            for role, plans in arrays.items()
            for array, plan in plans.items()
        ]
        + [f"float {scalar}" for scalar in entry.get("scalars", {})]
        + [f"int {size}" for size in (*sizes, *entry.get("sizes", {}))]
    )
    texts = [
        f"__global__ void {_function(kernel)}({parameters}) {{ {head}\n    {body}\n}}\n"
        for kernel, body in kernels(name).items()
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernels.hip").write_text("\n".join([_HEAD, *texts]), encoding="utf-8")
    (folder / "formula.py").write_text(_formula(entry), encoding="utf-8")
    return _written(folder / "spec.yaml", spec)


def with_every_kernel(path: Path, name: str) -> None:
    """Give the spec at `path`, which `write` wrote and `advise` may have added to, all kernels."""
    spec = yaml.safe_load(path.read_text(encoding="utf-8"))
    (first,) = spec["variants"].values()
    spec["variants"] = {kernel: copy.deepcopy(first) for kernel in kernels(name)}
    for kernel, variant in spec["variants"].items():
        variant["launches"][0]["kernel"] = _function(kernel)
    _written(path, spec)


def _written(path: Path, spec: Tree) -> Path:
    path.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    return path


def _function(kernel: str) -> str:
    return kernel.replace("-", "_")


def _variant(name: str, arrays: Mapping[str, Mapping[str, Tree]], kernel: str) -> Tree:
    entry = table()[name]
    _, grid, block, sizes = _LAUNCHES[entry["launch"]]
    scalars = entry.get("scalars", {})
    names = [array for plans in arrays.values() for array in plans]
    arguments = [*names, *scalars, *sizes, *entry.get("sizes", {})]
    launch = {"kernel": _function(kernel), "grid": [grid], "block": [block], "args": arguments}
    return {
        "source": "kernels.hip",
        **{role: plans for role, plans in arrays.items() if plans},
        "scalars": {one: {"dtype": "float32", "value": v} for one, v in scalars.items()},
        "launches": [launch],
        "oracle": {"formula": "formula.py:formula"},
        "checks": [
            {"metric": "exact" if plan["dtype"].startswith("int") else "bound", "output": array}
            for role in ("inout", "outputs")
            for array, plan in arrays[role].items()
        ],
    }


def _array(text: str, sizes: Sequence[str]) -> Tree:
    dtype, *own = text.split()
    return {"dtype": dtype, "shape": [int(s) if s.isdigit() else s for s in own or sizes]}


def _shape(sizes: Sequence[str], shape: Sequence[int]) -> Tree:
    return {"shape": dict(zip(sizes, shape, strict=True)), "why": "one of the sizes"}


def _formula(entry: Tree) -> str:
    names = [*entry["inputs"], *entry.get("inout", {})]
    results = [*entry.get("inout", {}), *entry.get("outputs", {})]
    lines = [
        *(f'{one} = inputs["{one}"]' for one in names),
        *(f'{one} = scalars["{one}"]' for one in entry.get("scalars", {})),
        *entry["formula"].splitlines(),
        "return {" + ", ".join(f'"{one}": {one}' for one in results) + "}",
    ]
    body = "\n".join(f"    {line}" for line in lines)
    return f"import numpy as np\n\n\ndef formula(params, inputs, scalars):\n{body}\n"
