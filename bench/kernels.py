"""A kernel on the cpu device against the same loop in C with OpenMP."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from pathlib import Path

from bench._runs import TOKITAI, Line, compiled, environment, interleaved, ratio, run, seconds_of

SIZE = 512
ROUNDS = 5
REPEATS = 3


def measure(folder: Path) -> Iterator[Line]:
    """Best launch of each process, interleaved: grad-a at 512 x 512 x 512, all cores."""
    env = environment(folder / "cache")
    program = compiled("gemm.c", folder / "gemm", "-O3", "-march=native", "-fopenmp")
    size = [word for name in "mnk" for word in (f"--{name}", str(SIZE))]
    command = [TOKITAI, "verify", "gemm-bw", *size, "--variant", "grad-a", "--profile", "normal"]
    command += ["--device", "cpu", "--repeat", str(REPEATS)]

    def kernel() -> float:
        run(command, env, folder)
        evidence = json.loads((folder / "reports" / "gemm-bw.json").read_text("utf-8"))
        (times,) = evidence["volatile"]["case_times_ns"].values()
        return float(min(times)) * 1e-9

    def loop() -> float:
        return seconds_of([program, "product", str(SIZE), str(REPEATS)])

    values = interleaved({"kernel": kernel, "loop": loop}, ROUNDS)
    detail = ", ".join(
        f"{name} {1000 * statistics.median(seconds):.0f} ms" for name, seconds in values.items()
    )
    name = f"gemm {SIZE}^3 on the cpu device, against C with OpenMP"
    yield Line(name, ratio(values, "kernel", "loop"), "x", 1.3, detail)
