"""How many changes of each formula the checks of a spec reject, without building or running a kernel."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from tokitai_cli import judge
from tokitai_cli.core.errors import OracleError
from tokitai_cli.core.model.case import Case, LoadedSpec
from tokitai_cli.core.model.judged import ChangesRecord, Score
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.evidence.survivors import survivors_of
from tokitai_cli.run.prepare import Clock, Preparation, Prepared, Refusal
from tokitai_cli.spec import plan

SUITE = "quick"
# Bytes of a case beyond which the smallest shape of the suite stands for the defaults.
_LARGE = 1 << 24
# Seconds of a variant after which no further profile is looked at, and of a user's code in a case.
_SECONDS = 20.0


def score(loaded: LoadedSpec) -> Iterator[Score]:
    """The score of each output that a formula is the oracle of; judged as a case of a run is.

    On all profiles, at the shape of `cases_of`.
    """
    for name, variant in loaded.spec.variants.items():
        if variant.by_formula:
            yield from _score(name, cases_of(loaded, name))


def cases_of(loaded: LoadedSpec, variant: str, profiles: tuple[str, ...] = ()) -> Sequence[Case]:
    """Cases of one shape, a profile each: of the default shape, since at the smallest of a suite (often
    one element) few changes alter anything; where that is large, of the smallest of the suite quick.
    """
    example = plan.example(loaded, variant)
    if example is None:
        return ()
    shape = example.shape
    if SUITE in loaded.spec.suites and plan.memory_bytes(example, 1) > _LARGE:
        selection = plan.Selection(variants=(variant,), suite=SUITE)
        cases = (case for case in plan.plan(loaded, selection).cases if not case.expect_empty)
        least = min(cases, key=lambda case: plan.memory_bytes(case, 1), default=example)
        shape = least.shape
    shapes = {key: (value,) for key, value in shape.items()}
    selection = plan.Selection(shapes=shapes, variants=(variant,), profiles=profiles)
    return plan.plan(loaded, selection).cases


def judged(
    cases: Sequence[Case], skipped: dict[str, str]
) -> Iterator[tuple[Case, Prepared, judge.Judgement]]:
    """Each case with what a right kernel is judged to be, for some 20 seconds.

    skipped: gets the profiles that were not looked at, and why.
    """
    settings = Settings(timeout=_SECONDS)
    start = time.monotonic()
    for case in cases:
        if time.monotonic() - start > _SECONDS:
            skipped[case.profile] = f"{_SECONDS:g} seconds were over"
            continue
        ready = Preparation(case, settings)(Clock())
        if isinstance(ready, Refusal):
            skipped[case.profile] = ready.error.message
            continue
        try:
            judgement = judge.judge_right(case, ready.expectations, ready.replays)
        except OracleError as error:
            skipped[case.profile] = error.message
            continue
        yield case, ready, judgement


def _score(variant: str, cases: Sequence[Case]) -> Iterator[Score]:
    found: dict[str, list[ChangesRecord]] = {}
    profiles, skipped = [], dict[str, str]()
    for case, _, judgement in judged(cases, skipped):
        profiles.append(case.profile)
        for output in {**case.variant.outputs, **case.variant.inout}:
            found.setdefault(output, [])
        for one in judgement.changes:
            found[one.output].append(one)
    for output, records in found.items():
        left = survivors_of(records)
        yield Score(
            variant=variant,
            output=output,
            shape=dict(cases[0].shape),
            tried=left.tried,
            accepted=left.accepted,
            undetected=left.undetected,
            profiles=profiles,
            skipped=skipped,
        )
