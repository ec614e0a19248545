"""Every built-in op in one go: a run and an evidence file for each."""

from __future__ import annotations

from typing import Any

from tokitai_cli import plan
from tokitai_cli.model.events import Listener
from tokitai_cli.pipeline.composer import RunOutcome, silent, verify
from tokitai_cli.pipeline.options import run_options
from tokitai_cli.pipeline.survey import builtin_specs

SUITE = "quick"


def verify_all(listener: Listener = silent, **options: Any) -> tuple[RunOutcome, ...]:
    """Verify the built-in ops one after the other, by name; `options` as those of `run_options`.

    Each runs the suite `quick`, if no other is named. Raises UsageError where an op cannot take the
    options, before anything runs. A run that was ended before its end is the last.
    """
    if options.get("suite") is None:
        options["suite"] = SUITE
    every = [run_options(loaded, **options) for loaded in builtin_specs()]
    for one in every:
        plan.plan(one.loaded, one.selection)
    outcomes: list[RunOutcome] = []
    for one in every:
        outcomes.append(verify(one, listener))
        if outcomes[-1].ended_by is not None:
            break
    return tuple(outcomes)
