"""Whether the compiled rules of formulas are what numpy's rules are, on drawn and special blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import native
from tokitai_cli.oracles.formula import arithmetic, unary
from tokitai_cli.oracles.formula.bounds import sides_of
from tokitai_cli.oracles.formula.parts import Parts, exactly, nearest

_Arrays = Sequence[NDArray[Any] | None]

_SHAPE = (9, 1021)


def check_native(library: native.Library) -> None:
    """Raise MismatchError for the first rule that differs, with its operands' kinds."""
    with np.errstate(all="ignore"):
        for name, rule, operands in _cases():
            with native.by(None):
                want = rule(*operands)
            with native.by(library):
                got = rule(*operands)
            if not _same(got, want):
                raise native.MismatchError(f"the compiled rule of {name} is not numpy's")


def _same(got: _Arrays, want: _Arrays) -> bool:
    """Whether all arrays are equal; zeros of both signs count as equal."""
    return all(
        (one is None and other is None)
        or (one is not None and other is not None and np.array_equal(one, other, equal_nan=True))
        for one, other in zip(got, want, strict=True)
    ) and _is_point(got) == _is_point(want)


def _is_point(found: _Arrays) -> bool:
    return isinstance(found, Parts) and found.point


def _cases() -> Iterator[tuple[str, Callable[..., _Arrays], tuple[Parts, ...]]]:
    blocks = dict(_blocks())
    rows = dict(_blocks((_SHAPE[0], 1)))
    columns = dict(_blocks(_SHAPE[1:]))
    of_two = (arithmetic.add, arithmetic.subtract, arithmetic.multiply, arithmetic.divide)
    for rule in of_two:
        for kind, block in blocks.items():
            for other in (blocks, rows, columns):
                for more, operand in other.items():
                    shape = list(operand.v.shape)
                    yield f"{rule.__name__}, {kind} and {more} {shape}", rule, (block, operand)
                    yield f"{rule.__name__}, {more} {shape} and {kind}", rule, (operand, block)
    roots = (arithmetic.square, unary.sqrt, unary.rsqrt, unary.exp, unary.exp2, unary.expm1)
    of_one = (*roots, unary.log, unary.log1p, unary.tanh, unary.sinh, unary.cbrt)
    for one in of_one:
        name = getattr(one, "name", "") or getattr(one, "__name__", "")
        for kind, block in blocks.items():
            yield f"{name}, {kind}", one, (block,)
    for kind, block in blocks.items():
        yield f"the bound, {kind}", _sides_of, (block,)


def _sides_of(a: Parts) -> _Arrays:
    return sides_of(a.v, a.lo, a.hi)


def _blocks(shape: tuple[int, ...] = _SHAPE) -> Iterator[tuple[str, Parts]]:
    """Blocks by what they are."""
    rng = np.random.default_rng([28, *shape])
    drawn = rng.standard_normal(shape) * 2.0 ** rng.integers(-20, 6, shape)
    drawn.reshape(-1)[:: max(drawn.size // 5, 1)] = 0.0
    error = np.abs(drawn) * rng.random(shape) * 1e-6
    single = nearest(drawn)
    yield "points", exactly(single)
    yield "integers", exactly(np.rint(drawn))
    yield "intervals", Parts(drawn, drawn - error, drawn + error)
    low = np.where(rng.random(shape) < 0.3, single, single - error)
    yield "some points", Parts(single, low, np.where(low == single, single, single + error))
    yield "positive", Parts(np.abs(drawn) + 1, np.abs(drawn) + 1 - error, np.abs(drawn) + 1 + error)
    yield "positive points", exactly(np.abs(single) + 1)
    yield "powers of two", exactly(np.ldexp(1.0, rng.integers(-8, 8, shape)))
    tiny = single * 2.0**-130
    yield "subnormal", Parts(tiny, tiny - 2.0**-149, tiny + 2.0**-149)
    large = single * 2.0**110
    yield "near overflow", Parts(large, large - np.abs(large), large + np.abs(large))
    special = drawn.copy()
    special.reshape(-1)[:: max(special.size // 3, 1)] = np.inf
    yield "infinities", exactly(special)
