"""Draws of whole arrays: offsets, orders, ends of types, mixes; and those of users' functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.spec.test_inputs import one_input
from tests.spec_example import example, write_example
from tokitai_cli import spec as spec_stage
from tokitai_cli.core.errors import NotRunError, SpecError
from tokitai_cli.spec import inputs, plan


def test_offsets_rise_from_0_to_their_end() -> None:
    drawn = one_input("int32", {"kind": "offsets", "end": "rows * 100"}, (3, 1001))
    assert drawn.generator == "offsets(end=5000)"
    steps = np.diff(drawn.array, axis=1)
    assert np.all(drawn.array[:, 0] == 0)
    assert np.all(drawn.array[:, -1] == 5000)
    assert steps.min() == 0
    assert 0.2 < np.mean(steps == 0) < 0.6
    assert steps.max() > 20
    assert not np.array_equal(drawn.array[0], drawn.array[1])
    assert list(one_input("int32", {"kind": "offsets", "end": 9}, (2,)).array) == [0, 9]


@pytest.mark.parametrize(
    ("dtype", "settings", "shape", "words"),
    [
        ("int32", {"kind": "offsets", "end": 3}, (1,), "1 offsets cannot rise from 0 to 3"),
        ("int32", {"kind": "offsets", "end": -1}, (4,), "cannot rise from 0 to -1"),
        ("uint8", {"kind": "offsets", "end": 256}, (4,), "uint8 cannot hold the numbers"),
        ("uint8", "arange", (257,), "uint8 cannot hold the numbers of arange"),
        ("float16", "permutation", (2050,), "float16 cannot hold the numbers of permutation"),
    ],
)
def test_what_has_no_meaning_at_a_shape_is_not_run(
    dtype: str, settings: Any, shape: tuple[int, ...], words: str
) -> None:
    draw = {"kind": settings} if isinstance(settings, str) else settings
    with pytest.raises(NotRunError, match=words):
        one_input(dtype, draw, shape)


def test_orders() -> None:
    assert np.array_equal(one_input("uint8", {"kind": "arange"}, (2, 4)).array, [[*range(4)]] * 2)
    rising = one_input("float32", {"kind": "arange", "value": "0 - 3"}, (4,))
    assert list(rising.array) == [-3, -2, -1, 0]
    assert rising.generator == "arange(value=-3)"
    orders = one_input("int64", {"kind": "permutation"}, (2, 100)).array
    assert np.array_equal(np.sort(orders, axis=1), [[*range(100)]] * 2)
    assert not np.array_equal(orders[0], orders[1])
    assert not np.all(np.diff(orders[0]) > 0)
    hot = one_input("bfloat16", {"kind": "one-hot"}, (50, 7)).array.astype(float)
    assert np.all(hot.sum(axis=1) == 1)
    assert np.all(hot.max(axis=1) == 1)
    assert len(set(hot.argmax(axis=1))) == 7
    for dtype, low, high in (("float16", -2.0, 3.0), ("int32", -2.0, 300.0)):
        draw = {"kind": "sorted", "lo": low, "hi": high}
        values = one_input(dtype, draw, (2, 500)).array.astype(float)
        assert np.all(np.diff(values, axis=1) >= 0)
        assert np.unique(values[0]).size > 100
        assert low <= values.min() < low + 1
        assert high - 1 < values.max() <= high


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64"])
def test_limits_of_integers(dtype: str) -> None:
    ends = np.iinfo(dtype)
    wanted = {ends.min, ends.min + 1, 0, 1, ends.max - 1, ends.max, max(ends.min, -1)}
    assert set(map(int, one_input(dtype, {"kind": "limits"}).array)) == wanted


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_limits_of_floats(dtype: str) -> None:
    form: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    sizes = [form.max, form.smallest_normal, form.smallest_subnormal, 1, 0]
    values = one_input(dtype, {"kind": "limits"}).array.astype(float)
    assert {*values} == {sign * float(size) for size in sizes for sign in (1, -1)}
    assert np.any(np.signbit(values[values == 0]))
    assert not np.all(np.signbit(values[values == 0]))


def test_a_mix_has_its_shares() -> None:
    parts = [
        {"draw": {"kind": "index-uniform", "below": "rows"}, "share": 9},
        {"draw": {"kind": "constant", "value": -100}, "share": 1},
    ]
    labels = one_input("int64", {"kind": "mix", "parts": parts}, (5000,))
    ignored = labels.array == -100
    assert 0.07 < np.mean(ignored) < 0.13
    assert {*labels.array[~ignored]} == {*range(50)}
    said = "mix(0.9 index-uniform(below=50), 0.1 constant(value=-100))"
    assert labels.generator == said


def test_infinities_at_given_places() -> None:
    draw = {"kind": "placed", "value": -np.inf, "at": [0, "rows - 48"]}
    values = one_input("float16", draw, (6, 5)).array.astype(float)
    assert np.array_equal(np.isneginf(values), np.tile([1, 0, 1, 0, 0], (6, 1)).astype(bool))
    assert np.unique(values).size > 10


def test_settings_may_be_real_expressions() -> None:
    draw = {"kind": "uniform", "lo": "-1 / sqrt(rows * 2)", "hi": "2 ** -3"}
    drawn = one_input("float32", draw)
    assert drawn.generator == "uniform(lo=-0.1, hi=0.125)"
    assert -0.1 <= drawn.array.min() < -0.09
    assert 0.12 < drawn.array.max() <= 0.125
    assert (
        "lo=1, hi=49" in one_input("int32", {"kind": "uniform", "lo": 1, "hi": "rows-1"}).generator
    )
    with pytest.raises(SpecError, match=r"a scale of 0 .*positive at every shape"):
        one_input("float32", {"kind": "normal", "scale": "rows - 50"})
    with pytest.raises(SpecError, match=r"division by zero"):
        one_input("float32", {"kind": "constant", "value": "1 / (rows - 50)"})


DRAWS = """
import numpy as np
import numpy.typing

