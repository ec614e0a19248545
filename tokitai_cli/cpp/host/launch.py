"""One launch of a kernel, as the host makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

import msgspec

from tokitai_cli.cpp.body.polynomial import (
    Polynomial,
    Quotient,
    composite,
    constant,
    quotient,
    variable,
)
from tokitai_cli.cpp.body.symbolic_values import Guard

_T = TypeVar("_T")


class HostNumbers(msgspec.Struct, frozen=True):
    """The host's own numbers, None for one that is not known, or of which there are several."""

    grid: tuple[int | None, ...] = ()
    block: tuple[int | None, ...] = ()
    arguments: tuple[Fraction | None, ...] = ()
    #: Of fields of structs among the arguments, by paths from the kernel's parameters on: `p.rate`.
    fields: dict[str, Fraction] = {}
    #: Bytes that the host has allocated for each argument.
    allocated: tuple[int | None, ...] = ()


class Launch(msgspec.Struct, frozen=True):
    """A launch, its numbers in names of the host's.

    A name is a variable, or an expression that nothing is known of, as it is written.
    """

    kernel: str
    #: Arguments of the kernel's template; empty for one that the host does not say.
    template: tuple[str, ...]
    #: x, y and z, without those at the end that are 1.
    grid: tuple[Polynomial, ...]
    block: tuple[Polynomial, ...]
    shared: Polynomial
    #: None for what is no number; a null pointer is 0.
    arguments: tuple[Polynomial | None, ...]
    file: Path
    line: int
    #: Numbers in the fields of structs among the arguments, null pointers as 0: by paths, `p.n`.
    fields: dict[str, Polynomial] = {}
    #: What names of arguments and fields hold, in other names.
    values: dict[str, Polynomial] = {}
    #: Of each extent of the grid the variable that holds it, where it is a number.
    counted: tuple[str, ...] = ()
    numbers: HostNumbers = HostNumbers()
    #: Comparisons that hold where the host makes it.
    conditions: tuple[Guard, ...] = ()
    #: That a comment beside the kernel says it, and no code.
    commented: bool = False

    @property
    def handed(self) -> set[str]:
        """Names that are arguments, or fields of some."""
        whole = [*self.arguments, *self.fields.values()]
        return {name for one in whole if one is not None and (name := name_in(one))}

    def with_values(self, values: Mapping[str, Polynomial]) -> Launch:
        """The launch with numbers in place of names, where it is made of so many blocks and threads."""
        grid = tuple(one.with_values(values) for one in self.grid)
        block = tuple(one.with_values(values) for one in self.block)
        shared = self.shared.with_values(values)
        return msgspec.structs.replace(self, grid=grid, block=block, shared=shared)


def name_in(number: Polynomial | None) -> str:
    """The name that a number is; empty for another number."""
    key = next(iter(number.terms)) if number is not None and len(number.terms) == 1 else ()
    plain = len(key) == 1 and number is not None and number.terms[key] == 1
    return key[0] if plain and isinstance(key[0], str) else ""


def in_terms_of(number: Polynomial, value: Polynomial, name: str) -> Polynomial:
    """A number with a name in place of a value, where that is one product or stands by itself."""
    rest = number - value
    if len(value.terms) > 1:
        return variable(name) + rest if rest.number is not None else _within(number, value, name)
    found = constant(0)
    for atoms, times in _within(number, value, name).terms.items():
        term = Polynomial({atoms: times})
        less = term.over(value) if value.number is None else None
        found = found + (term if less is None else less * variable(name))
    return found


def _within(number: Polynomial, value: Polynomial, name: str) -> Polynomial:
    """The same within quotients and functions of the number."""
    found = constant(0)
    for atoms, times in number.terms.items():
        term = constant(times)
        for atom in atoms:
            alone = Polynomial({(atom,): 1})
            if isinstance(atom, str) or alone == value:
                term = term * alone
                continue
            parts = [in_terms_of(one, value, name) for one in atom.parts]
            if isinstance(atom, Quotient):
                term = term * quotient(*parts)
            else:
                term = term * composite(atom.function, *parts)
        found = found + term
    return found


def trimmed(extents: Sequence[Polynomial]) -> tuple[Polynomial, ...]:
    """Extents without those at the end that are 1."""
    found = list(extents)
    while len(found) > 1 and found[-1] == constant(1):
        found.pop()
    return tuple(found)


def agreed(every: Sequence[HostNumbers]) -> HostNumbers:
    """Numbers of a launch that is reached in several ways: those that all that know them agree on."""

    def row(part: Callable[[HostNumbers], Sequence[_T | None]]) -> tuple[_T | None, ...]:
        rows = [part(one) for one in every]
        length = max((len(one) for one in rows), default=0)
        return tuple(_same(one[at] for one in rows if at < len(one)) for at in range(length))

    fields = {path for one in every for path in one.fields}
    known = {path: _same(one.fields.get(path) for one in every) for path in sorted(fields)}
    return HostNumbers(
        row(lambda one: one.grid),
        row(lambda one: one.block),
        row(lambda one: one.arguments),
        {path: number for path, number in known.items() if number is not None},
        row(lambda one: one.allocated),
    )


def _same(values: Iterable[_T | None]) -> _T | None:
    known = {one for one in values if one is not None}
    return known.pop() if len(known) == 1 else None
