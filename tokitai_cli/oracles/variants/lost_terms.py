"""Sums by index that lose a term each: wrong outputs of `numpy.add.at`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tokitai_cli.oracles.formula.parts import BLOCK
from tokitai_cli.oracles.variants.wrong_formulas import Array


def add_without(values: Array, index: Array, added: Array, kind: str) -> None:
    """Add to `values` in place, each element without the term that `kind` of `OF_SUMS` says."""
    kept = _kept(index, added, kind)
    for some in _parts_of(kept, added.size // max(len(added), 1)):
        np.add.at(values, index[kept[some]], added[kept[some]])


def _kept(index: Array, added: Array, kind: str) -> Array:
    """Which additions are left where each element loses the one that `kind` says."""
    places = np.arange(len(index))
    if kind == "half":
        return places[: len(index) - len(index) // 2]
    weights = {"first": -places, "last": places}.get(kind)
    if weights is None:
        some = _parts_of(added, added.size // max(len(added), 1))
        weights = np.concatenate([_weights(added[one]) for one in some])
    order = np.lexsort((weights, index))
    lost = np.append(index[order][1:] != index[order][:-1], True)
    return np.sort(order[~lost])


def _parts_of(rows: Array, size: int) -> Iterator[slice]:
    """Parts of rows of so many elements each, so that nothing as large as all of them is made."""
    step = max(BLOCK // max(size, 1), 1)
    return (slice(start, start + step) for start in range(0, max(len(rows), 1), step))


def _weights(rows: Array) -> Array:
    """The sum of squares of each row; what is no number counts as 0."""
    wide = np.nan_to_num(rows.astype(np.float64), posinf=0.0, neginf=0.0)
    return np.asarray(np.square(wide.reshape(len(rows), -1)).sum(axis=1))
