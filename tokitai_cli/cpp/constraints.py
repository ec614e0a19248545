"""Comparisons of numbers as polynomials that are at most 0, and ways to take a sum apart by them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from tokitai_cli.cpp.body.polynomial import Polynomial, Quotient, constant
from tokitai_cli.cpp.body.symbolic_values import Guard

_MOST = 16  # that are looked at for one number


class Constraints:
    """Polynomials that are at most 0.

    made: all that are parts of the same ones, so that what is known of one serves each equal one.
    """

    def __init__(
        self,
        parts: Sequence[Polynomial] = (),
        made: dict[tuple[Polynomial, ...], Constraints] | None = None,
    ) -> None:
        self.parts = tuple(dict.fromkeys(parts))
        self.key = frozenset(self.parts)
        self._about: dict[frozenset[str], Constraints] = {}
        self._without: dict[Polynomial, Constraints] = {}
        self._made = {} if made is None else made

    @classmethod
    def of(cls, guards: Sequence[Guard], reals: Collection[str]) -> Constraints:
        """Comparisons of whole numbers, and of real ones, where `<` says no more than `<=`."""
        found = []
        for left, sign, right in guards:
            above = left - right
            real = bool(above.names() & {*reals})
            least = constant(0 if "=" in sign or real else 1)
            if sign in {"<", "<=", "=="}:
                found.append(above + least if real else _tight(above + least))
            if sign in {">", ">=", "=="}:
                found.append(least - above if real else _tight(least - above))
        return cls([*found, *(more for one in found for more in _of_dividends(one))])

    def __iter__(self) -> Iterator[Polynomial]:
        return iter(self.parts)

    @property
    def contradict(self) -> bool:
        """Whether one of them is a number above 0, so that they never hold."""
        return any((one.number or 0) > 0 for one in self.parts)

    def without(self, part: Polynomial) -> Constraints:
        """The others."""
        if part not in self._without:
            self._without[part] = self._some([one for one in self.parts if one != part])
        return self._without[part]

    def joined(self, more: Constraints) -> Constraints:
        """Both."""
        return Constraints(self.parts + more.parts) if more.parts else self

    def about(self, names: frozenset[str]) -> Constraints:
        """Those that have some of the names, or names of others that do."""
        if names not in self._about:
            self._about[names] = self._chosen(names)
        return self._about[names]

    def _chosen(self, names: frozenset[str]) -> Constraints:
        chosen = list[Polynomial]()
        left = self.parts
        while more := [one for one in left if not names.isdisjoint(one.names())]:
            left = tuple(one for one in left if names.isdisjoint(one.names()))
            chosen += more
            names = names.union(*(one.names() for one in more)) if left else names
        if len(chosen) == len(self.parts) <= _MOST:
            return self
        return self._some(chosen[:_MOST])

    def _some(self, parts: Sequence[Polynomial]) -> Constraints:
        key = tuple(parts)
        if key not in self._made:
            self._made[key] = Constraints(key, self._made)
        return self._made[key]

    def replacing(self, value: Polynomial) -> Iterator[Replaced]:
        """Ways to write a number by a sum that a comparison bounds."""
        own = value.terms
        for one in self.parts:
            most = -one.terms.get((), 0)
            bounded: Polynomial | None = None
            tried = set[tuple[int, int]]()
            for key, count in one.terms.items():
                held = own.get(key, 0) if key else 0
                if held * count <= 0:
                    continue
                common = math.gcd(held, count)
                up, down = abs(held) // common, abs(count) // common
                if (up, down) in tried:
                    continue
                tried.add((up, down))
                bounded = bounded or one + constant(most)
                rest = value * constant(down) - bounded * constant(up)
                if len(rest.atoms() | bounded.atoms()) <= len(value.atoms() | bounded.atoms()):
                    yield Replaced(rest, up, down, most, one)


def _tight(constraint: Polynomial) -> Polynomial:
    """`8 a - 8 <= 0` for `8 a - 15 <= 0`, of whole numbers."""
    common = math.gcd(*(count for key, count in constraint.terms.items() if key))
    rest = constraint.terms.get((), 0)
    return constraint + constant(-rest % common) if common > 1 else constraint


def _of_dividends(constraint: Polynomial) -> Iterator[Polynomial]:
    """What comparisons of quotients by numbers say of dividends: `p / q <= k` is `p < (k + 1) q`."""
    for atom in constraint.atoms():
        divisor = atom.divisor.number if isinstance(atom, Quotient) else None
        if isinstance(atom, Quotient) and divisor and divisor > 0 and (atom,) in constraint.terms:
            count = constraint.terms[atom,]
            rest = constraint - Polynomial({(atom,): count})
            most = atom.dividend * constant(count) + rest * constant(divisor)
            yield most - constant(abs(count) * (divisor - 1))


class Replaced(NamedTuple):
    """`over * value` is `times` as much as a comparison says to be at most `most`, and `rest`."""

    rest: Polynomial
    times: int
    over: int
    most: int
    by: Polynomial


class Split(NamedTuple):
    """A number as `times` the remainder of a division by a number, and `rest`."""

    dividend: Polynomial
    divisor: int
    times: int
    rest: Polynomial


def splits(value: Polynomial) -> Iterator[Split]:
    """`c * (p / q) + d * p` as `d * (p % q) + (c + d q) * (p / q)`, for each quotient by a number."""
    quotients = [one for one in value.atoms() if isinstance(one, Quotient)]
    for atom in quotients:
        divisor = atom.divisor.number
        if (atom,) not in value.terms or divisor is None or divisor <= 0:
            continue
        dividends = [(atom.dividend, divisor)]
        for other in quotients:  # (p / a) / b is p / (a b)
            inner = other.divisor.number
            if other != atom and other.dividend == atom.dividend and inner and not divisor % inner:
                dividends.append((Polynomial({(other,): 1}), divisor // inner))
        for dividend, by in dividends:
            for key, count in dividend.terms.items():
                times, odd = divmod(value.terms.get(key, 0), count)
                if not key or odd or not times:
                    continue
                rest = value - dividend * constant(times) + Polynomial({(atom,): times * by})
                yield Split(dividend, by, times, rest)
                break
