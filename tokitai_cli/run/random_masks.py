"""Cases whose kernels draw a mask by chance: judged by it, and run with another seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import numpy_dtype
from tokitai_cli.core.fills import name_of
from tokitai_cli.core.model.case import (
    BufferArg,
    BufferPlan,
    Case,
    RunResult,
    ScalarValue,
    StructArg,
)
from tokitai_cli.core.model.judged import RepeatRecord
from tokitai_cli.core.numerics import bits_of
from tokitai_cli.oracles import references
from tokitai_cli.run.prepare import Prepared

_Argument = BufferArg | ScalarValue | StructArg


def by_masks(
    case: Case, ready: Prepared, result: RunResult, timeout: float
) -> list[tuple[Prepared, RunResult]]:
    """What the oracle says by each mask that a kernel drew, and the repetitions that drew it.

    One pair where the spec has no mask, where repetitions must agree, or where a mask is not a mask.
    """
    plans = {plan.name: plan for plan in references.masks_of(case)}
    if not plans:
        return [(ready, result)]
    drawn = [{name: one[name] for name in plans if name in one} for one in result.outputs]
    fit = all(
        len(one) == len(plans) and all(_fits(plans[name], array) for name, array in one.items())
        for one in drawn
    )
    if not fit:
        return [(ready, result)]
    groups: list[list[int]] = []
    for number, one in enumerate(drawn):
        known = next((some for some in groups if _alike(drawn[some[0]], one)), None)
        if known is not None:
            known.append(number)
        elif case.variant.deterministic and groups:
            groups[0].append(number)  # other bits refute it anyway
        else:
            groups.append([number])
    return [(_by_mask(case, ready, drawn[some[0]], timeout), _of(result, some)) for some in groups]


def with_other_seed(case: Case) -> Case | None:
    """The case with the next seed of its mask; None where the spec names none."""
    random = case.variant.random
    if random is None or not random.seed:
        return None

    def changed(one: _Argument) -> _Argument:
        if isinstance(one, StructArg):
            fields = tuple((at, changed(value)) for at, value in one.fields)
            return msgspec.structs.replace(one, fields=fields)
        if not isinstance(one, ScalarValue) or one.name != random.seed:
            return one
        number = (int.from_bytes(one.bits, "little") + 1) % (1 << 8 * len(one.bits))
        return msgspec.structs.replace(one, bits=number.to_bytes(len(one.bits), "little"))

    launches = tuple(
        msgspec.structs.replace(one, args=tuple(map(changed, one.args))) for one in case.launches
    )
    return msgspec.structs.replace(case, launches=launches)


def all_repeats(case: Case, result: RunResult, of_some: RepeatRecord) -> RepeatRecord:
    """The record of all repetitions, whose masks differ, with what is said of some of them."""
    masks = [plan.name for plan in references.masks_of(case)]
    return msgspec.structs.replace(
        of_some,
        repetitions=len(result.outputs),
        sentinels=[name_of(fill) for fill in result.fills],
        schedules=list(result.schedules),
        differing_outputs=list(dict.fromkeys([*of_some.differing_outputs, *masks])),
        bitwise_equal=False,
    )


def _by_mask(
    case: Case, ready: Prepared, masks: Mapping[str, NDArray[Any]], timeout: float
) -> Prepared:
    arrays = {**ready.arrays, **{name: (one != 0).astype(one.dtype) for name, one in masks.items()}}
    expectations = references.expect(case, arrays, timeout=timeout)
    replays = references.replay(case, arrays, None, expectations)
    return msgspec.structs.replace(ready, expectations=expectations, replays=replays)


def _fits(plan: BufferPlan, array: NDArray[Any]) -> bool:
    return array.shape == plan.shape and array.dtype == numpy_dtype(plan.dtype)


def _alike(left: Mapping[str, NDArray[Any]], right: Mapping[str, NDArray[Any]]) -> bool:
    return all(np.array_equal(bits_of(left[name]), bits_of(right[name])) for name in left)


def _of(result: RunResult, numbers: Sequence[int]) -> RunResult:
    """Some of the repetitions."""
    schedules = tuple(result.schedules[number] for number in numbers) if result.schedules else ()
    return msgspec.structs.replace(
        result,
        outputs=tuple(result.outputs[number] for number in numbers),
        fills=tuple(result.fills[number] for number in numbers),
        schedules=schedules,
    )
