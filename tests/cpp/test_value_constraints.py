"""What bodies ask of the values in their arrays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli.cpp.body.symbolic_values import Facts
from tokitai_cli.cpp.source.signatures import kernels_of
from tokitai_cli.cpp.tiles import facts_of
from tokitai_cli.cpp.value_constraints import ValueConstraint, Values
from tokitai_cli.cpp.whole import program_of

HEAD = "__global__ void k(int* x, const float* w, int* y, float* z, int i, int n, int other)"


def facts(folder: Path, body: str) -> Facts:
    file = folder / "k.cu"
    file.write_text(f"#define END -3\n{HEAD} {{ {body} }}\n")
    program = program_of(file, [], {})
    (kernel,) = kernels_of(program)
    return facts_of(program, kernel, {})


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ("while (x[i] == 0) {}", ValueConstraint("fixed", 1)),
        ("int seen = 0; while (x[i] != seen) ++i;", ValueConstraint("slots", 0)),
        ("int seen = 0; while (x[i] != seen) ++i, ++seen;", None),
        ("while (x[i] != 0) {}", ValueConstraint("fixed", 0)),
        ("int v; while (((v = x[i]) >> 32) != END) i = v;", ValueConstraint("fixed", -3)),
        ("while (x[i] != 0x7) ++i;", ValueConstraint("slots", 7)),
        ("int t = 0; while ((t = x[n >> 2]) >> 2 != other) n = t;", None),
        ("int v = i; do { v = x[v]; } while (v != END);", ValueConstraint("fixed", -3)),
        ("int v = i; while (x[v] != v) v = x[v];", ValueConstraint("own")),
        ("int v = i; for (int s = 0; s < 4; ++s) v = x[v]; y[i] = v;", None),
        ("while (i < x[i]) ++i;", None),
        ("if (x[i] == 3) y[i] = 0;", None),
        ("for (;;) { if (x[i] == 3) break; ++i; }", ValueConstraint("slots", 3)),
        ("for (;;) { if (x[i] == 3) continue; ++i; }", None),
        ("while (atomicCAS(x + i, END, 1) != END) {}", ValueConstraint("fixed", -3)),
        ("while (atomicAdd(&x[i], 0) != 5) {} __threadfence(); x[i] = 5;",
         ValueConstraint("fixed", 5)),
        ("assert(x[i] == 3 || y[i] == 4);", None),
        ("assert(n < 5 && 0 <= x[i]);", ValueConstraint("range", 0)),
        ("assert(x[i] != 0);", ValueConstraint("range", 1)),
        ("int a, b = x[i]; do { a = b; b = atomicCAS(&x[i], a, b + 1); } while (a != b);", None),
    ],
)  # fmt: skip
def test_what_a_body_asks_of_values(
    tmp_path: Path, body: str, asked: ValueConstraint | None
) -> None:
    assert Values(facts(tmp_path, body), {}).constraint("x", 32, signed=True) == asked


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("y[i] = n / x[i];", {"divides"}),
        ("int d = x[i]; y[i] = d ? n % d : 0;", {"divides", "tests_zero"}),
        ("auto get = [&](int at) { return x[at]; }; if (get(i) > 0) z[i] = w[i] / get(i);",
         {"divides", "tests_zero"}),
        ("int at = x[i]; if (at == -1) return; z[i] = w[at];", {"tests_below_zero"}),
        ("if (x[i] < 0) return; z[i] = w[x[i]];", {"tests_zero", "tests_below_zero"}),
        ("int p = x[i]; y[i] = (p >> 4) & 15;", {"is_packed"}),
        ("int p = __ldg(&x[i]); y[i] = p & 0xff;", {"is_packed"}),
        ("__shared__ int s[32]; s[threadIdx.x] = x[i]; y[i] = s[threadIdx.x] >> 8;",
         {"is_packed"}),
        ("y[i] = x[i] + 1;", set()),
    ],
)  # fmt: skip
def test_what_is_done_with_values(tmp_path: Path, body: str, told: set[str]) -> None:
    values = Values(facts(tmp_path, body), {})
    asked = ("divides", "tests_zero", "tests_below_zero", "is_packed")
    assert {one for one in asked if getattr(values, one)("x")} == told


@pytest.mark.parametrize(
    ("body", "indexes"),
    [
        ("y[x[i]] = 1;", True),
        ("__shared__ int s[32]; s[i] = x[i]; __syncthreads(); z[i] = w[s[0] + 1];", True),
        ("int best = 0; if (x[i] > 2) best = i; y[best] = 0;", False),
        ("y[i] = x[i];", False),
    ],
)
def test_places_that_are_made_of_values(tmp_path: Path, body: str, indexes: bool) -> None:
    assert Values(facts(tmp_path, body), {}).indexes("x") is indexes


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("y[i] = other == -1 ? 1 : 0;", [-1]),
        ("auto mixed = [](int b) { return b != 0 ? b : 1; }; y[i] = mixed(other);", [0]),
        ("if (other) y[i] = 1;", [0]),
        ("if (!other && n) y[i] = 1;", [0]),
        ("if (other < 0) y[i] = 1;", []),
        ("if (other > 0) y[i] = 1;", [0]),
        ("switch (other) { case 0: y[i] = 1; break; case 5: y[i] = 2; }", [0]),
        ("if (other == 3) y[i] = 1;", []),
    ],
)
def test_numbers_that_a_branch_asks_for(tmp_path: Path, body: str, told: list[float]) -> None:
    assert Values(facts(tmp_path, body), {}).tested("other") == told


@pytest.mark.parametrize(
    ("body", "marks"),
    [
        ("if (x[i] != other) y[i] = 1;", True),
        ("int v = x[i]; y[i] = other == v ? 0 : v;", True),
        ("if (i < other && x[i] != other) y[i] = 1;", False),
        ("if (x[i] < other) y[i] = 1;", False),
        ("if (i != other) y[i] = x[i];", False),
    ],
)
def test_an_argument_that_elements_equal_is_a_mark(tmp_path: Path, body: str, marks: bool) -> None:
    assert Values(facts(tmp_path, body), {}).marks("other") is marks
