"""Macros of a kernel's source must not touch the harness: else it breaks, or judges another kernel."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.runs import run
from tests.spec_example import example, write_example
from tokitai_cli.core import resources
from tokitai_cli.core.model.verdict import Verdict

# C++ and the preprocessor; the rest of HIP's own words begin with two underscores.
KEYWORDS = """
    alignas alignof and asm auto bitand bitor bool break case catch char class compl const
    constexpr const_cast continue decltype default define defined delete do double dynamic_cast
    elif else endif enum error explicit extern false float for friend goto hip if ifdef ifndef
    include inline int line long main mutable namespace new noexcept not nullptr once operator
    or pop_macro pragma private protected public push_macro register reinterpret_cast return
    short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename undef union unsigned using virtual void
    volatile while xor
"""
# What the kernel itself says.
OWN = frozenset(["vector_add", "blockIdx", "blockDim", "threadIdx", "x", "half_sum", "weight", "h"])


def names() -> list[str]:
    """Every name that stands in host headers or harness, and that a source may define as a macro."""
    found: set[str] = set()
    for folder in ("host", "harness"):
        for path in (resources.kernels_dir() / folder).rglob("*.*"):
            text = re.sub(r'"[^"\n]*"|//.*|<[\w/.]+>', " ", path.read_text(encoding="utf-8"))
            found.update(re.findall(r"\b[A-Za-z][A-Za-z0-9_]*\b", text))
    own = {name for name in found if name.lower().startswith(("tokitai_", "r_", "elf"))}
    return sorted(found - own - {*KEYWORDS.split(), *OWN, "TOKITAI"})


def kernel(macros: str) -> str:
    text = (
        example("vector_add.hip")
        .replace("float* a", "T* a")
        .replace("[i] + b", "[i] + weight(h) * b")
    )
    half = "#include <hip/hip_fp16.h>\n__device__ T weight(__half h) { return T(h); }\n"
    text = text.replace("__global__", f"#define T float\n{half}__global__")
    return macros + text.replace("int i =", "__half h = __half(1.0f);\n    int i =")


@pytest.mark.parametrize("value", ["", " 0", " (tokitai_poison.none)"])
def test_any_name_of_the_harness_may_be_a_macro(tmp_path: Path, value: str) -> None:
    defined = [name for name in names() if name not in {"T", "a", "b", "c", "n", "i"}]
    assert len(defined) > 900
    text = "".join(f"#define {name}{value}\n" for name in defined)
    path = write_example(tmp_path, kernel=kernel(text))
    found = run(path, tmp_path / "out", shapes={"n": 100}, profile=["normal"])
    assert found.verdict is Verdict.VERIFIED, found.reason


def test_defines_and_flags_of_the_spec_do_not_touch_it_either(tmp_path: Path) -> None:
    path = write_example(tmp_path, kernel=kernel(""))
    text = path.read_text(encoding="utf-8")
    given = "    defines: {P: 3, block: 64, Word: 1}\n    flags: [-Dsize=7, -Dmemcmp(a, -DNDEBUG]\n"
    given = given.replace("-Dmemcmp(a", '"-Dmemcmp(a,b,n)=0"')
    path.write_text(text.replace("    oracle:", given + "    oracle:"), encoding="utf-8")
    found = run(path, tmp_path / "out", shapes={"n": 100}, profile=["normal"])
    assert found.verdict is Verdict.VERIFIED, found.reason


def test_a_macro_does_not_hide_a_write_into_an_input(tmp_path: Path) -> None:
    text = kernel("#define memcmp(a, b, n) 0\n").replace("const T* a", "T* a")
    text = text.replace("c[i] =", "a[i] = 0.0f; c[i] =").replace("const float* a", "float* a")
    wrong = text.replace("T* a", "T* a", 1)
    path = write_example(tmp_path, kernel=wrong)
    found = run(path, tmp_path / "out", shapes={"n": 100}, profile=["normal"])
    assert found.verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("kernel: vector_add", "kernel: vector_sub", r"variants\.main\.launches\[0\]\.kernel"),
        ("args: [a, b, c, n]", "args: [a, b, c]", r"variants\.main\.launches\[0\]\.kernel"),
        ("c: {dtype: float32", "c: {dtype: float16", r"variants\.main\.launches\[0\]\.args\[2\]"),
    ],
)
def test_what_does_not_fit_the_kernel_is_told_by_the_key_of_the_spec(
    tmp_path: Path, old: str, new: str, key: str
) -> None:
    path = write_example(tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(old, new).replace("n, c]", "n]"), encoding="utf-8")
    # What hangs on a compiler's own macros is known to the compiler alone.
    body = "(const float* a, const float* b, float* c, int n) { c[0] = a[0] + b[0] * n; }"
    made = f"#if __SIZEOF_INT__ == 4\n__global__ void vector_add{body}\n#endif\n"
    (path.parent / "vector_add.hip").write_text(made, encoding="utf-8")
    found = run(path, tmp_path / "out", shapes={"n": 100}, profile=["normal"])
    assert found.verdict is Verdict.BUILD_FAILED
    (record,) = found.builds.values()
    assert re.match(key, record.failed[0]), record.failed
    assert "harness.cpp" not in record.failed[0]
