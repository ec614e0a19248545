"""`tokitai find`: kernels of a tree, drafts of their specs, and robustness on any file."""

from __future__ import annotations

import json
import random
import re
import time
from pathlib import Path

import msgspec
import pytest

from tokitai_cli import spec
from tokitai_cli.cli.app import run
from tokitai_cli.core.errors import UsageError
from tokitai_cli.cpp.source.listing import Unread
from tokitai_cli.drafts.search import find_kernels, found_kernel, write_drafts
from tokitai_cli.spec.reader.gaps import GAP


def filled(path: Path) -> Path:
    """A drafted spec with its gaps taken away, as if somebody had filled them in."""
    for file in (path, path.parent / "formula.py"):
        file.write_text(file.read_text().replace(GAP, "# filled in:"))
    return path


PROGRAM = """\
#include <hip/hip_runtime.h>
#include "parts.h"
struct Settings { int n; };
template <typename T, int TILE>
__global__ void scale(const T* __restrict__ x, T* y, float alpha, int rows, int cols) {
  for (int i = threadIdx.x; i < rows * cols; i += TILE) y[i] = alpha * x[i] + shift();
}
__global__ void by_struct(float* x, Settings s) { x[0] = s.n; }
__global__ void accumulate(float* sum, const int* index, size_t count) { sum[index[0]] += count; }
int main() {
  int threads = 128;
  dim3 grid((m + threads - 1) / threads, 2);
  scale<float, 64><<<grid, threads, 0, stream>>>(d_x, d_y, 0.5f, m, n);
}
"""
PARTS = "__device__ float shift() { return 1; }\n__global__ void of_header(double* p) { *p = 1; }\n"


def tree(folder: Path) -> Path:
    (folder / "deep").mkdir()
    (folder / "deep" / "program.cu").write_text(PROGRAM)
    (folder / "deep" / "parts.h").write_text(PARTS)
    (folder / "note.txt").write_text("__global__")
    return folder


def test_each_kernel_is_listed_once_with_what_can_be_bound(tmp_path: Path) -> None:
    drafts = [one for found in find_kernels(tree(tmp_path)) for one in found]  # type: ignore[union-attr]
    listed = {one.name: one for one in map(found_kernel, drafts)}
    assert list(listed) == ["scale", "by_struct", "accumulate", "of_header"]
    assert listed["scale"].instance == "scale<float, 64>"
    assert listed["scale"].line == 4
    assert listed["scale"].file.endswith("program.cu")
    assert listed["of_header"].file.endswith("parts.h")
    assert [one.bindable for one in listed.values()] == [not one.reasons for one in listed.values()]
    assert {"scale", "accumulate", "of_header"} <= {n for n, one in listed.items() if one.bindable}


def test_a_kernel_is_read_with_what_takes_its_file_in(tmp_path: Path) -> None:
    kernel = "__global__ void k(const real* x, real* y, GRID n) { y[n] = x[n]; }\n"
    (tmp_path / "kernels.cu").write_text(kernel)
    (tmp_path / "types.h").write_text("#define GRID int\n")
    text = '#include "types.h"\nusing real = double;\n#include "kernels.cu"\n'
    (tmp_path / "main.cpp").write_text(text + "int main() { k<<<1, 32>>>(x, y, 3); }\n")
    for place in (tmp_path, tmp_path / "main.cpp"):
        (draft,) = [one for found in find_kernels(place) for one in found]  # type: ignore[union-attr]
        assert found_kernel(draft).file.endswith("kernels.cu")
        assert found_kernel(draft).bindable
        assert "source: main.cpp" in draft.spec
        assert "y: {dtype: float64" in draft.spec
        assert "block: [32]" in draft.spec
    (found,) = find_kernels(tmp_path / "kernels.cu")
    assert [found_kernel(one).bindable for one in found] == [False]  # type: ignore[union-attr]


