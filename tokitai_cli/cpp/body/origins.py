"""What values of a walk are made of: elements of arrays, calls, and what loops carry on."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Set

from tokitai_cli.cpp.body.polynomial import Atom, Polynomial, Quotient
from tokitai_cli.cpp.body.symbolic_values import (
    Applied,
    Condition,
    Facts,
    Loaded,
    Meaning,
    Pointer,
    Record,
    Value,
    ways_of,
)

#: Calls whose result is what one of their arguments is, in another type or of another thread.
_SAME = ("__shfl", "__ldg", "__half2", "__float2", "__bfloat162", "__bfloat", "__low2", "__high2",
         "__double2", "__int2", "__uint2", "__ushort", "__short", "as_", "bit_cast",
         "__int_as", "__uint_as", "__float_as", "__builtin_amdgcn_readfirstlane",
         "to_float", "float2", "half2float")  # fmt: skip
_OF_BITS = {">>", "&"}


class Origins:
    """Where values come from.

    facts: of the walk; what the function's own arrays hold is any of what is stored in them.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def meaning(self, atom: Atom) -> Meaning | None:
        """What a name of the walk stands for; None for other names."""
        return self._facts.meanings.get(atom) if isinstance(atom, str) else None

    def behind(
        self,
        value: Value,
        *,
        into: Callable[[Meaning], bool] | None = None,
        places: bool = False,
    ) -> Iterator[Atom]:
        """All names that a value is made of, each once, its own first.

        into: whether to look behind a name of that meaning. places: whether indices of elements count.
        """
        into = into or _always
        waiting, seen = [value], set[Atom]()
        while waiting:
            for atom in self._atoms(waiting.pop(0)):
                if atom in seen:
                    continue
                seen.add(atom)
                yield atom
                if isinstance(atom, Quotient):
                    waiting += [atom.dividend, atom.divisor]
                told = self.meaning(atom)
                if told is not None and into(told):
                    waiting += self.parts(told)
                    waiting += [told.offset] if places and isinstance(told, Loaded) else []

    def parts(self, meaning: Meaning) -> list[Polynomial]:
        """What a name of that meaning is made of; of an own array's element all that is put in."""
        if isinstance(meaning, Loaded):
            return self.put_into(meaning.array) if meaning.array in self._facts.local else []
        return [one for one, _ in ways_of(meaning)]

    def put_into(self, array: str) -> list[Polynomial]:
        """Numbers that are put into an array's elements."""
        return [one for one, _ in self._facts.stored.get(array, ())]

    def elements(self, value: Value, into: Callable[[Meaning], bool] | None = None) -> set[str]:
        """Arrays, among them the function's own, that a value is made of elements of."""
        if into is None and isinstance(value, Polynomial):
            return set().union(*(self._arrays.get(one, ()) for one in value.names()))
        found = (self.meaning(atom) for atom in self.behind(value, into=into or _always))
        return {one.array for one in found if isinstance(one, Loaded)}

    def spread(self, begin: Mapping[str, frozenset[str]]) -> Mapping[str, frozenset[str]]:
        """What names have of their own and by what they are made of; asked when the walk is done."""
        found = dict(begin)
        parts = {
            name: set().union(*(one.names() for one in self.parts(told)))
            for name, told in self._facts.meanings.items()
        }
        changed = True
        while changed:  # few times: most names are made of those before them
            changed = False
            for name, inner in parts.items():
                more = frozenset().union(*(found[one] for one in inner if one in found))
                if not more <= found.get(name, frozenset()):
                    found[name] = more | found.get(name, frozenset())
                    changed = True
        return found

    @functools.cached_property
    def _arrays(self) -> Mapping[str, frozenset[str]]:
        """Arrays whose elements names are made of."""
        every = self._facts.meanings.items()
        return self.spread(
            {name: frozenset({told.array}) for name, told in every if isinstance(told, Loaded)}
        )

    def plainly(self, value: Value, *, bits: bool = True) -> Iterator[Loaded]:
        """Elements that a value is, or one of several of it, in another type too.

        bits: its high bits, or some of its bits, as well.
        """
        waiting, seen = [value], set[Atom]()
        while waiting:
            atom = _alone(waiting.pop(0))
            if atom is None or atom in seen:
                continue
            seen.add(atom)
            if isinstance(atom, Quotient):
                whole = bits and atom.divisor.number is not None
                waiting += [atom.dividend] if whole else []
                continue
            told = self.meaning(atom)
            if isinstance(told, Loaded):
                yield told
            partly = isinstance(told, Applied) and told.operator in _OF_BITS and not bits
            if told is not None and not partly and (not isinstance(told, Applied) or is_same(told)):
                waiting += self.parts(told)

    def _atoms(self, value: Value) -> Set[Atom]:
        if isinstance(value, Polynomial):
            return value.atoms()
        if isinstance(value, Pointer):
            return value.offset.atoms()
        if isinstance(value, Record):
            inner = (one for _, part in value.fields for one in self._atoms(part))
            return dict.fromkeys([value.path, *inner]).keys()
        guards = (*value.holds, *value.fails) if isinstance(value, Condition) else ()
        sides = (side for guard in guards for side in (guard.left, guard.right))
        return dict.fromkeys(one for side in sides for one in side.atoms()).keys()


def _always(meaning: Meaning) -> bool:
    del meaning
    return True


def is_same(meaning: Meaning) -> bool:
    """Whether a call gives what one of its arguments is, or some of its bits."""
    return isinstance(meaning, Applied) and (
        meaning.operator in _OF_BITS or meaning.operator.startswith(_SAME)
    )


def _alone(value: Value) -> Atom | None:
    """The name that a value is, with no factor."""
    if not isinstance(value, Polynomial) or len(value.terms) != 1:
        return None
    ((key, count),) = value.terms.items()
    return key[0] if len(key) == 1 and count == 1 else None


def literal(atom: Atom) -> float | None:
    """The number that a literal with a point stands for, `1e-6f`; None for other names."""
    if not isinstance(atom, str) or not (atom[:1].isdigit() or atom[:1] == "."):
        return None
    try:
        return float.fromhex(atom) if atom[:2] in {"0x", "0X"} else float(atom.rstrip("fFlLhH"))
    except ValueError:
        return None


def number_of(value: Value) -> float | None:
    """The number that a value is, one with a point too; None where it is none."""
    if not isinstance(value, Polynomial):
        return None
    total = 0.0
    for key, count in value.terms.items():
        told = [literal(one) for one in key]
        known = [one for one in told if one is not None]
        if len(known) < len(told):
            return None
        total += count * math.prod(known)
    return total
