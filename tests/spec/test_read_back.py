"""Workspaces count as read only where that is certain: else they may be outputs that nothing judges."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli.spec.read_back import Reads

HEAD = """\
#ifdef USE_HEADER
#include "own.h"
#endif
struct Held { float* z; int n; };
__device__ float load(const float* p, int i) { const float* q = p; q += i; return *q; }
"""
# Statements with the workspace z, and whether the kernel reads it.
CASES = [
    ("y[n] = z[n];", True),
    ("z[n] = 1; y[n] = load(z, n);", True),
    ("float& to = z[n]; to = 0;", False),
    ("float* to = z + n; *to = 0; to[1] = 2;", False),
    ("float& to = z[n]; to += 1;", True),
    ("atomicAdd(z + n, 1.f);", True),
    ("z[n] = 1; unknown(z);", False),
    ("unknown(z[n]);", False),
    ("(void)z[n]; z[n] = 1;", False),
    ("if (0) y[n] = z[n]; z[n] = 1;", False),
    ("auto keep = [&](float& to) { to = 1; }; keep(z[n]);", False),
    ("Held h{z, n}; y[0] = h.z[h.n];", True),
    ("Held h{z, n}; h.z[h.n] = 0;", False),
    ("asm volatile(\"ld\" :: \"l\"(z)); z[n] = 1;", False),
    ("\n#ifdef __gfx90a__\nz[n] = 1;\n#else\ny[n] = z[n];\n#endif\n", False),
    ("\n#ifdef __HIP_DEVICE_COMPILE__\nz[n] = 1;\n#else\ny[n] = z[n];\n#endif\n", False),
    ("\n#ifdef FAST\ny[n] = z[n];\n#else\nz[n] = 1;\n#endif\n", False),
    ("STORE(z[n], 1);", False),
]  # fmt: skip


@pytest.mark.parametrize(("body", "wanted"), CASES)
def test_what_is_not_certain_is_not_read(tmp_path: Path, body: str, wanted: bool) -> None:
    source = tmp_path / "k.hip"
    source.write_text(HEAD + f"__global__ void k(float* y, float* z, int n) {{ {body} }}\n")
    assert Reads(source, []).certain("k", 3, 1) is wanted


def test_the_command_line_and_headers_decide(tmp_path: Path) -> None:
    source = tmp_path / "k.hip"
    source.write_text(
        HEAD + "__global__ void k(float* y, float* z, int n) { STORE(z[n], y[n]); }\n"
    )
    (tmp_path / "own.h").write_text("#define STORE(to, value) value = to\n")
    (tmp_path / "front.h").write_text("#define STORE(to, value) to += value\n")
    assert not Reads(source, []).certain("k", 3, 1)
    assert Reads(source, [], (), {"USE_HEADER": "1"}).certain("k", 3, 1)
    assert Reads(source, [], [tmp_path / "front.h"]).certain("k", 3, 1)


def test_all_kernels_that_may_be_meant_have_to_read(tmp_path: Path) -> None:
    source = tmp_path / "k.hip"
    source.write_text(
        "struct Held { struct { float* z; } in; };\n"
        "__global__ void k(float* z, int n) { z[n] += 1; }\n"
        "__global__ void k(float* z, long n) { z[n] = 1; }\n"
        "template <typename T> __global__ void l(T* z, Held* h) { z[0] = h[1].in.z[2]; }\n"
    )
    reads = Reads(source, [])
    assert not reads.certain("k", 2, 0)
    assert not reads.certain("none", 2, 0)
    assert not reads.certain("l", 2, 0)
    assert reads.certain("l", 2, 1, "[1].in.z")
    assert not reads.certain("l", 2, 1, "[1].in.other")
