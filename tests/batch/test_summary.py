"""Summary of a batch: vacuity over groups, evidence files, the index and what is rendered from it."""

from __future__ import annotations

import json
import os
import re
import tracemalloc
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from tests import batch_samples as batches
from tests import evidence_samples as samples
from tests.batch.test_store import change
from tests.batch_samples import Sample
from tests.report.test_report import HOSTILE, outside_of_code
from tokitai_cli import evidence, report
from tokitai_cli.batch.index import case_rows, evidence_parts, render_folder, summarise
from tokitai_cli.batch.index.case_rows import MOST_CELLS
from tokitai_cli.batch.index.devices import joined
from tokitai_cli.batch.index.index_files import (
    FileNames,
    is_index,
    read_cases,
    read_index,
    render_index_file,
)
from tokitai_cli.batch.store.database import Store
from tokitai_cli.core.errors import EvidenceError, StorageError, UsageError
from tokitai_cli.core.model.batch_record import INDEX_SCHEMA, BatchIndex, IndexCase, SpecEntry
from tokitai_cli.core.model.evidence import CaseRecord, FactRecord
from tokitai_cli.core.model.judged import MutantRecord
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.evidence import encoding
from tokitai_cli.report import figures
from tokitai_cli.report.index_outline import outline_index

GOLDEN = Path(__file__).parents[1] / "golden"
SPEC = batches.digest_of(batches.SPEC_TEXT)


def summed(folder: Path) -> BatchIndex:
    with Store.open(folder) as opened:
        return summarise(opened)


def made(
    path: Path, cases: Sequence[Sample], how: str | None = "whole", total: int = -1, **start: Any
) -> BatchIndex:
    """Index of a batch of one spec."""
    count = len(cases) if total < 0 else total
    specs = start.pop("specs", [batches.entry(cases=count)])
    begun = batches.begun(specs, count, **start)
    batches.write(path, cases, begun, None if how is None else batches.ended(how))
    return summed(path)


def failed(verdict: Verdict, stage: Stage, reason: str, **changes: Any) -> CaseRecord:
    return samples.not_judged(verdict, stage, reason, spec=SPEC, **changes)


def every_verdict() -> list[Sample]:
    """A case of each verdict that a case can have, the vacuous one in a group of its own."""
    broken = samples.build(artifact_sha256="", failed=["gemm_bw.hip:3:5: error: no `x`", "1 error"])
    away = samples.device(
        name="rocm",
        device_class="amd-gpu",
        available=False,
        arch="",
        missing="no AMD GPU",
        facts=[],
    )
    small = {"m": 16, "n": 16, "k": 16}
    unseen = [MutantRecord(output="grad_a", kind="roll", status="accepted", detail="constant")]
    fault = "a fault of tokitai, KeyError: 'x'; log: could not be written"
    return [
        Sample(record=batches.case()),
        Sample(record=batches.case(seed=1, id="gemm-bw/grad-a/m=64,n=64,k=64/normal/1"), kept=True),
        Sample(record=samples.refuted(profile="uniform", spec=SPEC), log="from the kernel\n"),
        Sample(
            record=batches.case("large", verdict=Verdict.UNEXPECTED_PASS, reason="known bug passed")
        ),
        Sample(
            record=failed(Verdict.CRASHED, Stage.RUN, "killed by SIGSEGV", profile="crash"),
            log="\n".join(f"line {number}" for number in range(40)),
        ),
        Sample(record=failed(Verdict.TIMED_OUT, Stage.RUN, "outlived 60 s", profile="slow")),
        Sample(
            record=failed(Verdict.BUILD_FAILED, Stage.BUILD, "g++ failed", profile="broken"),
            build=broken,
            build_key="failed-cpu-0123456789abcdef",
        ),
        Sample(record=batches.case("constant", shape=small, mutants=unseen)),
        Sample(
            record=failed(
                Verdict.INCONCLUSIVE, Stage.ORACLE, "the oracle raised ValueError", profile="odd"
            ),
            oracle_log="Traceback\nValueError: no",
        ),
        Sample(
            record=failed(Verdict.INADMISSIBLE, Stage.PROBE, "no AMD GPU", device="rocm"),
            device=away,
            build=None,
        ),
        Sample(record=failed(Verdict.NOT_RUN, Stage.PLAN, "needs 64 GiB", profile="huge")),
        Sample(
            record=samples.refuted(
                profile="known", spec=SPEC, verdict=Verdict.EXPECTED_FAILURE, known_bug="issue 12"
            )
        ),
        Sample(
            record=failed(Verdict.INTERNAL_ERROR, Stage.RUN, fault, profile="fault"), build=None
        ),
    ]


