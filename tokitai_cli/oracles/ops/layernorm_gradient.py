"""Gradients of layer normalisation: float64 reference, error bounds, float32 replay.

With mean and rstd as given, exact float32 inputs: xh = (x - mean) rstd, d = grad_y gamma,
    grad_x[i, j] = rstd / c (c d - S1 - xh S2),  S1 = sum of d,  S2 = sum of d xh along the row,
    grad_gamma[j] = sum of xh grad_y,  grad_beta[j] = sum of grad_y along the column,
every result rounded to its output's dtype once. Notation: u = 2^-24, gamma_k and G(h, k) as in `bounds`;
h = additions on the longest path of a sum, of the columns in grad_x and of the rows in the other two;
A1 = sum |d|, A2 = sum |d xh|. Counting the roundings on each path (Higham, Accuracy and Stability of
Numerical Algorithms, 2nd ed., Lemmas 3.1 and 3.3, section 4.2 for sums):

grad_x: c d takes the product of d, the product with c, two differences, rstd / c and the last product:
    gamma_6. S1 takes h additions, the product of d, two differences, and the last two: G(h, 5). xh S2
    takes two for each xh, two for the products of d and of d xh, h additions, the product with xh, one
    difference and the last two, ten in all: G(h, 10).
        e = |rstd| / c (gamma_6 c |d| + G(h, 5) A1 + G(h, 10) |xh| A2)
grad_gamma: two for xh, one for the product, h additions: e = G(h, 3) sum |xh grad_y|.
grad_beta: additions alone: e = gamma_h sum |grad_y|.
Fused operations only leave roundings out. To each e, 2^-100 is added for subnormal intermediate results
    of a float32 mean or rstd: each may lose 2^-150, which no factor here scales by more than 2^50.
Exact sums, e = 0: where x and mean are multiples of a unit, rstd a power of two and grad_y a multiple of
    another, xh and its products are exact, and so are sums below 2^24 of their unit, in any order.
Not finite (IEEE 754-2019, 6.1 and 7.2): as the formulas give it, in the order in which they are
    written; float64 has the same rules. Where float32 might overflow though float64 does not, which
    takes mean or rstd beyond any that float16 rows have, e is infinite: nothing is judged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
import numpy as np

from tokitai_cli.dtypes import FORMATS
from tokitai_cli.model.case import DROPPED, LAST_DROPPED, BufferPlan, Case, Expectation, Replay
from tokitai_cli.numerics import round_to
from tokitai_cli.oracles.bounds import additions, compound, gamma
from tokitai_cli.oracles.builtin import BuiltIn
from tokitai_cli.oracles.exact import EXACT_UNITS, require_exact, unit_of
from tokitai_cli.oracles.rows import (
    HALF,
    Array,
    Floats,
    as_matrix,
    blocks,
    misfit,
    named,
    outputs,
    refuse_flushing,
    threads,
    tree_sum,
)

_SUBNORMAL = 2.0**-100
_OVERFLOW = FORMATS["float32"].overflow / 4
_SINGLE = ("float32",)


class Arguments(msgspec.Struct, frozen=True):
    """What the op reads, in the arrays' own dtypes: matrices [r, c], gamma [c], mean and rstd [r]."""

    grad: Array
    x: Array
    gamma: Array
    mean: Array
    rstd: Array

    def block(self, part: slice) -> tuple[Floats, Floats, Floats, Floats]:
        """Return grad_y, xh, d and rstd (as a column) of a block of rows, in float64."""
        grad = self.grad[part].astype(np.float64)
        rstd = self.rstd[part].astype(np.float64)[:, None]
        xh = (self.x[part].astype(np.float64) - self.mean[part].astype(np.float64)[:, None]) * rstd
        return grad, xh, grad * self.gamma.astype(np.float64), rstd


class _Sums(msgspec.Struct, frozen=True):
    """References and bounds: grad_x [r, c]; of grad_gamma and grad_beta [c] the sum and its S."""

    grad_x: Floats
    error_x: Floats
    gamma: Floats
    gamma_size: Floats
    beta: Floats
    beta_size: Floats


