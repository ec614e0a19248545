"""Code objects for tests: compiled here, and wrapped as files carry them."""

from __future__ import annotations

import functools
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest

from tokitai_cli.devices.amdgpu import gfx_compiler

SOURCE = """\
#include <hip/hip_runtime.h>
template <typename T> __global__ void scale(T* out, const T* in, T by, int n) {
    __shared__ T held[64];
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    held[threadIdx.x] = at < n ? in[at] : T(0);
    __syncthreads();
    if (at < n) out[at] = held[threadIdx.x ^ 1] * by + T(1);
}
template __global__ void scale<float>(float*, const float*, float, int);
__global__ void plain(int* out) { out[threadIdx.x] = gridDim.x; }
"""


@functools.cache
def code_object(arch: str = "gfx1101", *more: str) -> bytes:
    """The code object of SOURCE, with other sources linked to it; skips where no compiler is there."""
    chain = gfx_compiler.toolchain()
    if chain is None:
        pytest.skip(gfx_compiler.missing("")[0])
    *steps, link = gfx_compiler.commands(chain, arch, (), ())
    made = []
    with tempfile.TemporaryDirectory() as folder:
        for number, source in enumerate((SOURCE, *more)):
            (Path(folder) / "sample.hip").write_text(source)
            places = {"source": "sample.hip", "output": gfx_compiler.ASSEMBLY, "depfile": "code.d"}
            for words in steps:
                argv = [word.format(**places) if "{" in word else word for word in words]
                subprocess.run(argv, cwd=folder, check=True, capture_output=True)
            made.append(f"{number}.o")
            (Path(folder) / gfx_compiler.OBJECT).rename(Path(folder) / made[-1])
        at = link.index(gfx_compiler.OBJECT)
        argv = [*link[:at], "-z", "muldefs", *made, *link[at + 1 :]]  # each defines __hip_cuid_
        subprocess.run(argv, cwd=folder, check=True, capture_output=True)
        return (Path(folder) / gfx_compiler.CODE_OBJECT).read_bytes()


def bundle(entries: dict[str, bytes]) -> bytes:
    """An offload bundle of code objects by target."""
    names = {f"hipv4-amdgcn-amd-amdhsa--{target}": data for target, data in entries.items()}
    names = {"host-x86_64-unknown-linux-gnu-": b"", **names}
    head = 32 + sum(24 + len(name) for name in names)
    table, body = b"", b""
    for name, data in names.items():
        table += struct.pack("<QQQ", head + len(body), len(data), len(name)) + name.encode()
        body += data
    return b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names)) + table + body


def compressed(data: bytes, version: int, packed: bytes, method: int = 1) -> bytes:
    """A compressed bundle of `data`, which `packed` is the compressed form of."""
    sizes, total = ("<II", 24) if version == 2 else ("<QQ", 32)
    head = struct.pack("<HH", version, method) + struct.pack(sizes, total + len(packed), len(data))
    return b"CCOB" + head + bytes(8) + packed
