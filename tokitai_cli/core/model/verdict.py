"""Verdicts, their order and their exit codes."""

from __future__ import annotations

import enum
from collections.abc import Iterable


class Verdict(enum.StrEnum):
    """Outcome of a case or of a run, listed worst first.

    The order of the members is the order in which a run takes the worst of its cases; the first
    member is a fault of the tool, so no forgotten initialisation can read as a pass. A vacuous
    case stands beside verified ones of its group: it takes nothing from them and adds nothing.
    """

    INTERNAL_ERROR = "internal-error"
    REFUTED = "refuted"
    UNEXPECTED_PASS = "unexpected-pass"
    CRASHED = "crashed"
    TIMED_OUT = "timed-out"
    INTERRUPTED = "interrupted"
    BUILD_FAILED = "build-failed"
    INCONCLUSIVE = "inconclusive"
    INADMISSIBLE = "inadmissible"
    NOT_RUN = "not-run"
    EXPECTED_FAILURE = "expected-failure"
    VERIFIED = "verified"
    VACUOUS = "vacuous"
    BUILT = "built"

    @property
    def exit_code(self) -> int:
        """Process exit code of a run that ends in this verdict."""
        return _EXIT_CODES[self]

    @property
    def rank(self) -> int:
        """Position in the order, 0 is the worst."""
        return _RANKS[self]


_EXIT_CODES: dict[Verdict, int] = {
    Verdict.INTERNAL_ERROR: 70,
    Verdict.REFUTED: 1,
    Verdict.UNEXPECTED_PASS: 1,
    Verdict.CRASHED: 5,
    Verdict.TIMED_OUT: 7,
    Verdict.INTERRUPTED: 130,
    Verdict.BUILD_FAILED: 4,
    Verdict.INCONCLUSIVE: 6,
    Verdict.INADMISSIBLE: 3,
    Verdict.NOT_RUN: 8,
    Verdict.EXPECTED_FAILURE: 0,
    Verdict.VERIFIED: 0,
    Verdict.VACUOUS: 6,
    Verdict.BUILT: 0,
}
_RANKS: dict[Verdict, int] = {verdict: rank for rank, verdict in enumerate(Verdict)}


class Stage(enum.StrEnum):
    """Step of the pipeline that decided a verdict."""

    SPEC = "spec"
    PLAN = "plan"
    PROBE = "probe"
    BUILD = "build"
    INPUTS = "inputs"
    ORACLE = "oracle"
    RUN = "run"
    COMPARE = "compare"
    EVIDENCE = "evidence"


# Verdicts that say nothing of the kernel: such a case is not finished.
UNSETTLED = frozenset(
    {Verdict.INADMISSIBLE, Verdict.NOT_RUN, Verdict.INTERRUPTED, Verdict.INTERNAL_ERROR}
)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Worst verdict of a run's cases; a run without cases is `not-run`."""
    return min(verdicts, key=lambda verdict: verdict.rank, default=Verdict.NOT_RUN)
