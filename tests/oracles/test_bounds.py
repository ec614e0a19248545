"""Error bounds against float32 emulations of correct kernels, and the theorem behind the replay."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.core.test_numerics import rounded_fraction
from tests.drawing import PROFILES, gemm_case, with_dtype
from tests.support import make_result
from tokitai_cli import spec
from tokitai_cli.core.dtypes import DTYPES, FORMATS, DType, FloatFormat
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.expectation import Expectation
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.numerics import (
    MAY_BE_EITHER,
    MUST_BE_FINITE,
    MUST_BE_INFINITE,
    MUST_BE_NAN,
    overflow_class,
    round_to,
    rounded_bound,
)
from tokitai_cli.judge import judge
from tokitai_cli.oracles import references
from tokitai_cli.spec.inputs import draw

Single = NDArray[np.float32]
SHARPNESS = Path(__file__).parents[2] / "reports" / "generated" / "sharpness.md"
ORDERS = ("sequential", "random", "tree")
halves = st.integers(0, 2**16 - 1).map(lambda bits: np.uint16(bits).view(np.float16))
finite_halves = halves.filter(lambda value: bool(np.isfinite(value)))
singles = st.integers(0, 2**32 - 1).map(lambda bits: np.uint32(bits).view(np.float32))
finite_singles = singles.filter(lambda value: bool(np.abs(value) < 2.0**100))


def single(value: Fraction) -> Fraction:
    return rounded_fraction(value, 24, -126)


@settings(max_examples=500, deadline=None)
@given(finite_halves, finite_halves)
def test_product_of_two_float16_is_exact_in_float32(a: np.float16, b: np.float16) -> None:
    exact = Fraction(float(a)) * Fraction(float(b))
    assert single(exact) == exact
    assert Fraction(float(np.float32(a) * np.float32(b))) == exact


@settings(max_examples=500, deadline=None)
@given(finite_halves, finite_halves, finite_singles)
def test_fused_and_unfused_steps_agree_on_float16(
    a: np.float16, b: np.float16, total: np.float32
) -> None:
    fused = single(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(total)))
    unfused = np.float32(a) * np.float32(b) + total
    assert Fraction(float(unfused)) == fused


def test_fused_and_unfused_steps_differ_on_float32() -> None:
    # Case 15 of cases from the field: without it the theorem above could be true of any input.
    a, c = np.float32(1 + 2.0**-12), np.float32(-(1 + 2.0**-11))
    fused = single(Fraction(float(a)) ** 2 + Fraction(float(c)))
    assert a * a + c == 0
    assert fused == Fraction(1, 2**24)


def operands(case: Case) -> tuple[dict[str, NDArray[Any]], Single, Single]:
    arrays = {name: drawn.array for name, drawn in draw(case).items()}
    if case.variant_name == "grad-a":
        x, y = arrays["grad_c"], arrays["b"].T
    else:
        x, y = arrays["a"].T, arrays["grad_c"]
    return arrays, x.astype(np.float32), y.astype(np.float32)


def accumulate(x: Single, y: Single, order: str, seed: int) -> Single:
    """Float32 sum of the products, as a correct kernel of that order has it."""
    terms = np.arange(x.shape[1])
    if order == "random":
        terms = np.random.Generator(np.random.PCG64(seed)).permutation(terms)
    with np.errstate(all="ignore"):
        if order == "tree":
            parts = [np.multiply.outer(x[:, t], y[t]) for t in terms]
            while len(parts) > 1:
                odd = parts[-1:] if len(parts) % 2 else []
                pairs = zip(parts[0::2], parts[1::2], strict=False)
                parts = [a + b for a, b in pairs] + odd
            return np.asarray(parts[0])
        total = np.zeros((x.shape[0], y.shape[1]), dtype=np.float32)
        for t in terms:
            total = total + np.multiply.outer(x[:, t], y[t])
        return total


def violations(got: Single, want: Expectation, dtype: str) -> int:
    """Elements that the bound, or the classes with one rounding to `dtype`, would refuse."""
    assert want.error is not None
    form = FORMATS[dtype]
    classes = overflow_class(want.reference, want.error, form)
    rounded = round_to(got.astype(np.float64), dtype).astype(np.float64)
    with np.errstate(all="ignore"):
        before = np.abs(got - want.reference) > want.error
        limit = rounded_bound(want.error, want.reference, form)
        within = np.abs(rounded - want.reference) <= limit
        signed = np.isinf(rounded) & (np.sign(rounded) == np.sign(want.reference))
    wrong = before & np.isfinite(want.reference) & np.isfinite(want.error) & np.isfinite(got)
    wrong |= (classes == MUST_BE_FINITE) & ~within
    wrong |= (classes == MUST_BE_INFINITE) & ~signed
    wrong |= (classes == MAY_BE_EITHER) & ~(within | signed)
    wrong |= (classes == MUST_BE_NAN) & ~np.isnan(rounded)
    return int(wrong.sum())


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("profile", PROFILES)
def test_no_correct_order_violates_the_bound(profile: str, order: str) -> None:
    for seed in range(6):
        for variant, terms in (("grad-a", 7), ("grad-b", 64), ("grad-a", 201)):
            sizes = {"m": 16, "n": 16, "k": 24} | {"n" if variant == "grad-a" else "m": terms}
            case = gemm_case(variant, profile, seed=seed, **sizes)
            arrays, x, y = operands(case)
            (want,) = references.expect(case, arrays).values()
            assert violations(accumulate(x, y, order, seed), want, "float16") == 0


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("profile", PROFILES)
def test_no_correct_order_violates_the_bound_in_many_draws(profile: str, order: str) -> None:
    for seed in range(100, 200):
        case = gemm_case("grad-a", profile, seed=seed, m=8, n=1 + 7 * (seed % 19), k=40)
        arrays, x, y = operands(case)
        (want,) = references.expect(case, arrays).values()
        assert violations(accumulate(x, y, order, seed), want, "float16") == 0


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("profile", PROFILES)
def test_other_floats_do_not_violate_theirs(profile: str, dtype: str) -> None:
    for seed, order in enumerate(ORDERS):
        case = with_dtype(gemm_case("grad-a", profile, seed=seed, n=50), dtype)
        arrays, x, y = operands(case)
        (want,) = references.expect(case, arrays).values()
        assert violations(accumulate(x, y, order, seed), want, dtype) == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_results_of_large_overflow_and_a_kernel_that_saturates_is_refuted(dtype: str) -> None:
    case = with_dtype(gemm_case("grad-a", "large", m=24, n=24, k=24), dtype)
    arrays, x, y = operands(case)
    expected = references.expect(case, arrays)
    right = round_to(accumulate(x, y, "sequential", 0).astype(np.float64), dtype)
    infinite = np.isinf(right.astype(np.float64))
    assert 0.1 < infinite.mean() < 0.9
    judged = judge(case, expected, {}, make_result({"grad_a": right}))
    assert judged.verdict is not Verdict.REFUTED, judged.reason
    largest = FORMATS[dtype].largest
    saturated = np.clip(right.astype(np.float64), -largest, largest).astype(right.dtype)
    judged = judge(case, expected, {}, make_result({"grad_a": saturated}))
    assert judged.verdict is Verdict.REFUTED


@pytest.mark.parametrize("profile", ["normal", "exact-int", "large", "subnormal"])
def test_another_format_is_an_entry_of_the_table(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = FloatFormat("float8_e4m3fn", 4, -6, 8, unused=1, overflows="nan")
    monkeypatch.setitem(DTYPES, form.name, DType(1, "float", form, extension=True))
    monkeypatch.setitem(FORMATS, form.name, form)
    case = with_dtype(gemm_case("grad-a", profile, m=24, n=24, k=24), form.name)
    arrays, x, y = operands(case)
    expected = references.expect(case, arrays)
    right = round_to(accumulate(x, y, "tree", 0).astype(np.float64), form.name)
    judged = judge(case, expected, {}, make_result({"grad_a": right}))
    assert judged.verdict is not Verdict.REFUTED, judged.reason
    overflowed = np.isnan(right.astype(np.float64))
    assert overflowed.any() == (profile == "large")
    wrong = np.where(overflowed, form.largest, 0.0).astype(right.dtype)
    judged = judge(case, expected, {}, make_result({"grad_a": wrong}))
    assert judged.verdict is Verdict.REFUTED


@pytest.mark.parametrize(("dtype", "terms"), [("bfloat16", 128), ("float32", 9000)])
def test_exact_int_counts_as_far_as_the_format_does(dtype: str, terms: int) -> None:
    case = with_dtype(gemm_case("grad-a", "exact-int", m=8, n=terms, k=8), dtype)
    arrays, x, _ = operands(case)
    (want,) = references.expect(case, arrays).values()
    assert not np.any(want.error)
    assert set(np.abs(x).ravel()) == {1.0, 2.0}
    assert np.abs(want.reference).max() <= FORMATS[dtype].countable
    longer = with_dtype(gemm_case("grad-a", "exact-int", m=8, n=2 * terms, k=8), dtype)
    assert set(np.abs(operands(longer)[1]).ravel()) == ({1.0} if terms == 128 else {1.0, 2.0})


def test_a_tree_keeps_the_bound_that_it_claims() -> None:
    tree = {"tree": "8"}
    for seed in range(10):
        case = gemm_case("grad-a", "uniform", seed=seed, n=256, reduction=tree)
        arrays, x, y = operands(case)
        (want,) = references.expect(case, arrays).values()
        assert violations(accumulate(x, y, "tree", seed), want, "float16") == 0


def test_a_sequential_sum_breaks_the_bound_of_a_tree() -> None:
    case = gemm_case("grad-a", "uniform", n=8192, m=32, reduction={"tree": "13"})
    arrays, x, y = operands(case)
    (want,) = references.expect(case, arrays).values()
    assert want.error is not None
    got = accumulate(x, y, "sequential", 0)
    assert np.any(np.abs(got - want.reference) > want.error)


@pytest.mark.parametrize(
    ("terms", "least"), [(64, 1 / 20), (128, 1 / 20), (256, 1 / 20), (1024, 1 / 50)]
)
def test_the_bound_is_sharp_in_front_of_the_last_rounding(terms: int, least: float) -> None:
    case = gemm_case("grad-a", "uniform", m=64, n=terms, k=64)
    arrays, x, y = operands(case)
    (want,) = references.expect(case, arrays).values()
    got = accumulate(x, y, "sequential", 0).astype(np.float64)
    assert np.max(np.abs(got - want.reference) / want.error) >= least


def test_the_probable_form_is_sharper_and_holds_on_random_data() -> None:
    for profile in ("normal", "uniform", "cancelling"):
        checks = [{"metric": "bound"}, {"metric": "bound-prob"}]
        case = gemm_case("grad-a", profile, m=32, n=4096, k=32, checks=checks)
        arrays, x, y = operands(case)
        (want,) = references.expect(case, arrays).values()
        assert want.error is not None
        assert want.error_probable is not None
        assert np.all(want.error_probable < 0.2 * want.error)
        error = np.abs(accumulate(x, y, "sequential", 0) - want.reference)
        assert np.all(error <= want.error_probable)


def test_the_edge_of_overflow_is_judged_by_the_bound() -> None:
    # One result is 65504 + 16 - 2^-24: rounded once it stays finite, one float32 ulp more and it is
    # infinite. A kernel is right either way, unless the sum is known to be exact.
    case = gemm_case("grad-a", "normal", m=1, n=4, k=1)
    x = np.array([[252.0, -(2.0**-10), 0.0, 0.0]], dtype=np.float16)
    y = np.array([[260.0, 2.0**-14, 1.0, 0.0]], dtype=np.float16)
    (want,) = references.expect(case, {"grad_c": x, "b": y}).values()
    assert want.reference[0, 0] == 65504 + 16 - 2.0**-24
    form = FORMATS["float16"]
    assert overflow_class(want.reference, want.error, form).tolist() == [[MAY_BE_EITHER]]
    exact = np.zeros((1, 1))
    assert overflow_class(want.reference, exact, form).tolist() == [[MUST_BE_FINITE]]
    assert round_to(want.reference, "float16")[0, 0] == 65504
    assert rounded_bound(exact, want.reference, form)[0, 0] == 16 - 2.0**-24
    # In float32 the small term is lost and the sum is 65520, which becomes infinite.
    assert np.isinf(round_to(accumulate(x.astype(np.float32), y.T.astype(np.float32), "sequential", 0)
                             .astype(np.float64), "float16")).all()  # fmt: skip


@pytest.mark.parametrize("mutant", ["last-term-dropped", "heaviest-term-dropped"])
def test_dropped_terms_break_the_bound(mutant: str) -> None:
    case = gemm_case("grad-a", "normal", m=32, n=64, k=32)
    arrays, _, _ = operands(case)
    (want,) = references.expect(case, arrays).values()
    assert want.error is not None
    limit = rounded_bound(want.error, want.reference, FORMATS["float16"])
    wrong = want.dropped[mutant]()
    assert np.any(np.abs(wrong - want.reference) > 4 * limit)


def test_a_float16_accumulator_breaks_the_ramp_and_passes_plain_integers() -> None:
    for profile, passes in (("exact-int-ramp", False), ("exact-int", True)):
        case = gemm_case("grad-a", profile, m=8, n=4096, k=8)
        arrays, x, y = operands(case)
        (want,) = references.expect(case, arrays).values()
        total = np.zeros((8, 8), dtype=np.float16)
        for t in range(4096):
            total = (total + np.multiply.outer(x[:, t], y[t])).astype(np.float16)
        assert (violations(total.astype(np.float32), want, "float16") == 0) == passes


def test_the_page_of_sharpness_has_every_output_that_a_bound_judges() -> None:
    """`TOKITAI_UPDATE_GOLDEN=1 python -m bench sharpness` writes it; digits depend on the machine."""
    page = SHARPNESS.read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")][1:]
    listed = {(row[0].removeprefix("| "), *row[1:3]) for row in rows if row[3] == "bound"}
    wanted = {
        (op, name, output)
        for op, path in spec.builtin()
        for name, variant in spec.load(path).spec.variants.items()
        for output in (*variant.outputs, *variant.inout)
        if any(check.metric == "bound" and check.output in ("", output) for check in variant.checks)
    }
    assert listed == wanted
    assert all(0 <= float(row[4]) <= 1 for row in rows)
