"""One run of a draft at its own sizes, and how it ended."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec
from numpy.typing import NDArray

from tokitai_cli import devices, spec
from tokitai_cli.core.errors import (
    DYNAMIC_SHARED,
    ChildCrashedError,
    ChildTimeoutError,
    NotRunError,
    TokitaiError,
)
from tokitai_cli.core.model.case import BufferPlan, Case, GuardDamage, LoadedSpec, RunResult
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.drafts.draft import Draft
from tokitai_cli.run import child
from tokitai_cli.run.device_session import DeviceSession
from tokitai_cli.run.prepare import Prepared
from tokitai_cli.run.session import Session
from tokitai_cli.spec import inputs, plan
from tokitai_cli.spec.reader.gaps import GAP

MOST_BYTES = 4 << 30  # of a run, the oracle's part counted

# What g++ and clang say of a name in capital letters that nothing declares.
_UNDECLARED = re.compile(
    r"[\u2018'`]([A-Z_][A-Z0-9_]*)[\u2019'] was not declared|undeclared identifier '([A-Z_][A-Z0-9_]*)'"
)

# What the harness says of such accesses.
_MISALIGNED = "misaligned "
_BELOW = re.compile(r"\bbytes? before array\b|\bindex that wrapped around\b")

Serve = Callable[[Case, Mapping[str, NDArray[Any]]], RunResult]


class TrialResult(msgspec.Struct, frozen=True):
    """How a run of a draft ended; `why` is empty where its kernels came to their end."""

    why: str = ""
    #: Past whose end a kernel went, or DYNAMIC_SHARED.
    array: str = ""
    #: Its elements (bytes of shared memory) that would have held that.
    reached: int = 0
    #: Whether the sizes were too large to be run.
    large: bool = False
    #: Whether there was no run, since the draft could not be loaded or built.
    before: bool = False
    #: A constant, by its spelling, that the compiler found nowhere declared.
    undeclared: str = ""
    #: Whether a vector was read or written at an address that is none of a vector.
    misaligned: bool = False
    #: Whether something before an array's first element was read or written.
    below: bool = False


class Runner(Protocol):
    """Runs the spec of a draft once."""

    def __call__(self, draft: Draft) -> TrialResult:
        """How the run ended."""


def loaded_draft(draft: Draft, folder: Path) -> LoadedSpec:
    """The spec of a draft. folder: one at the depth that the spec is to have."""
    # No run asks the formula, whose body nobody has written yet.
    (folder / "formula.py").write_text(draft.formula.replace(GAP, "# "), "utf-8")
    return spec.load(folder / "spec.yaml", draft.spec.encode(), judged=False)


def attempt(draft: Draft, folder: Path, serve: Serve) -> TrialResult:
    """Run the one case of a draft, as `serve` does. folder: see `loaded_draft`."""
    try:
        (case,) = plan.plan(loaded_draft(draft, folder), plan.Selection()).cases
    except TokitaiError as error:
        return TrialResult(_line(error), before=True)
    needed = plan.memory_bytes(case, 1)
    if needed > MOST_BYTES or plan.oversize(case):
        return TrialResult(f"its sizes need {child.size_text(needed)} of memory", large=True)
    try:
        result = serve(case, {name: one.array for name, one in inputs.draw(case).items()})
    except ChildCrashedError as error:
        why = _line(error)
        return TrialResult(
            why,
            error.array,
            _reached(case, error),
            misaligned=_MISALIGNED in why,
            below=_BELOW.search(why) is not None,
        )
    except (ChildTimeoutError, NotRunError) as error:
        return TrialResult(_line(error))
    except TokitaiError as error:
        named = _UNDECLARED.search(_line(error))
        missing = (named[1] or named[2]) if named else ""
        return TrialResult(_line(error), before=True, undeclared=missing)
    return _outside(case, result.guards[0]) if result.guards else TrialResult()


def _outside(case: Case, damage: GuardDamage) -> TrialResult:
    """Of a run that came to its end, and wrote outside of an array."""
    plan = next(one for one in case.buffers if one.name == damage.buffer)
    past = damage.offset - plan.nbytes
    place = f"{past} bytes past the end" if past >= 0 else f"{-damage.offset} bytes in front"
    by = f" by {damage.writer}" if damage.writer else ""
    why = f"the kernel wrote outside of an array: {place} of `{plan.name}`{by}"
    return TrialResult(why, plan.name, _elements(plan, past)) if past >= 0 else TrialResult(why)


def _reached(case: Case, error: ChildCrashedError) -> int:
    if error.array == DYNAMIC_SHARED:
        return error.past + 1
    for one in case.buffers:
        if one.name == error.array and one.elements:
            return _elements(one, error.past)
    return 0


def _elements(plan: BufferPlan, past: int) -> int:
    """How many an array would need for a byte so far behind its end."""
    return (plan.nbytes + past) // max(1, plan.nbytes // max(1, plan.elements)) + 1


def _line(error: TokitaiError) -> str:
    return str(error).splitlines()[0]


class OnCpu:
    """Context manager: builds drafts for the cpu device, and runs each of them as a Runner."""

    def __init__(self, folder: Path, seconds: float) -> None:
        """folder: see `loaded_draft`. seconds: of a draft's kernels."""
        self._folder = folder
        self._session = Session(Settings(repeat=1, timeout=seconds))

    def __enter__(self) -> OnCpu:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def __call__(self, draft: Draft) -> TrialResult:
        """How a run of the draft ended."""
        device = self._session.device(devices.get("cpu"))
        return attempt(draft, self._folder, lambda case, arrays: _serve(device, case, arrays))


def _serve(device: DeviceSession, case: Case, arrays: Mapping[str, NDArray[Any]]) -> RunResult:
    built = device.built(case)
    if built.artifact is None:
        assert built.error is not None
        raise built.error
    return device.serve(case, Prepared(arrays, [], {}, {}), built.artifact)
