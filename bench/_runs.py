"""Running programs and functions side by side, so that a busy machine slows both alike."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
TOKITAI = str(Path(sys.executable).with_name("tokitai"))


class Usage(NamedTuple):
    """What one program took: wall and CPU seconds with its children's, and its own peak in bytes."""

    wall: float
    cpu: float
    peak: int


class Line(NamedTuple):
    """One line of the table. `target` is the largest `value` that passes, None where none is set.

    With `at_least` it is the smallest.
    """

    name: str
    value: float
    unit: str
    target: float | None
    detail: str
    at_least: bool = False

    @property
    def passed(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target


def environment(cache: Path) -> dict[str, str]:
    """Environment of a measured program: as users have it, with the build cache in `cache`.

    PYTHONDONTWRITEBYTECODE would make every start compile the sources again.
    """
    dropped = {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "TOKITAI_CACHE": str(cache)}


def run(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> Usage:
    """Run a program to its end. Raises RuntimeError where it fails."""
    start = time.perf_counter()
    with subprocess.Popen(
        argv, env=env, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)} failed: {said.decode(errors='replace')}")
    return Usage(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10)


def interleaved(measures: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Values of every measure, each taken once a round."""
    values: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            values[name].append(measure())
    return values


def ratio(values: Mapping[str, Sequence[float]], of: str, to: str) -> float:
    """Ratio of two medians."""
    return statistics.median(values[of]) / statistics.median(values[to])


def compiled(source: str, output: Path, *flags: str) -> str:
    """Compile a C file of this folder; returns the program. Raises RuntimeError."""
    compiler = os.environ.get("CC", "cc")
    path = Path(__file__).with_name(source)
    argv = [compiler, *flags, str(path), "-o", str(output), "-lm"]
    run(argv, os.environ, output.parent)
    return str(output)


def seconds_of(argv: Sequence[str]) -> float:
    """Seconds that a program of this folder prints."""
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return float(done.stdout)
