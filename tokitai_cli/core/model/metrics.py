"""The metrics of checks: what a spec may ask of each, and what readers are told of it.

How each is computed stands in `tokitai_cli.judge.checks.metric`; every other place asks these tables.
"""

from __future__ import annotations

from typing import Literal

import msgspec

MetricName = Literal[
    "bound", "bound-chained", "bound-prob", "abs", "rel", "allclose", "ulp", "exact", "bias"
]  # fmt: skip


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric."""

    #: What it measures, for reports.
    sentence: str
    #: An output may be judged by it alone.
    gating: bool = False
    #: It sees an error of a few ulp wherever it lies, unlike a flat absolute limit.
    sharp: bool = False
    #: No analysis of the computation stands behind its limit.
    flat: bool = False
    #: A check may make it against a replay.
    replay: bool = False
    #: It is defined on integers; on bools where it has no limit, too.
    integers: bool = False
    #: It has a limit.
    limited: bool = True
    #: It has `abs` and `rel` instead of one.
    tolerances: bool = False
    #: Its unit is a bound that the oracle derived.
    against_bound: bool = False


METRICS: dict[str, Metric] = {
    "bound": Metric(
        sentence="|got - reference| / E over the elements, E = F(e, r) = e + max(u (|r| + e), H) "
        "where the output is rounded once more, else E = e. e is the oracle's worst-case bound of "
        "the computation, r the reference, u the output's unit roundoff, H half its smallest "
        "subnormal.",
        gating=True,
        sharp=True,
        integers=True,
        against_bound=True,
    ),
    "bound-chained": Metric(
        sentence="the same with the bound that the kernel's own other outputs leave.",
        against_bound=True,
    ),
    "bound-prob": Metric(
        sentence="the same with the oracle's probabilistic bound; it judges only inputs drawn at "
        "random.",
        against_bound=True,
    ),
    "abs": Metric(
        sentence="|got - reference|.",
        gating=True,
        flat=True,
        replay=True,
        integers=True,
    ),
    "rel": Metric(
        sentence="|got - reference| / |reference|.",
        gating=True,
        sharp=True,
        flat=True,
        replay=True,
    ),
    "allclose": Metric(
        sentence="|got - reference| / (abs + rel |reference|), with the two tolerances of the check.",
        gating=True,
        flat=True,
        replay=True,
        tolerances=True,
    ),
    "ulp": Metric(
        sentence="|got - reference| in units in the last place of the output's dtype.",
        gating=True,
        sharp=True,
        replay=True,
    ),
    "exact": Metric(
        sentence="elements that differ in value or bits, as the check says.",
        gating=True,
        sharp=True,
        replay=True,
        integers=True,
        limited=False,
    ),
    "bias": Metric(sentence="mean error in ulp."),
}


def named(**traits: bool) -> list[str]:
    """Names of the metrics that have these traits, as a sentence lists them: `named(replay=True)`."""
    return sorted(
        name
        for name, metric in METRICS.items()
        if all(getattr(metric, trait) is value for trait, value in traits.items())
    )
