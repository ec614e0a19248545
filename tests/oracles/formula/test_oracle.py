"""Formulas as oracles: what they answer, and what verdicts come of it."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import yaml

from tests.runs import run
from tests.spec_example import write_example
from tests.support import errors_of
from tokitai_cli.core import resources
from tokitai_cli.core.errors import SpecError
from tokitai_cli.core.model.spec import PrecisionName
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.oracles.formula import NoRuleError, Precision, loosen, rsqrt, stored
from tokitai_cli.oracles.formula.precision import ULPS
from tokitai_cli.oracles.output_parts import ArrayParts
from tokitai_cli.oracles.variants.answer import answer
from tokitai_cli.oracles.variants.request import FormulaCall, Request
from tokitai_cli.run import specs

CORPUS = Path(__file__).parents[3] / "docs" / "examples" / "llm_kernels"
X = np.random.default_rng(0).standard_normal((64, 200)).astype(np.float32)

SPEC = """
schema: tokitai/spec/v1
op: row-sum
title: Sums of rows
params:
  rows: {default: 6}
  cols: {default: 33}
variants:
  right: &
  short: &
profiles:
  normal: {draw: normal}
"""
VARIANT = """
    source: sums.hip
    inputs:
      x: {dtype: float32, shape: [rows, cols]}
    outputs:
      y: {dtype: float32, shape: [rows]}
    launches:
      - {kernel: "sums<KERNEL>", grid: [rows], block: [1], args: [x, y, cols]}
    oracle: {formula: "formula.py:sums"}
    checks: CHECKS
"""
SUMS = """
#include <hip/hip_runtime.h>
template <int drop>
__global__ void sums(const float* x, float* y, int cols) {
    float sum = 0.0f;
    for (int c = 0; c < cols - drop; ++c) {
        sum += x[blockIdx.x * cols + c];
    }
    y[blockIdx.x] = sum;
}
"""
FORMULA = """
def sums(params, inputs, scalars):
    return {"y": inputs["x"].sum(axis=-1)}
"""


def answered(formula: Any, outputs: dict[str, str], **wanted: Any) -> dict[str, ArrayParts]:
    asked = FormulaCall(formula, {"n": 33}, {"x": X}, {"eps": 0.1})
    settings: dict[str, Any] = {"precision": Precision(), "file": __file__} | wanted
    return answer(asked, Request(outputs, **settings))


def above(parts: ArrayParts) -> Any:
    return errors_of(parts)[1]


def spec_in(folder: Path, checks: str) -> Path:
    variants = [VARIANT.replace("KERNEL", drop).replace("CHECKS", checks) for drop in "01"]
    text = SPEC.replace("right: &", f"right: {variants[0]}").replace(
        "short: &", f"short: {variants[1]}"
    )
    (folder / "spec.yaml").write_text(text)
    (folder / "sums.hip").write_text(SUMS)
    (folder / "formula.py").write_text(FORMULA)
    return folder / "spec.yaml"


def test_a_formula_judges_by_its_bound_and_tells_its_changes(tmp_path: Path) -> None:
    evidence = run(spec_in(tmp_path, "[{metric: bound}]"), tmp_path)
    verdicts = {case.variant: case.verdict for case in evidence.cases}
    assert verdicts == {"right": Verdict.VERIFIED, "short": Verdict.REFUTED}
    (changes,) = next(case for case in evidence.cases if case.variant == "right").changes
    assert changes.tried > 4
    assert not changes.accepted
    assert "line 3, sum: the last term dropped" not in changes.undetected
    assert any("changes of the formula" in one.text for one in evidence.statements)


def test_flat_limits_that_accept_a_change_prove_nothing(tmp_path: Path) -> None:
    evidence = run(spec_in(tmp_path, "[{metric: abs, limit: 50}]"), tmp_path)
    assert {case.verdict for case in evidence.cases} == {Verdict.INCONCLUSIVE}
    accepted = {group.kind for group in evidence.groups if group.status == "accepted"}
    assert "line 3, sum: the last term dropped" in accepted


DRAWS = """
import numpy as np

