"""Large cases by blocks of rows: the same bits as the whole, and none where rows are correlated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tokitai_cli.core import parallel
from tokitai_cli.oracles.output_parts import ArrayParts
from tokitai_cli.oracles.variants import by_rows as rows_module
from tokitai_cli.oracles.variants.answer import answer, evaluated
from tokitai_cli.oracles.variants.replay import replay
from tokitai_cli.oracles.variants.request import FormulaCall, Function, Request, request_of
from tokitai_cli.oracles.variants.wrong_outputs import recorded

ROWS, COLUMNS = 700, 40


def softmax(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    terms = np.exp(inputs["x"] - inputs["x"].max(axis=1, keepdims=True))
    return {"y": terms / terms.sum(axis=1, keepdims=True)}


def centred(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    return {"y": inputs["x"] - inputs["x"].sum(axis=0) / params["rows"]}


def neighbours(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    return {"y": inputs["x"] - np.roll(inputs["x"], 1, axis=0)}


def case_of(function: Function, x: NDArray[Any]) -> tuple[FormulaCall, Request]:
    asks = {
        "outputs": {"y": "float16"},
        "precision": {},
        "replay": True,
        "probable": True,
        "shapes": {"x": ["rows", "cols"], "y": ["rows", "cols"]},
    }
    call = FormulaCall(function, {"rows": len(x), "cols": x.shape[1]}, {"x": x}, {})
    return call, request_of(asks, __file__)


def bits(parts: ArrayParts) -> dict[str, bytes]:
    return {str(part): array.tobytes() for part, array in parts.given() if not part.key}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "_PART", 1 << 13)
    monkeypatch.setattr(rows_module, "_BLOCK", 1 << 9)
    monkeypatch.setattr(rows_module, "BLOCK", 1 << 9)


@pytest.mark.parametrize("kind", ["normal", "special", "equal"])
def test_blocks_of_rows_give_the_bits_of_the_whole(kind: str) -> None:
    x = np.random.default_rng(1).standard_normal((ROWS, COLUMNS)).astype(np.float16)
    if kind == "special":
        x[::50, 3], x[7::60, 5] = np.nan, np.inf
    if kind == "equal":
        x[:] = 1
    call, request = case_of(softmax, x)
    formula = recorded(call, request)
    assert formula.sample is not None
    whole = evaluated(call, request)["y"]
    found = []
    for threads in (1, 3):
        with parallel.sharing(threads):
            found.append(answer(call, request)["y"])
    assert bits(found[0]) == bits(found[1])
    for field in ("reference", "error_probable", "may_be_nan"):
        left, right = getattr(whole, field), getattr(found[0], field)
        assert left is right is None or left.tobytes() == right.tobytes()
    errors = [parts.errors() for parts in (whole, found[0])]
    assert errors[0] is not None
    assert errors[1] is not None
    if kind != "special":  # there the parts settle for themselves whether sides are told
        assert [one.tobytes() for one in errors[0]] == [one.tobytes() for one in errors[1]]


@pytest.mark.parametrize("function", [centred, neighbours])
@pytest.mark.parametrize("equal", [False, True])
def test_rows_that_hang_together_are_not_taken_apart(function: Function, equal: bool) -> None:
    x = np.random.default_rng(1).standard_normal((ROWS, COLUMNS)).astype(np.float16)
    if equal:  # so that every row by itself comes out as among all
        x[:] = 1
    call, request = case_of(function, x)
    found, whole = answer(call, request)["y"], evaluated(call, request)["y"]
    assert bits(found)[str(next(whole.given())[0])] == whole.reference.tobytes()
    mine, right = found.errors(), whole.errors()
    assert mine is not None
    assert right is not None
    assert [one.tobytes() for one in mine] == [one.tobytes() for one in right]


@pytest.mark.parametrize("row", [1, ROWS // 2 + 1, ROWS - 2])
def test_rows_that_hang_together_for_one_value_alone_are_not_taken_apart(row: int) -> None:
    def rare(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
        x = inputs["x"]
        return {"y": x + np.where(x > 100, np.roll(x, 301, axis=0), 0)}

    x = np.random.default_rng(1).standard_normal((ROWS, COLUMNS)).astype(np.float16)
    x[row, 3] = 200
    call, request = case_of(rare, x)
    found, whole = answer(call, request)["y"], evaluated(call, request)["y"]
    assert found.reference.tobytes() == whole.reference.tobytes()
    assert found.replay is not None
    np.testing.assert_array_equal(found.replay, replay(call.call)["y"])
