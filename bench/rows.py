"""The ops on rows: kernels on the cpu device against C with OpenMP, oracles against their formula."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench._runs import TOKITAI, Line, compiled, environment, interleaved, ratio, run, seconds_of
from tokitai_cli import inputs, oracles, plan, spec
from tokitai_cli.plan.selection import Selection

ROUNDS = 5
# Launches of one process.
REPEATS = 10
ORACLE_TARGET = 15.0

Arrays = Mapping[str, NDArray[Any]]
Formula = Callable[[Arrays], object]

SOFTMAX = {"rows": 1024, "cols": 1024}
LAYERNORM = {"rows": 512, "cols": 768}
EMBEDDING = {"queries": 4096, "dim": 256, "vocab": 32000}


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
    for op, variant, shape, formula in FORMULAS:
        yield _oracle(op, variant, shape, formula)


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


def _oracle(op: str, variant: str, shape: Mapping[str, int], formula: Formula) -> Line:
    selection = Selection(
        variants=(variant,),
        profiles=("normal",),
        shapes={name: (value,) for name, value in shape.items()},
    )
    (case,) = plan.plan(spec.load(spec.find(op)), selection).cases
    arrays = {name: drawn.array for name, drawn in inputs.draw(case).items()}
    values = interleaved(
        {
            "oracle": lambda: _seconds(lambda: oracles.expect(case, arrays)),
            "formula": lambda: _seconds(lambda: formula(arrays)),
        },
        ROUNDS,
    )
    name = f"oracle of {op} {variant}, in its formula in float64"
    return Line(name, ratio(values, "oracle", "formula"), "x", ORACLE_TARGET, _milliseconds(values))


def _softmax(arrays: Arrays) -> object:
    x = arrays["x"].astype(np.float64)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _softmax_gradient(arrays: Arrays) -> object:
    g, s = (arrays[name].astype(np.float64) for name in "gs")
    return s * (g - (g * s).sum(axis=1, keepdims=True))


def _layernorm(arrays: Arrays) -> object:
    x, gamma, beta = (arrays[name].astype(np.float64) for name in ("x", "gamma", "beta"))
    mean = x.mean(axis=1, keepdims=True)
    rstd = 1.0 / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    return (x - mean) * rstd * gamma + beta, mean, rstd


def _layernorm_gradient(arrays: Arrays) -> object:
    names = ("grad_y", "x", "gamma", "mean", "rstd")
    grad, x, gamma, mean, rstd = (arrays[name].astype(np.float64) for name in names)
    xhat = (x - mean[:, None]) * rstd[:, None]
    d = grad * gamma
    columns = x.shape[1]
    sums = columns * d - d.sum(axis=1, keepdims=True)
    grad_x = rstd[:, None] / columns * (sums - xhat * (d * xhat).sum(axis=1, keepdims=True))
    return grad_x, (grad * xhat).sum(axis=0), grad.sum(axis=0)


def _lookup(arrays: Arrays) -> object:
    indices, weight = arrays["indices"], arrays["weight"]
    inside = (indices >= 0) & (indices < len(weight))
    rows = weight[np.where(inside, indices, 0)]
    return np.where(inside[:, None], rows, arrays["output"]).astype(np.float64)


def _lookup_gradient(arrays: Arrays) -> object:
    grad = arrays["grad_output"].astype(np.float64)
    result = np.zeros((EMBEDDING["vocab"], grad.shape[1]))
    np.add.at(result, arrays["indices"], grad)
    return result


FORMULAS: tuple[tuple[str, str, Mapping[str, int], Formula], ...] = (
    ("softmax", "fwd", SOFTMAX, _softmax),
    ("softmax", "grad", SOFTMAX, _softmax_gradient),
    ("layernorm", "fwd", LAYERNORM, _layernorm),
    ("layernorm", "bwd", LAYERNORM, _layernorm_gradient),
    ("embedding", "fwd", EMBEDDING, _lookup),
    ("embedding", "bwd", EMBEDDING, _lookup_gradient),
)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _milliseconds(values: Mapping[str, list[float]]) -> str:
    return ", ".join(
        f"{name} {1000 * statistics.median(seconds):.2f} ms" for name, seconds in values.items()
    )
