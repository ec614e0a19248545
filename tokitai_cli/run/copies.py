"""Copies of the outputs of a run, which lie in memory that the next run of the child writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.run.case_outcome import Outputs


def copied(outputs: Outputs) -> dict[str, NDArray[Any]]:
    """The outputs of one repetition."""
    return {name: array.copy() for name, array in outputs.items()}


def copies(repetitions: Sequence[Outputs]) -> tuple[Outputs, ...]:
    """The outputs of all repetitions; arrays of equal bytes, as most of them are, are one."""
    kept: list[Outputs] = []
    for outputs in repetitions:
        first = kept[0] if kept else {}
        kept.append({name: _copy(array, first.get(name)) for name, array in outputs.items()})
    return tuple(kept)


def _copy(array: NDArray[Any], other: NDArray[Any] | None) -> NDArray[Any]:
    if other is not None and np.array_equal(_bytes(array), _bytes(other)):
        return other
    return array.copy()


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
