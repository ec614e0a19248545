"""The table of wrong outputs: each outcome has a column."""

from __future__ import annotations

from typing import get_args, get_type_hints

import pytest

from tokitai_cli.core.model.evidence import GroupRecord
from tokitai_cli.report.outline import _rejections

COLUMNS = ("rejected", "accepted", "never_eligible", "undetected", "not_known", "not_applicable")


@pytest.mark.parametrize("status", get_args(get_type_hints(GroupRecord)["status"]))
def test_no_row_of_wrong_outputs_is_empty(status: str) -> None:
    group = GroupRecord(
        op="add",
        variant="fwd",
        output="out",
        shape={"n": 4},
        device="cpu",
        kind="line 2: a dropped term",
        status=status,  # type: ignore[arg-type]
        rejected_by=[],
        accepted_by=[],
    )
    (row,) = _rejections([group])
    told = {name: getattr(row, name) for name in COLUMNS if getattr(row, name)}
    assert told == {status.replace("-", "_"): 1}
