"""Kernels are taken out of programs: what they reach stays, host code goes, lines keep their numbers."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from tokitai_cli.cpp.extraction import ExtractedProgram, extracted
from tokitai_cli.cpp.lexing import blank
from tokitai_cli.cpp.policy import CUDA, passes_of
from tokitai_cli.cpp.source.signatures import kernels_of, unlisted
from tokitai_cli.cpp.source.source_files import has_host_code
from tokitai_cli.cpp.whole import program_of

PROGRAM = """\
#include <iostream>
#include <hip/hip_runtime.h>
#include <fancy/device.h>
#define CHECK(x) do { if ((x) != hipSuccess) std::cerr << "no"; } while (0)
#define TILE 16
#define HD __host__ __device__
typedef float real;
struct Timer { hipEvent_t e; };
struct Pair {
  real a, b;
  Pair(std::vector<real> v) : a(v[0]), b(v[1]) {}
  HD real sum() const { return a + b; }
  void print() { std::cout << a; }
};
__constant__ real table[TILE];
static const int unused = rand();
HD inline real twice(real x) { return 2 * x; }
real twice_on_host(real x) { return 2 * x; }
template <typename T>
__global__ void __launch_bounds__(256) k(const T* x, T* y, Pair p, int n) {
  int i = threadIdx.x;
  if (i < n) y[i] = twice(x[i]) + table[i] + p.sum();
}
__global__ void other(float* x) { x[0] = wmma_of_some_gpu(x[0]); }
TEST(A, B) { EXPECT_EQ(1, 1); }
int main() {
  float *x, *y;
  CHECK(hipMalloc(&x, 4));
  k<float><<<dim3(1), 256, 0, 0>>>(x, y, Pair(std::vector<real>{1, 2}), 1);
  hipLaunchKernelGGL(other, dim3(1), dim3(1), 0, 0, x);
}
"""


def extract(source: Path, folders: Sequence[Path] = (), *wanted: str) -> ExtractedProgram:
    passes = passes_of("cpu", "", source.suffix in CUDA, {}, {"__HIP_DEVICE_COMPILE__": "1"})
    return extracted(source, folders, wanted, passes)


def placed(told: ExtractedProgram) -> dict[tuple[Path, int], str]:
    """Lines of what was taken, by the place that #line gives them."""
    found: dict[tuple[Path, int], str] = {}
    file, number = Path(), 0
    for line in told.text.splitlines():
        if led := re.fullmatch(r'#line (\d+) "(.*)"', line):
            file, number = Path(led[2]), int(led[1])
            continue
        if file != Path() and line.strip() and not line.startswith("#"):
            found[file, number] = line.rstrip()
        number += 1
    return found


def taken(folder: Path, text: str, *wanted: str) -> dict[int, str]:
    """Lines of what is taken of `text`, by their numbers in it."""
    source = folder / "k.cu"
    source.write_text(text)
    lines = placed(extract(source, (), *wanted))
    assert {path for path, _ in lines} <= {source}
    return {number: line for (_, number), line in lines.items()}


def test_what_a_kernel_reaches_stays_and_keeps_its_place(tmp_path: Path) -> None:
    found = taken(tmp_path, PROGRAM, "k")
    assert [*found] == [7, 9, 10, 11, 12, 14, 15, 17, *range(19, 24)]
    changed = {
        11: "  Pair(std::vector<real> v) ;",
        12: "  __host__ __device__ real sum() const { return a + b; }",
        15: "__constant__ real table[16];",
        17: "__host__ __device__ inline real twice(real x) { return 2 * x; }",
    }
    whole = dict(enumerate(PROGRAM.splitlines(), 1)) | changed
    assert found == {number: whole[number] for number in found}


def test_what_nvcc_defines_is_there_where_a_program_asks_for_it(tmp_path: Path) -> None:
    text = (
        "#ifndef CUDART_VERSION\n#error none\n#endif\n__global__ void k(float* y) { y[0] = 1; }\n"
    )
    text = text.replace("= 1", "= CUDART_VERSION")
    for name, told in (("k.cu", "12040"), ("k.hip", "CUDART_VERSION")):
        (tmp_path / name).write_text(text)
        (line,) = placed(extract(tmp_path / name)).items()
        assert line == ((tmp_path / name, 4), f"__global__ void k(float* y) {{ y[0] = {told}; }}")


