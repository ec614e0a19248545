"""Large cases without a kernel: CPU seconds and memory of drawing, oracle and comparison.

Each is measured in a process of its own, beside the op's formula on plain float64 arrays of numpy
and, where torch is installed, torch's function on float64 tensors. `python -m bench scale` takes what
two cores do in seconds; `python -m bench.scale`, for a host of many cores, the largest, in seconds.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bench._runs import ROOT, Line, environment

if TYPE_CHECKING:
    from tokitai_cli.core.model.case import Case

# CPU of an element, by the stage costs that are aimed at; and memory beside the arrays.
_MOST_NS, _MOST_MB = 300.0, 60.0
_STAGES = ("draw", "oracle", "compare")


class _Large(NamedTuple):
    """A case of a shipped op; `of`: the input whose elements are counted, "" for the outputs'.

    ns: CPU of an element, where that is aimed at. seconds: what drawing, oracle and comparison may take
    on 16 cores.
    """

    op: str
    variant: str
    shape: Mapping[str, int]
    of: str = ""
    ns: float | None = _MOST_NS
    seconds: float = 0.0


_CASES = (
    _Large("softmax", "fwd", {"rows": 1024, "cols": 8192}),
    _Large("layernorm", "fwd", {"rows": 2048, "cols": 4096}),
    _Large("silu", "fwd", {"rows": 2048, "cols": 4096}),
    _Large("cross-entropy", "fwd", {"rows": 1024, "cols": 8192}, "logits"),
    _Large("cross-entropy", "bwd", {"rows": 1024, "cols": 8192}),
    _Large("embedding", "bwd", {"queries": 4096, "dim": 2048, "vocab": 4096}),
    _Large("scan", "inclusive", {"rows": 2048, "cols": 4096}),
    _Large("adamw", "step", {"n": 2800000}),
    _Large("topk-gating", "fwd", {"tokens": 1 << 20, "experts": 8, "k": 4}),
    _Large("gemm-bw", "grad-a", {"m": 1024, "n": 1024, "k": 1024}),
    _Large(
        "attention", "causal-fwd", {"heads": 16, "queries": 512, "keys": 512, "dim": 128}, ns=None
    ),
)
_OF_MANY_CORES = (
    _Large("softmax", "fwd", {"rows": 4096, "cols": 8192}, seconds=4),
    _Large("layernorm", "fwd", {"rows": 8192, "cols": 4096}, seconds=4),
    _Large("gemm-bw", "grad-a", {"m": 4096, "n": 4096, "k": 4096}, seconds=3),
    _Large(
        "attention",
        "causal-fwd",
        {"heads": 16, "queries": 2048, "keys": 2048, "dim": 128},
        seconds=20,
    ),
)


def _scattered(torch: Any, x: Mapping[str, Any]) -> Any:
    named = (x["indices"] >= 0) & (x["indices"] < 4096)
    sums = torch.zeros((4096, x["grad_output"].shape[1]), dtype=torch.float64)
    return sums.index_add_(0, x["indices"][named], x["grad_output"][named])


_TORCH: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "softmax fwd": lambda torch, x: torch.softmax(x["x"], -1),
    "layernorm fwd": lambda torch, x: torch.nn.functional.layer_norm(x["x"], x["x"].shape[1:]),
    "silu fwd": lambda torch, x: torch.nn.functional.silu(x["x"]),
    "cross-entropy fwd": lambda torch, x: torch.log_softmax(x["logits"], -1),
    "cross-entropy bwd": lambda torch, x: torch.softmax(x["logits"], -1),
    "embedding bwd": _scattered,
    "scan inclusive": lambda torch, x: torch.cumsum(x["x"], -1),
    "topk-gating fwd": lambda torch, x: torch.softmax(torch.topk(x["logits"], 4).values, -1),
    "gemm-bw grad-a": lambda torch, x: x["grad_c"] @ x["b"].T,
    "attention causal-fwd": lambda torch, x: torch.nn.functional.scaled_dot_product_attention(
        x["q"], x["k"], x["v"], is_causal=True
    ),
}


def measure(folder: Path) -> Iterator[Line]:
    """CPU nanoseconds an element, and memory beside the arrays."""
    for large in _CASES:
        found = _in_a_process(large, folder)
        size = ", ".join(f"{name}={extent}" for name, extent in large.shape.items())
        cpu = {name: found[f"{name} cpu"] / found["elements"] * 1e9 for name in _STAGES}
        detail = ", ".join(f"{name} {value:.0f}" for name, value in cpu.items())
        name = f"{large.op} {large.variant} {size}, CPU an element"
        detail += "; " + _beside(found, "cpu", 1e9 / found["elements"])
        yield Line(name, sum(cpu.values()), "ns", large.ns, detail)
        over = found["peak"] - 2 * found["arrays"]
        allowed = _MOST_MB + 64 * found["threads"]
        detail = f"peak {found['peak']:.0f}, arrays {found['arrays']:.0f}"
        detail += f", {found['threads']:.0f} threads"
        yield Line(
            f"{large.op} {large.variant}, memory beside the arrays", over, "MB", allowed, detail
        )


def _of_many_cores(folder: Path) -> Iterator[Line]:
    """Wall seconds of the largest cases."""
    for large in _OF_MANY_CORES:
        found = _in_a_process(large, folder)
        size = ", ".join(f"{name}={extent}" for name, extent in large.shape.items())
        total = sum(found[f"{name} wall"] for name in _STAGES)
        each = ", ".join(
            f"{name} {found[f'{name} wall']:.2f} ({found[f'{name} cpu']:.1f} CPU)"
            for name in _STAGES
        )
        detail = f"{each}; {_beside(found, 'wall', 1.0)}; peak {found['peak']:.0f} MB, "
        detail += f"arrays {found['arrays']:.0f} MB, {found['threads']:.0f} threads"
        yield Line(f"{large.op} {large.variant} {size}", total, "s", large.seconds, detail)


def _beside(found: Mapping[str, float], clock: str, scale: float) -> str:
    """What numpy and torch took."""
    named = {"numpy": "numpy's float64 formula", "torch": "torch's"}
    return ", ".join(
        f"{words} {found[f'{name} {clock}'] * scale:.{2 if scale == 1.0 else 0}f}"
        for name, words in named.items()
        if f"{name} {clock}" in found
    )


def _in_a_process(large: _Large, folder: Path) -> dict[str, float]:
    """What `_measured` found."""
    command = [sys.executable, "-m", "bench.scale", json.dumps(large)]
    env = environment(folder / "cache")
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


class _Clock:
    """Wall and CPU seconds of what is measured, by its name."""

    def __init__(self) -> None:
        self.found: dict[str, float] = {}
        self.start()

    def start(self) -> None:
        """Begin to measure."""
        import time

        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def mark(self, name: str) -> None:
        """Name what was done since the last mark or start."""
        import time

        self.found[f"{name} wall"] = time.perf_counter() - self._wall
        self.found[f"{name} cpu"] = time.process_time() - self._cpu
        self.start()


def _measured(large: _Large) -> dict[str, float]:
    """Seconds by stage, elements, megabytes and threads of one case in this process."""
    import resource

    from tokitai_cli import spec
    from tokitai_cli.core import arena, parallel
    from tokitai_cli.core.model.case import Role
    from tokitai_cli.run import native_loops
    from tokitai_cli.spec import plan

    arena.allow()  # as the tool's own process does
    chosen = plan.Selection(
        variants=(large.variant,),
        profiles=("normal",),
        shapes={name: (extent,) for name, extent in large.shape.items()},
    )
    (case,) = plan.plan(spec.load(spec.find(large.op)), chosen).cases
    native_loops.provide(case)
    clock = _Clock()
    arrays, outputs = _judged(case, clock)
    found = clock.found
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found["arrays"] = sum(one.nbytes for one in (*arrays.values(), *outputs)) / 2**20
    found["threads"] = parallel.threads()
    counted = case.buffers_of(Role.OUTPUT, Role.INOUT)
    found["elements"] = sum(plan.elements for plan in counted)
    if large.of:
        found["elements"] = arrays[large.of].size
    _formula(case, arrays, clock)
    return found


def _judged(case: Case, clock: _Clock) -> tuple[Mapping[str, Any], Sequence[Any]]:
    """Draw, ask the oracle, and judge its own reference twice; the inputs, and these outputs."""
    import numpy as np

    from tokitai_cli import judge
    from tokitai_cli.core.dtypes import FORMATS, numpy_dtype
    from tokitai_cli.core.fills import fills_of
    from tokitai_cli.core.model.case import Role, RunResult
    from tokitai_cli.core.numerics import round_to
    from tokitai_cli.oracles import references
    from tokitai_cli.spec import inputs

    clock.start()
    arrays = {name: one.array for name, one in inputs.draw(case).items()}
    clock.mark("draw")
    expected = references.expect(case, arrays)
    replays = references.replay(case, arrays, None, expected)
    stated = references.stated_properties(case, arrays, expected)
    clock.mark("oracle")
    outputs = {}
    for plan in case.buffers_of(Role.OUTPUT, Role.INOUT):
        right = np.asarray(expected[plan.name].reference)
        is_float = plan.dtype in FORMATS
        outputs[plan.name] = (
            round_to(right, plan.dtype) if is_float else right.astype(numpy_dtype(plan.dtype))
        )
    again = {name: array.copy() for name, array in outputs.items()}
    result = RunResult(outputs=(outputs, again), fills=fills_of(2), times_ns=(0, 0))
    clock.start()
    judge.judge(case, expected, replays, result, stated)
    clock.mark("compare")
    return arrays, [*outputs.values(), *again.values()]


def _formula(case: Case, arrays: Mapping[str, Any], clock: _Clock) -> None:
    """The op's formula on float64 arrays of numpy, and torch's function on float64 tensors."""
    import numpy as np

    from tokitai_cli.oracles import builtin
    from tokitai_cli.oracles.case_request import scalars
    from tokitai_cli.oracles.variants.request import FormulaCall

    name = case.variant.oracle
    file = builtin.file_of(name)
    assert file is not None
    wide = {
        key: array if array.dtype.kind in "iu" else np.asarray(array, np.float64)
        for key, array in arrays.items()
    }
    call = FormulaCall(builtin.function(name, file), dict(case.sizes), wide, scalars(case))
    clock.start()
    call.call(lambda x: np.asarray(x, np.float64))
    clock.mark("numpy")
    function = _TORCH.get(f"{case.loaded.spec.op} {case.variant_name}")
    if function is None or importlib.util.find_spec("torch") is None:
        return
    import torch

    tensors = {key: torch.from_numpy(array) for key, array in wide.items()}
    clock.start()
    function(torch, tensors)
    clock.mark("torch")


def main(argv: list[str]) -> int:
    """Print what one case took as JSON, or lines of the largest cases."""
    if argv:
        sys.stdout.write(json.dumps(_measured(_Large(*json.loads(argv[0])))))
        return 0
    import tempfile

    with tempfile.TemporaryDirectory(prefix="tokitai-bench-") as folder:
        for line in _of_many_cores(Path(folder)):
            word = "pass" if line.passed else "MISS"
            sys.stdout.write(
                f"{line.name}: {line.value:.2f} s (<= {line.target:g}) {word}; {line.detail}\n"
            )
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
