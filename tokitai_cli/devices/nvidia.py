"""NVIDIA GPUs as nvidia-smi or the driver tells of them."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import msgspec

from tokitai_cli.devices.programs import answer, first_program

DRIVER = Path("/proc/driver/nvidia/version")
NODE = Path("/dev/nvidia0")
VISIBLE = "CUDA_VISIBLE_DEVICES"
_QUERY = ("--query-gpu=index,name,compute_cap,driver_version,uuid", "--format=csv,noheader")
_FIELDS = 5
# Asks the driver itself, in a process of its own: CUDA Driver API, cuDeviceGetAttribute 75 and 76
# are the two parts of the compute capability. Prints what nvidia-smi would.
_ASK_DRIVER = r"""
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
number, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
name = ctypes.create_string_buffer(256)
if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(number)) == 0:
    for index in range(number.value):
        driver.cuDeviceGetName(name, len(name), index)
        driver.cuDeviceGetAttribute(ctypes.byref(major), 75, index)
        driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, index)
        print(f"{index}, {name.value.decode()}, {major.value}.{minor.value}, , ")
"""


class Gpu(msgspec.Struct, frozen=True):
    """One GPU; `arch` is sm_XY, and an empty text is something that was not told."""

    index: int
    name: str
    arch: str
    driver: str
    uuid: str


def gpus() -> tuple[tuple[Gpu, ...], str]:
    """GPUs that a program would see, in the order of the PCI bus, and the source that told them."""
    if not DRIVER.exists() and not NODE.exists():
        return (), ""
    visible = os.environ.get(VISIBLE)
    program = first_program(
        [("nvidia-smi", "PATH"), ("/usr/local/nvidia/bin/nvidia-smi", "driver")]
    )
    if program is not None:
        found = parse_smi(answer([str(program[0]), *_QUERY]))
        if found:
            return shown(found, visible), "nvidia-smi"
    # The driver has applied CUDA_VISIBLE_DEVICES by itself.
    found = parse_smi(answer([sys.executable, "-I", "-c", _ASK_DRIVER]))
    if found:
        return found, "libcuda.so.1"
    return (), ""


def parse_smi(text: str) -> tuple[Gpu, ...]:
    """GPUs of nvidia-smi's answer: a line of index, name, compute capability, driver, UUID each.

    A line of another form, such as a message that no device was found, is no GPU.
    """
    found = []
    for line in text.splitlines():
        words = [word.strip() for word in line.split(",")]
        # A name may hold a comma.
        if len(words) < _FIELDS or not words[0].isdecimal():
            continue
        capability = re.fullmatch(r"(\d+)\.(\d)", words[-3])
        arch = f"sm_{capability[1]}{capability[2]}" if capability else ""
        found.append(Gpu(int(words[0]), ", ".join(words[1:-3]), arch, words[-2], words[-1]))
    return tuple(found)


def shown(gpus: tuple[Gpu, ...], visible: str | None) -> tuple[Gpu, ...]:
    """GPUs that CUDA_VISIBLE_DEVICES leaves, in its order (CUDA C++ Programming Guide).

    Entries are indices or the start of a UUID; the first one that names no GPU ends the list.
    """
    if visible is None:
        return gpus
    kept: list[Gpu] = []
    for word in (entry.strip() for entry in visible.split(",")):
        matches = [
            gpu
            for gpu in gpus
            if (gpu.index == int(word) if word.isdecimal() else word and gpu.uuid.startswith(word))
        ]
        if len(matches) != 1 or matches[0] in kept:
            break
        kept.append(matches[0])
    return tuple(kept)
