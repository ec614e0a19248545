"""Launches as the host makes them: by pointers, wrappers and lambdas, with what its variables hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli.cpp.host.launches import launches_in
from tokitai_cli.cpp.preprocessed_unit import preprocess
from tokitai_cli.cpp.program import Program
from tokitai_cli.cpp.source.listing import Unread
from tokitai_cli.drafts.search import drafts_of

KERNELS = """\
template <typename T, int N> __global__ void k(T* x, int n) { x[n] = N; }
__global__ void plain(float* x, int n, int stride) { x[n] = stride; }
__global__ void empty() { }
const size_t TOTAL = 1l << 12;
#define LAUNCH(kernel, ...) kernel<<<(n + 63) / 64, 64>>>(__VA_ARGS__)
template <typename F, typename... A> void wrap(F f, int blocks, A... a) { f<<<blocks, 128>>>(a...); }
struct Runner { int threads; void run(float* x, int n) { plain<<<n, threads>>>(x, n, 1); } };
"""
# Body of a host function of (float* x, int n, int m): kernel<template>[grid|block|shared](numbers).
CASES = {
    "plain": ("plain<<<n, 64, 4 * m>>>(x, n, m);", "plain<>[n|64|4*m](n, m)"),
    "variables": (
        "int t = 128; dim3 b(t, 2); int g = (n + t - 1) / t; plain<<<g, b>>>(x, n, m * n);",
        "plain<>[(n + 127) / 128|128 2|](n, m*n)",
    ),
    "set again": ("dim3 b(32); b.y = 4; b.x = m; plain<<<n, b>>>(x, n, 3);", "plain<>[n|m 4|](n, 3)"),
    "set where a condition holds": (
        "dim3 b(32); if (n > 3) b.x = 64; plain<<<n, b>>>(x, n, 3);",
        "plain<>[n|n > 3 ? 64 : 32|](n, 3)",
    ),
    "changed in a loop": (
        "int g = n; while (g > 9) g = next(g); plain<<<g, 1>>>(x, n, 3);",
        "plain<>[g|1|](n, 3)",
    ),
    "a counter that is passed": (
        "dim3 g; for (int i = m; i > 0; i--) { g.x = i; g.y = i + 1; plain<<<g, 32>>>(x, i, n); }",
        "plain<>[i i + 1 ?|32|](i, n)",
    ),
    "a pointer": ("auto f = &k<float, 4>; f<<<n, 32>>>(x, m);", "k<float, 4>[n|32|](m)"),
    "a pointer by name": ("auto f = plain; f<<<n, 32>>>(x, m, 1);", "plain<>[n|32|](m, 1)"),
    "a wrapper": ("wrap(k<float, 3>, n / 2, x, m);", "k<float, 3>[(n) / 2|128|]()"),
    "a member": ("Runner r{96}; r.run(x, m);", "plain<>[n|threads|](n, 1)"),
    "a macro": ("LAUNCH(plain, x, n, m);", "plain<>[(n + 63) / 64|64|](n, m)"),
    "a dispatch's lambda": (
        'DISPATCH(kind, "k", [&] { constexpr int M = 16; k<float, M><<<1, M>>>(x, n); });',
        "k<float, 16>[1|16|](n)",
    ),
    "HIP's macro": (
        "hipLaunchKernelGGL(HIP_KERNEL_NAME(k<float, 8>), dim3(n), dim3(32), 0, stream, x, m);",
        "k<float, 8>[n|32|](m)",
    ),
    "the runtime's function": (
        "void* args[] = {&x, &n, &m}; cudaLaunchKernel((const void*)plain, n, 256, args, 0, 0);",
        "plain<>[n|256|](n, m)",
    ),
    "a cast of the pointer": (
        "((void (*)(float*, int, int))plain)<<<n, 1>>>(x, n, m);",
        "plain<>[n|1|](n, m)",
    ),
    "the type that is passed": ("k<<<n, 1>>>(x, m);", "k<float>[n|1|](m)"),
    "nothing passed": ("empty<<<1, 2>>>();", "empty<>[1|2|]()"),
    "another kernel's": ("unknown<<<1, 2>>>(x);", ""),
    "rounded up by a step": (
        "int g = n / 32; if (n % 32) g++; plain<<<g, 32>>>(x, n, m);",
        "plain<>[(n + 31) / 32|32|](n, m)",
    ),
    "rounded up as a real number": (
        "plain<<<ceil((float)n / 32), 32>>>(x, n, m); plain<<<ceil(n / 32), 32>>>(x, n, m);",
        "plain<>[(n + 31) / 32|32|](n, m) plain<>[(n) / 32|32|](n, m)",
    ),
    "rounded up by a literal": (
        "unsigned g = std::ceil(n / 32.0f); plain<<<g, 32>>>(x, n, m);",
        "plain<>[(n + 31) / 32|32|](n, m)",
    ),
    "bounds": (
        "int g = std::min(n, 64); if (g < m) g = m; plain<<<g, std::max<int>(n, 1)>>>(x, n, m);",
        "plain<>[max(m, min(64, n))|max(1, n)|](n, m)",
    ),
    "a choice": (
        "plain<<<n > 64 ? 64 : n, m == 1 ? n : 8>>>(x, n, m);",
        "plain<>[min(64, n)|m == 1 ? n : 8|](n, m)",
    ),
    "a choice that a branch has decided": (
        "int g; if (m > 8) g = n; else g = 4; if (m > 8) plain<<<g, 1>>>(x, n, m);",
        "plain<>[n|1|](n, m)",
    ),
    "branches": (
        "if (n > 64) plain<<<1, 64>>>(x, n, 1); else plain<<<2, 32>>>(x, n, 2);",
        "plain<>[1|64|](n, 1) plain<>[2|32|](n, 2)",
    ),
    "a branch that is not taken": (
        "int t = 16; if (t > 64) plain<<<1, 64>>>(x, n, 1); plain<<<2, 32>>>(x, n, 2);",
        "plain<>[2|32|](n, 2) plain<>[1|64|](n, 1)",
    ),
    "a loop of launches": (
        "for (int s = n / 2; s > 0; s /= 2) plain<<<s / 8, 8>>>(x, s, m);",
        "plain<>[(s) / 8|8|](s, m)",
    ),
    "a number that is handed over": (
        "const int size = 1 << 12, block = 64; plain<<<size / block, block>>>(x, size, m);",
        "plain<>[(size) / 64|64|](size, m)",
    ),
    "a constant that is handed over": (
        "plain<<<TOTAL / 64, 64>>>(x, TOTAL, 1);",
        "plain<>[(TOTAL) / 64|64|](TOTAL, 1)",
    ),
    "a product that is handed over": (
        "plain<<<(n * m + 63) / 64, 64>>>(x, n * m, m);",
        "plain<>[(m*n + 63) / 64|64|](m*n, m)",
    ),
    "a reassigned argument": (
        "int size = n; size = size * m; plain<<<size, 1>>>(x, size, m);",
        "plain<>[size|1|](size, m)",
    ),
    "a configuration": (
        "cudaLaunchConfig_t c = {0}; c.gridDim = dim3(n, 2); c.blockDim = m; c.dynamicSmemBytes = 8;\n"
        "cudaLaunchKernelEx(&c, plain, x, n, m);",
        "plain<>[n 2|m|8](n, m)",
    ),
    "a part that cannot be read": (
        "int g = n; )( plain<<<g, 32>>>(x, n, m);",
        "plain<>[n|32|](n, m)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_launches_with_what_the_host_holds(name: str) -> None:
    body, wanted = CASES[name]
    text = f"{KERNELS}void host(float* x, int n, int m) {{ {body} }}\n"
    found = launches_in(Program(preprocess(Path("k.cu"), text=text)))
    told = []
    for one in found:
        grid, block = (
            " ".join("?" if "#" in str(each) else str(each) for each in extents)
            for extents in (one.grid, one.block)
        )
        numbers = ", ".join("?" if each is None else str(each) for each in one.arguments[1:])
        shared = one.shared if one.shared else ""
        template = ", ".join(one.template)
        told.append(f"{one.kernel}<{template}>[{grid}|{block}|{shared}]({numbers})")
    told = told[1:] if name != "a member" else told  # that of `Runner::run`
    assert " ".join(dict.fromkeys(told)) == wanted


TYPES = """\
double *other, *everywhere;
struct Plus { int operator()(int a) { return a; } };
template <typename T> struct Buffer { T* data(); T* held; };
template <typename T, int N = 1> __global__ void k(T* x, int n) { x[n] = N; }
template <typename T, typename F> __global__ void map(const T* x, F f, T by) { f(x[0]); }
template <typename T> struct Op { T* y; void run(int n) { using E = T; k<E><<<1, n>>>(y, n); } };
template <typename T, int B> void start(T* x) { k<T, B / 2><<<1, B>>>(x, 3); }
template <typename S> void wide(S* x) { k<<<1, 1>>>(x, 3); }
"""
#: What a function does, and the template arguments of the launch, its block and numbers.
DEDUCED = {
    "a declared pointer": ("double* p; k<<<1, 8>>>(p, 1);", "double, 8"),
    "a cast": ("void* p; k<<<1, 8>>>(static_cast<short*>(p), 1);", "short, 8"),
    "an element's address": ("float p[9]; k<<<1, 8>>>(&p[3] + 2, 1);", "float, 8"),
    "a container": ("std::vector<long> v; k<<<1, 8>>>(v.data(), 1);", "long, 8"),
    "a container's iterator": (
        "const thrust::device_vector<char>& v = w();\n"
        "k<<<1, 8>>>(thrust::raw_pointer_cast(v.data()), 1);",
        "char, 8",
    ),
    "a tensor": ("torch::Tensor t; k<<<1, 8>>>(t.data_ptr<double>(), 1);", "double, 8"),
    "a class of the program's": ("Buffer<short> b; k<<<1, 8>>>(b.data(), 1);", "short, 8"),
    "a field of one": ("Buffer<short> b; k<<<1, 8>>>(b.held, 1);", "short, 8"),
    "auto": ("auto p = new int[4]; auto q = p + 1; k<<<1, 8>>>(q, 1);", "int, 8"),
    "an alias of the function's": ("using E = long; E* p; k<<<1, 8>>>(p, 1);", "long, 8"),
    "a functor and a literal": ("float* p; map<<<1, 8>>>(p, Plus(), 2.0f);", "float, Plus, 8"),
    "a template of the host's": ("float* p; start<float, 64>(p);", "float, 32, 64"),
    "a call that leaves it to be found out": ("double* p; wide(p);", "double, 1"),
    "the class around": ("Op<double> op; op.run(4);", "double, n"),
    "a variable of the program's": ("k<<<1, 8>>>(everywhere, 1);", "double, 8"),
    "nothing": ("k<<<1, 8>>>(unknown, 1);", "8"),
}


@pytest.mark.parametrize("name", DEDUCED)
def test_template_arguments_are_those_of_what_is_passed(name: str) -> None:
    body, wanted = DEDUCED[name]
    text = f"{TYPES}void host() {{ {body} }}\n"
    found = launches_in(Program(preprocess(Path("k.cu"), text=text)))
    told = [", ".join([*one.template, *map(str, one.block)]) for one in found]
    assert wanted in told, told


def test_the_hosts_own_numbers_are_known_from_its_callers() -> None:
    text = (
        f"{KERNELS}struct Rates {{ float first = 0.5f; int steps; }};\n"
        "__global__ void s(Rates r, float* x, float by) { x[r.steps] = by; }\n"
        "#define CHECK(call) do { int e = call; if (e) exit(e); } while (0)\n"
        "void run(float* x, int n) { plain<<<(n + 31) / 32, 32>>>(x, n, 2 * n); }\n"
        "void both(float* x, float by) { Rates r; r.steps = 3; s<<<1, 1>>>(r, x, by); }\n"
        "int main() { const int n = 100; float* d; CHECK(cudaMalloc((void**)&d, n * sizeof(float)));\n"
        "  run(d, n); both(d, 0.25f); both(d, 0.75f); }\n"
    )
    plain, of_struct = launches_in(Program(preprocess(Path("k.cu"), text=text)))[1:]
    assert plain.numbers.grid == (4,)
    assert plain.numbers.block == (32,)
    assert [*plain.numbers.arguments] == [None, 100, 200]
    assert plain.numbers.allocated[0] == 400
    assert of_struct.numbers.fields == {"r.first": 0.5, "r.steps": 3}
    assert of_struct.numbers.arguments[2] is None  # two calls, two numbers


HOSTS = {
    "counted from others": (
        "int stride = heads * size; turn<<<tokens, 128>>>(q, stride, heads, size);",
        ["grid: [tokens]", 'args: [q, "heads * size", heads, size]'],
    ),
    "set where a condition holds": (
        "dim3 b(size); if (size % 32 != 0) { b.x = 512; } turn<<<tokens, b>>>(q, 4, heads, size);",
        ["block: [256]  # guess: the host's launch does not show it"],
    ),
    "set again": (
        "dim3 b(32); b.x = 96; turn<<<tokens, b>>>(q, 4, heads, size);",
        ["block: [96]"],
    ),
    "rounded up by a remainder": (
        "int n = heads * size; turn<<<(n) / 64 + ((n) % 64 > 0), 64>>>(q, 4, heads, size);",
        ['grid: ["(heads * size + 63) // 64"]'],
    ),
    "rounded up by a choice": (
        "int n = heads % 8 == 0 ? heads / 8 : heads / 8 + 1; turn<<<n, 8>>>(q, 4, heads, size);",
        ['grid: ["(heads + 7) // 8"]'],
    ),
    "a branch that the host does not take": (
        "int t = 32; if (t == 16) turn<<<9, 16>>>(q, 4, heads, size);\n"
        "else turn<<<tokens, t>>>(q, 4, heads, size);",
        ["grid: [tokens]", "block: [32]"],
    ),
    "conditions on sizes": (
        "if (heads > 64) return; if (size % 8 == 0) turn<<<tokens, 128>>>(q, 4, heads, size);",
        ["heads: {default: 7, max: 64,", "size: {default: 8, multiple_of: 8,"],
    ),
    "one number for several": (
        "turn<<<(size + 7) / 8, 8>>>(q, 4, size, size);",
        ['grid: ["(max(heads, size) + 7) // 8"]  # guess: the host has size for several sizes'],
    ),
    "a cap": (
        "turn<<<min((heads * size + 63) / 64, 80), 64>>>(q, 4, heads, size);",
        ['grid: ["min((heads * size + 63) // 64, 80)"]'],
    ),
    "counted in steps": (
        "int n = heads / 8; if (heads % 8 != 0) n += 1; turn<<<n, 8>>>(q, 4, heads, size);",
        ['grid: ["(heads + 7) // 8"]', "block: [8]"],
    ),
    "a pointer": (
        "void (*f)(float*, int, int, int) = turn; f<<<tokens, 64>>>(q, 4, heads, size);",
        ["block: [64]"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTS)
def test_drafts_follow_the_host(name: str, tmp_path: Path) -> None:
    body, wanted = HOSTS[name]
    (tmp_path / "turn.cu").write_text(
        "__global__ void turn(float* q, int stride, int heads, int size) {\n"
        "  for (int i = threadIdx.x; i < heads * size; i += blockDim.x)\n"
        "    q[blockIdx.x * stride + i] += 1;\n}\n"
        f"void host(float* q, int tokens, int heads, int size) {{ {body} }}\n"
    )
    found = drafts_of(tmp_path / "turn.cu", room=False)
    assert not isinstance(found, Unread)
    assert [one for one in wanted if one not in found[0][0].spec] == []
