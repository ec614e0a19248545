"""The kernels of a source tree under the watch: drafted at the host's sizes, run, and never changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from tokitai_cli.core.errors import TokitaiError, UsageError
from tokitai_cli.core.model.case import Case, LoadedSpec
from tokitai_cli.core.model.draws import draws_are_random
from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.core.model.judged import ExaminationRecord, FindingRecord, GuessRecord
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import shape_text
from tokitai_cli.cpp.source.listing import Unread
from tokitai_cli.drafts.draft import Draft
from tokitai_cli.drafts.search import find_kernels
from tokitai_cli.drafts.trial.attempt import loaded_draft
from tokitai_cli.drafts.trial.source_tree import folder_in
from tokitai_cli.run.commands import from_here
from tokitai_cli.run.run_options import RunOptions
from tokitai_cli.run.sanitizing import without_oracle
from tokitai_cli.spec import plan

NO_FINDING = "no finding"
_ROUND = (256, 128)  # multiples of usual tiles, the first of which arrays are not too large
_MOST_ELEMENTS = 1 << 26  # of all arrays


class WatchedKernel(msgspec.Struct, frozen=True):
    """A kernel, or a file that was not read, and what came of it.

    outcome: "no finding", or the verdict of what was found, or why nothing was. reason: in words.
    guesses: those of the draft that its findings hang on. watched: what was looked at.
    """

    place: str
    kernel: str
    outcome: str
    reason: str = ""
    shape: dict[str, int] = {}
    findings: list[FindingRecord] = []
    guesses: list[GuessRecord] = []
    watched: list[ExaminationRecord] = []

    @property
    def verdict(self) -> Verdict:
        """What counts for the exit code: nothing but a finding is held against a kernel."""
        return Verdict.VERIFIED if self.outcome == NO_FINDING else Verdict(self.outcome)


def watched(
    path: Path, kernel: str, options: Callable[[LoadedSpec], RunOptions]
) -> Iterator[WatchedKernel]:
    """Each kernel below `path`, or the one of a name or line, as it came out of its run.

    options: those of a run of a draft. Raises UsageError where there is no such kernel.
    """
    met = False
    with folder_in(None) as folder:
        for found in find_kernels(path, place=folder.parent, room=False):
            if isinstance(found, Unread):
                yield WatchedKernel(found.file, "", Verdict.NOT_RUN, found.reason)
                continue
            for draft in found:
                if kernel and kernel not in _names(draft):
                    continue
                met = True
                yield _watched(draft, folder, options)
    if not met:
        named = f"{path} has no kernel" + (f" `{kernel}`" if kernel else "")
        raise UsageError(named, hint=f"`tokitai find {path}` lists the kernels")


def _names(draft: Draft) -> set[str]:
    one = draft.kernel
    return {one.name, one.qualified, draft.instance, str(one.line)}


def _watched(
    draft: Draft, folder: Path, options: Callable[[LoadedSpec], RunOptions]
) -> WatchedKernel:
    where = (f"{from_here(draft.kernel.file)}:{draft.kernel.line}", draft.instance)
    if draft.model is None:
        return WatchedKernel(*where, Verdict.NOT_RUN, "; ".join(draft.reasons))
    at_host = msgspec.structs.replace(draft, model=draft.of_host or draft.model)
    try:
        case = _case(at_host, folder)
        (record,) = without_oracle(options(case.loaded), [case])
        if record.verdict is Verdict.REFUTED and draft.of_host in (None, draft.model):
            record = _at_round_sizes(record, case, at_host, folder, options)
    except TokitaiError as error:
        return WatchedKernel(*where, Verdict.NOT_RUN, str(error))
    outcome = NO_FINDING if record.verdict is Verdict.VERIFIED else record.verdict
    return WatchedKernel(
        *where,
        outcome,
        record.reason,
        shape=record.shape,
        findings=record.findings,
        guesses=record.guesses,
        watched=record.examined,
    )


def _case(draft: Draft, folder: Path) -> Case:
    """The case at the draft's defaults, with random numbers where a profile draws some."""
    loaded = loaded_draft(draft, folder)
    cases = plan.plan(loaded, plan.Selection()).cases
    drawn = [one for one in cases if draws_are_random(loaded.spec, one.variant, one.profile)]
    return (drawn or cases)[0]


def _at_round_sizes(
    record: CaseRecord,
    case: Case,
    draft: Draft,
    folder: Path,
    options: Callable[[LoadedSpec], RunOptions],
) -> CaseRecord:
    """A refuted record; inconclusive, where its findings may only be there at the draft's own sizes.

    The host may pass no others than multiples of a tile. Where its text says no sizes, what is found
    at odd ones is held against the kernel if it is found at round ones as well.
    """
    if not case.loaded.spec.params:
        return record
    lines = case.loaded.text.splitlines()
    place = f"{case.loaded.path.name}:{lines.index('params:') + 2}"
    told = "larger ones could not be tried"
    if (other := _round(draft, folder)) is not None:
        (again,) = without_oracle(options(other.loaded), [other])
        if again.verdict is Verdict.REFUTED and (
            _errors(record) & _errors(again) or not _errors(record)
        ):
            return record
        told = f"at {shape_text(other.shape)} that is not found"
    reason = f"the sizes in {place} are a guess, and {told}: {record.reason}"
    about = GuessRecord(place=place, about="the sizes", words=told)
    return msgspec.structs.replace(
        record, verdict=Verdict.INCONCLUSIVE, reason=reason, guesses=[about]
    )


def _round(draft: Draft, folder: Path) -> Case | None:
    """The case with guessed sizes at a multiple of usual tiles; None if that is too large."""
    model = draft.model
    if model is None:
        return None
    for size in _ROUND:
        params = {
            name: msgspec.structs.replace(one, default=one.fitting(max(size, one.multiple_of or 1)))
            if one.min is None
            else one
            for name, one in model.params.items()
        }
        other = msgspec.structs.replace(model, params=params)
        case = _case(msgspec.structs.replace(draft, model=other), folder)
        if sum(one.elements for one in case.buffers) <= _MOST_ELEMENTS:
            return case
    return None


def _errors(record: CaseRecord) -> set[tuple[str, str]]:
    """Kind and lines of what refutes."""
    return {(one.kind, one.location) for one in record.findings if one.severity == "error"}