def test_names_that_macros_put_together_are_reached(tmp_path: Path) -> None:
    text = (
        "__device__ float scale_two(float x) { return 2 * x; }\n"
        "__device__ float scale_ten(float x) { return 10 * x; }\n"
        "#define CALL(NAME, x) scale_##NAME(x)\n"
        "#define MAKE(NAME) __global__ void run_##NAME(float* y) { y[0] = scale_##NAME(y[1]); }\n"
        "MAKE(two)\n"
        "__global__ void by_call(float* y) { y[0] = CALL(ten, y[1]); }\n"
    )
    whole = "\n".join(taken(tmp_path, text, "run_two").values())
    assert "scale_two(float" in whole
    alone = "\n".join(taken(tmp_path, text, "by_call").values())
    assert "scale_ten(float" in alone
    plain = text.replace("MAKE(two)\n", "")
    assert "scale_two(float" not in "\n".join(taken(tmp_path, plain, "by_call").values())


def test_what_was_left_out_is_told_by_lines(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(PROGRAM)
    told = extract(source, (), "k")
    assert told.left_out == {source: [(8, 8), (11, 11), (13, 13), (16, 16), (18, 18), (24, 31)]}
    assert told.optional == ["fancy/device.h"]
    assert told.files == (source,)


def test_without_a_kernel_all_are_taken(tmp_path: Path) -> None:
    assert any("wmma_of_some_gpu" in line for line in taken(tmp_path, PROGRAM).values())
    assert not any("wmma_of_some_gpu" in line for line in taken(tmp_path, PROGRAM, "k").values())


def test_a_missing_header_is_asked_for_and_does_not_move_lines(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(PROGRAM)
    found = extract(tmp_path / "k.cu", (), "k").text.splitlines()
    place = found.index("#if __has_include(<fancy/device.h>)")
    assert found[place + 5] == "#include <fancy/device.h>"  # amid what takes HIP's votes away
    assert found[place + 8 : place + 10] == ["#endif", f'#line 7 "{tmp_path / "k.cu"}"']


def test_own_headers_are_taken_apart_as_the_source_is(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "of.h").write_text(
        "#pragma once\n__device__ int of() { return 1; }\nvoid host() { hipFree(0); }\n"
    )
    source = tmp_path / "k.cu"
    source.write_text(
        '#include "of.h"\n#include <of.h>\n__global__ void k(int* x) { *x = of(); }\n'
    )
    told = extract(source, [tmp_path / "sub"], "k")
    assert placed(told) == {
        (tmp_path / "sub" / "of.h", 2): "__device__ int of() { return 1; }",
        (source, 3): "__global__ void k(int* x) { *x = of(); }",
    }
    assert told.files == (source, tmp_path / "sub" / "of.h")
    assert told.left_out == {tmp_path / "sub" / "of.h": [(3, 3)]}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("DEFINE(float)\nint main() {}\n", "VOID k_float(float* x) { *x = 1; }"),
        ("DEFINE(float);\nint main() {}\n", "VOID k_float(float* x) { *x = 1; }"),
        ("RUN(float)\nint main() {}\n", ""),
        (
            "static KERNEL f(int* x) { *x = 1; }\nint main() {}\n",
            "static VOID f(int* x) { *x = 1; }",
        ),
        ("EMPTY KERNEL f(int* x)\n{\n}\n", " VOID f(int* x)\n{\n}"),
        ("#if 0\nvoid f( {\n#endif\nKERNEL g() {}\nvoid h() {}", "VOID g() {}"),
        (
            "#ifdef A\nKERNEL f(int a) {\n#else\nKERNEL f() {\n#endif\n}\nvoid h() {}",
            "VOID f() {\n}",
        ),
        ('extern "C" {\nKERNEL f() {}\nvoid g();\n}', 'extern "C" {\nVOID f() {}\n}'),
        ('extern "C" void g();\nextern "C" KERNEL f() {}', 'extern "C" VOID f() {}'),
        ("void g() {\n#ifdef A\n  h();\n#endif\n}\nKERNEL f() {}", "VOID f() {}"),
        (
            "KERNEL f() { c(); }\nconstexpr int c() { return E2; }\nenum E { E1, E2 };\nint d = c();",
            "VOID f() { c(); }\nconstexpr int c() { return E2; }\nenum E { E1, E2 };",
        ),
        ("/* { */ KERNEL f() { // }\n}", "VOID f() {\n}"),
        ('KERNEL f() {\n#pragma unroll\nfor (;;) g("//");\n}', 'VOID f() {\nfor (;;) g("//");\n}'),
    ],
)
def test_forms_of_real_programs(tmp_path: Path, text: str, want: str) -> None:
    head = (
        "#define KERNEL __global__ void\n#define EMPTY\n#define RUN(T) void run_##T() { main(); }\n"
        "#define DEFINE(T) KERNEL k_##T(T* x) { *x = 1; }\n"
    )
    found = taken(tmp_path, head + text)
    assert "\n".join(found.values()).strip() == want.replace("VOID", "__global__ void").strip()


