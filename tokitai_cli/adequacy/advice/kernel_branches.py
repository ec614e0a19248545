"""Ways of a kernel that no case of a spec takes, with a profile or a shape that does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tokitai_cli.adequacy.advice.drawn_values import (
    Arrays,
    cases_of_suites,
    elements,
    fits,
    number_at,
    taking,
    unreached,
)
from tokitai_cli.adequacy.advice.edit import Advice
from tokitai_cli.adequacy.advice.index_draws import (
    base_profile,
    of_index_draws,
    profile_name,
    with_draws,
)
from tokitai_cli.adequacy.advice.launched_kernels import LaunchedKernel, kernels_in, said_at
from tokitai_cli.adequacy.advice.score import cases_of, judged
from tokitai_cli.core.dtypes import DTYPES
from tokitai_cli.core.model.buffers import draw_of, drawn_buffers
from tokitai_cli.core.model.case import Case, LoadedSpec
from tokitai_cli.core.model.draws import Group, kind_of
from tokitai_cli.core.model.spec import Draw, Part
from tokitai_cli.cpp.value_branches import Branch, Way, ways_of

# Of YAML's numbers without a point.
_LARGEST_WHOLE = 2**53
_OWN, _PUT_IN = 3, 1  # shares of a draw, and of each value that is put among what it gives


class Goal(NamedTuple):
    """A way that elements of an array are to take."""

    kernel: LaunchedKernel
    array: str
    dtype: str
    branch: Branch
    first: bool

    def way(self, case: Case) -> Way | None:
        """The way in a case; None where a size bounds elements, and where the number is unknown."""
        passed = self.kernel.numbers.get(str(self.branch.operand))
        if passed is None:
            number = self.kernel.values.number(self.branch.operand)
        else:
            bounds = passed.is_size and self.branch.sign not in {"==", "!="}
            number = None if bounds else number_at(case, passed.text)
        return None if number is None else ways_of(self.branch, number)[not self.first]

    def met(self, case: Case, arrays: Arrays) -> bool:
        """Whether an element of the case goes that way."""
        way = self.way(case)
        every = elements(arrays, self.kernel.buffers([self.array]))
        return way is not None and any(bool(np.any(way.takes(one))) for one in every)

    def value(self, case: Case) -> float | str:
        """A value that goes that way, by an expression where that differs from shape to shape."""
        way = self.way(case)
        assert way is not None
        passed = self.kernel.numbers.get(str(self.branch.operand))
        scalar = case.variant.scalars.get(passed.text) if passed is not None else None
        text = passed.text if passed is not None and scalar is None else scalar and scalar.value
        if isinstance(text, str) and not text.isdigit():
            return f"({text}) + {way.beside}" if way.beside else text
        value = taking(way, self.dtype)
        return int(value) if value.is_integer() and abs(value) < _LARGEST_WHOLE else value


def of_values(loaded: LoadedSpec) -> Iterator[Advice]:
    """Advice for values that a kernel of a variant tells from others, and that no case has."""
    for name in loaded.spec.variants:
        found = kernels_in(loaded, name)
        for why in found.unread:
            yield Advice(f"{name}: {why}: what it branches on there is unknown")
        cases = cases_of_suites(loaded, name)
        if not cases:
            continue
        yield from of_index_draws(loaded, name, found.read)
        yield from _unknown(loaded, name, found.read)
        goals = {
            goal: goal.met for one in found.read for goal in _goals(loaded, name, one, cases[0])
        }
        left, skipped = unreached(cases, goals)
        if skipped:
            yield Advice(f"{name}: whether values of arrays take all ways is unknown: {skipped}")
        for buffers in dict.fromkeys(one.kernel.buffers([one.array]) for one in left):
            mine = [one for one in left if one.kernel.buffers([one.array]) == buffers]
            yield from _of_array(loaded, name, buffers, mine, cases[0])


def _unknown(loaded: LoadedSpec, name: str, kernels: Sequence[LaunchedKernel]) -> Iterator[Advice]:
    """Comparisons of elements with a name that nothing gives a value to."""
    drawn = drawn_buffers(loaded.spec.variants[name])
    for kernel in kernels:
        known = {*kernel.facts.meanings, *kernel.facts.launch, *kernel.words}
        for array in kernel.arrays:
            shown = ", ".join(one for one in kernel.buffers([array]) if one in drawn)
            for one in kernel.values.branches(array) if shown else ():
                operand = str(one.operand)
                if not operand.isidentifier() or operand in known:
                    continue
                if kernel.values.number(one.operand) is None:
                    at = said_at(loaded, one.at)
                    yield Advice(f"{name}: {at} compares {shown} with {operand}, which is unknown")


def _goals(loaded: LoadedSpec, name: str, kernel: LaunchedKernel, case: Case) -> Iterator[Goal]:
    """Both ways of each comparison of an array's elements with a number."""
    drawn = drawn_buffers(loaded.spec.variants[name])
    for array in kernel.arrays:
        mine = [drawn[one] for one in kernel.buffers([array]) if one in drawn]
        if not mine:
            continue
        dtype = DTYPES[mine[0].dtype]
        if kernel.values.constraint(array, 8 * dtype.nbytes, dtype.kind == "signed") is not None:
            continue  # loops and asserts say what it has to hold
        for branch in kernel.values.branches(array):
            for first in (True, False):
                goal = Goal(kernel, array, mine[0].dtype, branch, first)
                way = goal.way(case)
                if way is not None and fits(taking(way, mine[0].dtype), mine[0].dtype):
                    yield goal


def _of_array(
    loaded: LoadedSpec, name: str, buffers: Sequence[str], goals: Sequence[Goal], case: Case
) -> Iterator[Advice]:
    shown, told = ", ".join(buffers), list[str]()
    for goal in goals:
        way = goal.way(case)
        assert way is not None
        told.append(f"{shown} is {way.words} in no case, and {said_at(loaded, way.at)} tests that")
    said = f"{name}: {'; '.join(dict.fromkeys(told))}"
    values = list(dict.fromkeys(goal.value(case) for goal in goals))
    inputs = {one: draw for one in buffers if (draw := _mixed(loaded, name, one, values))}
    if len(inputs) < len(buffers):
        yield Advice(f"{said}; its draw takes no value beside it")
        return
    key = profile_name(buffers[0], "tested")
    words = f"{', '.join(map(str, values))} among the values of {shown}"
    given, profile = with_draws(loaded, name, key, inputs, words)
    skipped = dict[str, str]()
    list(judged(cases_of(given, name, (profile.name,)), skipped))
    if skipped:
        yield Advice(f"{said}; with it the oracle ends: {next(iter(skipped.values()))}")
        return
    yield Advice(said, profile.edits)


def _mixed(
    loaded: LoadedSpec, name: str, buffer: str, values: Sequence[float | str]
) -> Draw | None:
    """The array's own draw with values among what it gives; None where it takes none."""
    spec, variant = loaded.spec, loaded.spec.variants[name]
    own = draw_of(spec, variant, base_profile(loaded, name), buffer)
    if kind_of(own).group not in {Group.NUMBERS, Group.INDICES, Group.MIX}:
        return None
    parts = own.parts or [Part(draw=own, share=_OWN)]
    total = math.fsum(part.share for part in parts)
    share = _PUT_IN if own.parts is None else round(total * _PUT_IN / _OWN, 3)
    constants = (Draw(kind="constant", value=one) for one in values)
    return Draw(kind="mix", parts=[*parts, *(Part(draw=one, share=share) for one in constants)])
