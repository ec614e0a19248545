"""A program that watches a kernel while it runs, and what it says afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from tokitai_cli.model.evidence import FindingRecord


class Watch(msgspec.Struct, frozen=True):
    """One tool of a sanitizer.

    tool: its name as findings and evidence give it. kind, scope: what it looks at, as in
    ExaminationRecord. prefix: argv in front of the child's own, with {log} for the file that it
    writes. options: further options of the child. read: its log to findings; raises ValueError where
    the log shows that the tool itself did not work to its end, with its words.
    version: what the program says of itself.
    """

    tool: str
    kind: Literal["memory", "races", "initialisation", "barriers"]
    scope: str
    prefix: tuple[str, ...]
    options: tuple[str, ...]
    read: Callable[[str], tuple[FindingRecord, ...]]
    version: str
