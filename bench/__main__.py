"""`python -m bench [NAME...]`: measure, and print each value beside its target.

Exits with 1 where a target is missed.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from bench import (
    batch,
    cold_build,
    gfx,
    kernels,
    memory,
    profile,
    rows,
    scale,
    sharpness,
    stages,
    startup,
    study,
)
from bench._runs import Line

MEASURES: dict[str, Callable[[Path], Iterator[Line]]] = {
    "startup": startup.measure,
    "stages": stages.measure,
    "kernels": kernels.measure,
    "rows": rows.measure,
    "scale": scale.measure,
    "cold_build": cold_build.measure,
    "memory": memory.measure,
    "gfx": gfx.measure,
    "profile": profile.measure,
    "batch": batch.measure,
    "study": study.measure,
    "sharpness": sharpness.measure,
}


def main(names: list[str]) -> int:
    """Run the measures that are named, or all."""
    if unknown := [name for name in names if name not in MEASURES]:
        sys.stderr.write(f"unknown: {', '.join(unknown)}; known: {', '.join(MEASURES)}\n")
        return 2
    _write(f"{_cpu()}, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    _write(f"{platform.system()}, Python {platform.python_version()}, numpy {np.__version__}")
    missed = 0
    with tempfile.TemporaryDirectory(prefix="tokitai-bench-") as folder:
        for name in names or MEASURES:
            for line in MEASURES[name](Path(folder)):
                missed += line.passed is False
                _write(_text(line))
    return 1 if missed else 0


def _text(line: Line) -> str:
    target = ""
    if line.target is not None:
        target = f"{'>=' if line.at_least else '<='} {line.target:g}"
    word = {True: "pass", False: "MISS", None: ""}[line.passed]
    return f"{line.name:58} {line.value:7.2f} {line.unit:2} {target:7} {word:4}  {line.detail}"


def _cpu() -> str:
    for row in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if row.startswith("model name"):
            return row.partition(":")[2].strip()
    return platform.machine()


def _write(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
