"""Right kernels in the forms that people write, and wrong ones, under what `advise` adds to their specs.

The figures are in docs/internals/trials.md.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from tests.commands import kernel_forms
from tests.runs import run, tokitai_here
from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.core.model.verdict import Verdict

_FINE = {Verdict.VERIFIED, Verdict.VACUOUS}


def test_there_are_sixty_of_each() -> None:
    entries = kernel_forms.table().values()
    assert [sum(len(entry[kind]) for entry in entries) for kind in ("right", "wrong")] == [60, 60]


def cases_of(name: str, folder: Path) -> dict[str, list[CaseRecord]]:
    """Cases of each kernel, on the suite and profiles with the lines that `advise` gives."""
    path = kernel_forms.write(folder, name)
    advised = tokitai_here("advise", path, "--apply")
    assert advised.returncode in (0, 6), advised.stderr
    kernel_forms.with_every_kernel(path, name)
    found = defaultdict(list)
    for case in run(path, folder, suite="quick", watch="off").cases:
        found[case.variant].append(case)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", kernel_forms.table())
def test_right_forms_pass_or_are_told_why_and_no_fault_passes(name: str, tmp_path: Path) -> None:
    said = kernel_forms.table()[name].get("said", {})
    for kernel, cases in cases_of(name, tmp_path).items():
        kind, _, plain = kernel.partition("-")
        refuted = [case for case in cases if case.verdict is Verdict.REFUTED]
        if kind == "right" and plain not in said:
            others = [case for case in cases if case.reads not in _FINE]
            # One element whose right value is 0 tells nothing, and says so.
            assert all(
                case.shape.get("n") == 1 and case.verdict is Verdict.INCONCLUSIVE for case in others
            ), (kernel, [case.reason for case in others])
            assert any(case.verdict is Verdict.VERIFIED for case in cases)
        else:
            assert refuted, kernel
        if kind == "right":
            assert all(said[plain] in case.reason for case in refuted), kernel
        if kind == "cancelling":
            # Of a few elements none may be so small that its terms cancel more than the formula's.
            assert any("in which terms cancel" in case.reason for case in refuted), kernel
            assert all("as the kernel " in case.reason for case in refuted), kernel
