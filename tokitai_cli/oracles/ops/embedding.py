"""Lookup in an embedding table and its gradient: reference, error bounds, replay.

Forward, output[i, :] = weight[indices[i], :]: a copy without arithmetic, so e = 0 and every bit is
told. An index outside [0, vocab) names no row; that row of the output, an in-out array, must keep
what it held.

Backward, grad_weight[r, :] = sum of grad_output[i, :] over the i with indices[i] = r, from zero, other
indices adding nothing. With count(r) terms in float32, in any order and rounded once at the end:
    e = (gamma_(count - 1) + count 2^-53) S,  S = sum |grad_output[i, :]|
    Additions: the first term meets an exact zero, so count - 1 additions round, and any order has at
    most that many on its longest path (Higham, Accuracy and Stability of Numerical Algorithms, 2nd
    ed., section 4.2). count 2^-53 is for this float64 reference; a row of one term has none.
    A spec that claims a tree gives a smaller number of additions.
Exact sums, e = 0
    Where all terms are multiples of a power of two and S is below 2^24 of it, every partial sum is an
    integer of such units below 2^24, which float32 holds, in any order.
Probable form, (gammaP_(count - 1)(10) + count 2^-53) S
    N. J. Higham, T. Mary, "A new approach to probabilistic rounding error analysis", SIAM J. Sci.
    Comput. 41(5), 2019, A2815-A2835: for independent roundings, whatever their order.
Not finite (IEEE 754-2019, 6.1 and 7.2): NaN where a term is NaN or terms of both infinities meet, else
    the infinity of the terms; float64 addition has the same rules, and float16 terms overflow neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.errors import NotRunError
from tokitai_cli.model.case import (
    HEAVIEST_DROPPED,
    LAST_DROPPED,
    BufferPlan,
    Case,
    Expectation,
    Replay,
)
from tokitai_cli.oracles.bounds import UNIT_ROUNDOFF, additions, gamma, gamma_probable
from tokitai_cli.oracles.builtin import BuiltIn
from tokitai_cli.oracles.exact import EXACT_UNITS, require_exact, unit_of
from tokitai_cli.oracles.properties import conserved
from tokitai_cli.oracles.rows import (
    FLOATS,
    HALF,
    Array,
    Floats,
    misfit,
    named,
    outputs,
    refuse_flushing,
)

_LAMBDA = 10.0
_INTEGERS = ("int32", "int64", "uint32")
# float64 entries of a block of columns.
_BLOCK = 1 << 18


def expect_forward(case: Case, arrays: Mapping[str, Array]) -> dict[str, Expectation]:
    """Rows of `weight` [v, d] that `indices` [q] name; judges the in-out `output` [q, d].

    SpecError where the spec's arrays are none of this op.
    """
    values, copied = _copied(case, arrays)
    reference = values.astype(np.float64)
    dropped = {}
    if not copied.all() and arrays["weight"].size:
        dropped["index-clamped"] = lambda: _clamped(arrays)
    return {"output": Expectation(reference, error=np.zeros(reference.shape), dropped=dropped)}


def replay_forward(case: Case, arrays: Mapping[str, Array], seed: int) -> dict[str, Replay]:
    """Bits of the output: a copy has one right answer."""
    return {"output": Replay(values=_copied(case, arrays)[0])}


def expect_backward(case: Case, arrays: Mapping[str, Array]) -> dict[str, Expectation]:
    """Sums of rows of `grad_output` [q, d] by `indices` [q]; judges `grad_weight` [v, d].

    SpecError where the spec's arrays or reduction are none of this op, NotRunError where an
    exact-int profile cannot be exact at this shape.
    """
    indices, grad, output = read_backward(case, arrays)
    groups = _group(indices, output.shape[0])
    reference, sums = _sums(groups, grad)
    unit = unit_of(grad)
    require_exact(case, ["grad_output"], sums, reference, unit, output)
    terms = int(groups.counts.max(initial=0))
    error, probable = _errors(case, groups, sums)
    for bound in (error, probable):
        bound[(sums < EXACT_UNITS * unit) | ~np.isfinite(reference)] = 0.0
    return {
        "grad_weight": Expectation(
            reference,
            error=error,
            error_probable=np.minimum(probable, error),
            terms=terms,
            dropped=_dropped(groups, grad, reference) if terms > 1 else {},
        )
    }


def _copied(case: Case, arrays: Mapping[str, Array]) -> tuple[Array, NDArray[np.bool_]]:
    """Output in its own dtype, and which rows of it are written."""
    indices, weight, before = read_forward(case, arrays)
    inside = (indices >= 0) & (indices < weight.shape[0])
    values = before.copy()
    values[inside] = weight[indices[inside].astype(np.int64)]
    return values, inside


def read_forward(case: Case, arrays: Mapping[str, Array]) -> list[Array]:
    """`indices`, `weight` and `output`; SpecError where the spec's arrays are none of this op."""
    wanted = {"indices": _INTEGERS, "weight": FLOATS, "output": FLOATS}
    indices, weight, before = named(case, arrays, wanted)
    if weight.ndim != 2 or before.ndim != 2 or weight.dtype != before.dtype:
        raise misfit(case, "weight and output are matrices of one dtype", "")
    _check_indices(case, indices, before.shape[0])
    outputs(case, {"output": (indices.shape[0], weight.shape[1])})
    return [indices, weight, before]


