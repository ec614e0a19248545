"""Peak memory of a case with 4096 x 4096 results."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench._runs import PYTHON, TOKITAI, Line, environment, run

ROWS = 4096
TERMS = 16
_HALF = 2
# Its own peak: what wait4 tells also counts the process that started it (getrusage(2), exec).
_BASE = """
import numpy
from pathlib import Path
for line in Path("/proc/self/status").read_text("utf-8").splitlines():
    if line.startswith("VmHWM:"):
        print(line.split()[1])
"""


def measure(folder: Path) -> Iterator[Line]:
    """Peak resident set of the tool, less that of `import numpy`, by the bytes of the arrays.

    A short reduction: the results are nearly all of the arrays, so nothing hides behind inputs.
    The pages of the memory file count; the child maps the same ones.
    """
    env = environment(folder / "cache")
    shape = ["--m", str(ROWS), "--k", str(ROWS), "--n", str(TERMS)]
    command = [TOKITAI, "verify", "gemm-bw", *shape, "--variant", "grad-a", "--profile", "normal"]
    command += ["--device", "cpu"]
    base = int(subprocess.run([PYTHON, "-c", _BASE], capture_output=True, check=True).stdout) << 10
    usage = run(command, env, folder)
    arrays = _HALF * (2 * ROWS * TERMS + ROWS * ROWS)
    detail = (
        f"{usage.peak >> 20} MiB, arrays {arrays >> 20} MiB, interpreter and numpy {base >> 20}"
    )
    name = f"peak memory of {ROWS} x {ROWS} results, in bytes of the arrays"
    yield Line(name, (usage.peak - base) / arrays, "x", 12.0, detail)
