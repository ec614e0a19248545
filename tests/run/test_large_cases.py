"""Whole runs of large cases: the evidence of one whose answer is computed while it is judged."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.runs import derived_spec, run, shipped_tree
from tokitai_cli.core import resources
from tokitai_cli.core.deferred import NotByRowsError
from tokitai_cli.oracles.variants import by_windows, row_fields, row_layout, row_windows
from tokitai_cli.run import prepare

# Elements of some rows are zeroed; one of a run whose columns are permuted, as these are drawn.
FAULTS = {
    "right": "",
    "wrong": "if (blockIdx.x % 50 == 7 && threadIdx.x == 3) output[blockIdx.x * cols + 3] = 0;",
    "unlike": "if (__half2float(input[0]) > __half2float(input[1])) output[cols + 3] = 0;",
}
PROPERTIES = [
    {"name": name, "output": "y", "why": "it holds"}
    for name in ("row-sum", "permutation-equivariance")
]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (row_layout, row_fields):
        monkeypatch.setattr(module, "PART", 1 << 15)
    for module in (row_layout, by_windows):
        monkeypatch.setattr(module, "BLOCK", 1 << 13)
    monkeypatch.setattr(row_layout, "_BLOCK", 1 << 13)


def evidence_of(folder: Path, fault: str, **options: Any) -> Any:
    source = folder / "softmax.hip"
    text = (resources.kernels_dir() / "softmax.hip").read_text("utf-8")
    call = "softmax_fwd(input, output, cols);"
    source.write_text(text.replace(call, f"{call} __syncthreads(); {FAULTS[fault]}", 1), "utf-8")
    for header in resources.kernels_dir().glob("*.hpp"):
        shutil.copy(header, folder)
    spec = derived_spec(
        folder,
        "softmax",
        "fwd",
        ["softmax_fwd_fp16_f32_kernel"],
        source=source,
        changes={"profiles": ["normal"], "properties": PROPERTIES},
        profiles={"normal": shipped_tree("softmax")["profiles"]["normal"]},
        equivalent_changes=[],
    )
    shapes = {"rows": 200, "cols": 600}
    found = run(spec, folder / "out", shapes=shapes, profile=["normal"], watch="off", **options)
    record = msgspec.to_builtins(found)
    record.pop("volatile")
    shutil.rmtree(folder / "out")
    return msgspec.json.encode(record)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_evidence_is_that_of_a_whole_answer(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = evidence_of(tmp_path, fault, save_arrays=True)
    monkeypatch.setattr(prepare.Prepared, "later", property(lambda self: False))
    made = prepare.Preparation.__init__

    def whole(self: Any, case: Any, settings: Any, *, later: bool = False) -> None:
        made(self, case, settings)

    monkeypatch.setattr(prepare.Preparation, "__init__", whole)
    assert later == evidence_of(tmp_path, fault, save_arrays=True)
    found = msgspec.json.decode(later)["cases"][0]
    assert found["verdict"] == ("verified" if fault == "right" else "refuted")
    assert ("permutation-equivariance does not hold" in found["reason"]) is (fault == "unlike")


def test_rows_that_hang_together_are_judged_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = evidence_of(tmp_path, "right")
    asked = []

    def refuse(self: Any, *arguments: Any) -> None:
        asked.append(arguments)
        raise NotByRowsError

    monkeypatch.setattr(row_windows.RowWindows, "_require_independent", refuse)
    assert evidence_of(tmp_path, "right") == whole
    assert len(asked) == 1
