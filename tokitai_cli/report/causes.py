"""What failed, by kernel and cause: the lines that CI systems show beside the code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import Placed, from_folder, placed
from tokitai_cli.report.kernel_places import beside, kernel_place

if TYPE_CHECKING:
    from tokitai_cli.core.model.batch_record import BatchIndex
    from tokitai_cli.core.model.evidence import CaseRecord, Evidence


class Cause(msgspec.Struct, frozen=True):
    """Cases of one variant that failed alike, or a spec that cannot be used."""

    #: Where it is; None where nothing says it.
    place: Placed | None
    words: str
    verdict: Verdict
    #: Of the first case, empty for a spec.
    case: str = ""
    rerun: str = ""
    #: Cases that failed so.
    count: int = 1


class _Failed(msgspec.Struct, frozen=True):
    """A case that needs a look."""

    #: Path of its file from here.
    spec: str
    variant: str
    verdict: Verdict
    id: str
    reason: str
    rerun: str
    #: Where its kernel stands, from here; None where that is not known.
    kernel: Placed | None = None


def of_batch(index: BatchIndex) -> list[Cause]:
    """Causes of a batch: specs that cannot be used, then cases, worst first; its own where none is."""
    paths = {one.name: one.path for one in index.specs}
    failed = (
        _Failed(
            paths[one.spec],
            one.variant,
            one.verdict,
            one.id,
            one.reason,
            one.rerun,
            beside(paths[one.spec], Placed(failure.kernel, failure.line))
            if failure.kernel
            else None,
        )
        for failure in index.failures
        for one in (failure.case,)
    )
    faults = (Cause(*placed(fault), Verdict.NOT_RUN, rerun=index.rerun) for fault in index.faults)
    found = [*faults, *_grouped(failed)]
    if found or not index.exit_code:
        return found
    return [Cause(None, index.reason, index.verdict, "the whole batch", index.rerun)]


def of_run(evidence: Evidence, called: str) -> list[Cause]:
    """Causes of a run of the spec that is `called` so."""
    from tokitai_cli.evidence.queries import FINE, decides

    found = list(
        _grouped(
            _Failed(
                called,
                one.variant,
                one.reads,
                one.id,
                one.reason,
                one.rerun,
                _kernel_beside(evidence, one, called),
            )
            for one in (*evidence.cases, *filter(decides, evidence.watched))
            if one.reads not in FINE
        )
    )
    if found or not evidence.verdict.exit_code:
        return found
    return [
        Cause(Placed(called), evidence.reason, evidence.verdict, "the whole run", evidence.rerun)
    ]


def _kernel_beside(evidence: Evidence, case: CaseRecord, called: str) -> Placed | None:
    """Where the kernel stands from here; None for a built-in op, whose files are not the caller's."""
    place = kernel_place(evidence, case)
    return (
        beside(called, place) if place is not None and called.endswith((".yaml", ".yml")) else None
    )


def _grouped(cases: Iterable[_Failed]) -> Iterator[Cause]:
    """A cause for each place and reason, with the number of its cases."""
    causes: dict[tuple[object, ...], list[_Failed]] = {}
    for one in cases:
        place, words = placed(from_folder(one.reason, one.spec))
        at = place or one.kernel or one.spec
        key = (at, one.variant, one.verdict, words if place else "")
        causes.setdefault(key, []).append(one)
    for members in causes.values():
        first = members[0]
        place, words = placed(from_folder(first.reason, first.spec))
        yield Cause(
            place or first.kernel or Placed(first.spec),
            words,
            first.verdict,
            first.id,
            first.rerun,
            len(members),
        )
