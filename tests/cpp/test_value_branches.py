"""Comparisons by which kernels branch, both of their ways, and values that tell, each with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cpp.test_value_constraints import facts
from tokitai_cli.cpp.float_arithmetic import Numerics
from tokitai_cli.cpp.telling_values import telling_values
from tokitai_cli.cpp.tiles import tiles_of
from tokitai_cli.cpp.value_branches import Branch, ways_of
from tokitai_cli.cpp.value_constraints import Values


def told(values: Values, found: list[Branch]) -> list[tuple[str, float | str, int]]:
    """Each comparison with the number, or the name, that it is with, and its line."""
    numbers = ((one, values.number(one.operand)) for one in found)
    return [
        (one.sign, str(one.operand) if number is None else number, one.at.line if one.at else 0)
        for one, number in numbers
    ]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("int a = x[i];\nif (a == -1) y[i] = 0;", [("==", -1, 3)]),
        ("y[i] =\n  x[i] > 0 ? 1 : 2;", [(">", 0, 3)]),
        ("if (\n 0 > x[i]) y[i] = 0;", [("<", 0, 3)]),
        ("if (x[i]) y[i] = 0;", [("!=", 0, 2)]),
        ("bool on = !x[i];\nif (on) y[i] = 0;", [("!=", 0, 2)]),
        ("auto none = [](int a) {\n return a == END; };\nif (none(x[i])) y[i] = 0;", [("==", -3, 3)]),
        ("if (x[i] == other) y[i] = 0;", [("==", "other", 2)]),
        ("float a = x[i];\nif (a < 2.5f) y[i] = 0;", [("<", 2.5, 3)]),
        ("assert(x[i] >= 0);", []),
        ("while (x[i] != 0) {}", []),
        ("if (x[i] + y[i] == 0) y[i] = 1;", []),
        ("if (y[i] == 0) y[i] = 1;", []),
        ("if (x[i] & 6) y[i] = 1;\nif (x[i] >> 3 == 2) y[i] = 1;", []),
        ("switch (x[i]) {\n case 4: y[i] = 1; break;\n case END: y[i] = 2; break;\n default: break; }",
         [("==", 4, 3), ("==", -3, 4)]),
    ],
)  # fmt: skip
def test_branches_on_elements(
    tmp_path: Path, body: str, found: list[tuple[str, float | str, int]]
) -> None:
    values = Values(facts(tmp_path, body), {})
    assert told(values, values.branches("x")) == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("if (other == 2)\n y[i] = 0;", [("==", 2, 2)]),
        ("if (other >= 0 &&\n i > other) y[i] = 0;", [(">=", 0, 2), ("<", "i", 3)]),
        ("float f = other;\nif (f != 0) y[i] = 0;", [("!=", 0, 3)]),
        ("if (other) y[i] = 0;", [("!=", 0, 2)]),
        ("y[i] = other;", []),
        (
            "switch (other) {\n case 0: y[i] = 1; break;\n case 7: y[i] = 2; }",
            [("==", 0, 3), ("==", 7, 4)],
        ),
        ("if (2 * other == 0) y[i] = 0;", []),
    ],
)
def test_branches_on_arguments(
    tmp_path: Path, body: str, found: list[tuple[str, float | str, int]]
) -> None:
    values = Values(facts(tmp_path, body), {})
    assert told(values, values.branches_on("other")) == found


@pytest.mark.parametrize("sign", ["==", "!=", "<", "<=", ">", ">="])
def test_each_way_has_a_value_that_takes_it_alone(tmp_path: Path, sign: str) -> None:
    values = Values(facts(tmp_path, f"if (x[i] {sign} 5) y[i] = 0;"), {})
    (branch,) = values.branches("x")
    first, second = ways_of(branch, 5)
    assert eval(f"{first.value} {sign} 5")
    assert not eval(f"{second.value} {sign} 5")
    for way, other in ((first, second), (second, first)):
        assert way.takes(way.value)
        assert not way.takes(other.value)


MEAN = "float s = 0; for (int j = 0; j < n; ++j) s += w[j];\nfloat m = s / n, q = 0;\n"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (f"{MEAN}for (int j = 0; j < n; ++j) {{\n float d = w[j] - m;\n q += d * d; }} z[i] = q;",
         {("offset", 5)}),
        (f"{MEAN}float r = 0; for (int j = 0; j < n; ++j) r += w[j] * w[j];\nz[i] = r / n - m * m;",
         {("offset", 5)}),
        ("z[i] = 1;\nz[i] = expf(w[i]);", {("steep", 3)}),
        ("float m = w[0];\nfor (int j = 0; j < n; ++j)\n m = fmaxf(m, w[j]);\nz[i] = m;",
         {("negative", 4)}),
        ("float s = 0; for (int j = 0; j < n; ++j) s += w[j] * w[j];\nz[i] = z[i] / sqrtf(s);",
         {("zero-rows", 3)}),
        ("float d = w[i];\nif (d == 0)\n z[i] = 0; else z[i] = 1 / d;", {("some-zeros", 3)}),
        ("z[i] = w[i] * 2;", set()),
    ],
)  # fmt: skip
def test_values_that_tell_have_the_line_that_asks(
    tmp_path: Path, body: str, found: set[tuple[str, int]]
) -> None:
    read = facts(tmp_path, body)
    numerics, values = Numerics(read, {"w", "z"}), Values(read, {})
    every = [*telling_values(numerics, values, ["w"], ["float32"], ["i", "n"])]
    assert {(one.profile, one.at.line if one.at else 0) for one in every} == found
    assert all(one.arrays == {"w"} for one in every)


@pytest.mark.parametrize(
    ("bound", "size"),
    [("(n + 7) / 8", "n"), ("min((n + 7) / 8, 3)", "n"), ("min((n + 7) / 8, other)", "")],
)
def test_a_capped_loop_goes_over_the_tiles_of_its_size(
    tmp_path: Path, bound: str, size: str
) -> None:
    body = f"int last = {bound};\nfor (int t = 0; t < last; ++t) y[t * 8] = x[t * 8 + i];"
    found = tiles_of(facts(tmp_path, body), {"n": "n", "other": "other"})
    assert [(one.size, one.step, one.at and one.at.line) for one in found] == (
        [(size, "8", 3)] if size else []
    )
