from __future__ import annotations

import math
import statistics
import tracemalloc
from typing import Any

import numpy as np
import pytest

from tests.drawing import GEMM, PROFILES, gemm_case, make_case, with_dtype
from tokitai_cli.core import parallel
from tokitai_cli.core.dtypes import numpy_dtype
from tokitai_cli.core.errors import NotRunError, SpecError
from tokitai_cli.core.model.draws import KINDS, Group
from tokitai_cli.core.numerics import array_sha256, bit_source
from tokitai_cli.spec.inputs import Drawn, draw
from tokitai_cli.spec.inputs.transforms import below, exp2, logarithm, normal

# sha256 of grad_c and b of grad-a at 48 x 80 x 112, seed 0. A change here changes everyone's inputs.
GOLDEN: dict[str, tuple[str, str]] = {
    "normal": ("d61a36e0563d77c0", "529e18476009b4d6"),
    "uniform": ("681810a38b76306d", "5414952ff6ff1f9a"),
    "log-uniform": ("6b3d9ba4c72af67c", "240175486e8f4d60"),
    "exact-int": ("a3afd5e7b1e873f9", "ba408d939f222225"),
    "exact-int-ramp": ("501b33711440b6b4", "5ca80db84a9cc3f8"),
    "cancelling": ("9bda35a314bc1d33", "789a2b33ad5077d0"),
    "large": ("7cb1ec2fe107b050", "7f4ada16d5af2fec"),
    "subnormal": ("ba13aaf4eb8cc697", "92b748197b433a38"),
    "special": ("335aad03136afcf0", "002b11470ce47f0f"),
    "constant": ("349032542601c83a", "e5b2bb4ad51e8f18"),
}


# Kinds that need no other array, and no room for so many different indices.
SHAPELESS = sorted(
    name
    for name, kind in KINDS.items()
    if kind.group is not Group.DERIVED and name != "index-unique"
)
# What those that need something are given.
NEEDED: dict[str, dict[str, Any]] = {
    **{name: {"below": 7} for name in KINDS if name.startswith("index")},
    "offsets": {"end": 0},
    "segments": {"below": 7},
    "placed": {"at": [0, "rows - 1"]},
    "mix": {"parts": [{"draw": "normal", "share": 3}, {"draw": "limits", "share": 1}]},
}


def floats(drawn: Drawn) -> np.ndarray[Any, np.dtype[np.float64]]:
    return drawn.array.astype(np.float64)


def one_input(
    dtype: str, settings: dict[str, Any], shape: tuple[int, ...] = (2000,), seed: int = 0
) -> Drawn:
    """A single input x of an element-wise op, drawn as `settings` say."""
    names = [f"d{axis}" for axis in range(len(shape))]
    tree: dict[str, Any] = {
        "schema": "tokitai/spec/v1",
        "op": "copy",
        "title": "copy",
        "params": {name: {"default": 1} for name in (*names, "rows")},
        "variants": {
            "fwd": {
                "source": "copy.hip",
                "inputs": {"x": {"dtype": dtype, "shape": names}},
                "outputs": {"y": {"dtype": dtype, "shape": names}},
                "launches": [{"kernel": "k", "grid": [1], "block": [1], "args": []}],
                "oracle": "o.py:f",
                "checks": [{"metric": "exact"}],
            }
        },
        "profiles": {"p": {"draw": settings}},
    }
    sizes = {**dict(zip(names, shape, strict=True)), "rows": 50}
    return draw(make_case(tree, "fwd", sizes, "p", seed=seed))["x"]


@pytest.mark.parametrize("profile", PROFILES)
def test_draws_are_stable(profile: str) -> None:
    drawn = draw(gemm_case("grad-a", profile, m=48, n=80, k=112))
    assert (drawn["grad_c"].sha256[:16], drawn["b"].sha256[:16]) == GOLDEN[profile]


