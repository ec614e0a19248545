"""Which inputs and scalars a reference depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from tokitai_cli.core.python_source import function_text
from tokitai_cli.oracles.variants.dependence import MOST_ELEMENTS, dependence

X = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
AT = np.array([4, 0, 2], np.int32)
Ask = Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]


@pytest.mark.parametrize(
    ("ask", "ignored"),
    [
        (lambda i, s: {"y": i["x"] * 2}, ["w", "at", "mask", "eps", "n"]),
        (lambda i, s: {"y": i["x"].sum() * s["eps"] + 0 * s["n"]}, ["w", "at", "mask", "n"]),
        (
            lambda i, s: {"y": np.sort(i["x"], None)[::-1] - i["w"][0] * 0},
            ["w", "at", "mask", "eps", "n"],
        ),
        (lambda i, s: {"y": i["x"][i["at"]] + s["n"]}, ["w", "mask", "eps"]),
        (lambda i, s: {"y": np.argmax(i["x"]) + i["w"].sum()}, ["at", "mask", "eps", "n"]),
        (lambda i, s: {"y": np.where(i["mask"], i["x"][0], np.nan)}, ["w", "at", "eps", "n"]),
        (
            lambda i, s: {"y": (i["x"] - i["x"].mean()) / i["x"].std()},
            ["w", "at", "mask", "eps", "n"],
        ),
        (lambda i, s: {"y": np.zeros(3)}, ["x", "w", "at", "mask", "eps", "n"]),
        (
            lambda i, s: {"y": i["x"][: s["n"]].sum(0), "z": {"reference": i["w"]}},
            ["w", "at", "mask", "eps"],
        ),
    ],
)
def test_what_a_reference_ignores_is_named(ask: Ask, ignored: list[str]) -> None:
    inputs = {"x": X, "w": X[0], "at": AT, "mask": X[0] > 0}
    found = dependence(ask, inputs, {"eps": 1e-5, "n": 3})
    assert found is not None
    assert found.independent["y"] == ignored


def test_an_input_that_cannot_be_changed_counts_as_used() -> None:
    def ask(inputs: Mapping[str, Any], scalars: Mapping[str, Any]) -> Mapping[str, Any]:
        if inputs["at"][0] != 4:
            raise IndexError
        return {"y": inputs["x"]}

    found = dependence(ask, {"x": X, "at": AT}, {})
    assert found is not None
    assert found.independent == {"y": []}


def test_a_large_case_is_not_asked() -> None:
    large = {"x": np.zeros(MOST_ELEMENTS + 1, np.float32)}
    assert dependence(lambda inputs, scalars: {"y": inputs["x"]}, large, {}) is None


ONES = np.ones((1, 4), np.float32)


@pytest.mark.parametrize(
    ("formula", "x", "alike"),
    [
        (lambda x: np.repeat(x, 4), X[:1, :1], True),
        (lambda x: np.repeat(x, 4), ONES, False),
        (lambda x: x * 3, ONES, False),
        (lambda x: np.clip(x, 5, 6), X, False),
        (lambda x: x / x, X, False),
        (lambda x: np.repeat(np.maximum(x, 0), 4), -(X[:1, :1] ** 2), True),
        (lambda x: x.argmax(axis=1), X[:, :1], False),
        (lambda x: x, X[:1, :1], False),
    ],
)
def test_outputs_that_a_shape_makes_one_number_are_told_from_those_that_inputs_make_so(
    formula: Callable[[Any], Any], x: Any, alike: bool
) -> None:
    found = dependence(lambda inputs, scalars: {"y": formula(inputs["x"])}, {"x": x}, {})
    assert found is not None
    assert found.alike == (["y"] if alike else [])


def test_the_text_of_a_function_has_what_it_leads_to() -> None:
    text = """
import numpy as np

SCALE = 2

def helper(x):
    return x * SCALE

def other(x):
    return x

@np.vectorize
def right(params, inputs, scalars):
    return {"y": helper(inputs["x"])}
"""
    found = function_text(text, "right")
    assert found.startswith("SCALE = 2")
    assert "def helper" in found
    assert "@np.vectorize\ndef right" in found
    assert "other" not in found
    assert function_text(text, "none") == function_text("def (", "right") == ""
