"""Forms of a formula that are equal in exact arithmetic, for words about kernels that compute others.

Under `Precision.forms` the result of an operation is what either of its forms may give: the interval
that holds both. No verdict hangs on it. No form of `FORMS` cancels what the formula does not, such as
E[x^2] - E[x]^2 for a variance; what any such form may lose is CANCELLING's, and what one may lose that
rounds more often ROUNDED_MORE's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tokitai_cli.core.model.expectation import CANCELLING, ROUNDED_MORE
from tokitai_cli.oracles.formula import arithmetic, unary
from tokitai_cli.oracles.formula.parts import Parts, elementwise, exactly, largest_flag
from tokitai_cli.oracles.formula.precision import ROUNDING_SUMS, STEP, U, current
from tokitai_cli.oracles.formula.relations import magnitude
from tokitai_cli.oracles.formula.tracked import Tracked

Operands = tuple[Tracked, ...]
Form = Callable[[str, Operands], Iterator[Parts]]


def either(name: str, operands: Operands, result: Any) -> Any:
    """The result of an operation by all forms that are asked for; it remembers what it was made of."""
    if not current().forms or not isinstance(result, Tracked):
        return result
    part = result.parts
    for form in FORMS.keys() & set(current().forms):
        for other in FORMS[form](name, operands):
            if other.v.shape == part.v.shape:
                part = Parts(
                    part.v,
                    np.fmin(part.lo, other.lo),
                    np.fmax(part.hi, other.hi),
                    largest_flag(part.n, other.n),
                )
    reach = None
    if CANCELLING in current().forms:
        reach = _reach(name, operands, result)
        part = _widened(part, (4 * U + 3 * current().gamma(_terms_of_sum(result))) * reach)
    if ROUNDED_MORE in current().forms:
        terms = _terms_of_sum(result) if current().double or result.double else 0
        part = _widened(part, (4 + terms) * U * magnitude(result))
    widened = Tracked(part, result.known, result.choices)
    widened.made_of, widened.reach = (name, operands), reach
    return widened


# Functions that are small where their argument is, and often computed of 1 and that: exp(x) - 1.
_BESIDE_ONE = ("expm1", "log1p", "sinh", "tanh")


def _reach(name: str, operands: Operands, result: Tracked) -> Any:
    """How large the numbers may be that a form of the operation adds up, where they cancel.

    The magnitudes of sums and products, carried through: (x - m)^2 may come of x^2 and m^2, and
    p u - q v of p (u + v) and v (p + q), as a complex product of three real ones does.
    """
    if name == "sum" and result.known.sum_of is not None:
        terms, axes = result.known.sum_of
        return _reach_of(terms).sum(axis=axes).reshape(result.shape)
    sizes = [_reach_of(one) for one in operands]
    if name in ("add", "subtract"):
        most = sizes[0] + sizes[1]
        for a, b in _products(operands[0]):
            for c, d in _products(operands[1]):
                crossed = (_reach_of(a) + _reach_of(c)) * (_reach_of(b) + _reach_of(d))
                most = np.maximum(most, crossed)
        return most
    if name == "multiply":
        return sizes[0] * sizes[1]
    if name == "square" or (name == "power" and _number(operands[1]) == 2.0):
        return sizes[0] ** 2
    if name == "divide":
        return sizes[0] / np.abs(operands[1].parts.v)
    return magnitude(result) + (name in _BESIDE_ONE)


def _reach_of(a: Tracked) -> Any:
    return magnitude(a) if a.reach is None else a.reach


def _widened(part: Parts, off: Any) -> Parts:
    return Parts(part.v, part.lo - off, part.hi + off, part.n)


def _made(a: Tracked, *names: str) -> Operands:
    """Operands of the operation that gave a, if it is one of `names`; else none."""
    return a.made_of[1] if a.made_of is not None and a.made_of[0] in names else ()


def _same(a: Tracked, b: Tracked) -> bool:
    if a is b:
        return True
    if a.parts.v.size == b.parts.v.size == 1:
        return float(a.parts.v.flat[0]) == float(b.parts.v.flat[0])
    return a.shape == b.shape and np.array_equal(a.parts.v, b.parts.v, equal_nan=True)


def _number(a: Tracked) -> float | None:
    """The one number that a is, if it is one."""
    return float(a.parts.v.flat[0]) if a.parts.v.size == 1 else None


def _plus(a: Parts, b: Parts) -> Parts:
    return elementwise(arithmetic.add, a, b)


def _minus(a: Parts, b: Parts) -> Parts:
    return elementwise(arithmetic.subtract, a, b)


def _times(a: Parts, b: Parts) -> Parts:
    return elementwise(arithmetic.multiply, a, b)


def _over(a: Parts, b: Parts) -> Parts:
    return elementwise(arithmetic.divide, a, b)


def _constant(value: float) -> Parts:
    return exactly(np.full((), value))


def _products(a: Tracked) -> Iterator[tuple[Tracked, Tracked]]:
    """a as a product, either way round."""
    factors = _made(a, "multiply")
    if len(factors) == 2:
        yield factors[0], factors[1]
        yield factors[1], factors[0]
    if square := _made(a, "square"):
        yield square[0], square[0]
    power = _made(a, "power")
    if power and _number(power[1]) == 2.0:
        yield power[0], power[0]


def _factored(name: str, operands: Operands) -> Iterator[Parts]:
    """p q + r q as (p + r) q, p q + q as (p + 1) q, and x^2 - c^2 as (x - c)(x + c)."""
    if name not in ("add", "subtract"):
        return
    combine = _plus if name == "add" else _minus
    for left, shared in _products(operands[0]):
        for right, again in _products(operands[1]):
            if _same(shared, again):
                yield _times(combine(left.parts, right.parts), shared.parts)
        if _same(shared, operands[1]):
            yield _times(combine(left.parts, _constant(1.0)), shared.parts)
    root, number = _root_of(operands[0]), _number(operands[1])
    if root is not None and number is not None and (number > 0) == (name == "subtract") and number:
        size = _constant(abs(number) ** 0.5)
        yield _times(_minus(root.parts, size), _plus(root.parts, size))


def _root_of(a: Tracked) -> Tracked | None:
    """x, where a is x^2."""
    for left, right in _products(a):
        if left is right:
            return left
    return None


def _expanded(name: str, operands: Operands) -> Iterator[Parts]:
    """a (b + c) as a b + a c."""
    if name != "multiply":
        return
    for factor, total in (operands, operands[::-1]):
        for kind, combine in (("add", _plus), ("subtract", _minus)):
            if terms := _made(total, kind):
                parts = [_times(factor.parts, term.parts) for term in terms]
                yield combine(parts[0], parts[1])


def _inverted(name: str, operands: Operands) -> Iterator[Parts]:
    """c / (a + b) as 1 / (a / c + b / c), and of a difference."""
    if name != "divide":
        return
    over, under = operands
    for kind, combine in (("add", _plus), ("subtract", _minus)):
        if terms := _made(under, kind):
            inverse = combine(*(_over(term.parts, over.parts) for term in terms))
            yield _over(_constant(1.0), inverse)


def _joined(name: str, operands: Operands) -> Iterator[Parts]:
    """A sum, or a product of matrices, and what is added to it: one more term, in any order."""
    if name not in ("add", "subtract"):
        return
    for total, other in (operands, operands[::-1]):
        terms = _terms_of_sum(total)
        if terms:
            far = np.maximum(np.abs(other.parts.lo), np.abs(other.parts.hi))
            share = current().gamma(terms)
            off = share * (magnitude(total) + far) + terms * STEP
            whole = _plus(*(x.parts for x in operands))
            if name == "subtract":
                whole = _minus(*(x.parts for x in operands))
            yield Parts(whole.v, whole.lo - off, whole.hi + off, whole.n)


def _terms_of_sum(a: Tracked) -> int:
    """How many terms a sum or a product of matrices has; 0 for what is neither."""
    if a.known.sum_of is not None:
        array, axes = a.known.sum_of
        return math.prod(array.shape[i] for i in axes)
    return a.known.product_of[0].v.shape[-1] if a.known.product_of is not None else 0


def _difference(name: str, operands: Operands) -> Iterator[Parts]:
    """(1 - t) a + t b as a + t (b - a), and back; (1 - m) + m x as 1 + m (x - 1)."""
    if name != "add":
        return
    for first, second in (operands, operands[::-1]):
        for weight, end in _products(first):
            for share, other in _products(second):
                if _add_to_one(weight, share):
                    yield _plus(end.parts, _times(share.parts, _minus(other.parts, end.parts)))
        for share, apart in _products(second):
            ends = _made(apart, "subtract")
            if ends and _same(ends[1], first):
                left = _times(_minus(_constant(1.0), share.parts), first.parts)
                yield _plus(left, _times(share.parts, ends[0].parts))
            number, start = _number(share), _number(first)
            if number is not None and start is not None and abs(start + number - 1) < 1e-12:
                one = _constant(1.0)
                yield _plus(one, _times(share.parts, _minus(apart.parts, one)))


def _add_to_one(weight: Tracked, share: Tracked) -> bool:
    """Whether weight is 1 - share, by how it was made or by its numbers."""
    rest = _made(weight, "subtract")
    if rest and _number(rest[0]) == 1.0 and _same(rest[1], share):
        return True
    if not weight.parts.point or not share.parts.point or weight.shape != share.shape:
        return False
    return bool((weight.parts.v + share.parts.v == 1.0).all())


def _by_exponential(name: str, operands: Operands) -> Iterator[Parts]:
    """tanh u as 1 - 2 / (exp(2 u) + 1), and 1 + tanh u as 2 / (1 + exp(-2 u))."""
    one, two = _constant(1.0), _constant(2.0)
    if name == "tanh":
        power = elementwise(unary.exp, _times(two, operands[0].parts))
        yield _minus(one, _over(two, _plus(power, one)))
        yield _over(_minus(power, one), _plus(power, one))
    if name == "add":
        for number, inner in (operands, operands[::-1]):
            if _number(number) == 1.0 and (argument := _made(inner, "tanh")):
                power = elementwise(unary.exp, _times(_constant(-2.0), argument[0].parts))
                yield _over(two, _plus(one, power))


def _by_tanh(name: str, operands: Operands) -> Iterator[Parts]:
    """1 / (1 + exp(-x)) as (1 + tanh(x / 2)) / 2."""
    if name != "divide":
        return
    terms = _made(operands[1], "add")
    for number, inner in (terms, terms[::-1]) if terms else ():
        argument = _made(inner, "exp")
        if argument and _number(number) == 1.0:
            half = _constant(0.5)
            saturated = elementwise(unary.tanh, _times(_constant(-0.5), argument[0].parts))
            sigmoid = _times(half, _plus(_constant(1.0), saturated))
            yield _times(operands[0].parts, sigmoid)


def _rounding_sums(name: str, operands: Operands) -> Iterator[Parts]:
    """No other operation: sums that would count as exact do not (`reductions.sums_exactly`)."""
    yield from ()


def _in_any_order(name: str, operands: Operands) -> Iterator[Parts]:
    """A chain of additions, as Python's sum() makes, in any order."""
    if name != "add":
        return
    terms = _terms(operands)
    if len(terms) > 2:
        count = len(terms)
        size = sum(np.maximum(np.abs(x.parts.lo), np.abs(x.parts.hi)) for x in terms)
        off = size * (count * U / (1 - count * U)) + count * STEP
        v = sum(x.parts.v for x in terms)
        low, high = sum(x.parts.lo for x in terms), sum(x.parts.hi for x in terms)
        yield Parts(np.asarray(v), np.asarray(low - off), np.asarray(high + off))


