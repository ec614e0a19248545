"""Large cases judged while their answer is computed: the record of a case whose answer is whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.row_cases import arrays_of, row_case
from tokitai_cli import judge
from tokitai_cli.core import parallel, workers
from tokitai_cli.core.deferred import NotByRowsError, pass_of
from tokitai_cli.core.fills import fills_of
from tokitai_cli.core.model.case import Case, RunResult
from tokitai_cli.core.model.expectation import Expectation
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.numerics import round_to
from tokitai_cli.judge import property_limits
from tokitai_cli.oracles import references
from tokitai_cli.oracles.variants import by_windows, row_fields, row_layout

CASES: tuple[tuple[str, str, str, Mapping[str, int]], ...] = (
    ("softmax", "fwd", "normal", {"rows": 200, "cols": 600}),
    ("softmax", "fwd", "far-below-zero", {"rows": 200, "cols": 600}),
    ("softmax", "grad", "normal", {"rows": 133, "cols": 901}),
    ("layernorm", "fwd", "normal", {"rows": 200, "cols": 600}),
    ("silu", "fwd", "normal", {"rows": 201, "cols": 700}),
    ("cross-entropy", "bwd", "normal", {"rows": 133, "cols": 900}),
    ("rmsnorm", "fwd-bf16", "normal", {"rows": 200, "cols": 600}),
    ("embedding", "bwd", "out-of-range", {"queries": 400, "dim": 500, "vocab": 410}),
    ("attention", "causal-fwd", "normal", {"heads": 18, "queries": 120, "keys": 130, "dim": 48}),
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (row_layout, row_fields):
        monkeypatch.setattr(module, "PART", 1 << 15)
    for module in (row_layout, by_windows):  # blocks within which a formula's own all lie
        monkeypatch.setattr(module, "BLOCK", 1 << 13)
    monkeypatch.setattr(row_layout, "_BLOCK", 1 << 13)
    monkeypatch.setattr(row_layout, "_WORTH", 1 << 16)
    monkeypatch.setattr(property_limits, "_STEPS", 1)  # rows of a property for each worker
    monkeypatch.setattr(workers, "_may_fork", lambda: True)  # whatever threads pytest has


def outputs_of(expected: Mapping[str, Expectation], kind: str) -> dict[str, NDArray[Any]]:
    """Outputs within the error, or with some elements wrong."""
    rng, found = np.random.default_rng(5), {}
    for name, one in expected.items():
        reference, error = np.asarray(one.reference), np.asarray(one.error)
        noise = 0.0 if kind == "right" else 0.3 * error * rng.uniform(-1, 1, reference.shape)
        dtype = "bfloat16" if "bf16" in kind else "float16" if reference.ndim > 1 else "float32"
        found[name] = round_to(reference + noise, dtype)
        if kind == "wrong":
            found[name].reshape(-1)[7::10007] += np.asarray(1, found[name].dtype)
    return found


def judged(case: Case, kind: str, *, later: bool) -> judge.Judgement:
    arrays = arrays_of(case)
    whole = references.expect(case, arrays)
    kind = f"{kind} bf16" if "bf16" in case.variant_name else kind
    outputs = outputs_of(whole, kind)
    fills = fills_of(3)
    result = RunResult(outputs=(outputs,) * 3, fills=fills, times_ns=(0,) * 3)
    expected = references.expect(case, arrays, later=True) if later else whole
    if later:
        assert any(pass_of(one.reference) is not None for one in expected.values())
    replays = references.replay(case, arrays, None, expected)
    stated = references.stated_properties(case, arrays, expected)
    others = {one.name: result for one in stated if one.changed}
    found = judge.judge(case, expected, replays, result, stated, others if later else None)
    if later:
        large = next(one for one in expected.values() if one.reference.ndim > 1)
        assert pass_of(large.reference) is not None, "something asked for all of it"
    for one in stated:
        if one.changed:
            found = judge.judge_another(case, found, one, result.outputs, result)
    return msgspec.structs.replace(found, beforehand={})


@pytest.mark.parametrize("kind", ["right", "noisy"])
@pytest.mark.parametrize(("op", "variant", "profile", "shape"), CASES)
def test_the_record_is_that_of_a_whole_answer(
    op: str, variant: str, profile: str, shape: Mapping[str, int], kind: str
) -> None:
    case = row_case(op, variant, profile, **shape)
    with parallel.sharing(2):
        whole, later = (judged(case, kind, later=one) for one in (False, True))
    assert msgspec.json.encode(later) == msgspec.json.encode(whole)
    assert whole.outputs[0].metrics is not None


@pytest.mark.parametrize("threads", [1, 3, 16])
def test_it_does_not_depend_on_the_number_of_threads(threads: int) -> None:
    case = row_case("layernorm", "fwd", "normal", rows=200, cols=600)
    with parallel.sharing(threads):
        later = judged(case, "noisy", later=True)
    assert msgspec.json.encode(later) == msgspec.json.encode(judged(case, "noisy", later=False))


def test_wrong_elements_refute() -> None:
    case = row_case("softmax", "fwd", "normal", rows=200, cols=600)
    whole, later = (judged(case, "wrong", later=one) for one in (False, True))
    assert later.verdict is whole.verdict is Verdict.REFUTED
    assert later.reason == whole.reason


def test_rows_that_hang_together_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from tokitai_cli.oracles import builtin

    def mixed(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
        x = inputs["x"]
        return {"y": x + np.where(x > 100, np.roll(x, 101, axis=0), 0)}

    monkeypatch.setattr(builtin, "function", lambda name, file: mixed)
    case = row_case("silu", "fwd", "normal", rows=201, cols=700)
    arrays = arrays_of(case)
    arrays["x"][200, 3] = 200
    expected = references.expect(case, arrays, later=True)
    outputs = outputs_of(references.expect(case, arrays), "right")
    result = RunResult(outputs=(outputs,) * 3, fills=fills_of(3), times_ns=(0,) * 3)
    with pytest.raises(NotByRowsError):
        judge.judge(case, expected, {}, result)
