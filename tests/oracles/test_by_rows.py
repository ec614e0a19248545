"""Large cases by blocks of rows: the same bits as the whole, and none where rows are correlated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tokitai_cli.core import parallel
from tokitai_cli.oracles.formula.kept import keeping
from tokitai_cli.oracles.output_parts import ArrayParts
from tokitai_cli.oracles.variants import answer as answers
from tokitai_cli.oracles.variants import by_rows as rows_module
from tokitai_cli.oracles.variants import row_layout, wrong_outputs
from tokitai_cli.oracles.variants.answer import answer, evaluated
from tokitai_cli.oracles.variants.replay import replay
from tokitai_cli.oracles.variants.request import FormulaCall, Function, Request, request_of
from tokitai_cli.oracles.variants.single_product import is_product_by_rows
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
    monkeypatch.setattr(row_layout, "PART", 1 << 13)
    monkeypatch.setattr(row_layout, "_BLOCK", 1 << 9)
    monkeypatch.setattr(row_layout, "BLOCK", 1 << 9)


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


@pytest.mark.parametrize("threads", [1, 3])
def test_a_block_is_evaluated_once_for_reference_and_both_bounds(threads: int) -> None:
    rows: dict[str, list[int]] = {}

    def counted(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
        x = inputs["x"]
        kind = str(x.dtype) if isinstance(x, np.ndarray) else type(x).__name__
        rows.setdefault(kind, []).append(len(x))
        return softmax(params, inputs, scalars)

    x = np.random.default_rng(1).standard_normal((ROWS, COLUMNS)).astype(np.float16)
    call, request = case_of(counted, x)
    formula = recorded(call, request)
    layout = row_layout.layout_of(call, request, formula)
    assert layout is not None
    rows.clear()
    with parallel.sharing(threads):
        found = answer(call, request, formula)["y"]
    assert found.error_probable is not None
    assert found.replay is not None
    each = sorted(piece.rows.stop - piece.rows.start for piece in layout.pieces)
    assert sorted(rows.pop("Twofold")) == each
    assert sorted(rows.pop("float32")) == each
    assert sum(rows.pop("float64")) == ROWS  # beside other rows
    assert rows.keys() <= {"Changeable", "Factor"}  # wrong outputs, of a sample


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


def ranked(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    """The largest element and its index."""
    x = inputs["x"] * inputs["w"]
    return {"y": x.max(axis=1, keepdims=True) + 0 * x, "index": x.argmax(axis=1)}


@pytest.mark.parametrize("kind", ["certain", "open"])
def test_indices_are_taken_apart_where_rounding_leaves_none_open(kind: str) -> None:
    x = np.random.default_rng(1).standard_normal((ROWS, COLUMNS)).astype(np.float16)
    weights = np.ones(COLUMNS, np.float32)
    if kind == "open":  # two elements of the last row that rounding may bring to either order
        x[:-1] = np.arange(COLUMNS)
        x[-1] = 0
        weights[3], weights[4] = np.float32(4 / 3), np.nextafter(np.float32(4 / 3), np.float32(2))
        x[-1, 3:5] = np.float16(1.001)
    call, _ = case_of(ranked, x)
    call = FormulaCall(ranked, call.params, {"x": x, "w": weights}, {})
    asks = {
        "outputs": {"y": "float16", "index": "int64"},
        "precision": {},
        "shapes": {"x": ["rows", "cols"], "w": ["cols"], "y": ["rows", "cols"], "index": ["rows"]},
    }
    request = request_of(asks, __file__)
    whole, parts = evaluated(call, request)["index"], answer(call, request)["index"]
    assert (whole.allowed is not None) == (kind == "open")
    assert bits(parts) == bits(whole)
    formula = recorded(call, request)
    apart = rows_module.by_rows(call, request, formula, answers._sides)
    assert (apart is None) == (kind == "open")


def totals(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    return {"y": np.exp(inputs["x"]).sum(axis=1)}


def test_few_outputs_of_long_rows_are_taken_apart() -> None:
    x = np.random.default_rng(1).standard_normal((ROWS, COLUMNS)).astype(np.float16)
    asks = {
        "outputs": {"y": "float32"},
        "precision": {},
        "probable": True,
        "shapes": {"x": ["rows", "cols"], "y": ["rows"]},
    }
    call = FormulaCall(totals, {"rows": ROWS, "cols": COLUMNS}, {"x": x}, {})
    request = request_of(asks, __file__)
    apart = rows_module.by_rows(call, request, recorded(call, request), answers._sides)
    assert apart is not None
    whole = evaluated(call, request)["y"]
    assert bits(apart["y"]) == bits(whole)


@pytest.mark.parametrize("most", [1 << 27, 1 << 16])
def test_wrong_outputs_cost_no_more_than_their_work(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few outputs of long rows: the elements that each change goes over count."""
    monkeypatch.setattr(wrong_outputs, "_WORK", most)
    x = np.random.default_rng(1).standard_normal((ROWS, COLUMNS)).astype(np.float16)
    asks = {
        "outputs": {"y": "float32"},
        "precision": {},
        "shapes": {"x": ["rows", "cols"], "y": ["rows"]},
    }
    call = FormulaCall(totals, {"rows": ROWS, "cols": COLUMNS}, {"x": x}, {})
    request = request_of(asks, __file__)
    formula = recorded(call, request)
    assert formula.work == pytest.approx(2 * x.size, rel=0.01)  # of exp and of the sum
    found = answer(call, request)["y"]
    if most == 1 << 27:
        assert found.rows is None
        return
    assert found.rows is not None
    every = len(formula.changes())
    assert 4 < found.rows.size <= most * ROWS // (formula.work * every)
    assert len(found.changes) == every


