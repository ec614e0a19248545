"""Large products that a formula comes to more than once are made once."""

from __future__ import annotations

import numpy as np
import pytest

from tokitai_cli.oracles.formula import products
from tokitai_cli.oracles.formula.kept import keeping


@pytest.fixture(autouse=True)
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_WORTH", 1)


def test_equal_operands_give_the_product_that_is_kept() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((7, 5)), rng.standard_normal((5, 3))
    with keeping():
        first = products.multiplied(a, b)
        assert products.multiplied(a.copy(), b.copy()) is first
        assert np.array_equal(first, a @ b)
        # Other bits than these may come of another layout, or of other numbers.
        assert products.multiplied(np.asfortranarray(a), b) is not first
        changed = a.copy()
        changed[6, 4] = np.nextafter(changed[6, 4], 9)
        assert np.array_equal(products.multiplied(changed, b), changed @ b)
    assert products.multiplied(a, b) is not first


def test_no_more_than_a_few_are_kept() -> None:
    operands = [np.full((2, 2), float(number)) for number in range(12)]
    with keeping():
        first = products.multiplied(operands[0], operands[0])
        for one in operands[1:]:
            products.multiplied(one, one)
        assert products.multiplied(operands[0], operands[0]) is not first
