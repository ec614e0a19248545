"""Machine code on the gfx device against the cpu device, and what building for it takes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench._runs import TOKITAI, Line, environment, interleaved, run
from bench.rows import LAYERNORM, SOFTMAX

ROUNDS = 5
REPEATS = 5
GEMM = {"m": 256, "n": 256, "k": 256}
# Op, variant, shape, and the most times of the cpu device's that a launch may take.
LAUNCHES: tuple[tuple[str, str, Mapping[str, int], float], ...] = (
    ("gemm-bw", "grad-a", GEMM, 4.0),
    ("softmax", "fwd", SOFTMAX, 1.0),
    ("layernorm", "fwd", LAYERNORM, 1.0),
)
BUILDS = ("gemm-bw", "layernorm", "attention")
BUILD_SECONDS = 5.0


def measure(folder: Path) -> Iterator[Line]:
    """Best launch of all processes, interleaved, all cores; then builds of kernels that are new."""
    env = environment(folder / "cache")
    for op, variant, shape, target in LAUNCHES:
        size = [word for name, value in shape.items() for word in (f"--{name}", str(value))]

        def best(device: str, words: list[str], op: str = op) -> float:
            run([TOKITAI, "verify", op, *words, "--device", device], env, folder)
            evidence = json.loads((folder / "reports" / f"{op}.json").read_text("utf-8"))
            (times,) = evidence["volatile"]["case_times_ns"].values()
            return float(min(times)) * 1e-6

        words = [*size, "--variant", variant, "--profile", "normal", "--repeat", str(REPEATS)]
        devices = {
            name: lambda name=name, words=words: best(name, words) for name in ("gfx", "cpu")
        }
        values = interleaved(devices, ROUNDS)
        least = {name: min(some) for name, some in values.items()}
        detail = ", ".join(f"{name} {some:.2f} ms" for name, some in least.items())
        name = f"{op} {variant} {list(shape.values())} on gfx, against the cpu device"
        yield Line(name, least["gfx"] / least["cpu"], "x", target, detail)
    for op in BUILDS:
        yield _built(op, folder)


def _built(op: str, folder: Path) -> Line:
    """Seconds of a build whose server is in the cache, as of every kernel but a machine's first one."""
    cache = folder / "new"
    command = [TOKITAI, "verify", op, "--build-only", "--device", "gfx"]
    other = [TOKITAI, "verify", "silu", "--build-only", "--device", "gfx"]
    seconds = []
    for _ in range(3):
        shutil.rmtree(cache, ignore_errors=True)
        run(other, environment(cache), folder)
        run(command, environment(cache), folder)
        evidence = json.loads((folder / "reports" / f"{op}.json").read_text("utf-8"))
        seconds.append(sum(evidence["volatile"]["build_seconds"].values()))
    detail = f"{', '.join(f'{one:.1f}' for one in seconds)} s: code object, translation, g++, link"
    return Line(f"build of {op} for gfx", min(seconds), "s", BUILD_SECONDS, detail)
