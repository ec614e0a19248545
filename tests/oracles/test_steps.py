"""Changed formulas: what is done again of their steps is what the whole formula gives, to the bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tokitai_cli import spec
from tokitai_cli.core import resources
from tokitai_cli.oracles import builtin
from tokitai_cli.oracles.case_request import scalars
from tokitai_cli.oracles.variants import changeable
from tokitai_cli.oracles.variants.request import FormulaCall, Function
from tokitai_cli.oracles.variants.wrong_formulas import Recorded
from tokitai_cli.spec import inputs, plan

# gelu's erf goes on in plain arrays, and a cast is no operation.
OTHERS = ("gelu", "fp8-cast")
SPECS = resources.specs_dir()
X = np.random.default_rng(3).standard_normal((5, 8)).astype(np.float32)
X[1, 2:4] = np.nan, -0.0


def record(call: FormulaCall, file: str = __file__) -> Recorded:
    return changeable.recorded(call.in_double, file)


def assert_as_called(call: FormulaCall, formula: Recorded) -> None:
    """The formula with each of its changes gives the same from its steps and when it is called."""
    changes = formula.changes()
    assert changes
    assert formula.steps is not None
    for change in changes:
        found = formula.steps.outputs(change.operation.place, change.kind)
        try:
            want = changeable.outputs(call.in_double, change)
        except (IndexError, ValueError):
            assert found is None
            continue
        assert found is not None, change.words
        assert found.keys() == want.keys()
        for name, array in want.items():
            assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
            assert found[name].tobytes() == array.tobytes(), change.words


@pytest.mark.parametrize(
    "op", [path.stem for path in sorted(SPECS.glob("*.yaml")) if path.stem not in OTHERS]
)
def test_steps_give_what_the_formula_gives(op: str) -> None:
    loaded = spec.load(spec.find(op))
    seen = set()
    for case in plan.plan(loaded, plan.Selection(suite="quick")).cases:
        formula = case.variant.oracle
        file = builtin.file_of(formula)
        if formula in seen or file is None:
            continue
        seen.add(formula)
        arrays = {name: one.array for name, one in inputs.draw(case).items()}
        function = builtin.function(formula, file)
        call = FormulaCall(function, dict(case.sizes), arrays, scalars(case))
        assert_as_called(call, record(call, str(file)))
    assert seen


def written(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    x = inputs["x"]
    y = x * 2.0
    y[:, 1] = x[:, 0] - 1.0
    y += x.var(axis=-1, keepdims=True)
    sums = np.zeros_like(x, shape=(3, 8))
    np.add.at(sums, np.array([0, 2, 0, 1, 2]), y)
    return {"y": y, "sums": sums, "both": np.stack([y.max(axis=-1), x[:, 2]]), "one": np.ones(3)}


def test_what_is_written_to_is_done_again() -> None:
    call = FormulaCall(written, {}, {"x": X}, {})
    assert_as_called(call, record(call))


def by_value(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    x = inputs["x"] + 1.0
    return {"y": x * 3.0 if np.nanmax(x) > 2.0 else x}


def plain_on_the_way(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    x = inputs["x"] + 1.0
    return {"y": x * np.array([float(one.size) for one in np.asarray(x)]).mean()}


def index_moves_on(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    x, index = inputs["x"], np.arange(4)
    first = x[:, index]
    index += 1
    return {"y": first + x[:, index]}


def through_a_view(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    x = inputs["x"]
    sums = np.zeros_like(x, shape=(2, 3, 4))
    np.add.at(sums.reshape(6, 4), np.array([0, 2, 5, 1, 2]), x[:, :4] * 2.0)
    return {"y": sums}


def into_another(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    x, y = inputs["x"], np.zeros((5, 8))
    np.add(x, 1.0, out=y)
    return {"y": x * y}


def in_place(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    x = inputs["x"] * 1.0
    y = x + 1.0
    np.copyto(x, 0.0)
    return {"y": x + y}


@pytest.mark.parametrize(
    "function",
    [by_value, plain_on_the_way, index_moves_on, through_a_view, into_another, in_place],
)
def test_a_formula_that_does_more_than_its_steps_is_called(function: Function) -> None:
    call = FormulaCall(function, {}, {"x": X}, {})
    formula = record(call)
    assert formula.steps is not None
    for change in formula.changes():
        assert formula.steps.outputs(change.operation.place, change.kind) is None
        want = changeable.outputs(call.in_double, change)
        found = changeable.outputs(call.in_double, change, formula.steps)
        assert {name: x.tobytes() for name, x in found.items()} == {
            name: x.tobytes() for name, x in want.items()
        }
