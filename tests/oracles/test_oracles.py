from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import mpmath
import msgspec
import numpy as np
import pytest

from tests.drawing import PROFILES, gemm_case, make_case, with_dtype
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.errors import NotRunError, OracleError, SpecError
from tokitai_cli.core.model.case import Case, ScalarValue
from tokitai_cli.core.model.expectation import Expectation, Replay
from tokitai_cli.core.model.spec import PropertyName
from tokitai_cli.core.numerics import MAY_BE_EITHER, overflow_class, round_to
from tokitai_cli.oracles import references, sequential
from tokitai_cli.oracles.properties import PROPERTIES
from tokitai_cli.spec.inputs import draw

FIXTURES = Path(__file__).parents[1] / "oracle_fixtures"
Arrays = Mapping[str, np.ndarray[Any, Any]]


def arrays_of(case: Case) -> dict[str, np.ndarray[Any, Any]]:
    return {name: drawn.array for name, drawn in draw(case).items()}


def operands(case: Case, arrays: Arrays) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """X [r, n] and Y [n, c] of the product."""
    if case.variant_name == "grad-a":
        return arrays["grad_c"], arrays["b"].T
    return arrays["a"].T, arrays["grad_c"]


def expectation(case: Case, arrays: Arrays) -> Expectation:
    (result,) = references.expect(case, arrays).values()
    return result


def replayed(case: Case, arrays: Arrays, seed: int | None = None) -> Replay:
    (result,) = references.replay(case, arrays, seed).values()
    return result


@pytest.mark.parametrize("variant", ["grad-a", "grad-b"])
@pytest.mark.parametrize("profile", ["normal", "log-uniform", "cancelling", "subnormal"])
def test_reference_and_bound_against_exact_arithmetic(variant: str, profile: str) -> None:
    case = gemm_case(variant, profile, m=5, n=7, k=6)
    arrays = arrays_of(case)
    x, y = operands(case, arrays)
    got = expectation(case, arrays)
    assert got.error is not None
    assert got.terms == x.shape[1]
    u = mpmath.mpf(2) ** -24
    with mpmath.workprec(200):
        for i, j in np.ndindex(got.reference.shape):
            pairs = [
                (mpmath.mpf(float(a)), mpmath.mpf(float(b)))
                for a, b in zip(x[i], y[:, j], strict=True)
            ]
            exact = mpmath.fsum(a * b for a, b in pairs)
            size = mpmath.fsum(abs(a * b) for a, b in pairs)
            n = len(pairs)
            assert abs(exact - float(got.reference[i, j])) <= n * size * mpmath.mpf(2) ** -53
            bound = (n - 1) * u / (1 - (n - 1) * u) * size
            error = float(got.error[i, j])  # 0 where float32 adds all terms without rounding
            assert error == 0 or bound <= error <= bound * (1 + n * mpmath.mpf(2) ** -23)
            if not error:
                assert float(got.reference[i, j]) == brute_force(x[i : i + 1], y[:, j : j + 1])


def test_a_claimed_tree_narrows_the_bound() -> None:
    whole = gemm_case("grad-a", "normal", n=1024)
    tree = gemm_case("grad-a", "normal", n=1024, reduction={"tree": "ceil_div(n, 32) - 1 + 5"})
    arrays = arrays_of(whole)
    wide, narrow = expectation(whole, arrays).error, expectation(tree, arrays).error
    assert wide is not None
    assert narrow is not None
    assert wide.all()
    assert np.allclose(wide / narrow, 1024 / (32 - 1 + 5 + 1), rtol=1e-3)


def test_a_tree_lower_than_any_is_a_spec_error() -> None:
    case = gemm_case("grad-a", "normal", n=1024, reduction={"tree": 9})
    with pytest.raises(SpecError, match="at least 10 are needed"):
        expectation(case, arrays_of(case))


@pytest.mark.parametrize("profile", ["exact-int", "exact-int-ramp", "constant"])
def test_integers_have_no_error(profile: str) -> None:
    case = gemm_case("grad-a", "uniform" if profile == "constant" else profile, n=2049)
    arrays = arrays_of(case)
    if profile == "constant":
        arrays = {name: np.full_like(array, 0.25) for name, array in arrays.items()}
    error = expectation(case, arrays).error
    assert error is not None
    assert not error.any()