@pytest.mark.parametrize("profile", PROFILES)
def test_draws_repeat_and_other_seeds_differ(profile: str) -> None:
    first = draw(gemm_case("grad-a", profile, m=32, n=33, k=16))["grad_c"]
    again = draw(gemm_case("grad-a", profile, m=32, n=33, k=16))["grad_c"]
    other = draw(gemm_case("grad-a", profile, m=32, n=33, k=16, seed=1))["grad_c"]
    assert first.sha256 == again.sha256
    assert (first.sha256 == other.sha256) == (profile == "constant")


def test_a_new_array_or_size_changes_no_other() -> None:
    plain = draw(gemm_case("grad-a", "normal"))
    inputs = {
        "bias": {"dtype": "float16", "shape": ["m"]},
        **GEMM["variants"]["grad-a"]["inputs"],
    }
    more = draw(gemm_case("grad-a", "normal", inputs=inputs))
    wider = draw(gemm_case("grad-a", "normal", k=32))
    assert more["b"].sha256 == plain["b"].sha256
    assert more["grad_c"].sha256 == plain["grad_c"].sha256
    assert wider["grad_c"].sha256 == plain["grad_c"].sha256
    assert wider["b"].sha256 != plain["b"].sha256


def test_arrays_are_read_only_contiguous_and_digested_as_little_endian_bytes() -> None:
    drawn = draw(gemm_case())["b"]
    assert drawn.array.flags.c_contiguous
    assert not drawn.array.flags.writeable
    assert drawn.array.dtype == np.float16
    big = drawn.array.astype(">f2")
    assert array_sha256(big) == array_sha256(drawn.array.T.copy().T) == drawn.sha256


def test_order_of_precedence() -> None:
    inputs = {
        "grad_c": {"dtype": "float16", "shape": ["m", "n"]},
        "b": {"dtype": "float16", "shape": ["k", "n"], "draw": {"kind": "constant", "value": 2}},
    }
    case = gemm_case("grad-a", "normal", inputs=inputs)
    drawn = draw(case)
    assert drawn["grad_c"].generator == "normal(value=0, scale=1)"
    assert drawn["b"].generator == "constant(value=2)"
    tree = {
        **GEMM,
        "variants": {"grad-a": {**GEMM["variants"]["grad-a"], "inputs": inputs}},
        "profiles": {"p": {"draw": "normal", "inputs": {"b": "exact-int"}}, "uniform": {}},
    }
    shape = {"m": 4, "n": 4, "k": 4}
    assert draw(make_case(tree, "grad-a", shape, "p"))["b"].generator == "exact-int(scale=1)"
    bare = draw(make_case(tree, "grad-a", shape, "uniform"))
    assert bare["grad_c"].generator == "uniform(lo=0, hi=1)"


def test_symbols_and_inouts_are_drawn_and_outputs_are_not() -> None:
    one = {"dtype": "float32", "shape": ["m"]}
    case = gemm_case("grad-a", "normal", inout={"acc": one}, symbols={"weights": one})
    assert list(draw(case)) == ["grad_c", "b", "acc", "weights"]


def test_normal_is_the_quantile_of_its_bits() -> None:
    raw = bit_source("normal").random_raw(4000)
    quantile = statistics.NormalDist().inv_cdf
    want = [quantile(((int(word) >> 12) + 0.5) * 2.0**-52) for word in raw]
    assert normal(raw) == pytest.approx(want, rel=1e-13)
    assert normal(~raw) == pytest.approx(-normal(raw), rel=1e-13)


def test_normal_at_the_ends_of_the_bits() -> None:
    ends = normal(np.array([0, 2**64 - 1, 2**63], dtype=np.uint64))
    assert ends[0] == -ends[1]
    assert 6.6 < ends[1] < 6.7
    assert 0.0 < ends[2] < 1e-15


def test_normal_moments() -> None:
    values = normal(bit_source("moments").random_raw(200_000))
    assert abs(values.mean()) < 5 / math.sqrt(values.size)
    assert abs(values.var() - 1.0) < 5 * math.sqrt(2 / values.size)
    assert abs((values**4).mean() - 3.0) < 5 * math.sqrt(96 / values.size)
    assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 5 / math.sqrt(values.size)


