"""Machine code that others built: PyPI's bitsandbytes 0.50.2, each instruction beside LLVM 19's."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import gfx_table
from tests.runs import tokitai
from tokitai_cli.devices.amdgpu import inspection
from tokitai_cli.devices.amdgpu.binary import bundles
from tokitai_cli.devices.amdgpu.binary.objects import CodeObject
from tokitai_cli.devices.amdgpu.isa import decode
from tokitai_cli.devices.amdgpu.isa.assembly_text import text
from tokitai_cli.devices.amdgpu.isa.encodings import LAYOUTS
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction
from tokitai_cli.devices.amdgpu.isa.opcode_table import rows

KERNELS = 175
COUNTS = {("rocm64", "gfx1101"): 101_788, ("rocm715", "gfx1101"): 98_177}  # as docs/gfx.md has them
LIBRARIES = ("rocm64", "rocm715")
EVERY = [
    pytest.param(library, arch, marks=() if arch == "gfx1101" else pytest.mark.slow)
    for library in LIBRARIES
    for arch in ("gfx1100", "gfx1101", "gfx1102", "gfx1151")
]
needs_objdump = pytest.mark.skipif(
    shutil.which("llvm-objdump-19") is None, reason="no llvm-objdump-19 on PATH"
)


def library(name: str) -> Path:
    """A library of the wheel, which is never imported."""
    spec = importlib.util.find_spec("bitsandbytes")
    if spec is None or spec.origin is None:
        pytest.skip("no bitsandbytes: pip install --no-deps bitsandbytes==0.50.2")
    file = Path(spec.origin).with_name(f"libbitsandbytes_{name}.so")
    if not file.exists():
        pytest.skip(f"another bitsandbytes than 0.50.2: no {file.name}")
    return file


def told_by_llvm(data: bytes, folder: Path, arch: str = "gfx1101") -> dict[int, str]:
    """Address to text of what llvm-objdump-19 makes of a code object."""
    (folder / "code.hsaco").write_bytes(data)
    words = ["--mattr=+real-true16"] if arch.startswith("gfx11") else []
    done = subprocess.run(
        ["llvm-objdump-19", "-d", *words, folder / "code.hsaco"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = re.findall(r"^\t(.*?)\s*// ([0-9A-F]{12}):", done.stdout, re.MULTILINE)
    return {int(address, 16): line for line, address in lines}


def spelled_whole(line: str) -> str:
    """A text without the halves that llvm-19 cannot spell: it complains or leaves them out."""
    line = re.sub(r"v(\d+)/\*Invalid register.*?\*/", lambda found: f"v{int(found[1]) - 128}", line)
    return re.sub(r"(v\d+)\.[lh]\b", r"\1", line)


def without_unused(code: bytes, arch: str) -> bytes:
    """VOP3 with zeros in the fields that it does not have: newer compilers put a constant there, and
    llvm-19 takes such instructions for none.
    """
    word = int.from_bytes(code, "little")
    name = "VOP3" if LAYOUTS["VOP3"].matches(word & 0xFFFFFFFF) else "VOP3P"
    layout = LAYOUTS[name]
    assert layout.matches(word & 0xFFFFFFFF)
    used = {slot.field for slot in rows(arch)[name][layout.opcode(word)].slots}
    for field in {"A", "B", "C"} - used:
        word -= layout.read(word, field) << layout.fields[field][0]
    return word.to_bytes(len(code), "little")


def instructions(data: CodeObject, arch: str) -> Iterator[tuple[Instruction, bytes]]:
    for kernel in data.kernels:
        for one in decode.decode(kernel.code, kernel.address, arch):
            start = one.address - kernel.address
            yield one, kernel.code[start : start + one.size]


@needs_objdump
@pytest.mark.parametrize(("name", "arch"), EVERY)
def test_every_instruction_reads_as_llvm_reads_it(name: str, arch: str, tmp_path: Path) -> None:
    found = bundles.read(library(name), arch)
    assert sum(len(one.kernels) for one in found) == KERNELS
    again: list[tuple[str, bytes]] = []
    count = 0
    for one in found:
        told = told_by_llvm(one.data, tmp_path)
        for instruction, code in instructions(one, arch):
            assert instruction.encoding != decode.UNKNOWN, code.hex()
            count += 1
            ours, theirs = text(instruction), told.get(instruction.address, "")
            if ours != theirs and spelled_whole(ours) != spelled_whole(theirs):
                assert instruction.encoding in {"VOP3", "VOP3P"}, (ours, theirs)
                again.append((ours, without_unused(code, arch)))
    assert count == COUNTS.get((name, arch), count)
    assert len(again) == 0 or name == "rocm715"
    texts = gfx_table.disassembled([code for _, code in again], arch)
    pairs = [(ours, theirs) for (ours, _), theirs in zip(again, texts, strict=True)]
    assert [pair for pair in pairs if spelled_whole(pair[0]) != spelled_whole(pair[1])] == []


@pytest.mark.parametrize(("name", "arch"), EVERY)
def test_its_kernels_are_listed_with_what_can_be_executed(name: str, arch: str) -> None:
    seen = inspection.inspect(library(name), arch)
    assert len(seen.kernels) == KERNELS
    assert sum(one.unknown for one in seen.kernels) == 0
    assert sum(not one.refused for one in seen.kernels) >= 0.95 * KERNELS
    shown = tokitai("isa", library(name), "--kernel", "kInt8VectorQuant<__half, 1024, 0>")
    assert shown.returncode == 0
    assert "vector registers: " in shown.stdout
    assert "global_store_b8" in shown.stdout
