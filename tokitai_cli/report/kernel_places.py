"""Where the kernel of a case stands, for tools that show results beside the code."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from tokitai_cli.core.model.wording import Placed

if TYPE_CHECKING:
    from tokitai_cli.core.model.evidence import CaseRecord, Evidence


def kernel_place(evidence: Evidence, case: CaseRecord) -> Placed | None:
    """The kernel's file from the spec's folder, and the line of a finding in it, else that on which the
    kernel is defined, else 0; None where the evidence does not know the file.
    """
    kernel = evidence.contract.variants.get(case.variant) if evidence.contract else None
    if kernel is None or not kernel.source:
        return None
    path = kernel.source
    for one in case.findings:
        for place in one.location.split(", "):
            file, _, line = place.rpartition(":")
            if posixpath.basename(file) == posixpath.basename(path) and line.isdigit():
                return Placed(path, int(line))
    source = evidence.sources.get(kernel.source_sha256)
    text = source.text if source is not None and source.text else ""
    for name in kernel.kernels:
        if match := re.search(rf"\b{re.escape(name.partition('<')[0])}\s*\(", text):
            return Placed(path, text.count("\n", 0, match.start()) + 1)
    return Placed(path)


def beside(spec: str, place: Placed) -> Placed:
    """A place seen from the folder of the spec at the path `spec`, from here."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(spec), place.file))
    return Placed(path, place.line, place.column)
