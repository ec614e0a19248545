"""Orders of atoms are the same in each run of the tool."""

from __future__ import annotations

from tokitai_cli.cpp.body.polynomial import composite, quotient, variable


def test_tuples_of_atoms_are_ordered_by_what_they_say() -> None:
    """An address of an object, as Python shows one by default, differs between runs."""
    by_four = quotient(variable("a"), variable("four"))
    least = composite("min", variable("a"), variable("b"))
    assert str(next(iter(by_four.terms))) == "((a) / four,)"
    assert str(next(iter(least.terms))) == "(min(a, b),)"
