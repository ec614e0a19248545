"""One more run of a case whose kernel draws a mask by chance: with another seed it draws another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from numpy.typing import NDArray

from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.judge.failures import STEP_PROPERTIES, Failure, said_in
from tokitai_cli.judge.judgement import Judgement
from tokitai_cli.judge.random_masks import other_seed

Outputs = Mapping[str, NDArray[Any]]


def judge_other_seed(
    case: Case, so_far: Judgement, first: Outputs, second: Outputs, judged: Judgement
) -> Judgement:
    """Add to a judgement what a run with another seed says, whose outputs `judged` is of."""
    records, failures = list(so_far.properties), list(so_far.failures)
    failures += [said_in("with another seed", one) for one in judged.failures]
    for buffer in case.buffers if not judged.failures else ():
        if buffer.kept is None or not buffer.elements:
            continue
        record, said = other_seed(buffer, first[buffer.name], second[buffer.name])
        records.append(record)
        failures += [Failure(STEP_PROPERTIES, said, array=buffer.name)] if said else []
    refuted = len(failures) > len(so_far.failures)
    return msgspec.structs.replace(
        so_far,
        properties=records,
        findings=[*so_far.findings, *judged.findings] if judged.failures else so_far.findings,
        verdict=Verdict.REFUTED if refuted else so_far.verdict,
        reason=failures[0].text if refuted else so_far.reason,
        failures=tuple(failures),
    )
