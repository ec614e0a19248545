"""What is known of an array beyond its intervals, and what a formula must not ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tokitai_cli.oracles.formula.parts import Floats, Parts

if TYPE_CHECKING:
    from tokitai_cli.oracles.formula.tracked import Tracked


class NoRuleError(TypeError):
    """A formula asks for what the error of a float32 kernel is not known of."""


class MissingError(NoRuleError):
    """A formula reads what its spec does not have. name: of that."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


class ReductionError(NoRuleError):
    """A reduction that a spec claims, and that the sums of the formula cannot have.

    key: of the claim, in the variant.
    """

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message)
        self.key = key


class Known(NamedTuple):
    """What is known of an array beyond its intervals, which forget how values are correlated."""

    #: The array and axes whose largest element this is.
    largest_of: tuple[Tracked, tuple[int, ...]] | None = None
    #: likewise. zero_in: axes along which one element is 0 and none is larger.
    sum_of: tuple[Tracked, tuple[int, ...]] | None = None
    mean_of: tuple[Tracked, tuple[int, ...]] | None = None
    peak: tuple[tuple[int, ...], Floats] | None = None
    #: Axes and a number: all elements are at least 0, and their sum along the axes is at least the
    #: number.
    least_sum: tuple[tuple[int, ...], Floats] | None = None
    #: Axes along which this is an array minus its mean, by how much a kernel's mean may be off, and
    #: by how much the float64 one.
    centred: tuple[tuple[int, ...], Floats, Floats] | None = None
    #: That one.
    centred_at: Floats | None = None
    #: The array whose square this is.
    square_of: Tracked | None = None
    #: The matrices whose product this is.
    product_of: tuple[Parts, Parts] | None = None


NOTHING_KNOWN = Known()
