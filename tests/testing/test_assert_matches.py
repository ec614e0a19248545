"""The library for test suites: what passes, what fails and in which words, and what means nothing."""

from __future__ import annotations

import sys
import types
import unittest
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tokitai_cli.core.errors import SpecError, UsageError
from tokitai_cli.testing import (
    Bound,
    MismatchError,
    Unit,
    VacuousError,
    as_numpy,
    assert_matches,
    bound,
)

RNG = np.random.default_rng(1)
X = RNG.normal(size=(16, 64)).astype(np.float32)
WEIGHT = RNG.normal(size=64).astype(np.float32)
A, B = (RNG.normal(size=shape).astype(np.float32) for shape in ((32, 48), (48, 16)))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def rms_norm(x: Any, weight: Any, eps: float) -> Any:
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * weight


def rms_norm_of_a_spec(
    params: Mapping[str, int], inputs: Mapping[str, Any], scalars: Mapping[str, float]
) -> Mapping[str, Any]:
    return {"y": rms_norm(inputs["x"], inputs["weight"], scalars["eps"])}


def product(a: Any, b: Any) -> Any:
    return a @ b


def in_tf32(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def one_off(array: NDArray[Any]) -> NDArray[Any]:
    """One element off by more than any of the bounds here."""
    found = array.copy()
    found[3, 5] = (found[3, 5].astype(np.float64) * 1.05 + 0.1).astype(found.dtype)
    return found


NORMED = {"x": X, "weight": WEIGHT}
EPS = {"eps": 1e-5}
RIGHT: list[tuple[Any, Any, Any, dict[str, Any]]] = [
    (softmax(X), softmax, X, {}),
    (softmax(X), softmax, {"x": X}, {"dtype": "float32"}),
    (softmax(X).astype(np.float16), softmax, X, {"dtype": "float16"}),
    (rms_norm(**NORMED, eps=1e-5), rms_norm, NORMED, {"scalars": EPS}),
    (
        rms_norm(**NORMED, eps=1e-5).astype(ml_dtypes.bfloat16),
        rms_norm,
        NORMED,
        {"scalars": EPS, "dtype": "bfloat16"},
    ),
    ({"y": rms_norm(**NORMED, eps=1e-5)}, rms_norm_of_a_spec, NORMED, {"scalars": EPS}),
    (A @ B, product, {"a": A, "b": B}, {}),
    (A @ B, product, {"a": A, "b": B}, {"reduction": 48}),
    (in_tf32(A) @ in_tf32(B), product, {"a": A, "b": B}, {"tf32": True}),
]


@pytest.mark.parametrize(("got", "formula", "inputs", "more"), RIGHT)
def test_right_arrays_match_and_their_wrong_twins_do_not(
    got: Any, formula: Any, inputs: Any, more: dict[str, Any]
) -> None:
    match = assert_matches(got, formula, inputs, **more)
    assert "matches: " in repr(match)
    assert "wrong outputs that it would detect: zeros" in repr(match)
    name = "y" if isinstance(got, Mapping) else "output"
    array = got[name] if isinstance(got, Mapping) else got
    wrong = one_off(array)
    with pytest.raises(MismatchError) as raised:
        assert_matches({name: wrong} if name == "y" else wrong, formula, inputs, **more)
    text = str(raised.value)
    assert text.startswith(f"{name}[3, 5]: got ")
    assert text.count("right is") == 1
    assert "1 of 16 rows" in text or "1 of 32 rows" in text
    assert raised.value.outputs[0].name == name


def test_what_is_wrong_by_the_options_that_were_not_given() -> None:
    """TF32, a short sum that is not claimed, and sums in float16 are seen."""
    with pytest.raises(MismatchError):
        assert_matches(in_tf32(A) @ in_tf32(B), product, {"a": A, "b": B})
    narrow = np.zeros((32, 16), np.float16)
    for k in range(48):
        narrow = (narrow + np.outer(A[:, k], B[k]).astype(np.float16)).astype(np.float16)
    with pytest.raises(MismatchError):
        assert_matches(narrow, product, {"a": A, "b": B})
    assert_matches(narrow, product, {"a": A, "b": B}, accumulate="float16")


def test_sums_of_matrix_units_have_bounds_of_their_own() -> None:
    narrow = {name: array.astype(np.float16) for name, array in (("a", A), ("b", B))}
    units: list[Unit] = [{"unit": "tensor-core", "architecture": "hopper"}, {"unit": "tensor-core"}]
    widths = []
    for unit in units:
        found = bound(product, narrow, accumulate=unit)
        assert isinstance(found, Bound)
        widths.append(float(np.median(found.limit)))
        got = narrow["a"].astype(np.float32) @ narrow["b"].astype(np.float32)
        assert_matches(got, product, narrow, accumulate=unit)
    plain = bound(product, narrow)
    assert isinstance(plain, Bound)
    assert float(np.median(plain.limit)) < widths[0] < widths[1]
    with pytest.raises(UsageError, match="tensor"):
        bound(product, narrow, accumulate={"unit": "tensor"})  # type: ignore[arg-type]


def test_an_option_that_is_not_known_is_no_silence() -> None:
    with pytest.raises(UsageError, match=r"there is no option acumulate.*accumulate"):
        assert_matches(softmax(X), softmax, X, acumulate="float16")  # type: ignore[call-arg]


def test_the_bound_is_an_array_beside_the_reference() -> None:
    found = bound(softmax, X)
    assert isinstance(found, Bound)
    assert found.reference.shape == found.limit.shape == X.shape
    over = np.abs(softmax(X).astype(np.float64) - found.reference) / found.limit
    assert 0.001 < over.max() <= 1
    half = bound(rms_norm_of_a_spec, NORMED, scalars=EPS, dtype={"y": "float16"})
    assert isinstance(half, dict)
    single = bound(rms_norm_of_a_spec, NORMED, scalars=EPS)
    assert isinstance(single, dict)
    assert np.all(half["y"].limit > single["y"].limit)


@pytest.mark.parametrize(
    ("got", "formula", "inputs", "more", "error", "words"),
    [
        (X * 0, lambda x: x * 0, X, {}, VacuousError, "the check would be vacuous"),
        (X[:0], softmax, X[:0], {}, VacuousError, "no elements"),
        (X, softmax, X, {"dtype": "float16"}, UsageError, "float32, but float16 is expected"),
        (X, softmax, X, {"dtype": "half"}, UsageError, "did you mean float16"),
        (X, softmax, X[:3], {}, MismatchError, r"got \[16, 64\], the formula gives \[3, 64\]"),
        (X, np.sinc, X, {}, SpecError, "sinc"),
        (X, rms_norm, {"x": X, "wieght": WEIGHT}, {"scalars": EPS}, UsageError,
         r"rms_norm\(\) has no argument 'wieght'.*weight"),
        (X, rms_norm, [X, WEIGHT], {"scalars": EPS}, UsageError, "give them by name"),
        ([["a"]], softmax, X, {}, UsageError, "is not a kernel dtype"),
        (X, softmax, X, {"precision": {"exq": 1}}, UsageError, "exq"),
        (X, softmax, X, {"accumulate": "float64"}, UsageError, "float64"),
        (X, softmax, X, {"tf32": "no"}, UsageError, "tf32 must be True or False, not 'no'"),
        (X, softmax, X, {"flush_to_zero": "no"}, UsageError, "flush_to_zero must be True or False"),
        (X, softmax, X, {"reduction": "foo"}, UsageError, "reduction must be any, none, welford"),
        (X, softmax, X, {"reduction": 2.5}, UsageError, "reduction must be an integer, not 2.5"),
        (X, softmax, X, {"reduction": True}, UsageError, "reduction must be an integer"),
        (X, softmax, X, {"reduction": -1}, UsageError, "0 additions or more"),
        (X, softmax, X, {"precision": 3}, UsageError, "precision must be errors by function"),
        (X, softmax, X, {"scalars": 3}, UsageError, "scalars must be numbers by name"),
        (X, softmax, X, {"scalars": {"e": X}}, UsageError, r"the scalar e is an array of shape"),
        (X, softmax, X, {"params": {"n": 2.5}}, UsageError, "n must be an integer"),
        (X, softmax, X, {"dtype": object()}, UsageError, "is not a kernel dtype"),
        (X, None, X, {}, UsageError, "the formula must be a function, not NoneType"),
        (X, lambda x: {"output": x, "sum": x}, X, {}, UsageError, "returns output, sum, but got has"),
        ({"z": X}, rms_norm_of_a_spec, NORMED, {"scalars": EPS}, UsageError, "returns y, but got has z"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_told(
    got: Any, formula: Any, inputs: Any, more: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        assert_matches(got, formula, inputs, **more)


def test_a_match_is_a_table_in_a_notebook() -> None:
    shown = assert_matches(softmax(X), softmax, X)._repr_html_()
    assert shown.startswith("<table>")
    assert "<td>1024</td>" in shown
    assert "correctly rounded" in shown


class OfTorch:
    """A tensor as torch gives one: bfloat16 is no dtype that it hands to numpy."""

    __module__ = "torch"

    def __init__(self, array: NDArray[Any], dtype: str) -> None:
        self.array, self.dtype = array, f"torch.{dtype}"

    def same(self) -> OfTorch:
        return self

    detach = resolve_conj = resolve_neg = cpu = contiguous = same

    def view(self, dtype: str) -> OfTorch:
        return OfTorch(self.array.view(dtype), dtype)

    def numpy(self) -> NDArray[Any]:
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.array


class OfCupy:
    """An array on a GPU, which is not converted by itself."""

    __module__ = "cupy"

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __array__(self, *given: Any) -> NDArray[Any]:
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def get(self) -> NDArray[Any]:
        return self.array


class OfJax:
    """An array that numpy reads, with dtypes of ml_dtypes."""

    __module__ = "jaxlib._jax"

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __array__(self, *given: Any, **more: Any) -> NDArray[Any]:
        return self.array


def test_arrays_of_other_libraries_keep_their_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = types.ModuleType("torch")
    torch.int16, torch.uint8 = "int16", "uint8"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    narrow = X.astype(ml_dtypes.bfloat16)
    for given, want in (
        (OfTorch(narrow, "bfloat16"), narrow),
        (OfTorch(X, "float32"), X),
        (OfCupy(X), X),
        (OfJax(narrow), narrow),
        (X[::2].T, X[::2].T),
        ([1.5, 2.0], np.array([1.5, 2.0])),
    ):
        found = as_numpy(given)
        assert found.dtype == want.dtype
        assert found.tobytes() == np.ascontiguousarray(want).tobytes()


class InUnittest(unittest.TestCase):
    """A mismatch is a failure there, and not an error."""

    def test_a_mismatch_is_a_failure(self) -> None:
        try:
            assert_matches(one_off(softmax(X)), softmax, X)
        except self.failureException as error:
            self.assertIn("output[3, 5]: got", str(error))  # noqa: PT009
        else:
            self.fail("it matched")


@pytest.mark.parametrize(
    "dtype", [np.float32, np.dtype("float32"), "float32", {"output": np.float32}]
)
def test_dtypes_are_taken_as_libraries_write_them(dtype: Any) -> None:
    assert_matches(softmax(X), softmax, X, dtype=dtype)
    assert isinstance(bound(softmax, X, dtype=dtype), Bound | dict)


def test_arrays_of_the_other_byte_order_have_the_same_values() -> None:
    assert_matches(softmax(X).astype(">f4"), softmax, X.astype(">f4"))


def test_an_output_may_be_a_single_number() -> None:
    x = np.abs(X) + 1
    right = x.sum(dtype=np.float64).astype(np.float32)
    assert_matches(right, lambda x: x.sum(), x)
    found = bound(lambda x: x.sum(), x)
    assert isinstance(found, Bound)
    assert found.limit.shape == ()
    with pytest.raises(MismatchError):
        assert_matches(right + np.float32(1), lambda x: x.sum(), x)