@pytest.fixture
def whole(tmp_path: Path) -> tuple[Path, BatchIndex]:
    cases = every_verdict()
    index = made(tmp_path, cases, "interrupted", len(cases) + 2, left_out=3)
    return tmp_path, index


def golden(name: str, text: str) -> None:
    """Set TOKITAI_UPDATE_GOLDEN=1 to write the files anew, and read the difference."""
    path = GOLDEN / name
    if os.environ.get("TOKITAI_UPDATE_GOLDEN") == "1":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["index.md", "junit.xml"])
def test_golden(whole: tuple[Path, BatchIndex], name: str) -> None:
    golden(f"batch-{name}", (whole[0] / name).read_text(encoding="utf-8"))


def test_failures_come_first_by_rank_and_counts_have_every_verdict(
    whole: tuple[Path, BatchIndex],
) -> None:
    _, index = whole
    ranks = [failure.case.verdict.rank for failure in index.failures]
    assert ranks == sorted(ranks)
    assert {failure.case.verdict for failure in index.failures}.isdisjoint(
        {Verdict.VERIFIED, Verdict.EXPECTED_FAILURE}
    )
    assert sum(index.counts.values()) == len(every_verdict())
    assert index.counts["inconclusive"] == 2
    assert index.counts["expected-failure"] == 1
    assert (index.not_started, index.kept, index.left_out) == (2, 1, 3)
    assert (index.verdict, index.hosts) == (Verdict.INTERNAL_ERROR, ["node-1"])
    by_verdict = {failure.case.verdict: failure for failure in index.failures}
    assert by_verdict[Verdict.REFUTED].element.startswith(
        "grad_a[3, 17]: got -0.000243902206, want"
    )
    assert by_verdict[Verdict.CRASHED].log.splitlines() == [f"line {n}" for n in range(25, 40)]
    assert by_verdict[Verdict.BUILD_FAILED].log.startswith("gemm_bw.hip:3:5: error")
    logs = [f.log for f in index.failures if f.case.stage == Stage.ORACLE]
    assert logs == ["Traceback\nValueError: no"]


def test_causes_are_told_to_code_hosts(whole: tuple[Path, BatchIndex]) -> None:
    folder, index = whole
    findings = json.loads((folder / "codequality.json").read_text("utf-8"))
    (run,) = json.loads((folder / "index.sarif").read_text("utf-8"))["runs"]
    assert len(findings) == len(run["results"]) > 1
    assert len({one["fingerprint"] for one in findings}) == len(findings)
    verdicts = {str(one.case.verdict) for one in index.failures}
    assert {one["check_name"].removeprefix("tokitai/") for one in findings} >= verdicts
    assert {one["ruleId"] for one in run["results"]} >= verdicts
    reruns = {one.case.rerun for one in index.failures}
    assert {one["properties"]["rerun"] for one in run["results"]} <= reruns | {index.rerun}


