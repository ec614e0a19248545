"""What the oracles of ops on rows share: arrays of a case, blocks of rows, and exact sums."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.errors import Location, NotRunError, SpecError
from tokitai_cli.expressions import evaluate
from tokitai_cli.model.case import BufferPlan, Case, Role
from tokitai_cli.model.spec import draw_of
from tokitai_cli.numerics import numpy_dtype

Array = NDArray[Any]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

FLOATS = ("float16", "bfloat16", "float32")
HALF = ("float16",)
# float64 entries of a block: a few such arrays stay in a core's second-level cache.
_BLOCK = 1 << 15
EXACT_KINDS = frozenset({"exact-int", "exact-int-ramp"})
# Largest count of units that float32 adds without rounding, whatever the order.
EXACT_UNITS = 2.0**24
# Largest result that float16 holds with all its neighbours: a changed term stays visible.
_VISIBLE = 2048.0
# float16 numbers are multiples of 2^-24.
_FIXED_POINT = 2.0**24


def named(
    case: Case, arrays: Mapping[str, Array], wanted: Mapping[str, Iterable[str]]
) -> list[Array]:
    """Return the arrays `wanted` names, each with the dtypes that it may have; else SpecError."""
    if missing := [name for name in wanted if name not in arrays]:
        names = ", ".join(wanted)
        raise misfit(case, f"oracle {case.variant.oracle} reads {names}", f"add {missing[0]}")
    for name, dtypes in wanted.items():
        if arrays[name].dtype.name not in dtypes:
            said = f"oracle {case.variant.oracle} takes {name} of {', '.join(dtypes)}"
            raise misfit(
                case, f"{said}, not {arrays[name].dtype.name}", "write an oracle of your own"
            )
    return [arrays[name] for name in wanted]


def outputs(case: Case, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, BufferPlan]:
    """Return the outputs and in-outs by name; SpecError unless they are these, of these shapes."""
    plans = {plan.name: plan for plan in case.buffers_of(Role.OUTPUT, Role.INOUT)}
    for name, plan in plans.items():
        if name not in shapes:
            known = ", ".join(shapes)
            raise misfit(case, f"oracle {case.variant.oracle} judges {known}, not {name}", "")
        if plan.shape != shapes[name] or plan.dtype not in FLOATS:
            shown = f"{plan.name} {plan.dtype} {list(plan.shape)}, not {list(shapes[name])}"
            raise misfit(case, f"oracle {case.variant.oracle} cannot judge {shown}", "")
    return plans


def misfit(case: Case, message: str, mend: str) -> SpecError:
    """Error for a spec that this oracle cannot serve, to be raised by the caller."""
    key = f"variants.{case.variant_name}.oracle"
    return SpecError(message, where=Location(file=case.loaded.path, key=key), mend=mend)


def refuse_flushing(case: Case) -> None:
    """Raise SpecError where the spec lets a kernel flush subnormal numbers."""
    if case.variant.flush_to_zero:
        said = f"oracle {case.variant.oracle} has no bound for kernels that flush subnormal numbers"
        raise misfit(case, said, "leave out flush_to_zero, or write an oracle of your own")


def scalar(case: Case, name: str) -> float:
    """Value of the scalar argument `name` as the kernel gets it, rounded to its dtype."""
    if name not in case.variant.scalars:
        raise misfit(case, f"oracle {case.variant.oracle} reads the scalar {name}", "add it")
    given = case.variant.scalars[name]
    value = evaluate(given.value, case.shape) if isinstance(given.value, str) else given.value
    return float(numpy_dtype(given.dtype).type(value))


def as_matrix(array: Array) -> Array:
    """View of an array as [rows, columns], the columns being its last axis."""
    count = math.prod(array.shape[:-1])
    return array.reshape(count, array.shape[-1])


def blocks(rows: int, columns: int) -> Iterator[slice]:
    """Slices of the rows with a few thousand elements each; none where rows have no elements."""
    if columns == 0:
        return
    step = max(1, _BLOCK // max(1, columns))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def unit_of(array: Array) -> float:
    """Largest power of two that divides all finite entries; 0.0 where they are no multiples of 2^-24.

    Infinite for an array of zeros.
    """
    lowest = np.int64(0)
    flat = array.reshape(-1)
    for part in (flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK)):
        scaled = part.astype(np.float64) * _FIXED_POINT
        scaled[~np.isfinite(scaled)] = 0.0
        if np.any(scaled != np.rint(scaled)) or np.any(np.abs(scaled) >= 2.0**62):
            return 0.0
        lowest |= np.bitwise_or.reduce(np.abs(scaled).astype(np.int64))
    return float(lowest & -lowest) / _FIXED_POINT if lowest else math.inf


def require_exact(
    case: Case, names: Iterable[str], sums: Floats, reference: Floats, unit: float
) -> None:
    """Raise NotRunError where an exact-int profile is not exact at this shape, or hides a term.

    names: arrays whose draws make the sums; sums: S of each element; unit: what they are counted in.
    """
    draws = [draw_of(case.loaded.spec, case.variant, case.profile, name) for name in names]
    if not reference.size or not any(draw.kind in EXACT_KINDS for draw in draws):
        return
    largest, result = float(sums.max()), float(np.abs(reference).max())
    reason = ""
    if not unit or largest >= EXACT_UNITS * unit:
        reason = f"sum |terms| reaches {largest:g}, and float32 counts exactly only below 2^24"
    elif result > _VISIBLE * unit:
        reason = f"a result reaches {result:g}; above 2048 float16 hides a changed term"
    if reason:
        raise NotRunError(
            f"profile {case.profile} is not applicable to this shape: {reason}",
            where=Location(file=case.loaded.path, key=f"profiles.{case.profile}"),
            mend="choose a shape with a shorter sum, or another profile",
        )


def threads(case: Case, launch: int, default: int) -> int:
    """Threads along x of a block of launch `launch`, or `default` where the case has no launches."""
    for plan in case.launches:
        if plan.index == launch:
            return plan.block[0]
    return default


def tree_sum(terms: Singles, count: int) -> Singles:
    """Sum rows in float32 as a block of `count` threads does, a power of two.

    Thread t adds the terms t, t + count, ... in turn to 0; then the upper half of the threads' sums
    is added to the lower half until one is left.
    """
    rows, width = terms.shape
    steps = max(1, -(-width // count))
    padded = np.zeros((rows, steps * count), dtype=np.float32)
    padded[:, :width] = terms
    partial = np.zeros((rows, count), dtype=np.float32)
    for step in range(steps):
        partial += padded[:, step * count : (step + 1) * count]
    while partial.shape[1] > 1:
        half = partial.shape[1] // 2
        partial = partial[:, :half] + partial[:, half:]
    return np.asarray(partial[:, 0])
