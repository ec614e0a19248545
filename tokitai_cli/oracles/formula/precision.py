"""What a float32 kernel may do with each operation of a formula, and how a spec says otherwise.
 u = 2^-24. Every operation is rounded once to float32, or not at all where it is fused with the next
one or done in more precision. Sums run in any order, or have at most `rounds` additions on the longest
path. A quotient may be a product with the reciprocal where that is a normal number. Functions are
within ULPS of the correctly rounded result.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tokitai_cli.core.dtypes import FORMATS, FloatFormat
from tokitai_cli.core.matrix_units import SUMS, SumsOf

SINGLE = FORMATS["float32"]
DOUBLE = FORMATS["float64"]
U = SINGLE.unit_roundoff
# Smallest float32, which is also its ulp below the normal numbers.
STEP = 2 * SINGLE.half_smallest
NORMAL = SINGLE.smallest_normal
# Least magnitude that rounds to infinity.
TOP = SINGLE.overflow
# In `Precision.forms`: no sum counts as exact, though its terms share a power of two.
ROUNDING_SUMS = "sums that round at each addition"
# In `Precision.seen`: an intermediate may overflow where float64 does not.
OVERFLOW = "overflow"
# Likewise: the bound of a sum was asked for, which has a worst case and a probabilistic form.
SUMS_BOUNDED = "sums bounded"
# Confidence of the probabilistic form: N. J. Higham, T. Mary, SIAM J. Sci. Comput. 41(5), 2019, (2.8).
LAMBDA = 10.0

# Largest error in ulp of float32 functions, without fast math: the larger figure of "HIP math API"
# (ROCm 6.4, tables of single precision) and of the CUDA C++ Programming Guide (13.0, appendix on
# mathematical functions), and 2 at least, since the former tells the ulp at the largest absolute error
# alone. tanh, sinh, cosh and power have the limits of the OpenCL C specification (3.0, section 7.4), to
# which AMD's device library is built, where these are larger than both.
ULPS: Mapping[str, float] = {
    "exp": 2,
    "exp2": 2,
    "expm1": 2,
    "log": 2,
    "log2": 2,
    "log10": 2,
    "log1p": 2,
    "sin": 2,
    "cos": 2,
    "tanh": 5,
    "sinh": 4,
    "cosh": 4,
    "erf": 4,
    "arctan": 2,
    "cbrt": 2,
    "sqrt": 1,
    "rsqrt": 2,
    "divide": 1,
    "power": 16,
}


TRUNCATED = "-truncated"


def _unit(name: str) -> SumsOf | None:
    """The matrix unit's sums, of what a spec's `accumulate` says."""
    return SUMS.get(name.partition("-")[2])


def accumulator(name: str) -> FloatFormat:
    """The format of sums, of what a spec's `accumulate` says."""
    form, unit = FORMATS[name.partition("-")[0]], _unit(name)
    if unit is None or unit.fraction >= form.precision - 1:
        return form
    return msgspec.structs.replace(form, precision=unit.fraction + 1)


class Precision(msgspec.Struct, frozen=True):
    """Permissions of one evaluation."""

    #: Additions on the longest path of every sum; None for any order.
    rounds: int | None = None
    #: Errors of functions in ulp, by name, where they differ from `ULPS`.
    ulps: Mapping[str, float] = msgspec.field(default_factory=dict)
    #: Dtype in which sums are kept; "-truncated": each sum may be cut instead of rounded;
    #: behind it, too, the name of a matrix unit.
    accumulate: str = "float32"
    #: Subnormal results may be flushed.
    flush_to_zero: bool = False
    #: Sums get their probabilistic error instead of the worst case.
    probable: bool = False
    #: Means and variances are updated together, element by element, and set by set. seen: rules that
    #: have come to apply, for what only counts where they do.
    welford: bool = False
    applied_rules: set[str] = msgspec.field(default_factory=set)
    #: What a kernel stored, by output, for `stored(x, output=...)`.
    outputs: Mapping[str, Any] = msgspec.field(default_factory=dict)
    #: Of the formula's operations, besides its own (see `forms`).
    forms: tuple[str, ...] = ()
    #: Counts the arrays of a formula, and replaces some by what a kernel kept.
    tape: Any = None
    #: Operations are done in float64, as C does where an operand is a double.
    double: bool = False
    #: Nothing overflows, as if exponents had no end: what differs then is owed to an overflow.
    unlimited: bool = False

    def ulp(self, name: str) -> float:
        """Error of a function in ulp."""
        return float(self.ulps.get(name, ULPS[name]))

    def gamma(self, additions: int, more: int = 0) -> float:
        """Relative error of a sum of `additions` + 1 terms, against the sum of magnitudes.

        more: further roundings of each term.

        gamma_k = k u / (1 - k u) (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
        Lemma 3.1), or exp(lambda sqrt(k) u + k u^2 / (1 - u)) - 1 in its probabilistic form.
        """
        self.applied_rules.add(SUMS_BOUNDED)
        u = accumulator(self.accumulate).unit_roundoff
        k = additions if self.rounds is None else min(additions, self.rounds)
        if self.accumulate.endswith(TRUNCATED):
            u *= 2
        if (unit := _unit(self.accumulate)) is not None:
            lost = unit.lost(k + 1) + more * U
            return lost / (1 - lost) if lost < 1 else math.inf
        k += more
        if self.probable:
            return math.expm1(LAMBDA * math.sqrt(k) * u + k * u * u / (1 - u))
        return k * u / (1 - k * u) if k * u < 1 else math.inf

    @property
    def least(self) -> float:
        """Power of two of which multiples are never too small to be kept; a smaller one may be lost."""
        return NORMAL if self.flush_to_zero else STEP

    @property
    def top(self) -> float:
        """Least magnitude at which a partial sum becomes infinite."""
        return math.inf if self.unlimited else accumulator(self.accumulate).overflow

    @property
    def ceiling(self) -> float:
        """Least magnitude at which the result of an operation becomes infinite."""
        return math.inf if self.unlimited or self.double else TOP

    @property
    def unit(self) -> float:
        """Largest relative error of one rounding."""
        return DOUBLE.unit_roundoff if self.double else U

    @property
    def step(self) -> float:
        """Smallest number of the dtype of operations."""
        return 2 * DOUBLE.half_smallest if self.double else STEP


_CURRENT: contextvars.ContextVar[Precision] = contextvars.ContextVar(
    "precision",
    default=Precision(),  # noqa: B039 - it is frozen
)


def current() -> Precision:
    """Permissions of the evaluation under way."""
    return _CURRENT.get()


@contextlib.contextmanager
def allowing(precision: Precision) -> Iterator[None]:
    """Evaluate what is inside with these permissions."""
    token = _CURRENT.set(precision)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextlib.contextmanager
def in_double(wanted_double: bool) -> Iterator[None]:
    """Operations inside are done, and sums kept, in float64, if it is asked for."""
    precision = current()
    if not wanted_double or precision.double:
        yield
        return
    with allowing(msgspec.structs.replace(precision, double=True, accumulate="float64")):
        yield
