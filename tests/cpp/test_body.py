"""What a kernel's body does with its arrays: spellings of one kernel agree, doubt is told as such."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cpp import spellings
from tokitai_cli.cpp.body.reader import read, roles
from tokitai_cli.cpp.body.symbolic_values import Facts
from tokitai_cli.cpp.body.walk import BUDGET
from tokitai_cli.cpp.preprocessed_unit import preprocess
from tokitai_cli.cpp.program import Program

FLAT = "blockDim.y*blockIdx.y*w + blockDim.x*blockIdx.x + threadIdx.y*w + threadIdx.x"


def facts_of(text: str) -> Facts:
    program = Program(preprocess(Path("k.hip"), text=text))
    (kernel,) = program.kernels
    return read(program, kernel)


@pytest.mark.parametrize("name", spellings.BODIES)
def test_spellings_of_one_kernel_read_and_write_the_same(name: str) -> None:
    found = facts_of(spellings.source(spellings.BODIES[name]))
    assert roles(found) == {"in": "read", "out": "write"}
    offsets = {str(one.offset) for one in found.accesses}
    assert len(offsets) == 1
    assert offsets == {FLAT} or name in {"rows by a loop", "walking pointers"}


def test_generated_spellings_read_and_write_the_same() -> None:
    every = list(spellings.generated())
    assert len(every) >= 200
    for body in every:
        found = facts_of(spellings.source(body))
        assert roles(found) == {"in": "read", "out": "write"}, body
        assert {str(one.offset) for one in found.accesses} == {FLAT}, body


# Body, and what the kernel does with `a` and `b`; `n` is an int.
UNSURE = {
    "pointers that change places in a loop": (
        "float *s = a, *d = b;"
        " for (int k = 0; k < n; ++k) { d[k] = s[k]; float* t = s; s = d; d = t; }",
        "unknown unknown",
    ),
    "a function that is not there": ("unknown(a + n, 1.f); b[n] = 1;", "unknown write"),
    "an element by reference to a function that is not there": ("unknown(a[n]);", "unknown none"),
    "pointers in an array": ("float* ps[2] = {a, b}; ps[n & 1][0] = 1;", "unknown unknown"),
    "a pointer put into an array": ("float* ps[1]; ps[0] = a; b[0] = ps[0][n];", "unknown write"),
    "one of two": ("float* t = n & 1 ? a : b; *t = 1;", "unknown unknown"),
    "one of two by branches": ("float* p; if (n > 3) p = a; else p = b; p[0] = 1;", "unknown unknown"),
    "a pointer that a helper sets before it returns": (
        "auto f = [&](float*& p) { if (n) { p = b; return; } p = a; }; float* t; f(t); *t = 1;",
        "unknown unknown",
    ),
    "a pointer that is set where a loop is left": (
        "float* t = a; for (int i = 0; i < n; ++i) { if (i == 3) { t = b; break; } } *t = 1;",
        "unknown unknown",
    ),
    "a pointer that is set where a loop goes on": (
        "float* t = a; for (int i = 0; i < n; ++i) { if (i == 3) { t = b; continue; } t = a; } *t = 1;",
        "unknown unknown",
    ),
    "a pointer by a switch": (
        "float* t = a; switch (n) { case 0: t = b; break; case 1: n = 2; } *t = 1;",
        "unknown unknown",
    ),
    "a pointer by a case that goes on": (
        "float* t = a; switch (n) { case 0: t = b; default: *t = 1; }",
        "unknown unknown",
    ),
    "assembly": ('asm volatile("st.f32 [%0], 0f;" :: "l"(a)); b[0] = 1;', "unknown write"),
    "goto": ("int i = 0; again: a[i] = 1; if (++i < n) goto again;", "unknown unknown"),
    "an integer": ("size_t p = (size_t)a; *(float*)(p + 4) = 1; b[0] = 1;", "unknown write"),
    "an address in a struct of a library": ("View<float> v(a, n); b[0] = v[0];", "unknown write"),
    "a pointer that is stored": ("ptrs[0] = a; b[0] = 1;", "unknown write"),
    "a part that cannot be read": ("a[0] = 1; b[0] = 2; $ @ a ; int q = 3;", "unknown unknown"),
}  # fmt: skip
# Where only a name stands there and no access does, it is unknown too.
CERTAIN = {
    "a reference that is only assigned": ("float& to = a[n]; to = b[n];", "write read"),
    "a reference that is added to": ("float& to = a[n]; to += b[n];", "update read"),
    "swapped by a lambda": (
        "auto s = [](float& x, float& y) { float t = x; x = y; y = t; }; s(a[0], b[0]);",
        "update update",
    ),
    "swapped by the library": ("std::swap(a[n], b[n]);", "update update"),
    "an atomic": ("atomicAdd(&a[n], b[n]);", "update read"),
    "a store by cache": ("__stcs(a + n, __ldcs(b + n));", "write read"),
    "a copy": ("memcpy(a + n, b + n, 4);", "write read"),
    "read where nothing comes of it": ("a[n] = 1; (void)b[n]; b[n];", "write unknown"),
    "a size": ("a[n] = sizeof(b[0]);", "write unknown"),
    "a branch that is never taken": ("a[n] = 1; if (0) a[0] = b[n];", "write unknown"),
    "a branch by a constant": (
        "constexpr int k = 2; if (k > 3) a[0] = b[n]; else a[0] = 1;",
        "write unknown",
    ),
    "a test for null": ("if (b != nullptr) a[n] = 1;", "write unknown"),
    "mathematics": ("a[n] = fmaxf(b[n], 0.f) + __expf(b[n + 1]);", "write read"),
    "an index that is read": ("a[int(b[n])] = 1;", "write read"),
    "an inner array": ("float t[4][4]; t[0][1] = b[n]; a[n] = t[1][0];", "write read"),
    "rows by pointers to them": ("float (*r)[8] = (float (*)[8])a; r[n][1] = b[n];", "write read"),
    "wider elements": ("reinterpret_cast<float4*>(a)[n] = *(const float4*)(b + 4 * n);", "write read"),
}  # fmt: skip


@pytest.mark.parametrize("name", [*UNSURE, *CERTAIN])
def test_what_is_not_certain_is_unknown(name: str) -> None:
    body, wanted = (UNSURE | CERTAIN)[name]
    found = facts_of(f"__global__ void k(float* a, float* b, int n) {{ {body} }}")
    told = roles(found)
    assert f"{told['a']} {told['b']}" == wanted


def test_pointers_in_structs_and_variables_of_the_program_are_arrays() -> None:
    found = facts_of(
        "struct Base { float* a; };\n"
        "struct P : Base { const float* b; int n; float m[2][3]; };\n"
        "__device__ float table[4][8]; __device__ int total; constexpr int W = 3;\n"
        "__global__ void k(P p) { P q = p; q.a[W] = q.b[q.n] + table[1][W]; total += 1; }"
    )
    told = {name: role for name, role in roles(found).items() if role != "none"}
    assert told == {"p.a": "write", "p.b": "read", "table": "read", "total": "update"}
    assert {one.array: str(one.offset) for one in found.accesses} == {
        "p.a": "3", "p.b": "p.n", "table": "11", "total": "0",
    }  # fmt: skip


def test_arrays_of_rows_are_one_array_and_pointers_to_pointers_are_none() -> None:
    found = facts_of(
        "__global__ void k(const float x[][8], float (*y)[8], float z[2][3][4], float4* v, int n) {\n"
        "  y[n][1] = x[1][n]; z[0][n][2] += 1; v[n].x = 1;\n}"
    )
    assert roles(found) == {"x": "read", "y": "write", "z": "update", "v": "part"}
    assert {one.array: str(one.offset) for one in found.accesses} == {
        "x": "n + 8", "y": "8*n + 1", "z": "4*n + 2", "v": "n",
    }  # fmt: skip


@pytest.mark.parametrize(
    "made",
    [
        "Two t = {.at = n, .to = a};",
        "Two t{n, a};",
        "Two t; t.at = n; t.to = a;",
        "auto t = Two{n, a};",
    ],
)
def test_structs_are_what_they_are_made_of(made: str) -> None:
    found = facts_of(
        "struct Two { int at; float* to; };\n"
        f"__global__ void k(float* a, int n) {{ {made} t.to[t.at + 1] = 1; }}"
    )
    assert roles(found) == {"a": "write"}
    assert [str(one.offset) for one in found.accesses] == ["n + 1"]


def test_guards_hold_where_an_access_stands() -> None:
    found = facts_of(
        "__global__ void k(float* a, int n, int m) {\n"
        "  if (n >= m) return;\n  if (m < 3 && n > 1) a[n] = 1;\n  else a[m] = 2;\n  a[0] = 3;\n}"
    )
    told = [
        " & ".join(f"{g.left} {g.sign} {g.right}" for g in one.guards) for one in found.accesses
    ]
    assert told == ["n < m & m < 3 & n > 1", "n < m", "n < m"]
    assert [one.line for one in found.accesses] == [3, 4, 5]


def test_a_body_beyond_all_bounds_is_undecided() -> None:
    deep = "(" * 4000 + "n" + ")" * 4000
    for body, budget, why in ((f"a[0] = {deep};", BUDGET, "it is too deep"),
                              ("a[0] = n;" * 40, 100, "it is too long")):  # fmt: skip
        program = Program(
            preprocess(Path("k.hip"), text=f"__global__ void k(float* a, int n) {{ {body} }}")
        )
        found = read(program, program.kernels[0], budget)
        assert why in found.undecided
        assert roles(found)["a"] == "unknown"


@pytest.mark.parametrize("step", ["s = s * s * n", "s = 7 * s * s", "s = n - s * s * b[0]"])
def test_squares_of_squares_end_at_a_number_that_nothing_is_known_of(step: str) -> None:
    steps = "; ".join([step] * 40)
    body = f"int i = threadIdx.x, s = 3 + n; {steps}; b[i] = s; b[0] = a[s];"
    found = facts_of(f"__global__ void k(const int* a, int* b, int n) {{ {body} }}")
    assert roles(found) == {"a": "read", "b": "update" if "b[0]" in step else "write"}
    assert str(found.accesses[-1].offset) == "0"


@pytest.mark.parametrize(
    "body",
    [
        "auto row = x[i]; auto get = [&](auto from, int at) { return from[at]; }; y[i] = get(row, i);",
        "float last; y[i] = last = x[i][0];",
        "auto from = &x[i][0]; y[i] = from[1];",
    ],
)
def test_rows_by_auto_and_values_that_are_put_twice_do_not_escape(body: str) -> None:
    found = facts_of(f"__global__ void k(const float (*x)[8], float* y) {{ int i = 0; {body} }}")
    assert not found.escapes
    assert roles(found) == {"x": "read", "y": "write"}
