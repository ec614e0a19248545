"""A float32 kernel's arithmetic, as careless as it may be: a subclass of nothing that the rules share.
 `Careless` arrays take part in plain numpy code. Each operation is rounded to float32, or kept wider
for the next one (fused); sums run in a random order, or as a random tree; functions are off by some
ulp; a quotient may be a product with a reciprocal; an exponential may flush; fmaxf drops NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ULPS = {
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log2", "log10", "log1p"), 2),
    **dict.fromkeys(("sin", "cos", "cbrt", "arctan"), 2),
    "sqrt": 1,
    "tanh": 5,
    "sinh": 4,
    "cosh": 4,
    "power": 16,
}
LIMITS = {
    "tanh": (-1.0, 1.0),
    "sin": (-1.0, 1.0),
    "cos": (-1.0, 1.0),
    "exp": (0.0, np.inf),
    "exp2": (0.0, np.inf),
    "expm1": (-1.0, np.inf),
    "cosh": (1.0, np.inf),
}
# Arguments whose result is exact.
EXACT = {**dict.fromkeys(ULPS, 0.0), **dict.fromkeys(("log", "log2", "log10"), 1.0)}


def single(x: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    with np.errstate(all="ignore"):
        return np.asarray(x, np.float64).astype(np.float32).astype(np.float64)


class Careless(np.lib.mixins.NDArrayOperatorsMixin):
    """Float32 values, held as float64 (some of them not rounded yet)."""

    __array_priority__ = 1000

    def __init__(self, values: Any, rng: np.random.Generator) -> None:
        self.values = np.asarray(values, np.float64)
        self.rng = rng

    shape = property(lambda self: self.values.shape)
    ndim = property(lambda self: self.values.ndim)
    T = property(lambda self: Careless(self.values.T, self.rng))

    def __getitem__(self, key: Any) -> Careless:
        return Careless(self.values[key], self.rng)

    def reshape(self, *shape: int) -> Careless:
        return Careless(self.values.reshape(*shape), self.rng)

    def transpose(self, *axes: int) -> Careless:
        return Careless(self.values.transpose(*axes), self.rng)

    def astype(self, dtype: Any) -> Careless:
        return Careless(np.trunc(self.values), self.rng)

    def _done(self, values: Any) -> Careless:
        """Rounded, or fused with what comes next."""
        return Careless(values if self.rng.random() < 0.25 else single(values), self.rng)

    def sum(self, axis: Any = None, keepdims: bool = False) -> Careless:
        axes = tuple(range(self.ndim)) if axis is None else tuple(np.atleast_1d(axis) % self.ndim)
        rest = [i for i in range(self.ndim) if i not in axes]
        moved = self.values.transpose(*rest, *axes).reshape(*(self.shape[i] for i in rest), -1)
        terms = single(moved[..., self.rng.permutation(moved.shape[-1])])
        with np.errstate(all="ignore"):
            if self.rng.random() < 0.5:
                total = np.zeros(terms.shape[:-1])
                for i in range(terms.shape[-1]):
                    total = single(total + terms[..., i])
            else:
                while terms.shape[-1] > 1:
                    odd = terms[..., terms.shape[-1] - terms.shape[-1] % 2 :]
                    terms = single(terms[..., 0:-1:2] + terms[..., 1::2])
                    terms = np.concatenate([terms, odd], axis=-1)
                total = terms.sum(axis=-1)
        out = np.expand_dims(total, tuple(sorted(axes))) if keepdims else total
        return Careless(out, self.rng)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Careless:
        total = self.sum(axis, keepdims)
        return self._divided(total, self.values.size / max(total.values.size, 1))

    def _divided(self, total: Careless, count: float) -> Careless:
        quotient: Careless = total / count
        return quotient

    def var(self, axis: Any = None, keepdims: bool = False) -> Careless:
        away: Careless = self - self.mean(axis, True)
        squares: Careless = away * away
        return squares.mean(axis, keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Careless:
        all_nan = np.isnan(self.values).all(axis=axis).any()
        drop = self.rng.random() < 0.5 and not all_nan
        with np.errstate(all="ignore"):
            largest: Any = np.nanmax if drop else np.max
            out = largest(single(self.values), axis=axis, keepdims=keepdims)
        return Careless(out, self.rng)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        name = ufunc.__name__
        given = [x.values if isinstance(x, Careless) else self._constant(x) for x in inputs]
        with np.errstate(all="ignore"):
            if name in ("multiply", "add", "subtract", "negative", "absolute"):
                return self._done(ufunc(*given))
            given = [single(x) for x in given]
            if name == "divide":
                quotient, reciprocal = given[0] / given[1], single(1 / given[1])
                normal = np.isfinite(reciprocal) & (np.abs(reciprocal) >= 2.0**-126)
                if self.rng.random() < 0.3:
                    quotient = np.where(normal, reciprocal * given[0], quotient)
                return self._done(quotient)
            if name == "matmul":
                return self._product(*given)
            if name in ("maximum", "minimum"):
                other = np.fmax if name == "maximum" else np.fmin
                return Careless((ufunc if self.rng.random() < 0.5 else other)(*given), self.rng)
            if name in ULPS:
                return Careless(self._off(name, ufunc(*given), given), self.rng)
            return (
                ufunc(*given) if ufunc(*given).dtype == bool else Careless(ufunc(*given), self.rng)
            )

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            plain = [a.values if isinstance(a, Careless) else a for a in args]
            if function is np.where:
                return Careless(np.where(plain[0], *(single(x) for x in plain[1:])), self.rng)
            return Careless(single(function(*plain, **kwargs)), self.rng)

    def _constant(self, x: Any) -> Any:
        wide = np.asarray(x, np.float64)
        return single(wide) if self.rng.random() < 0.7 else wide

    def _off(self, name: str, exact: Any, given: Any) -> Any:
        rounded = single(exact)
        step = np.maximum(
            np.spacing(np.abs(rounded).astype(np.float32)).astype(np.float64), 2.0**-149
        )
        ulps = self.rng.integers(-ULPS[name], ULPS[name] + 1, exact.shape)
        sure = (given[0] == EXACT.get(name, np.nan)) | np.isinf(given[0])
        if name == "tanh":
            sure |= np.abs(given[0]) >= 20  # every implementation has saturated by then
        ulps = np.where(sure, 0, ulps)
        moved = np.where(
            np.isfinite(exact) & np.isfinite(rounded), single(rounded + ulps * step), rounded
        )
        moved = np.where(
            exact > 0, np.maximum(moved, 0.0), np.where(exact < 0, np.minimum(moved, 0.0), moved)
        )
        low, high = LIMITS.get(name, (-np.inf, np.inf))
        moved = np.clip(moved, low, high)
        if name in ("exp", "exp2") and self.rng.random() < 0.5:
            moved = np.where(moved < 2.0**-126, 0.0, moved)
        return np.where(np.isnan(exact), np.nan, moved)

    def _product(self, a: Any, b: Any) -> Careless:
        order = self.rng.permutation(a.shape[-1])
        total = np.zeros(
            (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        )
        fused = self.rng.random() < 0.5
        for k in order:
            term = a[..., :, k, None] * b[..., None, k, :]
            total = single(total + (term if fused else single(term)))
        return Careless(total, self.rng)
