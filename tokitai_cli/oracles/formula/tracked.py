"""numpy-like arrays that carry, beside a formula's float64 value, what a float32 kernel may give.
 `Tracked` takes part in plain numpy code through numpy's protocols (__array_ufunc__, NEP 13, and
__array_function__, NEP 18); the rules are those of `table`. A `Decision` is a condition that rounding
may turn.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.rounding import widened
from tokitai_cli.oracles.formula import arithmetic, reductions
from tokitai_cli.oracles.formula.array_protocol import Moving
from tokitai_cli.oracles.formula.kept import wide
from tokitai_cli.oracles.formula.known import NOTHING_KNOWN, Known, NoRuleError
from tokitai_cli.oracles.formula.parts import Flags, Floats, Parts, exactly, nearest
from tokitai_cli.oracles.formula.precision import current, in_double
from tokitai_cli.oracles.formula.products import Around
from tokitai_cli.oracles.formula.scattered import Scattered

# Values whose ends are not made before they are asked for.
Late = Around | Scattered
# Whole numbers up to here are float32.
_WHOLE = 2.0**24


def _as_held(method: Callable[..., Tracked]) -> Callable[..., Tracked]:
    """A method whose operations are in float64 where the array is held in that."""

    @functools.wraps(method)
    def within(self: Tracked, *args: Any, **kwargs: Any) -> Tracked:
        with in_double(self.double):
            return method(self, *args, **kwargs)

    return within


class Tracked(Moving):
    """An array of a formula.

    parts: float64 value, ends of an interval and NaN flags, of the same shape (see `parts`).
    known: what intervals cannot say. choices: for an index that rounding may turn, which are possible:
    bool, one more axis at the end. made_of: the operation that gave it and its operands, where other
    forms of a formula are asked for. reach: how large the numbers may be of which another form makes it,
    likewise. number: its place among the arrays of a formula, on a `Tape`.
    double: it is held in float64, and so is what comes of it.
    """

    def __init__(
        self,
        parts: Parts | Late,
        known: Known = NOTHING_KNOWN,
        choices: NDArray[np.bool_] | None = None,
        *,
        double: bool = False,
    ) -> None:
        tape = current().tape
        self.number = -1 if tape is None else tape.next()
        self._held = parts
        if tape is not None:
            self.parts = tape.taken(self.number, self.parts)
        self.known = known
        self.choices = choices
        self.double = double or current().double
        self.made_of: tuple[str, tuple[Tracked, ...]] | None = None
        self.reach: Floats | None = None

    @property
    def parts(self) -> Parts:
        """See above; the ends of products and of sums by index are made where they are asked for."""
        if not isinstance(self._held, Parts):
            self._held = self._held.parts()
        return self._held

    @parts.setter
    def parts(self, parts: Parts) -> None:
        self._held = parts

    @property
    def late(self) -> Late | None:
        """What the array is made of, where its ends were not asked for."""
        return None if isinstance(self._held, Parts) else self._held

    def hold(self, parts: Parts | Late) -> None:
        """Take on other values."""
        self._held = parts

    def plain(self) -> Floats:
        """The float64 values."""
        return self._held.v

    def moved(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Tracked:
        """Apply what moves elements and changes none."""
        v, lo, hi, n = self.parts
        flag = None if n is None else function(n)
        if self.parts.point:
            return Tracked(exactly(function(v), flag), double=self.double)
        return Tracked(Parts(function(v), function(lo), function(hi), flag), double=self.double)

    def __getitem__(self, key: Any) -> Tracked:
        found = certain_index(key)
        return self.moved(lambda array: np.asarray(array[found]))

    def __setitem__(self, key: Any, value: Any) -> None:
        from tokitai_cli.oracles.formula import relations

        held = track(value)
        if held.double and not self.double:
            held = relations.stored(held)
        where, new = certain_index(key), held.parts
        v = self.parts.v.copy()
        v[where] = new.v
        n = None if self.parts.n is None else self.parts.n.copy()
        if new.n is not None or n is not None:
            n = np.zeros(v.shape, np.uint8) if n is None else n
            n[where] = 0 if new.n is None else new.n
        if self.parts.point and new.point:
            self.parts, self.known = exactly(v, n), NOTHING_KNOWN
            return
        lo, hi = self.parts.lo.copy(), self.parts.hi.copy()
        lo[where], hi[where] = new.lo, new.hi
        self.parts, self.known = Parts(v, lo, hi, n), NOTHING_KNOWN

    def copy(self) -> Tracked:
        """The same values in arrays of their own."""
        return Tracked(self.parts, self.known, double=self.double)

    def astype(self, dtype: Any, **_: Any) -> Tracked:
        """Round to a narrower float (or not), or cut to a whole number as a cast in C does.

        To float32 what is held in float64 is rounded. NoRuleError for float64, which `stored` says, and
        for what is no number.
        """
        from tokitai_cli.oracles.formula import relations

        wanted = np.dtype(dtype)
        if wanted.kind in "iu":
            return _through(np.trunc, self)
        if wanted == np.float64 and not self.double:
            raise NoRuleError(
                "astype(float64) of a tracked array has no known effect: remove it, or write"
                ' stored(x, "float64") if the kernel computes in double'
            )
        if wanted.kind == "f" or wanted.name in FORMATS:
            rounded: Tracked = relations.stored(self, wanted.name)
            return rounded
        raise NoRuleError(f"astype({wanted.name}) of a tracked array has no rule")

    @_as_held
    def sum(self, axis: Any = None, keepdims: bool = False, dtype: Any = None, **_: Any) -> Tracked:
        """Sum in any order, or of as many additions as the spec's tree has; dtype: of partial sums."""
        from tokitai_cli.oracles.formula import forms, relations

        if dtype is None:
            total = relations.summed(self, axis, keepdims)
            return forms.either("sum", (self,), total)  # type: ignore[no-any-return]
        return relations.accumulated(self, axis, keepdims, np.dtype(dtype).name)

    @_as_held
    def mean(
        self, axis: Any = None, keepdims: bool = False, dtype: Any = None, **_: Any
    ) -> Tracked:
        """Sum over the number of elements; dtype: of partial sums."""
        count = math.prod(self.shape[i] for i in axes_of(self, axis))
        return _through(np.divide, self.sum(axis, keepdims, dtype), float(count))

    @_as_held
    def var(self, axis: Any = None, keepdims: bool = False, ddof: int = 0, **_: Any) -> Tracked:
        """Mean square distance from the mean, in a second pass."""
        count = math.prod(self.shape[i] for i in axes_of(self, axis))
        away = _through(np.subtract, self, self.mean(axis=axis, keepdims=True))
        total = _through(np.multiply, away, away).sum(axis, keepdims)
        return _through(np.divide, total, float(count - ddof))

    @_as_held
    def std(self, axis: Any = None, keepdims: bool = False, ddof: int = 0, **_: Any) -> Tracked:
        """Root of `var`."""
        return _through(np.sqrt, self.var(axis, keepdims, ddof))

    @_as_held
    def max(self, axis: Any = None, keepdims: bool = False, **_: Any) -> Tracked:
        """Largest element."""
        axes = axes_of(self, axis)
        with np.errstate(all="ignore"):
            part = reductions.largest(self.parts, axes)
        return dropped(Tracked(part, Known(largest_of=(self, axes))), axes, keepdims)

    @_as_held
    def min(self, axis: Any = None, keepdims: bool = False, **_: Any) -> Tracked:
        """Smallest element."""
        negated = Tracked(arithmetic.negative(self.parts)).max(axis, keepdims)
        return Tracked(arithmetic.negative(negated.parts))

    @_as_held
    def cumsum(self, axis: Any = None) -> Tracked:
        """Cumulative sums in any order of additions."""
        flat = self.ravel() if axis is None else self
        with np.errstate(all="ignore"):
            part = reductions.prefix_sums(flat.parts, 0 if axis is None else axis % flat.ndim)
        return Tracked(part)

    def argmax(self, axis: Any = None) -> Tracked:
        """Index of the largest element: all that rounding can make the largest; ties to the first."""
        from tokitai_cli.oracles.formula import relations

        flat, along = (self.ravel(), 0) if axis is None else (self, axis % self.ndim)
        return relations.chosen(flat, along)

    def argmin(self, axis: Any = None) -> Tracked:
        """Index of the smallest element, as `argmax`."""
        negated = Tracked(arithmetic.negative(self.parts))
        return negated.argmax(axis)

    def argsort(self, axis: int = -1, **_: Any) -> NDArray[np.int64]:
        """Places in rising order."""
        from tokitai_cli.oracles.formula import places

        return places.rising(self, axis)

    def dot(self, factor: Any) -> Tracked:
        """Matrix product."""
        return _through(np.matmul, self, factor)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from tokitai_cli.oracles.formula import rules

        out = kwargs.pop("out", None)
        if method == "__call__":
            result = rules.call(ufunc, inputs, kwargs)
        else:
            result = rules.method(ufunc, method, inputs, kwargs)
        if out is None:
            return result
        (target,) = out
        if not isinstance(target, Tracked):
            raise NoRuleError(f"numpy.{ufunc.__name__} into a plain array would discard the error")
        target[...] = result
        return target

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        from tokitai_cli.oracles.formula import rules

        return rules.function(function, args, kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> NDArray[Any]:
        raise NoRuleError(
            "the formula converted a tracked array to a plain numpy array, which discards "
            "its error: make arrays with numpy.zeros_like of an input, numpy.stack or "
            "numpy.where, and do not use float(), int() or numpy.asarray"
        )

    def __float__(self) -> float:
        self.__array__()
        raise AssertionError

    def __bool__(self) -> bool:
        raise branch_on_values()


def _through(ufunc: np.ufunc, *operands: Any) -> Tracked:
    """A ufunc's result by its rule; numpy's types do not know of __array_ufunc__."""
    result: Any = ufunc(*operands)
    assert isinstance(result, Tracked)
    return result


def branch_on_values() -> NoRuleError:
    """What an `if` on an array raises."""
    return NoRuleError("a branch on a tracked value follows one side only: write numpy.where")


class Decision(np.lib.mixins.NDArrayOperatorsMixin):
    """A condition: `holds` as float64 has it, `open` where a float32 kernel may see it the other way."""

    __array_priority__ = 1001

    def __init__(self, holds: Any, is_open: Any = False) -> None:
        holds, is_open = np.broadcast_arrays(np.asarray(holds, bool), np.asarray(is_open, bool))
        self.holds: NDArray[np.bool_] = holds
        self.open: NDArray[np.bool_] = is_open

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return self.holds.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.holds.ndim

    def __getitem__(self, key: Any) -> Decision:
        return Decision(self.holds[key], self.open[key])

    def sum(self, axis: Any = None, keepdims: bool = False, **_: Any) -> Tracked:
        """Number of elements that hold."""
        return self.number().sum(axis, keepdims)

    def any(self, axis: Any = None, keepdims: bool = False) -> Decision:
        """Whether one element holds."""
        surely = (self.holds & ~self.open).any(axis=axis, keepdims=keepdims)
        maybe = (self.holds | self.open).any(axis=axis, keepdims=keepdims)
        return Decision(self.holds.any(axis=axis, keepdims=keepdims), maybe & ~surely)

    def all(self, axis: Any = None, keepdims: bool = False) -> Decision:
        """Whether all elements hold."""
        some = Decision(~self.holds, self.open).any(axis, keepdims)
        return Decision(~some.holds, some.open)

    def number(self) -> Tracked:
        """1 where it holds, else 0; both where it is open."""
        v = self.holds.astype(np.float64)
        if not self.open.any():
            return Tracked(exactly(v))
        return Tracked(Parts(v, np.where(self.open, 0.0, v), np.where(self.open, 1.0, v)))

    def astype(self, dtype: Any, **_: Any) -> Tracked:
        """As a number."""
        return self.number()

    def certain(self) -> NDArray[np.bool_]:
        """The condition as a plain array, where rounding leaves nothing open."""
        if self.open.any():
            raise NoRuleError(
                "an index or branch on a condition that rounding may change: write numpy.where"
            )
        return self.holds

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from tokitai_cli.oracles.formula import rules

        return rules.decide(ufunc, method, inputs, kwargs)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        from tokitai_cli.oracles.formula import rules

        return rules.function(function, args, kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> NDArray[Any]:
        return self.certain()

    def __bool__(self) -> bool:
        if self.holds.size != 1:
            raise branch_on_values()
        return bool(self.certain())


def track(x: Any) -> Tracked:
    """Values as a kernel has them.

    Arrays of float32 and of narrower dtypes are known without error. A number that float32 lacks (0.1,
    1e-5) may be in the kernel as it is or rounded.
    """
    if isinstance(x, Tracked):
        return x
    if isinstance(x, Decision):
        return x.number()
    array = np.asarray(x)
    if array.dtype.kind not in "biuf" and array.dtype.name not in FORMATS:
        kind = type(x).__name__
        given = "None" if x is None else f"a{'n' * (kind[0] in 'aeiou')} {kind}"
        raise NoRuleError(f"{given} is given where the formula needs an array or a number")
    values = widened(array)
    if array.dtype.name in ("float16", "bfloat16", "float32") or array.dtype.itemsize <= 2:
        return Tracked(exactly(values, _nan_of(values)))
    if array.dtype.kind in "biu" and (not values.size or float(np.abs(values).max()) <= _WHOLE):
        return Tracked(exactly(values))
    with np.errstate(all="ignore"):
        near = nearest(values)
    if np.array_equal(near, values, equal_nan=True):
        return Tracked(exactly(values, _nan_of(values)))
    return Tracked(Parts(values, np.fmin(values, near), np.fmax(values, near), _nan_of(values)))


def _nan_of(v: Floats) -> Flags | None:
    nan = np.isnan(v)
    return nan * np.uint8(2) if nan.any() else None


def known_input(array: NDArray[Any]) -> Tracked:
    """An input of the kernel: its values, and NaN where it has them; subnormal ones may be flushed."""
    values, nan = wide(array)
    flag = None if nan is None else nan * np.uint8(2)
    form = FORMATS.get(array.dtype.name)
    if current().flush_to_zero and form is not None:
        tiny = np.where(np.abs(values) < form.smallest_normal, 0.0, values)
        if not np.array_equal(tiny, values, equal_nan=True):
            return Tracked(Parts(values, np.fmin(values, tiny), np.fmax(values, tiny), flag))
    return Tracked(exactly(values, flag))


def axes_of(a: Tracked | Decision, axis: Any) -> tuple[int, ...]:
    """Axes as a sorted tuple of numbers from 0."""
    if axis is None:
        return tuple(range(a.ndim))
    return tuple(sorted(int(i) % a.ndim for i in np.atleast_1d(axis)))


def dropped(a: Tracked, axes: tuple[int, ...], keepdims: bool) -> Tracked:
    """Leave out the reduced axes, unless they are to be kept; a sum stays known as one."""
    if keepdims or not axes:
        return a
    part = a.moved(lambda array: np.squeeze(array, axis=axes)).parts
    return Tracked(part, Known(sum_of=a.known.sum_of), double=a.double)


def certain_index(key: Any) -> Any:
    """An index of plain numbers. NoRuleError where rounding leaves it open."""
    if isinstance(key, tuple):
        return tuple(certain_index(one) for one in key)
    if isinstance(key, Decision):
        return key.certain()
    if isinstance(key, Tracked):
        if not key.parts.point or key.parts.n is not None:
            raise NoRuleError("an index that rounding may change: write numpy.where")
        return key.parts.v.astype(np.int64)
    return key
