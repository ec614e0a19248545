"""Masks that a kernel draws by chance: the share that is kept, and whether elements are correlated.

A mask is free, element by element; what is judged is what independent elements, each 1 with the
probability p, would hardly ever show. Limits are those of probabilities proved for any size, not of a
normal distribution: W. Hoeffding, J. Amer. Statist. Assoc. 58 (1963), for the share; D. A. Freedman,
Ann. Probab. 3 (1975), for sums of products of elements some distance apart, which are martingales.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.model.case import BufferPlan, RunResult
from tokitai_cli.core.model.judged import MaskRecord, MutantRecord, PropertyRecord
from tokitai_cli.core.numerics import bit_source
from tokitai_cli.judge.checks.numbers import shown_short
from tokitai_cli.judge.failures import STEP_NUMBERS, Failure

# A right mask is refuted with at most this probability: half of it by its share, half by all distances.
SIGNIFICANCE = 1e-9
OTHER_SEED = "other-seed"
# Elements of a mask that distances are looked at in.
_LOOKED_AT = 1 << 20
_PERIOD = 64

Mask = NDArray[np.float64]


def mask_record(values: NDArray[np.generic], kept: float) -> MaskRecord:
    """What a mask shows, whose elements are 1 with the probability `kept` each."""
    mask = values.reshape(-1).astype(np.float64)
    count = int(mask.sum())
    distance, correlation, limit = _hanging_together(mask[:_LOOKED_AT], kept)
    return MaskRecord(
        kept=count,
        elements=mask.size,
        p=kept,
        share_chance=_chance(count, mask.size, kept),
        distance=distance,
        correlation=correlation,
        correlation_limit=limit,
        significance=SIGNIFICANCE,
    )


def mask_fault(record: MaskRecord) -> str:
    """What no mask by chance would show, in words; empty where there is nothing."""
    said = []
    if record.share_chance < SIGNIFICANCE / 2:
        said.append(
            f"{record.kept} of {record.elements} elements are kept, and p is {record.p:g}: a share so "
            f"far from it has a probability of at most {shown_short(record.share_chance)} (below "
            f"{SIGNIFICANCE / 2:g} refutes)"
        )
    if record.correlation > record.correlation_limit:
        said.append(
            f"elements {record.distance} apart are correlated: their correlation is "
            f"{shown_short(record.correlation)}, and exceeds {shown_short(record.correlation_limit)} by "
            f"chance with a probability of at most {SIGNIFICANCE / 2:g}, at any distance"
        )
    return "; ".join(said)


def judged_masks(
    buffer: BufferPlan, result: RunResult
) -> tuple[MaskRecord, list[Failure], list[MutantRecord]]:
    """The first mask of the repetitions that no chance gives, or the first; wrong ones beside it."""
    assert buffer.kept is not None
    records = [mask_record(one[buffer.name] != 0, buffer.kept) for one in result.outputs]
    chosen = next((one for one in records if mask_fault(one)), records[0])
    fault = mask_fault(chosen)
    failures = (
        [Failure(STEP_NUMBERS, f"{buffer.name}: {fault}", array=buffer.name)] if fault else []
    )
    return chosen, failures, list(_wrong_masks(buffer, buffer.kept))


def other_seed(
    buffer: BufferPlan, first: NDArray[np.generic], second: NDArray[np.generic]
) -> tuple[PropertyRecord, str]:
    """Whether the masks of two seeds are correlated, and what to say where they do."""
    assert buffer.kept is not None
    p, size = buffer.kept, first.size
    one, two = ((mask != 0).reshape(-1).astype(np.float64) - p for mask in (first, second))
    correlation = abs(float(one @ two)) / (size * p * (1 - p))
    limit = float(_most(np.array(size), p, SIGNIFICANCE))
    same = bool((one == two).all())
    detail = "the masks are the same" if same else "the masks of two seeds"
    record = PropertyRecord(
        name=OTHER_SEED, output=buffer.name, value=correlation, limit=limit,
        passed=correlation <= limit, detail=detail, runs=2,
    )  # fmt: skip
    if record.passed:
        return record, ""
    said = "is the same" if same else f"hangs together (correlation {shown_short(correlation)})"
    return record, f"{buffer.name}: the mask {said} with another seed"


def _chance(count: int, size: int, p: float) -> float:
    """Probability, at most, of a share as far from p as this: 2 exp(-n KL(share, p))."""
    share = count / size
    apart = sum(
        part * math.log(part / whole) for part, whole in ((share, p), (1 - share, 1 - p)) if part
    )
    return min(1.0, 2 * math.exp(-size * apart))


def _most(size: NDArray[np.int64], p: float, significance: float) -> NDArray[np.float64]:
    """Largest correlation of so many pairs that chance exceeds with this probability, at most.

    Of products of (m - p) the sum exceeds t with 2 exp(-t^2 / (2 (V + M t / 3))), where M is the
    largest product and V, the variance of all, is at most n p (1 - p) M.
    """
    variance, largest = p * (1 - p), max(p, 1 - p) ** 2
    exponent = math.log(2 / significance)
    third = exponent * largest / 3
    most = third + np.sqrt(third**2 + 2 * exponent * size * variance * largest)
    return np.asarray(most / (size * variance))


def _hanging_together(mask: Mask, p: float) -> tuple[int, float, float]:
    """The distance up to half of the mask whose correlation is nearest to its limit, or most beyond."""
    furthest = mask.size // 2
    if furthest < 1:
        return 0, 0.0, 1.0
    length = 1 << (2 * mask.size - 1).bit_length()
    spectrum = np.fft.rfft(mask - p, length)
    sums = np.fft.irfft(np.abs(spectrum) ** 2, length)[1 : furthest + 1]
    pairs = mask.size - np.arange(1, furthest + 1)
    limits = _most(pairs, p, SIGNIFICANCE / 2 / furthest)
    found = np.abs(sums) / (pairs * p * (1 - p))
    at = int(np.argmax(found / limits))
    return at + 1, float(found[at]), float(limits[at])


def _wrong_masks(buffer: BufferPlan, p: float) -> Iterator[MutantRecord]:
    raw = bit_source("wrong masks", buffer.name, *buffer.shape).random_raw(buffer.elements)
    chance = (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53
    columns = buffer.shape[-1]
    made: dict[str, tuple[str, Callable[[], Mask]]] = {
        "all-kept": ("all elements kept", lambda: np.ones(chance.size)),
        "none-kept": ("no element kept", lambda: np.zeros(chance.size)),
        "other-share": ("p of what is dropped, or p half", lambda: _masked(chance, _other(p))),
        "periodic": (
            f"the first {_PERIOD} elements again and again",
            lambda: np.resize(_masked(chance[:_PERIOD], p), chance.size),
        ),
        "rows-alike": (
            "every row the same",
            lambda: np.resize(_masked(chance[:columns], p), chance.size),
        ),
    }
    for kind, (detail, make) in made.items():
        fault = mask_fault(mask_record(make(), p))
        said = (
            f"rejected: {fault}"
            if fault
            else f"{buffer.elements} elements are too few to detect it"
        )
        yield MutantRecord(
            output=buffer.name,
            kind=kind,
            status="rejected" if fault else "not-applicable",
            detail=f"{detail}; {said}",
        )


def _masked(chance: Mask, p: float) -> Mask:
    return (chance < p).astype(np.float64)


def _other(p: float) -> float:
    """A share that is not p: that of what is dropped, where it is another."""
    return 1 - p if abs(1 - 2 * p) > 0.1 else p / 2
