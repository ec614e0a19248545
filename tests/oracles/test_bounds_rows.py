"""Bounds of the ops on rows: no right kernel exceeds them, and they are not much too wide."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from tests.row_cases import (
    ORDERS,
    Emulation,
    Singles,
    U,
    arrays_of,
    changed,
    error_of,
    in_order,
    ratios,
    redrawn,
    rounded_ratios,
    row_case,
    shipped,
)
from tests.support import slow
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.spec import Draw, Reduction
from tokitai_cli.core.numerics import MUST_BE_FINITE, overflow_class, round_to
from tokitai_cli.oracles import references

PAIRS = [
    (op, variant, profile)
    for op, variants in (("softmax", ("fwd", "grad")), ("layernorm", ("fwd", "bwd")))
    for variant in variants
    for profile in shipped(op).spec.variants[variant].profiles
]
LOG_UNIFORM = Draw(kind="log-uniform", lo=-8, hi=0, sign="positive")


def threads_of(case: Case) -> int:
    return case.launches[0].block[0]


def judge(case: Case, order: str, seed: int) -> None:
    """Assert that no output of an emulated right kernel exceeds its bound, nor breaks a mask."""
    case = in_order(case, order)
    arrays = arrays_of(case)
    values = Emulation(order, seed, threads=threads_of(case)).run(case, arrays)
    for name, expectation in references.expect(case, arrays).items():
        dtype = {plan.name: plan.dtype for plan in case.buffers}[name]
        got = round_to(values[name].astype(np.float64), dtype).astype(np.float64)
        error = error_of(expectation)
        assert (error >= 0).all()
        must = overflow_class(expectation.reference, error, FORMATS[dtype]) == MUST_BE_FINITE
        assert np.isfinite(got[must]).all()
        special = ~np.isfinite(expectation.reference)
        assert np.array_equal(got[special], expectation.reference[special], equal_nan=True)
        assert ratios(values[name], expectation)[must].max(initial=0) <= 1.0, name
        assert rounded_ratios(values[name], expectation, dtype)[must].max(initial=0) <= 1.0, name


@pytest.mark.parametrize("shapes", [[(40, 7), (12, 300)], slow([(24, 65), (2, 1100)])])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("op", "variant", "profile"), PAIRS)
def test_right_kernels_stay_within_the_bounds(
    op: str, variant: str, profile: str, order: str, shapes: list[tuple[int, int]]
) -> None:
    for seed, (rows, cols) in enumerate(shapes):
        judge(row_case(op, variant, profile, seed, rows=rows, cols=cols), order, seed)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("op", "variant", "profile"), PAIRS)
def test_right_kernels_stay_within_the_bounds_over_thousands_of_rows(
    op: str, variant: str, profile: str, order: str
) -> None:
    for seed in range(3):
        judge(row_case(op, variant, profile, seed, rows=1500, cols=33), order, seed)
        judge(row_case(op, variant, profile, seed, rows=3, cols=20000), order, seed)


@pytest.mark.parametrize("order", ["sequential", "random"])
@pytest.mark.parametrize("profile", shipped("embedding").spec.variants["bwd"].profiles)
def test_gradients_of_tables_stay_within_the_bounds(profile: str, order: str) -> None:
    for seed in range(3):
        case = row_case("embedding", "bwd", profile, seed, queries=300, dim=17, vocab=301)
        arrays = arrays_of(case)
        (expectation,) = references.expect(case, arrays).values()
        queries = np.arange(300)
        if order == "random":
            queries = np.random.Generator(np.random.PCG64(seed)).permutation(queries)
        sums = np.zeros((301, 17), dtype=np.float32)
        with np.errstate(all="ignore"):
            for query in queries:
                row = int(arrays["indices"][query])
                if 0 <= row < 301:
                    sums[row] += arrays["grad_output"][query].astype(np.float32)
        finite = np.isfinite(expectation.reference)
        assert np.array_equal(sums[~finite], expectation.reference[~finite], equal_nan=True)
        assert ratios(sums, expectation)[finite].max() <= 1.0


def sharpness(case: Case, order: str, output: str) -> float:
    """Largest error over e in front of the last rounding."""
    case = in_order(case, order)
    arrays = arrays_of(case)
    values = Emulation(order, threads=threads_of(case)).run(case, arrays)[output]
    return float(ratios(values, references.expect(case, arrays)[output]).max())


@pytest.mark.parametrize(
    ("rows", "cols", "least"), [(200, 64, 10), (60, 1024, 10), (16, 4096, 10), (2, 32768, 25)]
)
def test_softmax_bounds_are_reached(rows: int, cols: int, least: int) -> None:
    forward = row_case("softmax", "fwd", "normal", rows=rows, cols=cols)
    assert sharpness(forward, "tree", "y") >= 1 / least
    gradient = row_case("softmax", "grad", "normal", rows=rows, cols=cols)
    assert sharpness(gradient, "tree", "grad_x") >= 1 / (15 if cols <= 4096 else 50)


@pytest.mark.parametrize(("rows", "cols"), [(500, 256), (100, 1024)])
def test_layernorm_bounds_are_reached(rows: int, cols: int) -> None:
    case = row_case("layernorm", "fwd", "log-uniform", rows=rows, cols=cols)
    for output in ("y", "rstd"):
        assert sharpness(case, "tree", output) >= 1 / 10
    gradient = row_case("layernorm", "bwd", "normal", rows=rows, cols=cols)
    assert sharpness(gradient, "tree", "grad_x") >= 1 / 15


def test_mean_bound_is_reached_where_sums_round() -> None:
    # Sums of some hundred float16 numbers of one sign have 24 bits at most: their mean is nearly exact.
    case = row_case("layernorm", "fwd", "log-uniform", rows=100, cols=1024)
    assert sharpness(case, "tree", "mean") >= 1 / 40


@pytest.mark.parametrize("rows", [512, 2048])
def test_column_sum_bounds_are_reached(rows: int) -> None:
    case = row_case("layernorm", "bwd", "normal", rows=rows, cols=64)
    near_constant = redrawn(
        case,
        x=Draw(kind="normal", value=3, scale=0.01),
        grad_y=LOG_UNIFORM,
        mean=Draw(kind="constant", value=1),
        rstd=Draw(kind="constant", value=0.9),
    )
    arrays = arrays_of(near_constant)
    values = Emulation("tree", threads=min(1024, rows)).run(near_constant, arrays)
    expectations = references.expect(near_constant, arrays)
    for output in ("grad_gamma", "grad_beta"):
        assert float(ratios(values[output], expectations[output]).max()) >= 1 / 20


def welford(x: Singles, threads: int) -> tuple[Singles, Singles]:
    """Mean and variance by float32 updates: each thread its columns in turn, then in pairs."""
    rows, width = x.shape
    mean, q = np.zeros((2, rows, threads), dtype=np.float32)
    count = np.zeros(threads, dtype=np.float32)
    for start in range(0, width, threads):
        part = x[:, start : start + threads]
        here = np.s_[:, : part.shape[1]]
        count[: part.shape[1]] += 1
        delta = part - mean[here]
        mean[here] += delta / count[: part.shape[1]]
        q[here] += delta * (part - mean[here])
    while threads > 1:
        threads //= 2
        (a, b), both = (count[:threads], count[threads:]), count[:threads] + count[threads:]
        delta, both = mean[:, threads:] - mean[:, :threads], np.maximum(both, 1)
        mean = mean[:, :threads] + delta * (b / both)
        q = q[:, :threads] + q[:, threads:] + delta * delta * (a * b / both)
        count = a + b
    return mean[:, 0], q[:, 0] / np.float32(width)


def welford_faults(case: Case, threads: int, fault: str = "") -> set[str]:
    """Outputs of an emulated Welford kernel that the oracle refuses."""
    arrays = arrays_of(case)
    x = arrays["x"].astype(np.float32)
    mean, variance = welford(x[:, :-1] if fault == "last column skipped" else x, threads)
    if fault == "unbiased":
        variance *= np.float32(x.shape[1] / (x.shape[1] - 1))
    rstd = np.float32(1) / np.sqrt(variance + np.float32(1e-5))
    scale, shift = arrays["gamma"].astype(np.float32), arrays["beta"].astype(np.float32)
    y = (x - mean[:, None]) * rstd[:, None] * scale + shift
    found, expected = set(), references.expect(case, arrays)
    for name, got in {"y": y, "mean": mean, "rstd": rstd}.items():
        want = expected[name]
        distance = got.astype(np.float64) - want.reference
        sides = (want.error_below, want.error_above) if name == "rstd" else (want.error,) * 2
        assert sides[0] is not None
        assert sides[1] is not None
        if not np.all((-sides[0] <= distance) & (distance <= sides[1])):
            found.add(name)
    return found


WELFORD = (
    "normal",
    "uniform",
    "large-mean",
    "tiny-variance",
    "log-uniform",
    "constant-rows",
    "large",
)


@pytest.mark.parametrize("profile", WELFORD)
def test_welford_stays_within_its_bounds(profile: str) -> None:
    for seed, (rows, cols) in enumerate([(40, 7), (24, 65), (12, 769), (4, 4099)]):
        case = row_case("layernorm", "fwd", profile, seed, rows=rows, cols=cols)
        tree = case.variant.reduction
        assert isinstance(tree, Reduction)
        claimed = changed(case, reduction=msgspec.structs.replace(tree, welford=True))
        assert not welford_faults(claimed, threads_of(case))
        assert not welford_faults(changed(case, reduction="welford"), 1)


@pytest.mark.slow
def test_welford_stays_within_its_bounds_over_thousands_of_rows() -> None:
    for profile in WELFORD:
        case = row_case("layernorm", "fwd", profile, rows=2000, cols=300)
        assert not welford_faults(changed(case, reduction="welford"), 1)


def test_welford_is_not_covered_by_two_passes_and_wrong_ones_are_refused() -> None:
    case = row_case("layernorm", "fwd", "large-mean", rows=20, cols=769)
    assert "rstd" in welford_faults(case, 128)
    plain = case.variant.reduction
    assert isinstance(plain, Reduction)
    tree = msgspec.structs.replace(plain, welford=True)
    for fault in ("last column skipped", "unbiased"):
        for profile in ("normal", "uniform"):
            case = row_case("layernorm", "fwd", profile, rows=20, cols=769)
            assert "rstd" in welford_faults(changed(case, reduction=tree), 128, fault)


def faulty_softmax(arrays: Any, fault: str) -> Any:
    x = arrays["x"].astype(np.float64)
    terms = np.exp(x - x.max(axis=1, keepdims=True))
    kept = terms.copy()
    if fault == "last column skipped":
        kept[:, -1] = 0
    if fault == "half-precision accumulator":
        half = np.zeros((x.shape[0], 1), dtype=np.float16)
        for column in terms.T.astype(np.float16):
            half[:, 0] += column
        return {"y": terms / half.astype(np.float64)}
    if fault == "padded with 0":
        kept = np.concatenate([kept, np.exp(-x.max(axis=1, keepdims=True))], axis=1)
    result = terms / kept.sum(axis=1, keepdims=True)
    if fault == "rounded exponentials":
        result = terms.astype(np.float16).astype(np.float64)
        result = (result / result.sum(axis=1, keepdims=True)).astype(np.float16)
    return {
        "y": {"zeros": 0 * result, "sign": -result, "rolled": np.roll(result, 1, axis=0)}.get(
            fault, result
        )
    }


def faulty_layernorm(arrays: Any, fault: str) -> Any:
    x, scale, shift = (arrays[name].astype(np.float64) for name in ("x", "gamma", "beta"))
    mean = x.mean(axis=1, keepdims=True)
    d, eps, width = x - mean, 1e-5, x.shape[1]
    variance = np.square(d).mean(axis=1, keepdims=True)
    if fault == "eps dropped":
        eps = 0.0
    if fault == "unbiased":
        variance *= width / max(1, width - 1)
    if fault == "last column skipped":
        variance -= np.square(d[:, -1:]) / width
    if fault == "one pass":
        single = x.astype(np.float32)
        square = (single * single).mean(axis=1, keepdims=True, dtype=np.float32)
        average = single.mean(axis=1, keepdims=True, dtype=np.float32)
        variance = np.maximum(square - average * average, 0).astype(np.float64)
    rstd = 1 / np.sqrt(variance + eps)
    y = d * rstd * scale + shift
    if fault == "zeros":
        y = 0 * y
    if fault == "beta dropped":
        y -= shift
    if fault == "rolled":
        y = np.roll(y, 1, axis=0)
    return {"y": y, "mean": mean[:, 0], "rstd": rstd[:, 0]}


def faulty_layernorm_gradient(arrays: Any, fault: str) -> Any:
    gy, x, scale = (arrays[name].astype(np.float64) for name in ("grad_y", "x", "gamma"))
    mean, rstd = arrays["mean"].astype(np.float64), arrays["rstd"].astype(np.float64)
    if fault == "half-precision statistics":
        mean, rstd = mean.astype(np.float16).astype(float), rstd.astype(np.float16).astype(float)
    xh, d, width = (x - mean[:, None]) * rstd[:, None], gy * scale, x.shape[1]
    first, second = d.sum(axis=1, keepdims=True), (d * xh).sum(axis=1, keepdims=True)
    if fault == "first sum dropped":
        first = 0 * first
    if fault == "second sum dropped":
        second = 0 * second
    if fault == "last column skipped":
        first = first - d[:, -1:]
    last = -1 if fault == "last row skipped" else None
    return {
        "grad_x": rstd[:, None] / width * (width * d - first - xh * second),
        "grad_gamma": (xh * gy)[:last].sum(axis=0),
        "grad_beta": gy[:last].sum(axis=0),
    }


SOFTMAX = ("last column skipped", "half-precision accumulator", "padded with 0",
           "rounded exponentials", "zeros", "sign", "rolled")  # fmt: skip
LAYERNORM = ("eps dropped", "unbiased", "last column skipped", "one pass", "zeros",
             "beta dropped", "rolled")  # fmt: skip
GRADIENT = ("half-precision statistics", "first sum dropped", "second sum dropped",
            "last column skipped", "last row skipped")  # fmt: skip
FAULTS = [
    *(("softmax", "fwd", faulty_softmax, fault) for fault in SOFTMAX),
    *(("layernorm", "fwd", faulty_layernorm, fault) for fault in LAYERNORM),
    *(("layernorm", "bwd", faulty_layernorm_gradient, fault) for fault in GRADIENT),
]


@pytest.mark.parametrize(("op", "variant", "kernel", "fault"), FAULTS)
@pytest.mark.parametrize("cols", [65, slow(769), slow(4096)])
def test_wrong_kernels_exceed_the_bounds_on_some_profile(
    op: str, variant: str, kernel: Any, fault: str, cols: int
) -> None:
    if fault == "half-precision accumulator" and cols < 4096:
        cols = 4096  # such an accumulator follows up to 2048 equal terms
    seen = 0.0
    for profile in shipped(op).spec.variants[variant].profiles:
        case = row_case(op, variant, profile, rows=8, cols=cols)
        arrays = arrays_of(case)
        if any(not np.isfinite(array).all() for array in arrays.values()):
            continue
        with np.errstate(all="ignore"):
            values = kernel(arrays, fault)
            right = kernel(arrays, "")
        for name, expectation in references.expect(case, arrays).items():
            dtype = {plan.name: plan.dtype for plan in case.buffers}[name]
            assert rounded_ratios(right[name], expectation, dtype).max() <= 1.0 + 16 * U
            seen = max(seen, float(rounded_ratios(values[name], expectation, dtype).max()))
    assert seen > 1.0
