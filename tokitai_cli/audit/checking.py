"""`check FILE`: schema, digests, whether the file agrees with itself, and who signed it."""

from __future__ import annotations

from pathlib import Path

from tokitai_cli.audit import signature
from tokitai_cli.audit.door import contradictions, same_tool
from tokitai_cli.audit.opened import opened
from tokitai_cli.core.errors import DamagedError
from tokitai_cli.core.model.audit_answer import Answer, Remark
from tokitai_cli.core.model.wording import plural

_WHETHER = (
    "only running it again shows whether the run took place with this result: tokitai reproduce "
    "{}, with the spec that `tokitai unpack` writes, or with --run-authors-code; a signature says who "
    "signed the file, not whether its content is true"
)


def check(file: str, *, key: str | None = None, attestation: str | None = None) -> Answer:
    """Whether evidence fits. Raises EvidenceError for what is no evidence that can be read."""
    path = Path(file)
    try:
        found = opened(path)
    except DamagedError as error:
        return Answer(f"{path.name}: inconsistent", False, [Remark(str(error), fault=True)])
    remarks = contradictions(found)
    if key is not None:
        envelope = Path(attestation) if attestation else signature.beside(path)
        remarks += signature.remarks(path, found, envelope, Path(key), same=same_tool(found))
    faults = sum(one.fault for one in remarks)
    if faults:
        return Answer(f"{path.name}: inconsistent ({plural(faults, 'fault')})", False, remarks)
    remarks.append(Remark(_WHETHER.format(path.name)))
    said = f"{found.verdict}, {plural(len(found.cases), 'case')}"
    signed = "consistent" if key is None else "consistent, and signed with the key"
    return Answer(f"{path.name}: {signed} ({said})", True, remarks)
