"""Whole numbers as polynomials over names, so that indices that mean the same are equal.

`3 + w * y` is {(): 3, (w, y): 1}. A floor division is an atom of its own, a `Quotient`, and `a % b` is
`a - (a / b) * b`: so `(i / w) * w + i % w` is `i` by arithmetic.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Mapping, Set

MOST_TERMS = 64  # beyond which a polynomial is of no use to anybody


class Quotient:
    """A floor division of polynomials that does not come out even, as an atom."""

    __slots__ = ("dividend", "divisor", "text")

    @property
    def parts(self) -> tuple[Polynomial, ...]:
        """What it is made of."""
        return self.dividend, self.divisor

    def __init__(self, dividend: Polynomial, divisor: Polynomial) -> None:
        self.dividend, self.divisor = dividend, divisor
        over = str(divisor)
        simple = len(divisor.terms) == 1 and "*" not in over and " " not in over
        self.text = f"({dividend}) / {over if simple else f'({over})'}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quotient) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__  # tuples of atoms are ordered by it


class Composite:
    """A function of numbers as an atom: `min`, `max`; `?<` of a, b, c, d is `a < b ? c : d`."""

    __slots__ = ("function", "parts", "text")

    def __init__(self, function: str, parts: tuple[Polynomial, ...]) -> None:
        self.function, self.parts = function, parts
        told = [str(one) for one in parts]
        if function.startswith("?"):
            left, right, yes, no = told
            self.text = f"{left} {function[1:]} {right} ? {yes} : {no}"
        else:
            self.text = f"{function}({', '.join(told)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Composite) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__  # tuples of atoms are ordered by it


Atom = str | Quotient | Composite
Monomial = tuple[Atom, ...]


class Polynomial:
    """A sum of products of atoms with whole coefficients; frozen, none of them 0."""

    __slots__ = ("_atoms", "_hash", "_names", "_negative", "_text", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms: dict[Monomial, int] = dict(terms)
        if 0 in self.terms.values():
            self.terms = {key: count for key, count in terms.items() if count}
        self._atoms: Set[Atom] | None = None
        self._hash: int | None = None
        self._negative: Polynomial | None = None
        self._text: str | None = None
        self._names: frozenset[str] | None = None

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Polynomial):
            return self is other
        return hash(self) == hash(other) and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __add__(self, other: Polynomial) -> Polynomial:
        found = dict(self.terms)
        for key, count in other.terms.items():
            found[key] = found.get(key, 0) + count
        return Polynomial(found)

    def __neg__(self) -> Polynomial:
        if self._negative is None:
            self._negative = Polynomial({key: -count for key, count in self.terms.items()})
        return self._negative

    def __sub__(self, other: Polynomial) -> Polynomial:
        found = dict(self.terms)
        for key, count in other.terms.items():
            found[key] = found.get(key, 0) - count
        return Polynomial(found)

    def __mul__(self, other: Polynomial) -> Polynomial:
        found: dict[Monomial, int] = {}
        for key, count in self.terms.items():
            for more, times in other.terms.items():
                joined = tuple(sorted(key + more, key=str)) if key and more else key or more
                found[joined] = found.get(joined, 0) + count * times
        return Polynomial(found)

    def atoms(self) -> Set[Atom]:
        """All atoms in the order of its terms, those within quotients not."""
        if self._atoms is None:
            self._atoms = dict.fromkeys(itertools.chain.from_iterable(self.terms)).keys()
        return self._atoms

    def names(self) -> frozenset[str]:
        """All names, those within other atoms too."""
        if self._names is None:
            self._names = frozenset(self._collected())
        return self._names

    def _collected(self) -> set[str]:
        found: set[str] = set()
        for atom in self.atoms():
            if isinstance(atom, str):
                found.add(atom)
            else:
                found |= {name for part in atom.parts for name in part.names()}
        return found

    @property
    def number(self) -> int | None:
        """The number that it is; None where it has names."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    def linear(self, atom: Atom) -> tuple[Polynomial, Polynomial] | None:
        """(a, b) of `a * atom + b`; None where the atom has a higher power."""
        if atom not in self.atoms():
            return _ZERO, self
        factor: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        for key, count in self.terms.items():
            if atom not in key:
                rest[key] = count
                continue
            left = list(key)
            left.remove(atom)
            if atom in left:
                return None
            factor[tuple(left)] = count
        return Polynomial(factor), Polynomial(rest)

    def with_values(self, values: Mapping[str, Polynomial]) -> Polynomial:
        """The polynomial with values in place of names, those within other atoms too."""
        if values.keys().isdisjoint(self.names()):
            return self
        found = constant(0)
        for key, count in self.terms.items():
            term = constant(count)
            for atom in key:
                term = term * _with_values(atom, values)
            found = found + term
        return found

    def over(self, divisor: Polynomial) -> Polynomial | None:
        """The exact quotient; None where the division does not come out even, or is by 0."""
        if not divisor:
            return None
        if len(divisor.terms) != 1:
            return self._over_sum(divisor)
        ((atoms, number),) = divisor.terms.items()
        found: dict[Monomial, int] = {}
        for key, count in self.terms.items():
            left = list(key)
            for atom in atoms:
                if atom not in left:
                    return None
                left.remove(atom)
            if count % number:
                return None
            found[tuple(left)] = count // number
        return Polynomial(found)

    def _over_sum(self, divisor: Polynomial) -> Polynomial | None:
        if self == divisor:
            return constant(1)
        rest, found = self, constant(0)
        leading = _leading(divisor)
        for _ in range(6):
            if not rest:
                return found
            step = _leading(rest).over(leading)
            if step is None:
                return None
            found, rest = found + step, rest - step * divisor
        return None

    def __str__(self) -> str:
        if self._text is None:
            out = ""
            for key, count in sorted(self.terms.items(), key=_order):
                number = [str(abs(count))] if abs(count) != 1 or not key else []
                alone = (
                    len(number) + len(key) == 1
                )  # a quotient among factors stands in parentheses
                factors = [str(one) if alone or isinstance(one, str) else f"({one})"
                           for one in key]  # fmt: skip
                term = "*".join([*number, *factors])
                sign = " - " if count < 0 else " + "
                out += sign + term if out else ("-" if count < 0 else "") + term
            self._text = out or "0"
        return self._text

    __repr__ = __str__


