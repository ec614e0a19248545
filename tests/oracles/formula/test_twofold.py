"""One call of a formula for both bounds: the bits of a call for each, and no operation twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.oracles.formula import formulas
from tokitai_cli.formula import erf, loosen, rsqrt, stored, track
from tokitai_cli.oracles.formula import unary
from tokitai_cli.oracles.formula.known import NoRuleError
from tokitai_cli.oracles.formula.parts import Parts
from tokitai_cli.oracles.formula.twofold import Twofold
from tokitai_cli.oracles.output_parts import ArrayParts
from tokitai_cli.oracles.variants import answer as answers
from tokitai_cli.oracles.variants.answer import evaluated
from tokitai_cli.oracles.variants.request import FormulaCall, Request, request_of

SHAPE = (6, 40)


def in_place(x: Any) -> Any:
    """Sums by index, elements set, results put into other arrays."""
    sums = np.zeros_like(x)
    np.add.at(sums, np.arange(len(x)) % 2, x)
    alias = +sums
    np.multiply(sums, 0.5, out=sums)
    sums[1:3] = x.sum(axis=0) * 0.1
    sums += 1.0
    return sums - alias


def ours(x: Any) -> Any:
    """Functions of `tokitai_cli.formula`."""
    mean = stored(x.mean(axis=-1, keepdims=True), "float16")
    away = loosen(x - mean, 3)
    return erf(away * rsqrt((away * away).sum(axis=-1, keepdims=True) + track(0.1)))


def moved(x: Any) -> Any:
    """Arrays that are split, joined, chosen among and looked up."""
    left, right = np.split(x, 2, axis=-1)
    total = (left + right).cumsum(axis=-1)
    best = total.argmax(axis=-1)
    first = np.take_along_axis(total, best[:, None], -1)
    joined = np.concatenate([np.where(total > first * 0.5, total, -1.0), left], axis=-1)
    return joined.T.T[:, ::-1] * np.clip(joined.std(axis=-1, keepdims=True), 0.0, 2.0)


OWN = {one.__name__: one for one in (in_place, ours, moved)}


def case_of(function: Any, x: NDArray[Any]) -> tuple[FormulaCall, Request]:
    def formula(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
        return {"y": function(inputs["x"])}

    asks = {"outputs": {"y": "float16"}, "precision": {}, "probable": True}
    return FormulaCall(formula, {}, {"x": x}, {}), request_of(asks, __file__)


def bits(parts: ArrayParts) -> dict[str, bytes]:
    return {str(part): array.tobytes() for part, array in parts.given()}


@pytest.mark.parametrize("name", [*formulas.FORMULAS, *OWN])
def test_both_bounds_are_those_of_two_calls(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.random.default_rng(2).standard_normal(SHAPE[1]).astype(np.float32)
    plain = formulas.FORMULAS.get(name)
    function = OWN[name] if plain is None else lambda x: plain(x, weights)
    compared = 0
    for kind, x in formulas.kinds(np.random.default_rng(1)).items():
        call, request = case_of(function, x)
        try:
            found = evaluated(call, request)["y"]
        except NoRuleError:
            continue
        with monkeypatch.context() as patch:
            patch.setattr(answers, "_by_both", lambda *asked: (answers._tracked(*asked), None))
            want = evaluated(call, request)["y"]
        assert bits(found) == bits(want), kind
        compared += 1
    assert compared > 3


@pytest.mark.parametrize("name", list(OWN))
def test_one_call_is_enough(name: str) -> None:
    seen: list[Any] = []

    def counted(x: Any) -> Any:
        seen.append(x)
        return OWN[name](x)

    x = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float16)
    call, request = case_of(counted, x)
    assert evaluated(call, request)["y"].error_probable is not None
    assert [type(one) for one in seen] == [Twofold]


def test_what_comes_before_a_sum_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Counter[str]()

    def exponential(part: Parts) -> Parts:
        calls["exp"] += 1
        return unary.exp.__call__(part)

    def softmax(x: Any) -> Any:
        terms = np.exp(x - x.max(axis=-1, keepdims=True))
        return np.exp(terms / terms.sum(axis=-1, keepdims=True))

    from tokitai_cli.oracles.formula import relations, rules

    ruled = {**rules.UFUNCS, "exp": lambda a: relations.exponential(a, exponential, "exp")}
    monkeypatch.setattr(rules, "UFUNCS", ruled)
    x = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float16)
    evaluated(*case_of(softmax, x))
    assert calls["exp"] == 1 + 2  # in front of the sum, and behind it


def test_a_fault_is_told_as_by_one_bound() -> None:
    call, request = case_of(np.asarray, np.ones(SHAPE, np.float16))
    with pytest.raises(NoRuleError, match="plain numpy array"):
        evaluated(call, request)
