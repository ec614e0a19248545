"""What a report format is, and what all of them have to know of a report that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:  # `--help` reads the table, and evidence is much to load
    from tokitai_cli.core.model.batch_record import BatchIndex, IndexCase
    from tokitai_cli.core.model.evidence import Evidence


class ReportOptions(msgspec.Struct, frozen=True):
    """How a report is asked for."""

    #: Folder of the user's own for compiled templates, for what lies there is executed; None: none.
    cache: Path | None = None
    #: Folder whose templates go before those of the same names that ship.
    templates: Path | None = None
    #: With pictures, where the format can hold them.
    plots: bool = False


class Format(msgspec.Struct, frozen=True):
    """One format: its name, the suffix of its files, and what it makes of evidence or an index.

    Both give the file's bytes, piece by piece, so that no report need be held whole; None where the
    format has no such form. `index` gets all cases of the index too, spec by spec.
    """

    name: str
    suffix: str
    evidence: Callable[[Evidence, ReportOptions], Iterable[bytes]] | None
    index: Callable[[BatchIndex, Iterable[IndexCase], ReportOptions], Iterable[bytes]] | None
    #: Name of the index in a batch's folder.
    index_file: str = ""
    #: Whether it can be of several runs of one kernel.
    joins: bool = False
    #: Library of an extra that it is made with.
    needs: str = ""
