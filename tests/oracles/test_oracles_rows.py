"""References, bounds and masks of the ops on rows, against exact arithmetic and against IEEE."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import msgspec
import numpy as np
import pytest

from tests.row_cases import Array, Arrays, arrays_of, changed, error_of, expected, redrawn, row_case
from tests.support import make_result
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.errors import NotRunError, SpecError
from tokitai_cli.core.model.case import Case, ScalarValue
from tokitai_cli.core.model.spec import Draw, Reduction
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.numerics import MAY_BE_ANYTHING, MUST_BE_NAN, overflow_class, round_to
from tokitai_cli.judge import judge
from tokitai_cli.oracles import references
from tokitai_cli.oracles.variants import row_layout

U = mpmath.mpf(2) ** -24
FLUSHED = mpmath.mpf(2) ** -126


def gamma(k: int) -> Any:
    return k * U / (1 - k * U)


def compound(h: int, k: int) -> Any:
    return gamma(h) + gamma(k) + gamma(h) * gamma(k)


def numbers(array: Array) -> list[Any]:
    return [mpmath.mpf(float(value)) for value in array.reshape(-1)]


def close(got: float, want: Any, relative: float = 1e-9) -> bool:
    return bool(abs(mpmath.mpf(float(got)) - want) <= relative * abs(want) + mpmath.mpf(10) ** -300)


@pytest.mark.parametrize("profile", ["normal", "hot", "out-of-range", "uniform"])
def test_table_gradient_against_exact_arithmetic(profile: str) -> None:
    case = row_case("embedding", "bwd", profile, queries=40, dim=3, vocab=41)
    arrays = arrays_of(case)
    arrays["grad_output"] = (arrays["grad_output"] * np.float16(1.25) + np.float16(8)).astype(
        np.float16
    )
    got = expected(case, arrays, "grad_weight")
    with mpmath.workprec(200):
        for row in range(41):
            hits = np.flatnonzero(arrays["indices"] == row)
            for column in range(3):
                terms = numbers(arrays["grad_output"][hits, column])
                size = mpmath.fsum(map(abs, terms))
                bound = gamma(max(len(terms) - 1, 0)) * size
                assert mpmath.fsum(terms) == float(got.reference[row, column])
                error = float(error_of(got)[row, column])
                assert error == 0.0 or bound <= error <= bound * (1 + mpmath.mpf(2) ** -26)
                if size >= 2**15:
                    assert error > 0
    assert (
        got.terms
        == np.bincount(arrays["indices"][(arrays["indices"] >= 0) & (arrays["indices"] < 41)]).max()
    )


def test_lookup_keeps_rows_that_no_index_names() -> None:
    case = row_case("embedding", "fwd", "out-of-range", queries=64, dim=5, vocab=9)
    arrays = arrays_of(case)
    got = expected(case, arrays, "output")
    outside = (arrays["indices"] < 0) | (arrays["indices"] >= 9)
    assert 0 < outside.sum() < 64
    assert np.array_equal(got.reference[outside], arrays["output"][outside].astype(np.float64))
    inside = arrays["indices"][~outside]
    assert np.array_equal(got.reference[~outside], arrays["weight"][inside].astype(np.float64))
    assert not error_of(got).any()
    (clamped,) = (wrong for words, wrong in got.changes.items() if "the first side alone" in words)
    assert np.array_equal(clamped[~outside], got.reference[~outside])
    assert (clamped[outside] != got.reference[outside]).any()
    assert np.array_equal(
        references.replay(case, arrays)["output"].values, got.reference.astype(np.float16)
    )


def test_lookup_without_wrong_indices_has_no_clamped_mutant() -> None:
    case = row_case("embedding", "fwd", "special", queries=64, dim=64, vocab=9)
    got = expected(case, arrays_of(case), "output")
    assert not got.dropped
    assert np.isnan(got.reference).any()


def test_sums_of_hot_rows_follow_ieee_where_terms_are_not_finite() -> None:
    case = row_case("embedding", "bwd", "hot", queries=8, dim=4, vocab=2)
    arrays = arrays_of(case)
    arrays["indices"][:] = 0
    arrays["grad_output"][0] = [np.nan, np.inf, np.inf, -np.inf]
    arrays["grad_output"][7] = [1.0, np.inf, -np.inf, 65504.0]
    got = expected(case, arrays, "grad_weight")
    assert np.array_equal(got.reference[0], [np.nan, np.inf, np.nan, -np.inf], equal_nan=True)
    assert np.array_equal(got.reference[1], np.zeros(4))
    assert not error_of(got).any()


def test_probable_bound_of_table_gradients_is_smaller_for_long_sums() -> None:
    case = row_case("embedding", "bwd", "hot", queries=4000, dim=2, vocab=4000)
    arrays = arrays_of(case)
    got = expected(case, arrays, "grad_weight")
    assert got.error_probable is not None
    hot = int(np.bincount(arrays["indices"]).argmax())
    assert (got.error_probable <= error_of(got)).all()
    assert (got.error_probable[hot] < 0.4 * error_of(got)[hot]).all()


def test_masked_logits_give_exactly_zero_and_undefined_rows_nan() -> None:
    case = row_case("softmax", "fwd", "normal", rows=6, cols=5)
    inf, nan = np.inf, np.nan
    x = np.array([[0, 1, -inf, 2, 3], [-inf] * 5, [0, inf, 0, 0, 0], [nan, 1, 2, 3, 4],
                  [inf, -inf, 0, 0, 0], [-inf, -inf, 7, -inf, -inf]], dtype=np.float16)  # fmt: skip
    got = expected(case, {"x": x}, "y")
    assert got.reference[0, 2] == 0
    assert error_of(got)[0, 2] == 0
    assert np.isnan(got.reference[1:5]).all()
    assert got.reference[5].tolist() == [0, 0, 1, 0, 0]


def float32_layernorm(arrays: Arrays) -> tuple[Array, Array, Array]:
    x, scale, shift = (arrays[name].astype(np.float32) for name in ("x", "gamma", "beta"))
    with np.errstate(all="ignore"):
        mean = x.mean(axis=1, keepdims=True)
        rstd = 1 / np.sqrt(np.square(x - mean).mean(axis=1, keepdims=True) + np.float32(1e-5))
        return (x - mean) * rstd * scale + shift, mean[:, 0], rstd[:, 0]


def test_rows_that_are_not_finite_have_no_normalisation() -> None:
    case = row_case("layernorm", "fwd", "normal", rows=5, cols=6)
    arrays = arrays_of(case)
    arrays["x"][0, 2], arrays["x"][1, 0], arrays["x"][2, 5] = np.nan, np.inf, -np.inf
    arrays["x"][3, :2] = np.inf, -np.inf
    got = references.expect(case, arrays)
    want = dict(zip(("y", "mean", "rstd"), float32_layernorm(arrays), strict=True))
    for name, expectation in got.items():
        special = ~np.isfinite(want[name])
        assert special.any()
        assert np.array_equal(~np.isfinite(expectation.reference), special)
        values = expectation.reference[special]
        assert np.array_equal(values, want[name][special], equal_nan=True)
        assert not error_of(expectation)[special].any()
    assert got["mean"].reference[:4].tolist()[1:3] == [math.inf, -math.inf]


def test_infinite_gamma_where_the_sign_is_not_certain_is_left_open() -> None:
    case = row_case("layernorm", "fwd", "normal", rows=2, cols=3)
    arrays = arrays_of(case)
    arrays["x"][...] = [[1, 1, 1], [1, 2, 4]]
    arrays["gamma"][...] = [np.inf, 1, np.nan]
    got = expected(case, arrays, "y")
    classes = overflow_class(got.reference, error_of(got), FORMATS["float16"])
    assert classes[0, 0] == MAY_BE_ANYTHING
    assert got.reference[1, 0] == -np.inf
    assert (classes[:, 2] == MUST_BE_NAN).all()
    assert np.isfinite(got.reference[:, 1]).all()


def test_without_eps_constant_rows_are_left_open_and_zeros_are_nan() -> None:
    case = row_case("layernorm", "fwd", "normal", rows=3, cols=3)
    zero = ScalarValue("eps", "float32", np.float32(0).tobytes(), "0")
    case = msgspec.structs.replace(case, scalars=(zero,))
    arrays = arrays_of(case)
    arrays["x"][:2] = [[0, 0, 0], [3, 3, 3]]
    got = references.expect(case, arrays)
    assert np.isnan(got["y"].reference[0]).all()
    assert got["rstd"].reference[0] == np.inf
    assert (error_of(got["y"])[1] > 1e38).all()
    assert error_of(got["rstd"])[1] > 1e38
    assert np.isfinite(error_of(got["y"])[2]).all()


def with_types(case: Case, dtype: str) -> Case:
    variant = case.variant
    inputs = {n: changed_dtype(b, dtype) for n, b in variant.inputs.items()}
    outputs = {n: changed_dtype(b, dtype) for n, b in variant.outputs.items()}
    case = changed(case, inputs=inputs, outputs=outputs)
    buffers = tuple(changed_dtype(plan, dtype) for plan in case.buffers)
    return type(case)(
        **{f: getattr(case, f) for f in case.__struct_fields__} | {"buffers": buffers}
    )


def changed_dtype(one: Any, dtype: str) -> Any:
    return type(one)(**{f: getattr(one, f) for f in one.__struct_fields__} | {"dtype": dtype})


def test_rows_beyond_the_range_of_float32_may_be_what_overflow_makes_of_them() -> None:
    case = with_types(row_case("layernorm", "fwd", "normal", rows=3, cols=4), "float32")
    arrays = {name: array.astype(np.float32) for name, array in arrays_of(case).items()}
    arrays["x"][0] *= np.float32(1e20)  # squares overflow, the sum does not
    arrays["x"][1] = 3e38
    got = references.expect(case, arrays)
    want = dict(zip(("y", "mean", "rstd"), float32_layernorm(arrays), strict=True))
    assert np.isnan(want["y"][1]).all()
    for name, one in got.items():
        with np.errstate(all="ignore"):
            off = np.abs(want[name] - one.reference)
            beyond = np.abs(one.reference) + error_of(one) >= FORMATS["float32"].overflow
            fine = (off <= error_of(one)) | (np.isinf(want[name]) & beyond)
        if one.may_be_nan is not None:
            fine |= np.isnan(want[name]) & (one.may_be_nan | np.isinf(error_of(one)))
        assert fine.all(), name
    assert np.all(error_of(got["y"])[2] < 1e-3)


def test_sums_of_small_integers_are_exact() -> None:
    for op, variant, outputs in (("embedding", "bwd", ("grad_weight",)),
                                 ("layernorm", "bwd", ("grad_gamma", "grad_beta"))):  # fmt: skip
        for profile in ("exact-int", "exact-int-ramp"):
            case = row_case(op, variant, profile)
            got = references.expect(case, arrays_of(case))
            for name in outputs:
                assert not error_of(got[name]).any()
                assert got[name].reference.any()


def test_exact_int_that_is_not_exact_is_not_run() -> None:
    case = redrawn(
        row_case("layernorm", "bwd", "exact-int", rows=3000, cols=4),
        mean=Draw(kind="constant", value=64),
        x=Draw(kind="constant", value=1),
    )
    with pytest.raises(NotRunError, match="a result of grad_gamma reaches"):
        references.expect(case, arrays_of(case))
    hot = row_case("embedding", "bwd", "exact-int", queries=3000, dim=2, vocab=1)
    arrays = arrays_of(hot)
    arrays["grad_output"][:] = 7000
    arrays["grad_output"][0] = 1
    with pytest.raises(NotRunError, match="counts exactly only below"):
        references.expect(hot, arrays)


@pytest.mark.parametrize(
    ("op", "variant", "output"),
    [("softmax", "fwd", "y"), ("softmax", "grad", "grad_x"), ("layernorm", "fwd", "y"),
     ("layernorm", "fwd", "mean"), ("layernorm", "fwd", "rstd"), ("layernorm", "bwd", "grad_x"),
     ("layernorm", "bwd", "grad_gamma"), ("layernorm", "bwd", "grad_beta")],
)  # fmt: skip
def test_replays_agree_with_the_reference(op: str, variant: str, output: str) -> None:
    case = row_case(op, variant, "normal", rows=9, cols=700)
    arrays = arrays_of(case)
    replay = references.replay(case, arrays)[output]
    got = expected(case, arrays, output)
    dtype = {plan.name: plan.dtype for plan in case.buffers}[output]
    assert replay.values.dtype == np.dtype(dtype)
    want = round_to(got.reference, dtype)
    ulps = np.abs(replay.values.astype(np.float64) - want.astype(np.float64)) / np.spacing(
        np.abs(want)
    ).astype(np.float64)
    assert np.median(ulps) <= (0 if dtype == "float16" else 4)


def dropped(case: Case, arrays: Arrays, output: str, kind: str) -> Array:
    wrong: Array = expected(case, arrays, output).dropped[f"{kind}-term-dropped"]()
    assert wrong.shape == expected(case, arrays, output).reference.shape
    return wrong


def test_dropped_terms_of_softmax() -> None:
    case = row_case("softmax", "fwd", "normal", rows=3, cols=6)
    x = arrays_of(case)["x"].astype(np.float64)
    terms, arrays = np.exp(x), arrays_of(case)
    last = terms / terms[:, :-1].sum(axis=1, keepdims=True)
    assert np.allclose(dropped(case, arrays, "y", "last"), last)
    heaviest = terms / (terms.sum(axis=1) - terms.max(axis=1))[:, None]
    assert np.allclose(dropped(case, arrays, "y", "heaviest"), heaviest)
    case = row_case("softmax", "grad", "normal", rows=3, cols=6)
    arrays = arrays_of(case)
    g, s = (arrays[name].astype(np.float64) for name in ("g", "s"))
    last = s * (g - (g * s)[:, :-1].sum(axis=1, keepdims=True))
    assert np.allclose(dropped(case, arrays, "grad_x", "last"), last)


def test_dropped_terms_of_layernorm() -> None:
    case = row_case("layernorm", "fwd", "normal", rows=3, cols=6)
    arrays = arrays_of(case)
    x = arrays["x"].astype(np.float64)
    whole, short = x.mean(axis=1), x[:, :-1].sum(axis=1) / 6
    assert np.allclose(dropped(case, arrays, "mean", "last"), short)

    def outputs(mean: Array, squares: Array) -> tuple[Array, Array]:
        rstd = 1 / np.sqrt(squares.sum(axis=1) / 6 + 1e-5)
        return rstd, (x - mean[:, None]) * rstd[:, None] * arrays["gamma"] + arrays["beta"]

    # Of the sum where it shows most: that of the mean, or that of the variance.
    both = (
        outputs(short, np.square(x - short[:, None])),
        outputs(whole, np.square(x - whole[:, None])[:, :-1]),
    )
    for place, output in enumerate(("rstd", "y")):
        got = dropped(case, arrays, output, "last")
        assert any(np.allclose(got, one[place]) for one in both)


def test_dropped_terms_of_gradients() -> None:
    case = row_case("layernorm", "bwd", "normal", rows=5, cols=6)
    arrays = arrays_of(case)
    wide = {name: array.astype(np.float64) for name, array in arrays.items()}
    xh = (wide["x"] - wide["mean"][:, None]) * wide["rstd"][:, None]
    assert np.allclose(dropped(case, arrays, "grad_beta", "last"), wide["grad_y"][:-1].sum(axis=0))
    terms = xh * wide["grad_y"]
    want = terms.sum(axis=0) - terms[np.abs(terms).argmax(axis=0), np.arange(6)]
    assert np.allclose(dropped(case, arrays, "grad_gamma", "heaviest"), want)
    d = wide["grad_y"] * wide["gamma"]
    got = dropped(case, arrays, "grad_x", "last")
    found = []
    for most, least in ((6, 5), (5, 6)):
        first, second = d[:, :most].sum(axis=1), (d * xh)[:, :least].sum(axis=1)
        want = wide["rstd"][:, None] / 6 * (6 * d - first[:, None] - xh * second[:, None])
        found.append(np.allclose(got, want))
    assert any(found)
    case = row_case("embedding", "bwd", "hot", queries=40, dim=3, vocab=5)
    arrays = arrays_of(case)
    last, heaviest_row = (
        dropped(case, arrays, "grad_weight", kind) for kind in ("last", "heaviest")
    )
    grad = arrays["grad_output"].astype(np.float64)
    for row in range(5):
        hits = np.flatnonzero(arrays["indices"] == row)
        assert np.allclose(last[row], grad[hits[:-1]].sum(axis=0))
        heavy = hits[np.square(grad[hits]).sum(axis=1).argmax()]
        assert np.allclose(heaviest_row[row], grad[hits].sum(axis=0) - grad[heavy])


def test_one_term_has_none_to_drop() -> None:
    for op, variant, shape in (("softmax", "fwd", {"cols": 1}), ("layernorm", "fwd", {"cols": 1})):
        case = row_case(op, variant, "normal", **shape)
        for one in references.expect(case, arrays_of(case)).values():
            assert not {"last-term-dropped", "heaviest-term-dropped"} & set(one.dropped)
    case = row_case("embedding", "bwd", "unique")
    assert expected(case, arrays_of(case), "grad_weight").terms == 1


def judged(case: Case, arrays: Arrays, mean_off: float, y_off: float) -> Any:
    """Judge a kernel whose stored mean and y are off by so much."""
    expectations = references.expect(case, arrays)
    values = {name: round_to(one.reference, "float32") for name, one in expectations.items()}
    values["mean"] = (values["mean"] + np.float32(mean_off)).astype(np.float32)
    values["y"] = round_to(expectations["y"].reference + y_off, "float16")
    replays = references.replay(case, arrays)
    return judge(case, expectations, replays, make_result(values))


def test_y_is_judged_from_the_stored_mean() -> None:
    case = row_case("layernorm", "fwd", "large-mean", rows=2, cols=3)
    arrays = arrays_of(case)
    arrays["x"][...] = [[1000, 1000, 1000], [900, 900, 900]]
    arrays["gamma"][...] = 1
    error = error_of(expected(case, arrays, "y"))
    assert (error[0] > 0.03).all()  # a mean that is off by an ulp or two, times 316
    assert judged(case, arrays, 0.0, 0.0).verdict is Verdict.VERIFIED
    wrong = judged(case, arrays, 0.0, -0.015)
    assert wrong.verdict is Verdict.REFUTED
    assert "(bound-chained)" in wrong.reason
    checks = {check.metric: check.passed for check in wrong.outputs[0].checks}
    assert checks["bound"]
    assert not checks["bound-chained"]
    # The same y is right beside a mean that explains it, and that mean is within its own bound.
    assert judged(case, arrays, 2.0**-14, -0.015).verdict is Verdict.VERIFIED
    assert judged(case, arrays, 2.0, 0.0).verdict is Verdict.REFUTED


def test_chained_errors_are_never_larger() -> None:
    case = row_case("layernorm", "fwd", "normal", rows=6, cols=50)
    arrays = arrays_of(case)
    arrays["x"][0, 0] = np.nan
    got = references.expect(case, arrays)
    assert got["y"].refine is not None
    for off in (0.0, 1e-7, 1.0, np.nan, np.inf):
        with np.errstate(all="ignore"):
            means = (got["mean"].reference + off).astype(np.float32)
        refined = got["y"].refine({"mean": means})
        assert (refined <= error_of(got["y"])).all()
        assert (refined[1:] > 0).all()
        assert not refined[0].any()


def test_rstd_is_judged_on_the_side_on_which_it_lies() -> None:
    case = row_case("layernorm", "fwd", "constant-rows", rows=1, cols=63)
    arrays = arrays_of(case)
    arrays["x"][...] = 1000
    got = expected(case, arrays, "rstd")
    assert got.error_below is not None
    assert got.error_above is not None
    assert got.error_below[0] > 100 * got.error_above[0]
    expectations, replays = references.expect(case, arrays), references.replay(case, arrays)
    for factor, verdict in ((1 - 3e-4, Verdict.VERIFIED), (1 + 3e-4, Verdict.REFUTED)):
        values = {n: round_to(one.reference, "float32") for n, one in expectations.items()}
        values["rstd"] = (values["rstd"] * np.float32(factor)).astype(np.float32)
        values["y"] = values["y"].astype(np.float16)
        assert judge(case, expectations, replays, make_result(values)).verdict is verdict


@pytest.mark.parametrize(
    ("op", "output", "profile"),
    [("embedding", "grad_weight", "normal"), ("layernorm", "grad_beta", "subnormal")],
)
def test_a_store_that_rounds_halves_away_is_refuted(op: str, output: str, profile: str) -> None:
    case = row_case(op, "bwd", profile)
    arrays = arrays_of(case)
    expectations, replays = references.expect(case, arrays), references.replay(case, arrays)
    right = {n: round_to(one.reference, "float16") for n, one in expectations.items()}
    assert judge(case, expectations, replays, make_result(right)).verdict is Verdict.VERIFIED
    exact = np.abs(expectations[output].reference)
    # A hair more magnitude sends halves, and nothing else that is exact in float32, away from zero.
    more = np.copysign(exact * (1 + 2.0**-40), expectations[output].reference)
    away = right | {output: round_to(more, "float16")}
    judgement = judge(case, expectations, replays, make_result(away))
    assert judgement.verdict is Verdict.REFUTED
    assert "exceeds the bound 0 (bound)" in judgement.reason


def test_flat_limits_that_pass_zeros_are_said_to() -> None:
    case = row_case("softmax", "fwd", "normal", rows=2, cols=8000)
    arrays = arrays_of(case)
    expectations, replays = references.expect(case, arrays), references.replay(case, arrays)
    result = make_result({"y": round_to(expectations["y"].reference, "float16")})
    (output,) = judge(case, expectations, replays, result).outputs
    notes = {check.metric: check.note for check in output.checks}
    assert "would pass an output of zeros" in notes["abs"]
    assert "zeros" not in notes["bound"]


@pytest.mark.parametrize(
    ("op", "variant", "change", "words"),
    [
        ("softmax", "fwd", {"given_oracle": "softmax.grad"}, "reads g"),
        ("layernorm", "fwd", {"given_oracle": "layernorm.bwd"}, "reads grad_y"),
        ("softmax", "fwd", {"reduction": Reduction(tree=3)}, "at least 10 are needed"),
        ("layernorm", "bwd", {"reduction": Reduction(tree=99, outputs={"grad_beta": 1})},
         "variants.bwd.reduction.outputs.grad_beta: no tree adds 16 terms"),
    ],
)  # fmt: skip
def test_specs_that_do_not_fit_are_refused(
    op: str, variant: str, change: dict[str, Any], words: str
) -> None:
    case = changed(row_case(op, variant, "normal"), **change)
    with pytest.raises(SpecError, match=words.replace(".", r"\.")):
        references.expect(case, arrays_of(case))


def test_a_scalar_that_the_spec_lacks_is_named() -> None:
    case = msgspec.structs.replace(row_case("layernorm", "fwd", "normal"), scalars=())
    with pytest.raises(SpecError, match="reads eps"):
        references.expect(case, arrays_of(case))


def test_arrays_of_other_types_and_shapes_are_refused() -> None:
    case = row_case("layernorm", "fwd", "normal")
    arrays = arrays_of(case)
    with pytest.raises(SpecError, match="shapes do not fit"):
        references.expect(case, {**arrays, "gamma": arrays["gamma"][:-1]})
    with pytest.raises(SpecError, match=r"cannot judge y \["):
        references.expect(case, {**arrays, "x": arrays["x"][:-1]})
    backward = row_case("layernorm", "bwd", "normal")
    given = arrays_of(backward)
    with pytest.raises(SpecError, match="shapes do not fit"):
        references.expect(backward, {**given, "mean": given["mean"][:-1]})
    lookup = row_case("embedding", "fwd", "normal")
    given = arrays_of(lookup)
    with pytest.raises(SpecError, match="shapes do not fit"):
        references.expect(lookup, {**given, "indices": given["indices"][:-1]})


def test_a_sum_that_is_too_long_for_float32_is_not_run() -> None:
    case = changed(row_case("softmax", "fwd", "normal"), reduction=Reduction(tree=1 << 23))
    with pytest.raises(NotRunError, match="has no error bound"):
        references.expect(case, arrays_of(case))


def test_float32_rows_have_bounds_too() -> None:
    case = with_types(row_case("layernorm", "fwd", "normal", rows=4, cols=16), "float32")
    arrays = {name: array.astype(np.float32) for name, array in arrays_of(case).items()}
    arrays["x"][...] = 1000 + 1e-3 * np.arange(16, dtype=np.float32)
    got = references.expect(case, arrays)
    right = float32_layernorm(arrays)
    refined = got["y"].refine
    assert refined is not None
    chained = refined({"mean": right[1]})
    assert (np.abs(right[0] - got["y"].reference) <= chained).all()
    x = arrays["x"]
    with np.errstate(all="ignore"):
        squares = (x * x).mean(axis=1) - x.mean(axis=1) ** 2  # cancels: two digits are left at most
        rstd = 1 / np.sqrt(np.maximum(squares, 0) + np.float32(1e-5))
    assert (np.abs(rstd - got["rstd"].reference) > error_of(got["rstd"])).all()


def test_stored_outputs_of_a_large_case_are_taken_some_rows_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = row_case("layernorm", "fwd", "normal", rows=64, cols=40)
    arrays = arrays_of(case)
    found = []
    for part in (1 << 21, 300):
        monkeypatch.setattr(row_layout, "PART", part)
        monkeypatch.setattr(row_layout, "_BLOCK", part)
        monkeypatch.setattr(row_layout, "BLOCK", min(part, 1 << 9))
        got = references.expect(case, arrays)
        assert got["y"].refine is not None
        found.append(got["y"].refine({"mean": got["mean"].reference.astype(np.float32)}))
    whole, parts = found
    assert whole is not None
    assert parts is not None
    np.testing.assert_allclose(parts, whole, rtol=1e-6)
