"""Runs single translated instructions: many in one program, on states of a wave that tests give."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.devices.cpu.harness_client import BUILT, HARNESS, HOST, ROOT, compiler
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction
from tokitai_cli.devices.amdgpu.translate.gfx9 import canonicals
from tokitai_cli.devices.amdgpu.translate.mode import USUAL, Mode
from tokitai_cli.devices.amdgpu.translate.translation import statement

VECTORS, MEMORY = {32: 32, 64: 160}, 4096


def state_of(lanes: int) -> np.dtype[Any]:
    """A wave between two instructions, with the memory that `lds` and `s[20:21]` lead to."""
    return np.dtype(
        [
            ("v", np.uint32, (VECTORS[lanes], lanes)),
            ("s", np.uint32, 128),
            ("exec", f"u{lanes // 8}"),
            ("scc", np.uint32),
            ("case", np.uint32),
            ("found", np.uint32),
            ("taken", np.uint32),
            ("state", np.uint32),
            ("pc", np.uint32),
            *([("rest", np.uint32)] if lanes == 32 else []),
            ("memory", np.uint8, MEMORY),
        ]
    )


STATE = state_of(32)
# What a state has beside the number of its instruction.
HELD = ("v", "s", "exec", "scc", "taken", "state", "pc", "memory")
_MAIN = """
namespace tokitai::gfx {
Nearby nearby = Nearby::nominal;
static u32 found;
static Area area = {nullptr, %(memory)d, nullptr, true, 0, "", nullptr, 0};
const Area* area_at(const Wave&, u64, u64) { return nullptr; }
void report(const Wave&, const Found&) { found++; }
void report_unset(const Wave&, u32, u32, Matter) { found++; }
void run_slowly(Wave&, const Region&) {}
u64 code_at(const Wave&, u64 address) { return address; }
void trapped(Wave& w, u32) { w.state = State::stopped; }
void unmodelled(Wave& w, u32, const char*) { w.state = State::stopped; }
void lost(Wave&) {}
struct Held {
  u32 v[%(vectors)d][wave_size], s[128];
  LaneMask exec;
  u32 scc, number, found, taken, state, pc;
  u32 rest[wave_size == 32];
  u8 memory[%(memory)d];
};
}
using namespace tokitai::gfx;
static Wave w;
static Held held;
static u32 taken;
static LdsCell cells[%(memory)d / 4 + 1];
%(functions)s
static void (*const functions[])() = {%(names)s};
int main(int count, char** given) {
  if (count > 1) nearby = Nearby(given[1][0] - '0');
  static u8 written[%(memory)d];
  while (fread(&held, sizeof held, 1, stdin) == 1) {
    Group group = {};
    group.lds = held.memory;
    group.cells = cells;
    group.lds_bytes = group.scratch_bytes = %(memory)d / wave_size;
    group.scratch = held.memory;
    group.scratch_written = written;
    memset(written, 1, sizeof written);
    memset(cells, 0, sizeof cells);
    for (LdsCell& cell : cells) cell.written = 15;
    group.lds_bytes = %(memory)d;
    group.interval = 1;
    area.begin = held.memory;
    memcpy(w.v, held.v, sizeof held.v);
    memcpy(w.s, held.s, sizeof held.s);
    w.set_pair(20, reinterpret_cast<u64>(held.memory));
    w.scc = held.scc;
    w.state = State::ready;
    w.pc = 0;
    w.set_exec(held.exec);
    memset(w.unset.whole, 255, sizeof w.unset.whole);
    w.group = &group;
    for (const Area*& recent : w.areas) recent = &area;
    found = taken = 0;
    functions[held.number]();
    memcpy(held.v, w.v, sizeof held.v);
    memcpy(held.s, w.s, sizeof held.s);
    held.exec = w.exec;
    held.scc = w.scc;
    held.taken = taken;
    held.state = unsigned(w.state);
    held.pc = w.pc;
    held.found = found;
    if (fwrite(&held, sizeof held, 1, stdout) != 1) return 1;
  }
}
"""


def program(
    instructions: Sequence[Instruction | Sequence[Instruction]],
    mode: Mode = USUAL,
    lanes: int = 32,
) -> Path:
    """The program of these instructions, or sequences without branches, kept by its content."""
    operations: dict[str, str] = {}
    functions = []
    for index, one in enumerate(instructions):
        steps = canonicals([one] if isinstance(one, Instruction) else one)
        parts = [statement(step, mode) for step in steps]
        for done in parts:
            operations.update(done.operations)
        text = " ".join(done.text for done in parts)
        target = steps[0].modifiers.get("target")
        after = "dispatch:;" if target is None else f"return; L_{target:x}: taken = 1;"
        functions.append(f"static void f{index}() {{ {text} {after} }}\n")
    values = {
        "memory": MEMORY,
        "vectors": VECTORS[lanes],
        "functions": "".join(functions),
        "names": ", ".join(f"f{index}" for index in range(len(functions))),
    }
    held = "".join(sorted(operations.values()))
    text = (
        f"#define TOKITAI_WAVE_SIZE {lanes}\n"
        '#include <stdio.h>\n#include "gfx/run/program.hpp"\n'
        f"namespace tokitai::gfx {{\n{held}}}\n{_MAIN % values}"
    )
    digest = hashlib.sha256(text.encode())
    for path in sorted((ROOT / "kernels" / "gfx" / "run").glob("*.hpp")):
        digest.update(path.read_bytes())
    made = BUILT / f"gfx-{digest.hexdigest()[:20]}"
    if not made.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        source = made.with_suffix(".cpp")
        source.write_text(text)
        flags = ["-std=c++17", "-O1", "-ftree-vectorize", "-march=native", "-ffp-contract=off"]
        folders = ["-I", str(ROOT / "kernels"), "-I", str(HOST), "-I", str(HARNESS)]
        command = [compiler(), *flags, "-fno-strict-aliasing", *folders, str(source)]
        command += ["-o", str(made)]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        if told.returncode:
            pytest.fail(told.stderr[:4000])
    return made


def run(made: Path, states: NDArray[Any], nearby: int = 0) -> NDArray[Any]:
    """The states after each one's instruction (`case` is its number)."""
    done = subprocess.run(
        [made, str(nearby)], input=states.tobytes(), capture_output=True, check=True
    )
    return np.frombuffer(done.stdout, states.dtype)