def read_backward(case: Case, arrays: Mapping[str, Array]) -> tuple[Array, Array, BufferPlan]:
    """`indices`, `grad_output` and the plan of `grad_weight`; SpecError as in `read_forward`."""
    refuse_flushing(case)
    indices, grad = named(case, arrays, {"indices": _INTEGERS, "grad_output": HALF})
    plans = {plan.name: plan for plan in case.buffers}
    vocab = plans["grad_weight"].shape[0] if "grad_weight" in plans else 0
    _check_indices(case, indices, grad.shape[0] if grad.ndim == 2 else -1)
    return indices, grad, outputs(case, {"grad_weight": (vocab, grad.shape[1])})["grad_weight"]


def _check_indices(case: Case, indices: Array, queries: int) -> None:
    if indices.shape != (queries,):
        raise misfit(case, f"indices {list(indices.shape)} has one entry for each query", "")


def _clamped(arrays: Mapping[str, Array]) -> Floats:
    """Output of a kernel that takes the nearest row for an index outside the table."""
    weight = arrays["weight"]
    nearest = np.clip(arrays["indices"].astype(np.int64), 0, weight.shape[0] - 1)
    return np.asarray(weight[nearest].astype(np.float64))


class _Groups(msgspec.Struct, frozen=True):
    """Queries sorted by the row they hit, those that hit none left out.

    counts: queries of each row [v]. order: queries, those of a row together and in their order.
    hit, starts: rows that are hit, and where each one's queries begin in `order`.
    """

    counts: NDArray[np.int64]
    order: NDArray[np.int64]
    hit: NDArray[np.int64]
    starts: NDArray[np.int64]


def _group(indices: Array, vocab: int) -> _Groups:
    rows = indices.astype(np.int64)
    inside = np.flatnonzero((rows >= 0) & (rows < vocab))
    order = inside[np.argsort(rows[inside], kind="stable")]
    counts = np.bincount(rows[inside], minlength=vocab)
    hit = np.flatnonzero(counts)
    return _Groups(counts, order, hit, np.cumsum(counts[hit]) - counts[hit])


def _sums(groups: _Groups, grad: Array) -> tuple[Floats, Floats]:
    """Return sums and sums of magnitudes [v, d] in float64, by blocks of columns.

    Where a term is not finite its magnitude counts as 0.
    """
    shape = (groups.counts.size, grad.shape[1])
    reference, sums = np.zeros(shape), np.zeros(shape)
    if not groups.order.size or not grad.shape[1]:
        return reference, sums
    step = max(1, _BLOCK // groups.order.size)
    with np.errstate(all="ignore"):
        for start in range(0, grad.shape[1], step):
            columns = slice(start, start + step)
            block = grad[groups.order, columns].astype(np.float64)
            reference[groups.hit, columns] = np.add.reduceat(block, groups.starts, axis=0)
            np.abs(block, out=block)
            block[~np.isfinite(block)] = 0.0
            sums[groups.hit, columns] = np.add.reduceat(block, groups.starts, axis=0)
    return reference, sums


def _errors(case: Case, groups: _Groups, sums: Floats) -> tuple[Floats, Floats]:
    """Worst-case and probable error, both in front of the last rounding."""
    counts, place = np.unique(groups.counts, return_inverse=True)
    worst, probable = np.zeros(counts.size), np.zeros(counts.size)
    for at, count in enumerate(map(int, counts)):
        if count > 1:
            steps = min(count - 1, additions(case, count, "grad_weight"))
            if steps * UNIT_ROUNDOFF > 0.25:
                raise NotRunError(f"a float32 sum of {count} terms has no error bound")
            worst[at] = gamma(steps) + count * 2.0**-53
            probable[at] = gamma_probable(steps, _LAMBDA) + count * 2.0**-53
    return worst[place][:, None] * sums, probable[place][:, None] * sums


def _dropped(groups: _Groups, grad: Array, reference: Floats) -> dict[str, Callable[[], Floats]]:
    """Last and heaviest query of each row left out."""

    def without(queries: NDArray[np.int64]) -> Floats:
        wrong = reference.copy()
        with np.errstate(all="ignore"):
            terms = grad[queries].astype(np.float64)
            terms[~np.isfinite(terms)] = 0.0
            wrong[groups.hit] -= terms
        return wrong

    def last() -> Floats:
        return without(groups.order[groups.starts + groups.counts[groups.hit] - 1])

    def heaviest() -> Floats:
        finite = np.nan_to_num(grad.astype(np.float32), posinf=0.0, neginf=0.0)
        weights = np.square(finite).sum(axis=1)[groups.order]
        # Sorted by row and then by weight, the heaviest query of a row is its last.
        rows = np.repeat(groups.hit, groups.counts[groups.hit])
        ranked = groups.order[np.lexsort((weights, rows))]
        return without(ranked[groups.starts + groups.counts[groups.hit] - 1])

    return {LAST_DROPPED: last, HEAVIEST_DROPPED: heaviest}


ORACLES = {
    "embedding.fwd": BuiltIn(read_forward, expect_forward, replay_forward),
    "embedding.bwd": BuiltIn(
        read_backward, expect_backward, properties={"sum-conserved": ("grad_weight", conserved)}
    ),
}
