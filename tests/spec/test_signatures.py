"""A spec is held against its kernels' signatures before anything is built."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tokitai_cli import spec
from tokitai_cli.core.errors import SpecError
from tokitai_cli.cpp.programs import Programs

SOURCE = """\
#include <hip/hip_runtime.h>
typedef float real;
namespace deep { __global__ void nested(const real* x, real* y, unsigned n) {} }
__global__ void add(const float* __restrict__ x, float* y, int n, float scale = 1.0f) {}
__global__ void add(const double* x, double* y, int n, double scale) {}
template <typename T, int N> __global__ void tiled(const T* x, T* y, int n) {}
template <class... A> __global__ void pack(A... a) {}
#define GIVEN const float *x, float *y, int n
__global__ void listed(GIVEN) {}
__global__ void halves(const half* x, UNKNOWN_TYPE y, int n) {}
__global__ void loose(float* x, float* y, int n) {}
__global__ void bytes(const void* x, void* y, int n) {}
"""
SPEC = """\
schema: tokitai/spec/v1
op: tried
title: A trial
summary: A trial.
params:
  n: {{default: 8, help: elements}}
variants:
  main:
    formula: "y = x"
    source: k.hip
    inputs:
      x: {{dtype: {dtype}, shape: [n]}}
    outputs:
      y: {{dtype: {dtype}, shape: [n]}}
    scalars: {{{scalars}}}
    launches:
      - {{kernel: "{kernel}", grid: [1], block: [64], args: [{args}]}}
    oracle: o.py:f
    checks: [{{metric: abs, limit: 1}}]
profiles:
  normal: {{help: "N(0,1)"}}
suites:
  quick: [{{shape: {{}}, why: one}}]
