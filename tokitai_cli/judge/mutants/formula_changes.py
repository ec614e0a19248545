"""Changes of a formula before the checks: what they reject, and what nothing here can tell.

Unlike a mutant, a change may be none: the maximum that softmax subtracts can be any number. So one
that is nowhere far enough from the reference is told of, and holds no verdict up.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.model.expectation import Expectation
from tokitai_cli.core.model.judged import ChangesRecord, MutantRecord
from tokitai_cli.core.rounding import widened
from tokitai_cli.judge.checks.output_checks import ResolvedCheck
from tokitai_cli.judge.checks.target import CHUNK, Chunk, Index, Target
from tokitai_cli.judge.mutants.freedom import arranged
from tokitai_cli.judge.mutants.trial import Given, Trials
from tokitai_cli.judge.mutants.values import Mutant

Rows = NDArray[np.int64]
# Elements of the first chunk, in which most are seen to be wrong.
_FIRST = 1 << 8


def try_changes(
    reference: Target, expectation: Expectation, checks: list[ResolvedCheck], given: Given
) -> ChangesRecord | None:
    """What becomes of each change of the formula; None where the oracle is no formula."""
    if not expectation.changes:
        return None
    rows = expectation.rows
    places = None if rows is None else _Places(rows, reference.width)
    mutants = (
        _mutant(reference, words, values.reshape(-1), rows, places)
        for words, values in expectation.changes.items()
    )
    found: dict[str, list[str]] = {"accepted": [], "not-eligible": [], "rejected": []}
    chunks = _chunks(reference, rows)
    if reference.arranged is None:
        together = iter([list(mutants)])
    else:  # each is a whole array
        chunks, together = list(chunks), ([mutant] for mutant in mutants)
    for some in together:
        for record in _tried(Trials(some, reference, checks, given), chunks):
            found[record.status].append(record.kind)
    return ChangesRecord(
        output=reference.name,
        tried=len(expectation.changes),
        accepted=found["accepted"],
        undetected=found["not-eligible"],
        rejected=found["rejected"],
        rows=0 if rows is None else rows.size,
    )


def _tried(trials: Trials, chunks: Iterable[Chunk]) -> list[MutantRecord]:
    with np.errstate(all="ignore"):
        for chunk in chunks:
            trials.reference_chunk(chunk)
            if not trials.go_on():
                break
    trials.close()
    return trials.records()


class _Places:
    """Where in an array of some rows the flat positions of the whole output are."""

    def __init__(self, rows: Rows, width: int) -> None:
        self._rows, self._width = rows, width
        self._of: tuple[Rows, Rows] = rows, rows

    def __call__(self, index: Rows) -> Rows:
        if self._of[0] is not index:  # else as for the change before
            row = index // self._width
            place = np.searchsorted(self._rows, row)
            self._of = index, place * self._width + (index - row * self._width)
        return self._of[1]


def _mutant(
    reference: Target, words: str, flat: NDArray[Any], rows: Rows | None, places: _Places | None
) -> Mutant:
    width = reference.width
    if reference.arranged is None or rows is None:
        mutant = Mutant(words, words, functools.partial(_at, flat, places))
        return arranged(reference, mutant)
    whole = reference.reference.copy()  # an order is one of all rows
    whole.reshape(-1, width)[rows] = flat.reshape(-1, width)
    return arranged(reference, Mutant(words, words, lambda index: np.asarray(whole[index])))


def _chunks(reference: Target, rows: Rows | None) -> Iterable[Chunk]:
    """The reference, or a sample of its rows, by chunks that share what they compute."""
    if rows is None:
        return reference.chunks(_FIRST)
    positions = positions_of(reference, rows)
    return (
        Chunk(reference, part) for part in np.split(positions, range(CHUNK, len(positions), CHUNK))
    )


def positions_of(reference: Target, rows: Rows) -> NDArray[np.int64]:
    """Flat positions of some rows."""
    return (rows[:, None] * reference.width + np.arange(reference.width)).reshape(-1)


def _at(values: NDArray[Any], places: _Places | None, index: Index) -> NDArray[Any]:
    """Values at flat positions of the output, of which `values` has some rows."""
    if places is None or isinstance(index, slice):
        return _wide(values[index])
    return _wide(values[places(index)])


def _wide(values: NDArray[Any]) -> NDArray[Any]:
    """In float64, where they are rounded floats."""
    rounded = values.dtype.kind not in "iub" and values.dtype != np.float64
    return widened(values) if rounded else values
