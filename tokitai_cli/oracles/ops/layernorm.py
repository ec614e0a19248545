"""Layer normalisation of rows: float64 reference, error bounds, float32 replay.

Per row of c columns: mu = mean of x, d = x - mu, v = mean of d^2, r = 1 / sqrt(v + eps) with eps as the
float32 that the kernel gets, y = d r gamma + beta. Kernels compute y from the mean and rstd that they
store. Notation: u = 2^-24, gamma_k as in `bounds`. Every step below multiplies a value by 1 + theta
with the stated |theta| (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., Lemmas 3.1 and
3.3, section 4.2 for sums).

mean, variance, rstd: see `layernorm_rows`; mean lies within Delta, rstd between rlo and rhi, judged on
    each side; E_r = max(rhi - r, r - rlo) where one number is needed.
y: xhat = (x - mean) rstd has e_xh = Delta rhi + |d| E_r + gamma_2 (|d| + Delta) rhi, two roundings; the
    product with gamma one more and the sum with beta the last (fused, one less):
        e = |gamma| e_xh (1 + gamma_2) + gamma_2 |gamma d| r + u (|beta| + |gamma| (|d| r + e_xh)).
y, chained: y comes from the mean that the kernel stored, which is judged itself. So y is judged again
    with Delta := min(Delta, |mean - mu|), and what follows from it. Without that the bound of y is of
    little use on rows whose mean is large beside their spread.
Exponent range: float16 rows neither overflow float32 nor do their squares underflow against eps. A row
    of wider inputs whose sum of |x| or of squares comes near float32's threshold is left open.
Not finite (IEEE 754-2019, 6.1 and 7.2): the mean follows the sum; that of updates, where a row holds an
    infinity, is left open, as infinity minus infinity comes after it unless it is the last. A row with
    NaN or an infinity has NaN or infinity minus infinity among its differences: rstd and y are NaN.
    Where gamma is infinite and the sign of a difference is not certain, y is left open.
v + eps = 0: a row of zeros has mean 0, rstd infinite and y NaN (0 times infinity); another constant row
    may have a mean that is off, and is left open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.model.case import DROPPED, LAST_DROPPED, BufferPlan, Case, Expectation, Replay
from tokitai_cli.numerics import round_to
from tokitai_cli.oracles.bounds import UNIT_ROUNDOFF, additions, compound, gamma, is_welford
from tokitai_cli.oracles.builtin import BuiltIn
from tokitai_cli.oracles.exact import meant_exact, unit_of
from tokitai_cli.oracles.ops.layernorm_rows import OVERFLOW, Arguments, Rows, statistics
from tokitai_cli.oracles.properties import row_mean, row_variance
from tokitai_cli.oracles.rows import (
    FLOATS,
    Array,
    Floats,
    as_matrix,
    blocks,
    misfit,
    named,
    outputs,
    refuse_flushing,
    scalar,
    threads,
    tree_sum,
)

# Relative error of this reference's own mean, with a margin for the order of its additions.
_OWN_MEAN = 2.0**-50
_EPS_DROPPED = "eps-dropped"
# Share of eps in variance + eps from where on its absence is an error of a percent in y.
_EPS_MATTERS = 2.0**-6


def expect(case: Case, arrays: Mapping[str, Array]) -> dict[str, Expectation]:
    """Normalise the rows of x; reads x [r, c], gamma and beta [c] and the scalar eps.

    Judges y [r, c], mean and rstd [r]; a variant may lack mean and rstd. SpecError where the spec's
    arrays, scalars or reduction are none of this op, NotRunError where float32 has no bound.
    """
    given, plans = _arguments(case, arrays)
    shape = arrays["x"].shape
    count, width = given.x.shape
    y, error = np.zeros((count, width)), np.zeros((count, width))
    mean, rstd = np.zeros((2, count)), np.zeros((4, count))  # reference; errors; sides
    with np.errstate(all="ignore"):
        for part in blocks(count, width):
            rows = statistics(given.x[part], given)
            y[part], error[part] = _normalised(rows, given)
            mean[:, part], rstd[:, part] = _mean(rows), _rstd(rows, given)
    result = {"y": Expectation(y.reshape(shape), error=error.reshape(shape))}
    result["mean"] = Expectation(mean[0].reshape(shape[:-1]), error=mean[1].reshape(shape[:-1]))
    reference, widest, below, above = (part.reshape(shape[:-1]) for part in rstd)
    result["rstd"] = Expectation(reference, error=widest, error_below=below, error_above=above)
    if "mean" in plans:
        chained = _Chained(given, mean[0], error, shape)
        result["y"] = msgspec.structs.replace(result["y"], refine=chained)
    with np.errstate(invalid="ignore"):  # 0 times infinity, where eps is 0
        matters = float(np.fmax.reduce(np.square(rstd[0]) * given.eps, initial=0.0))
    return {name: _with_mutants(result[name], name, given, matters) for name in plans}


def replay(case: Case, arrays: Mapping[str, Array], seed: int) -> dict[str, Replay]:
    """Float32 normalisation in the order of a block of threads, every step rounded on its own.

    No bit-exact repetition, as a compiler may fuse products and sums: it stands for the
    same-precision emulation that flat limits were made for.
    """
    given, plans = _arguments(case, arrays)
    count, width = given.x.shape
    single: dict[str, NDArray[np.float32]] = {
        "y": np.zeros((count, width), dtype=np.float32),
        "mean": np.zeros(count, dtype=np.float32),
        "rstd": np.zeros(count, dtype=np.float32),
    }
    block, columns = threads(case, 0, 256), np.float32(width)
    scale, shift = given.gamma.astype(np.float32), given.beta.astype(np.float32)
    with np.errstate(all="ignore"):
        for part in blocks(count, width):
            x = given.x[part].astype(np.float32)
            mean = tree_sum(x, block) / columns
            d = x - mean[:, None]
            variance = tree_sum(d * d, block) / columns
            rstd = np.float32(1) / np.sqrt(variance + np.float32(given.eps))
            single["y"][part] = d * rstd[:, None] * scale + shift
            single["mean"][part], single["rstd"][part] = mean, rstd
    return {
        name: Replay(round_to(single[name].astype(np.float64), plan.dtype).reshape(plan.shape))
        for name, plan in plans.items()
    }


def read(
    case: Case, arrays: Mapping[str, Array]
) -> tuple[list[Array], float, dict[str, BufferPlan]]:
    """`x`, `gamma` and `beta`, eps, and outputs; SpecError where the spec's are none of this op."""
    refuse_flushing(case)
    x, scale, shift = named(case, arrays, {"x": FLOATS, "gamma": FLOATS, "beta": FLOATS})
    if scale.shape != x.shape[-1:] or shift.shape != x.shape[-1:]:
        said = f"gamma {list(scale.shape)} and beta {list(shift.shape)} have one entry a column"
        raise misfit(case, said, "")
    plans = outputs(case, {"y": x.shape, "mean": x.shape[:-1], "rstd": x.shape[:-1]})
    return [x, scale, shift], scalar(case, "eps"), plans


