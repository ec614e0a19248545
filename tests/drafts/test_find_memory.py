"""`find` is done with a source's trees when it reads the next ones: memory follows no count of files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FUNCTIONS = 800
KERNEL = """#include "all.h"
__global__ void k%d(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = f%d(x[i]);
}
"""


def peak(folder: Path, files: int) -> int:
    """Memory that `find` takes at most for so many sources with one header."""
    folder.mkdir()
    parts = (
        f"struct S{one} {{ float x[{one + 1}]; int n; }};\n"
        f"__device__ inline float f{one}(float x) {{ return x * {one} + (x < {one} ? x : 1.0f); }}\n"
        for one in range(FUNCTIONS)
    )
    (folder / "all.h").write_text("".join(parts))
    for one in range(files):
        (folder / f"k{one}.cu").write_text(KERNEL % (one, one))
    command = [sys.executable, "-m", "tokitai_cli", "find", str(folder), "--json"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        _, status, used = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    assert running.returncode == 0
    return used.ru_maxrss


def test_twice_the_files_take_no_more_memory(tmp_path: Path) -> None:
    few, many = (peak(tmp_path / str(count), count) for count in (8, 16))
    assert many < 1.4 * few  # 1.7 where all of them are kept
