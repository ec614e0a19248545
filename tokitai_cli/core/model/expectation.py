"""What oracles say of a case: references, errors, wrong outputs, identities. Arrays are numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Zeroed(msgspec.Struct, frozen=True):
    """An oracle's reference of inputs of which one slice is zero, at every `stride`-th flat position."""

    #: "last", or "heaviest", the slice of the largest sum of squares.
    which: Literal["last", "heaviest"]
    input: str
    axis: int
    index: int
    stride: int
    values: NDArray[Any]


# Names of wrong references whose sums lack a term, in Expectation.dropped.
DROPPED = (LAST_DROPPED, HEAVIEST_DROPPED) = ("last-term-dropped", "heaviest-term-dropped")
# An output of inputs with one slice zeroed, as a user's own oracle has it.
SLICE_ZEROED = "slice-zeroed"
# Wrong outputs that are tried whatever the case is; those that are not finite, on floats alone.
NON_FINITE = ("all-nan", "one-nan", "all-inf")
ALWAYS_TRIED = ("zeros", "constant-mean", "roll", *DROPPED, "sign-flipped", *NON_FINITE, "anchor")


class ChangedRows(msgspec.Struct, frozen=True):
    """A wrong reference in `Expectation.dropped`: the right one but for some rows of it."""

    #: The right one.
    reference: NDArray[Any]
    #: Of the first axis; None for all.
    rows: NDArray[np.int64] | None
    #: What these have instead, None where nothing changes.
    values: NDArray[Any] | None

    def __call__(self) -> NDArray[Any]:
        """The whole of it."""
        whole = self.reference.copy()
        if self.values is not None:
            whole[slice(None) if self.rows is None else self.rows] = self.values
        return whole


