"""The door of every verb that makes something of evidence: what `check` refuses does not come in."""

from __future__ import annotations

import os
from pathlib import Path

from tokitai_cli.audit import consistency
from tokitai_cli.audit.opened import opened
from tokitai_cli.core.errors import Location, UnfitError
from tokitai_cli.core.model.audit_answer import Remark
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.wording import plural
from tokitai_cli.core.version import __version__
from tokitai_cli.evidence.tool import begin_commit


def sound(file: str | Path) -> Evidence:
    """Evidence that agrees with itself. Raises EvidenceError as `opened` does, and UnfitError."""
    found = opened(file)
    require_sound(found, Path(file))
    return found


def require_sound(evidence: Evidence, path: Path) -> None:
    """Raise UnfitError where evidence, which stands at `path`, contradicts itself."""
    faults = [one.text for one in contradictions(evidence) if one.fault]
    if faults:
        more = f" (and {plural(len(faults) - 1, 'more fault')})" if len(faults) > 1 else ""
        raise UnfitError(
            f"does not fit: {faults[0]}{more}",
            where=Location(path),
            hint=f"tokitai check {path} lists all problems; no result is derived from such a file",
        )


def contradictions(evidence: Evidence) -> list[Remark]:
    """All that `consistency` says of evidence, by the words of this tool where this tool wrote it."""
    return consistency.remarks(evidence, same=same_tool(evidence))


def same_tool(evidence: Evidence) -> bool:
    """Whether this tool wrote it, as far as can be said: another commit may say things otherwise."""
    if evidence.tool.version != __version__:
        return False
    commit = begin_commit(os.environ)()
    return commit == evidence.tool.commit and not commit.endswith(("unknown", "-dirty"))