def test_arrays_of_arrays_are_one_piece_of_memory(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(
        "__global__ void k(const float x[][8], float (*y)[8], float z[2][3][4], float* rows[3]) {\n"
        "  y[0][threadIdx.x] = x[1][2]; z[0][1][2] += 1; rows[0][1] = 2;\n}\n"
    )
    ((draft,),) = find_kernels(tmp_path)  # type: ignore[misc]
    told = [(one.kind, one.pointers, one.const) for one in draft.kernel.parameters]
    flat = [("array", 1, True), ("array", 1, False), ("array", 1, False)]
    assert told == [*flat, ("pointers", 2, False)]
    for role, name in (("inputs", "x"), ("outputs", "y"), ("inout", "z")):
        assert re.search(rf"    {role}:\n      {name}: {{dtype: float32", draft.spec)


def test_drafts_load_and_follow_the_hosts_launch(tmp_path: Path) -> None:
    source = tree(tmp_path)
    drafts = [one for found in find_kernels(source, (), tmp_path / "out") for one in found]  # type: ignore[union-attr]
    written = write_drafts([one for one in drafts if one.spec], tmp_path / "out")
    loaded = {path.parent.name: spec.load(filled(path)).spec.variants["main"] for path in written}
    scale = loaded["scale"]
    assert list(scale.inputs) == ["x"]
    assert list(scale.outputs) == ["y"]
    assert [scale.launches[0].grid, scale.launches[0].block] == [
        ["(rows + 127) // 128", 2],
        [128],
    ]
    assert scale.scalars["alpha"].dtype == "float32"
    assert list(loaded["accumulate"].inout) == ["sum"]
    assert loaded["accumulate"].inputs["index"].dtype == "int32"
    for path in written:
        compile((path.parent / "formula.py").read_text(), "formula.py", "exec")
    with pytest.raises(UsageError, match="exists already"):
        write_drafts([one for one in drafts if one.spec], tmp_path / "out")


def test_headers_elsewhere_in_the_tree_are_found_the_nearest_of_several(tmp_path: Path) -> None:
    kernel = "__global__ void k(const real* x, real* y) { y[0] = x[0]; }\n"
    (tmp_path / "one").mkdir()
    for folder, type_ in (("one/common", "double"), ("two/common", "float")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "types.h").write_text(f"using real = {type_};\n")
    program = tmp_path / "one" / "program.cu"
    program.write_text("#include <math.h>\n#include <common/types.h>\n" + kernel)
    below = tmp_path / "one" / "source"
    below.mkdir()
    program = program.rename(below / "program.cu")
    (draft,) = [one for found in find_kernels(tmp_path, (), tmp_path) for one in found]  # type: ignore[union-attr]
    (path,) = write_drafts([draft], tmp_path)
    main = spec.load(filled(path)).spec.variants["main"]
    assert main.outputs["y"].dtype == "float64"
    assert [(path.parent / one).resolve() for one in main.include] == [tmp_path / "one"]


INSTANCES = """\
template <typename T> __global__ void of_array(const T* x, T* y, int n) { y[n] = x[n]; }
template <typename T> __global__ void of_vector(T* y) { y[0] = 1; }
template <typename T> __global__ void of_number(float* y, T n) { y[0] = n; }
template <typename K, typename V> __global__ void of_class(const K* k, V* v) { v[0] = k[0]; }
template <typename T> __global__ void of_function(T* y) { y[0] = 1; }
template <typename T> __global__ void of_member(T* y) { y[0] = 1; }
template <typename T> __global__ void of_call(T* y) { y[0] = 1; }
template <typename T> __global__ void unseen(T* y) { y[0] = 1; }
template <typename Key, typename Value>
class Table {
  void insert() { of_class<Key, Value><<<1, 64>>>(keys, values); }
};
template <typename Key, typename Value>
__host__ void Table<Key, Value>::look() { of_member<Key><<<1, 64>>>(keys); }
template <typename Real>
void run(Real* y) { of_function<<<1, 64>>>(y); }
template <typename Element>
void start(int n, Element* y) { of_call<Element><<<n, 64>>>(y); }
int main() {
  double *d_x, *d_y;
  thrust::device_vector<unsigned short> v(8);
  of_array<<<1, 64>>>(d_x, d_y, 3);
  of_vector<<<1, 64>>>(thrust::raw_pointer_cast(v.data()));
  of_number<<<1, 64>>>((float*)d_x, 2.5f);
  Table<unsigned long long, short> table;
  run<double>(d_y);
  float2 *pairs = nullptr;
  start(4, pairs);
}
"""


def test_templates_are_those_that_the_host_makes(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(INSTANCES)
    drafts = [one for found in find_kernels(tmp_path / "k.cu") for one in found]  # type: ignore[union-attr]
    assert [one.instance for one in drafts] == [
        "of_array<double>",
        "of_vector<unsigned short>",
        "of_number<float>",
        "of_class<unsigned long long, short>",
        "of_function<double>",
        "of_member<unsigned long long>",
        "of_call<float2>",
        "unseen<float>",
    ]


STRUCTS = """\
#include <hip/hip_runtime.h>
typedef struct { int n; float scale; const float* x; float* y; int dims[2]; float4 shift; } Job;
struct Body { double mass; float at[3]; };
enum Mode { FAST, EXACT };
#ifdef DOUBLE
typedef double real;
#else
typedef float real;
#endif
__global__ void job(Job j, float** rows, int4 v, bool* flag, Mode mode, const Body* bodies, real* z) {
  rows[0][0] = j.x[0]; j.y[0] = bodies[0].mass; flag[0] = true; z[0] = v.x;
}
__global__ void deep(float*** x) { x[0][0][0] = 1; }
"""


MESHES = """\
#include <hip/hip_runtime.h>
struct Edges { const int* next; int* seen; };
struct Mesh { float* height; const float* slope; float* left; Edges edges; int cells; float rate; };
typedef float Three[3];
struct Plain { float a; Three b; };
struct Middle { Edges inner; };
struct Lower { Middle middle; };
struct Deep { Lower outer; };
class Closed { float* a; public: int b; };
__device__ void settle(Mesh* m, int i) { m->left[i] *= m->rate; m->edges.seen[i] = 1; }
__global__ void flow(Mesh* mesh, Plain* plain, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < mesh->cells) mesh->height[i] = (*mesh).slope[i] + mesh[0].edges.next[i] + plain[i].a;
  if (i < mesh->cells) settle(mesh, i);
}
__global__ void local(const Mesh* __restrict__ mesh) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const Mesh m = *mesh;
  if (i < m.cells) m.height[2 * i + 1] = m.slope[i] + m.edges.next[i];
}
__global__ void closed(Closed* c, Deep* d) { c->b = 1; }
__global__ void several(Mesh* meshes) { meshes[blockIdx.x].height[threadIdx.x] = 1; }
"""


def test_structs_behind_pointers_that_hold_pointers_are_drafted(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(MESHES)
    drafts = [one for found in find_kernels(tmp_path / "k.cu", (), tmp_path) for one in found]  # type: ignore[union-attr]
    paths = write_drafts(drafts, tmp_path)
    assert "guess: that the pointer leads to one struct" in paths[3].read_text()
    flow, local, closed, _ = (spec.load(filled(path)).spec.variants["main"] for path in paths)
    edges = {"next": "mesh_edges_next", "seen": "mesh_edges_seen"}
    assert flow.structs == {
        "mesh": {
            **{name: f"mesh_{name}" for name in ("height", "slope", "left")},
            "edges": edges, "cells": "mesh_cells", "rate": "mesh_rate",
        }
    }  # fmt: skip
    assert flow.launches[0].args == ["mesh", "plain", "n"]
    assert list(flow.outputs) == ["mesh_height", "mesh_edges_seen"]
    assert list(flow.inout) == ["mesh_left"]
    assert list(flow.inputs) == ["mesh_slope", "mesh_edges_next", "plain"]
    assert flow.inputs["plain"].dtype == "uint8"
    assert not closed.structs
    assert list(local.outputs) == ["mesh_height"]
    assert local.outputs["mesh_height"].shape == ["mesh_cells", 2]


def test_structs_lists_and_bytes_of_structs_are_drafted(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(STRUCTS)
    drafts = [one for found in find_kernels(tmp_path / "k.cu", (), tmp_path) for one in found]  # type: ignore[union-attr]
    assert [one.kernel.name for one in drafts if one.reasons] == ["deep"]
    (path,) = write_drafts([one for one in drafts if one.spec], tmp_path)
    main = spec.load(filled(path)).spec.variants["main"]
    assert main.launches[0].args == ["j", "rows", "v", "flag", 0, "bodies", "z"]
    assert isinstance(main.structs["j"], dict)
    assert main.structs["j"]["dims"] == [1, 1]
    assert main.structs["v"] == {"x": "v_x", "y": "v_y", "z": "v_z", "w": "v_w"}
    assert main.lists == {"rows": "rows_rows"}
    assert list(main.outputs) == ["j_y", "rows_rows", "flag", "z"]
    assert main.outputs["z"].dtype == "float32"
    assert main.inputs["bodies"].dtype == "uint8"


def test_the_verb_prints_a_table_or_json(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    assert run(["find", str(tree(tmp_path))]) == 0
    out = capsys.readouterr().out
    assert "4 kernels" in out
    assert run(["find", str(tmp_path), "--json"]) == 0
    listing = json.loads(capsys.readouterr().out)
    assert len(listing["kernels"]) == 4
    assert listing["unread"] == []
    assert run(["find", str(tmp_path / "none")]) == 2


def test_damaged_files_are_read_without_a_fault_and_in_bounded_time(tmp_path: Path) -> None:
    draw = random.Random(1)
    marks = [
        "{",
        "}",
        "(",
        ")",
        "<",
        ">>>",
        "<<<",
        '"',
        "'",
        "\n#if",
        "\n#else\n",
        "/*",
        'R"(',
        "\\\n",
        "\0",
        "é",
    ]
    start = time.process_time()
    for number in range(60):
        text = list(PROGRAM * (1 + number % 3))
        for _ in range(draw.randrange(1, 30)):
            at = draw.randrange(len(text))
            text[at : at + draw.randrange(3)] = draw.choice(marks)
        file = tmp_path / f"k{number}.cu"
        file.write_text("".join(text), encoding="utf-8")
        for found in find_kernels(file):
            assert isinstance(found, Unread) or all(
                msgspec.json.encode(found_kernel(one)) for one in found
            )
    (tmp_path / "deep.cu").write_text("__global__ void k(" + "(" * 20_000 + "{" * 20_000)
    (tmp_path / "long.cu").write_text("__global__ void k(int a) {" + "f(a);" * 200_000 + "}")
    assert all(list(find_kernels(tmp_path / name)) for name in ("deep.cu", "long.cu"))
    assert time.process_time() - start < 60


def test_a_kernel_of_cs_linkage_is_found(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(
        'extern "C" __global__ void one(int* a) { a[0] = 1; }\n'
        'extern "C" { __global__ void two(int* a) { a[0] = 2; } }\n'
    )
    (drafts,) = find_kernels(source)
    assert not isinstance(drafts, Unread)
    assert [one.kernel.name for one in drafts] == ["one", "two"]


def test_kernels_of_macros_and_cut_ones_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "made.hip"
    source.write_text(
        "#define MAKE(NAME, T) \\\n"
        "  __global__ void NAME(const T* x, T* y) { y[0] = x[0]; }\n"
        "MAKE(one, float)\n"
        "__global__ void declared(const float* x, float* y);\n"
        "// __global__ void spoken_of(float* y) {}\n"
        "__global__ void whole(const float* x, float* y) { y[0] = x[0]; }\n"
        "__global__ void cut(const float* x, float* y) { if (x[0] > 0) { y[0] = x[0];\n"
    )
    assert run(["find", str(source)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "2 kernels found; a spec can be written for 2" in text
    assert f"{source}:3 one" in text
    assert f"{source}:7: the kernel cut could not be read to its end" in text
    assert "declared" not in text
    assert "spoken_of" not in text
    assert run(["new", str(source), "--kernel", "cut", "--out", str(tmp_path / "out")]) == 2
    assert "the kernel cut could not be read to its end" in capsys.readouterr().err


CONDITIONS = """\
#ifndef __TYPES__
#define __TYPES__
#define SINGLE
#define WIDTH 4
#ifdef SINGLE
using real = float;
#else
using real = double;
#endif
#if defined(__CUDACC__) && !defined(__HIPCC__)
typedef char index_t;
#elif WIDTH * 2 > BOUND && (WIDTH & 4)
typedef long index_t;
#else
typedef short index_t;
#endif
#endif
"""
CONDITIONAL = """\
#include "types.h"
__global__ void k(real* y, const index_t* i
#ifdef COUNTED
                  , int count
#endif
) { y[0] = i[0]; }
#ifdef OLD
__global__ void __launch_bounds__(64) old(real* y) { y[0] = 1; }
#endif
#if __SOMETHING > 3
__global__ void either(real* y) { y[0] = 1; }
#endif
"""


@pytest.mark.parametrize(
    ("defines", "types", "more"),
    [
        ({}, "float* y, const long* i", []),
        ({"BOUND": "9", "COUNTED": ""}, "float* y, const short* i, int count", []),
        ({"OLD": ""}, "float* y, const long* i", ["old"]),
    ],
)
def test_branches_are_those_that_the_macros_take(
    defines: dict[str, str], types: str, more: list[str], tmp_path: Path
) -> None:
    (tmp_path / "types.h").write_text(CONDITIONS)
    (tmp_path / "k.hip").write_text(CONDITIONAL)
    found = list(find_kernels(tmp_path, (), tmp_path / "out", defines))
    drafts = [one for part in found if isinstance(part, list) for one in part]
    assert [one.kernel.name for one in drafts] == ["k", *more]
    assert ", ".join(one.text for one in drafts[0].kernel.parameters) == types
    left = [one.reason for one in found if isinstance(one, Unread)]
    names = [*([] if more else ["old"]), "either"]
    assert [one.split(" is in an inactive branch")[0] for one in left] == [
        f"the kernel {n}" for n in names
    ]
    (path, *_) = write_drafts(drafts, tmp_path / "out")
    flags = spec.load(filled(path)).spec.variants["main"].flags
    assert flags == [f"-D{name}" + f"={value}" * bool(value) for name, value in defines.items()]


VARIABLES = """\
#define WIDTH 8
namespace deep { __device__ float sums[2 * WIDTH]; }
__constant__ float4 table[3];
__constant__ float known[2] = {1, 2};
static __device__ unsigned counted, untouched;
__device__ void count() { atomicAdd(&counted, 1u); }
struct Pair { char tag; double value; };
__global__ void only(const Pair* pairs, int n) {
  int i = threadIdx.x;
  if (i < n) deep::sums[i] = table[0].x + known[0] + pairs[i].value;
  count();
}
__global__ void beside(float3* y, int n) { if (threadIdx.x < n) y[threadIdx.x].x = counted; }
__global__ void all(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i];
}
template <typename Rng> __global__ void drawn(float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = Rng()();
}
template <typename T> struct Engine { __device__ T operator()() { return 1; } };
template <typename Rng> void start(float* y) { drawn<Rng><<<1, 64>>>(y, 64); }
int main() {
  using number = float;
  using engine = Engine<number>;
  start<engine>(y);
  all<<<1 << 20, 128>>>(x, y);
}
"""


def test_variables_lanes_bytes_and_whole_grids_of_drafts(tmp_path: Path) -> None:
    (tmp_path / "k.hip").write_text(VARIABLES)
    drafts = [one for found in find_kernels(tmp_path, (), tmp_path / "out") for one in found]  # type: ignore[union-attr]
    paths = write_drafts(drafts, tmp_path / "out")
    only, beside, every, drawn = (spec.load(filled(path)).spec.variants["main"] for path in paths)
    assert {name: (one.shape, one.symbol) for name, one in only.outputs.items()} == {
        "sums": ([16], "deep::sums")
    }
    assert {name: one.symbol for name, one in only.inout.items()} == {"counted": "counted"}
    assert {name: one.shape for name, one in only.symbols.items()} == {"table": [3, 4]}
    assert only.inputs["pairs"].shape[-1] == 16
    assert [*beside.outputs, *beside.inout, *beside.symbols] == ["y", "counted"]
    assert beside.inout["y"].shape == ["n", 3]
    assert every.launches[0].grid == ["ceil_div(elements, 128)"]
    assert spec.load(paths[2]).spec.params["elements"].multiple_of == 128
    assert drawn.launches[0].kernel == "drawn<Engine<float>>"