def halves(params, shape, rng):
    print("drawing", params["n"])
    return rng.integers(-8, 8, shape) / 2

def follows(params, shape, rng, *, inputs, dtype):
    assert dtype == "float32"
    return -inputs["a"].astype(np.float64)

def wrong_shape(params, shape, rng):
    return np.zeros(shape[0] + 1)

def too_large(params, shape, rng):
    return np.full(shape, 1e39)

def raises(params, shape, rng):
    raise ValueError("no such thing")

def a_list(params, shape, rng):
    return [0.0] * shape[0]

def unseeded(params, shape, rng):
    return np.random.default_rng().random(shape)

def timed(params, shape, rng):
    import time
    return np.full(shape, time.monotonic_ns() % 2**20)

def two(params, shape):
    return np.zeros(shape)
"""


def with_draws(folder: Path, a: str, b: str = "normal") -> plan.Plan:
    text = example("spec.yaml").replace(
        "  normal:", f"  own: {{inputs: {{a: '{a}', b: '{b}'}}}}\n  normal:"
    )
    path = write_example(folder, spec=text)
    (folder / "draws.py").write_text(DRAWS)
    selection = plan.Selection(profiles=("own",), shapes={"n": (100,)})
    return plan.plan(spec_stage.load(path), selection)


def test_a_users_function_draws(tmp_path: Path) -> None:
    (case,) = with_draws(tmp_path, "draws.py:halves", "draws.py:follows").cases
    said: list[str] = []
    drawn = inputs.draw(case, log=said.append)
    assert said == ["drawing 100"]
    assert drawn["a"].generator == "draws.py:halves"
    values = drawn["a"].array
    assert values.dtype == np.float32
    assert {*(values * 2)} == {*range(-8, 8)}
    assert np.array_equal(drawn["b"].array, -values)
    assert inputs.draw(case)["a"].sha256 == drawn["a"].sha256
    other = plan.case_of(case.loaded, "main", {"n": 100}, "own", 1)
    assert inputs.draw(other)["a"].sha256 != drawn["a"].sha256


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("wrong_shape", r"gave shape \[101\], a has \[100\]"),
        ("too_large", "numbers beyond float32"),
        ("raises", r"draws.py:\d+: raised ValueError: no such thing"),
        ("a_list", "returned list, not a numpy array"),
        ("unseeded", "returned a different array when called again with the same seed.*from `rng`"),
        ("timed", "returned a different array when called again"),
    ],
)
def test_what_a_function_gives_is_checked(tmp_path: Path, function: str, words: str) -> None:
    (case,) = with_draws(tmp_path, f"draws.py:{function}").cases
    with pytest.raises(SpecError, match=words):
        inputs.draw(case)


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        ("draws.py:missing", "draws.py defines no function missing"),
        (
            "draws.py:two",
            r"two cannot be called with three arguments .*def two\(params, shape, rng\)",
        ),
        ("nowhere.py:f", "no such file"),
    ],
)
def test_a_function_that_cannot_draw_is_a_spec_error(tmp_path: Path, draw: str, words: str) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        with_draws(tmp_path, draw)
    assert "profiles.own.inputs.a" in str(caught.value)
    assert caught.value.exit_code == 2