def test_integers_beyond_what_float32_counts_have_an_error() -> None:
    case = gemm_case("grad-a", "uniform", n=64)
    arrays = {name: np.full_like(array, 601.0) for name, array in arrays_of(case).items()}
    error = expectation(case, arrays).error  # 64 * 601 * 601 is above 2^24
    assert error is not None
    assert (error > 0).all()


@pytest.mark.parametrize(("value", "words"), [(601.0, r"below 2\^24"), (9.0, "above 2048")])
def test_exact_int_that_is_not_exact_is_not_run(value: float, words: str) -> None:
    case = gemm_case("grad-a", "exact-int", n=65)
    arrays = {name: np.full_like(array, value) for name, array in arrays_of(case).items()}
    with pytest.raises(NotRunError, match=words):
        expectation(case, arrays)


def brute_force(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Float32 sums in index order, one element at a time."""
    result = np.zeros((x.shape[0], y.shape[1]), dtype=np.float32)
    with np.errstate(all="ignore"):
        for i, j in np.ndindex(result.shape):
            total = np.float32(0)
            for a, b in zip(x[i], y[:, j], strict=True):
                total = np.float32(total + np.float32(a) * np.float32(b))
            result[i, j] = total
    return result


@pytest.mark.parametrize("variant", ["grad-a", "grad-b"])
@pytest.mark.parametrize("seed", range(3))
def test_special_values_follow_ieee(variant: str, seed: int) -> None:
    case = gemm_case(variant, "normal", m=12, n=13, k=14)
    generator = np.random.Generator(np.random.PCG64(seed))
    arrays = {}
    for name, drawn in arrays_of(case).items():
        array = drawn.copy()
        places = generator.choice(array.size, 12, replace=False)
        array.reshape(-1)[places] = (
            [np.nan, np.inf, np.inf, -np.inf, -np.inf] + [0.0, -0.0] * 3 + [1]
        )
        arrays[name] = array
    reference = expectation(case, arrays).reference
    want = brute_force(*operands(case, arrays))
    assert np.isnan(want).any()
    assert np.isposinf(want).any()
    assert np.isneginf(want).any()
    assert np.isfinite(want).any()
    finite = np.isfinite(want)
    assert np.array_equal(np.isfinite(reference), finite)
    assert np.array_equal(reference[~finite], want[~finite], equal_nan=True)


def test_many_infinities_are_counted_in_pieces() -> None:
    case = gemm_case("grad-a", "normal", n=1030)
    arrays = {name: np.full_like(a, np.inf) for name, a in arrays_of(case).items()}
    assert np.isposinf(expectation(case, arrays).reference).all()
    arrays["b"][3, 1029] = -np.inf
    arrays["b"][5, 2] = 0.0
    reference = expectation(case, arrays).reference
    assert np.flatnonzero(np.isnan(reference).all(axis=0)).tolist() == [3, 5]
    assert np.isposinf(np.delete(reference, [3, 5], axis=1)).all()


def test_flushed_inputs_widen_the_bound_by_what_they_carry() -> None:
    case = gemm_case("grad-a", "normal", flush_to_zero=True)
    arrays = {name: np.ones_like(array) for name, array in arrays_of(case).items()}
    arrays["b"][2, :4] = 2.0**-15
    got = expectation(case, arrays)
    assert got.error is not None
    assert (got.error[:, 2] >= 4 * 2.0**-15).all()
    assert (got.error[:, 2] <= 4 * 2.0**-15 + 16 * 17 * 2.0**-24).all()
    plain = expectation(gemm_case("grad-a", "normal"), arrays)
    assert plain.error is not None
    assert (plain.error[:, 2] < 2.0**-19).all()


def test_infinity_times_a_flushed_number_is_left_open() -> None:
    case = gemm_case("grad-a", "normal", flush_to_zero=True)
    arrays = {name: np.ones_like(array) for name, array in arrays_of(case).items()}
    arrays["grad_c"][1, 0] = np.inf
    arrays["b"][2, 0] = 2.0**-20
    got = expectation(case, arrays)
    classes = overflow_class(got.reference, got.error, FORMATS["float16"])
    assert classes[1, 2] == MAY_BE_EITHER
    assert got.may_be_nan is not None
    assert got.may_be_nan[1, 2]
    assert np.isposinf(got.reference[1, [0, 1, 3]]).all()


def test_float32_inputs_may_overflow_and_underflow_the_accumulator() -> None:
    case = with_dtype(gemm_case("grad-a", "normal", n=4), "float32")
    big = {name: np.full_like(a, 1e19) for name, a in arrays_of(case).items()}
    want = expectation(case, big)  # every order ends in +inf
    assert np.isfinite(np.asarray(want.error)).all()
    assert (want.reference - np.asarray(want.error) >= FORMATS["float32"].overflow).all()
    signed = {name: np.where(np.arange(4) < 3, 2e19, -2e19).astype(a.dtype) * np.ones_like(a)
              for name, a in big.items()}  # fmt: skip
    signed["b"] = np.full_like(big["b"], 2e19)  # one order ends in +inf, another one in -inf
    assert np.isinf(np.asarray(expectation(case, signed).error)).all()
    small = {name: np.full_like(a, 2.0**-75) for name, a in arrays_of(case).items()}
    error = np.asarray(expectation(case, small).error)
    assert (error >= 4 * 2.0**-150).all()


@pytest.mark.parametrize("variant", ["grad-a", "grad-b"])
def test_dropped_terms(variant: str) -> None:
    case = gemm_case(variant, "normal", m=20, n=24, k=28)
    arrays = arrays_of(case)
    x, y = (part.astype(np.float64).copy() for part in operands(case, arrays))
    x[:, 3] = np.copysign(64, x[:, 3])  # the heaviest term
    stored = x.astype(np.float16)
    changed = dict(arrays)
    changed["grad_c" if variant == "grad-a" else "a"] = stored if variant == "grad-a" else stored.T
    got = expectation(case, changed)
    assert set(got.dropped) == {"last-term-dropped", "heaviest-term-dropped"}
    last = got.dropped["last-term-dropped"]()
    heaviest = got.dropped["heaviest-term-dropped"]()
    x = stored.astype(np.float64)
    assert np.allclose(last, x[:, :-1] @ y[:-1], atol=1e-9)
    assert np.allclose(heaviest, np.delete(x, 3, axis=1) @ np.delete(y, 3, axis=0), atol=1e-9)


def test_a_sum_of_one_term_has_none_to_drop() -> None:
    case = gemm_case("grad-a", "normal", n=1)
    assert expectation(case, arrays_of(case)).dropped == {}


@pytest.mark.parametrize("variant", ["grad-a", "grad-b"])
@pytest.mark.parametrize("profile", PROFILES)
def test_replay_is_the_scalar_loop_bit_by_bit(variant: str, profile: str) -> None:
    case = gemm_case(variant, profile, m=6, n=9, k=7)
    arrays = arrays_of(case)
    want = round_to(brute_force(*operands(case, arrays)).astype(np.float64), "float16")
    got = replayed(case, arrays)
    assert got.rows is None
    assert got.values.dtype == np.float16
    nan = np.isnan(want)
    assert np.array_equal(np.isnan(got.values), nan)
    assert np.array_equal(got.values.view(np.uint16)[~nan], want.view(np.uint16)[~nan])


@pytest.mark.parametrize("shape", [(300, 5, 16), (16, 5, 300), (140, 3, 150), (0, 4, 16)])
def test_replay_blocks_do_not_show(
    shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = gemm_case("grad-a", "normal", m=shape[0], n=shape[1], k=shape[2])
    arrays = arrays_of(case)
    whole = replayed(case, arrays).values
    monkeypatch.setattr(sequential, "_BLOCK", 97)
    assert np.array_equal(replayed(case, arrays).values, whole)


def test_large_replay_judges_a_seeded_sample_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    case = gemm_case("grad-a", "normal", m=64)
    arrays = arrays_of(case)
    whole = replayed(case, arrays).values
    monkeypatch.setattr(sequential, "_WHOLE", 64 * 16 * 16 - 1)
    monkeypatch.setattr(sequential, "_SAMPLE", 10 * 16 * 16)
    monkeypatch.setattr(sequential, "_LEAST", 16)
    sample = replayed(case, arrays)
    assert sample.rows is not None
    rows = sample.rows.tolist()
    assert len(rows) == 10
    assert rows == sorted(set(rows))
    assert np.array_equal(sample.values, whole[rows])
    monkeypatch.setattr(sequential, "_LEAST", 4)
    more = replayed(case, arrays).rows
    assert more is not None
    assert len(more) == 16
    other = replayed(case, arrays, seed=5).rows
    assert other is not None
    assert other.tolist() != rows


def test_no_replay_where_none_is_named_or_products_are_not_exact() -> None:
    case = gemm_case("grad-a", replay="")
    assert references.replay(case, arrays_of(case)) == {}
    flushing = gemm_case("grad-a", flush_to_zero=True)
    assert references.replay(flushing, arrays_of(flushing)) == {}
    single = with_dtype(gemm_case("grad-a"), "float32")
    assert references.replay(single, arrays_of(single)) == {}
    brain = with_dtype(gemm_case("grad-a"), "bfloat16")
    assert list(references.replay(brain, arrays_of(brain))) == ["grad_a"]
    tiny = with_dtype(gemm_case("grad-a", "subnormal"), "bfloat16")
    assert references.replay(tiny, arrays_of(tiny)) == {}


def test_names_and_near_names() -> None:
    assert {"gemm-bw.grad-a", "gemm-bw.grad-b"} <= set(references.names())
    case = gemm_case("grad-a", oracle="gemm-bw.grada", replay="gemm.grad-a")
    with pytest.raises(SpecError, match=r"did you mean gemm-bw\.grad-a"):
        references.expect(case, {})
    with pytest.raises(SpecError, match=r"unknown replay 'gemm\.grad-a'"):
        references.replay(case, {})


def test_arrays_of_another_op_are_refused() -> None:
    case = gemm_case("grad-a", oracle="gemm-bw.grad-b")
    with pytest.raises(SpecError, match="reads a"):
        references.expect(case, arrays_of(case))
    crossed = gemm_case(
        "grad-a", m=16, k=32, outputs={"grad_a": {"dtype": "float16", "shape": ["k", "m"]}}
    )
    with pytest.raises(SpecError, match=r"cannot judge grad_a \[32, 16\]"):
        references.expect(crossed, arrays_of(crossed))


def test_zero_elements() -> None:
    case = gemm_case("grad-a", m=0)
    assert expectation(case, arrays_of(case)).reference.shape == (0, 16)


def user_case(
    function: str, *, file: str = "oracles.py", dtype: str = "float16", n: int = 4
) -> Case:
    """Element-wise op y = f(x) whose oracle is in a file of the fixtures."""
    scalars = {
        "alpha": {"dtype": "float16", "value": 0.1},
        "count": {"dtype": "int64", "value": -3},
    }
    tree: dict[str, Any] = {
        "schema": "tokitai/spec/v1",
        "op": "mine",
        "title": "mine",
        "params": {"n": {"default": n}},
        "variants": {
            "fwd": {
                "source": "mine.hip",
                "inputs": {"x": {"dtype": dtype, "shape": ["n"]}},
                "outputs": {"y": {"dtype": dtype, "shape": ["n"]}},
                "scalars": scalars,
                "launches": [{"kernel": "k", "grid": [1], "block": [1], "args": []}],
                "oracle": f"{file}:{function}",
                "checks": [{"metric": "abs", "limit": 0.0}],
            }
        },
        "profiles": {"normal": {"draw": "normal"}},
    }
    case = make_case(tree, "fwd", {"n": n}, "normal", folder=FIXTURES)
    alpha = ScalarValue("alpha", "float16", np.float16(0.1).tobytes(), "0.1")
    count = ScalarValue("count", "int64", struct.pack("<q", -3), "-3")
    return msgspec.structs.replace(case, scalars=(alpha, count))


def ask(case: Case, timeout: float = 60.0) -> Expectation:
    return references.expect(case, arrays_of(case), timeout=timeout)["y"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_user_oracle(dtype: str) -> None:
    case = user_case("good", dtype=dtype)
    got = ask(case)
    assert got.error is None
    assert got.reference.dtype == np.float64
    assert got.reference.tolist() == (2 * arrays_of(case)["x"].astype(np.float64)).tolist()


def test_user_oracle_with_sides_wrong_outputs_and_nan() -> None:
    case = user_case("sided")
    logged: list[str] = []
    got = references.expect(case, arrays_of(case), log=logged.append)["y"]
    x = arrays_of(case)["x"].astype(np.float64)
    assert got.error is not None
    assert got.error_below is not None
    assert got.error_above is not None
    assert got.may_be_nan is not None
    np.testing.assert_array_equal(got.error, np.abs(x))
    np.testing.assert_array_equal(got.error_below, np.abs(x) / 4)
    np.testing.assert_array_equal(got.may_be_nan, x > 0)
    assert {name: made().tolist() for name, made in got.dropped.items()} == {
        "last-term-dropped": (x - 1).tolist(),
        "halved": (x / 2).tolist(),
    }
    assert got.terms is None
    # What it prints when it is asked again is nobody's.
    assert logged == ["any"]


def test_a_set_of_integers_and_their_error() -> None:
    got = ask(user_case("choices", dtype="int32"))
    assert got.allowed is not None
    assert got.allowed.tolist() == [[1, 2, 3, 4], [2, 3, 4, 5]]
    assert got.error is not None
    assert got.error.tolist() == [0.0, 0.5, 1.0, 1.5]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("one_side", "y has one of error_below and error_above"),
        ("both_errors", "y has error beside error_below"),
        ("wrong_names", "wrong of y is not a dict with names such as 'last-term-dropped'"),
        ("short_wrong", r"wrong output short of y has shape \[1\], not \[4\]"),
    ],
)
def test_parts_of_an_answer_that_do_not_fit(function: str, words: str) -> None:
    with pytest.raises(OracleError, match=words):
        ask(user_case(function))


def test_the_oracle_is_asked_again_with_slices_of_its_inputs_zeroed() -> None:
    case = user_case("good")
    x = arrays_of(case)["x"].astype(np.float64)
    last, heaviest = ask(case).zeroed
    assert (last.which, last.input, last.axis, last.index, last.stride) == ("last", "x", 0, 3, 1)
    assert last.values.tolist() == [*(2 * x[:3]), 0.0]
    assert heaviest.index == int(np.argmax(np.abs(x)))
    # A slice that the oracle refuses is left out, and one that takes long is not asked for.
    assert [one.which for one in ask(user_case("summed")).zeroed] == (
        [] if heaviest.index == 3 else ["heaviest"]
    )
    assert ask(user_case("slow"), timeout=11).zeroed == ()
    # Nor is the only slice of an axis that the output has.
    assert ask(user_case("good", n=1)).zeroed == ()


def test_user_oracle_with_error_and_unwritten_elements() -> None:
    case = user_case("with_error")
    got, x = ask(case), arrays_of(case)["x"]
    assert np.array_equal(np.asarray(got.error), np.abs(x.astype(np.float64)) * 2.0**-24)
    assert np.array_equal(np.asarray(got.may_be_unwritten), x > 0)


def test_user_oracle_gets_scalars_as_the_kernel_does() -> None:
    case = user_case("scaled")
    x = arrays_of(case)["x"].astype(np.float64)
    assert ask(case).reference.tolist() == (x * float(np.float16(0.1)) - 3).tolist()


def test_user_oracle_works_on_copies_and_may_print() -> None:
    case = user_case("changes_inputs")
    arrays = arrays_of(case)
    before = arrays["x"].copy()
    assert not references.expect(case, arrays)["y"].reference.any()
    assert np.array_equal(arrays["x"], before)
    printing = user_case("prints")
    printed: list[str] = []
    references.expect(printing, arrays_of(printing), log=printed.append)
    assert printed == ["hello from the oracle\nand on stderr"]


def test_user_oracle_of_integers() -> None:
    got = ask(user_case("integers", dtype="int8"))
    assert got.reference.dtype == np.int8
    assert got.reference.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("raises", r"oracles\.py:\d+: raised IndexError: list index out of range"),
        ("raises", "it printed:\n  before the fault"),
        ("leaves", r"oracles\.py:\d+: raised SystemExit: 3"),
        ("exits", r"ended without an answer \(exit 0\)"),
        ("aborts", r"ended without an answer \(signal 6\)"),
        ("returns_list", "returned list, not a dict of outputs"),
        ("returns_scalar", "reference of y is float, not a numpy array"),
        ("returns_text", "is not numeric but <U1"),
        ("returns_objects", "is not numeric but object"),
        ("returns_complex", "is not numeric but complex128"),
        ("returns_half", "reference of y is float16, not float64"),
        ("wrong_shape", r"reference of y has shape \[4, 1\], not \[4\]"),
        ("nothing", "returned nothing for y"),
        ("wrong_name", "returned z, which is not an output"),
        ("no_reference", "returned no reference for y"),
        ("unknown_part", "returned 'tolerance' of y; known: reference, error"),
        ("part_of_formulas", "returned 'changes' of y; known: reference, error"),
        ("negative_error", "error of y has negative values or NaN"),
        ("nan_error", "error of y has negative values or NaN"),
        ("narrow_error", "error of y is float32, not float64"),
        ("missing", "oracles.py defines no function missing"),
        ("not_a_function", "oracles.py defines no function not_a_function"),
    ],
)
def test_faults_of_user_oracles_are_named(function: str, words: str) -> None:
    with pytest.raises(OracleError, match=words) as caught:
        ask(user_case(function))
    assert "variants.fwd.oracle" in str(caught.value)


def test_user_oracle_that_hangs_is_ended() -> None:
    start = time.monotonic()
    with pytest.raises(OracleError, match=r"gave no answer in 1\.5 s .*--timeout.*shorter axis"):
        ask(user_case("hangs"), timeout=1.5)
    assert time.monotonic() - start < 60


@pytest.mark.parametrize(
    ("function", "dtype", "words"),
    [
        ("too_large_integers", "int8", "values that int8 cannot hold"),
        ("good", "int32", "reference of y is float64, not int32"),
        ("integers", "bool", "reference of y is int64, not bool"),
        ("error_of_bools", "bool", "bool outputs are exact and have none"),
    ],
)
def test_integer_outputs_are_exact(function: str, dtype: str, words: str) -> None:
    with pytest.raises(OracleError, match=words):
        ask(user_case(function, dtype=dtype))


def test_files_that_are_no_oracle() -> None:
    with pytest.raises(OracleError, match=r"no file absent\.py next to the spec"):
        ask(user_case("f", file="absent.py"))
    with pytest.raises(OracleError, match=r"syntax\.txt:1: raised SyntaxError"):
        ask(user_case("broken", file="syntax.txt"))


def test_identity_follows_the_source(tmp_path: Path) -> None:
    user = user_case("f", file="mine.py").variant
    (tmp_path / "mine.py").write_text("def f(params, inputs, scalars): ...\n")
    first = references.identity(user, tmp_path)
    (tmp_path / "mine.py").write_text("def f(params, inputs, scalars): pass\n")
    assert references.identity(user, tmp_path) != first
    assert len(first) == 64
    with pytest.raises(OracleError, match=r"cannot read the oracle mine\.py"):
        references.identity(user, tmp_path / "elsewhere")
    built_in = gemm_case("grad-a").variant
    assert references.identity(built_in, tmp_path) == references.identity(built_in, Path())


def test_scaled_integers_are_exact_too() -> None:
    case = gemm_case("grad-a", "exact-int", n=300)
    arrays = {name: array * np.float16(2.0**-7) for name, array in arrays_of(case).items()}
    got = expectation(case, arrays)
    assert got.error is not None
    assert not got.error.any()
    assert got.reference.any()


def test_the_properties_of_specs_are_those_that_oracles_state() -> None:
    stated = {name for known in PROPERTIES.values() for name in known}
    assert stated == set(get_args(PropertyName))
