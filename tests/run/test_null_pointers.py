"""A kernel may be passed no address: `null`, or 0, in arguments and in fields of structs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs import run
from tokitai_cli import spec
from tokitai_cli.core.errors import SpecError
from tokitai_cli.drafts.search import drafts_of
from tokitai_cli.spec import spec_schema

KERNELS = """#include <cuda_runtime.h>
struct Inner { const float* bias; int k; };
struct Params { int n; const float* x; Inner inner; const float* more[2]; float* y; };
__global__ void of_struct(Params p) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < p.n)
    p.y[i] = p.x[i] + (p.inner.bias ? p.inner.bias[i] : 0) + (p.more[0] || p.more[1] ? 1 : 0);
}
__global__ void plain(const float* x, const float* bias, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + (bias == nullptr ? 0.0f : bias[i]);
}
__global__ void unguarded(const float* x, const float* bias, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + bias[i];
}
template <class T>
__global__ void any(const T* x, const T* bias, T* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + (bias ? bias[i] : T(0));
}
void host(const float* x, float* y, int n) { plain<<<(n + 255) / 256, 256>>>(x, nullptr, y, n); }
"""
SPEC = """schema: tokitai/spec/v1
op: nulls
title: copies
params:
  n: {default: 100}
variants:
VARIANTS
profiles:
  normal: {}
"""
VARIANT = """  NAME:
    source: k.cu
    inputs:
      x: {dtype: float32, shape: [n]}
    outputs:
      y: {dtype: float32, shape: [n]}
    STRUCTS
    launches:
      - {kernel: KERNEL, grid: ["ceil_div(n, 256)"], block: [256], args: ARGS}
    oracle: {formula: "f.py:f"}
    checks: [{metric: exact}]
"""
FIELDS = "{n: n, x: x, inner: {bias: null, k: 0}, more: [null, null], y: y}"


def variant(name: str, kernel: str, args: str, fields: str = "") -> str:
    structs = f"structs: {{p: {fields}}}" if fields else "structs: {}"
    text = VARIANT.replace("NAME", name).replace("STRUCTS", structs)
    return text.replace("KERNEL", kernel).replace("ARGS", args)


def written(folder: Path, *variants: str) -> Path:
    (folder / "k.cu").write_text(KERNELS, "utf-8")
    (folder / "f.py").write_text(
        'def f(params, inputs, scalars):\n    return {"y": inputs["x"]}\n', "utf-8"
    )
    path = folder / "spec.yaml"
    path.write_text(SPEC.replace("VARIANTS\n", "".join(variants)), "utf-8")
    return path


def test_kernels_get_no_address(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        variant("null", "plain", "[x, null, y, n]"),
        variant("zero", "plain", "[x, 0, y, n]"),
        variant("of-template", "any<float>", "[x, null, y, n]"),
        variant("fields", "of_struct", "[p]", FIELDS),
        variant("zeros", "of_struct", "[p]", FIELDS.replace("null", "0")),
        variant("unguarded", "unguarded", "[x, null, y, n]"),
    )
    found = {case.variant: case for case in run(path, tmp_path / "out").cases}
    assert {name: str(case.verdict) for name, case in found.items()} == {
        **dict.fromkeys(["null", "zero", "of-template", "fields", "zeros"], "verified"),
        "unguarded": "crashed",
    }
    assert "null pointer read" in found["unguarded"].reason


BAD = [
    ("plain", "[x, null, y, null]", "", "args[3]: the spec passes `null`, no address"),
    ("plain", "[x, 1, y, n]", "", "args[1]: the spec passes `1`, an integer"),
    ("plain", "null", "", "args: expected a list, found no value"),
    ("of_struct", "[p]", FIELDS.replace("{n: n", "{n: null"), "structs.p.n: the spec passes `null`, no"),
    ("of_struct", "[p]", FIELDS.replace("k: 0", "k: null"), "inner.k: the spec passes `null`, no"),
    ("of_struct", "[p]", FIELDS.replace("bias: null", "bias: 2"), "the spec passes `2`, an integer"),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "args", "fields", "message"), BAD)
def test_what_is_no_pointer_takes_no_null(
    tmp_path: Path, kernel: str, args: str, fields: str, message: str
) -> None:
    with pytest.raises(SpecError) as caught:
        spec.load(written(tmp_path, variant("main", kernel, args, fields)))
    assert message in str(caught.value)


def test_the_schema_has_null_for_arguments_and_fields_alone() -> None:
    kinds = spec_schema()["$defs"]
    launch, null = kinds["Launch"]["properties"], {"type": "null"}
    assert null in launch["args"]["items"]["anyOf"]
    assert null not in launch["grid"]["items"]["anyOf"]
    assert str(null) in str(kinds["Variant"]["properties"]["structs"])


def test_a_draft_passes_null_where_the_host_does(tmp_path: Path) -> None:
    written(tmp_path)
    found = drafts_of(tmp_path / "k.cu", (), tmp_path / "at", room=False)
    assert isinstance(found, tuple)
    drafts = {one.kernel.name: one.spec for one in found[0]}
    assert "args: [x, null, y, n]" in drafts["plain"]
    assert "bias:" not in drafts["plain"]
    assert "args: [x, bias, y, n]" in drafts["unguarded"]
