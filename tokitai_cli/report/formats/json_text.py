"""JSON files for other programs: SARIF 2.1.0 for code hosts, and an in-toto statement.

Sources: OASIS SARIF 2.1.0; in-toto Attestation Framework, Statement v1 and test-result predicate v0.1.
"""

from __future__ import annotations

import functools
import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import from_folder, placed, plural, visible_block
from tokitai_cli.report import causes
from tokitai_cli.report.kernel_places import beside, kernel_place
from tokitai_cli.report.outcomes import kind_of
from tokitai_cli.report.raw import Raw

if TYPE_CHECKING:
    from tokitai_cli.core.model.batch_record import BatchIndex, IndexCase
    from tokitai_cli.core.model.evidence import CaseRecord, Evidence
    from tokitai_cli.report.format import ReportOptions
    from tokitai_cli.report.templates import Target


class Digest(msgspec.Struct, frozen=True):
    """A file or text by its digest."""

    name: str
    digest: str
    algorithm: str = "sha256"


def sarif(evidence: Evidence, report_options: ReportOptions) -> Iterator[bytes]:
    """A result for every case that did not pass, at its kernel's line where the text is recorded."""
    from tokitai_cli.evidence import queries

    cases = [one for one in queries.cases(evidence) if one.reads not in _PASSED]
    cases += [one for one in evidence.watched if queries.decides(one)]
    yield _rendered("sarif.json.j2", report_options, {
        "evidence": evidence,
        "rules": list(dict.fromkeys(str(one.reads) for one in cases)),
        "finished": evidence.verdict not in (Verdict.INTERRUPTED, Verdict.INTERNAL_ERROR),
        "results": [_result(evidence, one) for one in cases],
    })  # fmt: skip


def sarif_index(
    index: BatchIndex, cases: Iterable[IndexCase], report_options: ReportOptions
) -> Iterator[bytes]:
    """A result for each cause of a batch, at the line that it names, else in the spec's file."""
    from urllib.parse import quote  # for this format alone

    del cases
    found = causes.of_batch(index)
    results = [
        {
            "verdict": str(one.verdict),
            "level": _LEVELS.get(kind_of(one.verdict), "error"),
            "text": f"{one.case or 'a spec'}: {one.words}"
            + (f" (and {plural(one.count - 1, 'more case')})" if one.count > 1 else ""),
            "uri": quote(one.place.file) if one.place is not None else "",
            "line": one.place.line if one.place is not None else 0,
            "key": one.case or one.words,
            "rerun": one.rerun,
        }
        for one in found
    ]
    yield _rendered("sarif.json.j2", report_options, {
        "evidence": {"tool": index.tool, "name": "batch", "rerun": index.rerun},
        "rules": list(dict.fromkeys(str(one.verdict) for one in found)),
        "finished": index.verdict not in (Verdict.INTERRUPTED, Verdict.INTERNAL_ERROR),
        "results": results,
    })  # fmt: skip


def statement(
    evidence: Evidence, report_options: ReportOptions, file: Digest | None = None
) -> Iterator[bytes]:
    """The in-toto statement; its subjects are kernels, artifacts and the evidence.

    file: of the evidence's file, where that is known; else it is named by the digest of its content.
    """
    passed: dict[str, list[str]] = {"": [], "skipped": [], "failure": [], "error": []}
    for case in evidence.cases:
        passed[kind_of(case.reads)].append(case.key)
    whole = file or Digest(f"{evidence.name}.json", evidence.digest, "tokitaiContentSha256")
    sources = [Digest(one.path, digest) for digest, one in evidence.sources.items()]
    artifacts = [
        Digest(f"{one.source} for {one.device}", one.artifact_sha256)
        for one in evidence.builds.values()
        if one.artifact_sha256
    ]
    compilers = {
        one.compiler.sha256: Digest(one.compiler.path, one.compiler.sha256)
        for one in evidence.builds.values()
        if one.compiler is not None
    }
    specs = [Digest(one.path, digest) for digest, one in evidence.specs.items()]
    oracles = [Digest(name, digest) for name, digest in evidence.oracles.items() if digest]
    yield _rendered("statement.json.j2", report_options, {
        "subjects": [whole, *sources, *artifacts],
        "configuration": [*specs, *oracles, *compilers.values()],
        "result": _RESULTS.get(evidence.verdict, "FAILED"),
        "passed": passed[""],
        "warned": passed["skipped"],
        "failed": [*passed["failure"], *passed["error"]],
    })  # fmt: skip


_PASSED = frozenset({Verdict.VERIFIED, Verdict.BUILT})
# All else has failed, what was not run and what proves nothing too.
_RESULTS = {Verdict.VERIFIED: "PASSED", Verdict.EXPECTED_FAILURE: "WARNED"}
_LEVELS = {"skipped": "note", "failure": "error", "error": "error"}


def _rendered(template: str, report_options: ReportOptions, context: Mapping[str, Any]) -> bytes:
    from tokitai_cli.report.templates import rendered

    text = rendered(_target(), template, report_options, context)
    return msgspec.json.format(text.encode(), indent=1) + b"\n"


@functools.cache
def _target() -> Target:
    from tokitai_cli.report.templates import Target

    return Target(__file__, printed)


def printed(value: object) -> str:
    """JSON of a value; hidden characters of text are made visible."""
    if isinstance(value, Raw):
        return value
    return json.dumps(_clean(value))


def _clean(value: object) -> object:
    if isinstance(value, str):
        return visible_block(value)
    return [_clean(one) for one in value] if isinstance(value, list) else value


def _result(evidence: Evidence, case: CaseRecord) -> dict[str, Any]:
    uri, line = _place(evidence, case)
    return {
        "verdict": str(case.reads),
        "level": _LEVELS.get(kind_of(case.reads), "error"),
        "text": f"{case.key}: {case.reason}",
        "uri": uri,
        "line": line,
        "key": case.key,
        "rerun": case.rerun,
    }


def _place(evidence: Evidence, case: CaseRecord) -> tuple[str, int]:
    """Path of the kernel's file and the line in it, or where its build failed."""
    from urllib.parse import quote  # for this format alone

    place = kernel_place(evidence, case)
    if place is None or evidence.contract is None:
        return "", 0
    place = beside(evidence.contract.path, place)
    told, _ = placed(from_folder(case.reason, evidence.contract.path))
    if case.verdict is Verdict.BUILD_FAILED and told is not None and told.line:
        place = told
    return quote(posixpath.normpath(place.file)), place.line
