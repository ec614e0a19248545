"""`check FILE`: schema, digests, whether the file agrees with itself, and who signed it."""

from __future__ import annotations

import os
from pathlib import Path

from tokitai_cli.audit import consistency, signature
from tokitai_cli.audit.opened import opened
from tokitai_cli.core.errors import DamagedError
from tokitai_cli.core.model.audit_answer import Answer, Remark
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.wording import plural
from tokitai_cli.core.version import __version__
from tokitai_cli.evidence.tool import begin_commit

_UNSIGNED = (
    "no signature was asked for: a file that was changed so that it still fits is told by a signature "
    "alone (--key)"
)


def check(file: str, *, key: str | None = None, attestation: str | None = None) -> Answer:
    """Whether evidence fits. Raises EvidenceError for what is no evidence that can be read."""
    path = Path(file)
    try:
        found = opened(path)
    except DamagedError as error:
        return Answer(f"{path.name}: does not fit", False, [Remark(str(error), fault=True)])
    remarks = consistency.remarks(found, same=_same_tool(found))
    if key is None:
        remarks.append(Remark(_UNSIGNED))
    else:
        envelope = Path(attestation) if attestation else signature.beside(path)
        remarks += signature.remarks(path, found, envelope, Path(key))
    faults = sum(one.fault for one in remarks)
    if faults:
        return Answer(f"{path.name}: does not fit ({plural(faults, 'fault')})", False, remarks)
    said = f"{found.verdict}, {plural(len(found.cases), 'case')}"
    signed = "fits" if key is None else "fits, and the signature is that of the key"
    return Answer(f"{path.name}: {signed} ({said})", True, remarks)


def _same_tool(found: Evidence) -> bool:
    """Whether this tool wrote it, as far as can be said: another commit may say things otherwise."""
    if found.tool.version != __version__:
        return False
    commit = begin_commit(os.environ)()
    return commit == found.tool.commit and not commit.endswith(("unknown", "-dirty"))