def _terms(operands: Operands) -> list[Tracked]:
    found: list[Tracked] = []
    waiting = list(operands)
    while waiting:
        one = waiting.pop()
        inner = _made(one, "add")
        waiting += inner
        found += [] if inner else [one]
    return found


WRITE = "write it as the kernel does"
# What to do about a form, where it is not `WRITE`.
ANY_ORDER = "additions in another order"
ONE_MORE_TERM = "what is added to a sum as one more term of it"
HINTS: Mapping[str, str] = {
    ANY_ORDER: (
        "Python's sum() and a chain of + have the order in which they are written, "
        ".sum(axis=...) has any"
    ),
    ONE_MORE_TERM: (
        "the kernel's sum may start at it: make it one of the terms (`np.concatenate`)"
    ),
    ROUNDING_SUMS: (
        "they count as exact here, as their terms share a power of two; `reduction: welford` says that "
        "means are updated number by number"
    ),
}
# By the words that name them.
FORMS: Mapping[str, Form] = {
    "sums of products factored": _factored,
    "products of sums expanded": _expanded,
    "quotients as one over their inverse": _inverted,
    "(1 - t) a + t b as a + t (b - a), or the other way": _difference,
    "tanh by exponentials": _by_exponential,
    "sigmoids by tanh": _by_tanh,
    ANY_ORDER: _in_any_order,
    ONE_MORE_TERM: _joined,
    ROUNDING_SUMS: _rounding_sums,
}