def tiny(params, shape, rng):
    return rng.standard_normal(shape) * 1e-3

def last_is_zero(params, shape, rng):
    x = rng.standard_normal(shape) * 1e3
    x[..., -1] = 0
    return x
"""
PROFILES = """profiles:
  tiny: {draw: "draws.py:tiny"}
  last-is-zero: {draw: "draws.py:last_is_zero"}
"""


def test_a_profile_on_which_a_change_alters_nothing_does_not_reject_it(tmp_path: Path) -> None:
    spec = spec_in(tmp_path, "[{metric: abs, limit: 0.05}]")
    spec.write_text(spec.read_text().split("profiles:")[0] + PROFILES)
    (tmp_path / "draws.py").write_text(DRAWS)
    evidence = run(spec, tmp_path, variant=["right"])
    tiny, zero = (case.changes[0] for case in evidence.cases)
    last = "line 3, sum: the last term dropped"
    assert last in tiny.accepted
    assert last not in {*zero.accepted, *zero.undetected, *zero.rejected}
    assert zero.rejected
    for one in (tiny, zero):
        assert one.tried == len({*one.accepted, *one.undetected, *one.rejected})
    assert {case.verdict for case in evidence.cases} == {Verdict.INCONCLUSIVE}
    left = {group.kind: group.status for group in evidence.groups}
    assert left[last] == "accepted"


def test_a_formula_is_its_own_replay(tmp_path: Path) -> None:
    checks = "[{metric: bound}, {metric: abs, limit: 0.001, against: replay}]"
    evidence = run(spec_in(tmp_path, checks), tmp_path, variant=["right"])
    (case,) = evidence.cases
    assert (case.verdict, case.replay_fraction) == (Verdict.VERIFIED, 1.0)


def test_a_function_without_a_rule_is_told_with_its_line(tmp_path: Path) -> None:
    spec = spec_in(tmp_path, "[{metric: bound}]")
    median = FORMULA.replace('inputs["x"].sum(axis=-1)', 'np.median(inputs["x"], axis=-1)')
    (tmp_path / "formula.py").write_text(f"import numpy as np\n\n{median}")
    (case,) = run(spec, tmp_path, variant=["right"]).cases
    assert case.verdict is Verdict.INCONCLUSIVE
    assert "formula.py:5: numpy.median has no error rule" in case.reason


def test_integer_outputs_have_the_values_that_rounding_leaves_open() -> None:
    def quantised(params: Any, inputs: Any, scalars: Any) -> Any:
        x = inputs["x"]
        scale = np.abs(x).max(axis=-1, keepdims=True) / 127.0
        return {"q": np.clip(np.rint(x / scale), -127, 127), "best": x.argmax(axis=-1)}

    got = answered(quantised, {"q": "int8", "best": "int32"})
    want = np.rint(X / (np.abs(X).max(axis=-1, keepdims=True) / np.float64(127)))
    assert np.array_equal(got["q"].reference, want)
    # The largest element is 127 times its own scale, or a little less.
    assert set(np.unique(got["q"].allowed - want)) <= {-1.0, 0.0, 1.0}
    assert got["best"].allowed is None


def test_a_tree_gives_a_smaller_error_than_any_order() -> None:
    def sums(params: Any, inputs: Any, scalars: Any) -> Any:
        return {"y": inputs["x"].sum(axis=-1)}

    anyhow = answered(sums, {"y": "float32"})["y"]
    tree = answered(sums, {"y": "float32"}, rounds={"y": 8})["y"]
    probable = answered(sums, {"y": "float32"}, probable=True)["y"]
    assert np.max(above(tree)) < np.max(above(anyhow)) / 4
    with pytest.raises(NoRuleError, match="no tree adds 200 terms with 7 additions"):
        answered(sums, {"y": "float32"}, rounds={"y": 7})
    assert probable.error_probable is not None
    assert np.max(probable.error_probable) > 0


def test_a_bool_that_rounding_may_turn_is_right_either_way(tmp_path: Path) -> None:
    kernel = """
