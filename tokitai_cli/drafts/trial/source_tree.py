"""Drafts of a source tree, each settled by its runs on the cpu device."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tokitai_cli.core.errors import StorageError, TokitaiError
from tokitai_cli.cpp.source.listing import FoundKernel
from tokitai_cli.drafts.draft import Draft
from tokitai_cli.drafts.search import found_kernel
from tokitai_cli.drafts.trial.attempt import OnCpu
from tokitai_cli.drafts.trial.settle import retry_until_it_runs
from tokitai_cli.run.faults import fault_line


@contextlib.contextmanager
def folder_in(place: Path | None) -> Iterator[Path]:
    """A folder in `place`, or among temporary files, that goes at the end."""
    try:
        if place is not None:
            place.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(prefix=".tokitai-", dir=place)
    except OSError as error:
        at = error.filename or place
        raise StorageError(f"{at} cannot be written: {error.strerror or error}") from None
    with folder as name:
        yield Path(name).resolve()


def settled(
    drafts: Sequence[Draft], folder: Path, seconds: float, tell: Callable[[str], object]
) -> Iterator[tuple[Draft, FoundKernel]]:
    """Each draft as its runs left it, and what they came to; `tell` is given a line for each.

    folder: see `attempt.loaded_draft`. seconds: of a run's kernels.
    """
    with OnCpu(folder, seconds) as run:
        for number, draft in enumerate(drafts, 1):
            if draft.model is None:
                yield draft, found_kernel(draft)
                continue
            try:
                found = retry_until_it_runs(draft, run)
            except TokitaiError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the others still run
                why = fault_line(
                    error, [f"{draft.kernel.file}:{draft.kernel.line}", draft.instance]
                )
                tell(f"[{number}/{len(drafts)}] {draft.instance}: {why}\n")
                yield draft, found_kernel(draft, why, fault=True)
                continue
            how = found.ended.why or "runs to its end"
            tell(f"[{number}/{len(drafts)}] {draft.instance}: {how}\n")
            yield found.draft, found_kernel(found.draft, found.ended.why, found.runs)
