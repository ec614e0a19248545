"""The stages around the device, at 1024 x 1024 x 1024."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench._runs import Line, compiled, interleaved, seconds_of
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.verdict import Stage
from tokitai_cli.run.loop import verify
from tokitai_cli.run.run_options import run_options

SIZE = 1024
ROUNDS = 3
_DEVICE_STAGES = (Stage.BUILD, Stage.RUN)


def measure(folder: Path) -> Iterator[Line]:
    """Seconds of `verify` less those of the device's stages, in this process."""
    os.environ["TOKITAI_CACHE"] = str(folder / "cache")
    naive = compiled("gemm.c", folder / "oracle", "-O2")
    wide = compiled("gemm.c", folder / "oracle-double", "-O2", "-DDOUBLE_INPUTS=1")
    operand = np.random.default_rng(0).standard_normal((SIZE, SIZE))
    _verify(folder, 16)  # builds, and imports what a first run imports
    evidence: list[Evidence] = []

    def stages() -> float:
        start = time.perf_counter()
        found = _verify(folder, SIZE)
        seconds = time.perf_counter() - start
        evidence.append(found)
        (spent,) = found.volatile.stage_seconds.values()
        return seconds - sum(spent.get(stage, 0.0) for stage in _DEVICE_STAGES)

    values = interleaved({"matmul": lambda: _matmul(operand), "stages": stages}, ROUNDS)
    matmul, own = (statistics.median(values[name]) for name in ("matmul", "stages"))
    (spent,) = evidence[-1].volatile.stage_seconds.values()
    fraction = evidence[-1].cases[0].replay_fraction
    parts = ", ".join(
        f"{stage} {seconds:.2f} s"
        for stage, seconds in spent.items()
        if stage not in _DEVICE_STAGES
    )
    replayed = f"replay of {fraction:.1%} of the rows" if fraction is not None else "no replay"
    label = f"stages but the device at {SIZE}^3, in float64 matmuls"
    yield Line(label, own / matmul, "x", 15.0, f"{own:.2f} s ({parts}); {replayed}")
    loop = seconds_of([naive, "oracle", str(SIZE), "1"])
    detail = f"the C loop takes {loop:.1f} s, float16 inputs converted where they are used"
    yield Line("the same, speed-up over a scalar C oracle, -O2", loop / own, "x", 5.0, detail, True)
    loop = seconds_of([wide, "oracle", str(SIZE), "1"])
    oracle = spent[Stage.ORACLE]
    detail = f"{loop:.1f} s, inputs converted to double beforehand; {loop / own:.1f} x all stages"
    yield Line("oracle stage, speed-up over that loop on doubles", loop / oracle, "x", None, detail)


def _verify(folder: Path, size: int) -> Evidence:
    options = run_options(
        "gemm-bw",
        shapes={"m": size, "n": size, "k": size},
        variant=["grad-a"],
        profile=["normal"],
        device="cpu",
        out=folder / "reports",
    )
    return verify(options).evidence


def _matmul(operand: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> float:
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        operand @ operand
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)
