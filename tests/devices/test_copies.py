"""Vectors copied as a whole from where they may not lie: a fault with every compiler."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.compilers import CLANG
from tests.runs import run
from tests.spec_example import example, write_example
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.verdict import Verdict

SUM = "        c[i] = a[i] + b[i];\n"
COMPILERS = [
    pytest.param(
        name, id=kind, marks=pytest.mark.skipif(not shutil.which(name), reason=f"no {kind}")
    )
    for kind, name in (("gcc", "g++"), ("clang", CLANG))
]
# Of the vector T at an address.
USES = ("const T v = *at(a); use(v);", "*at(c) = T();")


def judged(folder: Path, before: str, inside: str) -> Evidence:
    kernel = example("vector_add.hip").replace("__global__", f"{before}\n__global__")
    kernel = kernel.replace(SUM, f"{inside}\n{SUM}")
    path = write_example(
        folder, kernel=f"#include <hip/hip_bf16.h>\n#include <hip/hip_fp16.h>\n{kernel}"
    )
    return run(path, folder / "out", shapes={"n": 100}, profile=["normal"])


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(("vector", "off"), [("int2", 4), ("half2", 2), ("__hip_bfloat162", 2)])
def test_a_misaligned_copy_is_a_fault(
    compiler: str, vector: str, off: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", compiler)
    for shift, text in ((0, " ".join(USES)), *((off, one) for one in USES)):
        before = (
            f"using T = {vector};\n"
            f"__device__ T* at(const float* p) {{ return (T*)((char*)p + {shift}); }}\n"
            "__device__ void use(T v) { if (float(v.x) == 1e30f) __builtin_trap(); }\n"
        )
        found = judged(tmp_path / f"{shift}{len(text)}", before, f"if (i == 8) {{ {text} }}")
        if shift:
            assert found.verdict is Verdict.CRASHED, (text, found.reason)
            assert "misaligned" in found.reason
            assert "vector_add.hip" in found.reason
        else:
            assert found.verdict in {Verdict.VERIFIED, Verdict.REFUTED}, found.reason


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_union_of_a_vector_is_copied(
    compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", compiler)
    found = judged(
        tmp_path,
        "union Both { float4 v; float f[4]; };",
        "Both x; x.v = make_float4(1, 2, 3, 4); Both y = x; if (y.f[3] != 4) c[i] = 1;",
    )
    assert found.verdict is Verdict.VERIFIED, found.reason
    unseen = [one.text for one in found.non_claims if "whole-vector copies" in one.text]
    assert len(unseen) == (compiler == CLANG)