def test_logarithm_and_exponential_agree_with_the_c_library() -> None:
    x = np.exp2(np.linspace(-60.0, 60.0, 3001))
    assert logarithm(x) == pytest.approx(np.log(x), rel=1e-14)
    y = np.linspace(-140.0, 130.0, 3001)
    assert exp2(y) == pytest.approx(np.exp2(y), rel=1e-14)
    assert exp2(np.array([-3.0, 0.0, 5.0])).tolist() == [0.125, 1.0, 32.0]


def test_below_covers_its_range_evenly() -> None:
    counts = np.bincount(below(bit_source("below").random_raw(70_000), 7), minlength=7)
    assert counts.size == 7
    assert np.abs(counts - 10_000).max() < 500


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_serves_every_float(profile: str, dtype: str) -> None:
    for drawn in draw(with_dtype(gemm_case("grad-b", profile, m=20), dtype)).values():
        assert drawn.array.dtype == numpy_dtype(dtype)
        assert profile == "special" or np.isfinite(floats(drawn)).all()
        assert np.any(floats(drawn))


def test_uniform_and_log_uniform_keep_their_range() -> None:
    flat = floats(one_input("float32", {"kind": "uniform", "lo": -3.0, "hi": 5.0}))
    assert flat.min() >= -3.0
    assert flat.max() <= 5.0
    assert abs(flat.mean() - 1.0) < 0.3
    settings = {"kind": "log-uniform", "lo": -8.0, "hi": 0.0}
    signed = floats(one_input("float32", settings))
    assert abs(np.sign(signed).mean()) < 0.15
    assert abs(np.log2(np.abs(signed)).mean() + 4.0) < 0.3
    positive = floats(one_input("float32", {**settings, "sign": "positive"}))
    assert positive.tolist() == np.abs(signed).tolist()


@pytest.mark.parametrize(("n", "values"), [(16, {1, 2}), (8192, {1, 2}), (8193, {1})])
def test_exact_int_has_twos_only_for_short_sums(n: int, values: set[int]) -> None:
    drawn = draw(gemm_case("grad-a", "exact-int", n=n))
    for array in drawn.values():
        assert set(np.abs(floats(array)).ravel().astype(int)) == values
        assert abs(np.sign(floats(array)).mean()) < 0.3


@pytest.mark.parametrize("variant", ["grad-a", "grad-b"])
@pytest.mark.parametrize("length", [1, 7, 4096])
def test_ramp_has_positive_then_negative_products(variant: str, length: int) -> None:
    sizes = {"m": 16, "n": 16, "k": 16} | {"n" if variant == "grad-a" else "m": length}
    drawn = draw(gemm_case(variant, "exact-int-ramp", **sizes))
    x, y = (floats(array) for array in drawn.values())
    if variant == "grad-a":
        x, y = x.T, y.T
    products = x[:, :, None] * y[:, None, :]
    half = (length + 1) // 2
    assert (products[:half] > 0).all()
    assert (products[half:] < 0).all()
    if length == 4096:
        assert products.cumsum(axis=0).max() > 2 * 2048
        assert np.abs(products.sum(axis=0)).max() < 2048


@pytest.mark.parametrize("variant", ["grad-a", "grad-b"])
def test_cancelling_sums_are_small_beside_their_partial_sums(variant: str) -> None:
    drawn = draw(gemm_case(variant, "cancelling", m=301, n=301, k=16))
    x, y = (floats(array) for array in drawn.values())
    if variant == "grad-a":
        x, y = x.T, y.T
    assert set(x.shape) | set(y.shape) == {16, 301}
    partial = np.abs(np.einsum("tr,tc->trc", x, y).cumsum(axis=0))
    middle = np.outer(x[150], y[150])  # the term without a partner
    assert np.median(partial.max(axis=0)) > 5 * np.median(partial[-1])
    assert np.abs(partial[-1]).max() <= np.abs(middle).max() + 2.0