def _arguments(case: Case, arrays: Mapping[str, Array]) -> tuple[Arguments, dict[str, BufferPlan]]:
    (x, scale, shift), eps, plans = read(case, arrays)
    rows = as_matrix(x)
    steps = additions(case, rows.shape[1])
    unit = unit_of(x) if meant_exact(case, ["x"]) else 0.0
    return Arguments(rows, scale, shift, eps, steps, unit, is_welford(case)), plans


def _mean(rows: Rows) -> Floats:
    """Reference and error of the means."""
    error = np.where(rows.finite, rows.delta, 0.0)
    overflow = rows.unknown & (rows.delta >= OVERFLOW * UNIT_ROUNDOFF)
    error[overflow] = np.inf
    reference = rows.mean.copy()
    if rows.drift is not None:  # updates turn an infinity into NaN, but for the last one
        open_ = np.isinf(reference)
        reference[open_], error[open_] = 0.0, np.inf
    return np.stack([reference[:, 0], error[:, 0]])


def _rstd(rows: Rows, given: Arguments) -> Floats:
    """Reference of the rstds, their error, and the error below and above."""
    low, high = rows.limits(given)
    reference = np.where(rows.finite, rows.rstd, np.nan)
    below, above = reference - low, high - reference
    for side in (below, above):
        side[~rows.finite | np.isinf(reference)] = 0.0
        side[rows.unknown] = np.inf
    reference[rows.unknown] = 0.0
    return np.stack([a[:, 0] for a in (reference, np.maximum(below, above), below, above)])


