"""Kernels of C++20 are drafted with types that their concepts allow, and built as C++20."""

from __future__ import annotations

import json
from pathlib import Path

from tests.runs import tokitai_here

TEXT = """\
#include <concepts>
#define AT threadIdx.x
template <typename T> concept Whole = std::is_integral_v<T>;
template <Whole T> __global__ void count(T* out, int n) { if (AT < n) out[AT] = 1 << AT % 8; }
template <typename T> requires std::unsigned_integral<T>
__global__ void copied(const T* x, T* out, int n) { if (AT < n) out[AT] = x[AT]; }
consteval int three() { return 3; }
__global__ void times(const float* x, float* out, int n) { if (AT < n) out[AT] = x[AT] * three(); }
"""


def test_what_asks_for_concepts_is_built_as_cpp20(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(TEXT, encoding="utf-8")
    told = json.loads(tokitai_here("find", tmp_path, "--run", "--json").stdout)["kernels"]
    assert [(one["instance"], one["ended"]) for one in told] == [
        ("count<int>", ""), ("copied<unsigned>", ""), ("times", ""),
    ]  # fmt: skip
