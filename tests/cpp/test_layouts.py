"""What layouts of arrays say in sizes: shapes, what blocks count, what values in arrays index."""

from __future__ import annotations

import re

import pytest

from tests.cpp.test_body import facts_of
from tokitai_cli.cpp import launch_facts
from tokitai_cli.cpp.body.symbolic_values import Facts
from tokitai_cli.cpp.layout_relations import padded, spans, values_below, within
from tokitai_cli.cpp.layouts import Layouts

SIZES = ["b", "heads", "n", "m", "pitch"]
HEAD = """
__global__ void k(const float* x, float* y, const int* ids, const int* at, int b, int heads, int n,
                  int m, int pitch) {
  int t = threadIdx.x, row = blockIdx.x;
"""
FLAT = "int i = blockIdx.x * blockDim.x + threadIdx.x;"


def facts(body: str) -> Facts:
    flat = FLAT if re.search(r"\bi\b", body) else ""
    return facts_of(f"{HEAD} {flat} {body} }}")


def layouts(body: str) -> Layouts:
    found = facts(body)
    names = ("x", "y", "ids", "at")
    every = {name: [one for one in found.accesses if one.array == name] for name in names}
    return Layouts(found, every, SIZES)


# Body, and shapes of x and y, and the grid of blocks of 256.
SHAPES = {
    "flat": ("if (i < n) y[i] = x[i];", "[n] [n] [ceil_div(n, 256)]"),
    "a product": ("if (i < n * m) y[i] = x[i];", "[n, m] [n, m] [ceil_div(n * m, 256)]"),
    "rows that blocks count": (
        "if (row < n) for (int c = t; c < m; c += 256) y[row * m + c] = x[row * m + c];",
        "[n, m] [n, m] [n]",
    ),
    "a name alike": (
        "int head = blockIdx.x; y[head * m + t % m] = x[head] * (b + n + pitch);",
        "[heads] [heads, m] [heads]",
    ),
    "one axis for two": (
        "int one = row / heads, h = row % heads; for (int c = 0; c < m; ++c)"
        " y[(one * heads + h) * m + c] = x[h];",
        "[heads] [b, heads, m] [b * heads]",
    ),
    "a stride alone": ("if (i < n) y[i * pitch] = x[i * 3];", "[n, 3] [n, pitch] [ceil_div(n, 256)]"),
    "either of two rows": (
        "float* to = i < n ? y + i * m : y; for (int c = 0; c < m; ++c) to[c] = x[c];",
        "[m] [n, m] [ceil_div(n, 256)]",
    ),
    "groups of a row": (
        "int hs = m / heads; if (i < n) for (int h = 0; h < heads; ++h) for (int c = 0; c < hs; ++c)"
        " y[i * m + h * hs + c] = x[i * 3 * m + 2 * m + h * hs + c];",
        "[n, 3, heads, m // heads] [n, heads, m // heads] [ceil_div(n, 256)]",
    ),
    "parts of parts": (
        "if (i < n * m * heads) { int q = i / (m * heads), rest = i % (m * heads), h = rest / m,"
        " c = rest % m; y[(h * n + q) * m + c] = x[i]; }",
        "[n, m, heads] [heads, n, m] [ceil_div(n * m * heads, 256)]",
    ),
    "offsets": (
        "for (int e = at[row]; e < at[row + 1]; ++e) y[row] += x[ids[e] * m + t] * (n + b + heads);",
        "[pitch, m] [pitch] [pitch]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_and_grids_are_said_in_sizes(name: str) -> None:
    body, wanted = SHAPES[name]
    found = layouts(body)
    said = [found.shape("x"), found.shape("y"), found.grid(["256"])]
    assert " ".join(f"[{', '.join(one)}]" for one in said) == wanted


def test_blocks_of_a_launch_are_put_into_shapes() -> None:
    found = layouts("y[blockIdx.y * m + t] = x[row];")
    found.words.put_grid({"x": "n", "y": "b * heads"})
    assert found.shape("x") == ["n"]
    assert found.shape("y") == ["b", "heads", "m"]


@pytest.mark.parametrize(
    ("written", "shape"), [("y[row]", ["n", "64"]), ("y[row * 64 + t]", ["64 * n"])]
)
def test_blocks_that_have_an_element_each_have_rows(written: str, shape: list[str]) -> None:
    found = layouts(f"{written} = x[row * 64 + t];")
    found.words.put_grid({"x": "n"})
    assert found.shape("x") == shape


def test_sizes_of_the_host_alone_are_asked_for_and_named() -> None:
    found = layouts("y[i] = x[ids[i] * m + t % m] + n + b + heads + pitch;")
    assert found.unsaid() == {"ids": "x_rows"}
    found.add_size("x_rows")
    found.name_rows({"ids": "x_rows"})
    assert found.shape("x") == ["x_rows", "m"]
    assert values_below(found, "ids") == "x_rows"


@pytest.mark.parametrize("long", [False, True])
def test_values_that_index_rows_stay_below_their_number_however_long_the_index(long: bool) -> None:
    """A walk has a short name for an element whose place is a long expression."""
    place = "((row / heads * heads + t % heads) * m + row % m) * pitch + (row / n) % pitch"
    body = f"y[row] = x[(row * n + ids[{place if long else 't'}]) * m + t % m] + heads + pitch + b;"
    assert values_below(layouts(body), "ids") == "n"


def test_values_that_a_row_begins_with_in_a_loop_stay_below_the_number_of_rows() -> None:
    found = layouts(
        "int at_row = ids[row]; for (int k = 0; k < b; ++k) { y[row * b + k] = at_row;"
        " float s = x[(row * n + at_row) * m + t % m] + heads + pitch; at_row = s; }"
    )
    assert values_below(found, "ids") == "n"


def test_values_and_rows_are_kept_within_sizes() -> None:
    body = (
        "if (i < n) for (int c = 0; c < m; ++c) y[i * pitch + c] = x[ids[i] * heads + c % heads];"
    )
    found = layouts(body)
    assert within(found) == [("m", "pitch")]
    assert padded(found, "y") == (1, "m")
    assert padded(found, "x") == (0, "")


@pytest.mark.parametrize(
    ("body", "offsets"),
    [
        ("for (int e = at[row]; e < at[row + 1]; ++e) y[row] += x[e];", {"at"}),
        ("for (int e = at[0]; e < at[1]; ++e) y[row] += x[e];", {"at"}),
        # Sizes along two axes, a row for each block.
        ("if (t < at[row * 2] && i < at[row * 2 + 1]) y[row] += x[i];", set()),
        ("if (t < at[row * m] && i < at[row * m + 1]) y[row] += x[i];", set()),
    ],
)
def test_neighbours_that_blocks_go_over_are_offsets(body: str, offsets: set[str]) -> None:
    assert layouts(body).offsets == offsets


def test_pages_of_a_row_hold_what_lies_between_offsets() -> None:
    found = layouts(
        "int len = at[row + 1] - at[row]; for (int p = t; p < len; p += 64)"
        " y[(at[row] + p) * heads] = x[ids[row * pitch + p / m] * m + p % m] * n;"
    )
    assert found.offsets_to("at") == "b"
    assert spans(found) == [("b", "pitch * m")]


# Body, and the block that it fixes.
BLOCKS = {
    "nothing": ("if (i < n) y[i] = x[i];", []),
    "sworn": ("assert(blockDim.x == 64); y[i] = 1;", ["64"]),
    "stepped": ("for (int c = t; c < n; c += 128) y[c] = x[c];", ["128"]),
    "counted": ("int a = blockIdx.x * 32 + t; if (a < n) y[a] = x[a];", ["32"]),
    "the last thread": ("if (t == 63) y[row] = x[row];", ["64"]),
    "tiles": (
        "int c = blockIdx.x * 32 + t, r = blockIdx.y * 32 + threadIdx.y;"
        " for (int j = 0; j < 32; j += 8) if (c < n && r + j < m) y[(r + j) * n + c] = 0;",
        ["32", "8"],
    ),
    "shared": ("__shared__ float s[512]; s[t] = x[t]; __syncthreads(); y[t] = s[0];", ["512"]),
    "rows of warps": ("int a = threadIdx.y * warpSize + t; if (a < n) y[a] = x[a];", ["warp_size", "8"]),
    "a primitive": ("typedef cub::BlockReduce<float, 96> Reduce; y[row] = Reduce().Sum(x[i]);", ["96"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_is_what_the_body_fixes(name: str) -> None:
    body, wanted = BLOCKS[name]
    assert launch_facts.block_of(facts(body)) == wanted


def test_sizes_are_bound_by_the_kernels_own_arrays_and_barriers() -> None:
    own = facts(
        "float a[64]; for (int c = 0; c < m; ++c) { a[c] = x[c]; if (c < 8) a[c] = 0; } y[i] = a[0];"
    )
    assert launch_facts.limits(own, SIZES) == {"m": 64}
    waits = facts("for (int c = t; c < n; c += 64) { y[c] = x[c]; __syncthreads(); }")
    assert launch_facts.strided(waits, SIZES) == {"n"}
    alone = facts("for (int c = t; c < n; c += 64) y[c] = x[c]; __syncthreads();")
    assert launch_facts.strided(alone, SIZES) == set()


def test_whole_parts_are_divided_and_sworn() -> None:
    body = "assert(m % 8 == 0); int g = heads / b, r = n % 4 + n / 4; if (i < g * (pitch / 4)) y[i] = r;"
    pairs = launch_facts.whole_parts(facts(body), SIZES)
    assert pairs == [("heads", "b"), ("m", "8"), ("pitch", "4")]
    assert launch_facts.multiples(pairs) == {"m": 8, "pitch": 4}