def test_evidence_files_are_those_of_a_run(whole: tuple[Path, BatchIndex]) -> None:
    folder, index = whole
    files = [name for name in index.specs[0].evidence if name.endswith(".json")]
    seen = [case for name in files for case in evidence.read(folder / name).cases]
    assert len(seen) == len(every_verdict())
    for name in files:
        found = evidence.read(folder / name)
        assert found.rerun == "tokitai batch specs --seed 0 --device cpu"
        assert found.tool == batches.TOOL
        assert list(found.cases[0].shape) == ["m", "n", "k"]
        assert not found.volatile.environment
        beside = (folder / name).with_suffix(".md").read_text(encoding="utf-8")
        assert report.render(found, "md").decode() == beside


def test_the_index_is_rendered_again_from_its_files(whole: tuple[Path, BatchIndex]) -> None:
    folder, index = whole
    path = folder / "index.json"
    assert read_index(path) == index
    assert is_index(path)
    others = ["cases.jsonl", "junit.xml", "evidence/gemm-bw.json", "nowhere.json"]
    assert not any(is_index(folder / name) for name in others)
    for kind, name in report.INDEX_FILES.items():
        assert render_index_file(path, kind) == (folder / name).read_bytes()
    schema = evidence.schema(BatchIndex, INDEX_SCHEMA)
    jsonschema.Draft202012Validator(schema).validate(json.loads(path.read_bytes()))
    rows = list(read_cases(index, path))
    assert [row.id for row in rows] == [one.id for one in every_verdict()]
    with pytest.raises(UsageError, match="unknown report format"):
        render_index_file(path, "pdf")


def test_a_batch_that_was_killed_is_read_from_its_folder(tmp_path: Path) -> None:
    cases = every_verdict()
    batches.write(tmp_path, cases, batches.begun([batches.entry(cases=99)], 99), None)
    before = sorted(tmp_path.rglob("*"))
    index = msgspec.json.decode(render_folder(tmp_path, "json"), type=BatchIndex)
    assert (index.verdict, index.not_started) == (Verdict.INTERNAL_ERROR, 99 - len(cases))
    assert index.specs[0].evidence == []
    text = render_folder(tmp_path, "md").decode()
    assert "killed by SIGSEGV" in text
    root = ET.fromstring(render_folder(tmp_path, "junit").decode())
    assert len([*root.iter("testcase")]) == len(cases) + 1
    assert sorted(tmp_path.rglob("*")) == before
    index = summed(tmp_path)
    assert render_folder(tmp_path, "md") == (tmp_path / "index.md").read_bytes()
    assert index.specs[0].evidence
    with pytest.raises(StorageError, match="is not the folder of a batch"):
        render_folder(tmp_path / "evidence", "md")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"schema": "tokitai/batch/v2"}, "newer schema tokitai/batch/v2"),
        ({"schema": "tokitai/evidence/v1"}, "no index of a batch"),
        ({"extra": 1}, "there is an unknown field"),
        ({"total": "many"}, "does not follow tokitai/batch/v1"),
    ],
)
def test_an_index_is_read_strictly(
    whole: tuple[Path, BatchIndex], change: dict[str, Any], match: str
) -> None:
    path = whole[0] / "index.json"
    tree = json.loads(path.read_text(encoding="utf-8")) | change
    path.write_text(json.dumps(tree), encoding="utf-8")
    with pytest.raises(EvidenceError, match=match):
        read_index(path)


def test_cases_that_do_not_belong_to_the_index_are_refused(
    whole: tuple[Path, BatchIndex],
) -> None:
    folder, _ = whole
    path = folder / "cases.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(EvidenceError, match=r"has 12 cases, and index\.json describes 13"):
        render_index_file(folder / "index.json", "junit")
    path.write_bytes(b"{}\n")
    with pytest.raises(EvidenceError, match="is damaged"):
        render_index_file(folder / "index.json", "junit")


def mutants(**statuses: str) -> list[MutantRecord]:
    return [
        MutantRecord(output="grad_a", kind=kind, status=status, detail="")  # type: ignore[arg-type]
        for kind, status in statuses.items()
    ]


