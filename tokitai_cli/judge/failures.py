"""Why a case is refuted: one failure of many, and what it is about."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from tokitai_cli.core.model.judged import FindingRecord

# Steps in the order of the comparison: the first that fails gives the reason.
(
    STEP_FORM,
    STEP_UNWRITTEN,
    STEP_FINDINGS,
    STEP_STRUCTURE,
    STEP_NUMBERS,
    STEP_PROPERTIES,
    STEP_REPEATS,
) = range(1, 8)

_OUTSIDE = re.compile(r"out-of-bounds|invalid-")
_ELEMENT = re.compile(r"(?P<name>\w+|dynamic shared memory)\[(?P<at>-?\d+)")

Kind = Literal[
    "form",
    "unwritten",
    "outside",
    "changed",
    "unset",
    "values",
    "repeats",
    "crash",
    "time",
    "other",
]


class Failure(msgspec.Struct, frozen=True):
    """Why a case is refuted: the step of the comparison and a sentence."""

    step: int
    text: str
    #: Form (dtype or shape), unwritten (an element that was never written), outside (an access past
    #: the end of an array), changed (an input), unset (a read of what nobody wrote), values, repeats
    #: (bits that differ), crash and time (the child's end), other.
    kind: Kind = "values"
    #: The one that it is about, empty where it is not known or not one of the spec's.
    array: str = ""
    #: Of the check that failed.
    metric: str = ""


def failure_of(finding: FindingRecord) -> Failure:
    """A finding as a failure of its case."""
    place = _ELEMENT.match(finding.array or finding.location)
    kind: Kind = "other"
    if _OUTSIDE.match(finding.kind):
        # In front of an array no extent would have helped, nor beyond one of the kernel's own.
        known = place is None and not finding.array
        kind = "outside" if known or (place and not place["at"].startswith("-")) else "crash"
    elif finding.kind == "input-changed":
        kind = "changed"
    elif finding.kind == "uninitialised-read":
        kind = "unset"
    return Failure(STEP_FINDINGS, finding.message, kind, place["name"] if place else "")


def said_in(where: str, failure: Failure) -> Failure:
    """A failure with which of the runs of a case it was in."""
    return msgspec.structs.replace(failure, text=f"{where}: {failure.text}")
