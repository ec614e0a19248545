"""Wrong outputs of a formula: the formula run again in float64 with one of its operations changed.

A change is a fault that kernels have: a term that a reduction drops, an operand left out, a sign, a
neighbour's value, a sum for a maximum, an intermediate kept in float16, a scale that is off by a
thousandth.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.oracles.variants.steps import Steps

Array = NDArray[Any]
Call = Callable[[Callable[[Any], Any]], Mapping[str, Any]]

SUMS = ("sum", "mean", "matmul", "einsum", "dot", "cumsum", "add.at")
PRODUCTS = frozenset(("matmul", "dot", "einsum"))
PLACES = ("argmax", "argmin")
# Of these and sums alone float32 may make no error.
RATIONAL = (
    *PLACES,
    "sum",
    "matmul",
    "einsum",
    "dot",
    "cumsum",
    "add.at",
    "add",
    "subtract",
    "multiply",
    "negative",
    "absolute",
    "square",
)
EXTREMES = ("max", "min", "amax", "amin")
OPPOSITE = {"add": np.subtract, "subtract": np.add, "multiply": np.divide, "divide": np.multiply}

# What is changed, by what it is changed in.
OF_SUMS = {
    "first": "the first term dropped",
    "last": "the last term dropped",
    "heaviest": "the heaviest term dropped",
    "half": "the second half of the terms dropped",
}
# The kinds that stand for a term that a kernel loses.
DROPPING = ("last", "heaviest")
OF_EXTREMES = {"summed": "a sum in its place", "last": "the last element dropped"}
OF_PLACES = {
    "latter": "the last of equal values",
    "absolute": "of the absolute values",
    "zero": "a start at 0",
}
OF_PAIRS = {
    "left": "the first operand alone",
    "right": "the second operand alone",
    "opposite": "the opposite",
}
OF_SIDES = {
    "left": "the first side alone",
    "right": "the second side alone",
    "swapped": "sides swapped",
}
# Of what takes one operand or another; which of them NaN gives is left open (`fmax`).
OF_CHOICES = {
    "left": "the first operand alone",
    "right": "the second operand alone",
}
OF_CLIPS = {
    "unbounded-below": "no lower limit",
    "unbounded-above": "no upper limit",
}
# Of what rounds to integers.
OF_NEAREST = {"half-up": "halves rounded up", "half-away": "halves rounded away from 0"}
OF_DIRECTED = {
    "floor": {"truncated": "truncated", "below": "one less at integers"},
    "ceil": {"truncated": "truncated", "above": "one more at integers"},
    "trunc": {"floored": "rounded down"},
    "sign": {"nonzero": "1 at 0"},
}
CHOICES, NEAREST = ("maximum", "minimum"), ("rint", "round", "around")
# Changes that alter nothing where no element takes the other side of a condition, reaches a limit, or
# lies halfway between two integers.
OF_BRANCHES = (
    *("unbounded-below", "unbounded-above", "half-up", "half-away", "truncated"),
    *("below", "above", "floored", "nonzero"),
)
OF_ALL = {
    "neighbour": "the neighbour's value along the last axis",
    "half-precision": "kept in float16",
    "scaled": "off by a thousandth",
}


_PASSES = 8  # of a loop in which its operations are changed, from the first to the last


class Operation(NamedTuple):
    """An operation: its place in the order of evaluation, numpy's name, its line in the file."""

    place: int
    name: str
    line: int
    #: Which of the operations of that name in that line it is, from 1.
    nth: int = 1
    #: Of a sum, the largest number of terms that it adds.
    terms: int = 0
    #: Where in the function's code; a loop comes to it again and again.
    site: int = 0

    def kinds(self) -> Mapping[str, str]:
        """Changes that it can have, with words for them."""
        if self.name in SUMS:
            return {**OF_SUMS, **OF_ALL}
        if self.name in EXTREMES:
            return {**OF_EXTREMES, **OF_ALL}
        if self.name in PLACES:
            return OF_PLACES
        if self.name in CHOICES:
            return {**OF_CHOICES, **OF_ALL}
        if self.name == "clip":
            return {**OF_CLIPS, **OF_ALL}
        if self.name in NEAREST:
            return {**OF_NEAREST, **OF_ALL}
        if self.name in OF_DIRECTED:
            return {**OF_DIRECTED[self.name], **OF_ALL}
        pairs = OF_PAIRS if self.name in OPPOSITE else OF_SIDES if self.name == "where" else {}
        return {**pairs, **OF_ALL}


