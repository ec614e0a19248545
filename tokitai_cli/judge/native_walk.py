"""The walk's measuring of a chunk as one compiled pass (`kernels/native/tokitai_walk.hpp`).

It serves chunks all of whose elements take part and are finite on both sides, in the formats that it
knows; it gives what numpy's code gives there, to the bit, and leaves all other chunks to that.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import native
from tokitai_cli.judge.checks.compared import Compared
from tokitai_cli.judge.checks.reference_tally import Part, Sizes
from tokitai_cli.judge.checks.tally import BINS, LEAST_EXPONENT, Bias, Metrics, MetricsTally
from tokitai_cli.judge.checks.target import Target
from tokitai_cli.judge.roundings import Leans

_KINDS = {"float16": 0, "bfloat16": 1, "float32": 2}
# A chunk of fewer elements is measured as fast by numpy.
_LEAST = 1 << 12
# Bits of a magnitude from which a 16-bit float is no number.
_SPECIAL = {"float16": 0x7C00, "bfloat16": 0x7F80}
# Metrics of error over other bounds than the worst case.
_FURTHER = ("bound-chained", "bound-prob")
_POINTERS = ctypes.c_void_p * len(_FURTHER)


class _Given(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("reference", "below", "above", "got")),
        ("further", _POINTERS),
        ("size", ctypes.c_int64),
        ("stride", ctypes.c_int64),
    )


class _Made(ctypes.Structure):
    _fields_ = (
        ("over", ctypes.c_void_p),
        ("over_further", _POINTERS),
        *(
            (name, ctypes.c_void_p)
            for name in ("ulp_sizes", "relative_sizes", "signs", "outs", "inexact")
        ),
        ("ulp_bins", ctypes.c_void_p),
        ("over_bins", ctypes.c_void_p),
    )


class _Found(ctypes.Structure):
    _fields_ = (
        *((f"max_{name}", ctypes.c_double) for name in ("abs", "rel", "ulp", "over", "allowance")),
        ("max_further", ctypes.c_double * len(_FURTHER)),
        *((name, ctypes.c_double) for name in ("signed_sum", "outward_sum", "total", "squares")),
        *((name, ctypes.c_double) for name in ("anchor_bound", "anchor_ulp")),
        *((name, ctypes.c_double) for name in ("largest_ulps", "largest_relative")),
        *((name, ctypes.c_double) for name in ("lean_signed", "lean_outward")),
        *(
            (name, ctypes.c_int64)
            for name in ("exact", "anchor", "ulp_count", "relative_count", "misrounded")
        ),
    )


class Measures(NamedTuple):
    """What one pass says of a chunk: of a repetition, and of the reference."""

    metrics: Metrics
    summary: Part
    sizes: Sizes
    leans: Leans | None


def can_measure(target: Target) -> bool:
    """Whether there is a compiled pass for chunks of the target."""
    plain = (target.low, target.may_be_nan, target.unbounded, target.allowed, target.rows)
    return (
        native.library() is not None
        and target.dtype in _KINDS
        and target.error is not None
        and all(one is None for one in plain)
        and not target.exact
        and not target.flush_to_zero
        and (target.by_windows is not None or _is_plain(target))
    )


def _is_plain(target: Target) -> bool:
    return all(map(native.is_plain, (target.reference, *(target.sides or (target.error,)))))


def measured(
    compared: Compared, metrics: MetricsTally, *, stride: int, leans: bool
) -> Measures | None:
    """What a chunk of a target that `can_measure` is to the tallies; None where numpy measures it.

    Of each `stride` sizes of the bound one is kept, none with 0. What checks ask of `compared` later is
    put into it.
    """
    chunk, library = compared.chunk, native.library()
    got, size = native.contiguous(compared.native), compared.native.size
    where = chunk.where
    if library is None or size < _LEAST or compared.skip is not None or chunk.classes is not None:
        return None
    if not isinstance(where, slice) or not _finite(got, chunk.target.dtype):
        return None
    probable = None if chunk.target.probable is None else chunk.target.probable[where]
    further = [compared.refined, probable]
    if not all(one is None or native.is_plain(one) for one in further):
        return None
    below, above = sides(chunk.target, where)
    over = np.empty(size)
    over_further = [None if one is None else np.empty(size) for one in further]
    kept = size // stride + 1 if stride else 1
    samples = np.empty(kept), np.empty(kept)
    room = (np.empty(size), np.empty(size)) if leans else (None, None)
    inexact = np.empty(size, bool) if leans else None
    ulp_bins, over_bins = (
        np.zeros(BINS + 1, np.int64),
        np.zeros(BINS - LEAST_EXPONENT + 1, np.int64),
    )
    given = _Given(
        *map(native.address, (chunk.reference, below, above, got)),
        _POINTERS(*map(native.address, further)),
        size,
        stride or size,
    )
    made = _Made(
        native.address(over),
        _POINTERS(*map(native.address, over_further)),
        *map(native.address, (*samples, *room, inexact, ulp_bins, over_bins)),
    )
    found = _Found()
    library.functions.tokitai_walk(
        _KINDS[chunk.target.dtype], ctypes.byref(given), ctypes.byref(made), ctypes.byref(found)
    )
    _fill(compared, found, over, over_further)
    start = where.start
    exact = int(found.exact)
    rows = cells = None
    if exact < size or found.max_over > 0:
        rows, cells = metrics.row.measured(start, over), metrics.heat.measured(start, over)
    return Measures(
        Metrics(
            max_abs=found.max_abs,
            max_rel=found.max_rel,
            max_ulp=found.max_ulp,
            over_bound=found.max_over,
            over_probable=None if probable is None else found.max_further[1],
            allowance=found.max_allowance,
            exact=exact,
            undecided=0,
            bias=Bias(found.signed_sum, found.outward_sum, size),
            bins=ulp_bins[:-1],
            over=over_bins[:-1],
            rows=rows,
            cells=cells,
        ),
        Part(
            size,
            0,
            found.total,
            found.squares,
            start + int(found.anchor),
            found.anchor_bound,
            found.anchor_ulp,
        ),
        (
            (found.largest_ulps, samples[0][: found.ulp_count]),
            (found.largest_relative, samples[1][: found.relative_count]),
        )
        if stride
        else (),
        None if inexact is None else Leans(found.lean_signed, found.lean_outward, inexact),
    )


def sides(target: Target, where: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Errors below and above of a part of a target that has them."""
    if target.sides is not None:
        return target.sides[0][where], target.sides[1][where]
    assert target.error is not None
    return target.error[where], target.error[where]


