"""AMD GPUs as ROCm's programs and the kernel driver tell of them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from tokitai_cli.devices.programs import answer, first_program, read_text

DRIVER = Path("/dev/kfd")
# Topology of the kernel driver amdkfd: one folder per CPU or GPU, with a file of properties.
NODES = Path("/sys/class/kfd/kfd/topology/nodes")
# Bytes of local data share that a block may have, where they are more than the 64 KiB of all others
# (AMD, CDNA 4 Instruction Set Architecture, 1.2).
_MORE_SHARED = {"gfx950": 160 << 10}
OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
VISIBLE = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
_FOLDERS = ("ROCM_PATH", "ROCM_HOME", "HIP_PATH")
_HIP_VERSION = (6, 4, 43482)
_HAS = "__HIP_ARCH_HAS_"
_BRANCH = f"""
    __HIP__ __HIPCC__ __HIP_PLATFORM_AMD__ __HIP_DEVICE_COMPILE__ __AMD__ __AMDGPU__ __AMDGCN__
    {_HAS}GLOBAL_INT32_ATOMICS__ {_HAS}GLOBAL_FLOAT_ATOMIC_EXCH__ {_HAS}SHARED_INT32_ATOMICS__
    {_HAS}SHARED_FLOAT_ATOMIC_EXCH__ {_HAS}FLOAT_ATOMIC_ADD__ {_HAS}GLOBAL_INT64_ATOMICS__
    {_HAS}SHARED_INT64_ATOMICS__ {_HAS}DOUBLES__ {_HAS}WARP_VOTE__ {_HAS}WARP_BALLOT__
    {_HAS}WARP_SHUFFLE__ {_HAS}THREAD_FENCE_SYSTEM__ {_HAS}3DGRID__
"""
_BRANCH_NOT = f"""
    {_HAS}WARP_FUNNEL_SHIFT__ {_HAS}SYNC_THREAD_EXT__ {_HAS}SURFACE_FUNCS__ {_HAS}DYNAMIC_PARALLEL__
