"""One array that is to be drawn, and what its generator may know of the op."""

from __future__ import annotations

import math
from fractions import Fraction

import msgspec
import numpy as np

from tokitai_cli.core.dtypes import FORMATS, FloatFormat
from tokitai_cli.core.errors import Location, NotRunError, SpecError
from tokitai_cli.core.expressions import evaluate, evaluate_exactly, evaluate_real
from tokitai_cli.core.model.buffers import draw_of, drawn_buffers
from tokitai_cli.core.model.case import BufferPlan, Case
from tokitai_cli.core.model.draws import setting
from tokitai_cli.core.model.spec import Draw
from tokitai_cli.core.numerics import bit_source


class ArrayRequest(msgspec.Struct, frozen=True):
    """An array of a case with its draw."""

    case: Case
    plan: BufferPlan
    draw: Draw
    #: The axis that the op reduces over, or None where nothing shows one.
    axis: int | None
    #: Extent of the reduction: of `axis`, and of further reduced axes.
    terms: int
    #: How many arrays of the case are drawn by the same kind along a reduction, and whether this is
    #: the first of them, which carries the signs of the products.
    factors: int
    carrier: bool
    #: Of the outputs, and of the arrays that are drawn by the same kind.
    formats: tuple[FloatFormat, ...]
    #: Of a mix, where it is the draw of one.
    part: tuple[str, ...] = ()

    @property
    def form(self) -> FloatFormat:
        """The array's own format; KeyError for an integer array."""
        return FORMATS[self.plan.dtype]

    @property
    def overflowing(self) -> FloatFormat:
        """The format that overflows first among those that results pass through."""
        return min(self.formats, key=lambda form: form.largest)

    @property
    def coarsest(self) -> FloatFormat:
        """The format with the fewest digits among those that results pass through."""
        return min(self.formats, key=lambda form: form.precision)

    @property
    def is_float(self) -> bool:
        """Whether the dtype is a floating-point format."""
        return self.plan.dtype in FORMATS

    @property
    def location(self) -> Location:
        """Place in the spec that the draw comes from."""
        return Location(
            file=self.case.loaded.path, key=f"profiles.{self.case.profile}.inputs.{self.plan.name}"
        )

    def setting(self, name: str) -> float:
        """Return the draw's setting `name` at the case's shape, by default its kind's."""
        try:
            value = evaluate_real(setting(self.draw, name), self.case.sizes)
        except SpecError as error:
            raise self.refuse(f"{name}: {error.message}", error.hint) from None
        if name == "scale" and value <= 0:
            raise self.refuse(f"a scale of {value:g}", "it must be positive at every shape")
        return value

    def exact(self, name: str) -> float | Fraction:
        """Return a setting that an expression gives exactly, as 64-bit integers ask for it."""
        try:
            return evaluate_exactly(setting(self.draw, name), self.case.sizes)
        except SpecError as error:
            raise self.refuse(f"{name}: {error.message}", error.hint) from None

    def whole(self, name: str) -> int:
        """Return a setting that is an expression of integers, at the case's shape."""
        return int(evaluate(getattr(self.draw, name), self.case.sizes))

    def source(self, purpose: str = "") -> np.random.Philox:
        """Bits of this array's own, another stream for every purpose."""
        case = self.case
        return bit_source(
            case.seed,
            case.loaded.spec.op,
            case.drawn_as or case.variant_name,
            case.profile,
            self.plan.name,
            *self.plan.shape,
            *self.part,
            purpose,
        )

    def refuse(self, message: str, hint: str = "") -> SpecError:
        """Error for a draw that cannot be carried out as the spec has it."""
        return SpecError(message, where=self.location, hint=hint)

    def not_applicable(self, reason: str) -> NotRunError:
        """Error for a profile that has no meaning at this shape."""
        return NotRunError(
            f"profile {self.case.profile} is not applicable to this shape: {self.plan.name} "
            f"{list(self.plan.shape)}: {reason}",
            where=self.location,
            hint="choose another shape or profile",
        )


def requests(case: Case) -> list[ArrayRequest]:
    """Every array of `case` that is drawn, in the order inputs, in-outs, symbols."""
    spec, variant = case.loaded.spec, case.variant
    plans = {plan.name: plan for plan in case.buffers}
    names = list(drawn_buffers(variant))
    draws = {name: draw_of(spec, variant, case.profile, name) for name in names}
    axes = {name: _reduced_axes(case, name, draws[name]) for name in names}
    result = []
    for name in names:
        alike = [n for n in names if draws[n].kind == draws[name].kind]
        same = [n for n in alike if axes[n]]
        shape = plans[name].shape
        dtypes = [plans[n].dtype for n in (*alike, *variant.outputs, *variant.inout)]
        result.append(
            ArrayRequest(
                case=case,
                plan=plans[name],
                draw=draws[name],
                axis=axes[name][0] if axes[name] else None,
                terms=math.prod(shape[axis] for axis in axes[name]),
                factors=len(same),
                carrier=bool(same) and same[0] == name,
                formats=tuple(FORMATS[dtype] for dtype in dtypes if dtype in FORMATS),
            )
        )
    return result


def _reduced_axes(case: Case, name: str, draw: Draw) -> list[int]:
    """Axes that the op sums over: those whose size, as the spec writes it, is in no output's shape.

    In C[m, n] = sum A[m, k] B[k, n] that is k. The draw's own `axis` goes first and alone.
    """
    variant = case.variant
    shape = drawn_buffers(variant)[name].shape
    if draw.axis is not None:
        axis = draw.axis + len(shape) if draw.axis < 0 else draw.axis
        if not 0 <= axis < len(shape):
            raise SpecError(
                f"axis {draw.axis} of {name}, which has {len(shape)} dimensions",
                where=Location(file=case.loaded.path, key=f"profiles.{case.profile}"),
                hint=f"give one from {-len(shape)} to {len(shape) - 1}",
            )
        return [axis]
    kept = {
        str(size)
        for output in (*variant.outputs.values(), *variant.inout.values())
        for size in output.shape
    }
    return [axis for axis, size in enumerate(shape) if str(size) not in kept]
