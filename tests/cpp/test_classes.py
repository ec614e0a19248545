"""Fields, bytes and template parameters of classes are those that a compiler would find."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli.cpp.source.signatures import kernels_of, parameter_of
from tokitai_cli.cpp.source.struct_layout import (
    bytes_of,
    fields_of,
    hides_fields,
    members_of,
    why_unbound,
)
from tokitai_cli.cpp.whole import Program, program_of

TEXT = """\
constexpr int LANES = 2 * 2;
enum { WIDE = 5 };
using Row = float[LANES];
struct Base { double origin; };
template <typename T> struct Held : Base { T* data; const T* parts[2]; T (*rows)[3]; };
template <typename T, int N = LANES> struct Vec {
  using type = T; T at[N]; static constexpr int size = N; static constexpr float eps = 1e-3f;
};
template <> struct Vec<int, 2> { int a, b; };
struct Outer { struct Inner { int a; Row row; }; Inner in; enum { K = 3 }; float w[K + WIDE]; };
union Bits { float f; double d; };
struct Mixed { char tag; Bits bits; union { float color[2]; float* ptr; } kept; };
struct Overlaid { union { int a; float f; }; struct { float x, y; }; };
struct Packed { int n : 3; };
struct Called { int (*function)(int); };
struct Bound { float& value; };
struct Unsized { float at[MISSING]; };
struct Derived : Absent { int n; };
class Closed { public: int n; };
typedef struct Closed Alias;
"""
FIELDS = {
    "Held<float>": [("origin", "double", 0, 0), ("data", "float", 1, 0), ("parts", "float", 1, 2),
                    ("rows", "float", 1, 0)],
    "Vec<float>": [("at", "float", 0, 4)],
    "Vec<short, 7>": [("at", "short", 0, 7)],
    "Vec<int, 2>": [("a", "int", 0, 0), ("b", "int", 0, 0)],
    "Outer": [("in", "Inner", 0, 0), ("w", "float", 0, 8)],
    "Outer::Inner": [("a", "int", 0, 0), ("row", "float", 0, 4)],
    "Bits": [("f", "float", 0, 0)],
    "Overlaid": [("a", "int", 0, 0), ("x", "float", 0, 0), ("y", "float", 0, 0)],
    "float3": [(one, "float", 0, 0) for one in "xyz"],
}  # fmt: skip


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    source = tmp_path_factory.mktemp("classes") / "classes.cu"
    source.write_text(TEXT, encoding="utf-8")
    return program_of(source, [])


@pytest.mark.parametrize("name", FIELDS)
def test_fields_are_those_of_the_class_that_is_meant(name: str, program: Program) -> None:
    told = fields_of(program, name) or []
    assert [(one.name, one.type, one.pointers, extent) for one, extent in told] == FIELDS[name]


@pytest.mark.parametrize(
    ("name", "size"),
    [("Mixed", (24, 8)), ("Bits", (8, 8)), ("Outer", (52, 4)), ("Held<float>", (40, 8)),
     ("Vec<char, 3>", (3, 1))],
)  # fmt: skip
def test_bytes_are_the_compilers(name: str, size: tuple[int, int], program: Program) -> None:
    told = parameter_of("int x")
    assert bytes_of(program, type(told)("x", name, "struct", (), 0, False, "")) == size


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Packed", "`n` is a bit-field"), ("Called", "`function` is a pointer to a function"),
        ("Bound", "`value` is a reference"),
        ("Unsized", "its extent `MISSING` is not a known number"),
        ("Derived", "Absent is not defined in what was read"), ("Outer", ""),
    ],
)  # fmt: skip
def test_what_cannot_be_filled_has_a_reason(name: str, why: str, program: Program) -> None:
    assert why_unbound(program, name) == why
    assert (fields_of(program, name) is None) == bool(why)


def test_static_members_and_hidden_ones(program: Program) -> None:
    assert members_of(program, "Vec<float, 9>") == {"size": "9"}
    assert members_of(program, "Outer") == {"K": "3"}
    assert hides_fields(program, "Alias")
    assert not hides_fields(program, "Held<float>")


def test_a_concept_stands_in_front_of_a_type(tmp_path: Path) -> None:
    source = tmp_path / "a.cu"
    source.write_text(
        "template <typename T> concept Number = requires(T a) { a + a; };\n"
        "template <std::integral T, Number U, std::size_t N, Number... Us>\n"
        "__global__ void k(T* x, U* y) { }\n",
        encoding="utf-8",
    )
    program = program_of(source, [])
    (kernel,) = kernels_of(program)
    told = [(one.name, one.type, one.concept) for one in kernel.template]
    assert told == [("T", "", "integral"), ("U", "", "Number"), ("N", "std::size_t", ""),
                    ("Us", "", "Number")]  # fmt: skip
    assert program.sources[0].tree.modern
