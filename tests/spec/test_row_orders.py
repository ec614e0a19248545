"""Draws of rows in an order, with equal values, of zeros, and of segments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.spec.test_inputs import one_input
from tokitai_cli.core.errors import NotRunError, SpecError

SHAPE = (40, 61)


def values(dtype: str, settings: Any, shape: tuple[int, ...] = SHAPE) -> Any:
    return one_input(dtype, settings, shape).array.astype(np.float64)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32", "uint8"])
def test_rows_rise_and_fall(dtype: str) -> None:
    given = {"lo": 0, "hi": 100}
    rising, falling = (values(dtype, {"kind": kind, **given}) for kind in ("sorted", "falling"))
    assert (np.diff(rising, axis=1) >= 0).all()
    assert (np.diff(falling, axis=1) <= 0).all()
    assert len(np.unique(falling[0])) > 20


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "uint16"])
def test_rows_have_equal_values(dtype: str) -> None:
    free = values(dtype, {"kind": "ties", "value": 3})
    ordered = values(dtype, {"kind": "sorted-ties", "value": 3})
    for found in (free, ordered):
        counts = [len(np.unique(row)) for row in found]
        assert max(counts) == 3
        assert found[0].tolist() != found[1].tolist()
    assert (np.diff(ordered, axis=1) >= 0).all()
    assert not (np.diff(free, axis=1) >= 0).all(axis=1).any()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_every_other_row_is_zero(dtype: str) -> None:
    found = values(dtype, "zero-rows")
    assert not found[::2].any()
    assert (np.abs(found[1::2]).sum(axis=1) > 0).all()


def test_segments_rise_and_some_are_empty() -> None:
    found = values("int32", {"kind": "segments", "below": 12}, (400,))
    assert (np.diff(found) >= 0).all()
    present = np.unique(found)
    assert present.min() >= 0
    assert present.max() < 12
    assert 4 <= len(present) < 12
    assert not values("int64", {"kind": "segments", "below": 1}, (9,)).any()


def test_what_cannot_be_is_told() -> None:
    with pytest.raises(SpecError, match=r"0\.5 different values"):
        values("float32", {"kind": "ties", "value": 0.5})
    with pytest.raises(NotRunError, match="there are 0 segments"):
        values("int32", {"kind": "segments", "below": 0}, (4,))
