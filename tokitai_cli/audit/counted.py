"""Whether sizes and places in a case's record are those of its arrays, and its repetitions agree."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tokitai_cli.core.dtypes import DTYPES, numpy_dtype
from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.core.model.judged import ElementRecord, OutputRecord, RepeatRecord
from tokitai_cli.judge.structure import OF_ELEMENTS, OF_FORM


def faults(case: CaseRecord) -> Iterator[str]:
    """Contradictions in counts of elements, in places of elements, and in what repetitions gave."""
    for output in case.outputs:
        yield from (f"output {output.name}: {text}" for text in _output(output))
    for one in case.inputs:
        if float(one.smallest) > float(one.largest):
            yield f"the smallest element of {one.name} is above its largest"
    if case.repeats is not None:
        yield from _repeats(case, case.repeats)


def _output(output: OutputRecord) -> Iterator[str]:
    whole = math.prod(output.shape)
    if output.sample is None and output.elements not in (0, whole):
        yield f"it has {whole} elements, and {output.elements} are counted"
    for name in ("unwritten", "may_be_nan", "unjudged", "choices", "finite"):
        if (getattr(output, name) or 0) > whole:
            yield f"{name} is more than its {whole} elements"
    for check in output.checks:
        for one in check.worst:
            yield from _place(one, output)
    if output.finite is not None:  # older evidence has other places
        yield from _structure(output, whole)


def _structure(output: OutputRecord, whole: int) -> Iterator[str]:
    """Failures in front of the numbers that this output cannot have."""
    for one in output.structure or ():
        if one.kind not in {*OF_FORM, *OF_ELEMENTS}:
            yield f"there is no failure of the kind {one.kind!r}"
        elif one.kind in OF_ELEMENTS and not _inside(one.first, output):
            yield f"there is no element {one.first} in it, the first that is {one.kind}"
    counts = [one.count for one in output.structure or ()]
    if min(counts, default=1) < 1 or max(counts, default=1) > max(whole, 1):
        yield f"a failure of {min(counts)} to {max(counts)} elements is in it, of {whole}"
    if output.sample is None:  # of a block, what fails in the whole output may be compared too
        yield from _alone(output, whole)


def _alone(output: OutputRecord, whole: int) -> Iterator[str]:
    """Elements that fail in two ways, or fail and are compared."""
    kinds = [one.kind for one in output.structure or ()]
    if len(set(kinds)) < len(kinds):
        yield "one kind of failure occurs twice in it"
    failing = sum(one.count for one in output.structure or () if one.kind in OF_ELEMENTS)
    compared = sum(output.metrics.ulp_histogram.values()) if output.metrics is not None else 0
    if failing + compared > whole:
        yield f"{failing} elements fail before any comparison, and {compared} of {whole} are compared"


def _inside(index: list[int], output: OutputRecord) -> bool:
    return len(index) == len(output.shape) and all(
        0 <= at < extent for at, extent in zip(index, output.shape, strict=True)
    )


def _place(one: ElementRecord, output: OutputRecord) -> Iterator[str]:
    if not _inside(one.index, output):
        yield f"there is no element {one.index} in it"
    try:
        bits, hexed = _of_bits(one.got_bits, output.dtype), _of_hex(one.want_hex)
    except (ValueError, OverflowError):
        yield f"the bits at {one.index} are those of no {output.dtype}"
        return
    for words, exact, told in (("got", bits, one.got), ("want", hexed, one.want)):
        if exact is not None and not _same(exact, float(told)):
            yield f"{words} at {one.index} is {float(told):g}, and {exact:g} by its bits"


def _of_bits(text: str, dtype: str) -> float | None:
    """Value of an element by its bits; None where they are not in it.

    Raises ValueError and OverflowError for what are none.
    """
    if not text or dtype not in DTYPES:
        return None
    data = int(text, 16).to_bytes(DTYPES[dtype].nbytes, "little")
    return float(np.frombuffer(data, numpy_dtype(dtype).newbyteorder("<"))[0])


def _of_hex(text: str) -> float | None:
    return float.fromhex(text) if text else None


def _same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-3)


def _repeats(case: CaseRecord, repeats: RepeatRecord) -> Iterator[str]:
    for what, count in (("sentinels", repeats.sentinels), ("schedules", repeats.schedules)):
        if count and len(count) != repeats.repetitions:
            yield f"it has {len(count)} {what} and {repeats.repetitions} repetitions"
    digests = [one.sha256 for one in case.outputs if one.sha256]
    for one in digests:
        if len(one) != repeats.repetitions:
            yield f"it has digests of {len(one)} of {repeats.repetitions} repetitions"
    differ = any(len(set(one)) > 1 for one in digests)
    # Elements that a kernel left out have the fill of their repetition: no difference of its bits.
    filled = any(
        one.unwritten or any(each.count for each in one.structure or ()) for one in case.outputs
    )
    known = (
        case.deterministic and bool(digests) and repeats.bitwise_equal is not None and not filled
    )
    if known and repeats.bitwise_equal == differ:
        yield "its digests say otherwise whether repetitions gave equal bits"
