"""The ops on rows: kernels on the cpu device against C with OpenMP, oracles against their formula."""

from __future__ import annotations

import functools
import json
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench._runs import TOKITAI, Line, compiled, environment, interleaved, ratio, run, seconds_of
from tokitai_cli import spec
from tokitai_cli.oracles import builtin, formula, references
from tokitai_cli.oracles.case_request import scalars
from tokitai_cli.oracles.variants.request import FormulaCall
from tokitai_cli.spec import inputs, plan
from tokitai_cli.spec.plan.selection import Selection

ROUNDS = 5
# Launches of one process.
REPEATS = 10
ORACLE_TARGET = 40.0
MEAN_TARGET = 20.0
MEMORY_TARGET = 12.0

SOFTMAX = {"rows": 1024, "cols": 1024}
LAYERNORM = {"rows": 512, "cols": 768}
EMBEDDING = {"queries": 4096, "dim": 256, "vocab": 32000}
SQUARE = {"m": 1024, "n": 1024, "k": 1024}
# About a million elements of each output.
ORACLES: tuple[tuple[str, str, Mapping[str, int]], ...] = (
    ("softmax", "fwd", SOFTMAX),
    ("softmax", "grad", SOFTMAX),
    ("layernorm", "fwd", {"rows": 1024, "cols": 1024}),
    ("layernorm", "bwd", {"rows": 1024, "cols": 1024}),
    ("embedding", "fwd", EMBEDDING),
    ("embedding", "bwd", {"queries": 4096, "dim": 256, "vocab": 4000}),
    ("gemm-bw", "grad-a", SQUARE),
    ("gemm-bw", "grad-b", SQUARE),
)


class _Forward(NamedTuple):
    op: str
    shape: Mapping[str, int]
    target: float
    # Enough that the best of them is one that no other work on the machine cut in two.
    loop_repeats: int

    @property
    def label(self) -> str:
        return f"{self.op} [{', '.join(map(str, list(self.shape.values())[:2]))}]"


FORWARD = (
    _Forward("softmax", SOFTMAX, 20.0, 30),
    _Forward("layernorm", LAYERNORM, 60.0, 400),
    _Forward("embedding", EMBEDDING, 40.0, 400),
)


def measure(folder: Path) -> Iterator[Line]:
    """Best launch of all processes, interleaved, all cores; then the oracles, in this process."""
    env = environment(folder / "cache")
    program = compiled("rows.c", folder / "rows", "-O3", "-march=native", "-fopenmp")
    for forward in FORWARD:
        yield _kernel(forward, program, env, folder)
    yield from _oracles()
    yield from _products()


def _kernel(forward: _Forward, program: str, env: Mapping[str, str], folder: Path) -> Line:
    op, shape = forward.op, forward.shape
    size = [word for name, value in shape.items() for word in (f"--{name}", str(value))]
    command = [TOKITAI, "verify", op, *size, "--variant", "fwd", "--profile", "normal"]
    command += ["--device", "cpu", "--repeat", str(REPEATS)]
    rows, cols, *vocab = (str(value) for value in shape.values())

    def kernel() -> float:
        run(command, env, folder)
        evidence = json.loads((folder / "reports" / f"{op}.json").read_text("utf-8"))
        (times,) = evidence["volatile"]["case_times_ns"].values()
        return float(min(times)) * 1e-9

    def loop() -> float:
        return seconds_of([program, op, rows, cols, str(forward.loop_repeats), *vocab])

    values = interleaved({"kernel": kernel, "loop": loop}, ROUNDS)
    name = f"{forward.label} on the cpu device, against C with OpenMP"
    # A loop of a millisecond fits between other work's turns, a launch of many does not, so that
    # medians of the two are not slowed alike: the least of each is compared, medians stand beside.
    least = {side: min(seconds) for side, seconds in values.items()}
    detail = ", ".join(f"{side} {1000 * seconds:.2f} ms" for side, seconds in least.items())
    detail += f"; medians {ratio(values, 'kernel', 'loop'):.1f} x: {_milliseconds(values)}"
    return Line(name, least["kernel"] / least["loop"], "x", forward.target, detail)


def _oracles() -> Iterator[Line]:
    """Seconds and bytes of the oracles over those of the same formulas in float64."""
    ratios = []
    for op, variant, shape in ORACLES:
        selection = Selection(
            variants=(variant,),
            profiles=("normal",),
            shapes={name: (value,) for name, value in shape.items()},
        )
        (case,) = plan.plan(spec.load(spec.find(op)), selection).cases
        arrays = {name: drawn.array for name, drawn in inputs.draw(case).items()}
        file = builtin.file_of(case.variant.oracle)
        assert file is not None
        function = builtin.function(case.variant.oracle, file)
        asked = FormulaCall(function, dict(case.shape), arrays, scalars(case))
        sides: dict[str, Callable[[], object]] = {
            "oracle": functools.partial(references.expect, case, arrays),
            "formula": functools.partial(asked.in_double, lambda x: x),
        }
        values = interleaved(
            {side: functools.partial(_seconds, work) for side, work in sides.items()}, ROUNDS
        )
        ratios.append(ratio(values, "oracle", "formula"))
        peaks = {side: _peak(work) for side, work in sides.items()}
        name = f"oracle of {op} {variant}, in its formula in float64"
        yield Line(name, ratios[-1], "x", ORACLE_TARGET, _milliseconds(values))
        detail = ", ".join(f"{side} {peak >> 20} MiB" for side, peak in peaks.items())
        name = f"peak memory of {op} {variant}'s oracle, in its formula's"
        yield Line(name, peaks["oracle"] / peaks["formula"], "x", MEMORY_TARGET, detail)
    mean = statistics.geometric_mean(ratios)
    yield Line("geometric mean of the oracles", mean, "x", MEAN_TARGET, f"{len(ratios)} formulas")


def _products() -> Iterator[Line]:
    """Seconds of a tracked product with its bounds over those of one in float64."""
    bits = np.random.default_rng(0)
    left, right = (bits.standard_normal((1024, 1024)).astype(np.float32) for _ in range(2))
    whole = np.rint(left * 4).astype(np.float32)
    exact, other = formula.track(left), formula.track(right)
    sides = {
        "operands without errors": (exact, other, 3.0),
        "whole numbers": (formula.track(whole), formula.track(whole), 3.0),
        "operands with errors": (exact + other, other, 6.0),
    }
    plain = functools.partial(np.matmul, left.astype(np.float64), right.astype(np.float64))
    for side, (a, b, target) in sides.items():
        works = {"tracked": functools.partial(_bounded, a, b), "plain": plain}
        values = interleaved(
            {name: functools.partial(_seconds, work) for name, work in works.items()}, 3 * ROUNDS
        )
        name = f"tracked product, 1024 x 1024 x 1024, {side}"
        times = _milliseconds(values)
        yield Line(name, ratio(values, "tracked", "plain"), "x", target, times)


def _bounded(a: formula.Tracked, b: formula.Tracked) -> formula.Bounds:
    return formula.bounds(a @ b)


def _peak(work: Callable[[], object]) -> int:
    """Bytes that Python and numpy hold at most while it works."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _milliseconds(values: Mapping[str, list[float]]) -> str:
    return ", ".join(
        f"{name} {1000 * statistics.median(seconds):.2f} ms" for name, seconds in values.items()
    )
