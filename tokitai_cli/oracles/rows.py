"""What the oracles of ops on rows share: arrays of a case, blocks of rows, sums by threads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.dtypes import numpy_dtype
from tokitai_cli.errors import Location, SpecError
from tokitai_cli.expressions import evaluate
from tokitai_cli.model.case import BufferPlan, Case, Role

Array = NDArray[Any]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

FLOATS = ("float16", "bfloat16", "float32")
HALF = ("float16",)
# float64 entries of a block: a few such arrays stay in a core's second-level cache.
_BLOCK = 1 << 15


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
        if plan.dtype not in FLOATS:
            said = f"oracle {case.variant.oracle} judges {name} of {', '.join(FLOATS)}"
            raise misfit(case, f"{said}, not {plan.dtype}", "write an oracle of your own")
        if plan.shape != shapes[name]:
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