def _order(term: tuple[Monomial, int]) -> tuple[int, list[str]]:
    return -len(term[0]), [str(atom) for atom in term[0]]


def _leading(whole: Polynomial) -> Polynomial:
    key = max(whole.terms, key=lambda one: (len(one), [str(atom) for atom in one]))
    return Polynomial({key: whole.terms[key]})


@functools.lru_cache(maxsize=1 << 10, typed=True)
def constant(number: int) -> Polynomial:
    """A number."""
    return Polynomial({(): number})


_ZERO = constant(0)


@functools.lru_cache(maxsize=1 << 14)
def variable(name: str) -> Polynomial:
    """A name."""
    return Polynomial({(name,): 1})


def quotient(dividend: Polynomial, divisor: Polynomial) -> Polynomial:
    """`dividend / divisor`: exact, a number as C++ rounds it, or an atom. The divisor is not 0."""
    exact = dividend.over(divisor)
    if exact is not None:
        return exact
    above, below = dividend.number, divisor.number
    if above is not None and below:
        return constant(abs(above) // abs(below) * (1 if (above < 0) == (below < 0) else -1))
    inner = (
        next(iter(dividend.terms))[0] if len(dividend.terms) == 1 and not dividend.number else ""
    )
    if isinstance(inner, Quotient) and dividend.terms == {
        (inner,): 1
    }:  # (a / b) / c is a / (b * c)
        return quotient(inner.dividend, inner.divisor * divisor)
    return Polynomial({(Quotient(dividend, divisor),): 1})


def _with_values(atom: Atom, values: Mapping[str, Polynomial]) -> Polynomial:
    if isinstance(atom, str):
        return values.get(atom, variable(atom))
    parts = [one.with_values(values) for one in atom.parts]
    if isinstance(atom, Composite):
        return composite(atom.function, *parts)
    return quotient(*parts) if parts[1] else Polynomial({(atom,): 1})


SIGNS: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_EXTREMES: Mapping[str, Callable[..., int]] = {"min": min, "max": max}


def composite(function: str, *parts: Polynomial) -> Polynomial:
    """A function of numbers, see `Composite`, as far as they decide it."""
    if function.startswith("?"):
        return _chosen(function[1:], *parts)
    if function not in _EXTREMES:
        return Polynomial({(Composite(function, parts),): 1})
    unlike = sorted(dict.fromkeys(parts), key=str)
    known = [one.number for one in unlike if one.number is not None]
    if len(known) == len(unlike):
        return constant(_EXTREMES[function](known))
    if len(unlike) == 1:
        return unlike[0]
    return Polynomial({(Composite(function, tuple(unlike)),): 1})


def _chosen(
    sign: str, left: Polynomial, right: Polynomial, yes: Polynomial, no: Polynomial
) -> Polynomial:
    """`left < right ? yes : no`: the least or the most of the two where these are what is compared."""
    one, other = left.number, right.number
    if one is not None and other is not None:
        return yes if SIGNS[sign](one, other) else no
    if yes == no:
        return yes
    if sign[0] in "<>" and {yes, no} == {left, right}:
        return composite("min" if (sign[0] == "<") == (yes == left) else "max", left, right)
    return Polynomial({(Composite(f"?{sign}", (left, right, yes, no)),): 1})


def remainder(dividend: Polynomial, divisor: Polynomial) -> Polynomial:
    """`dividend % divisor` by the quotient."""
    return dividend - quotient(dividend, divisor) * divisor


def is_left(value: Polynomial) -> Polynomial | None:
    """1 where a remainder is not 0, else 0, of what is not negative; None for what is no remainder."""
    for atom in value.atoms():
        if isinstance(atom, Quotient):
            whole = Polynomial({(atom,): 1})
            if value == atom.dividend - whole * atom.divisor:
                return quotient(atom.dividend + atom.divisor - constant(1), atom.divisor) - whole
    return None