#include <hip/hip_runtime.h>
template <int off>
__global__ void sums(const float* x, bool* y, int cols) {
    float sum = 0.0f;
    for (int c = cols; c-- > 0;) {
        sum += x[blockIdx.x * cols + c] * 0.1f;
    }
    y[blockIdx.x] = (sum > 0.0f) != (off > 0 && sum > 1.0f);
}
"""
    formula = """
def sums(params, inputs, scalars):
    return {"y": (inputs["x"] * 0.1).sum(axis=-1) > 0.0}"""
    path = spec_in(tmp_path, "[{metric: exact}]")
    text = path.read_text(encoding="utf-8").replace(
        "{dtype: float32, shape: [rows]}", "{dtype: bool, shape: [rows]}"
    )
    path.write_text(
        text.replace("normal: {draw: normal}", "cancelling: {draw: normal}"), encoding="utf-8"
    )
    (tmp_path / "sums.hip").write_text(kernel, encoding="utf-8")
    (tmp_path / "formula.py").write_text(formula, encoding="utf-8")
    x = np.ones((4, 2), np.float32)
    x[:, 1] = [-1, -1 + 2.0**-24, 1, -2]
    asked = FormulaCall(lambda p, i, s: {"y": (i["x"] * 0.1).sum(axis=-1) > 0.0}, {}, {"x": x}, {})
    told = answer(asked, Request({"y": "bool"}, Precision(), __file__))["y"]
    assert told.allowed is not None
    assert told.allowed.dtype == bool
    assert (told.allowed != told.reference).any(axis=0).tolist() == [True, True, False, False]
    cases = run(path, tmp_path, shapes={"rows": 40}).cases
    assert {case.variant: str(case.verdict) for case in cases} == {
        "right": "verified",
        "short": "refuted",
    }


def test_a_fast_function_is_allowed_its_ulps() -> None:
    def exponentials(params: Any, inputs: Any, scalars: Any) -> Any:
        return {"y": np.exp(inputs["x"])}

    documented = answered(exponentials, {"y": "float32"})["y"]
    fast = answered(exponentials, {"y": "float32"}, precision=Precision(ulps={"exp": 20}))["y"]
    assert np.all(above(fast) > 5 * above(documented))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_the_author_allows_is_no_way_around_the_changes(dtype: str) -> None:
    def shares(params: Any, inputs: Any, scalars: Any) -> Any:
        squares = inputs["x"] * inputs["x"]
        total = loosen(squares.sum(axis=-1, keepdims=True), 50)
        return {"y": squares / stored(total, "float32") if dtype == "float32" else squares / total}

    def plain(params: Any, inputs: Any, scalars: Any) -> Any:
        squares = inputs["x"] * inputs["x"]
        return {"y": squares / squares.sum(axis=-1, keepdims=True)}

    loose = answered(shares, {"y": dtype}, replay=True)["y"]
    strict = answered(plain, {"y": dtype}, replay=True)["y"]
    assert len(loose.changes) == len(strict.changes) > 5
    assert loose.replay is not None
    assert strict.replay is not None
    assert np.allclose(loose.replay, strict.replay)
    assert np.mean(above(loose)) > np.mean(above(strict))


def test_a_reciprocal_root_is_changed_as_any_operation_is() -> None:
    def normed(params: Any, inputs: Any, scalars: Any) -> Any:
        return {"y": rsqrt((inputs["x"] * inputs["x"]).sum(axis=-1))}

    changed = answered(normed, {"y": "float32"})["y"].changes
    assert any("sqrt" in words for words in changed)
    assert any("divide" in words for words in changed)


def test_a_double_output_is_known_beyond_float64() -> None:
    def thirds(params: Any, inputs: Any, scalars: Any) -> Any:
        return {"y": inputs["x"] / 3.0}

    got = answered(thirds, {"y": "float64"})["y"]
    wide = X.astype(np.float64)
    assert np.array_equal(got.reference, wide / 3.0)
    assert np.any(got.low != 0)


def test_a_nan_that_a_formula_writes_out_is_due() -> None:
    x = np.array([1.0, np.nan, 3.0], np.float32)

    def cut(params: Any, inputs: Any, scalars: Any) -> dict[str, Any]:
        return {"y": np.where(np.isnan(inputs["x"]), np.nan, np.clip(inputs["x"], 0.0, 2.0))}

    wanted = Request(outputs={"y": "float32"}, precision=Precision(), file=__file__)
    found = answer(FormulaCall(cut, {}, {"x": x}, {}), wanted)["y"]
    assert np.array_equal(found.reference, [1.0, np.nan, 2.0], equal_nan=True)
    assert found.may_be_nan is None


def test_a_branch_on_values_is_refused() -> None:
    def branching(params: Any, inputs: Any, scalars: Any) -> Any:
        return {"y": inputs["x"] if inputs["x"] > 0 else -inputs["x"]}

    with pytest.raises(NoRuleError, match="a branch on a tracked value"):
        answered(branching, {"y": "float32"})


def test_names_of_a_precision_are_those_of_the_table() -> None:
    assert set(get_args(PrecisionName)) == set(ULPS)


def with_built_in(folder: Path, name: str) -> Path:
    """The shipped softmax spec with the built-in formula `name` for all variants."""
    text = (resources.specs_dir() / "softmax.yaml").read_text(encoding="utf-8")
    text = text.replace("../kernels", str(resources.kernels_dir()))
    text = re.sub(r"(?m)^ {4}replay: .*\n", "", text)
    text = re.sub(r"(?ms)^ {4}properties:.*?(?=^ {4}non_claims)", "", text)
    text = re.sub(r"oracle: .*", f"oracle: {{formula: {name}}}", text)
    path = folder / "own.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_built_in_formula_judges_by_its_name(tmp_path: Path) -> None:
    path = with_built_in(tmp_path, "softmax.fwd")
    right = itertools.cycle(("formula: softmax.fwd", "formula: softmax.grad"))  # as they stand
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub("formula: softmax.fwd", lambda _: next(right), text), encoding="utf-8")
    evidence = run(path, tmp_path, shapes={"rows": 3, "cols": 70})
    assert {case.verdict for case in evidence.cases} == {Verdict.VERIFIED}
    assert len({case.variant for case in evidence.cases}) == 4


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("softmax.fdw", "unknown oracle 'softmax.fdw'"),
        ("softmax.grad", "oracle softmax.grad reads g"),
        ("layernorm.fwd", "oracle layernorm.fwd reads eps"),
    ],
)
def test_a_built_in_formula_must_be_there_and_fit(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=said):
        specs.load(with_built_in(tmp_path, name))


def test_oracles_of_ones_own_may_use_the_engine(tmp_path: Path) -> None:
    text = """
from tokitai_cli.formula import bounds, known_input


def vector_add(params, inputs, scalars):
    told = bounds(known_input(inputs["a"]) + known_input(inputs["b"]))
    return {"c": {"reference": told.reference, "error": told.error}}
"""
    spec = write_example(tmp_path, oracle=text)
    (case,) = run(spec, tmp_path, shapes={"n": 100}, profile=["normal"]).cases
    assert case.verdict is Verdict.VERIFIED


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("op", ["rows", "pointwise", "products"])
def test_the_kernels_of_a_study(op: str, seed: int, tmp_path: Path) -> None:
    evidence = run(CORPUS / f"{op}.yaml", tmp_path, seed=[seed])
    variants = yaml.safe_load((CORPUS / f"{op}.yaml").read_text(encoding="utf-8"))["variants"]
    found: dict[str, set[Verdict]] = {}
    for case in evidence.cases:
        found.setdefault(case.variant, set()).add(case.verdict)
    for variant, verdicts in found.items():
        if variants[variant]["title"].startswith("Wrong"):
            assert Verdict.REFUTED in verdicts, variant
        else:
            assert verdicts <= {Verdict.VERIFIED, Verdict.VACUOUS}, variant
