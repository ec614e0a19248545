"""Elements that a body reaches of an array, at given sizes in a given launch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli.cpp import number_bounds
from tokitai_cli.cpp.body.meanings import Dependencies
from tokitai_cli.cpp.body.polynomial import Polynomial
from tokitai_cli.cpp.body.reader import read
from tokitai_cli.cpp.index_bounds import IndexBounds, launched
from tokitai_cli.cpp.intervals import Interval, point
from tokitai_cli.cpp.preprocessed_unit import preprocess
from tokitai_cli.cpp.program import Program

N, THREADS, BLOCKS = 100, 64, 4
FLAT = "int i = blockIdx.x * blockDim.x + threadIdx.x; "
HEAD = """\
#define AT(a, b) ((b) * n + (a))
struct Edge { int to; float weight; };
struct Rows { float* p; int w; __device__ float& at(int x, int y) { return p[y * w + x]; } };
constexpr int W = 4 * 8;
__device__ int held(int at, int n) { if (at >= n) return n - 1; if (at < 0) return 0; return at; }
__device__ void fill(float* x, int n);
template <typename T> __device__ T up(T a, T b) { return (a + b - 1) / b; }
"""


def bounds(body: str, **known: int) -> IndexBounds:
    parameters = "float* x, const int* ids, const Edge* edges, float** rows, int n, int m, float u"
    text = f"{HEAD}__global__ void k({parameters}) {{ {body} }}"
    program = Program(preprocess(Path("k.hip"), text=text))
    facts = read(program, program.kernels[0])
    values = {name: point(value) for name, value in ({"n": N, "m": 7} | known).items()}
    names = values | launched("thread", [THREADS]) | launched("block", [BLOCKS])
    return IndexBounds(facts, names, {"ids": Interval(-2, 9), "edges": Interval(0, 0)})


# Body, and elements of x.
CASES = {
    "all threads": (f"{FLAT} x[i] = 1;", 256),
    "a guard": (f"{FLAT} if (i < n) x[i] = 1;", 100),
    "a guard that is a variable": (f"{FLAT} const bool in = i < n; if (in) x[i] = 1;", 100),
    "a guard that is a choice": (f"{FLAT} float v = i < n ? x[i] : 0;", 100),
    "what returns early": (f"{FLAT} if (i >= n) return; x[i + 2] = 1;", 102),
    "one of two that return early": (f"{FLAT} if (i < 0 || i >= n) return; x[i] = 1;", 100),
    "a loop": ("for (int i = threadIdx.x; i <= n; i += 64) x[2 * i] = 1;", 201),
    "pieces": ("for (int i = 0; i < n; i += 8) for (int j = 0; j < 2; j++) x[i + j] = 1;", 98),
    "whole steps": ("for (int i = 8 * threadIdx.x; i < n; i += 8) x[i + 7] = 1;", 104),
    "pieces that are compared": (
        "int i = 8 * threadIdx.x; for (int c = 0; c < 9; ++c) if (i + 64 * c < n)"
        " x[i + 64 * c + 7] = 1;",
        104,
    ),
    "wide steps": ("for (int i = 8 * threadIdx.x; i < n; i += 8 * 64) x[i + 7] = 1;", 104),
    "whole steps of the size": ("for (int i = 0; i < n; i += 4) x[i + 3] = 1;", 100),
    "a loop with !=": ("for (int i = 0; i != n; ++i) x[i] = 1;", 100),
    "backwards": ("for (int i = n - 1; i >= 0; --i) x[i] = 1;", 100),
    "while (n--)": ("int i = n; while (i--) x[i] = 1;", 100),
    "halves": ("for (int s = n / 2; s > 0; s >>= 1) if (threadIdx.x < s) x[threadIdx.x + s] = 1;", 100),
    "doubles": ("for (int s = 1; s < n; s *= 2) x[s] = 1;", 100),
    "one of two steps": ("int a = 0; for (int i = 0; i < n; ++i) { x[a] = 1; a = i % 3; }", 3),
    "behind a loop": ("int i = 0; for (; i < n; i += 8) ; x[i] = 1;", 105),
    "do and while": ("int i = threadIdx.x; do { x[i] = 1; i += 64; } while (i < n);", 100),
    "a break": ("int i = threadIdx.x; while (true) { if (i >= n) break; x[i] = 1; i += 64; }", 100),
    "a second counter": ("for (int i = 0, j = n; i < j; ++i, --j) x[j] = 1;", 101),
    "a quotient that is compared": (
        "int i = threadIdx.x, row = i / 5; if (row < m) x[row * 5 + i % 5] = 1;", 35,
    ),
    "a moving pointer": (
        "float* p = x + threadIdx.x; for (int k = 0; k < m; ++k) { *p = 1; p += n; }", 664,
    ),
    "/ and %": ("int at = threadIdx.x % 8, row = threadIdx.x / 8; x[row * n + at] = 1;", 708),
    "narrow rows": ("int at = threadIdx.x % 8, row = threadIdx.x / 8; x[row * 5 + at] = 1;", 43),
    "/ and % of three": (
        f"{FLAT} if (i < n * m * 3) x[((i / 3) % m * 3 + i % 3) * n + i / 3 / m] = 1;", 2013,
    ),
    "bits": ("for (int r = 0; r < n; ++r) x[r * W + (threadIdx.x & 3)] = 1;", 99 * 32 + 4),
    "a mask": ("x[n & ~3] = 1;", 101),
    "a choice": ("int i = threadIdx.x > 3 ? n : 7; x[min(i, 50)] = 1;", 51),
    "the lesser of what is unknown": ("x[min(max((int)u, 0), n - 1)] = 1;", 100),
    "a choice by what it is": ("int i = threadIdx.x; i = i < 9 ? i : 8; x[i] = 1;", 9),
    "a branch": ("int i = threadIdx.x; if (i >= 9) i = 0; x[i] = 1;", 9),
    "a helper": ("x[held(threadIdx.x * 40, n)] = 1;", 100),
    "a helper of a template": (
        "for (int i = 0; i < up(n, 32); ++i) x[i * 32 + threadIdx.x % 32] = 1;", 128,
    ),
    "a new value": ("int i = threadIdx.x; x[i] = 1; i = n; x[i] = 2;", 101),
    "a value of itself": ("int i = threadIdx.x; if (i >= 9) return; i = i * 4; x[i + 3] = 1;", 36),
    "two of itself": ("int i = threadIdx.x; i <<= 2; i += 1; x[i] = 1;", 63 * 4 + 2),
    "in front of a guard": ("int i = threadIdx.x; x[i] = 1; if (i > 3) return; x[i + 1] = 1;", 64),
    "beside a guard": ("int i = threadIdx.x; bool low = i < 5; x[i] = 1; if (low) x[i + 1] = 2;", 64),
    "two of one name": ("if (n) { int k = threadIdx.x; x[k] = 1; } { int k = 200; x[k] = 1; }", 201),
    "another statement's guard": ("int k = threadIdx.x; if (k < 2) ids[k]; x[k * 3] = 1;", 190),
    "a block": ("int k = threadIdx.x; if (k < 2) { x[k] = 1; }", 2),
    "never at these sizes": ("if (n > 200) x[n * n] = 1; else x[3] = 1;", 4),
    "no thread is that far": ("if (threadIdx.x >= 64) x[n * n] = 1; x[0] = 1;", 1),
    "values of an array": ("if (threadIdx.x < 4) x[ids[threadIdx.x]] = 1;", 10),
    "differences of them": ("int a = ids[0], b = ids[1]; for (int k = a; k < b; ++k) x[k - a] = 1;", 11),
    "fields of structs": ("x[edges[threadIdx.x].to + 2] = 1;", 3),
    "by a shared array": (
        "__shared__ int s[64]; s[threadIdx.x] = ids[threadIdx.x]; x[s[n % 64]] = 1;", 10,
    ),
    "by a table": ("const int t[4] = {0, 5, 12, 1}; x[t[threadIdx.x & 3]] = 1;", 13),
    "of another lane": ("int v = threadIdx.x % 8; x[__shfl_sync(~0u, v, 3)] = 1;", 8),
    "a macro": ("x[AT(threadIdx.x, 2)] = 1;", 2 * 100 + 64),
    "vectors": ("reinterpret_cast<float4*>(x)[threadIdx.x] = make_float4(1, 1, 1, 1);", 256),
    "a copy": ("memcpy(x + threadIdx.x * 4, ids, 4 * sizeof(float));", 256),
    "a copy of a size": ("memcpy(x + n, ids, n * sizeof(float));", 200),
    "a member function": ("Rows r{x, m}; r.at(threadIdx.x % m, threadIdx.x / m) = 1;", 64),
    "real numbers": ("float at = (float)threadIdx.x / 64 * n; x[(int)at] = 1;", 99),
    "a sum of real numbers": ("x[(int)(threadIdx.x * u)] = 1;", None),
    "a step that nobody knows": ("int i = 0; while (more()) i++; x[i] = 1;", None),
    "a function of a library": ("x[hash(threadIdx.x)] = 1;", None),
    "values that are not known": ("x[(int)x[0]] = 1;", None),
    "handed on": ("fill(x, n);", None),
    "an element that is handed on": ("unknown(x[threadIdx.x]);", 64),
    "an element of assembly": ('asm volatile("mov.f32 %0, 1;" : "=f"(x[threadIdx.x]));', 64),
    "a part that cannot be read": ("x[0] = 1; $ @ ; int q = 3;", None),
    "one of two pointers": ("float* p = n > m ? x : rows[0]; p[3] = 1;", None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_indices_are_bounded_by_launch_guards_and_values(name: str) -> None:
    body, wanted = CASES[name]
    assert bounds(body).elements("x") == wanted


def test_rows_behind_several_pointers_have_their_own_elements() -> None:
    found = bounds("rows[1][threadIdx.x] = 1; rows[0][n] = 1;")
    assert [found.elements("rows", row) for row in (None, 0, 1)] == [101, 101, 64]


def test_an_array_that_is_not_touched_needs_nothing_and_one_that_may_be_is_not_known() -> None:
    found = bounds("x[0] = 1; fill((float*)ids, n); unknown(rows);")
    assert [found.elements(one) for one in ("edges", "ids", "rows")] == [0, None, None]


def test_bounded_indices_count_where_others_are_not_known() -> None:
    found = bounds("x[threadIdx.x] = 1; x[hash(n)] = 1;")
    assert (found.elements("x"), found.elements("x", least=True)) == (None, 64)


@pytest.mark.parametrize(
    ("body", "beyond"),
    [
        ("__shared__ float s[64]; s[threadIdx.x] = 1;", False),
        ("__shared__ float s[W]; s[threadIdx.x] = 1;", True),
        ("__shared__ float s[8][8]; s[threadIdx.x / 8][threadIdx.x % 8] = 1;", False),
        ("__shared__ float s[8][7]; s[threadIdx.x / 7][threadIdx.x % 7] = 1;", True),
        ("extern __shared__ float s[]; s[threadIdx.x] = 1;", False),
        ("float s[8]; s[threadIdx.x] = 1;", False),
    ],
)
def test_indices_beyond_shared_arrays_are_seen(body: str, *, beyond: bool) -> None:
    assert bounds(body).goes_beyond_shared() is beyond


def test_dynamic_shared_memory_is_bounded_by_its_name() -> None:
    found = bounds("extern __shared__ float s[]; float* t = s + n; t[threadIdx.x] = s[0];")
    assert found.elements("local s") == 164


def test_a_question_that_takes_all_that_one_may_makes_the_next_ones_cheap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(number_bounds, "_BUDGET", 40)
    monkeypatch.setattr(number_bounds, "_LESS", 5)
    steps = " ".join(f"if (i < n + {at}) i = i * {at + 2} - i / {at + 3};" for at in range(12))
    body = f"int i = threadIdx.x; {steps} y[i] = 1; y[threadIdx.x] = x[threadIdx.x];"
    text = f"__global__ void k(const float* x, float* y, int n) {{ {body} }}"
    program = Program(preprocess(Path("k.hip"), text=text))
    facts = read(program, program.kernels[0])
    dependencies = Dependencies(facts)
    known = {"n": point(9), **launched("thread", [32])}
    assert IndexBounds(facts, known, {}, dependencies).elements("y") is None
    assert dependencies.hard
    assert IndexBounds(facts, known, {}, dependencies).elements("x") == 32


def test_atoms_are_in_the_order_of_terms() -> None:
    names = [f"n{at}" for at in range(40)]
    assert [*Polynomial({(one,): 1 for one in names}).atoms()] == names