class Block(msgspec.Struct, frozen=True):
    """The rows and columns of a large product that an expectation is of, and the product's factors."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    #: The matrices as they are multiplied.
    left: NDArray[Any]
    right: NDArray[Any]
    #: Whole numbers up to which the kernel's accumulator has no rounding.
    counted: float


# Of `Further.forms`, beside those that a formula may have: one that cancels what the formula does not,
# and one that rounds each operation some times more, in float32 also where the formula keeps float64.
CANCELLING, ROUNDED_MORE = "terms that cancel", "more roundings"


class Further(msgspec.Struct, frozen=True):
    """What a formula is asked once more, of the case that it answered."""

    #: Outputs of one repetition, by name, for `stored(x, output=...)`.
    outputs: Mapping[str, NDArray[Any]] = msgspec.field(default_factory=dict)
    #: Whether these stand for what the formula returns under their names, where it goes on from there.
    kept: bool = False
    #: Forms that its operations may have besides their own, by name (`formula.forms`); or one of these.
    forms: tuple[str, ...] = ()
    #: Whether the larger of both errors is all that is wanted.
    only_error: bool = False


class Expectation(msgspec.Struct, frozen=True):
    """What an oracle says of one output (bounds.md)."""

    #: Float64 (or the output's integer/bool dtype), the output's shape; NaN where a correct kernel
    #: must give NaN, +-inf where it must give that infinity.
    reference: NDArray[Any]
    #: Worst-case absolute error e >= 0 in front of the last rounding to the output's dtype, or None
    #: where the oracle has no bound. The comparison derives F(e, r) and, from |r| +- e and the
    #: dtype's overflow threshold, which elements must be finite, must be infinite or may be either.
    #: Zero means that the value in front of that rounding is the reference itself.
    error: NDArray[np.float64] | None = None
    #: The probabilistic form of `error`, or None.
    error_probable: NDArray[np.float64] | None = None
    #: The same for values below and above the reference, where the two differ; both or neither, and
    #: `error` is then the larger of them.
    error_below: NDArray[np.float64] | None = None
    error_above: NDArray[np.float64] | None = None
    #: Outputs of one repetition, by name -> a smaller `error`, for an output that the kernel computes
    #: from another one of its own (bounds.md, the chained check of layernorm). Judged by the metric
    #: bound-chained, beside `bound`. None where there is no such thing.
    refine: Callable[[Mapping[str, NDArray[Any]]], NDArray[np.float64]] | None = None
    #: Asks the formula once more, for a reference and the errors below and above it; None for other
    #: oracles. For words alone: no verdict hangs on it.
    again: Callable[[Further], tuple[NDArray[np.float64], ...] | None] | None = None
    #: What it can be asked about, `Further.forms`, and what to do where a kernel fits one.
    forms: Mapping[str, str] = msgspec.field(default_factory=dict)
    #: Elements that the kernel may leave as they were, or None.
    may_be_unwritten: NDArray[np.bool_] | None = None
    #: Elements that may be NaN as well as within the error, or None.
    may_be_nan: NDArray[np.bool_] | None = None
    #: Elements whose error says little of their value, such as where an intermediate may overflow and
    #: 0 comes out; or None. They are compared, and count as not judged.
    unbounded: NDArray[np.bool_] | None = None
    #: Further values that are right for an output, (choices, *shape), or None.
    allowed: NDArray[Any] | None = None
    #: Of an output whose order is free, a number for each element: those of one number may stand in
    #: each other's places, those below 0 have their own. None where the spec says it.
    segments: NDArray[Any] | None = None
    #: Number of terms of the reduction behind each element (0: not a reduction, None: not known).
    terms: int | None = 0
    #: Mutant name -> a wrong reference of the same shape, such as "last-term-dropped" and
    #: "heaviest-term-dropped"; only those that the oracle can compute. Values are callables without
    #: arguments, so that nothing is computed before it is judged; each returns the wrong reference,
    #: or a function from flat positions (a slice or int64) to its float64 values there, which spares
    #: an array of the output's size.
    dropped: Mapping[str, Any] = msgspec.field(default_factory=dict)
    #: What `reference` + `low` is nearer to the truth by (double-double), for float64 outputs whose
    #: oracle goes beyond float64; |low| is at most half an ulp of the reference. None for others.
    low: NDArray[np.float64] | None = None
    #: Whether reference and error are the word of a user's own oracle: nothing derived them.
    own: bool = False
    #: What a user's own oracle says of other inputs, with one slice of one of them zero.
    zeroed: tuple[Zeroed, ...] = ()
    #: What a formula gives with one operation changed, by words for the change; no group has to tell
    #: all of them. In float64, or rounded as the output is.
    changes: Mapping[str, NDArray[Any]] = msgspec.field(default_factory=dict)
    #: Those, of the first axis, that they are of; None for all.
    rows: NDArray[np.int64] | None = None
    #: What a formula gives in float32, rounded to the output's dtype; None for other oracles.
    replay: NDArray[Any] | None = None
    #: The rows and columns that all this is of, None for the whole output.
    block: Block | None = None
    #: Whether an output is judged by it for the verdict alone: nothing wrong is tried, or explained.
    for_verdict: bool = False
    #: Inputs and scalars that the reference does not depend on in this case; None: it was not asked.
    independent: tuple[str, ...] | None = None
    #: Whether the shape makes all its elements one number, which one being up to the inputs.
    alike: bool = False


class Deviations(msgspec.Struct, frozen=True):
    """An identity at each of its places, all float64 of one shape: must be |got - want| <= limit."""

    got: NDArray[np.float64]
    want: NDArray[np.float64]
    limit: NDArray[np.float64]
    #: Places at which the identity is claimed; None for all.
    judged: NDArray[np.bool_] | None = None
    #: Along the first axis, which of all places the first of these is.
    first: int = 0


class StatedProperty(msgspec.Struct, frozen=True):
    """An identity that an oracle states of the outputs of a case."""

    name: str
    output: str
    #: What its places are: "row", "column" or "element".
    places: str
    #: Outputs of one repetition, by name, those of a run on `changed` arrays where there are any, and
    #: some rows -> how far they are from the identity, part by part in order. Rows are asked for in
    #: order; what is said of all together is said with the last ones.
    deviations: Callable[
        [Mapping[str, NDArray[Any]], Mapping[str, NDArray[Any]], range], Iterable[Deviations]
    ]
    #: Rows of the output.
    rows: int
    #: Rows that are asked for begin at multiples of it.
    step: int
    #: Makes arrays, by name, that replace the drawn ones in another run of the same artifact; None
    #: where the property is one of a single run.
    changed: Callable[[], Mapping[str, NDArray[Any]]] | None = None
    #: Words for what was done to them.
    change: str = ""

    @property
    def adds_up(self) -> bool:
        """Whether it adds up over all rows: they are asked for in their order, in one process."""
        return self.places == "column"


class Replay(msgspec.Struct, frozen=True):
    """What the same-precision replay gives for one output."""

    #: In the output's dtype, for the rows (first axis) `rows`, or for all where `rows` is None.
    values: NDArray[Any]
    rows: NDArray[np.int64] | None = None