def test_large_makes_finite_infinite_and_undecided_results() -> None:
    x, y = (floats(a) for a in draw(gemm_case("grad-a", "large", m=32, n=40, k=32)).values())
    results, error = np.abs(x @ y.T), 40 * 2.0**-24 * (np.abs(x) @ np.abs(y.T))
    assert np.any(results + error < 65520)
    assert np.any(results - error >= 65520)
    assert np.any(np.abs(results - 65520) < error)
    assert np.any((x @ y.T) < -60000)


def test_large_sum_of_one_array_passes_the_threshold() -> None:
    tree = {
        **GEMM,
        "variants": {
            "sum": {
                **GEMM["variants"]["grad-a"],
                "inputs": {"x": {"dtype": "float16", "shape": ["n", "k"]}},
                "outputs": {"y": {"dtype": "float16", "shape": ["k"]}},
            }
        },
    }
    case = make_case(tree, "sum", {"m": 1, "n": 12, "k": 200}, "large")
    sums = np.abs(floats(draw(case)["x"]).sum(axis=0))
    assert np.any(sums < 65500)
    assert np.any(sums > 65540)
    assert np.any(np.abs(sums - 65520) < 1.0)


def test_subnormal_inputs_give_subnormal_results() -> None:
    x, y = (floats(a) for a in draw(gemm_case("grad-a", "subnormal", n=64)).values())
    assert np.abs(x).max() < 2.0**-14
    assert np.abs(y).max() > 2.0**-10
    tiny = np.abs(y) < 2.0**-14
    assert 0.05 < tiny.mean() < 0.25
    assert np.mean(np.abs(x @ y.T) < 2.0**-14) > 0.5
    assert np.mean(np.abs(x @ y.T) > 2.0**-24) > 0.5


def test_special_values_are_sparse_and_all_there() -> None:
    x = floats(draw(gemm_case("grad-a", "special", m=64, n=64))["grad_c"])
    assert np.isnan(x).sum() == 1
    assert 1 <= np.isposinf(x).sum() <= 2
    assert 1 <= np.isneginf(x).sum() <= 2
    zeros = x[x == 0]
    assert np.signbit(zeros).any()
    assert not np.signbit(zeros).all()


def test_a_constant_of_64_bits_is_exact() -> None:
    draw = {"kind": "constant", "value": "2 ** 64 - 1"}
    assert set(one_input("uint64", draw).array.flat) == {2**64 - 1}
    with pytest.raises(SpecError, match=r"is no int64"):
        one_input("int64", draw)


def test_constant() -> None:
    assert set(floats(one_input("float32", {"kind": "constant", "value": 1.5}))) == {1.5}
    assert np.isposinf(floats(one_input("float16", {"kind": "constant", "value": np.inf}))).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("kind", ["normal", "special", "uniform", "exact-int", "constant"])
def test_integers_fit_their_type(dtype: str, kind: str) -> None:
    values = one_input(dtype, {"kind": kind}).array.astype(object)
    assert len(set(values)) > 1 or kind == "constant"
    assert max(values) <= 200
    assert min(values) >= (0 if dtype.startswith("u") else -100)


def test_integer_range_is_inclusive_and_bools_are_mixed() -> None:
    values = one_input("int16", {"kind": "uniform", "lo": -2, "hi": 3}).array
    assert set(values.tolist()) == {-2, -1, 0, 1, 2, 3}
    assert 0.4 < one_input("bool", {"kind": "normal"}).array.mean() < 0.6
    assert one_input("bool", {"kind": "constant", "value": 0.0}).array.sum() == 0


def test_index_kinds() -> None:
    uniform = one_input("int32", {"kind": "index-uniform", "below": "rows"}).array
    assert set(uniform.tolist()) == set(range(50))
    unique = one_input("int32", {"kind": "index-unique", "below": "rows"}, (50,)).array
    assert sorted(unique.tolist()) == list(range(50))
    assert unique.tolist() != sorted(unique.tolist())
    hot = one_input("int64", {"kind": "index-hot", "below": 1000}).array
    counts = np.bincount(hot)
    assert 800 < counts.max() < 1200
    assert np.sort(counts)[-2] < 20