def _normalised(rows: Rows, given: Arguments) -> tuple[Floats, Floats]:
    """Reference and error of y."""
    scale, shift = given.gamma.astype(np.float64), given.beta.astype(np.float64)
    reference = rows.d * rows.rstd
    reference *= scale
    reference += shift
    reference[~rows.finite[:, 0]] = np.nan
    error = _error(rows, given)
    error[~np.isfinite(reference)] = 0.0
    open_ = rows.unknown | (np.isinf(scale) & rows.finite & (np.abs(rows.d) <= rows.delta))
    if open_.any():
        open_ = np.broadcast_to(open_, reference.shape)
        reference[open_], error[open_] = 0.0, np.inf
    return reference, error


def _error(rows: Rows, given: Arguments) -> Floats:
    """Bound of y in front of its last rounding, whatever `rows.delta` is."""
    u, two = UNIT_ROUNDOFF, gamma(2)
    scale = np.abs(given.gamma.astype(np.float64))
    low, high = rows.limits(given)
    spread = np.maximum(high - rows.rstd, rows.rstd - low)
    d = np.abs(rows.d)
    # e_xh = |d| (E_r + gamma_2 rhi) + Delta rhi (1 + gamma_2), then e of the docstring, in place.
    e = d * (spread + two * high)
    e += rows.delta * high * (1 + two)
    e *= 1 + two + u
    d *= (two + u) * rows.rstd
    e += d
    e *= scale
    e += u * np.abs(given.beta.astype(np.float64))
    return e


class _Chained:
    """Errors of y that the stored means of a repetition leave, see the module's `y, chained`.

    Called with the outputs of a repetition; remembers the last answer, as repetitions mostly agree.
    """

    def __init__(
        self, given: Arguments, means: Floats, error: Floats, shape: tuple[int, ...]
    ) -> None:
        self._given, self._means, self._error, self._shape = given, means, error, shape
        self._seen: Array | None = None
        self._answer: Floats = error

    def __call__(self, given: Mapping[str, NDArray[Any]]) -> Floats:
        stored = given["mean"].reshape(-1)
        if self._seen is None or stored.tobytes() != self._seen.tobytes():
            self._answer, self._seen = self._errors(stored.astype(np.float64)), stored.copy()
        return self._answer

    def _errors(self, stored: Floats) -> Floats:
        x, result = self._given.x, self._error.copy()
        with np.errstate(all="ignore"):
            for part in blocks(*x.shape):
                rows = statistics(x[part], self._given)
                off = np.abs(stored[part] - self._means[part])[:, None]
                off += _OWN_MEAN * rows.delta / compound(self._given.steps, 2)
                closer = np.fmin(rows.delta, off)
                refined = _error(msgspec.structs.replace(rows, delta=closer), self._given)
                result[part] = np.fmin(result[part], refined)
        return result.reshape(self._shape)


def _with_mutants(
    expectation: Expectation, name: str, given: Arguments, matters: float
) -> Expectation:
    """Add references whose sums lack a term, y's in the variance, and such that lack eps.

    `matters` is the largest share of eps in variance + eps.
    """
    terms = int(given.x.shape[1])
    shape = expectation.reference.shape
    kinds = DROPPED if terms > 1 else ()
    if name != "mean" and matters > _EPS_MATTERS:
        kinds = (*kinds, _EPS_DROPPED)
    dropped = {kind: lambda kind=kind: _without(name, kind, given).reshape(shape) for kind in kinds}
    return msgspec.structs.replace(expectation, terms=terms, dropped=dropped)


def _without(name: str, kind: str, given: Arguments) -> Floats:
    count, width = given.x.shape
    wrong = np.zeros((count, width) if name == "y" else count)
    scale, shift = given.gamma.astype(np.float64), given.beta.astype(np.float64)
    with np.errstate(all="ignore"):
        for part in blocks(count, width):
            x = given.x[part].astype(np.float64)
            lines = np.arange(x.shape[0])
            mean = x.mean(axis=1)
            d = x - mean[:, None]
            sizes = np.abs(x if name == "mean" else d)
            column = width - 1 if kind == LAST_DROPPED else np.argmax(sizes, axis=1)
            if name == "mean":
                wrong[part] = mean - x[lines, column] / width
                continue
            kept = np.square(d)
            if kind != _EPS_DROPPED:
                kept[lines, column] = 0.0
            rstd = 1.0 / np.sqrt(kept.mean(axis=1) + (0.0 if kind == _EPS_DROPPED else given.eps))
            wrong[part] = d * rstd[:, None] * scale + shift if name == "y" else rstd
    return wrong


ORACLES = {
    "layernorm.fwd": BuiltIn(
        read,
        expect,
        replay,
        {"row-mean": ("y", row_mean), "row-variance": ("y", row_variance)},
        welford=True,
    )
}
