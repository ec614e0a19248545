"""One right kernel, `out[y * w + x] = in[y * w + x]`, in many spellings, and a generator of more."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

HEAD = """\
#include <hip/hip_runtime.h>
#define AT(x, y) ((y) * w + (x))
#define LINE(name, value) int name = (value)
using whole = int;
struct Tile { int w; __device__ int at(int x, int y) const { return y * w + x; } };
struct Rows {
  float* p; int w;
  __device__ float& operator()(int x, int y) { return p[y * w + x]; }
  __device__ float* operator[](int y) { return p + y * w; }
};
template <int STEP> __device__ int place(int x, int y, int w) { int row = y * w; row += x; return row; }
__device__ int along(int block, int threads, int thread) { return block * threads + thread; }
__device__ void put(float& to, float value) { to = value; }
__device__ float get(const float* from, int at) { const float* p = from; p += at; return *p; }
"""
KERNEL = """\
__global__ void copy(const float* in, float* out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
"""
TAIL = """
}
void start(const float* in, float* out, int w, int h) {
  copy<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(in, out, w, h);
}
"""
BODIES = {
    "plain": "out[y * w + x] = in[y * w + x];",
    "int const": "int const at = y * w + x; out[at] = in[at];",
    "unsigned int": "unsigned int at = y * w + x; out[at] = in[at];",
    "long long int": "long long int at = (long long int)y * w + x; out[at] = in[at];",
    "two declarators": "int row = y * w, at = row + x; out[at] = in[at];",
    "pointer made": "const float* from = in + y * w; float* to = out + y * w; to[x] = from[x];",
    "address of": "const float* from = &in[y * w]; float* to = &out[y * w]; to[x] = from[x];",
    "pointer moved": "in += y * w; out += y * w; out[x] = in[x];",
    "macro": "out[AT(x, y)] = in[AT(x, y)];",
    "if constexpr": "if constexpr (sizeof(int) == 4) { out[y * w + x] = in[y * w + x]; }",
    "reference": "float& to = out[y * w + x]; to = in[y * w + x];",
    "star": "*(out + y * w + x) = *(in + y * w + x);",
    "ptrdiff_t": "ptrdiff_t at = y * w + x; out[at] = in[at];",
    "short": "short row = y; out[row * w + x] = in[row * w + x];",
    "alias": "whole at = y * w + x; out[at] = in[at];",
    "assigned later": "int at; at = y * w + x; out[at] = in[at];",
    "compound assignment": "int at = x; at += y * w; out[at] = in[at];",
    "size_t()": "out[size_t(y) * w + x] = in[size_t(y) * w + x];",
    "shift by 0": "int row = (y * w) << 0; out[row + x] = in[row + x];",
    "__mul24": "out[__mul24(y, w) + x] = in[__mul24(y, w) + x];",
    "deduced pointers": "const auto from = in + y * w; auto to = out + y * w; to[x] = from[x];",
    "lambda": "auto at = [&](int a, int b) { return b * w + a; }; out[at(x, y)] = in[at(x, y)];",
    "member function": "Tile t{w}; out[t.at(x, y)] = in[t.at(x, y)];",
    "row{}": "int row{y * w}; out[row + x] = in[row + x];",
    "row()": "int row(y * w); out[row + x] = in[row + x];",
    "int2": "int2 p = make_int2(x, y); out[p.y * w + p.x] = in[p.y * w + p.x];",
    "fields of int2": "int2 p; p.x = x; p.y = y; out[p.y * w + p.x] = in[p.y * w + p.x];",
    "assigned again": "int at = x; at = at + y * w; out[at] = in[at];",
    "rows by a loop": "for (int r = y; r < h; r += gridDim.y * blockDim.y)\n"
    "    out[r * w + x] = in[r * w + x];",
    "walking pointers": "const float* p = in + x; float* q = out + x;\n"
    "  for (int r = 0; r < h; ++r) { *q = *p; p += w; q += w; }",
    "/ and %": "int i = y * w + x; if (i < w * h) out[(i / w) * w + i % w] = in[i];",
    "lambda that writes": "auto put = [&](int a, float v) { out[a] = v; };\n"
    "  put(y * w + x, in[y * w + x]);",
    "lambda of a pointer": "auto row = [&](int r) -> float* { return out + r * w; };\n"
    "  row(y)[x] = in[y * w + x];",
    "other pointer": "float (*o)[16] = nullptr; out[y * w + x] = in[y * w + x];",
    "branches agree": "int at; if (y & 1) at = y * w + x; else at = x + w * y; out[at] = in[at];",
    "flat guard": "const size_t at = size_t(x) + size_t(y) * size_t(w);\n"
    "  if (at < size_t(w) * h) out[at] = __ldg(in + at);",
}
_INDICES = (
    "{} row = y * w; {} at = row + x;",
    "{} at = x; at += y * w;",
    "{} at(y * w + x);",
    "{} at{{x + w * y}};",
    "{} at; at = place<2>(x, y, w);",
    "{} at; {{ {} row = y; at = row * w; }} at = at + x;",
    "LINE(row, y * w); {} at = row + x;",
)
_TYPES = ("int", "const int", "unsigned", "int64_t", "auto", "whole")
_COPIES = (
    "out[at] = in[at];",
    "*(out + at) = __ldg(&in[at]);",
    "float& to = out[at]; to = get(in, at);",
    "put(out[at], in[at]);",
    "float* to = out; to += at; *to = static_cast<float>(*(in + at));",
    "Rows rows{out, w}; rows(x, y) = in[at];",
    "Rows rows = {out, w}; rows[y][x] = in[at];",
)


_X, _Y = (f"blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}" for axis in "xy")
_STARTS = (
    f"int x = {_X}, y = {_Y}; if (x >= w || y >= h) return; BODY",
    f"const unsigned x = {_X}; const unsigned y{{{_Y}}}; if (x < w && y < h) {{ BODY }}",
    "int x = threadIdx.x; x += blockIdx.x * blockDim.x;\n"
    "  int y(threadIdx.y + blockDim.y * blockIdx.y); if (!(x < w && y < h)) return; BODY",
    "auto x = along(blockIdx.x, blockDim.x, threadIdx.x);\n"
    "  auto y = along(blockIdx.y, blockDim.y, threadIdx.y); if (x >= w) return;\n"
    "  if (y >= h) return; BODY",
    f"const int x = {_X}; if (x < w)\n"
    f"    for (int y = {_Y}; y < h; y += gridDim.y * blockDim.y) {{ BODY }}",
    f"for (int y = {_Y}; y < h; y += gridDim.y * blockDim.y)\n"
    f"    for (int x = {_X}; x < w; x += gridDim.x * blockDim.x) {{ BODY }}",
    f"int x = {_X}; if (x >= w) return; int y = {_Y};\n"
    "  while (y < h) { BODY y += gridDim.y * blockDim.y; }",
    f"int2 p = make_int2({_X}, {_Y}); const int x = p.x, y = p.y; if (x < w && y < h) {{ BODY }}",
)


def source(body: str) -> str:
    """The program with that body."""
    return f"{HEAD}{KERNEL}  {body}{TAIL}"


def programs() -> Iterator[str]:
    """Programs of the one kernel: coordinates, guards and loops in turn with the generated bodies."""
    head = KERNEL.partition("\n")[0]
    for at, body in enumerate(generated()):
        for start in (_STARTS[at % len(_STARTS)], _STARTS[(at // 3 + 5) % len(_STARTS)]):
            yield f"{HEAD}{head}\n  {start.replace('BODY', body)}{TAIL}"


def generated() -> Iterator[str]:
    """Bodies by declarations, initialisers, pointers, helpers and members."""
    for index, kind, copy in itertools.product(_INDICES, _TYPES, _COPIES):
        assigned = "at;" in index or "+=" in index or "at = at" in index
        if assigned and kind in {"const int", "auto"}:
            continue
        yield f"{index.format(kind, kind)} {copy}"
