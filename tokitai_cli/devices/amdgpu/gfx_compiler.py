"""Compilers that make code objects for AMD GPUs: a clang with the amdgcn target, else pip's zig."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

import msgspec

from tokitai_cli.core import process, resources
from tokitai_cli.core.flags import of_code
from tokitai_cli.core.model.device import DeviceOptions, warp_size_of
from tokitai_cli.devices import amd
from tokitai_cli.devices.environment import compiler_environment
from tokitai_cli.devices.programs import PROBE_SECONDS, answer, first_program, pip_zig

# The oldest one that knows gfx1100 and what the device headers ask of it.
_NAMES = ("clang", *(f"clang-{number}" for number in range(24, 16, -1)))
_TARGET = "amdgcn-amd-amdhsa"
ZIG = "pip's ziglang"
CHOSEN = "CLANG"
# Processors that not every one of them knows, and the LLVM since which it does.
_SINCE = {"gfx950": 20}
# Of hipcc's own macros those that a plain clang leaves out.
_NOT_CLANGS = re.compile(r"HIP_VERSION\w*|__HIP_PLATFORM_AMD__|__HIP_ARCH_HAS_\w+")
# Files in the folder of a build, in the order in which they are made.
ASSEMBLY, OBJECT, CODE_OBJECT = "code.s", "code.o", "code.hsaco"


class Toolchain(msgspec.Struct, frozen=True):
    """A clang and a linker as argv prefixes, how they were found, and words for its own headers."""

    clang: tuple[str, ...]
    linker: tuple[str, ...]
    source: str
    headers: tuple[str, ...] = ()


def toolchain(arch: str = "") -> Toolchain | None:
    """The clang that CLANG names ("zig" is pip's), else one of PATH, else pip's zig, or None.

    arch: of a newer processor only those that know it are taken.
    """
    chosen = os.environ.get(CHOSEN, "")
    if chosen == "zig":
        return _zig()
    for name in (chosen,) if chosen else _NAMES:
        found = first_program([(name, CHOSEN if chosen else "PATH")])
        made = _with_linker(*found) if found is not None else None
        if made is not None and (arch not in _SINCE or arch in _processors(made.clang)):
            return made
    return None if chosen else _zig()


def missing(arch: str) -> tuple[str, str]:
    """What a probe says where no compiler was found for a processor, and a hint."""
    since = _SINCE.get(arch, 17)
    named = f" for {arch}" if arch in _SINCE else ""
    return (
        f"no compiler{named or ' for AMD GPUs'} was found (searched CLANG, PATH for a clang with the "
        "amdgcn target and ld.lld, and pip's ziglang)",
        f"`pip install 'tokitai[gfx]'`, or install clang and lld of LLVM {since} or newer",
    )


def commands(
    chain: Toolchain, arch: str, defines: tuple[str, ...], flags: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Argv of the three steps from {source} to the code object: compile, assemble, link.

    defines: words such as -DNAME=VALUE. flags: of the spec, those of code and headers are taken. The
    same source under the same path gives the same bytes.
    """
    kernels = resources.kernels_dir()
    compile_words = (
        *(*chain.clang, "-x", "hip", "-std=c++17", "-O2", "-gline-tables-only"),
        *(f"--offload-arch={arch}", "--offload-device-only", "-nogpuinc", "-nogpulib"),
        *("-fuse-cuid=none", "-fdebug-compilation-dir=.", "-fdeclspec", "-DTOKITAI_DEVICE_GFX=1"),
        *(f"-I{kernels / folder}" for folder in ("gfx", "host", "harness")),
        *chain.headers,
        *_hip_macros(arch),
        *defines,
        *(flag for flag in flags if flag in of_code(flags) or re.match(r"-(?:[DUI]|i)", flag)),
        # zig's -MF is its own; these are the compiler's.
        *_passed_on("-dependency-file", "{depfile}", "-MT", "{output}", "-sys-header-deps"),
        *("-S", "{source}", "-o", "{output}"),
    )
    target = (f"--target={_TARGET}", f"-mcpu={arch}")
    return (
        compile_words,
        (*chain.clang, *target, "-c", ASSEMBLY, "-o", OBJECT),
        (*chain.linker, "-shared", "--no-undefined", OBJECT, "-o", CODE_OBJECT),
    )


def _passed_on(*words: str) -> tuple[str, ...]:
    return tuple(part for word in words for part in ("-Xclang", word))


def _hip_macros(arch: str) -> tuple[str, ...]:
    macros = amd.branch_macros(arch, warp_size_of("gfx", arch, DeviceOptions()))
    return tuple(f"-D{name}={text}" for name, text in macros.items() if _NOT_CLANGS.fullmatch(name))


@functools.cache
def _processors(clang: tuple[str, ...]) -> frozenset[str]:
    """Those that a clang compiles for."""
    asked = [*clang, "--print-supported-cpus", f"--target={_TARGET}"]
    done = process.run(asked, env=compiler_environment(), timeout=PROBE_SECONDS, cwd=Path("/"))
    return frozenset((done.stdout + done.stderr).split())


@functools.cache
def _with_linker(clang: Path, source: str) -> Toolchain | None:
    """A clang that has the target, with the lld beside it or on PATH; None where either is not there."""
    if "amdgcn" not in answer([str(clang), "-print-targets"]):
        return None
    beside = clang.resolve().parent / "ld.lld"
    suffix = clang.name.partition("-")[2]
    names = (str(beside), f"ld.lld-{suffix}" if suffix else "", "ld.lld")
    linker = first_program([(name, source) for name in names])
    return Toolchain((str(clang),), (str(linker[0]),), source) if linker is not None else None


def _zig() -> Toolchain | None:
    zig = pip_zig()
    return None if zig is None else _of_zig(zig)


@functools.cache
def _of_zig(zig: Path) -> Toolchain:
    """Pip's zig, with the headers and settings that its own C++ compiler would take for this machine."""
    machine = "aarch64" if os.uname().machine == "aarch64" else "x86_64"
    argv = [str(zig), "c++", "-target", f"{machine}-linux-gnu"]
    done = process.run(
        [*argv, "-E", "-dM", "-v", "-x", "c++", os.devnull],
        env=compiler_environment(),
        timeout=PROBE_SECONDS,
        cwd=Path("/"),
    )
    # Folders below the working one are told without it.
    listed = done.stderr.partition("<...> search starts here:\n")[2].partition("End of search")[0]
    folders = [Path("/") / line.strip() for line in listed.splitlines()]
    settings = re.findall(
        r"^#define (_LIBCPP_\w+|__GLIBC_MINOR__) (.*)$", done.stdout, re.MULTILINE
    )
    words = [f"-D{name}={text}" for name, text in sorted(settings)]
    headers = ("-nostdinc", *words, *(f"-isystem{folder}" for folder in folders))
    return Toolchain((str(zig), "clang"), (str(zig), "ld.lld"), ZIG, headers)
