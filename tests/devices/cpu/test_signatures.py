"""A spec that does not fit a kernel's signature is refused by the compiler, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.devices.cpu.harness_client import ROOT, compile_errors

SOURCE = """
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
__global__ void mixed(const __half* h, unsigned short* raw, const void* any, float4* quads,
                      __half2* pairs, float factor, unsigned char small, bool flag) {}
__global__ void wide(const __hip_bfloat16* b, long* l, unsigned long long* u, signed char* c,
                     bool* flags, double d, size_t n) {}
#ifdef __FLT16_MANT_DIG__
__global__ void native(const _Float16* h, _Float16 value) {}
#else
__global__ void native(const __half* h, __half value) {}
#endif
template <class T> __global__ void typed(T* values, T value) {}
__constant__ float weights[3][4];
int main() { return 1; }
"""
GOOD = {
    "mixed": [
        "float16*", "float16*", "int64*", "float32*", "float16*", "float32", "int", "int",
    ],
    "wide": ["bfloat16*", "int64*", "uint64*", "int8*", "bool*", "float64", "int"],
    "native": ["float16*", "float16"],
    "typed<unsigned short>": ["bfloat16*", "uint16"],
    "typed<int>": ["int32*", "int32"],
    "typed<bool>": ["bool*", "bool"],
}  # fmt: skip


# One compilation tells all of a round's misfits: kernel, number of the argument, word, message.
MISFITS = [
    [
        (
            "mixed",
            0,
            "bfloat16*",
            "the spec passes a buffer of bfloat16, the kernel's parameter is no",
        ),
        ("mixed", 1, "int16*", "the spec passes a buffer of int16"),
        ("mixed", 3, "float64*", "the spec passes a buffer of float64"),
        ("mixed", 4, "float32*", "the spec passes a buffer of float32"),
        ("mixed", 5, "float32*", "the spec passes a buffer of float32"),
        ("mixed", 6, "uint16", "the spec passes a uint16, the kernel's parameter is none"),
        ("wide", 0, "float16*", "the spec passes a buffer of float16"),
        ("wide", 1, "uint64*", "the spec passes a buffer of uint64"),
        ("wide", 3, "uint8*", "the spec passes a buffer of uint8"),
        ("wide", 5, "float32", "the spec passes a float32"),
        ("native", 1, "float32", "the spec passes a float32"),
        ("typed<int>", 0, "uint32*", "the spec passes a buffer of uint32"),
    ],
    [
        ("mixed", 0, "float32*", "the spec passes a buffer of float32"),
        (
            "mixed",
            5,
            "int",
            "the spec passes an integer, the kernel's parameter is none; declare a",
        ),
        ("mixed", 7, "uint16", "the spec passes a uint16"),
        ("wide", 2, "int", "the spec passes an integer"),
        ("wide", 6, "float64", "the spec passes a float64"),
        ("native", 1, "float16*", "the spec passes a buffer of float16"),
        ("typed<bool>", 1, "int32", "the spec passes a int32"),
    ],
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "my kernels (v2) é.hip"
    path.write_text(SOURCE)
    return path


def test_signatures_that_fit(source: Path) -> None:
    assert compile_errors(source, GOOD, [("weights", "float32")]) == ""


@pytest.mark.parametrize("misfits", MISFITS)
def test_signatures_that_do_not_fit(source: Path, misfits: list[tuple[str, int, str, str]]) -> None:
    kernels = {kernel: list(words) for kernel, words in GOOD.items()}
    for kernel, place, word, _ in misfits:
        kernels[kernel][place] = word
    errors = compile_errors(source, kernels)
    for kernel, place, _, message in misfits:
        assert f"kernel {kernel}, argument {place} (counted from 0): {message}" in errors
    assert errors.count("static assertion failed") == len(misfits)


def test_another_number_of_arguments(source: Path) -> None:
    counts = {"mixed": 0, "wide": 1, "native": 3}
    errors = compile_errors(source, {name: ["int"] * count for name, count in counts.items()})
    for name, count in counts.items():
        passes = f"kernel {name}: the spec passes {count} arguments"
        assert f"{passes}, the kernel has another number of parameters" in errors


def test_a_symbol_of_another_type(source: Path) -> None:
    errors = compile_errors(source, {"native": GOOD["native"]}, [("weights", "int32")])
    assert "symbol weights: the spec says int32, the source another type" in errors


def test_a_wait_for_other_devices_is_refused_by_name(tmp_path: Path) -> None:
    source = tmp_path / "k.hip"
    text = (
        "#include <hip/hip_cooperative_groups.h>\n__global__ void k() { cooperative_groups::%s; }\n"
    )
    source.write_text(text % "this_multi_grid()")
    assert "waits for other devices" in compile_errors(source, {"k": []})


def test_gemm_bw_has_the_signature_of_its_spec() -> None:
    words = ["float16*"] * 3 + ["int"] * 3
    kernels = {f"gemm_bw_grad_{side}_fp16_f32_kernel": words for side in "ab"}
    assert compile_errors(ROOT / "kernels" / "gemm_bw.hip", kernels) == ""