@pytest.mark.parametrize(
    ("first", "second", "want"),
    [
        ("accepted", "rejected", "verified"),
        ("rejected", "accepted", "verified"),
        ("accepted", "accepted", "inconclusive"),
        ("not-eligible", "not-eligible", "inconclusive"),
    ],
)
def test_vacuity_is_judged_over_the_group(
    tmp_path: Path, first: str, second: str, want: str
) -> None:
    cases = [
        Sample(record=batches.case("normal", mutants=mutants(roll=first, zeros="rejected"))),
        Sample(record=batches.case("constant", mutants=mutants(roll=second, zeros="rejected"))),
    ]
    index = made(tmp_path, cases)
    assert index.counts == {want: 2}
    assert index.verdict == want
    assert {one.verdict for one in evidence.read(tmp_path / "evidence/gemm-bw.json").cases} == {
        want
    }


def test_each_alone_accepted_and_rejected_of_unlike_kinds_is_vacuous(tmp_path: Path) -> None:
    cases = [
        Sample(record=batches.case("normal", mutants=mutants(roll="accepted", zeros="rejected"))),
        Sample(record=batches.case("constant", mutants=mutants(roll="accepted", zeros="accepted"))),
    ]
    index = made(tmp_path, cases)
    assert index.counts == {"inconclusive": 2}
    assert "(roll)" in index.failures[0].case.reason


def test_another_shape_or_architecture_is_another_group(tmp_path: Path) -> None:
    small, large = ({"m": size, "n": 64, "k": 64} for size in (16, 64))
    cases = [
        Sample(
            record=batches.case(profile, device="rocm", mutants=mutants(roll=roll), shape=shape),
            device=samples.device(name="rocm", device_class="amd-gpu", arch=arch),
        )
        for profile, roll, arch, shape in (
            ("normal", "accepted", "gfx90a", large),
            ("large", "rejected", "gfx942", large),
            ("normal", "rejected", "gfx90a", small),
        )
    ]
    index = made(tmp_path, cases, devices=["rocm"])
    assert index.counts == {"inconclusive": 1, "verified": 2}
    assert index.specs[0].evidence == [
        "evidence/gemm-bw.gfx90a.md",
        "evidence/gemm-bw.gfx90a.json",
        "evidence/gemm-bw.gfx942.md",
        "evidence/gemm-bw.gfx942.json",
    ]
    assert set(index.devices) == {"rocm.gfx90a", "rocm.gfx942"}
    found = evidence.read(tmp_path / "evidence/gemm-bw.gfx942.json")
    assert found.devices["rocm"].arch == "gfx942"
    assert any("other files of this spec's evidence" in one.text for one in found.non_claims)


@pytest.mark.parametrize("how", ["interrupted", "stopped", None])
def test_a_vacuous_case_of_a_batch_that_stopped_says_so(tmp_path: Path, how: str | None) -> None:
    cases = [Sample(record=batches.case(mutants=mutants(roll="accepted")))]
    index = made(tmp_path, cases, how, 2)
    assert "the batch stopped before all cases ran" in index.failures[0].case.reason
    whole = made(tmp_path, cases)
    assert "stopped" not in whole.failures[0].case.reason


