"""Division of polynomials."""

from __future__ import annotations

from tokitai_cli.cpp.body.polynomial import constant, variable


def test_nothing_is_a_multiple_of_0() -> None:
    n = variable("n")
    assert n.over(constant(0)) is None
    assert (n + constant(1)).over(n - n) is None
    assert constant(0).over(constant(0)) is None


def test_quotients_of_sums_are_exact_or_none() -> None:
    n, m = variable("n"), variable("m")
    assert (n * m + n).over(m + constant(1)) == n
    assert (n * m + n).over(m + constant(2)) is None