def expect(case: Case, arrays: Mapping[str, Array]) -> dict[str, Expectation]:
    """Gradients with respect to x, gamma and beta; reads grad_y, x, gamma, mean and rstd.

    Judges grad_x [r, c], grad_gamma and grad_beta [c]; a variant may lack some of them. SpecError where
    the spec's arrays or reduction are none of this op, NotRunError where an exact-int profile cannot
    be exact at this shape, or float32 has no bound for the length.
    """
    given, plans = read(case, arrays)
    rows, columns = given.x.shape
    sums = _sums(given, additions(case, columns, "grad_x"))
    column_steps = {name: additions(case, rows, name) for name in ("grad_gamma", "grad_beta")}
    result = {"grad_x": Expectation(sums.grad_x, error=sums.error_x, terms=columns)}
    beta_unit = unit_of(given.grad)
    for name, value, size, unit, factor in (
        ("grad_gamma", sums.gamma, sums.gamma_size, _gamma_unit(given, beta_unit),
         compound(column_steps["grad_gamma"], 3)),
        ("grad_beta", sums.beta, sums.beta_size, beta_unit, gamma(column_steps["grad_beta"])),
    ):  # fmt: skip
        if name in plans:
            require_exact(case, ["grad_y"], size, value, unit, plans[name])
        error = factor * size + (_SUBNORMAL if name == "grad_gamma" else 0.0)
        error[size >= _OVERFLOW] = np.inf
        error[(size < EXACT_UNITS * unit) | ~np.isfinite(value)] = 0.0
        result[name] = Expectation(value, error=error, terms=rows)
    return {name: _with_mutants(result[name], name, given, plans[name].shape) for name in plans}


def replay(case: Case, arrays: Mapping[str, Array], seed: int) -> dict[str, Replay]:
    """Float32 gradients in the order of the blocks of threads, every step rounded on its own.

    No bit-exact repetition, as a compiler may fuse products and sums: it stands for the
    same-precision emulation that flat limits were made for.
    """
    given, plans = read(case, arrays)
    rows, columns = given.x.shape
    grad_x = np.zeros((rows, columns), dtype=np.float32)
    single = {"grad_x": grad_x}
    gradients, normalised = np.zeros((2, rows, columns), dtype=np.float32)
    block, width = threads(case, 0, 256), np.float32(columns)
    with np.errstate(all="ignore"):
        for part in blocks(rows, columns):
            grad, rstd = given.grad[part].astype(np.float32), given.rstd[part][:, None]
            xh = (given.x[part].astype(np.float32) - given.mean[part][:, None]) * rstd
            d = grad * given.gamma.astype(np.float32)
            first, second = tree_sum(d, block)[:, None], tree_sum(d * xh, block)[:, None]
            grad_x[part] = rstd / width * (width * d - first - xh * second)
            gradients[part], normalised[part] = grad, xh
        normalised *= gradients
        count = threads(case, 1, 256)
        single["grad_gamma"] = tree_sum(np.ascontiguousarray(normalised.T), count)
        single["grad_beta"] = tree_sum(np.ascontiguousarray(gradients.T), count)
    return {
        name: Replay(round_to(single[name].astype(np.float64), plan.dtype).reshape(plan.shape))
        for name, plan in plans.items()
    }


def read(case: Case, arrays: Mapping[str, Array]) -> tuple[Arguments, dict[str, BufferPlan]]:
    """What the op reads, and its outputs; SpecError where the spec's arrays are none of this op."""
    refuse_flushing(case)
    wanted = {"grad_y": HALF, "x": HALF, "gamma": HALF, "mean": _SINGLE, "rstd": _SINGLE}
    grad, x, scale, mean, rstd = named(case, arrays, wanted)
    fits = grad.shape == x.shape and scale.shape == x.shape[-1:]
    if not fits or mean.shape != x.shape[:-1] or rstd.shape != x.shape[:-1]:
        shown = ", ".join(f"{name} {list(arrays[name].shape)}" for name in wanted)
        raise misfit(case, f"shapes do not fit oracle {case.variant.oracle}: {shown}", "")
    shapes = {"grad_x": x.shape, "grad_gamma": x.shape[-1:], "grad_beta": x.shape[-1:]}
    given = Arguments(as_matrix(grad), as_matrix(x), scale, mean.reshape(-1), rstd.reshape(-1))
    return given, outputs(case, shapes)


