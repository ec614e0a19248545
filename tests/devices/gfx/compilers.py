"""Code objects of HIP sources by the compilers that are here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tokitai_cli.build.compiler import command_of
from tokitai_cli.devices.amdgpu import gfx_compiler
from tokitai_cli.devices.environment import compiler_environment

COMPILERS = ("clang", "zig")


def toolchain(name: str, monkeypatch: pytest.MonkeyPatch) -> gfx_compiler.Toolchain:
    """The compiler of that name; the test is skipped where it is not here."""
    if name == "zig":
        monkeypatch.setenv(gfx_compiler.CHOSEN, "zig")
    else:
        monkeypatch.delenv(gfx_compiler.CHOSEN, raising=False)
    found = gfx_compiler.toolchain()
    if found is None or (name == "clang") == (found.source == gfx_compiler.ZIG):
        pytest.skip(f"no {name} that compiles for AMD GPUs is installed")
    return found


def code_object(
    chain: gfx_compiler.Toolchain, source: Path, folder: Path, arch: str = "gfx1101"
) -> bytes:
    """The code object of a source; what the compiler says fails the test."""
    names = {
        "source": str(source),
        "output": gfx_compiler.ASSEMBLY,
        "depfile": "code.d",
    }
    for argv in gfx_compiler.commands(chain, arch, (), ()):
        done = subprocess.run(
            command_of(argv, names),
            cwd=folder,
            env=compiler_environment() | {"PWD": os.fspath(folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    return (folder / gfx_compiler.CODE_OBJECT).read_bytes()
