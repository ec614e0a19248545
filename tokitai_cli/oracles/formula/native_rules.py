"""Rules of blocks as compiled loops (`kernels/native/tokitai_intervals.hpp`).

Each gives what the rule of numpy's code gives, to the bit, where all of a block is finite, nothing can
be NaN and nothing overflows or is flushed; None elsewhere, and numpy's rule is taken.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence

import numpy as np

from tokitai_cli.core import native
from tokitai_cli.core.native import address
from tokitai_cli.oracles.formula.parts import MORE, OWN, Floats, Parts, exactly
from tokitai_cli.oracles.formula.precision import NORMAL, current

# A block of fewer elements is done as fast by numpy.
_LEAST = 1 << 12
_KINDS = {"add": 0, "subtract": 1, "multiply": 2, "divide": 3}
_BY_NUMPY, _POINT = 0, 1
_EXACTS = 3


class _Operand(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("v", "lo", "hi")),
        ("outer", ctypes.c_int64),
        ("inner", ctypes.c_int64),
    )


class _Permit(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_double) for name in ("relative", "unit", "half", "ceiling"))


class _Function(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_double) for name in ("relative", "least", "ceiling")),
        *((name, ctypes.c_double) for name in ("bottom", "top", "flat", "tail", "normal")),
        ("exact", ctypes.c_double * _EXACTS),
        ("exacts", ctypes.c_int64),
        ("flushes", ctypes.c_int64),
    )


def binary(name: str, a: Parts, b: Parts, extra: float = 0.0) -> Parts | None:
    """a (name) b, rounded, with `extra` further roundings."""
    library = _library(max(a.v.size, b.v.size))
    if library is None or a.n is not None or b.n is not None or current().flush_to_zero:
        return None
    a, b = _as_arrays(a), _as_arrays(b)
    shape = np.broadcast_shapes(a.v.shape, b.v.shape)
    layouts = _layouts(a, b, shape)
    if layouts is None:
        return None
    (one, other), rows, inner = layouts
    v, lo, hi = (np.empty(shape) for _ in range(3))
    outcome = library.functions.tokitai_binary(
        _KINDS[name],
        ctypes.byref(one),
        ctypes.byref(other),
        ctypes.c_int64(rows),
        ctypes.c_int64(inner),
        *map(_pointer, (v, lo, hi)),
        ctypes.byref(_permit(extra)),
    )
    return _parts(outcome, v, lo, hi)


def square(a: Parts) -> Parts | None:
    """a * a, rounded."""
    library = _library(a.v.size)
    if library is None or a.n is not None or current().flush_to_zero or not _plain(a):
        return None
    v, lo, hi = (np.empty(a.v.shape) for _ in range(3))
    outcome = library.functions.tokitai_square(
        ctypes.byref(_operand(a, 1, 1)),
        ctypes.c_int64(v.size),
        *map(_pointer, (v, lo, hi)),
        ctypes.byref(_permit(0.0)),
    )
    return _parts(outcome, v, lo, hi)


def rounded(a: Parts, extra: float) -> Parts | None:
    """One rounding of the ends, and `extra` further ones."""
    library = _library(a.v.size)
    if library is None or a.n is not None or current().flush_to_zero or not _plain(a):
        return None
    lo, hi = (np.empty(a.v.shape) for _ in range(2))
    outcome = library.functions.tokitai_rounded(
        *map(_pointer, (a.lo, a.hi)),
        ctypes.c_int64(lo.size),
        *map(_pointer, (lo, hi)),
        ctypes.byref(_permit(extra)),
    )
    return None if outcome == _BY_NUMPY else Parts(a.v, lo, hi)


def function(
    ends: tuple[Floats, Floats],
    values: tuple[Floats, Floats],
    *,
    error: tuple[float, float],
    within: tuple[float, float],
    exact: Sequence[float],
    flat: tuple[float, float],
    flushes: bool,
) -> tuple[Floats, Floats] | None:
    """The ends of an increasing function's results, of its values at the ends of its arguments.

    error: relative and absolute. within: what it cannot leave. flat: see `unary.Monotone`, and how far
    it is off there.
    """
    library = _library(values[0].size)
    if library is None or len(exact) > _EXACTS or current().flush_to_zero:
        return None
    if not all(map(native.is_plain, (*ends, *values))):
        return None
    wanted = _Function(
        *error,
        current().ceiling,
        *within,
        *flat,
        NORMAL,
        (ctypes.c_double * _EXACTS)(*exact),
        len(exact),
        int(flushes),
    )
    down, up = np.empty(values[0].shape), np.empty(values[0].shape)
    outcome = library.functions.tokitai_function(
        *map(_pointer, (*ends, *values)),
        ctypes.c_int64(down.size),
        *map(_pointer, (down, up)),
        ctypes.byref(wanted),
    )
    return None if outcome == _BY_NUMPY else (down, up)


def sides(reference: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats] | None:
    """Distances to both ends, with what float64 loses."""
    library = _library(reference.size)
    if library is None or not all(map(native.is_plain, (reference, low, high))):
        return None
    below, above = np.empty(reference.shape), np.empty(reference.shape)
    library.functions.tokitai_sides(
        *map(_pointer, (reference, low, high)),
        ctypes.c_int64(reference.size),
        *map(_pointer, (below, above)),
    )
    return below, above


def _library(size: int) -> native.Library | None:
    return native.library() if size >= _LEAST else None


def _pointer(array: Floats) -> ctypes.c_void_p:
    return ctypes.c_void_p(address(array))


def _plain(a: Parts) -> bool:
    return all(map(native.is_plain, (a.v,) if a.point else (a.v, a.lo, a.hi)))


def _as_arrays(a: Parts) -> Parts:
    """The same with arrays for the scalars that numpy makes of arrays without axes."""
    if isinstance(a.v, np.ndarray):
        return a
    v = np.asarray(a.v)
    return exactly(v, a.n) if a.point else Parts(v, np.asarray(a.lo), np.asarray(a.hi), a.n)


def _operand(a: Parts, outer: int, inner: int) -> _Operand:
    return _Operand(*map(address, (a.v, a.lo, a.hi)), outer, inner)


def _permit(extra: float) -> _Permit:
    now = current()
    return _Permit(OWN + extra * now.unit, now.unit * MORE, now.step / 2, now.ceiling)


def _parts(outcome: int, v: Floats, lo: Floats, hi: Floats) -> Parts | None:
    if outcome == _BY_NUMPY:
        return None
    return exactly(v) if outcome == _POINT else Parts(v, lo, hi)


def _layouts(
    a: Parts, b: Parts, shape: tuple[int, ...]
) -> tuple[tuple[_Operand, _Operand], int, int] | None:
    """Both operands as rows of one length; one may repeat a row, or hold a number for each row."""
    if not _plain(a) or not _plain(b):
        return None
    size = math.prod(shape)
    whole = a if a.v.size == size else b
    if whole.v.size != size:
        return None
    other = b if whole is a else a
    cut = _cut(other.v.shape, shape)
    if cut is None:
        return None
    rows, inner, outer_step, inner_step = cut
    one, two = _operand(whole, inner, 1), _operand(other, outer_step, inner_step)
    return ((one, two) if whole is a else (two, one)), rows, inner


def _cut(own: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """Rows and their length, and the steps of an operand of the shape `own` between and within them."""
    size = math.prod(shape)
    own = (1,) * (len(shape) - len(own)) + own
    if own == shape:
        return 1, size, size, 1
    if math.prod(own) == 1:
        return 1, size, 0, 0
    for axis in range(1, len(shape)):
        rows, inner = math.prod(shape[:axis]), math.prod(shape[axis:])
        if own[axis:] == shape[axis:] and math.prod(own[:axis]) == 1:
            return rows, inner, 0, 1
        if own[:axis] == shape[:axis] and math.prod(own[axis:]) == 1:
            return rows, inner, 1, 0
    return None
