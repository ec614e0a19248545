"""Words of a refutation that another form of the formula, or a narrow intermediate, explains."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.oracles.formula.test_oracle import spec_in
from tests.support import errors_of, exact_expectation, judge_array, make_case, make_result
from tokitai_cli.core.model.expectation import Further
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.judge import judge
from tokitai_cli.judge.judgement import Judgement
from tokitai_cli.oracles import references
from tokitai_cli.oracles.builtin import again, with_refined
from tokitai_cli.oracles.formula import Precision, stored
from tokitai_cli.oracles.formula.forms import FORMS
from tokitai_cli.oracles.user.answer_parts import expectation
from tokitai_cli.oracles.variants.answer import answer
from tokitai_cli.oracles.variants.request import FormulaCall, Request
from tokitai_cli.run.specs import load as load_op
from tokitai_cli.spec.inputs import draw
from tokitai_cli.spec.plan import Selection, plan

F = np.float32
RNG = np.random.default_rng(11)
X = RNG.standard_normal((12, 65)).astype(F)
HALF = RNG.standard_normal((12, 65)).astype(np.float16)
OTHER = RNG.standard_normal((12, 65)).astype(np.float16)
Outputs = Mapping[str, NDArray[Any]]


def judged(
    formula: Callable[..., Any],
    inputs: Mapping[str, NDArray[Any]],
    got: Outputs,
    asks: Callable[[Further], Any] | None = None,
    **precision: Any,
) -> Judgement:
    """The judgement of outputs by the bound of a formula."""
    dtypes = {name: array.dtype.name for name, array in got.items()}
    asked = FormulaCall(formula, {}, dict(inputs), {})
    wanted = Request(dtypes, precision=Precision(**precision), file=__file__)
    shapes = {name: (array.dtype.name, array.shape) for name, array in got.items()}
    case = make_case(outputs=shapes)
    parts = answer(asked, wanted)
    plans = {plan.name: plan for plan in case.buffers}
    found = {name: expectation(plans[name], parts[name]) for name in got}
    ask = asks or functools.partial(again, asked, wanted, None)
    return judge(case, with_refined(case, found, ask), {}, make_result(got))


def rms(params: Any, inputs: Any, scalars: Any) -> Any:
    keep = inputs["a"] + inputs["b"]
    return {"keep": keep, "y": keep / np.sqrt((keep * keep).mean(axis=-1, keepdims=True) + 1e-6)}


def rms_of(keep: NDArray[Any], share: float = 1.0) -> NDArray[Any]:
    wide = keep.astype(F)
    root = np.sqrt((wide * wide).mean(axis=-1, keepdims=True, dtype=F) + F(1e-6))
    return np.asarray(wide / root * F(share)).astype(np.float16)


def test_what_goes_on_from_a_narrow_output_is_told_by_its_name() -> None:
    keep = HALF + OTHER
    judgement = judged(rms, {"a": HALF, "b": OTHER}, {"keep": keep, "y": rms_of(keep)})
    assert judgement.verdict is Verdict.REFUTED
    assert "within 2 ulp of the exact value everywhere" in judgement.reason
    assert 'it fits if keep is taken as the kernel stored it: write `stored(keep, "float16")`' in (
        judgement.reason
    )


def test_a_wrong_kernel_does_not_fit_what_it_stored() -> None:
    keep = HALF + OTHER
    judgement = judged(rms, {"a": HALF, "b": OTHER}, {"keep": keep, "y": rms_of(keep, 1.002)})
    assert judgement.verdict is Verdict.REFUTED
    assert "as the kernel stored it" not in judgement.reason


def unary(formula: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda params, inputs, scalars: {"y": formula(inputs["x"])}


def _updated(x: NDArray[Any]) -> NDArray[Any]:
    mean = np.zeros(x.shape[0], F)
    for i in range(x.shape[1]):
        mean += (x[:, i].astype(F) - mean) / F(i + 1)
    return mean


def _expanded(x: Any) -> Any:
    return 3 * x * x - 2 * x * x * x


def _by_tanh(x: Any) -> Any:
    return F(0.5) * (1 + np.tanh(F(0.5) * x))


def complex_product(params: Any, inputs: Any, scalars: Any) -> Any:
    p, q, u, v = (inputs[name] for name in "pquv")
    return {"re": p * u - q * v, "im": p * v + q * u}


def test_a_form_that_cancels_is_told_with_its_place_and_a_wrong_one_is_not() -> None:
    p, q, u, v = (np.random.default_rng(3).standard_normal((4, 3000))).astype(F)
    inputs = {"p": p, "q": q, "u": u, "v": v}
    shared = u * (p + q)
    three = {"re": shared - q * (u + v), "im": shared + p * (v - u)}
    reason = judged(complex_product, inputs, three).reason
    assert (
        "a form in which terms cancel that the formula does not have: at re[2088] the value"
        in reason
    )
    assert "one rounding of numbers near 1.44: compute it as the formula does" in reason
    off = {"re": (p * u - q * v) * F(1.0001), "im": three["im"]}
    assert "cancel" not in judged(complex_product, inputs, off).reason


def test_sums_in_float32_where_the_formula_keeps_float64_are_told_as_more_roundings() -> None:
    x = np.random.default_rng(5).standard_normal((200, 333)).astype(F)

    def formula(x: Any) -> Any:
        return stored(np.sqrt((stored(x, "float64") ** 2).sum(axis=-1)))

    got = np.sqrt(np.add.accumulate(x * x, axis=-1, dtype=F)[:, -1])
    reason = judged(unary(formula), {"x": x}, {"y": got}).reason
    assert "some float32 roundings more than the formula has" in reason
    assert "cancel" not in reason


def test_a_chain_of_sums_in_another_order_does_not_cancel() -> None:
    def chain(x: Any) -> Any:
        return sum(x[:, i] for i in range(6))

    x = np.random.default_rng(5).standard_normal((3000, 6)).astype(F)
    got = sum(x[:, i] for i in reversed(range(6)))
    reason = judged(unary(chain), {"x": x}, {"y": np.asarray(got)}).reason
    assert "additions in another order" in reason
    assert "Python's sum()" in reason
    assert "cancel" not in reason


NEAR = (RNG.standard_normal((20, 65)) + 8).astype(F)


@pytest.mark.parametrize(
    ("formula", "kernel", "x"),
    [
        (
            lambda x: x.var(axis=-1),
            lambda x: (x * x).mean(axis=-1) - x.mean(axis=-1) * x.mean(axis=-1),
            NEAR,
        ),
        (lambda x: (x - 8) ** 2, lambda x: x * x - 16 * x + 64, NEAR),
        (lambda x: (x - 8) * (x + 8), lambda x: x * x - 64, NEAR),
        (np.expm1, lambda x: np.exp(x) - F(1), X / 100),
        (np.log1p, lambda x: np.log(x + F(1)), np.abs(X) / 100),
    ],
)
def test_forms_that_cancel_are_told(formula: Any, kernel: Any, x: NDArray[Any]) -> None:
    got = np.asarray(kernel(x)).astype(F)
    judgement = judged(unary(formula), {"x": x}, {"y": got})
    assert judgement.verdict is Verdict.REFUTED
    assert "in which terms cancel" in judgement.reason
    assert "write the formula as the kernel does" in judgement.reason


@pytest.mark.parametrize(
    ("form", "formula", "kernel", "x"),
    [
        ("products of sums expanded", lambda x: x**2 * (3 - 2 * x), _expanded, X),
        ("sums of products factored", lambda x: x * x - x, lambda x: x * (x - 1), X),
        ("sums of products factored", lambda x: x**2 - 4, lambda x: (x - 2) * (x + 2), X),
        ("(1 - t) a + t b", lambda x: 0.7 + 0.3 * x, lambda x: 1 + F(0.3) * (x - 1), X),
        ("tanh by exponentials", np.tanh, lambda x: 1 - 2 / (np.exp(2 * x) + 1), X / 8),
        ("sigmoids by tanh", lambda x: 1 / (1 + np.exp(-x)), _by_tanh, 3 * X - 4),
        ("sums that round", lambda x: x.mean(axis=-1), _updated, HALF),
    ],
)
def test_another_form_is_named(form: str, formula: Any, kernel: Any, x: NDArray[Any]) -> None:
    got = np.asarray(kernel(x)).astype(F)
    judgement = judged(unary(formula), {"x": x}, {"y": got})
    assert judgement.verdict is Verdict.REFUTED
    assert f"another form ({form}" in judgement.reason
    wrong = judged(unary(formula), {"x": x}, {"y": got * F(1.0001)})
    assert "another form" not in wrong.reason


@pytest.mark.parametrize("form", FORMS)
def test_a_form_only_ever_widens(form: str) -> None:
    def formula(params: Any, inputs: Any, scalars: Any) -> Any:
        x = inputs["x"]
        y = np.tanh(x) + (1 - x) * 0.5 + x * (x - 0.25) + (x**2 - 1)
        return {"y": y / (1 + np.exp(-y)) + x.mean(axis=-1, keepdims=True)}

    asked = FormulaCall(formula, {}, {"x": X}, {})
    sides = []
    for forms in ((), (form,)):
        precision = Precision(forms=forms)
        parts = answer(asked, Request({"y": "float32"}, precision=precision, file=__file__))["y"]
        sides.append(errors_of(parts))
    for own, wider in zip(*sides, strict=True):
        assert (wider >= own).all()


def test_within_two_ulp_of_float32_says_how_much_to_loosen() -> None:
    near = (X.astype(np.float64) * 0.3).astype(F)
    away = np.where(near > X.astype(np.float64) * 0.3, np.inf, -np.inf).astype(F)
    judgement = judged(unary(lambda y: y * 0.3), {"x": X}, {"y": np.nextafter(near, away)})
    assert judgement.verdict is Verdict.REFUTED
    assert "; within 2 ulp of the exact value everywhere; the formula's own form is tighter" in (
        judgement.reason
    )
    assert "`loosen(y, 2)`" in judgement.reason


def test_within_two_ulp_of_a_narrow_output_blames_no_form_of_float32() -> None:
    got = (X * F(0.3)).astype(np.float16)
    judgement = judged(unary(lambda y: y * 0.3), {"x": X}, {"y": np.nextafter(got, np.float16(9))})
    assert judgement.verdict is Verdict.REFUTED
    assert "an intermediate that the kernel keeps in float16" in judgement.reason
    assert "loosen" not in judgement.reason


def test_no_formula_is_asked_where_something_else_failed_or_much_is_wrong() -> None:
    def never(further: Further) -> Any:
        raise AssertionError(further)

    got = (X * F(0.3)).astype(F)
    got[0, 0] = np.nan
    judgement = judged(unary(lambda y: y * 0.3), {"x": X}, {"y": got}, never)
    assert "NaN" in judgement.reason
    far = judged(unary(lambda y: y * 0.3), {"x": X}, {"y": np.zeros_like(X)}, never)
    assert far.verdict is Verdict.REFUTED


def test_an_oracle_that_is_no_formula_has_no_such_words() -> None:
    case = make_case(shape=(1, 2), dtype="float32")
    judgement = judge_array(case, exact_expectation([[1.0, 2.0]]), np.array([[1.0, 2.0000002]], F))
    assert judgement.verdict is Verdict.REFUTED
    assert "ulp" not in judgement.reason


def test_a_formula_in_its_own_process_is_asked_again_too(tmp_path: Path) -> None:
    loaded = load_op(spec_in(tmp_path, "[{metric: bound}]"))
    case = plan(loaded, Selection()).cases[0]
    arrays = {name: drawn.array for name, drawn in draw(case).items()}
    arrays["x"] = np.round(arrays["x"] * 8) / F(8)  # multiples of 1/8, whose sums are exact
    want = references.expect(case, arrays)["y"]
    assert want.error is not None
    assert not want.error.any()
    assert want.again is not None
    answered = want.again(Further(forms=("sums that round at each addition",)))
    assert answered is not None
    reference, below, above = answered
    assert (reference == want.reference).all()
    assert (below > 0).all()
    assert (above > 0).all()
    stored = {"y": want.reference.astype(F) + F(1)}
    kept = want.again(Further(outputs=stored, kept=True))
    assert kept is not None
    assert (kept[0] == stored["y"]).all()
