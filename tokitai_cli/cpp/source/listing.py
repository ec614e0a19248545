"""Kernels of a source tree, as `tokitai find` lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:  # it reads sources, which most verbs do not
    from tokitai_cli.cpp.source.signatures import Parameter


class FoundKernel(msgspec.Struct, frozen=True):
    """A kernel where it stands, and what a spec could pass to it."""

    file: str
    line: int
    name: str
    #: The kernel as a spec names it.
    instance: str
    signature: str
    parameters: list[Parameter]
    bindable: bool
    #: Why the tool writes no spec for it, empty where it does.
    reasons: tuple[str, ...]
    #: Why its draft did not come to its end in a run, empty where it did; None without a run. One
    #: that writes nothing is run as well.
    ended: str | None = None
    #: How often it was run, the draft changed each time.
    runs: int = 0
    #: Whether it is one of the tool's own.
    fault: bool = False


class Unread(msgspec.Struct, frozen=True):
    """A file, or file:line of it, that could not be looked at, and why."""

    file: str
    reason: str
    #: Of the tool's own.
    fault: bool = False
