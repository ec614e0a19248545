"""A case run and judged: its own run, and one more for each property that compares two."""

from __future__ import annotations

import functools
from typing import NoReturn

import msgspec

from tokitai_cli import build, compare
from tokitai_cli.compare import Judgement
from tokitai_cli.errors import ChildError
from tokitai_cli.model.case import Case, RunResult, StatedProperty
from tokitai_cli.model.verdict import Stage, Verdict
from tokitai_cli.pipeline.lane import Lane
from tokitai_cli.pipeline.prepare import Clock, Prepared


def tried(
    case: Case, lane: Lane, ready: Prepared, artifact: build.Artifact, clock: Clock
) -> tuple[RunResult, Judgement]:
    """Result of the case's own run, and the judgement of all its runs.

    Properties that compare two runs are tried where everything else holds. Raises as `Lane.serve`
    and `compare.judge` do; `clock.stage` then says where.
    """
    result = clock.timed(Stage.RUN, lambda: lane.serve(case, ready, artifact))
    judgement = clock.timed(
        Stage.COMPARE,
        lambda: compare.judge(case, ready.expectations, ready.replays, result, ready.properties),
    )
    waiting = [stated for stated in ready.properties if stated.changed]
    if not waiting or judgement.verdict is not Verdict.VERIFIED:
        return result, judgement
    # What a child gave back is gone with its next case.
    kept = tuple({name: array.copy() for name, array in one.items()} for one in result.outputs)
    result = msgspec.structs.replace(result, outputs=kept)
    for stated in waiting:
        changed = msgspec.structs.replace(ready, arrays={**ready.arrays, **stated.changed})
        try:
            another = clock.timed(Stage.RUN, functools.partial(lane.serve, case, changed, artifact))
        except ChildError as error:
            _raise_in(stated, error)
        judge = functools.partial(compare.judge_another, case, judgement, stated)
        judgement = clock.timed(Stage.COMPARE, functools.partial(judge, kept, another))
    return result, judgement


def _raise_in(stated: StatedProperty, error: ChildError) -> NoReturn:
    """The child's failure again, with which of the runs it was."""
    said = f"in the run for {stated.name}, with {stated.change}: {error.message}"
    raise type(error)(said, where=error.where, mend=error.mend) from error
