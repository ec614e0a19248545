"""Large cases without a kernel: CPU seconds and memory of drawing, oracle and comparison."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench._runs import ROOT, Line, environment

# Of an output's element, by the stage costs that are aimed at; and of memory beside the arrays.
_MOST_NS, _MOST_MB = 300.0, 60.0
_CASES: tuple[tuple[str, str, Mapping[str, int], str], ...] = (
    ("softmax", "fwd", {"rows": 1024, "cols": 8192}, "np.exp(x - x.max(1, keepdims=True))"),
    (
        "layernorm",
        "fwd",
        {"rows": 2048, "cols": 4096},
        "(x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)",
    ),
    ("silu", "fwd", {"rows": 2048, "cols": 4096}, "x / (1 + np.exp(-x))"),
    ("cross-entropy", "bwd", {"rows": 1024, "cols": 8192}, "np.exp(x - x.max(1, keepdims=True))"),
    ("embedding", "bwd", {"queries": 4096, "dim": 2048, "vocab": 4096}, "x + x"),
    ("gemm-bw", "grad-a", {"m": 1024, "n": 1024, "k": 1024}, "x @ x"),
)


def measure(folder: Path) -> Iterator[Line]:
    """CPU nanoseconds an element of the output, beside a plain float64 formula in the same process."""
    for op, variant, shape, formula in _CASES:
        asked = json.dumps([op, variant, dict(shape), formula])
        command = [sys.executable, str(Path(__file__)), asked]
        env = {**environment(folder / "cache"), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        told = json.loads(done.stdout)
        size = ", ".join(f"{name}={extent}" for name, extent in shape.items())
        parts = ", ".join(f"{name} {told[name]:.0f}" for name in ("draw", "oracle", "compare"))
        detail = f"{parts}; `{formula}` in float64 {told['formula']:.0f}"
        if told["torch"]:
            detail += f", torch's softmax {told['torch']:.0f}"
        name = f"{op} {variant} {size}, CPU an element"
        yield Line(
            name, sum(told[one] for one in ("draw", "oracle", "compare")), "ns", _MOST_NS, detail
        )
        over = told["peak"] - 2 * told["arrays"]
        allowed = _MOST_MB + 64 * told["threads"]
        detail = f"peak {told['peak']:.0f}, arrays {told['arrays']:.0f}, {told['threads']} threads"
        yield Line(f"{op} {variant}, memory beside the arrays", over, "MB", allowed, detail)


def _told(op: str, variant: str, shape: Mapping[str, int], formula: str) -> dict[str, float]:
    """Nanoseconds of CPU an element, and megabytes, of one case in this process."""
    import resource
    import time

    import numpy as np

    from tokitai_cli import judge, spec
    from tokitai_cli.core import arena, parallel
    from tokitai_cli.core.fills import fills_of
    from tokitai_cli.core.model.case import Role, RunResult
    from tokitai_cli.core.numerics import round_to
    from tokitai_cli.oracles import references
    from tokitai_cli.run import native_loops
    from tokitai_cli.spec import inputs, plan

    arena.allow()  # as the tool's own process does
    chosen = plan.Selection(
        variants=(variant,),
        profiles=("normal",),
        shapes={name: (extent,) for name, extent in shape.items()},
    )
    (case,) = plan.plan(spec.load(spec.find(op)), chosen).cases
    native_loops.provide(case)
    buffers = case.buffers_of(Role.OUTPUT, Role.INOUT)
    elements = sum(plan.elements for plan in buffers)
    told: dict[str, float] = {"torch": 0.0, "threads": parallel.threads()}
    start = time.process_time()

    def mark(name: str) -> None:
        nonlocal start
        told[name] = (time.process_time() - start) / elements * 1e9
        start = time.process_time()

    arrays = {name: one.array for name, one in inputs.draw(case).items()}
    mark("draw")
    expected = references.expect(case, arrays)
    replays = references.replay(case, arrays, None, expected)
    stated = references.stated_properties(case, arrays, expected)
    mark("oracle")
    outputs = {one.name: round_to(expected[one.name].reference, one.dtype) for one in buffers}
    again = {name: array.copy() for name, array in outputs.items()}
    start = time.process_time()
    result = RunResult(outputs=(outputs, again), fills=fills_of(2), times_ns=(0, 0))
    judge.judge(case, expected, replays, result, stated)
    mark("compare")
    told["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    given = [*arrays.values(), *outputs.values(), *again.values()]
    told["arrays"] = sum(array.nbytes for array in given) / 2**20
    x = np.asarray(max(arrays.values(), key=lambda array: array.size), np.float64)
    start = time.process_time()
    eval(formula, {"np": np, "x": x})  # noqa: S307 -- one of this file's own
    mark("formula")
    if importlib.util.find_spec("torch") is not None:
        import torch

        tensor = torch.from_numpy(x)
        start = time.process_time()
        torch.softmax(tensor, -1)
        mark("torch")
    return told


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_told(*json.loads(sys.argv[1]))))