"""


def load(
    folder: Path, kernel: str, args: str, dtype: str = "float32", scalars: str = ""
) -> tuple[str, ...]:
    (folder / "k.hip").write_text(SOURCE)
    (folder / "o.py").write_text("def f(params, inputs, scalars): ...\n")
    text = SPEC.format(kernel=kernel, args=args, dtype=dtype, scalars=scalars)
    (folder / "spec.yaml").write_text(text)
    return spec.load(folder / "spec.yaml").notes


S = "s: {dtype: float32, value: 2}"


@pytest.mark.parametrize(
    ("kernel", "args", "dtype", "scalars"),
    [
        ("deep::nested", "x, y, n", "float32", ""),
        ("nested", "x, y, n", "float32", ""),
        ("add", "x, y, n, s", "float32", S),
        ("add", "x, y, n", "float32", ""),
        ("add", "x, y, n, s", "float64", "s: {dtype: float64, value: 2}"),
        ("add(const float*, float*, int, float)", "x, y, n, s", "float32", S),
        ("tiled<float, 4>", "x, y, n", "float32", ""),
        ("tiled<__half, 4>", "x, y, n", "float16", ""),
        ("tiled<unsigned char, 4>", "x, y, n", "uint8", ""),
        ("pack<float*>", "x, y", "float32", ""),
        ("listed", "x, y, n", "float32", ""),
        ("halves", "x, y, n", "float16", ""),
        ("bytes", "x, y, n", "float64", ""),
    ],
)
def test_what_fits_or_is_not_known_is_left_to_the_compiler(
    tmp_path: Path, kernel: str, args: str, dtype: str, scalars: str
) -> None:
    assert load(tmp_path, kernel, args, dtype, scalars) == ()


@pytest.mark.parametrize(
    ("kernel", "args", "dtype", "scalars", "told"),
    [
        ("ad", "x, y, n", "float32", "", r"\]\.kernel: k\.hip has no kernel `ad` .*mean add"),
        ("add", "x, y", "float32", "", r"passes 2 arguments, `add` has 4 parameters: x, y, n, scale"),
        ("tiled<float, 4>", "x, y", "float32", "", r"args: .* has 3 parameters: x, y, n"),
        ("tiled<double, 4>", "x, y, n", "float32", "", r"of float32; .* `const double\* x`"),
        ("add", "x, y, n, s", "float16", S, r"args\[0\]: .*float16"),
        ("add", "x, y, n, 3", "float32", "", r"integer; .*a scalar: \{dtype: float32"),
        ("tiled<float, 4>", "y, x, n", "float32", "", r"outputs\.y: .*`const float\* x`"),
        ("deep::nested", "x, n, y", "float32", "", r"`n`, an integer; .*`float\* y` .*k\.hip:3"),
    ],
)  # fmt: skip
def test_what_cannot_fit_is_an_error_at_its_key(
    tmp_path: Path, kernel: str, args: str, dtype: str, scalars: str, told: str
) -> None:
    with pytest.raises(SpecError) as caught:
        load(tmp_path, kernel, args, dtype, scalars)
    assert re.search(told, str(caught.value))
    assert caught.value.where is not None
    assert caught.value.where.line
    assert caught.value.exit_code == 2


STRUCTS = """\
#include <hip/hip_runtime.h>
struct Inner { const float* x; };
struct Outer { Inner inner; float* y; const float* kept; int n; };
struct Mixed { union { float f; int i; }; float* y; };
__global__ void by_pointer(Outer* outer) {}
__global__ void by_value(Outer outer) {}
__global__ void mixed(Mixed* outer) {}
#ifdef NARROW
typedef float real;
#else
typedef double real;
#endif
struct Aliased { const float* x; real* y; };
__global__ void aliased(Aliased* outer) {}
__global__ void number(int outer) {}
"""
FIELDS = "inner: {x: x}, y: y, kept: x, n: n"


@pytest.mark.parametrize("kernel", ["by_pointer", "by_value"])
@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (FIELDS, ""),
        ("inner: {x: x}, y: y, kept: x, m: n", r"main\.structs\.outer\.m: `Outer` has no field `m`"),
        ("inner: {z: x}, y: y, kept: x, n: n", r"outer\.inner\.z: `Inner` has no .*known: x"),
        ("inner: {x: x}, y: n, kept: y, n: n", r"outer\.y: the spec passes `n`, an integer there; the "
         r"field of `Outer` is `float\* y`"),
        ("inner: {x: x}, y: x, kept: y, n: n", r"outputs\.y: no kernel can write `y`: the parameter "
         r"is `const float\* kept`"),
    ],
)  # fmt: skip
def test_fields_of_structs_are_held_against_the_source(
    tmp_path: Path, kernel: str, fields: str, told: str
) -> None:
    def with_struct(kernel: str, fields: str, defines: str = "") -> None:
        text = SPEC.format(kernel=kernel, args="outer", dtype="float32", scalars="")
        more = f"    structs: {{outer: {{{fields}}}}}\n    defines: {{{defines}}}\n"
        text = text.replace("    launches:", f"{more}    launches:")
        (tmp_path / "spec.yaml").write_text(text)
        spec.load(tmp_path / "spec.yaml")

    (tmp_path / "k.hip").write_text(STRUCTS)
    (tmp_path / "o.py").write_text("def f(params, inputs, scalars): ...\n")
    if told:
        with pytest.raises(SpecError, match=told) as caught:
            with_struct(kernel, fields)
        assert caught.value.where is not None
        assert caught.value.where.line
    else:
        with_struct(kernel, fields)
        with_struct("mixed", "i: n, y: y, f: x")  # the members of a union: the compiler's to judge
        with_struct("aliased", "x: x, y: y", "NARROW: 1")  # by `defines`, which are not read here
        with pytest.raises(SpecError, match=r"an array of float32 there; .*`double\* y`"):
            with_struct("aliased", "x: x, y: y")
        with pytest.raises(SpecError, match=r"`outer`, a struct; .*`int outer`"):
            with_struct("number", fields)


def test_headers_of_hip_declare_no_kernel(tmp_path: Path) -> None:
    (tmp_path / "k.hip").write_text("#include <hip/hip_cooperative_groups.h>\n" + SOURCE)
    (tmp_path / "o.py").write_text("def f(params, inputs, scalars): ...\n")
    text = SPEC.format(kernel="ad", args="x, y, n", dtype="float32", scalars="")
    (tmp_path / "spec.yaml").write_text(text)
    with pytest.raises(SpecError, match="no kernel `ad`"):
        spec.load(tmp_path / "spec.yaml")


def test_an_input_that_could_be_written_is_said(tmp_path: Path) -> None:
    (note,) = load(tmp_path, "loose", "x, y, n")
    assert note.startswith("input x of main: the kernel's parameter is not a pointer to const")


def test_the_tools_own_specs_fit_their_kernels() -> None:
    from tokitai_cli.spec.reader.kernel_signatures import check_signatures
    from tokitai_cli.spec.reader.yaml_document import decode, parse, read_bytes

    for _, path in spec.builtin():
        document = parse(decode(read_bytes(path), path), path)
        assert check_signatures(document, spec.load(path).spec, Programs()).notes == ()


def test_workspaces_in_structs_that_a_kernel_reads_are_known(tmp_path: Path) -> None:
    (tmp_path / "k.hip").write_text(
        "struct Held { float* kept; float* left; const float* x; float* y; };\n"
        "__global__ void k(Held* h) { h->kept[0] = h->x[0]; h->left[0] = 1; h->y[0] = h->kept[0]; }\n"
    )
    (tmp_path / "o.py").write_text("def f(params, inputs, scalars): ...\n")
    text = SPEC.format(kernel="k", args="h", dtype="float32", scalars="")
    array = "{dtype: float32, shape: [n]}"
    more = f"workspaces: {{kept: {array}, left: {array}}}\n    structs:\n      h: "
    more += "{kept: kept, left: left, x: x, y: y}\n    launches:"
    (tmp_path / "spec.yaml").write_text(text.replace("launches:", more))
    assert spec.load(tmp_path / "spec.yaml").read_back == {"main": frozenset({"kept"})}


def test_workspaces_that_a_kernel_reads_are_known() -> None:
    own = Path(__file__).parents[1] / "kernels" / "own"
    for variant, read in spec.load(own / "ticket" / "spec.yaml").read_back.items():
        assert "parts" in read, variant
    assert spec.load(own / "unwritten" / "spec.yaml").read_back["larger"] == frozenset()
