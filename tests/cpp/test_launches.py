"""Launches as the host makes them: by pointers, wrappers and lambdas, with what its variables hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli.cpp.launches import launches_in
from tokitai_cli.cpp.preprocessed_unit import preprocess
from tokitai_cli.cpp.program import Program
from tokitai_cli.cpp.source.listing import Unread
from tokitai_cli.drafts.search import drafts_of

KERNELS = """\
template <typename T, int N> __global__ void k(T* x, int n) { x[n] = N; }
__global__ void plain(float* x, int n, int stride) { x[n] = stride; }
__global__ void empty() { }
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
        "plain<>[?|1|](n, 3)",
    ),
    "a counter that is passed": (
        "dim3 g; for (int i = m; i > 0; i--) { g.x = i; g.y = i + 1; plain<<<g, 32>>>(x, i, n); }",
        "plain<>[i i + 1 ?|32|](?, n)",
    ),
    "a pointer": ("auto f = &k<float, 4>; f<<<n, 32>>>(x, m);", "k<float, 4>[n|32|](m)"),
    "a pointer by name": ("auto f = plain; f<<<n, 32>>>(x, m, 1);", "plain<>[n|32|](m, 1)"),
    "a wrapper": ("wrap(k<float, 3>, n / 2, x, m);", "k<float, 3>[(n) / 2|128|]()"),
    "a member": ("Runner r{96}; r.run(x, m);", "plain<>[n|threads|](n, 1) plain<>[m|96|](m, 1)"),
    "a macro": ("LAUNCH(plain, x, n, m);", "plain<>[(n + 63) / 64|64|](n, m)"),
    "a dispatch's lambda": (
        'DISPATCH(kind, "k", [&] { constexpr int M = 16; k<float, M><<<1, M>>>(x, n); });',
        "k<float, 16>[1|16|](n)",
    ),
    "HIP's macro": (
        "hipLaunchKernelGGL(HIP_KERNEL_NAME(k<float, 8>), dim3(n), dim3(32), 0, stream, x, m);",
        "k<float, 8>[n|32|0](m)",
    ),
    "the runtime's function": (
        "void* args[] = {&x, &n, &m}; cudaLaunchKernel((const void*)plain, n, 256, args, 0, 0);",
        "plain<>[n|256|0]()",
    ),
    "a cast of the pointer": (
        "((void (*)(float*, int, int))plain)<<<n, 1>>>(x, n, m);",
        "plain<>[n|1|](n, m)",
    ),
    "the type that is passed": ("k<<<n, 1>>>(x, m);", "k<float>[n|1|](m)"),
    "nothing passed": ("empty<<<1, 2>>>();", "empty<>[1|2|]()"),
    "another kernel's": ("unknown<<<1, 2>>>(x);", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_launches_with_what_the_host_holds(name: str) -> None:
    body, wanted = CASES[name]
    text = f"{KERNELS}void host(float* x, int n, int m) {{ {body} }}\n"
    found = launches_in(Program(preprocess(Path("k.cu"), text=text)))
    told = []
    for one in found:
        grid, block = (
            " ".join("?" if each is None else str(each) for each in extents)
            .removesuffix(" 1")
            .removesuffix(" 1")
            for extents in (one.grid, one.block)
        )
        numbers = ", ".join("?" if each is None else str(each) for each in one.arguments[1:])
        shared = "" if one.shared is None else str(one.shared)
        told.append(
            f"{one.kernel.name}<{', '.join(one.template)}>[{grid}|{block}|{shared}]({numbers})"
        )
    dropped = {"plain<>[n|threads|](n, 1)"} if name != "a member" else set()
    assert " ".join(dict.fromkeys(one for one in told if one not in dropped)) == wanted


HOSTS = {
    "counted from others": (
        "int stride = heads * size; turn<<<tokens, 128>>>(q, stride, heads, size);",
        ["grid: [tokens]", 'args: [q, "heads*size", heads, size]'],
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
        ['grid: ["(heads*size + 63) // 64"]'],
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
