"""Words of verdicts and exit codes: one table for the docs and for `tokitai explain`."""

from __future__ import annotations

from collections.abc import Mapping

from tokitai_cli.core.errors import UsageError, near
from tokitai_cli.core.model.audit_answer import Grid
from tokitai_cli.core.model.metrics import METRICS
from tokitai_cli.core.model.verdict import Verdict

MEANINGS: Mapping[Verdict, str] = {
    Verdict.INTERNAL_ERROR: "a fault of the tool itself; the message names the log file",
    Verdict.REFUTED: "a check failed: the kernel is wrong in this case",
    Verdict.UNEXPECTED_PASS: "a case that `known_bugs` lists as failing has passed",
    Verdict.CRASHED: (
        "the kernel's process ended; the signal or the runtime's error is named. On the cpu device "
        "also a write beyond a shared array and a misaligned access"
    ),
    Verdict.TIMED_OUT: (
        "the kernel's process exceeded its time limit: the kernel is slow, or waits for something "
        "that never happens, such as a block that the schedule runs later (cpu, gfx)"
    ),
    Verdict.INTERRUPTED: (
        "the run was stopped (SIGINT exits 130, SIGTERM and SIGHUP 143); the JSON holds the "
        "finished cases"
    ),
    Verdict.BUILD_FAILED: (
        "there is no compiler, or it failed; the first errors are shown, the full log is kept"
    ),
    Verdict.INCONCLUSIVE: (
        "the checks would also have accepted a wrong output, or there is no usable reference"
    ),
    Verdict.INADMISSIBLE: "the requested device is not available; nothing ran",
    Verdict.NOT_RUN: (
        "nothing was selected, the shape does not fit this machine (the size needed is given), the "
        "spec does not fit its oracle, or the gfx device cannot execute an instruction (it is named)"
    ),
    Verdict.EXPECTED_FAILURE: "a case that `known_bugs` lists as failing has failed",
    Verdict.VERIFIED: "every check of every output passed, on more than zero elements",
    Verdict.VACUOUS: (
        "for a case only: nothing failed, but on these inputs the checks reject no wrong output "
        "except NaN, infinities and one displaced element, or they judge less than half of the "
        "elements of an output"
    ),
    Verdict.BUILT: "`--build-only`: the artifacts were built, nothing ran",
}
CLAIM_STATES: Mapping[bool, str] = {True: "supported", False: "not supported"}
# Exit codes that no verdict has, or that others have too.
EXITS: Mapping[int, str] = {
    0: "all is well",
    1: "inconsistent evidence, an unsupported required claim, files that differ",
    2: "a command line, a spec, evidence or a folder that cannot be used",
    9: "`reproduce`: the same on another device than the recorded one, which it does not confirm",
    129: "stopped by SIGHUP",
    130: "stopped by SIGINT",
    141: "the reader of standard output closed it",
    143: "stopped by SIGTERM",
}


def explained(word: str) -> Grid:
    """What a verdict, a metric or an exit code means. Raises UsageError with the nearest words."""
    rows = [
        (str(one), f"verdict, exit code {one.exit_code}", text)
        for one, text in MEANINGS.items()
        if word in (str(one), str(one.exit_code))
    ]
    if word.isdecimal() and int(word) in EXITS:
        rows.append((word, "exit code", EXITS[int(word)]))
    if word in METRICS:
        rows.append((word, "metric", METRICS[word].sentence))
    if not rows:
        hint = near(word, [*map(str, MEANINGS), *METRICS])
        raise UsageError(f"{word}: not a verdict, metric or exit code", hint=hint)
    return Grid(("word", "", "meaning"), rows)
