"""Cases of evidence as rows of the index, and those that need a look in more detail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tokitai_cli.model import view
from tokitai_cli.model.batch import Done, Failure, IndexCase
from tokitai_cli.model.evidence import CaseRecord, Evidence
from tokitai_cli.model.text import number
from tokitai_cli.model.verdict import Stage, Verdict

LOG_LINES = 15
MOST_LINE = 400


def rows(
    evidence: Evidence, dones: Sequence[Done], spec: str, file: str
) -> Iterator[tuple[Done, IndexCase, CaseRecord]]:
    """Row of each case of `evidence`, which holds the cases of `dones` in this order.

    spec: name in the batch. file: where the evidence lies, from the index.
    """
    for done, case in zip(dones, view.cases(evidence), strict=True):
        row = IndexCase(
            id=done.id,
            spec=spec,
            op=case.op,
            variant=case.variant,
            shape=case.shape,
            profile=case.profile,
            seed=case.seed,
            device=case.device,
            arch=evidence.devices[case.device].arch,
            verdict=case.verdict,
            stage=case.stage,
            reason="" if case.verdict is Verdict.VERIFIED else case.reason,
            seconds=done.seconds,
            evidence=file,
            rerun=case.rerun,
            kept=done.kept,
        )
        yield done, row, case


def failure(evidence: Evidence, row: IndexCase, case: CaseRecord) -> Failure:
    """What a reader needs of a case that failed."""
    return Failure(case=row, element=worst_element(case), log=log_tail(evidence, case))


def worst_element(case: CaseRecord) -> str:
    """Worst element of the worst failed check in words, else what failed beside the numbers.

    Empty where nothing was compared.
    """
    found = view.first_worst(case)
    if found is not None:
        output, check, one = found
        return (
            f"{output}{_at(one.index)}: got {number(one.got, 9)}, want {number(one.want, 9)}, "
            f"error {number(one.error)}, limit {number(one.limit)} "
            f"({check.metric} against the {check.against})"
        )
    for result in case.outputs:
        for fault in result.structure:
            got = number(fault.got, 9)
            return f"{result.name}{_at(fault.first)}: got {got}, want {fault.want}"
    for item in case.properties:
        if not item.passed:
            value, limit = number(item.value, 9), number(item.limit)
            return f"property {item.name} of {item.output}: {value}, limit {limit}; {item.detail}"
    for finding in case.findings:
        return " ".join(filter(None, (finding.message, finding.kernel, finding.location)))
    return ""


def log_tail(evidence: Evidence, case: CaseRecord) -> str:
    """The compiler's first errors, else the last lines of what the kernel or the oracle printed."""
    if case.verdict is Verdict.BUILD_FAILED or case.stage is Stage.BUILD:
        build = evidence.builds.get(case.build)
        lines = build.failed if build is not None else []
        return _shortened(lines[:LOG_LINES])
    kernel = evidence.volatile.kernel_logs.get(case.key, "")
    oracle = evidence.volatile.oracle_logs.get(case.key, "")
    text = oracle or kernel if case.stage is Stage.ORACLE else kernel or oracle
    return _shortened(text.splitlines()[-LOG_LINES:])


def _shortened(lines: Sequence[str]) -> str:
    return "\n".join(
        line if len(line) <= MOST_LINE else f"{line[:MOST_LINE]} ... ({len(line)} characters)"
        for line in lines
    )


def _at(index: Sequence[int]) -> str:
    return f"[{', '.join(map(str, index))}]"