class Change(NamedTuple):
    """One operation with one change."""

    operation: Operation
    kind: str

    @property
    def is_of_branch(self) -> bool:
        """Whether it alters nothing where no element takes the branch that it is wrong in."""
        sides = self.operation.name in ("where", *CHOICES) and self.kind in ("left", "right")
        return sides or self.kind in OF_BRANCHES

    @property
    def words(self) -> str:
        """For people, unique among the changes of a formula."""
        one = self.operation
        which = f" {one.nth}" if one.nth > 1 else ""
        return f"line {one.line}, {one.name}{which}: {one.kinds()[self.kind]}"


class Behind(NamedTuple):
    """What values come of: the places of sums, and whether of + - * and sums alone."""

    places: frozenset[int] = frozenset()
    rational: bool = True

    def __or__(self, other: Behind) -> Behind:
        return Behind(self.places | other.places, self.rational and other.rational)


class Tape:
    """Counts operations, and says of each whether it is the one to change."""

    is_repeating = False

    def __init__(self, file: str, change: Change | None) -> None:
        self.operations: list[Operation] = []
        #: Elements that the operations went over so far; of products, what takes as long.
        self.work = 0
        #: Of the largest array, and extents of the operands of products of matrices.
        self.largest = 0
        self.matrices: list[tuple[int, ...]] = []
        self.is_recording = change is None
        self.steps = Steps(lost=not self.is_recording)
        self._file = file
        self._change = change
        self._place = -1
        self._named: Counter[tuple[str, int]] = Counter()

    def next(self, name: str, work: int, terms: int = 0, elements: int | None = None) -> str | None:
        """The change of the operation that comes now, if any; work: elements that it goes over, as
        many as its largest array has where `elements` does not say so.
        """
        self._place = place = self._place + 1
        self.work += work
        self.largest = max(self.largest, work if elements is None else elements)
        if self._change is not None:
            return self._change.kind if self._change.operation.place == place else None
        line, site = self._line_and_site()
        self._named[name, line] += 1
        nth = self._named[name, line]
        self.operations.append(Operation(place, name, line, nth, terms, site))
        return None

    def multiplies(self, extents: tuple[int, ...]) -> None:
        """Note the extents of the matrices of a product."""
        self.matrices.append(extents)

    def _line_and_site(self) -> tuple[int, int]:
        frame: Any = sys._getframe(2)
        while frame is not None:
            if frame.f_code.co_filename == self._file:
                return int(frame.f_lineno), int(frame.f_lasti)
            frame = frame.f_back
        return 0, 0


class Recorded(NamedTuple):
    """Operations of a formula in their order, and what each output comes of that is made of floats."""

    operations: list[Operation]
    behind: dict[str, Behind]
    #: What each output is in float64.
    values: Mapping[str, Array]
    #: Elements that one call of it goes over, as `Tape.work` counts them.
    work: int
    #: Elements of the largest array, and extents of all matrices that it multiplies.
    largest: int
    matrices: list[tuple[int, ...]]
    #: Of a large case, the rows that this is of (`row_layout.Sample`); None where it is of all.
    sample: Any = None
    steps: Steps | None = None

    def changes(self) -> list[Change]:
        """All changes of the operations; of one that a loop repeats, in some of its passes."""
        passes: dict[tuple[str, int, int], list[Operation]] = {}
        for one in self.operations:
            passes.setdefault((one.name, one.line, one.site), []).append(one)
        kept = {
            every[round(index * (len(every) - 1) / (_PASSES - 1))].place
            for every in passes.values()
            for index in range(_PASSES)
        }
        return [
            Change(one, kind)
            for one in self.operations
            if one.place in kept
            for kind in one.kinds()
        ]

    def sums_of(self, output: str) -> list[Operation]:
        """The sums behind an output, in their order."""
        return [
            self.operations[place] for place in sorted(self.behind.get(output, Behind()).places)
        ]

    def sum_of(self, output: str) -> Operation | None:
        """The latest of them; None where it is no sum."""
        return next(reversed(self.sums_of(output)), None)