@pytest.mark.parametrize(
    ("how", "total", "kinds", "want"),
    [
        ("whole", 0, [], Verdict.NOT_RUN),
        ("interrupted", 5, [], Verdict.INTERRUPTED),
        ("interrupted", 5, [Verdict.VERIFIED], Verdict.INTERRUPTED),
        ("interrupted", 5, [Verdict.BUILD_FAILED], Verdict.INTERRUPTED),
        ("interrupted", 5, [Verdict.REFUTED], Verdict.REFUTED),
        ("stopped", 5, [Verdict.BUILD_FAILED], Verdict.BUILD_FAILED),
        ("stopped", 5, [Verdict.VERIFIED], Verdict.INTERRUPTED),
        (None, 5, [Verdict.VERIFIED], Verdict.INTERRUPTED),
        ("whole", 1, [Verdict.VERIFIED], Verdict.VERIFIED),
        ("whole", 1, [Verdict.EXPECTED_FAILURE], Verdict.EXPECTED_FAILURE),
        ("whole", 1, [Verdict.INADMISSIBLE], Verdict.INADMISSIBLE),
    ],
)
def test_verdict_of_a_batch(
    tmp_path: Path, how: str | None, total: int, kinds: list[Verdict], want: Verdict
) -> None:
    cases = [
        Sample(record=batches.case())
        if kind is Verdict.VERIFIED
        else Sample(record=failed(kind, Stage.RUN, "for a reason"))
        for kind in kinds
    ]
    index = made(tmp_path, cases, how, total, specs=[batches.entry(cases=total)] if total else [])
    assert (index.verdict, bool(index.reason)) == (want, True)
    # No file of evidence says verified of a spec that lacks cases.
    if want is not Verdict.VERIFIED:
        for spec in index.specs:
            assert spec.verdict is not Verdict.VERIFIED
    root = ET.fromstring((tmp_path / "junit.xml").read_text(encoding="utf-8"))
    red = int(root.get("failures", "")) + int(root.get("errors", ""))
    assert bool(red) == (want not in (Verdict.VERIFIED, Verdict.EXPECTED_FAILURE))


def test_a_vanished_record_is_named(tmp_path: Path) -> None:
    made(tmp_path, [Sample(record=batches.case())])
    change(tmp_path, "DELETE FROM record WHERE kind = 'build'")
    with pytest.raises(StorageError, match=r"build [0-9a-z-]+ is damaged: it is not there"):
        summed(tmp_path)


