"""A report of several runs of one kernel: shared parts once, claims by device and by all runs."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from tests import evidence_samples as samples
from tokitai_cli import evidence as stage
from tokitai_cli.cli.app import run
from tokitai_cli.core.errors import UsageError
from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.evidence import JoinedEvidence
from tokitai_cli.report import JOINED_FORMATS, render

GFX = samples.device(name="gfx", device_class="gfx-isa-on-cpu", arch="gfx1101")


def on_gfx(case: CaseRecord, build: str = "g" * 64) -> CaseRecord:
    return msgspec.structs.replace(case, device="gfx", build=build)


def run_of(
    *cases: CaseRecord, started: str = "2023-11-14T22:13:20Z", **changes: object
) -> Evidence:
    builds = {
        key: samples.build(device="gfx", arch="gfx1101") if key[0] == "g" else samples.build()
        for key in {case.build for case in cases}
    }
    devices = {"cpu": samples.device(), "gfx": GFX}
    return stage.assemble(
        samples.parts(
            cases,
            builds=builds,
            devices=devices,
            volatile=samples.volatile(started=started),
            **changes,
        )
    )


def joined(**files: Evidence) -> JoinedEvidence:
    return stage.joined(stage.runs_of([(f"{name}.json", one) for name, one in files.items()]))


def test_one_report_of_runs_on_two_devices_has_the_kernel_once() -> None:
    found = joined(host=run_of(samples.case()), isa=run_of(on_gfx(samples.case())))
    text = render(found, "md").decode()
    assert text.startswith("# gemm-bw: verified on cpu (host-simt), gfx (gfx-isa-on-cpu)")
    assert text.count("| `grad-a` | `grad_A[m,k]") == 1
    assert text.count("| source | `gemm_bw.hip`") == 1
    assert found.counts == {"verified": 2}
    assert "2 cases verified: 1 different case in 2 runs" in text
    for label, one in (("host", found.runs[0]), ("isa", found.runs[1])):
        assert f"### Run {label}" in text
        assert f"Digest of everything in `{label}`" in text
        assert one.evidence.digest in text


def test_claims_stand_by_device_and_need_every_run() -> None:
    found = joined(host=run_of(samples.case()), isa=run_of(on_gfx(samples.case())))
    by_name = {one.name: one for one in found.claims}
    assert by_name["numerical-agreement"].supported
    assert not by_name["machine-code-executed"].supported
    assert by_name["machine-code-executed"].reason.startswith("host: no case ran on a device")
    text = render(found, "md").decode()
    table = text[text.index("Each device by itself:") :]
    row = next(line for line in table.splitlines() if line.startswith("| machine-code-executed"))
    assert [cell.strip() for cell in row.split("|")[2:-1]] == [
        "not supported",
        "not supported",
        "supported",
    ]


def test_a_device_of_two_runs_has_the_name_of_each() -> None:
    first, second = run_of(samples.case()), run_of(samples.case(), started="2023-11-15T00:00:00Z")
    found = joined(host=first, watch=second)
    assert [case.device for case in found.cases] == ["cpu of host", "cpu of watch"]
    assert set(found.builds) == {samples.BUILD, f"{samples.BUILD} of watch"}
    assert {case.build for case in found.cases} == set(found.builds)
    assert len({case.key for case in found.cases}) == 2


def test_the_worst_run_decides_and_its_reason_names_the_device() -> None:
    found = joined(
        host=run_of(samples.case()),
        again=run_of(samples.refuted(), started="2023-11-15T00:00:00Z"),
    )
    assert found.verdict is Verdict.REFUTED
    assert "on cpu of again: " in found.reason
    assert render(found, "md").decode().count("bound of grad\\_a: 4090 of 4096") == 1


def test_one_run_with_two_devices_shows_the_claims_of_each() -> None:
    both = run_of(samples.case(), on_gfx(samples.refuted()))
    claims = stage.gates_by_device(both)
    agreement = {name: own[0].supported for name, own in claims.items()}
    assert agreement == {"cpu": True, "gfx": False}
    assert "Each device by itself:" in render(both, "md").decode()


def test_what_ended_the_run_counts_for_every_device() -> None:
    ended = stage.Outcome(Verdict.INTERRUPTED, Stage.RUN, "interrupted")
    found = run_of(samples.case(), on_gfx(samples.case()), outcome=ended)
    assert not any(own[0].supported for own in stage.gates_by_device(found).values())


@pytest.mark.parametrize("kind", JOINED_FORMATS)
def test_every_joined_format_names_both_devices(kind: str) -> None:
    found = joined(host=run_of(samples.case()), isa=run_of(on_gfx(samples.case())))
    made = render(found, kind)
    assert kind == "figures" or (b"cpu" in made and b"gfx" in made)


def test_unlike_runs_are_refused() -> None:
    one = run_of(samples.case())
    other_spec = msgspec.structs.replace(one, specs={"9" * 64: next(iter(one.specs.values()))})
    source = next(iter(one.sources.values()))
    other_kernel = msgspec.structs.replace(one, sources={"9" * 64: source})
    oracle = msgspec.structs.replace(one, oracles={"formula a.py": "1"}, digest="x")
    other_oracle = msgspec.structs.replace(one, oracles={"formula a.py": "2"}, digest="y")
    for first, second, words in (
        (one, one, "are the same run"),
        (one, msgspec.structs.replace(other_spec, digest="x"), "their specs differ"),
        (one, msgspec.structs.replace(other_kernel, digest="x"), f"source {source.path} differs"),
        (oracle, other_oracle, "oracle formula a.py differs"),
    ):
        with pytest.raises(UsageError, match=re.escape(words)):
            joined(first=first, second=second)


def test_labels_are_the_shortest_ends_that_differ() -> None:
    later = run_of(samples.case(), started="2023-11-15T00:00:00Z")
    files = [("/home/a/x/run.json", run_of(samples.case())), ("/home/a/y/run.json", later)]
    assert [one.label for one in stage.runs_of(files)] == ["x/run", "y/run"]
    assert "/home/a" not in render(stage.joined(stage.runs_of(files)), "html").decode()


def test_the_verb_takes_several_files_and_says_which_formats_do(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    for at, name in enumerate(("host", "night")):
        stage.write(
            run_of(samples.case(), started=f"2023-11-14T22:1{at}:20Z"), tmp_path / f"{name}.json"
        )
    files = [str(tmp_path / f"{name}.json") for name in ("host", "night")]
    assert run(["report", *files]) == 0
    assert capsysbinary.readouterr().out.startswith(
        b"# gemm-bw: verified on cpu of host (host-simt)"
    )
    assert run(["report", *files, "--format", "html,appendix", "--out", str(tmp_path / "o")]) == 0
    assert {one.name for one in (tmp_path / "o").iterdir()} == {
        "gemm-bw.html",
        "gemm-bw.appendix.tex",
    }
    assert run(["report", *files, "--format", "junit"]) == 2
    assert b"--format junit: takes one file only" in capsysbinary.readouterr().err
    assert run(["report", files[0], str(tmp_path)]) == 2
    assert b"a batch among several files" in capsysbinary.readouterr().err