@pytest.mark.parametrize(
    "front",
    [
        "__global__ void BOUNDS_1(512)",
        "__global__ BOUNDS_2(f(512), 4) void",
        "BOUNDS_1(512) __global__ void",
        "API_WORD __global__ void",
    ],
)
def test_macros_of_absent_headers_may_stand_like_attributes(front: str, tmp_path: Path) -> None:
    text = f"template <typename T>\n{front} k(T* x, int n) {{ x[n] = 0; }}\n"
    (tmp_path / "k.cu").write_text(text)
    (kernel,) = kernels_of(program_of(tmp_path / "k.cu", [], {}))
    assert (kernel.name, [one.text for one in kernel.parameters]) == ("k", ["T* x", "int n"])
    assert front in extract(tmp_path / "k.cu").text  # the compiler's to read


def test_host_code_is_told_from_kernels() -> None:
    kernels = textwrap.dedent(
        """
        #include <cmath>
        #ifndef TOKITAI
        int main() { k<<<1, 1>>>(); }
        #endif
        __global__ void k() {}  // launched as k<<<1, 1>>>()
        """
    )
    assert not has_host_code([kernels])
    assert has_host_code(["", "void f() { hipMalloc(&x, 4); }"])
    assert has_host_code([PROGRAM])


def test_hollow_literals_keep_their_quotes() -> None:
    assert blank("a(\"b<<<\", 'c'); // d", quotes=True) == "a(\"    \", ' ');     "


@pytest.mark.parametrize("name", ["benchmark/benchmark.h", "gtest/gtest.h", "mpi.h", "iostream"])
def test_libraries_of_tests_and_bindings_are_left_out(tmp_path: Path, name: str) -> None:
    (tmp_path / "k.cu").write_text(
        f"#include <{name}>\n__global__ void k() {{}}\nint main() {{}}\n"
    )
    assert "include" not in extract(tmp_path / "k.cu").text


def test_namespaces_of_headers_that_are_not_there_are_declared(tmp_path: Path) -> None:
    text = (
        "namespace py = pybind11;\nusing namespace py::literals;\nusing namespace std;\n"
        "__global__ void k() {}\nint main() {}\n"
    )
    assert [*taken(tmp_path, text)] == [1, 2, 3, 4]
    front = extract(tmp_path / "k.cu").text.partition("#line")[0].split("\n")
    assert front[0].strip() == "namespace pybind11 { }"
    assert front[1].strip() == "namespace pybind11 { namespace literals { } }"
    assert front[2].strip() == "namespace std { }"


def test_namespaces_are_declared_where_no_other_hides_them(tmp_path: Path) -> None:
    text = (
        "namespace own {\nnamespace cg = cooperative_groups;\n__global__ void k() { cg::f(); }\n}\n"
    )
    assert taken(tmp_path, text)[2] == "namespace cg = cooperative_groups;"
    front = extract(tmp_path / "k.cu").text.partition("#line")[0]
    assert front.strip() == "namespace cooperative_groups { }"


