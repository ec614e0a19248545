"""Shared memory, constants and pointers to vectors, as the trees of kernels have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli.cpp.source.device_memory import declares_dynamic, memory_in, memory_of
from tokitai_cli.cpp.source.reached import pointed_types, reached
from tokitai_cli.cpp.source.signatures import kernels_of
from tokitai_cli.cpp.whole import Program, program_of


def program(folder: Path, text: str) -> Program:
    (folder / "k.cu").write_text(text)
    return program_of(folder / "k.cu", ())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("__constant__ float a[3] = {1, 2, 3}, b; static __constant__ int c;", ["a", "b", "c"]),
        ("#define TABLE(name) __constant__ float name[4];\nTABLE(left) TABLE(right)\n",
         ["left", "right"]),
        ("// __constant__ float no;\n__device__ float other;\n", []),
    ],
)  # fmt: skip
def test_every_constant_of_a_declaration_is_named(
    tmp_path: Path, text: str, names: list[str]
) -> None:
    assert memory_of([program(tmp_path, text)]).constants == names


@pytest.mark.parametrize(
    ("declared", "classes"),
    [
        ("__shared__ float x[4];", False),
        ("__shared__ unsigned long long x;", False),
        ("extern __shared__ float4 x[];", False),
        ("__shared__ half x[4];", True),
        ("__shared__ T x[4];", True),
        ("__shared__ typename Reduce<T>::Storage x;", True),
        ("Real x; __shared__ Real y;", False),
    ],
)
def test_shared_memory_may_hold_classes(tmp_path: Path, declared: str, classes: bool) -> None:
    text = f"#define Real double\ntemplate <class T> __global__ void k(T* out) {{ {declared} }}\n"
    assert memory_of([program(tmp_path, text)]).shared_classes is classes


def test_both_branches_of_a_text_declare() -> None:
    text = (
        "#if defined(__CUDA_ARCH__)\n__global__ void k() { extern __shared__ float a[]; }\n"
        "#else\n__global__ void k() { extern __shared__ char* b[]; }\n#endif\n"
    )
    assert memory_in(text).dynamic_shared == ["a", "b"]


def test_what_a_kernel_reaches_may_be_dynamic_or_behind_vectors(tmp_path: Path) -> None:
    text = (
        "__device__ float first(const float* x) {\n  return reinterpret_cast<const float4*>(x)->x;\n}\n"
        "__device__ float* room() { HIP_DYNAMIC_SHARED(float, held) return held; }\n"
        "__global__ void plain(float* y, int x2, int n) { y[x2 * n] = 0; }\n"
        "__global__ void both(float* y) { y[0] = first(y) + room()[0]; }\n"
    )
    whole = program(tmp_path, text)
    told = {one.name: reached(whole, one) for one in kernels_of(whole)}
    assert not declares_dynamic(told["plain"])
    assert declares_dynamic(told["both"])
    assert pointed_types(told["plain"]) == set()
    assert "float4" in pointed_types(told["both"])