@pytest.mark.parametrize("size", [1, 2000])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
def test_index_out_of_range_has_some_of_each(size: int, dtype: str) -> None:
    settings = {"kind": "index-out-of-range", "below": "rows"}
    values = one_input(dtype, settings, (size,)).array.astype(object)
    outside = [value for value in values if not 0 <= value < 50]
    assert outside
    if size > 1:
        assert 0.08 < len(outside) / size < 0.17
        assert 50 in outside
        assert np.iinfo(np.dtype(dtype)).max in outside
        assert (-1 in outside) == (not dtype.startswith("u"))


@pytest.mark.parametrize(
    ("dtype", "settings", "error", "words"),
    [
        ("float16", {"kind": "gaussian"}, SpecError, "unknown kind of draw 'gaussian'"),
        ("float16", {"kind": "norml"}, SpecError, "did you mean normal"),
        ("float32", {"kind": "uniform", "lo": 2.0, "hi": 1.0}, SpecError, "not a range"),
        ("float32", {"kind": "uniform", "lo": math.nan}, SpecError, "not a range"),
        ("float16", {"kind": "uniform", "hi": 1e6}, SpecError, "overflows float16"),
        ("float16", {"kind": "log-uniform", "hi": 16.0}, SpecError, "overflows float16"),
        ("float64", {"kind": "log-uniform", "hi": 2000.0}, SpecError, "exponents of two"),
        ("float16", {"kind": "constant", "value": 1e5}, SpecError, "overflows float16"),
        ("int8", {"kind": "constant", "value": 200}, SpecError, "from -128 to 127"),
        ("int8", {"kind": "uniform", "lo": 0.5}, SpecError, "0.5 is no int8"),
        ("int32", {"kind": "uniform", "lo": 5, "hi": 4}, SpecError, "lo <= hi"),
        ("int32", {"kind": "index-uniform"}, SpecError, "add below"),
        ("float32", {"kind": "index-uniform", "below": 3}, SpecError, "draws integers"),
        ("float32", {"kind": "exact-int", "axis": 1}, SpecError, "axis 1 of x"),
        ("int32", {"kind": "index-unique", "below": "rows"}, NotRunError, "2000 different"),
        ("int32", {"kind": "index-uniform", "below": 0}, NotRunError, "cannot name a row"),
        ("int8", {"kind": "index-uniform", "below": 1000}, NotRunError, "more than int8"),
    ],
)
def test_draws_that_cannot_be(
    dtype: str, settings: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        one_input(dtype, settings)


def test_axis_of_the_draw_goes_before_the_derived_one() -> None:
    # An element-wise op shows no reduction; with axis -1 the ramp still has one.
    values = one_input("float32", {"kind": "exact-int-ramp", "axis": -1}, (3, 6)).array
    assert (values[:, :3] > 0).all()
    assert (values[:, 3:] < 0).all()
    plain = one_input("float32", {"kind": "exact-int-ramp"}, (3, 6)).array
    assert (plain > 0).all()


@pytest.mark.parametrize("kind", SHAPELESS)
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 0, 2), (2, 3, 4), ()])
def test_odd_shapes(kind: str, shape: tuple[int, ...]) -> None:
    dtype = "int32" if KINDS[kind].integers else "float16"
    settings = {"kind": kind, **NEEDED.get(kind, {})}
    assert one_input(dtype, settings, shape).array.shape == shape


@pytest.mark.parametrize("profile", ["normal", "cancelling", "exact-int-ramp", "large"])
def test_drawing_takes_little_more_memory_than_the_arrays(profile: str) -> None:
    """Each thread has parts of its own beside them, so that their number is fixed."""
    case = gemm_case("grad-a", profile, m=16, n=1024, k=2048)
    draw(gemm_case("grad-a", profile))
    tracemalloc.start()
    with parallel.sharing(2):
        drawn = draw(case)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * sum(array.array.nbytes for array in drawn.values())


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    case = gemm_case("grad-a", "normal", m=64, n=64)
    whole = draw(case)["grad_c"].sha256
    monkeypatch.setattr("tokitai_cli.spec.inputs.drawing._CHUNK", 1000)
    assert draw(case)["grad_c"].sha256 == whole