def many(count: int, device: str = "cpu") -> list[Sample]:
    profiles = ("normal", "uniform", "large", "cancelling", "exact-int")
    return [
        Sample(
            record=batches.case(
                profiles[at % 5], shape={"m": 16 + at // 5, "n": 64, "k": 64}, device=device
            )
        )
        for at in range(count)
    ]


def test_parts_hold_whole_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_parts, "MOST_CASES", 12)
    index = made(tmp_path, many(35))
    files = [name for name in index.specs[0].evidence if name.endswith(".json")]
    assert files == [f"evidence/gemm-bw.part-{at}.json" for at in (1, 2, 3, 4)]
    found = [evidence.read(tmp_path / name) for name in files]
    assert [len(one.cases) for one in found] == [10, 10, 10, 5]
    shapes = [{case.shape["m"] for case in one.cases} for one in found]
    assert not set.intersection(*shapes)
    assert index.counts == {"verified": 35}
    # A summary that needs fewer files takes the others away, and nothing else.
    (tmp_path / "evidence/mine.json").write_text("{}", encoding="utf-8")
    monkeypatch.undo()
    summed(tmp_path)
    left = sorted(path.name for path in (tmp_path / "evidence").iterdir())
    assert left == ["gemm-bw.json", "gemm-bw.md", "mine.json"]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What grows up to a limit of its own, the matrix, is kept at that limit."""
    monkeypatch.setattr(case_rows, "MOST_CELLS", 100)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    peaks = []
    for count in (500, 2000):
        folder = tmp_path / str(count)
        batches.write(
            folder,
            many(count),
            batches.begun([batches.entry(cases=count)], count),
            batches.ended(),
        )
        summed(folder)  # templates and modules are loaded
        with Store.open(folder) as opened:
            tracemalloc.start()
            summarise(opened)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    name = f"a]]>|b`c<script>{HOSTILE}"
    record = samples.refuted(spec=SPEC, reason=f"{HOSTILE} ]]> \ufffe", rerun=HOSTILE, device="cpu")
    crashed = failed(Verdict.CRASHED, Stage.RUN, HOSTILE, profile="large")
    cases = [
        Sample(record=record, name=name, log=f"{HOSTILE}\n\x00]]>"),
        Sample(record=crashed, name=name, log=HOSTILE, host=HOSTILE),
    ]
    specs = [batches.entry(name=name, path=HOSTILE, cases=2)]
    index = made(tmp_path, cases, specs=specs, rerun=HOSTILE, selection=[HOSTILE])
    text = (tmp_path / "index.md").read_text(encoding="utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    bare = outside_of_code(text)
    assert "<script" not in bare
    assert "http://" not in bare
    assert not re.search(r"(?<!\\)\]\(", bare)
    assert not any(line.startswith(("# head", "- item")) for line in bare.splitlines())
    root = ET.fromstring((tmp_path / "junit.xml").read_text(encoding="utf-8"))
    case = root.find("testsuite/testcase")
    assert case is not None
    failure = case.find("failure")
    assert failure is not None
    assert failure.text is not None
    assert "<script>alert(1)</script>" in failure.text
    assert "\\ufffe" in failure.get("message", "")
    assert "\\x00]]>" in (case.findtext("system-out") or "")
    files = [Path(file).name for file in index.specs[0].evidence]
    assert all(re.fullmatch(r"[\w.+=-]+", file) for file in files)


def test_junit_hides_nothing(whole: tuple[Path, BatchIndex]) -> None:
    root = ET.fromstring((whole[0] / "junit.xml").read_text(encoding="utf-8"))
    kinds: dict[str, set[str]] = {}
    for case in root.iter("testcase"):
        child = next((one for one in case if one.tag != "system-out"), None)
        if child is not None and child.tag != "skipped":
            kinds.setdefault(child.tag, set()).add(child.get("type", ""))
    assert kinds == {
        "failure": {"refuted", "inconclusive", "unexpected-pass"},
        "error": {"crashed", "timed-out", "build-failed", "internal-error", "not-run", "inadmissible"},
    }  # fmt: skip
    for suite in root.iter("testsuite"):
        assert int(suite.get("tests", "")) == len(list(suite.iter("testcase")))
        assert int(suite.get("failures", "")) == len(list(suite.iter("failure")))
        assert int(suite.get("errors", "")) == len(list(suite.iter("error")))
        assert int(suite.get("skipped", "")) == len(list(suite.iter("skipped")))
    tests = sum(int(suite.get("tests", "")) for suite in root.iter("testsuite"))
    assert int(root.get("tests", "")) == tests == len(every_verdict()) + 1
    first = next(case for case in root.iter("testcase") if case.get("classname") != "tokitai.batch")
    assert first.get("classname") == "gemm-bw.grad-a"
    assert first.get("name") == "m=64,n=64,k=64/normal/0@cpu"


def row(at: int, **changes: Any) -> IndexCase:
    fields: dict[str, Any] = {
        "id": f"x/v/m={at}/p{at % 7}/0@cpu",
        "spec": "x",
        "op": "x",
        "variant": "v",
        "shape": {"m": at},
        "profile": f"p{at % 7}",
        "seed": 0,
        "device": "cpu",
        "arch": "x86_64",
        "verdict": Verdict.VERIFIED,
        "stage": "compare",
        "reason": "",
        "seconds": 0.5,
        "evidence": "evidence/x.json",
        "rerun": "tokitai verify x",
        "kept": False,
    }
    return IndexCase(**(fields | changes))


@pytest.mark.parametrize(
    ("shapes", "profile", "joined_shape", "cells"),
    [(100, "p0", False, 700), (MOST_CELLS, "", False, MOST_CELLS), (MOST_CELLS + 1, "", True, 1)],
)
def test_the_matrix_stays_small(shapes: int, profile: str, joined_shape: bool, cells: int) -> None:
    scratch = case_rows.Rows()
    for at in range(shapes):
        for number in range(7):
            verdict = Verdict.REFUTED if (at, number) == (3, 5) else Verdict.VERIFIED
            scratch.add(0, 7 * at + number, row(at, profile=f"p{number}", verdict=verdict), None)
    found, note = scratch.matrix()
    assert len(found) == cells
    assert found[0].profile == profile
    assert (not found[0].shape) == joined_shape
    assert sum(cell.cases for cell in found) == shapes * 7
    assert sum(cell.verdict is Verdict.REFUTED for cell in found) == 1
    assert bool(note) == (not profile)


def test_a_large_matrix_still_shows_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    cases = many(1100)
    bad = samples.refuted(profile="odd", spec=SPEC, shape={"m": 235, "n": 64, "k": 64})
    index = made(tmp_path, [*cases, Sample(record=bad)])
    text = (tmp_path / "index.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 400
    table = text[text.index("## Matrix") :]
    assert "refuted" in table.split("## Devices")[0]
    assert len(index.matrix) == 1101


@pytest.mark.parametrize(("profiles", "columns"), [(16, 16), (17, 1)])
def test_profiles_stand_side_by_side_while_a_page_holds_them(
    tmp_path: Path, profiles: int, columns: int
) -> None:
    cases = [Sample(record=batches.case(f"p{at}")) for at in range(profiles)]
    bad = samples.refuted(profile="p3", seed=1, id="gemm-bw/grad-a/m=64,n=64,k=64/p3/1", spec=SPEC)
    index = made(tmp_path, [*cases, Sample(record=bad)])
    (table,) = outline_index(index).tables
    (line,) = table.rows
    found = [(cell.verdict, cell.cases) for cell in line.cells if cell is not None]
    assert len(table.profiles) == len(found) == columns
    assert found.count((Verdict.REFUTED, 2 if columns > 1 else 18)) == 1
    (drawn,) = figures.figures_of_index(index)
    assert "re: refuted" in drawn.caption
    assert ("ve: verified" in drawn.caption) == (columns > 1)


def test_devices_of_several_hosts_are_joined() -> None:
    hosts = [
        samples.device(
            facts=[
                FactRecord(name="cores", value=str(at), source="sysfs"),
                FactRecord(name="model", value="A", source="/proc/cpuinfo"),
            ]
        )
        for at in range(10)
    ]
    record = joined(hosts)
    facts = {fact.name: fact.value for fact in record.facts}
    assert facts == {"cores": "10 values: 0, 1, 2, 3, 4, 5, 6, 7, ...", "model": "A"}
    assert joined(hosts[:1]) is hosts[0]


def test_file_names_are_plain_and_differ() -> None:
    names = FileNames()
    taken = [
        names.take(name)
        for name in ("gemm", "GEMM", "a/b", "a-b", "..", "/etc/passwd", "\x1b[31m", "x" * 500)
    ]
    assert len({one.casefold() for one in taken}) == len(taken)
    assert all(re.fullmatch(r"[\w+=][\w.+=-]*", one) and len(one) < 150 for one in taken)


def test_specs_of_one_digest_keep_their_own_cases(tmp_path: Path) -> None:
    cases = [Sample(record=batches.case(), name=name) for name in ("a/gemm", "a/gemm/b")]
    specs: list[SpecEntry] = [batches.entry(name=one.name) for one in cases]
    index = made(tmp_path, cases, specs=specs)
    assert [(spec.name, spec.counts) for spec in index.specs] == [
        ("a/gemm", {"verified": 1}),
        ("a/gemm/b", {"verified": 1}),
    ]
    assert index.failures == []


@pytest.mark.parametrize("verdict", list(Verdict))
def test_normal_evidence_is_written_as_any_is(verdict: Verdict) -> None:
    found = samples.sample(verdict)
    assert encoding.to_json(found, is_normal=True) == encoding.to_json(found)
    assert encoding.canonical(found, is_normal=True) == encoding.canonical(found)
    assert encoding.normal(found) == found
    assert msgspec.structs.asdict(found)["digest"] == encoding.digest(found)
