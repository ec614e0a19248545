"""`python -m bench.large [SIZE]`: seconds of oracle and comparison for a product of SIZE^3, no kernel.

The output is the exact product by float32 BLAS, whose whole numbers are exact: once as it is, and once
with one element wrong.
"""

from __future__ import annotations

import sys
import time

import msgspec
import numpy as np

from tokitai_cli import judge
from tokitai_cli.core.fills import fills_of
from tokitai_cli.core.model.case import LoadedSpec, RunResult
from tokitai_cli.oracles import references
from tokitai_cli.run.specs import load_op
from tokitai_cli.spec import inputs, plan


def main(size: int) -> int:
    """Measure; 1 where the right output is refuted or the wrong one is not."""
    sizes = dict.fromkeys(("m", "n", "k"), (size,))
    chosen = plan.Selection(shapes=sizes, variants=("f16",), profiles=("exact-int",))
    (case,) = plan.plan(_sampled(), chosen).cases
    start = time.perf_counter()
    arrays = {name: one.array for name, one in inputs.draw(case).items()}
    _write(f"inputs {time.perf_counter() - start:.1f} s")
    a, b = (arrays[name].astype(np.float32) for name in ("a", "b"))
    right = (a @ b).astype(np.float16)
    del a, b
    fills = fills_of(2)
    missed = 0
    for name, wrong in (("right", False), ("one element wrong", True)):
        output = right.copy()
        output[size // 2 + 1, size // 3] += wrong
        start = time.perf_counter()
        expectations = references.expect(case, arrays)
        oracle = time.perf_counter() - start
        result = RunResult(
            outputs=({"c": output}, {"c": output.copy()}), fills=fills, times_ns=(0, 0)
        )
        start = time.perf_counter()
        judged = judge.judge(case, expectations, {}, result)
        took = time.perf_counter() - start
        total = f"oracle {oracle:.1f} s, comparison {took:.1f} s"
        _write(f"{size}^3, {name}: {judged.verdict} {judged.reason}: {total}")
        missed += (judged.verdict == "refuted") is not wrong
    return 1 if missed else 0


def _sampled() -> LoadedSpec:
    """The shipped op, whose products are sampled at any size."""
    loaded = load_op("gemm")
    one = loaded.spec.variants["f16"]
    assert one.by_formula is not None
    oracle = msgspec.structs.replace(one.by_formula, sampled_from=1)
    one = msgspec.structs.replace(one, given_oracle=oracle)
    spec = msgspec.structs.replace(loaded.spec, variants={"f16": one})
    return msgspec.structs.replace(loaded, spec=spec)


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(int((sys.argv[1:] or ["8192"])[0])))
