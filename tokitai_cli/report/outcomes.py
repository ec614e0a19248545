"""Cases in the words of test reports: what counts as a failure, an error, or as skipped."""

from __future__ import annotations

from tokitai_cli.core.model.verdict import Verdict

_PASSED = frozenset({Verdict.VERIFIED, Verdict.BUILT})
_SKIPPED = frozenset({Verdict.EXPECTED_FAILURE, Verdict.VACUOUS})
_FAILED = frozenset({Verdict.REFUTED, Verdict.INCONCLUSIVE, Verdict.UNEXPECTED_PASS})


def kind_of(verdict: Verdict) -> str:
    """failure, error or skipped; empty for a pass. A CI shows "skipped" as green."""
    if verdict in _PASSED:
        return ""
    if verdict in _SKIPPED:
        return "skipped"
    return "failure" if verdict in _FAILED else "error"
