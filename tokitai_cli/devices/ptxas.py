"""What a compiled kernel needs of an NVIDIA GPU, as ptxas tells it: registers, shared memory, spills."""

from __future__ import annotations

import re

from tokitai_cli.core.model.device import WRITABLE, Fact
from tokitai_cli.devices.amdgpu.binary.names import title

_PTXAS = "ptxas -v"
_COMPILING = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
_PROPERTIES = re.compile(
    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
_USED = re.compile(r"Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+) bytes smem")
_GLOBAL = re.compile(r"(\d+) bytes gmem")


def ptxas_facts(log: str) -> tuple[Fact, ...]:
    """Facts of each kernel out of what `ptxas -v` prints while it compiles."""
    facts: list[Fact] = []
    kernel = ""
    if lasting := sum(map(int, _GLOBAL.findall(log))):
        facts.append(Fact(WRITABLE, f"{lasting} bytes", _PTXAS))
    for line in log.splitlines():
        if match := _COMPILING.search(line):
            kernel = title(match[1])
            facts.append(Fact(f"{kernel}: machine code for", match[2], _PTXAS))
        elif kernel and (match := _PROPERTIES.search(line)):
            names = ("stack bytes per thread", "spill stores in bytes", "spill loads in bytes")
            facts += [
                Fact(f"{kernel}: {name}", value, _PTXAS)
                for name, value in zip(names, match.groups(), strict=True)
            ]
        elif kernel and (match := _USED.search(line)):
            shared = _SHARED.search(match[2])
            facts.append(Fact(f"{kernel}: registers", match[1], _PTXAS))
            facts.append(Fact(f"{kernel}: shared bytes", shared[1] if shared else "0", _PTXAS))
            kernel = ""
    return tuple(facts)