def _sums(given: Arguments, steps: int) -> _Sums:
    rows, columns = given.x.shape
    sums = _Sums(*np.zeros((2, rows, columns)), *np.zeros((4, columns)))
    with np.errstate(all="ignore"):
        for part in blocks(rows, columns):
            grad, xh, d, rstd = given.block(part)
            sums.grad_x[part], sums.error_x[part] = _grad_x(xh, d, rstd, steps)
            xh *= grad
            sums.gamma[...] += xh.sum(axis=0)
            sums.gamma_size[...] += np.abs(xh, out=xh).sum(axis=0)
            sums.beta[...] += grad.sum(axis=0)
            sums.beta_size[...] += np.abs(grad, out=grad).sum(axis=0)
    return sums


def _grad_x(xh: Floats, d: Floats, rstd: Floats, steps: int) -> tuple[Floats, Floats]:
    """Reference and error of a block of rows."""
    columns = d.shape[1]
    projected = d * xh
    first = d.sum(axis=1, keepdims=True)
    second = projected.sum(axis=1, keepdims=True)
    size_first = np.abs(d).sum(axis=1, keepdims=True)
    size_second = np.abs(projected, out=projected).sum(axis=1, keepdims=True)
    reference = columns * d
    reference -= first
    reference -= xh * second
    reference *= rstd / columns
    error = (gamma(6) * columns) * np.abs(d)
    error += compound(steps, 5) * size_first
    weighed = np.abs(xh)
    weighed *= size_second
    largest = weighed.max(axis=1, keepdims=True) + size_first * columns
    weighed *= compound(steps, 10)
    error += weighed
    error *= np.abs(rstd) / columns
    error += _SUBNORMAL
    error[np.broadcast_to(largest * np.maximum(np.abs(rstd), 1.0) >= _OVERFLOW, d.shape)] = np.inf
    error[~np.isfinite(reference)] = 0.0
    return reference, error


def _gamma_unit(given: Arguments, grad_unit: float) -> float:
    """Power of two that every term of grad_gamma is a multiple of, 0.0 where none shows."""
    fractions = np.frexp(given.rstd)[0]
    if not given.rstd.size or np.any(fractions != 0.5):
        return 0.0
    unit = min(unit_of(given.x), unit_of(given.mean))
    largest = float(np.abs(given.x).max(initial=0)) + float(np.abs(given.mean).max(initial=0))
    if not largest < EXACT_UNITS * unit or math.isinf(unit):
        return 0.0
    unit *= float(given.rstd.min())
    smallest = FORMATS["float32"].smallest
    return unit * grad_unit if unit >= smallest and unit * grad_unit >= smallest else 0.0


def _with_mutants(
    expectation: Expectation, name: str, given: Arguments, shape: tuple[int, ...]
) -> Expectation:
    """Give the output its shape, and references whose sums lack a term."""
    assert expectation.error is not None
    dropped = {
        kind: lambda kind=kind: _without(name, kind, given, expectation.reference).reshape(shape)
        for kind in (DROPPED if (expectation.terms or 0) > 1 else ())
    }
    return msgspec.structs.replace(
        expectation,
        reference=expectation.reference.reshape(shape),
        error=expectation.error.reshape(shape),
        dropped=dropped,
    )


def _without(name: str, kind: str, given: Arguments, reference: Floats) -> Floats:
    """Leave out the last term or the heaviest one: a column of grad_x's sums, a row of the others'."""
    last = kind == LAST_DROPPED
    wrong = reference.copy()
    with np.errstate(all="ignore"):
        if name != "grad_x":
            row = given.x.shape[0] - 1 if last else _heaviest_row(name, given)
            grad, xh, _, _ = given.block(slice(row, row + 1))
            wrong -= (grad * xh if name == "grad_gamma" else grad)[0]
            return wrong
        for part in blocks(*given.x.shape):
            _, xh, d, rstd = given.block(part)
            lines = np.arange(d.shape[0])
            column = d.shape[1] - 1 if last else np.argmax(np.abs(d) * (1 + np.abs(xh)), axis=1)
            lost = d[lines, column][:, None], (d * xh)[lines, column][:, None]
            wrong[part] += rstd / d.shape[1] * (lost[0] + xh * lost[1])
    return wrong


def _heaviest_row(name: str, given: Arguments) -> int:
    weights = np.zeros(given.x.shape[0])
    for part in blocks(*given.x.shape):
        grad, xh, _, _ = given.block(part)
        terms = grad * xh if name == "grad_gamma" else grad
        weights[part] = np.square(np.nan_to_num(terms, posinf=0.0, neginf=0.0)).sum(axis=1)
    return int(np.argmax(weights))


ORACLES = {"layernorm.bwd": BuiltIn(read, expect, replay)}
