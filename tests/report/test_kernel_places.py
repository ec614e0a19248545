"""A refuted kernel is shown at its own line, wherever its file stands from the spec."""

from __future__ import annotations

import json

import msgspec

from tests import evidence_samples as samples
from tokitai_cli.core.model.evidence import Evidence, SourceRecord
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import Placed
from tokitai_cli.report import causes, kernel_place, render

TEXT = "// a kernel\n\n__global__ void gemm_bw_grad_a_fp16_f32_kernel(int n) {}\n"


def outside(path: str = "specs/gemm-bw.yaml") -> Evidence:
    """Refuted evidence of a spec whose kernel stands in another folder."""
    found = samples.sample(Verdict.REFUTED)
    assert found.contract is not None
    kernels = {
        name: msgspec.structs.replace(one, source="../kernels/gemm_bw.hip")
        for name, one in found.contract.variants.items()
    }
    contract = msgspec.structs.replace(found.contract, variants=kernels, path=path)
    source = SourceRecord(path="../kernels/gemm_bw.hip", bytes=len(TEXT), text=TEXT)
    return msgspec.structs.replace(found, contract=contract, sources={samples.SOURCE: source})


def test_the_place_is_the_line_of_the_kernel_from_the_folder_of_the_spec() -> None:
    found = outside()
    refuted = next(one for one in found.cases if one.verdict is Verdict.REFUTED)
    assert kernel_place(found, refuted) == Placed("../kernels/gemm_bw.hip", 3)


def test_causes_and_reports_name_it_from_here() -> None:
    found = outside()
    places = {one.place for one in causes.of_run(found, "specs/gemm-bw.yaml")}
    assert places == {Placed("kernels/gemm_bw.hip", 3)}
    (first, *_) = json.loads(render(found, "codequality"))
    assert first["location"] == {"path": "kernels/gemm_bw.hip", "lines": {"begin": 3}}
    (result, *_) = json.loads(render(found, "sarif"))["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "kernels/gemm_bw.hip"
    assert place["region"]["startLine"] == 3


def test_a_kernel_above_the_working_folder_keeps_its_way_up() -> None:
    found = outside("gemm-bw.yaml")
    assert {one.place for one in causes.of_run(found, "gemm-bw.yaml")} == {
        Placed("../kernels/gemm_bw.hip", 3)
    }
    (result, *_) = json.loads(render(found, "sarif"))["runs"][0]["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "../kernels/gemm_bw.hip"


def test_the_files_of_a_built_in_op_are_not_shown_as_the_callers() -> None:
    assert {one.place for one in causes.of_run(outside("gemm-bw"), "gemm-bw")} == {
        Placed("gemm-bw")
    }
