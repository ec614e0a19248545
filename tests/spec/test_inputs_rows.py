"""Draws for ops on rows: what each kind promises, and what specs may say of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.drawing import make_case
from tests.row_cases import row_case
from tokitai_cli import spec
from tokitai_cli.core.errors import SpecError
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.numerics import round_to
from tokitai_cli.spec.inputs import draw
from tokitai_cli.spec.inputs.row_draws import row_sums

SHIPPED = Path(__file__).parents[2] / "specs"


def case_of(
    settings: dict[str, Any] | str,
    rows: int = 40,
    cols: int = 60,
    seed: int = 0,
    dtype: str = "float16",
    **others: dict[str, Any],
) -> Case:
    """An op on rows whose input x is drawn as `settings` say; `others` have one element a row."""
    inputs = {"x": {"dtype": dtype, "shape": ["rows", "cols"], "draw": settings}}
    inputs |= {
        name: {"dtype": "float32", "shape": ["rows"], "draw": one} for name, one in others.items()
    }
    tree: dict[str, Any] = {
        "schema": "tokitai/spec/v1",
        "op": "rows",
        "title": "rows",
        "params": {"rows": {"default": 4}, "cols": {"default": 4}},
        "variants": {
            "only": {
                "source": "rows.hip",
                "inputs": inputs,
                "outputs": {"y": {"dtype": dtype, "shape": ["rows", "cols"]}},
                "launches": [{"kernel": "k", "grid": [1], "block": [1], "args": []}],
                "oracle": "none",
                "checks": [{"metric": "bound"}],
            }
        },
        "profiles": {"normal": {}},
    }
    return make_case(tree, "only", {"rows": rows, "cols": cols}, "normal", seed=seed)


def drawn(settings: dict[str, Any] | str, **shape: Any) -> Any:
    """Array x as float64."""
    array = draw(case_of(settings, **shape))["x"].array
    assert array.flags.c_contiguous
    assert not array.flags.writeable
    return array.astype(np.float64)


@pytest.mark.parametrize(
    "kind",
    ["constant-rows", "one-large", "masked", "all-masked", "plus-inf", "nan-rows", "softmax",
     "power-of-two", "halfway"],
)  # fmt: skip
def test_draws_depend_on_the_seed_and_nothing_else(kind: str) -> None:
    first, again = drawn(kind), drawn(kind)
    assert np.array_equal(first, again, equal_nan=True)
    assert not np.array_equal(first, drawn(kind, seed=1), equal_nan=True)
    for rows, cols in ((1, 1), (1, 3), (3, 1), (0, 5), (5, 0)):
        assert drawn(kind, rows=rows, cols=cols).shape == (rows, cols)


def test_slabs_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("masked", "softmax"):
        whole = drawn(kind)
        with monkeypatch.context() as patch:
            patch.setattr("tokitai_cli.spec.inputs.row_draws._SLAB", 130)
            assert np.array_equal(drawn(kind), whole)


def test_constant_rows() -> None:
    x = drawn({"kind": "constant-rows", "value": 50, "scale": 2})
    assert (x == x[:, :1]).all()
    assert len(set(x[:, 0])) > 20
    assert 45 < x.mean() < 55


def test_one_large_takes_its_places_in_turn_and_inside_the_row() -> None:
    places = [0, "cols - 1", 7, 255, "cols - 999"]
    x = drawn({"kind": "one-large", "value": 90, "at": places})
    assert (np.count_nonzero(x > 80, axis=1) == 1).all()
    assert x.argmax(axis=1)[:10].tolist() == [0, 59, 7, 59, 0] * 2
    assert (np.abs(np.where(x > 80, 0, x)) < 10).all()
    assert drawn("one-large").argmax(axis=1)[:4].tolist() == [59, 0, 59, 0]
    words = draw(case_of({"kind": "one-large", "value": 90, "at": places}))["x"].generator
    assert words == "one-large(value=90, scale=1, at=0/59/7/59/0)"


def test_masked_rows_keep_something() -> None:
    x = drawn("masked", rows=400, cols=9)
    masked = np.isneginf(x)
    assert not np.isnan(x).any()
    assert (masked.sum(axis=1) < 9).all()
    even, odd = masked[::2], masked[1::2]
    assert 0.35 < even.mean() < 0.6
    assert (np.diff(odd.astype(int), axis=1) >= 0).all()  # from some column on
    assert {int(count) for count in odd.sum(axis=1)} == set(range(9))


@pytest.mark.parametrize(
    ("kind", "test", "count"),
    [("all-masked", np.isneginf, 60), ("plus-inf", np.isposinf, 1), ("nan-rows", np.isnan, 1)],
)
def test_every_other_row_is_hit(kind: str, test: Any, count: int) -> None:
    x = drawn(kind)
    assert (test(x[::2]).sum(axis=1) == count).all()
    assert np.isfinite(x[1::2]).all()
    if count == 1:
        assert len(set(test(x[::2]).argmax(axis=1))) > 5


def test_softmax_rows_are_rounded_softmaxes_of_normal_logits() -> None:
    s = drawn({"kind": "softmax", "scale": 2}, rows=300, cols=50)
    assert (s >= 0).all()
    assert np.abs(s.sum(axis=1) - 1).max() < 50 * 2.0**-11
    wide = drawn({"kind": "softmax", "scale": 2}, rows=300, cols=50, dtype="float32")
    assert np.abs(wide.sum(axis=1) - 1).max() < 50 * 2.0**-24
    logits = np.log(wide) - np.log(wide).mean(axis=1, keepdims=True)
    assert 1.9 < logits.std() < 2.1
    peaked = drawn({"kind": "softmax", "value": 30, "at": ["cols - 1", 3]})
    assert peaked.argmax(axis=1)[:4].tolist() == [59, 3, 59, 3]
    assert (peaked.max(axis=1) == 1).all()


def test_powers_of_two() -> None:
    x = drawn({"kind": "power-of-two", "lo": -2, "hi": 3})
    assert set(x.reshape(-1)) == {2.0**k for k in range(-2, 4)}
    counts = np.unique(x, return_counts=True)[1]
    assert counts.min() > 2400 / 6 * 0.7
    with pytest.raises(SpecError, match="not a range of integer exponents"):
        drawn({"kind": "power-of-two", "lo": 0.5})
    with pytest.raises(SpecError, match="overflows float16"):
        drawn({"kind": "power-of-two", "hi": 16})


@pytest.mark.parametrize(
    ("bits", "narrow"), [(11, "float16"), (8, "bfloat16"), (4, "float8_e4m3fn")]
)
def test_numbers_halfway_between_two_of_a_format(bits: int, narrow: str) -> None:
    x = drawn({"kind": "halfway", "value": bits}, dtype="float32").reshape(-1)
    rounded = round_to(x, narrow).astype(np.float64)
    other = 2 * x - rounded
    assert (rounded != x).all()
    assert (round_to(other, narrow).astype(np.float64) == other).all()
    assert 0.3 < (x > 0).mean() < 0.7
    assert 1 / 8 <= np.abs(x).min() < 1 / 4 < 4 < np.abs(x).max() < 8
    with pytest.raises(SpecError, match="halfway takes the bits"):
        drawn({"kind": "halfway", "value": bits}, dtype=narrow)


def test_statistics_follow_their_array() -> None:
    mean, rstd = {"kind": "row-mean", "of": "x"}, {"kind": "row-rstd", "of": "x", "value": 0.5}
    case = case_of({"kind": "normal", "value": 3}, mean=mean, rstd=rstd)
    given = draw(case)
    assert list(given) == ["x", "mean", "rstd"]
    x = given["x"].array.astype(np.float64)
    assert given["mean"].array.dtype == np.float32
    assert np.array_equal(given["mean"].array, x.mean(axis=1).astype(np.float32))
    want = 1 / np.sqrt(x.var(axis=1) + 0.5)
    assert np.allclose(given["rstd"].array, want, rtol=1e-7)
    assert given["rstd"].generator == "row-rstd(of=x, value=0.5)"
    other = draw(case_of("normal", mean={"kind": "row-mean", "of": "x"}))
    assert other["mean"].sha256 != given["mean"].sha256


def test_statistics_of_rows_that_are_not_finite() -> None:
    given = draw(
        case_of(
            "nan-rows", mean={"kind": "row-mean", "of": "x"}, rstd={"kind": "row-rstd", "of": "x"}
        )
    )
    assert np.isnan(given["mean"].array).tolist() == [True, False] * 20
    infinite = draw(case_of("plus-inf", mean={"kind": "row-mean", "of": "x"}))
    assert np.isposinf(infinite["mean"].array).tolist() == [True, False] * 20


def test_statistics_need_an_array_of_rows() -> None:
    with pytest.raises(SpecError, match="row-mean needs an array to depend on"):
        draw(case_of("normal", mean={"kind": "row-mean", "of": "rstd"}))
    with pytest.raises(SpecError, match="does not fill"):
        draw(case_of({"kind": "row-mean", "of": "w"}, w={"kind": "normal"}))


def test_row_sums_are_pairwise_and_exact_where_they_can_be() -> None:
    for width in (1, 2, 3, 7, 64, 77):
        terms = np.arange(width * 3, dtype=np.float64).reshape(3, width)
        assert row_sums(terms).tolist() == terms.sum(axis=1).tolist()
    terms = np.array([[1.0, 2.0**-53, 2.0**-53, 2.0**-53]])
    assert row_sums(terms)[0] == (1.0 + 2.0**-53) + 2.0**-52  # (t0 + t2) + (t1 + t3)


@pytest.mark.parametrize("op", ["embedding", "softmax", "layernorm"])
def test_every_profile_of_the_shipped_specs_can_be_drawn(op: str) -> None:
    for name, variant in spec.load(spec.find(op)).spec.variants.items():
        for profile in variant.profiles:
            case = row_case(op, name, profile)
            sizes = {plan.name: plan.shape for plan in case.buffers}
            for array, one in draw(case).items():
                assert one.array.shape == sizes[array]


def test_sums_of_exact_profiles_lack_no_term() -> None:
    given = draw(row_case("layernorm", "bwd", "exact-int", rows=50, cols=40))
    xh = (given["x"].array - given["mean"].array[:, None]) * given["rstd"].array[:, None]
    assert (xh * given["grad_y"].array != 0).all()
    assert math.isfinite(float(xh.max()))


def spec_text(old: str, new: str) -> str:
    text = (SHIPPED / "layernorm.yaml").read_text(encoding="utf-8")
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("{kind: row-mean, of: x}", "{kind: row-mean}", "`row-mean` needs `of`"),
        ("{kind: row-mean, of: x}", "{kind: row-mean, of: z}", "unknown array `z`"),
        ("{kind: row-mean, of: x}", "{kind: row-mean, of: mean}", "unknown array `mean`"),
        ("{kind: row-mean, of: x}", "{kind: row-mean, of: x, value: 1}", "no setting `value`"),
        ("draw: {kind: one-large, value: 100, at: [cols - 1, 0, 31, 32]}",
         "draw: {kind: one-large, at: []}", "no place"),
        ("draw: {kind: one-large, value: 100, at: [cols - 1, 0, 31, 32]}",
         "draw: {kind: one-large, at: [columns]}", "unknown name `columns`"),
        ("draw: constant-rows", "draw: {kind: constant-rows, at: [0]}", "no setting `at`"),
        ("        grad_gamma: >-", "        grad_z: >-", "unknown output `grad_z`"),
        ("        grad_gamma: >-\n          ceil_div(rows,",
         "        grad_gamma: >-\n          ceil_div(row,", "unknown name `row`"),
        ("+ ceil_log2(min", "+ floor_log2(min", "unknown function `floor_log2`"),
        ("        output: y\n        why: y comes", "        against: replay\n        why: y comes",
         "`bound-chained` is defined against the reference only"),
    ],
)  # fmt: skip
def test_specs_that_cannot_be_meant(tmp_path: Path, old: str, new: str, words: str) -> None:
    if old == "draw: constant-rows":
        old = "draw: {kind: constant-rows, value: 1000, scale: 100}"
    folder = tmp_path / "specs"
    folder.mkdir()
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "layernorm.hip").touch()
    (folder / "layernorm.yaml").write_text(spec_text(old, new), encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        spec.load(folder / "layernorm.yaml")
    assert words in str(caught.value)
