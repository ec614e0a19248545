from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokitai_cli.core.errors import SpecError
from tokitai_cli.core.expressions import (
    MAX_DEPTH,
    MAX_LENGTH,
    evaluate,
    evaluate_real,
    holds,
    is_comparison,
    names_in,
)

NAMES = {"m": 64, "n": 5, "in": 3, "lambda_": 2}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (7, 7),
        ("7", 7),
        ("m", 64),
        ("in + 1", 4),
        ("m // 16", 4),
        ("-n // 2", -3),
        ("-n % 3", 1),
        ("n % -3", -1),
        ("m - n - 1", 58),
        ("m // 4 // 4", 4),
        ("2 + 3 * n", 17),
        ("(2 + 3) * n", 25),
        ("- - n", 5),
        ("+n", 5),
        ("ceil_div(n, 2)", 3),
        ("2 ** n - 1", 31),
        ("-2 ** 2", -4),
        ("2 ** in ** lambda_", 512),
        ("ceil_div(-n, 2)", -2),
        ("ceil_div(m, 64)", 1),
        ("min(m, n, 7)", 5),
        ("max(m)", 64),
        ("next_pow2(0)", 1),
        ("next_pow2(1)", 1),
        ("next_pow2(n)", 8),
        ("next_pow2(m)", 64),
        ("ceil_log2(1)", 0),
        ("ceil_log2(n)", 3),
        ("ceil_log2(m)", 6),
        ("ceil_log2(m + 1)", 7),
        ("max(32, next_pow2(ceil_div(m, 8)))", 32),
        (" m*\n2 ", 128),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775807", 1 - 2**63),
    ],
)
def test_values(text: str | int, value: int) -> None:
    assert evaluate(text, NAMES) == value


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("m % 16 == 0", True),
        ("n % 16 == 0", False),
        ("1 <= n < 5", False),
        ("1 <= n <= 5 < m", True),
        ("n != 5", False),
        ("n > 4 and m > 64", False),
        ("n > 4 and m >= 64", True),
        ("n == 4 or m == 64", True),
        ("n == 5 or n == 4 and m == 0", True),
        ("(n == 5 or n == 4) and m == 0", False),
        ("(m == 64)", True),
        ("n == 0 or 10 // n == 2", True),
        ("n == 5 or m // 0 == 1", True),
    ],
)
def test_comparisons(text: str, truth: bool) -> None:
    assert holds(text, NAMES) is truth
    assert is_comparison(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty expression"),
        ("  ", "empty expression"),
        ("m / 2", r"`/` .* position 3 of `m / 2`.*ceil_div"),
        ("m ** -1", "not an integer below"),
        ("2 ** 63", "not an integer below"),
        ("2 ** 99999", "a power of 99999"),
        ("m = 2", "use =="),
        ("m == 2 && n == 1", "use and"),
        ("m == 2 || n == 1", "use or"),
        ("not m == 2", "turn the comparison around"),
        ("(m", "never closed at position 1"),
        ("m)", r"unexpected `\)` at position 2"),
        ("m n", "unexpected `n`"),
        ("m +", "found the end"),
        ("min()", r"found `\)`"),
        ("min", "without arguments"),
        ("ceil_div(m)", "takes 2 arguments"),
        ("next_pow2(m, n)", "takes 1 argument at"),
        ("ceildiv(m, 2)", "did you mean ceil_div"),
        ("rows", "unknown name `rows` at position 1.*known: in, lambda_, m, n"),
        ("010", "leading zero.*write 10"),
        ("00", "write 0"),
        ("1_000", "is not an integer"),
        ("1.5", "is not an integer"),
        ("1e3", "is not an integer"),
        ("0x10", "is not an integer"),
        ("m.real", r"`\.` is not part"),
        ("m[0]", "is not part|unexpected"),
        ("'m'", "unexpected character"),
        ("m @ n", "unexpected character '@' at position 3"),
        ("m ≤ n", "unexpected character '≤'"),
        ("٣", "unexpected character"),
        ("m == 1", "comparison where a number is expected"),
        ("(m == 1) + 1", "comparison where a number is expected"),
        ("min(m == 1, 2)", "comparison where a number is expected"),
        ("m // (n - 5)", "division by zero"),
        ("m % 0", "division by zero"),
        ("ceil_div(m, 0)", "not positive"),
        ("ceil_div(m, -2)", "not positive"),
        ("next_pow2(-1)", "negative"),
        ("ceil_log2(0)", "not positive"),
        ("9223372036854775808", r"2\^63"),
        ("9223372036854775807 + 1 - 1", r"2\^63"),
        ("next_pow2(9223372036854775807)", r"2\^63"),
        ("1" + "0" * 150, r"2\^63"),
        ("1 +" * 67 + "1", f"longer than {MAX_LENGTH}"),
        ("-" * (MAX_DEPTH + 1) + "1", f"deeper than {MAX_DEPTH}"),
        ("(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1), f"deeper than {MAX_DEPTH}"),
        ("min(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1), f"deeper than {MAX_DEPTH}"),
        ("__import__('os')", "unknown function|unexpected character"),
    ],
)
def test_what_is_no_expression(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        evaluate(text, NAMES)
    assert caught.value.where is None


@pytest.mark.parametrize("text", ["m % 16", "m", "m and n == 1", "m == 1 and n", "(m == 1) == 1"])
def test_a_number_is_no_comparison(text: str) -> None:
    with pytest.raises(SpecError, match=r"where a (comparison|number) is expected"):
        holds(text, NAMES)


def test_large_integers_are_refused_as_plain_values_too() -> None:
    with pytest.raises(SpecError, match=r"2\^63"):
        evaluate(2**63, {})
    with pytest.raises(SpecError, match=r"2\^63"):
        evaluate("huge", {"huge": 2**63})


def test_names_in_order_of_appearance() -> None:
    assert names_in("n + min(m, n) * q") == ("n", "m", "q")
    assert names_in("b == 1 and a < c < b or d == 1") == ("b", "a", "c", "d")
    assert names_in("16") == names_in(16) == ()


def _terms(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.tuples(children, st.sampled_from(["+", "-", "*"]), children)
    return binary.map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})") | children.map(
        lambda part: f"-{part}"
    )