def _finite(got: NDArray[Any], dtype: str) -> bool:
    if dtype == "float32":
        return bool(np.isfinite(got).all())
    return int((got.view(np.uint16) & 0x7FFF).max()) < _SPECIAL[dtype]


def _fill(
    compared: Compared,
    found: _Found,
    over: NDArray[np.float64],
    further: list[NDArray[np.float64] | None],
) -> None:
    """Put in what is known now, so that no check computes it again."""
    compared.comparable = None
    compared.count = compared.native.size
    compared.structure = {}
    compared.structure_fails = None
    compared.over_bound = over
    if not found.misrounded:
        compared.misrounded = None
    for name, values in zip(_FURTHER, further, strict=True):
        if values is not None:
            compared.over_further[name] = values


def require_same(what: str, native_one: Any, numpy_one: Any) -> None:
    """Raise MismatchError where what both say of a chunk differs in a bit; zeros count as equal."""
    if not _same(native_one, numpy_one):
        raise native.MismatchError(
            f"the compiled walk gives other {what} than numpy: {native_one}, and {numpy_one}"
        )


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        left, right = (np.zeros(0) if x is None else np.asarray(x) for x in (one, other))
        # Bins in which there is nothing are none.
        if one is None or other is None:
            return not left.any() and not right.any()
        return np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124 - NaN
