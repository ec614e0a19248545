"""Whether the record of one case agrees with itself."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator

from tokitai_cli import evidence
from tokitai_cli.audit import counted, measured, planned
from tokitai_cli.core.model.device import TRAITS
from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.options import flag
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.core.model.wording import shape_text

# Verbs whose runs write evidence, and `reproduce`, which a run of it names.
_RUNNING = {"verify", "sanitize", "batch", "compare", "reproduce"}


def faults(run: Evidence, case: CaseRecord) -> Iterator[str]:
    """Faults of one case by itself."""
    if case.verdict is Verdict.VERIFIED and (why := evidence.unsupported(case, run.builds)):
        yield f"it says verified, but {why}"
    if case.verdict is Verdict.VERIFIED and case.stage is not Stage.COMPARE:
        yield f"it says verified at the stage {case.stage}"
    if case.verdict is Verdict.REFUTED and not _refuting(case):
        yield "it says refuted, and nothing in its record failed"
    if case.verdict is Verdict.INCONCLUSIVE and _refuting(case) and not case.guesses:
        yield "it says inconclusive, but its record refutes it and names no guess on which that depends"
    if fault := rerun_fault(case.rerun, case):
        yield fault
    for launch in case.launches:
        if min((*launch.grid, *launch.block), default=0) < 1:
            yield f"it launches {launch.kernel} with no thread"
    name = f"{case.op}/{case.variant}/{_bare(case)}/{case.profile}/{case.seed}"
    if case.id != name:
        yield f"its id does not match what it is, {name}"
    if case.verdict is not Verdict.VERIFIED and not case.reason:
        yield f"it says {case.verdict}, and gives no reason"
    yield from _repeated(case)
    yield from measured.faults(case)
    yield from counted.faults(case)


def watched_faults(case: CaseRecord) -> Iterator[str]:
    """Faults of a case that was watched beside the others."""
    errors = any(one.severity == "error" for one in case.findings)
    if errors and case.verdict is Verdict.VERIFIED:
        yield "it says that nothing refutes it, and it has a finding"
    if not errors and case.verdict is Verdict.REFUTED:
        yield "it says refuted, and has no finding"
    if case.verdict is Verdict.VERIFIED and case.repeats is None:
        yield "it says that nothing refutes it, and no repetition of it ran"
    if case.vacuous:
        yield "it says vacuous, although no wrong output is tried in a watched case"
    yield from _repeated(case)
    if case.outputs or case.mutants or case.properties:
        yield "it has results, although the outputs of a watched case are not compared"
    if fault := rerun_fault(case.rerun, case):
        yield fault


def _repeated(case: CaseRecord) -> Iterator[str]:
    """What no record of repetitions says."""
    if case.repeats is None:
        return
    if case.repeats.repetitions < 1:
        yield f"it has results of {case.repeats.repetitions} repetitions"
    traits = TRAITS.get(case.device)
    if traits is not None and traits.schedules and not case.repeats.schedules:
        yield f"its repetitions ran in no schedule, and {case.device} has one for each"


def rerun_fault(line: str, case: CaseRecord | None = None) -> str:
    """What is wrong with a command line that is shown to be copied; of a case, it names that case."""
    words = planned.words_of(line)
    if len(words) < 2 or words[0] != "tokitai" or words[1] not in _RUNNING:
        return "the command to repeat it is not a tokitai command"
    if shlex.join(words) != line:
        return "the command to repeat it is not in the form that tokitai writes"
    given = [*itertools.pairwise(words)]
    wanted = {"variant": case.variant, "profile": case.profile, "seed": case.seed} if case else {}
    wanted |= case.shape if case else {}
    for name, value in wanted.items():
        values = [word for option, word in given if option == flag(name)]
        if values and str(value) not in values:  # `compare` names two variants
            return f"the command to repeat it has a different {name}"
    return ""


def _bare(case: CaseRecord) -> str:
    return shape_text(case.shape) if case.shape else ""


def _refuting(case: CaseRecord) -> bool:
    repeats = case.repeats
    return bool(
        any(one.severity == "error" for one in case.findings)
        or any(not output.passed for output in case.outputs)
        or any(not one.passed for one in case.properties)
        or (repeats is not None and repeats.bitwise_equal is False)
        or (repeats is not None and bool(repeats.other_inputs_fault))
    )
