"""A unit is what a compiler would read: macros put in, positions kept, what is not there passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli.cpp.policy import device_pass, host_pass, open_names
from tokitai_cli.cpp.preprocessed_unit import preprocess
from tokitai_cli.cpp.program import Program

EXPANDED = {
    "object": ("#define N 4\nN + M", "4 + M"),
    "arguments": ("#define F(a, b) (a) * (b)\nF(x, g(y, z))", "(x) * (g(y, z))"),
    "pasted": ("#define CAT(a, b) a##b\nCAT(x, 1) CAT(, y) CAT(z, )", "x1 y z"),
    "pasted, arguments not put in": ("#define N 4\n#define CAT(a, b) a ## b\nCAT(N, N)", "NN"),
    "string": ('#define S(x) #x\nS(a "b"  c)', '"a \\"b\\" c"'),
    "of itself": ("#define F(x) (x + F(x))\nF(2)", "(2 + F(2))"),
    "of each other": ("#define A B\n#define B A\nA B", "A B"),
    "any number": ("#define P(f, ...) p(f, ##__VA_ARGS__)\nP(a); P(a, b, c)", "p(a); p(a,b, c)"),
    "a pragma within a call": ("#define F(x) x\nF(\n#pragma unroll\nf)", '_Pragma("unroll")\nf'),
    "a condition within a call": (
        "#define F(x) x\nF(\n#ifdef N\na\n#elif 1\nb\n#else\nc\n#endif\n)", "b"),
    "a condition that ends behind a call": ("#define F(x) x\n#if 0\nF(\n#endif\n1", "1"),
    "not called": ("#define F(x) x\nint F;", "int F;"),
    "not closed": ("#define F(x) x\nF(1", "F(1"),
    "too few": ("#define F(x, y) x\nF(1)", "F(1)"),
    "comments": ("#define N 4 /* four */ // 4\n/* N */ N", "/* N */ 4"),
    "words of the language": ("#define __syncwarp() ;\n#define __global__\n__global__ __syncwarp()",
                              "__global__ __syncwarp()"),
    "taken back": ("#define N 4\n#undef N\nN", "N"),
    "the line": ("\n__LINE__", "2"),
    "the branch taken": ("#define N 2\n#if N > 1 && defined(N)\nyes\n#else\nno\n#endif", "yes"),
    "what nobody defines": ("#if VERSION >= 9\nyes\n#elif defined(OTHER)\n#else\nno\n#endif", "no"),
    "a header asked for": ('#if __has_include("nothing.h")\nyes\n#else\nno\n#endif', "no"),
    "a compiler's question": ("#if __has_builtin(__f)\nyes\n#else\nno\n#endif", "no"),
    "arguments on lines of their own": ("#define F(x, y) x - y\nF(\n  a(1, 2),\n  b)", "a(1, 2) - b"),
    "a call behind a line's end": ("#define F(x) <x>\nF\n(a)", "<a>"),
    "no macro in strings and numbers": ('#define f 9\n1.5f "f" R"(f)" f', '1.5f "f" R"(f)" 9'),
    "directives without a name": (
        "#define\n#undef\n#pragma\n#include\n#\n#ifdef\nno\n#else\nyes\n#endif\n#if\nno\n#endif\n"
        "#elif 1",
        "yes",
    ),
    "a table": ("#define ROWS X(1) X(2)\n#define X(n) {n},\nROWS", "{1}, {2},"),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPANDED)
def test_macros_and_branches(name: str) -> None:
    text, wanted = EXPANDED[name]
    assert preprocess(Path("a.cu"), text=text).text.decode().strip() == wanted


def test_every_part_knows_its_place_and_its_macro(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text("#pragma once\n#define ADD(x) x + one\nint of_header;\n")
    source = tmp_path / "a.cu"
    source.write_text(
        '#include <none.h>\n#include "own.h"\n#include "own.h"\n\nint y = ADD(\n  z);\n'
    )
    unit = preprocess(source)
    places = {
        word: unit.origin(unit.text.index(word.encode()))
        for word in ("of_header", "y", "+ one", ";")
    }
    assert [Path(one.file).name for one in places.values()] == ["own.h", "a.cu", "a.cu", "own.h"]
    assert [(one.line, one.macro) for one in places.values()] == [
        (3, ""),
        (5, ""),
        (5, "ADD"),
        (3, ""),
    ]
    assert unit.origin(len(unit.text) - 2).line == 6
    assert [one[1:] for one in unit.missing] == [(1, "<none.h>")]
    assert [path.name for path in unit.files] == ["a.cu", "own.h"]
    assert unit.text.count(b"of_header") == 1


def test_kernels_that_conditions_leave_out_are_named() -> None:
    text = (
        "#if 0\n__global__ void __launch_bounds__(8)\nleft(float* a)\n{ }\n"
        "__global__ void declared(float* a);\n#else\n__global__ void taken(float* a) { }\n#endif\n"
    )
    unit = preprocess(Path("a.cu"), text=text)
    assert [one[1:] for one in unit.inactive] == [(2, "left")]


def test_includes_end(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text('#include "a.cu"\n#include "pipe"\nint x;\n')
    unit = preprocess(tmp_path / "a.cu")
    assert unit.text.count(b"int x;") < 100
    assert {one[2] for one in unit.missing} >= {'"pipe"'}


def test_open_names_are_those_that_a_compiler_may_define() -> None:
    text = (
        "#ifndef MINE_H\n#define MINE_H\n#ifdef __gfx90a__\n#endif\n#ifdef __CUDACC__\n#endif\n"
        "#if DEBUG\n#endif\n#ifdef __HIP_DEVICE_COMPILE__\n#endif\n#endif\n"
    )
    plain = preprocess(Path("a.cu"), (), host_pass(True), text)
    assert open_names(plain.undecided) == {"__gfx90a__", "__HIP_DEVICE_COMPILE__"}
    device = preprocess(Path("a.cu"), (), device_pass(True), text)
    assert open_names(device.undecided) == {"__gfx90a__"}
    given = preprocess(Path("a.cu"), (), host_pass(True, {"__gfx90a__": ""}), text)
    assert "__gfx90a__" not in given.undecided


PROGRAM = """\
#define KERNEL(name, ...) __global__ void name(__VA_ARGS__)
namespace outer { namespace {
template <typename T, int N = 4, typename... Rest>
__global__ void __launch_bounds__(256) scale(const T* __restrict__ x, T (*y)[3], int n = 2) { }
template __global__ void scale<half, 8>(const half*, half (*)[3], int);
KERNEL(made, float* a, unsigned long long b) { }
} }
extern "C" __global__ void plain(void) { }
__global__ void only_declared(float* a);
struct alignas(16) Base { using real = double; int n; };
template <int D> struct Deep : Base { struct { float* p; } inner; real m[2][D]; static const int K = 3;
  Deep(float* q) : inner{q} {} __device__ real& operator[](int i) { return m[0][i]; } };
