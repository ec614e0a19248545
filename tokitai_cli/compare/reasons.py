"""One clear sentence for a check that failed."""

from __future__ import annotations

from tokitai_cli.compare.values import elements_text, shown, shown_index, shown_short
from tokitai_cli.model.evidence import CheckRecord, PatternRecord


def check_reason(
    output: str, check: CheckRecord, bias: tuple[float, float], pattern: PatternRecord | None
) -> str:
    """Index, got, want, error and limit of the worst element, and how many exceed the limit."""
    label = check.metric if check.against == "reference" else f"{check.metric} against the replay"
    if check.metric == "bias":
        signed, outward = bias
        side = "away from zero" if outward > 0 else "towards zero"
        if abs(signed) >= abs(outward):
            side = "upwards" if signed > 0 else "downwards"
        return (
            f"{output}: mean error of {shown_short(check.value or 0.0)} ulp {side} exceeds the "
            f"limit {shown_short(check.limit)} ({label})"
        )
    worst = check.worst[0]
    if check.metric == "exact":
        compared = f"bits {worst.got_bits} are not those of the {check.against}"
    else:
        word = "bound" if check.metric.startswith("bound") else "limit"
        compared = f"error {shown_short(worst.error)} exceeds the {word} {shown_short(worst.limit)}"
    text = (
        f"{output}{shown_index(worst.index)}: got {shown(worst.got)}, want {shown(worst.want)}, "
        f"{compared} ({label}); {elements_text(check.exceeding or 0, check.elements)}"
    )
    if pattern is not None and pattern.kind not in ("every-element", "scattered"):
        text += f": {pattern.detail}"
    return text