def product(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    return {"y": inputs["x"] @ inputs["w"].T}


def turned(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    return {"y": inputs["w"] @ inputs["x"].T}


def product_case(function: Function, w_shape: list[str]) -> tuple[FormulaCall, Request]:
    rng = np.random.default_rng(2)
    x, w = (rng.standard_normal((ROWS, 300)).astype(np.float16) for _ in range(2))
    if w_shape[0] != "rows":
        w = w[:COLUMNS]
    shapes = {"x": ["rows", "k"], "w": w_shape, "y": ["rows", w_shape[0]]}
    asks = {"outputs": {"y": "float16"}, "precision": {}, "probable": True, "shapes": shapes}
    params = {"rows": ROWS, "cols": COLUMNS, "k": 300}
    return FormulaCall(function, params, {"x": x, "w": w}, {}), request_of(asks, __file__)


def test_a_product_by_parts_has_the_errors_of_the_whole() -> None:
    call, request = product_case(product, ["cols", "k"])
    assert is_product_by_rows(call, request, "rows")
    whole = evaluated(call, request)["y"]
    found = []
    for threads in (1, 2, 3, 16):
        with parallel.sharing(threads), keeping():
            found.append(answer(call, request)["y"])
    assert len({str(bits(one)) for one in found}) == 1
    for field in ("reference", "error", "error_probable"):
        mine, right = getattr(found[0], field), getattr(whole, field)
        np.testing.assert_allclose(mine, right, rtol=1e-6, atol=1e-12)
    error, probable = found[0].error, found[0].error_probable
    assert error is not None
    assert probable is not None
    assert np.all(error > probable)


@pytest.mark.parametrize(
    ("function", "w_shape"),
    [(product, ["rows", "k"]), (turned, ["cols", "k"]), (softmax, ["a", "b"])],
)
def test_what_is_no_product_of_the_rows_alone_is_compared_beside_others(
    function: Function, w_shape: list[str]
) -> None:
    call, request = product_case(function, w_shape)
    assert not is_product_by_rows(call, request, "rows")


@pytest.mark.parametrize(("scale", "calls"), [(1, 1), (1e4, 2)])
def test_infinities_of_a_mask_are_no_overflow(scale: float, calls: int) -> None:
    """A formula in which nothing overflows is not asked for what it gives without a largest float."""
    asked = []

    def masked(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
        asked.append(1)
        x = inputs["x"]
        seen = np.where(np.arange(COLUMNS) < 30, x, -np.inf)
        terms = np.exp(seen - seen.max(axis=1, keepdims=True))
        return {"y": terms / terms.sum(axis=1, keepdims=True) + 1e-30 * np.exp(x * scale / 1e4)}

    x = np.random.default_rng(1).standard_normal((9, COLUMNS)).astype(np.float16)
    x[0, 0] = 100
    call = FormulaCall(masked, {}, {"x": x}, {})
    request = request_of({"outputs": {"y": "float16"}, "precision": {}}, __file__)
    found = evaluated(call, request)["y"]
    assert len(asked) == calls
    assert (found.unbounded is not None) == (calls == 2)


QUERIES = 900


def scattered(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    """Sums of the rows of x by the rows that they name."""
    numbers, x = inputs["numbers"], inputs["x"]
    named = (numbers >= 0) & (numbers < params["rows"])
    sums = np.zeros_like(x, shape=(params["rows"], params["cols"]))
    np.add.at(sums, numbers[named], x[named])
    return {"y": sums}


def normalised(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    x = inputs["x"] - inputs["x"].max(axis=0)
    return scattered(params, {**inputs, "x": x}, scalars)


def averaged(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    return {"y": scattered(params, inputs, scalars)["y"] / params["queries"]}


def from_the_end(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    """Negative numbers count from the end."""
    numbers = np.where(inputs["numbers"] < 0, inputs["numbers"] + params["rows"], inputs["numbers"])
    return scattered(params, {**inputs, "numbers": numbers}, scalars)


def clipped(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    numbers = np.minimum(inputs["numbers"], params["rows"] - 1)
    return scattered(params, {**inputs, "numbers": numbers}, scalars)


def scattered_case(function: Function, kind: str) -> tuple[FormulaCall, Request]:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((QUERIES, COLUMNS)).astype(np.float16)
    numbers = rng.integers(0, ROWS, QUERIES).astype(np.int32)
    if kind == "one":
        numbers[::2] = 77
    if kind == "outside":
        numbers[:8] = [-1, -ROWS, ROWS, ROWS + 5, -1, 2 * ROWS, ROWS, -3]
    if kind == "few":
        numbers[:] = ROWS - 1
    asks = {
        "outputs": {"y": "float16"},
        "precision": {},
        "probable": True,
        "shapes": {"x": ["queries", "cols"], "numbers": ["queries"], "y": ["rows", "cols"]},
        "indices": {"numbers": "rows"},
    }
    params = {"rows": ROWS, "cols": COLUMNS, "queries": QUERIES}
    call = FormulaCall(function, params, {"x": x, "numbers": numbers}, {})
    return call, request_of(asks, __file__)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["normal", "one", "outside", "few"])
def test_rows_that_an_input_names_are_taken_apart_with_what_names_them(
    kind: str, threads: int
) -> None:
    call, request = scattered_case(scattered, kind)
    formula, whole = recorded(call, request), evaluated(call, request)["y"]
    numbers = call.inputs["numbers"]
    inside = numbers[(numbers >= 0) & (numbers < ROWS)]
    total = formula.sum_of("y")
    assert total is not None
    assert total.terms == np.bincount(inside).max()
    with parallel.sharing(threads):
        apart = rows_module.by_rows(call, request, formula, answers._sides)
    assert apart is not None
    assert bits(apart["y"]) == bits(whole)


@pytest.mark.parametrize("function", [normalised, averaged, from_the_end, clipped])
def test_named_rows_that_hang_together_are_not_taken_apart(function: Function) -> None:
    call, request = scattered_case(function, "outside")
    formula = recorded(call, request)
    assert rows_module.by_rows(call, request, formula, answers._sides) is None
    assert bits(answer(call, request)["y"]).items() >= bits(evaluated(call, request)["y"]).items()


HEADS = 12


def attended(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    """A product of each head's own matrices, larger than what is read and written."""
    scores = inputs["q"] @ inputs["k"].swapaxes(-1, -2)
    terms = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return {"y": (terms @ inputs["k"]) / terms.sum(axis=-1, keepdims=True)}


def of_all_heads(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    return {"y": attended(params, inputs, scalars)["y"] - inputs["q"].mean(axis=0)}


def heads_case(function: Function, heads: int) -> tuple[FormulaCall, Request]:
    rng = np.random.default_rng(4)
    q, k = (rng.standard_normal((heads, 60, 8)).astype(np.float16) for _ in range(2))
    asks = {
        "outputs": {"y": "float16"},
        "precision": {},
        "shapes": {name: ["heads", "n", "dim"] for name in ("q", "k", "y")},
    }
    call = FormulaCall(function, {"heads": heads, "n": 60, "dim": 8}, {"q": q, "k": k}, {})
    return call, request_of(asks, __file__)


@pytest.mark.parametrize("heads", [HEADS, 90])
def test_products_within_rows_are_made_row_by_row(
    heads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_layout, "_WORTH", 1)
    monkeypatch.setattr(row_layout, "SHARED", 1 << 11)
    monkeypatch.setattr(wrong_outputs, "SHARED", 1 << 11)
    monkeypatch.setattr(wrong_outputs, "_WHOLE", 1 << 10)
    most: list[int] = []

    def counted(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
        most.append(len(inputs["q"]))
        return attended(params, inputs, scalars)

    call, request = heads_case(counted, heads)
    formula = recorded(call, request)
    assert formula.sample is not None
    assert formula.sample.longest == 60 * 60
    layout = row_layout.layout_of(call, request, formula)
    assert layout is not None
    assert not layout.products
    assert layout.one_by_one
    found = answer(call, request, formula)["y"]
    assert max(most) == 2  # beside another one
    whole, _ = heads_case(attended, heads)
    right = evaluated(whole, request)["y"]
    assert found.reference.tobytes() == right.reference.tobytes()
    mine, other = found.errors(), right.errors()
    assert mine is not None
    assert other is not None
    assert [one.tobytes() for one in mine] == [one.tobytes() for one in other]


def test_heads_that_hang_together_are_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_layout, "_WORTH", 1)
    call, request = heads_case(of_all_heads, HEADS)
    formula = recorded(call, request)
    assert rows_module.by_rows(call, request, formula, answers._sides) is None
