"""How a batch ended: whether all of it ran, and what its verdict is."""

from __future__ import annotations

import msgspec

from tokitai_cli.core.model.batch_record import BatchEnded, Begun, IndexCase, SpecEntry
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.evidence import Outcome
from tokitai_cli.evidence.queries import FINE

_HOW = {
    "interrupted": "the batch was interrupted",
    "stopped": "the batch was stopped after its failures",
    "whole": "the batch ended without all of its cases",
    "": "the batch has not ended",
}
# For the reason of a case whose group lacks cases, nobody knows which.
_MISSING = (
    "the batch stopped before all cases ran, and one of the missing cases could have rejected it"
)


class End(msgspec.Struct, frozen=True):
    """What is kept of the end, and how many of `begun.total` cases are finished."""

    begun: Begun
    ended: BatchEnded | None
    finished: int

    @property
    def not_started(self) -> int:
        """Cases that were selected and have no result."""
        return max(self.begun.total - self.finished, 0)

    @property
    def whole(self) -> bool:
        """Whether every case ran and the batch says so."""
        return self.ended is not None and self.ended.how == "whole" and not self.not_started

    @property
    def missing(self) -> str:
        """What is added to the reason of a vacuous case; empty where the batch is whole."""
        return "" if self.whole else _MISSING

    def of_spec(self, entry: SpecEntry, finished: int) -> str:
        """Why the evidence of a spec is not whole, empty where it is.

        An entry counts the cases of the whole batch, so in a shard that is not whole any spec may
        lack some.
        """
        if self.whole or (finished >= entry.cases and not self.begun.shard):
            return ""
        of = "" if self.begun.shard else f" of {entry.cases}"
        return f"{self._how}: {finished}{of} cases of this spec are finished"

    def outcome(self, reason: str, worst: Verdict) -> Outcome | None:
        """End of evidence that is not whole. A batch that failures stopped ends as the failure."""
        stopped = self.ended is not None and self.ended.how == "stopped"
        if not reason or (stopped and worst not in FINE):
            return None
        return Outcome(Verdict.INTERRUPTED, Stage.RUN, reason)

    def verdict(self, worst: IndexCase | None, counts: dict[str, int]) -> tuple[Verdict, str]:
        """Verdict of the batch and the reason, from its worst case and its own end."""
        interrupted = f"{self._how}: {self.finished} of {self.begun.total} cases are finished"
        if worst is None:
            if self.begun.total:
                return Verdict.INTERRUPTED, interrupted
            left = self.begun.left_out
            more = f"; {left} combinations were skipped" if left else ""
            return Verdict.NOT_RUN, f"no case was selected{more}"
        outcome = None if self.whole else self.outcome(interrupted, worst.verdict)
        if outcome is not None and outcome.verdict.rank <= worst.verdict.rank:
            return outcome.verdict, outcome.reason
        if worst.verdict is Verdict.VERIFIED:
            vacuous = counts.get(Verdict.VACUOUS, 0)
            if not vacuous:
                return worst.verdict, f"all {self.finished} cases are verified"
            verified = counts[Verdict.VERIFIED]
            return (
                worst.verdict,
                f"{verified} cases are verified, {vacuous} vacuous",
            )
        same = counts[worst.verdict] - 1
        more = f" ({same} more {'is' if same == 1 else 'are'} {worst.verdict})" if same else ""
        return worst.verdict, f"{worst.id}: {worst.reason}{more}"

    @property
    def _how(self) -> str:
        return _HOW["" if self.ended is None else self.ended.how]
