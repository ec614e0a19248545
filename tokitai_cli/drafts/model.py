"""A draft as data: what a spec is to say, and why each value that is no certain one was taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

Value = TypeVar("Value")
#: What YAML has on one line: a draw, a check, an argument.
Flow = Any


class Guess(msgspec.Struct, Generic[Value], frozen=True):
    """A value of a draft. `why` is what has to be checked of it; empty for what is certain."""

    value: Value
    why: str = ""


class ParamDraft(msgspec.Struct, frozen=True):
    """A size of the spec."""

    default: int
    help: str
    why: str
    multiple_of: int | None = None
    min: int | None = None
    max: int | None = None

    def fitting(self, value: int) -> int:
        """About `value`, as the kernel takes it."""
        return fitting(value, self.multiple_of or 1, self.max)


def fitting(value: int, step: int, most: int | None) -> int:
    """About `value`: a multiple of `step`, and no more than `most`."""
    if most is not None and value > most:
        value = most - value % 2
    return max(step, value // step * step)


class ArrayDraft(msgspec.Struct, frozen=True, kw_only=True):
    """An array of the spec, of a role: inputs, outputs, inout, symbols or workspaces."""

    role: str
    dtype: str
    #: Rows that pointers of their own lead to, in front of the extents; of an element that is a
    #: vector its lanes, of a struct its bytes, behind them; 0 for none.
    rows: int = 0
    extents: tuple[str | int, ...]
    inner: int = 0
    #: Variable of the source that it is.
    symbol: str = ""
    #: What is guessed of it; empty for nothing.
    why: str = ""
    #: Where its one extent is room for what indices reach: how that is known, and what strides say.
    room: str = ""
    strides: tuple[str, ...] = ()
    #: What the kernel is guessed to do with it.
    does: str = ""
    structs: bool = False
    #: Further settings, as an op has them that the draft starts from.
    settings: Mapping[str, Flow] = {}

    @property
    def shape(self) -> list[str | int]:
        """All extents, the outermost first."""
        return [*[self.rows] * bool(self.rows), *self.extents, *[self.inner] * bool(self.inner)]


class ScalarDraft(msgspec.Struct, frozen=True):
    """A number that is passed by value and is no size; a text is an expression of sizes."""

    dtype: str
    value: float | bool | str
    why: str


class LaunchDraft(msgspec.Struct, frozen=True):
    """How the kernel is launched."""

    kernel: Guess[str]
    grid: Guess[Sequence[str | int]]
    block: Guess[Sequence[str | int]]
    args: Sequence[Flow]
    #: Bytes of dynamic shared memory; None where the kernel has none.
    shared: Guess[str] | None = None
    #: Bytes beside them that indices may reach.
    shared_room: int = 0


class ProfileDraft(msgspec.Struct, frozen=True):
    """A profile; `inputs` are the arrays with a draw of their own."""

    draw: Flow
    help: str
    why: str = ""
    inputs: Guess[Mapping[str, Flow]] = Guess({})


class SuiteShape(msgspec.Struct, frozen=True):
    """A shape of a suite, and what it shows."""

    sizes: Mapping[str, int]
    shows: str
    #: What is to come of it, where that is no verdict.
    expect: Flow = None


class SpecDraft(msgspec.Struct, frozen=True, kw_only=True):
    """All that a spec says of one kernel."""

    op: str
    title: Guess[str]
    summary: str
    params: Mapping[str, ParamDraft]
    source: str
    #: What it computes, in words; empty where nothing tells it.
    formula: Guess[str] = Guess("")
    #: `file.py:function` of the formula.
    oracle: str
    #: Dtype in which sums are kept; empty where nothing says it.
    accumulate: str = ""
    requires: Guess[Sequence[str]] = Guess(())
    include: Sequence[str] = ()
    flags: Guess[Sequence[str]] = Guess(())
    #: Macros among the flags whose values are guesses.
    supposed: Sequence[str] = ()
    arrays: Mapping[str, ArrayDraft]
    scalars: Mapping[str, ScalarDraft] = {}
    structs: Mapping[str, Guess[Flow]] = {}
    lists: Mapping[str, Flow] = {}
    textures: Mapping[str, Guess[Flow]] = {}
    launch: LaunchDraft
    #: Why equal runs may differ; empty where they may not.
    unordered: str = ""
    checks: Sequence[Flow]
    non_claims: Sequence[Guess[str]] = ()
    profiles: Guess[Mapping[str, ProfileDraft]]
    suites: Guess[Mapping[str, Sequence[SuiteShape]]]
    #: Arrays whose values the text asks something of.
    drawn_to_end: frozenset[str] = frozenset()


def supposed(macros: Sequence[str]) -> str:
    """What is said of flags that define macros by guess; nothing without any."""
    listed = ", ".join(macros)
    return f"the value of {listed}, which nothing here defines" if listed else ""