def test_members_over_types_of_bindings_are_left_out(tmp_path: Path) -> None:
    text = """\
struct Table {
  int* keys;
  Table(torch::Tensor k) : keys(k.data_ptr<int>()) {}
  void insert(torch::Tensor k);
  at::Tensor lookup(int n);
  __device__ int get(int i) const { return keys[i]; }
};
__global__ void k(Table t, int* y) { *y = t.get(0); }
"""
    assert [*taken(tmp_path, text)] == [1, 2, 6, 7, 8]


def test_headers_of_cuda_are_a_hosts() -> None:
    """A .cu that includes nothing else is read as a program: those headers are not there."""
    for name in ("cuda_runtime.h", "cuda_fp16.h", "curand_kernel.h", "cooperative_groups.h"):
        assert has_host_code([f"#include <{name}>\n__global__ void k() {{}}\n"])
    assert not has_host_code(["#include <hip/hip_runtime.h>\n__global__ void k() {}\n"])


def test_device_functions_of_another_source_are_joined(tmp_path: Path) -> None:
    (tmp_path / "shared.h").write_text("__device__ float twice(const float& x);\n")
    (tmp_path / "more.cu").write_text(
        '#include "shared.h"\n#include <vector>\nstatic const float by = 2;\n'
        "__device__ float once(float);\n"
        "__device__ float twice(const float& x) { return by * once(x); }\n"
        "__global__ void theirs(float* y) { *y = twice(1); }\nint main() { return 0; }\n"
    )
    (tmp_path / "third.cu").write_text("__host__ __device__ float once(float x) { return x; }\n")
    (tmp_path / "unused.cu").write_text("__device__ float thrice(float x) { return 3 * x; }\n")
    text = (
        '#include "shared.h"\n#include <iostream>\nstatic const float by = 3;\n'
        "__global__ void ours(float* y) { *y = twice(by); }\n"
    )
    (tmp_path / "k.cu").write_text(text)
    whole = program_of(tmp_path / "k.cu", [], {})
    assert [one.name for one in kernels_of(whole)] == ["ours"]
    assert [one.name for one in whole.joined] == ["more.cu", "third.cu"]
    assert list(unlisted(whole)) == []
    told = extract(tmp_path / "k.cu")
    assert told.beside == (tmp_path,)
    lines = placed(told)
    assert (tmp_path / "more.cu", 5) in lines
    assert sum(path.name == "shared.h" for path, _ in lines) == 1  # what both include stands once
    assert re.search(r"#define by by_1\n(?:#line.*\n)?static const float by = 2;", told.text)
    assert "return by * once(x)" in told.text
    for name in ("theirs", "main", "thrice"):
        assert name not in told.text


def test_what_a_host_cannot_build_is_left_out_or_said_in_another_way(tmp_path: Path) -> None:
    text = """\
#include <iostream>
#include <chrono>
using namespace std;
using namespace chrono;
struct Point {
  float x;
  float of_host() const { return x; }
  friend ostream& operator<<(ostream& out, const Point& p) { return out << p.of_host(); }
};
__device__ __forceinline__ int odd(int n);
__device__ __forceinline__ int even(int n) { return n == 0 || odd(n - 1); }
__device__ __forceinline__ int odd(int n) { return n != 0 && even(n - 1); }
__device__ __forceinline__ int half(int n) { return n / 2; }
__global__ void k(Point* p) { p->x = even(half(3)); }
"""
    whole = "\n".join(taken(tmp_path, text).values())
    assert re.findall(r"(\w+) +int (\w+)\(int n\)", whole) == [
        ("inline", "odd"), ("inline", "even"), ("inline", "odd"), ("__forceinline__", "half")
    ]  # fmt: skip
    assert "operator<<" not in whole
    assert "namespace std { namespace chrono { } }" in extract(tmp_path / "k.cu").text


def test_an_instantiation_behind_a_comment_that_ends_in_a_dot_is_one(tmp_path: Path) -> None:
    """`x.template f(1)` is read without the word, which is no reason to leave it to the build alone."""
    text = """struct Plan { void* kernel; };
template <class T> __global__ void k(T* y, int n) { y[threadIdx.x] = n; }
template <class T> Plan chosen(int s) { return {(void*)k<T>}; }
// Instances of this file.

template Plan chosen<double>(int s);
"""
    (whole,) = taken(tmp_path, text).values()
    assert whole.count("template") == 1
