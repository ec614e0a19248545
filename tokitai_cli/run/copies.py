"""Copies of the outputs of a run, which lie in memory that the next run of the child writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from tokitai_cli.core.numerics import same_bytes
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
    return other if other is not None and same_bytes(array, other) else array.copy()
