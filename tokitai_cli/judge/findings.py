"""What was found, in words: a check that failed, and what a kernel changed that it may not change."""

from __future__ import annotations

from tokitai_cli.core.dtypes import DTYPES
from tokitai_cli.core.model.buffers import leaves_of
from tokitai_cli.core.model.case import BufferPlan, Case, GuardDamage, InputDamage, Role, RunResult
from tokitai_cli.core.model.judged import CheckRecord, FindingRecord, PatternRecord
from tokitai_cli.core.model.metrics import METRICS
from tokitai_cli.core.model.wording import plural
from tokitai_cli.judge.checks.numbers import (
    elements_text,
    index_of,
    shown,
    shown_index,
    shown_short,
)

GUARD_TOOL = "guards"
INPUT_TOOL = "inputs"


def findings_of(case: Case, result: RunResult) -> list[FindingRecord]:
    """One per damaged guard side (first repetition that shows it) and changed input; the device's."""
    plans = {buffer.name: buffer for buffer in case.buffers}
    kernels = ", ".join(dict.fromkeys(launch.kernel for launch in case.launches))
    found: dict[tuple[str, str], FindingRecord] = {}
    for damage in result.guards:
        key = (damage.buffer, damage.side)
        if key not in found:
            found[key] = _guard(plans[damage.buffer], damage, kernels)
    inputs = [
        _field(case, damage, kernels)
        if plans[damage.buffer].role is Role.STRUCT
        else _input(plans[damage.buffer], damage, kernels)
        for damage in result.inputs_changed
    ]
    return [*found.values(), *inputs, *result.findings]


def _guard(plan: BufferPlan, damage: GuardDamage, kernels: str) -> FindingRecord:
    # Floors, so that the byte just in front of the payload is element -1.
    element = damage.offset // DTYPES[plan.dtype].nbytes
    side = "before" if damage.offset < 0 else "past the end of"
    message = (
        f"{plan.name}[{element}]: out-of-bounds write {side} {plan.name}, which has "
        f"{plural(plan.elements, 'element')}: {_changed(plan, damage.bytes_changed)}, "
        f"in repetition {damage.repetition}"
    )
    if damage.writer:
        message += f", by {damage.writer}"
    return FindingRecord(
        tool=GUARD_TOOL,
        kind="out-of-bounds-write",
        message=message,
        kernel=kernels,
        location=f"{plan.name}[{element}]",
        threads=damage.writer or "not known",
    )


def _input(plan: BufferPlan, damage: InputDamage, kernels: str) -> FindingRecord:
    flat = damage.offset // DTYPES[plan.dtype].nbytes
    inside = 0 <= flat < plan.elements
    place = shown_index(index_of(flat, plan.shape) if inside else [flat])
    side = "before" if damage.offset < 0 else "past the end of"
    outside = f"out-of-bounds write {side} the input, which has {plural(plan.elements, 'element')}"
    what = "input changed while the kernel ran" if inside else outside
    message = f"{plan.name}{place}: {what}: {_changed(plan, damage.bytes_changed)}"
    return FindingRecord(
        tool=INPUT_TOOL,
        kind="input-changed" if inside else "out-of-bounds-write",
        message=message,
        kernel=kernels,
        location=f"{plan.name}{place}",
        threads="",
    )


def _field(case: Case, damage: InputDamage, kernels: str) -> FindingRecord:
    """A struct that a kernel takes by a pointer: its fields are the host's, not the kernel's."""
    name = damage.buffer
    if damage.field is not None:
        places = [place for place, _ in leaves_of(case.variant.structs[name])]
        name += places[damage.field]
    inside = damage.field is not None
    what = "field changed" if inside else f"byte {damage.offset} of the struct or beside it changed"
    changed = plural(damage.bytes_changed, "byte")
    return FindingRecord(
        tool=INPUT_TOOL,
        kind="input-changed" if inside else "out-of-bounds-write",
        message=f"{name}: {what} while the kernel ran: at least {changed} changed",
        kernel=kernels,
        location=name,
        threads="",
    )


def _changed(plan: BufferPlan, changed: int) -> str:
    """Elements that `changed` bytes take at the least; some may have got the bytes that they had."""
    return f"at least {plural(-(-changed // DTYPES[plan.dtype].nbytes), 'element')} changed"


def place_words(pattern: PatternRecord | None) -> str:
    """What the pattern adds to a reason: where it is a place, or one value."""
    if pattern is None:
        return ""
    if pattern.kind in ("every-element", "scattered"):
        return f": {pattern.values}" if pattern.values else ""
    return f": {pattern.words}"


def check_reason(output: str, check: CheckRecord, bias: tuple[float, float]) -> str:
    """Index, got, want, error and limit of the worst element, and how many exceed the limit."""
    label = check.metric if check.against == "reference" else f"{check.metric} against the replay"
    if not check.worst:
        signed, outward = bias
        side = "away from zero" if outward > 0 else "towards zero"
        if abs(signed) >= abs(outward):
            side = "upwards" if signed > 0 else "downwards"
        return (
            f"{output}: mean error of {shown_short(check.value or 0.0)} ulp {side} exceeds the "
            f"limit {shown_short(check.limit)} ({label})"
        )
    worst = check.worst[0]
    if not METRICS[check.metric].limited:
        compared = f"bits {worst.got_bits} are not those of the {check.against}"
    else:
        word = "bound" if METRICS[check.metric].against_bound else "limit"
        compared = f"error {shown_short(worst.error)} exceeds the {word} {shown_short(worst.limit)}"
    return (
        f"{output}{shown_index(worst.index)}: got {shown(worst.got)}, want {shown(worst.want)}, "
        f"{compared} ({label}); {elements_text(check.exceeding or 0, check.elements)}"
    )