"""
_GFX = r"gfx[0-9a-f]{3,5}"
# The enumerator's word for the CPU.
_NO_GPU = "gfx000"


class Agent(msgspec.Struct, frozen=True):
    """One GPU: its gfx name, and the name that it is sold under where that was told."""

    arch: str
    name: str = ""


def roots() -> list[tuple[str, str]]:
    """(folder, how it is known) of every installation of ROCm to look into, first one first."""
    found = [(os.environ.get(name, ""), name) for name in _FOLDERS]
    found.append(("/opt/rocm", "/opt/rocm"))
    # Installations side by side, where no link names one; the newest one first.
    versions = sorted(Path("/opt").glob("rocm-*"), key=_version, reverse=True)
    found += [(str(path), str(path)) for path in versions]
    return [(root.rstrip("/"), source) for root, source in found if root]


def agents() -> tuple[tuple[Agent, ...], str]:
    """GPUs that are there, and the source that told them; nothing is asked without the driver."""
    if not DRIVER.exists() and not NODES.is_dir():
        return (), ""
    for name, arguments, parse in _LISTERS:
        program = first_program(
            [*((f"{root}/bin/{name}", source) for root, source in roots()), (name, "PATH")]
        )
        if program is not None:
            found = parse(answer([str(program[0]), *arguments]))
            if found:
                return found, name
    return sysfs_agents(NODES), str(NODES)


def shown(agents: tuple[Agent, ...], environment: dict[str, str]) -> tuple[Agent, ...]:
    """GPUs that ROCR_VISIBLE_DEVICES and then HIP_VISIBLE_DEVICES leave, in their order.

    Only indices are read: where another form (a UUID) is given, the runtime knows, and no GPU here
    can be named, so all are kept. An index that names none ends the list (HIP documentation,
    GPU isolation techniques).
    """
    for name in VISIBLE:
        words = [word.strip() for word in environment.get(name, "").split(",") if word.strip()]
        if not words or not all(re.fullmatch(r"-?\d+", word) for word in words):
            continue
        kept: list[Agent] = []
        for word in words:
            if not 0 <= int(word) < len(agents):
                break
            kept.append(agents[int(word)])
        agents = tuple(kept)
    return agents


def shared_limit(arch: str) -> int:
    """Bytes of shared memory that a block may have on an architecture, such as gfx90a:xnack-."""
    return _MORE_SHARED.get(arch.partition(":")[0], 64 << 10)


def branch_macros(arch: str, warp_size: int) -> dict[str, str]:
    """Macros that ROCm 6.4's hipcc defines where it compiles for a GPU of `warp_size` lanes.

    Of an architecture only where one is given. Sources: clang, lib/Basic/Targets/AMDGPU.cpp and
    lib/Frontend/InitPreprocessor.cpp; HIP, hip_version.h, hip_common.h and amd_hip_runtime.h.
    """
    macros = dict.fromkeys(_BRANCH.split(), "1") | dict.fromkeys(_BRANCH_NOT.split(), "0")
    major, minor, patch = _HIP_VERSION
    for name, value in zip(("MAJOR", "MINOR", "PATCH"), _HIP_VERSION, strict=True):
        macros[f"HIP_VERSION_{name}"] = str(value)
    macros["HIP_VERSION"] = str(major * 10_000_000 + minor * 100_000 + patch)
    macros |= dict.fromkeys(
        ("__AMDGCN_WAVEFRONT_SIZE", "__AMDGCN_WAVEFRONT_SIZE__"), str(warp_size)
    )
    name = arch.partition(":")[0]
    if re.fullmatch(_GFX, name):
        macros |= {f"__{name}__": "1", f"__GFX{name[3:-2]}__": "1"}
    return macros


def overridden(value: str) -> str:
    """Name of the gfx target that HSA_OVERRIDE_GFX_VERSION stands for: 10.3.0 is gfx1030; else "".

    Major in decimal, minor and stepping as one hexadecimal digit each, as in gfx_target_version.
    """
    match = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", value.strip())
    return f"gfx{match[1]}{int(match[2]):x}{int(match[3]):x}" if match else ""


def parse_enumerator(text: str) -> tuple[Agent, ...]:
    """GPUs of rocm_agent_enumerator: a gfx name a line, of which gfx000 is a CPU."""
    names = re.findall(rf"^({_GFX})\s*$", text, re.MULTILINE)
    return tuple(Agent(name) for name in names if name != _NO_GPU)


def parse_rocminfo(text: str) -> tuple[Agent, ...]:
    """GPUs of rocminfo: agents whose name is one of a gfx target (and not the ISAs below them)."""
    found = []
    for block in re.split(r"^Agent \d+\s*$", text, flags=re.MULTILINE)[1:]:
        name = re.search(rf"^  Name:\s+({_GFX})\s*$", block, re.MULTILINE)
        if name is not None:
            sold_as = re.search(r"^  Marketing Name:[ \t]*(.*?)\s*$", block, re.MULTILINE)
            found.append(Agent(name[1], sold_as[1] if sold_as else ""))
    return tuple(found)


def parse_amd_smi(text: str) -> tuple[Agent, ...]:
    """GPUs of `amd-smi static --asic --json`: a list, in newer releases below "gpu_data"."""
    # Warnings may stand in front of the JSON.
    start = min((at for at in (text.find("["), text.find("{")) if at >= 0), default=-1)
    if start < 0:
        return ()
    try:
        tree, _ = json.JSONDecoder().raw_decode(text[start:])
    except ValueError:
        return ()
    found = []
    for asic in _named(tree, "asic"):
        target = str(asic.get("target_graphics_version", ""))
        if re.fullmatch(_GFX, target):
            found.append(Agent(target, str(asic.get("market_name", ""))))
    return tuple(found)


def sysfs_agents(nodes: Path) -> tuple[Agent, ...]:
    """GPUs from gfx_target_version: major * 10000 + minor * 100 + stepping."""
    found: list[Agent] = []
    for node in sorted(nodes.glob("*/properties"), key=lambda path: _number(path.parent.name)):
        match = re.search(r"^gfx_target_version (\d+)$", read_text(str(node)), re.MULTILINE)
        version = int(match.group(1)) if match else 0
        if version:
            arch = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
            found.append(Agent(arch))
    return tuple(found)


def _named(tree: Any, key: str) -> Iterator[dict[str, Any]]:
    """Objects under `key` anywhere in a JSON tree, in order."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            if name == key and isinstance(value, dict):
                yield value
            else:
                yield from _named(value, key)
    elif isinstance(tree, list):
        for value in tree:
            yield from _named(value, key)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _version(path: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", path.name))


_LISTERS: tuple[tuple[str, tuple[str, ...], Callable[[str], tuple[Agent, ...]]], ...] = (
    ("rocm_agent_enumerator", (), parse_enumerator),
    ("rocminfo", (), parse_rocminfo),
    ("amd-smi", ("static", "--asic", "--json"), parse_amd_smi),
)
