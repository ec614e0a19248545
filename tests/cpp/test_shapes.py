"""Shapes that accesses tell: spellings agree, vectors, borders, tails, quotients; or why they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cpp import spellings
from tests.cpp.test_body import facts_of
from tokitai_cli.cpp.body.symbolic_values import Facts
from tokitai_cli.cpp.shapes import layout_of
from tokitai_cli.cpp.source.listing import Unread
from tokitai_cli.drafts.search import drafts_of

FLAT = "int i = blockIdx.x * blockDim.x + threadIdx.x; "
XY = "int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y; "


def shapes(found: Facts) -> dict[str, str]:
    layouts = {
        name: layout_of([one for one in found.accesses if one.array == name])
        for name in found.arrays
    }
    return {
        name: axes if isinstance(axes, str)
        else "nothing bounds a coordinate" if any(one.extent is None for one in axes)
        else str([one.extent for one in axes])
        for name, axes in layouts.items()
    }  # fmt: skip


# Body of k(const float* in, float* out, int n, int m, int w, int h), and the shapes of both.
CASES = {
    "flat": ("if (i < n) out[i] = in[i];", "[n] [n]"),
    "a loop over the grid": (
        "for (; i < n; i += gridDim.x * blockDim.x) out[i] = in[2 * i + 1];", "[n] [n, 2]",
    ),
    "backwards": ("for (int k = n - 1; k >= 0; --k) out[k] = in[k];", "[n] [n]"),
    "transposed": ("if (x < w && y < h) out[x * h + y] = in[y * w + x];", "[w, h] [h, w]"),
    "neighbours": (
        "if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;"
        " out[y * w + x] = in[(y - 1) * w + x] + in[(y + 1) * w + x + 1];",
        "[h, w] [h, w]",
    ),
    "column by / and %": ("if (i < n * m) out[(i % m) * n + i / m] = in[i];", "[m, n] [m*n]"),
    "channels last": (
        "if (i < n * h * w) out[((i / w) % h * w + i % w) * n + i / w / h] = in[i];",
        "[h*w, n] [h*n*w]",
    ),
    "a batch by the loop": (
        "for (int b = 0; b < n; ++b) if (i < m) out[b * m + i] = in[(b * m + i) * 3 + 2];",
        "[n, m] [n, m, 3]",
    ),
    "vectors": (
        "if (i < n / 4) reinterpret_cast<float4*>(out)[i] = reinterpret_cast<const float4*>(in)[i];",
        "[n] [n]",
    ),
    "vectors and a tail": (
        "if (4 * i + 3 < n) *(float4*)(out + 4 * i) = *(const float4*)(in + 4 * i);"
        " else for (int k = 4 * i; k < n; ++k) out[k] = in[k];",
        "[n] [n]",
    ),
    "one more": ("if (i < n) out[i] = in[i + 1] - in[i];", "[n] [n + 1]"),
    "fixed places": ("out[0] = in[2] + in[1];", "[1] [3]"),
    "a product of matrices": (
        "if (y < h && x < w) { for (int k = 0; k < n; ++k) out[y * w + x] += in[y * n + k]; }",
        "[h, w] [h, n]",
    ),
    "the whole grid": ("out[i] = in[int(in[i])];", "[blockDim.x*gridDim.x] [blockDim.x*gridDim.x]"),
    "not bounded": ("while (in[i] > 0) ++i; out[i] = 1;", "{0} {0}"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_shapes_of_accesses(name: str) -> None:
    body, wanted = CASES[name]
    head = XY if "x < " in body else FLAT
    text = "__global__ void k(const float* in, float* out, int n, int m, int w, int h) {"
    told = shapes(facts_of(f"{text} {head}{body} }}"))
    assert f"{told['out']} {told['in']}" == wanted.format("nothing bounds a coordinate")


def test_spellings_of_one_kernel_have_its_shapes() -> None:
    for body in [*spellings.BODIES.values(), *spellings.generated()]:
        assert shapes(facts_of(spellings.source(body))) == {"in": "[h, w]", "out": "[h, w]"}, body


@pytest.mark.parametrize("name", spellings.BODIES)
def test_spellings_of_one_kernel_draft_the_same(name: str, tmp_path: Path) -> None:
    told = []
    for body in (spellings.BODIES["plain"], spellings.BODIES[name]):
        (tmp_path / "k.hip").write_text(spellings.source(body))
        found = drafts_of(tmp_path / "k.hip", room=False)
        assert not isinstance(found, Unread)
        told.append(found[0][0].spec)
    assert "in: {dtype: float32, shape: [h, w]}" in told[0]
    if name == "if constexpr":  # its comparison of a size with a number is one that draws allow for
        told = [one.partition("profiles:")[0] for one in told]
    assert told[1] == told[0]


def _same_drafts(sources: list[str], file: Path) -> None:
    told = []
    for source in (spellings.source(spellings.BODIES["plain"]), *sources):
        file.write_text(source)
        found = drafts_of(file, room=False)
        assert not isinstance(found, Unread)
        told.append(found[0][0].spec)
    assert [text for text, spec in zip(sources, told[1:], strict=True) if spec != told[0]] == []


def test_some_generated_programs_of_one_kernel_draft_the_same(tmp_path: Path) -> None:
    _same_drafts([*spellings.programs()][::23], tmp_path / "k.hip")


@pytest.mark.slow
def test_all_generated_programs_of_one_kernel_draft_the_same(tmp_path: Path) -> None:
    every = [*dict.fromkeys(spellings.programs())]
    assert len(every) >= 400
    _same_drafts(every, tmp_path / "k.hip")