typedef struct Pair { int a, b; } Pair;
enum Mode { FIRST, SECOND };
template <typename T, typename = std::enable_if_t<sizeof(T) == 4>> __global__ void checked(T* a) { }
"""


def test_declarations_by_scope() -> None:
    program = Program(preprocess(Path("a.cu"), text=PROGRAM))
    assert [one.qualified for one in program.kernels] == [
        "outer::scale",
        "outer::made",
        "plain",
        "checked",
    ]
    scale, made, plain, checked = program.kernels
    assert [(one.name, one.type, one.default, one.pack) for one in scale.template] == [
        ("T", "type", "", False), ("N", "int", "4", False), ("Rest", "type", "", True),
    ]  # fmt: skip
    x, y, n = scale.parameters
    assert (x.name, x.type, x.pointers, x.const) == ("x", "T", 1, True)
    assert (y.name, y.type, y.pointers, y.extents) == ("y", "T", 1, ("3",))
    assert (n.name, n.type, n.pointers, n.default) == ("n", "int", 0, "2")
    assert scale.instances == [("half", "8")]
    assert [one.type for one in made.parameters] == ["float", "unsigned long long"]
    assert program.place(made.node)[1] == 6
    assert plain.parameters == ()
    assert [one.default for one in checked.template] == ["", "std::enable_if_t<sizeof(T) == 4>"]
    assert not program.unread
    deep = program.structs["Deep"]
    assert deep.bases == ("Base",)
    assert [(one.name, one.extents) for one in deep.fields] == [("inner", ()), ("m", ("2", "D"))]
    assert set(deep.methods) == {"Deep", "operator[]"}
    assert program.structs["Pair"].fields[1].name == "b"


def test_an_error_costs_its_statement_and_not_its_kernel() -> None:
    text = "__global__ void k(float* a) { a[0] = 1; a @ b $ c; a[1] = 2; }\n"
    text += "__global__ void l(float* a) { }\n"
    program = Program(preprocess(Path("a.cu"), text=text))
    assert [one.name for one in program.kernels] == ["k", "l"]


def test_a_header_without_a_last_newline_ends_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("#pragma once\nint a() { return 1; }")
    unit = preprocess(Path("a.cu"), [tmp_path], text='#include "a.h"\n#include <absent.h>\nint b;')
    assert "return 1; }\n" in unit.text.decode()
    assert [line for line in unit.text.decode().split("\n") if "}" in line and "#" in line] == []