@settings(deadline=None)
@given(st.recursive(st.sampled_from(["m", "n", "3", "17"]), _terms, max_leaves=8))
def test_agrees_with_python(text: str) -> None:
    names = {"m": 6, "n": -4}
    assert evaluate(text, names) == eval(text, {}, dict(names))


@settings(deadline=None)
@given(st.integers(-(2**40), 2**40), st.integers(1, 2**20))
def test_functions_agree_with_their_definition(a: int, b: int) -> None:
    names = {"a": a, "b": b}
    assert evaluate("ceil_div(a, b)", names) == math.ceil(Fraction(a, b))
    assert b <= evaluate("next_pow2(b)", names) < 2 * b or b == 1
    assert evaluate("a // b", names) * b + evaluate("a % b", names) == a


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (0.1, 0.1),
        ("1 / sqrt(m)", 0.125),
        ("1 / sqrt(n)", 1 / math.sqrt(5)),
        ("10 ** -n", 1e-5),
        ("1 - 0.9 ** in", float(1 - Fraction(9, 10) ** 3)),
        ("1e-45 * m", 64e-45),
        ("n // 2 / 4", 0.5),
        ("2 ** -1074", None),
        ("max(1 / in, 0.25)", 1 / 3),
    ],
)
def test_real_expressions_are_rounded_once(text: str | float, value: float | None) -> None:
    if value is None:
        with pytest.raises(SpecError, match="a power of -1074"):
            evaluate_real(text, NAMES)
    else:
        assert evaluate_real(text, NAMES) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / (n - 5)", "division by zero"),
        ("0 ** -1", "division by zero"),
        ("sqrt(-n)", "sqrt of -5, which is negative"),
        ("2 ** 0.5", "exponents must be integers"),
        ("1e999", "too large for a float64"),
        ("n < 3", "is a comparison"),
        ("ceil_div(n, 0.5)", "takes integers"),
        (".5", "not part of the language"),
    ],
)
def test_real_expressions_that_have_no_value(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        evaluate_real(text, NAMES)
