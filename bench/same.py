"""`python -m bench.same REVISION [--cases N] [--large]`: does this tree judge as REVISION does?

Draws cases of the shipped specs and of those under tests and docs, makes outputs of each reference
(right ones, some elements wrong, NaN, infinities, others in each repetition, unwritten ones), and
judges them without a kernel, once with each tree. Every field of the records is compared, and the
bits of what the oracle said. Exits with 1 where something differs.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
_OWN = ("tests/kernels/own", "docs/examples/llm_kernels")
_KINDS = ("right", "noisy", "wrong", "nan", "infinite", "unlike", "unwritten", "zeros", "edge")
_MOST = 1 << 18  # elements of a drawn case
# So large that rows are taken apart, or that the work is shared out.
_LARGE: tuple[tuple[str, str, str, Mapping[str, int]], ...] = (
    ("softmax", "fwd", "normal", {"rows": 640, "cols": 8192}),
    ("softmax", "grad", "normal", {"rows": 1024, "cols": 4100}),
    ("softmax", "fwd", "special", {"rows": 600, "cols": 8192}),
    ("layernorm", "fwd", "normal", {"rows": 1100, "cols": 4096}),
    ("layernorm", "bwd", "normal", {"rows": 1100, "cols": 4096}),
    ("cross-entropy", "fwd", "normal", {"rows": 512, "cols": 8192}),
    ("cross-entropy", "bwd", "normal", {"rows": 600, "cols": 8192}),
    ("silu", "fwd", "special", {"rows": 1100, "cols": 4096}),
    ("adamw", "step", "normal", {"n": 2200000}),
    ("embedding", "bwd", "normal", {"queries": 2048, "dim": 1024, "vocab": 2048}),
    ("rmsnorm", "fwd-bf16", "normal", {"rows": 1100, "cols": 4096}),
    ("gemm-bw", "grad-a", "normal", {"m": 704, "n": 512, "k": 912}),
    ("gemm", "f32", "normal", {"m": 704, "n": 512, "k": 912}),
    ("scan", "inclusive", "normal", {"rows": 600, "cols": 4096}),
    ("topk-gating", "fwd", "normal", {"tokens": 600000, "experts": 8, "k": 4}),
)


def main(argv: list[str]) -> int:
    """Compare; 1 where the trees differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--large", action="store_true", help="large cases instead of drawn ones")
    parser.add_argument("--dump", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--base", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(argv)
    if asked.dump is not None:
        drawn = _large_cases() if asked.large else _drawn_cases(asked.cases, asked.base)
        _dump(asked.dump, drawn)
        return 0
    with tempfile.TemporaryDirectory(prefix="tokitai-same-") as folder:
        base = Path(folder) / "base"
        base.mkdir()
        packed = subprocess.run(
            ["git", "archive", asked.revision], cwd=ROOT, capture_output=True, check=True
        )
        subprocess.run(["tar", "x", "-C", str(base)], input=packed.stdout, check=True)
        argv = [*argv, "--base", str(base)]
        found = [_dumped(tree, Path(folder), argv) for tree in (base, ROOT)]
    return _compared(*found)


def _dumped(tree: Path, folder: Path, argv: list[str]) -> dict[str, Any]:
    out = folder / f"{tree.name}.json"
    start = time.perf_counter()
    # The trees' own tests and specs: a case is named alike in both.
    command = [sys.executable, str(Path(__file__)), *argv, "--dump", str(out)]
    subprocess.run(command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, check=True)
    found: dict[str, Any] = json.loads(out.read_text("utf-8"))
    _write(f"{tree.name}: {len(found)} judgements in {time.perf_counter() - start:.0f} s")
    return found


def _compared(base: Mapping[str, Any], here: Mapping[str, Any]) -> int:
    unlike = 0
    for name in sorted(base.keys() | here.keys()):
        places = list(_differences(base.get(name), here.get(name), ""))
        unlike += bool(places)
        for place in places[:6]:
            _write(f"{name}: {place}")
    _write(f"{unlike} of {len(base)} differ")
    return 1 if unlike else 0


def _differences(left: Any, right: Any, at: str) -> Iterator[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        for key in left.keys() | right.keys():
            yield from _differences(left.get(key), right.get(key), f"{at}.{key}")
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for number, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from _differences(one, other, f"{at}[{number}]")
    elif left != right:
        yield f"{at}: {str(left)[:150]} now {str(right)[:150]}"


def _dump(out: Path, drawn: Iterator[tuple[Any, str]]) -> None:
    """Judgements of all cases by their names, by the tokitai_cli that is imported."""
    found = {}
    for number, (case, kind) in enumerate(drawn):
        _write(f"  {number} {case.id} {kind}")
        found[f"{number} {case.id} {kind}"] = _judged(case, kind)
    out.write_text(json.dumps(found), "utf-8")


def _large_cases() -> Iterator[tuple[Any, str]]:
    from tokitai_cli import spec
    from tokitai_cli.spec import plan

    for number, (op, variant, profile, shape) in enumerate(_LARGE):
        chosen = plan.Selection(
            variants=(variant,),
            profiles=(profile,),
            shapes={name: (value,) for name, value in shape.items()},
        )
        (case,) = plan.plan(spec.load(spec.find(op)), chosen).cases
        yield case, _KINDS[number % len(_KINDS)]


def _drawn_cases(count: int, base: Path) -> Iterator[tuple[Any, str]]:
    """Of the specs that the tree `base` has too, so that both trees draw the same ones."""
    from tokitai_cli import spec
    from tokitai_cli.spec import plan

    names = [path.stem for path in sorted(Path("specs").glob("*.yaml"))]
    files = [spec.find(name) for name in names if (base / "specs" / f"{name}.yaml").exists()]
    own = [path for folder in _OWN for path in sorted(Path(folder).rglob("*.yaml"))]
    files += [path for path in own if (base / path).exists()]
    cases = []
    for file in files:
        loaded = spec.load(file)
        chosen = [plan.Selection(suite=name) for name in loaded.spec.suites] or [plan.Selection()]
        mine = [case for one in chosen for case in plan.plan(loaded, one).cases]
        cases.append([one for one in mine if _size(one) <= _MOST])
    random_of = random.Random(28)  # noqa: S311 - no secret
    for number in range(count):
        mine = cases[number % len(cases)]
        yield mine[random_of.randrange(len(mine))], _KINDS[random_of.randrange(len(_KINDS))]


def _size(case: Any) -> int:
    return sum(int(plan.elements) for plan in case.buffers)


def _judged(case: Any, kind: str) -> Any:
    """The judgement of outputs of a kind, and digests of what the oracle said, as plain JSON."""
    import msgspec

    from tokitai_cli import judge
    from tokitai_cli.core.errors import TokitaiError
    from tokitai_cli.core.fills import fills_of
    from tokitai_cli.core.model.case import Role, RunResult
    from tokitai_cli.oracles import references
    from tokitai_cli.spec import inputs

    try:
        with contextlib.suppress(ImportError):  # an older tree computes everything by numpy
            from tokitai_cli.run import native_loops

            native_loops.provide(case)
        drawn = inputs.draw(case)
        arrays = {name: one.array for name, one in drawn.items()}
        expected = references.expect(case, arrays)
        replays = references.replay(case, arrays, None, expected)
        stated = references.stated_properties(case, arrays, expected)
        fills = fills_of(3)
        buffers = case.buffers_of(Role.OUTPUT, Role.INOUT)
        outputs = [
            {plan.name: _output(plan, expected[plan.name], kind, fill) for plan in buffers}
            for fill in fills
        ]
        result = RunResult(outputs=tuple(outputs), fills=fills, times_ns=(0,) * len(fills))
        judged = judge.judge(case, expected, replays, result, stated)
        judged = _later(case, arrays, (replays, result)) or judged
        for one in stated:
            if one.changed:
                judged = judge.judge_another(case, judged, one, result.outputs, result)
    except TokitaiError as error:
        return {"error": str(error)}
    record = json.loads(msgspec.json.encode(judged))
    record.pop("beforehand", None)
    told = {
        "inputs": {name: one.sha256 for name, one in drawn.items()},
        "oracle": {name: _digests(one) for name, one in expected.items()},
        "judged": record,
    }
    return json.loads(json.dumps(told))


def _later(case: Any, arrays: Mapping[str, Any], given: tuple[Any, Any]) -> Any:
    """The judgement of a large case whose answer is computed meanwhile, where it verifies the case."""
    from tokitai_cli import judge
    from tokitai_cli.core.model.verdict import Verdict
    from tokitai_cli.oracles import references

    try:
        from tokitai_cli.core.deferred import NotByRowsError, pass_of
    except ImportError:
        return None  # an older tree keeps every answer whole
    replays, result = given
    expected = references.expect(case, arrays, later=True)
    if not any(pass_of(one.reference) for one in expected.values()):
        return None
    stated = references.stated_properties(case, arrays, expected)
    others = {one.name: result for one in stated if one.changed}
    with contextlib.suppress(NotByRowsError):
        found = judge.judge(case, expected, replays, result, stated, others)
        return found if found.verdict is Verdict.VERIFIED else None
    return None


def _digests(expectation: Any) -> dict[str, Any]:
    """sha256 of each array of an expectation, and its changes by words."""
    found: dict[str, Any] = {"terms": expectation.terms}
    for field in ("reference", "error", "error_below", "error_above", "error_probable", "low"):
        found[field] = _digest(getattr(expectation, field))
    for field in ("may_be_nan", "unbounded", "allowed", "replay", "rows"):
        found[field] = _digest(getattr(expectation, field))
    found["changes"] = {words: _digest(array) for words, array in expectation.changes.items()}
    return found


def _digest(array: NDArray[Any] | None) -> str:
    if array is None:
        return ""
    data = np.ascontiguousarray(array)
    return f"{data.dtype} {data.shape} {hashlib.sha256(data.tobytes()).hexdigest()[:16]}"


def _output(plan: Any, expectation: Any, kind: str, fill: int) -> NDArray[Any]:
    """An output of a kind in the repetition that began with a fill."""
    from tokitai_cli.core.dtypes import FORMATS, numpy_dtype
    from tokitai_cli.core.fills import held
    from tokitai_cli.core.numerics import round_to

    reference = np.asarray(expectation.reference)
    rng = np.random.default_rng([fill if kind == "unlike" else 0, reference.size])
    error = 0.0 if expectation.error is None else np.asarray(expectation.error)
    with np.errstate(all="ignore"):
        if plan.dtype in FORMATS:
            values = reference.astype(np.float64)
            if kind in ("noisy", "unlike", "edge"):
                size = 1.5 if kind == "edge" else 0.7
                values = values + size * error * rng.uniform(-1, 1, values.shape)
            output = round_to(values, plan.dtype)
        else:
            output = reference.astype(numpy_dtype(plan.dtype))
    output = np.array(np.broadcast_to(output, plan.shape)) if output.shape != plan.shape else output
    flat = np.ascontiguousarray(output).reshape(-1).copy()
    some = np.unique(rng.integers(0, max(flat.size, 1), min(flat.size, 17)))
    if kind == "wrong":
        flat[some] = flat[some] + np.asarray(1 + flat[some].astype(np.float64) / 8, flat.dtype)
    if kind in ("nan", "infinite") and plan.dtype in FORMATS:
        flat[some] = np.nan if kind == "nan" else np.inf
    if kind == "zeros":
        flat[:] = 0
    if kind == "unwritten" and flat.size:
        kept = held(plan.name, fill, 0, flat.nbytes).view(flat.dtype)
        flat[some] = kept[some]
    return flat.reshape(plan.shape)


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
