"""The kernels of a source tree under the watch: drafted at the host's sizes, run, and never changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from tokitai_cli.core.errors import TokitaiError, UsageError
from tokitai_cli.core.model.case import LoadedSpec
from tokitai_cli.core.model.draws import draws_are_random
from tokitai_cli.core.model.judged import ExaminationRecord, FindingRecord, GuessRecord
from tokitai_cli.core.model.verdict import Verdict
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
    try:
        at_host = msgspec.structs.replace(draft, model=draft.of_host or draft.model)
        loaded = loaded_draft(at_host, folder)
        cases = plan.plan(loaded, plan.Selection()).cases
        variant = cases[0].variant
        random = [one for one in cases if draws_are_random(loaded.spec, variant, one.profile)]
        (record,) = without_oracle(options(loaded), (random or cases)[:1])
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
