"""Assembly, claims and files of evidence."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import numpy as np
import pytest

from tests import evidence_samples as samples
from tests.support import make_spec
from tokitai_cli import evidence as stage
from tokitai_cli.core import resources
from tokitai_cli.core.errors import EvidenceError, UsageError
from tokitai_cli.core.model.evidence import EVIDENCE_SCHEMA, Evidence
from tokitai_cli.core.model.judged import ExaminationRecord, FindingRecord
from tokitai_cli.core.model.spec import ScalarArg
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.evidence import Outcome, queries, statements, tool
from tokitai_cli.evidence.encoding import tree_digest
from tokitai_cli.run.untried import untried

EVERY = list(Verdict)
VALIDATOR = jsonschema.Draft202012Validator(stage.schema())


def no_constant(token: str) -> None:
    raise AssertionError(f"{token} is not JSON")


def tree_of(evidence: Evidence) -> dict[str, Any]:
    tree = json.loads(stage.to_json(evidence), parse_constant=no_constant)
    assert isinstance(tree, dict)
    return tree


def gate(evidence: Evidence, name: str) -> bool:
    return next(one.supported for one in evidence.claims if one.name == name)


@pytest.mark.parametrize("verdict", EVERY)
def test_every_verdict_is_reached_and_follows_the_schema(verdict: Verdict, tmp_path: Path) -> None:
    evidence = samples.sample(verdict)
    assert evidence.verdict is verdict
    VALIDATOR.validate(tree_of(evidence))
    path = tmp_path / "run.json"
    stage.write(evidence, path)
    assert stage.read(path) == evidence
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


BREAKS: list[Callable[[dict[str, Any]], object]] = [
    lambda t: t.update(extra=1),
    lambda t: t.pop("claims"),
    lambda t: t["cases"][0].update(verdict="passed"),
    lambda t: t["cases"][0]["outputs"][0]["checks"][0].update(value="NaN"),
]


def test_the_schema_is_valid_and_closed() -> None:
    schema = stage.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    tree = tree_of(samples.sample(Verdict.REFUTED))
    for change in BREAKS:
        broken = copy.deepcopy(tree)
        change(broken)
        with pytest.raises(jsonschema.ValidationError):
            VALIDATOR.validate(broken)


def test_no_cases_is_not_a_pass() -> None:
    evidence = stage.assemble(samples.parts([]))
    assert evidence.verdict is Verdict.NOT_RUN
    assert not any(one.supported for one in evidence.claims)


@pytest.mark.parametrize("verdict", [Verdict.VERIFIED, Verdict.EXPECTED_FAILURE])
def test_an_outcome_cannot_make_a_run_pass(verdict: Verdict) -> None:
    outcome = Outcome(verdict, Stage.RUN, "said so")
    with pytest.raises(ValueError, match="only cases"):
        stage.assemble(samples.parts([], outcome=outcome))


@pytest.mark.parametrize("worse", [one for one in EVERY if one.rank < Verdict.VERIFIED.rank])
def test_the_worst_case_decides_and_is_named(worse: Verdict) -> None:
    bad = samples.not_judged(worse, Stage.RUN, "the worst", profile="uniform")
    evidence = stage.assemble(samples.parts([samples.case(), bad]))
    assert evidence.verdict is worse
    assert evidence.stage is Stage.RUN
    assert evidence.reason == f"{bad.id} on cpu: the worst"
    assert evidence.counts == {"verified": 1, str(worse): 1}


FAILED = samples.check(passed=False, value=2.0)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"outputs": []}, "no output"),
        ({"outputs": [samples.output(passed=False)]}, "did not pass"),
        ({"outputs": [samples.output(checks=[])]}, "no check judged"),
        ({"outputs": [samples.output(checks=[samples.check(judges=False)])]}, "no check judged"),
        ({"outputs": [samples.output(checks=[FAILED])]}, "failed"),
        ({"build": ""}, "no artifact"),
        ({"repeats": None}, "at least twice"),
    ],
)
def test_verified_needs_a_record_that_supports_it(changes: dict[str, Any], why: str) -> None:
    evidence = stage.assemble(samples.parts([samples.case(**changes)]))
    assert evidence.verdict is Verdict.INTERNAL_ERROR
    assert evidence.stage is Stage.EVIDENCE
    assert why in evidence.reason
    assert "verified" not in evidence.counts


def test_a_verified_empty_case_opens_no_claim() -> None:
    empty = samples.output(elements=0, shape=[0, 64], checks=[], metrics=None)
    evidence = stage.assemble(samples.parts([samples.case(outputs=[empty], repeats=None)]))
    assert evidence.verdict is Verdict.VERIFIED
    assert not any(one.supported for one in evidence.claims)


def test_a_case_must_refer_to_what_is_recorded() -> None:
    with pytest.raises(ValueError, match="refers to device 'gpu'"):
        stage.assemble(samples.parts([samples.case(device="gpu")]))


# Statements


def without(tree: dict[str, Any], pointer: str) -> Evidence:
    """The evidence with the fact at `pointer` gone: removed from its list or mapping, or blank."""
    tree = copy.deepcopy(tree)
    parent_path, _, last = pointer.rpartition("/")
    parent = stage.at_pointer(tree, parent_path)
    key = last.replace("~1", "/").replace("~0", "~")
    if isinstance(parent, list):
        del parent[int(key)]
    elif parent_path in ("/counts", "/oracles"):
        del parent[key]
    else:
        parent[key] = type(parent[key])()
    return msgspec.convert(tree, Evidence)


@pytest.mark.parametrize("verdict", EVERY)
def test_each_statement_stands_on_a_field_that_is_there(verdict: Verdict) -> None:
    evidence = samples.sample(verdict)
    tree = tree_of(evidence)
    for statement in evidence.statements:
        stage.at_pointer(tree, statement.field)
        left = {
            (one.text, one.field) for one in statements.statements(without(tree, statement.field))
        }
        assert (statement.text, statement.field) not in left
    if evidence.cases:
        assert evidence.statements


def test_resolve_reads_escaped_pointers_and_refuses_missing_ones() -> None:
    assert stage.at_pointer({"a/b": {"~": [1, 2]}}, "/a~1b/~0/1") == 2
    with pytest.raises(LookupError):
        stage.at_pointer({"a": 1}, "/b")


# Claims


def watched(kind: str, tool_name: str) -> ExaminationRecord:
    return ExaminationRecord(kind=kind, tool=tool_name, scope="every access")  # type: ignore[arg-type]


def test_gates_open_by_evidence_alone() -> None:
    plain = stage.assemble(samples.parts([samples.case()]))
    opened = {one.name for one in plain.claims if one.supported}
    assert opened == {"numerical-agreement", "bitwise-reproducible"}
    assert all(one.needed for one in plain.claims if not one.supported)
    assert not any(one.needed for one in plain.claims if one.supported)
    looks = [watched("memory", "asan"), watched("races", "tsan")]
    safe = stage.assemble(samples.parts([samples.case(examined=looks)]))
    assert gate(safe, "memory-safe")
    assert gate(safe, "race-free-in-tested-schedules")
    half = stage.assemble(samples.parts([samples.case(examined=looks), samples.case("uniform")]))
    assert not gate(half, "memory-safe")


def test_agreement_needs_an_element_whose_right_value_is_finite() -> None:
    none, some = samples.output(finite=0), samples.output(finite=3)
    for cases, is_open, words in (
        ([samples.case(outputs=[some]), samples.case("wide", outputs=[none])], True, "in 1 case"),
        ([samples.case(outputs=[none])], False, "no case of grad-a has an element"),
        ([samples.case(outputs=[some, samples.output(name="b", finite=0)])], True, "in 1 case"),
        (
            [samples.case(outputs=[some]), samples.case(variant="b", outputs=[none])],
            False,
            "no case of b has an element",
        ),
    ):
        made = stage.assemble(samples.parts(cases))
        (found,) = (one for one in made.claims if one.name == "numerical-agreement")
        assert (found.supported, words in found.reason) == (is_open, True), found.reason


def test_the_race_gate_needs_global_memory_too() -> None:
    racecheck = [watched("memory", "memcheck"), watched("shared-races", "racecheck")]
    whole = [watched("memory", "asan"), watched("races", "tsan")]
    shared = samples.case(examined=racecheck)
    alone = stage.assemble(samples.parts([shared]))
    told = {one.name: one.reason for one in alone.claims}
    assert "covers shared memory only" in told["race-free-in-tested-schedules"]
    assert "races in global memory not tested" in {one.text for one in alone.non_claims}
    joined = stage.assemble(samples.parts([shared, samples.case(examined=whole)]))
    assert gate(joined, "race-free-in-tested-schedules")
    other = stage.assemble(samples.parts([shared, samples.case("uniform", examined=whole)]))
    assert not gate(other, "race-free-in-tested-schedules")


def test_memory_gate_says_what_was_looked_at() -> None:
    evidence = stage.assemble(samples.parts([samples.case()]))
    reason = next(one.reason for one in evidence.claims if one.name == "memory-safe")
    assert "guards around the buffers and the inputs" in reason
    bare = stage.assemble(samples.parts([samples.case(examined=[])]))
    reason = next(one.reason for one in bare.claims if one.name == "memory-safe")
    assert "guards" not in reason


@pytest.mark.parametrize(
    "changes", [{"repetitions": 1}, {"bitwise_equal": False}, {"schedules": ["natural", "natural"]}]
)
def test_bitwise_gate_needs_equal_bits_in_different_schedules(changes: dict[str, Any]) -> None:
    repeats = samples.case().repeats
    assert repeats is not None
    case = samples.case(repeats=msgspec.structs.replace(repeats, **changes))
    assert not gate(stage.assemble(samples.parts([case])), "bitwise-reproducible")


@pytest.mark.parametrize(
    ("device_class", "name"),
    [("gfx-isa-on-cpu", "machine-code-executed"), ("amd-gpu", "amd-device")],
)
def test_device_gates(device_class: str, name: str) -> None:
    devices = {"cpu": samples.device(device_class=device_class)}
    assert gate(stage.assemble(samples.parts([samples.case()], devices=devices)), name)
    assert not gate(stage.assemble(samples.parts([samples.case()])), name)
    refuted = [samples.case(), samples.refuted(profile="uniform")]
    assert not gate(stage.assemble(samples.parts(refuted, devices=devices)), name)


def test_what_machine_code_was_looked_at_for_is_told() -> None:
    devices = {"cpu": samples.device(device_class="gfx-isa-on-cpu")}
    found = stage.assemble(samples.parts([samples.case()], devices=devices))
    told = {one.name: one for one in found.claims}
    assert not told["memory-safe"].supported
    assert "compared with the launch's arrays" in told["memory-safe"].reason
    assert "are findings of the device" in told["race-free-in-tested-schedules"].reason
    texts = {one.text for one in found.non_claims}
    assert "races within a wave, and between blocks behind a fence, not tested" in texts
    assert "races not tested" not in texts


def test_portable_needs_two_pairs_of_device_and_compiler() -> None:
    devices = {"cpu": samples.device(device_class="amd-gpu")}
    other = samples.build(arch="gfx90a")
    builds = {samples.BUILD: samples.build(arch="gfx1101"), "2" * 64: other}
    one, two = samples.case(), samples.case("uniform", build="2" * 64)
    pair = samples.parts([one, two], devices=devices, builds=builds)
    assert gate(stage.assemble(pair), "portable")
    single = samples.parts([one, samples.case("uniform")], devices=devices, builds=builds)
    assert not gate(stage.assemble(single), "portable")


def test_non_claims_are_merged_with_their_sources() -> None:
    evidence = stage.assemble(samples.parts([samples.case()]))
    by_text = {one.text: one.source for one in evidence.non_claims}
    assert len(by_text) == len(evidence.non_claims)
    assert by_text["not GPU evidence"] == "variant grad-a, device cpu"
    assert by_text["races not tested"] == "tool"
    assert by_text["wave sizes other than 32"] == "tool"
    assert "not machine-code verification" in by_text
    assert any("m = 64 (residues modulo 16: 0)" in text for text in by_text)
    gfx = {"cpu": samples.device(device_class="gfx-isa-on-cpu")}
    texts = [
        one.text for one in stage.assemble(samples.parts([samples.case()], devices=gfx)).non_claims
    ]
    assert "not machine-code verification" not in texts


# Digest


def test_equal_runs_have_equal_digests_whatever_is_volatile() -> None:
    first = stage.assemble(samples.parts([samples.case()]))
    again = stage.assemble(samples.parts([samples.case()]))
    assert stage.to_json(first) == stage.to_json(again)
    slow = samples.volatile(seconds=99.0, started="2030-01-01T00:00:00Z", notes=["slow"])
    late = stage.assemble(samples.parts([samples.case()], volatile=slow))
    assert late.digest == first.digest
    assert late != first
    changed = stage.assemble(samples.parts([samples.case(seed=1)]))
    assert changed.digest != first.digest


def test_what_a_not_deterministic_variant_measured_is_volatile() -> None:
    runs = [
        stage.assemble(samples.parts([samples.not_deterministic(value)])) for value in (0.25, 0.75)
    ]
    assert runs[0].digest == runs[1].digest
    assert runs[0].verdict is Verdict.VERIFIED
    kept = runs[1].cases[0]
    assert kept.outputs[0].checks[0].value is None
    assert kept.outputs[0].metrics is None
    record = runs[1].volatile.measured[kept.key]
    assert record.outputs[0].checks[0].value == 0.75
    assert record.repeats is not None
    assert record.repeats.differing_outputs == ["grad_a"]
    assert not gate(runs[0], "bitwise-reproducible")


def test_a_not_deterministic_case_keeps_its_findings() -> None:
    found = FindingRecord(
        tool="watch of accesses",
        kind="race",
        message="read of 4 bytes and write by another thread",
        kernel="sums",
        location="k.cu:7, k.cu:9",
        threads="block (1,0,0), thread (0,0,0)",
        array="w[3]",
        count=4,
    )
    case = samples.refuted(deterministic=False, findings=[found])
    made = stage.assemble(samples.parts([case]))
    assert made.cases[0].findings == [msgspec.structs.replace(found, count=1)]
    assert made.volatile.measured[case.key].findings == [found]


def test_a_refuted_not_deterministic_case_keeps_its_reason_out_of_the_digest() -> None:
    runs = []
    for value in (3.0, 5.0):
        failed = samples.check(
            passed=False, value=value, exceeding=int(value), worst=[samples.WORST]
        )
        output = samples.output(passed=False, checks=[failed])
        case = samples.refuted(deterministic=False, outputs=[output], reason=f"{value} over")
        runs.append(stage.assemble(samples.parts([case])))
    assert runs[0].digest == runs[1].digest
    assert runs[0].cases[0].reason == "failed: bound of grad_a"
    assert runs[1].volatile.measured[runs[1].cases[0].key].reason == "5.0 over"
    assert queries.reason(runs[1]) == runs[1].reason.replace("failed: bound of grad_a", "5.0 over")


def test_the_digest_can_be_recomputed_with_the_standard_library() -> None:
    evidence = samples.sample(Verdict.REFUTED)
    tree = tree_of(evidence)
    del tree["volatile"], tree["digest"]
    text = json.dumps(tree, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert hashlib.sha256(text.encode()).hexdigest() == evidence.digest


# Text


def test_json_is_strict_whatever_the_stages_hand_in() -> None:
    odd = samples.check(value=np.float64("nan"), limit=1, exceeding=np.int64(3), fraction=1)
    log = "bell \x07, CSI \x9b31m, lone \udcff, override \u202e, tag \U000e0041, é"
    parts = samples.parts(
        [samples.refuted(outputs=[samples.output(passed=False, checks=[odd])])],
        volatile=samples.volatile(kernel_logs={"k": log}),
    )
    evidence = stage.assemble(parts)
    text = stage.to_json(evidence)
    tree = json.loads(text, parse_constant=no_constant)
    check = tree["cases"][0]["outputs"][0]["checks"][0]
    assert check["value"] == "nan"
    assert check["exceeding"] == 3
    assert tree["volatile"]["kernel_logs"]["k"] == log.replace("\udcff", "\\udcff")
    assert text.isprintable() or not any(
        ord(letter) < 32 or 0x7F <= ord(letter) < 0xA0 for letter in text if letter != "\n"
    )
    assert "é" in text
    assert "\u202e" not in text
    assert "\U000e0041" not in text
    assert text.endswith("}\n")
    assert list(tree["cases"][0]["shape"]) == ["m", "n", "k"]


def test_a_fraction_that_is_no_number_is_refused() -> None:
    bad = samples.output(checks=[samples.check(fraction=float("nan"))])
    with pytest.raises(msgspec.ValidationError):
        stage.assemble(samples.parts([samples.case(outputs=[bad])]))


# Files


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    stage.write(samples.sample(Verdict.VERIFIED), path)
    return path


def edited(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    tree = json.loads(path.read_text(encoding="utf-8"))
    change(tree)
    path.write_text(json.dumps(tree), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("change", "message", "key"),
    [
        (lambda t: t.update(schema="tokitai/evidence/v9"), "newer schema", "schema"),
        (lambda t: t.update(schema="tokitai/evidence/v0"), "older schema", "schema"),
        (lambda t: t.update(schema="tokitai/spec/v1"), "no evidence file", "schema"),
        (lambda t: t.pop("schema"), "names no schema", "schema"),
        (lambda t: t.update(name="other"), "is damaged", "digest"),
        (lambda t: t["cases"][0].update(seed=7), "is damaged", "digest"),
        (
            lambda t: t["cases"][0].update(nonsense=7),
            "unknown field `nonsense`",
            "cases[0]",
        ),
        (lambda t: t["cases"][1].update(verdict="fine"), "Invalid enum value", "cases[1]"),
        (lambda t: t.pop("claims"), "lacks the required field `claims`", ""),
    ],
)
def test_reading_names_what_is_wrong(
    written: Path, change: Callable[[dict[str, Any]], object], message: str, key: str
) -> None:
    with pytest.raises(EvidenceError, match=message) as caught:
        stage.read(edited(written, change))
    assert caught.value.where is not None
    assert caught.value.where.file == written
    assert key in caught.value.where.key
    assert caught.value.hint


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not JSON"),
        (b"# Report\n", "is not JSON"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": 1e999}', "too large for float64"),
        (b'{"a": 1, "a": 2}', "occurs twice"),
        (b"\xff\xfe", "not strict JSON"),
        (b"[" * 100_000, "not (strict )?JSON"),
        (b"[1]", "not an object"),
        (b"{}", "names no schema"),
    ],
)
def test_reading_refuses_what_is_no_evidence(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(EvidenceError, match=message):
        stage.read(path)


def test_a_missing_file_and_a_folder_are_told(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(EvidenceError, match="cannot be read"):
            stage.read(path)


ROOT = Path(__file__).resolve().parents[2]
OLDER = ROOT / "tests" / "older_evidence"
V1 = OLDER / "v1" / "refuted.json"
V3 = OLDER / "v3" / "refuted.json"
SAMPLE = V1.with_name("gemm-bw-quick.json")


@pytest.mark.parametrize("path", [V1, SAMPLE], ids=lambda path: path.parent.name)
def test_evidence_of_the_first_schema_is_read(path: Path, tmp_path: Path) -> None:
    older = json.loads(path.read_text(encoding="utf-8"))
    assert older["schema"] == "tokitai/evidence/v1"
    found = stage.read(path)
    assert found.schema == EVIDENCE_SCHEMA
    assert found.verdict == older["verdict"]
    assert found.settings is None
    assert [list(case.shape) for case in found.cases] == [older["params"]] * len(older["cases"])
    assert any(older["digest"] in note for note in found.volatile.notes)
    assert [array.file for case in found.cases for array in case.saved_arrays] == [
        file for case in older["cases"] for file in case["saved_arrays"]
    ]
    stage.write(found, tmp_path / "again.json")
    assert stage.read(tmp_path / "again.json") == found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t["cases"][0].update(seed=7), "is damaged"),
        (lambda t: t.update(params=["m"]), "is damaged"),
        (lambda t: t.pop("digest"), "does not follow tokitai/evidence/v1"),
        (lambda t: t["cases"][0].update(shape=7), "does not follow tokitai/evidence/v1"),
        (lambda t: t.update(settings=7), "does not follow tokitai/evidence/v1"),
    ],
)
def test_evidence_of_the_first_schema_is_checked_as_it_is(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(V1.read_bytes())
    with pytest.raises(EvidenceError, match=message):
        stage.read(edited(path, change))


def test_evidence_of_the_second_schema_is_read(tmp_path: Path) -> None:
    """It lacks what the third one adds, and says that it is not known."""
    path = tmp_path / "run.json"
    tree = json.loads(V3.read_text("utf-8")) | {"schema": "tokitai/evidence/v2"}
    for case in tree["cases"]:
        for output in case["outputs"]:
            del output["independent"]
            (output["metrics"] or {"allowance": None}).pop("allowance")
    for one in tree["contract"]["variants"].values():
        del one["code"]
    tree["digest"] = tree_digest(tree)
    path.write_text(json.dumps(tree), "utf-8")
    found = stage.read(path)
    assert found.schema == EVIDENCE_SCHEMA
    assert any(tree["digest"] in note for note in found.volatile.notes)
    for case in found.cases:
        for output in case.outputs:
            assert output.independent is None
            assert output.metrics is None or output.metrics.allowance is None


def test_evidence_of_the_third_schema_is_read(tmp_path: Path) -> None:
    """Its keys have other names; the names of a spec's own params and devices stay."""
    older = json.loads(V3.read_text("utf-8"))
    older["left_out"] = [{"variant": "product", "shape": {"told": 3}, "requirement": "told > 3"}]
    older["digest"] = tree_digest(older)
    path = tmp_path / "run.json"
    path.write_text(json.dumps(older), "utf-8")
    found = stage.read(path)
    assert found.schema == EVIDENCE_SCHEMA
    assert found.left_out[0].shape == {"told": 3}
    assert {one.name: (one.supported, one.needed) for one in found.claims} == {
        one["name"]: (one["opened"], one["opened_by"]) for one in older["claims"]
    }
    case, before = found.cases[0], older["cases"][0]
    assert [one.undetected for one in case.changes] == [one["untold"] for one in before["changes"]]
    assert sum(map(len, (one.undetected for one in case.changes))) > 0
    assert found.devices["cpu"].hint == older["devices"]["cpu"]["mend"]
    assert {one.status for one in found.groups} == {
        "undetected" if one["status"] == "untold" else one["status"] for one in older["groups"]
    }
    stage.write(found, tmp_path / "again.json")
    assert stage.read(tmp_path / "again.json") == found


def test_damage_says_what_a_digest_cannot_show(written: Path) -> None:
    with pytest.raises(EvidenceError) as caught:
        stage.read(edited(written, lambda tree: tree.update(name="other")))
    assert "not tampering" in caught.value.hint


def test_volatile_changes_are_no_damage(written: Path) -> None:
    path = edited(written, lambda tree: tree["volatile"].update(seconds=3.0))
    assert stage.read(path).volatile.seconds == 3.0


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(ZeroDivisionError):
        stage.write_file(path, (b"%d" % (1 // count) for count in (1, 0)))
    assert path.read_text(encoding="utf-8") == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]
    with pytest.raises(EvidenceError, match="cannot be written"):
        stage.write_file(tmp_path / "none" / "run.json", b"text")


def test_only_plain_files_are_replaced(tmp_path: Path) -> None:
    aside, link, pipe = tmp_path / "aside", tmp_path / "link", tmp_path / "pipe"
    aside.write_bytes(b"kept")
    link.symlink_to(aside)
    os.mkfifo(pipe)
    for path in (link, pipe, tmp_path):
        with pytest.raises(EvidenceError, match="it is not a regular file"):
            stage.write_file(path, b"text")
    assert aside.read_bytes() == b"kept"
    assert {entry.name for entry in tmp_path.iterdir()} == {"aside", "link", "pipe"}


@pytest.fixture
def large(tmp_path: Path) -> tuple[Evidence, Path]:
    cases = [
        samples.not_judged(Verdict.NOT_RUN, Stage.PLAN, "too large", seed=seed, id=f"case {seed}")
        for seed in range(1001)
    ]
    evidence = stage.assemble(samples.parts(cases))
    path = tmp_path / "gemm-bw.json"
    stage.write(evidence, path)
    return evidence, path


def test_many_cases_lie_beside(large: tuple[Evidence, Path]) -> None:
    evidence, path = large
    tree = json.loads(path.read_text(encoding="utf-8"))
    VALIDATOR.validate(tree)
    assert tree["cases"] == []
    beside = path.with_name("gemm-bw.cases.jsonl")
    assert len(beside.read_text(encoding="utf-8").splitlines()) == 1001
    assert stage.read(path) == evidence
    data = beside.read_bytes()
    beside.write_bytes(data.replace(b"too large", b"too small", 1))
    with pytest.raises(EvidenceError, match="is not the file that"):
        stage.read(path)
    beside.unlink()
    with pytest.raises(EvidenceError, match="cannot be read"):
        stage.read(path)


def test_a_cases_file_cannot_point_elsewhere(large: tuple[Evidence, Path]) -> None:
    path = edited(large[1], lambda tree: tree["cases_file"].update(name="../x.cases.jsonl"))
    with pytest.raises(EvidenceError, match="not a plain file name"):
        stage.read(path)


# The tool


def test_timestamps_honour_source_date_epoch() -> None:
    assert stage.timestamp({}, now=0.9) == "1970-01-01T00:00:00Z"
    assert stage.timestamp({"SOURCE_DATE_EPOCH": "1700000000"}, now=5) == "2023-11-14T22:13:20Z"
    for text in ("-1", "1.5", "now", "9" * 30):
        with pytest.raises(UsageError, match="SOURCE_DATE_EPOCH"):
            stage.timestamp({"SOURCE_DATE_EPOCH": text})


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("# branch.oid abc\n# branch.head main\n", "abc"),
        ("# branch.oid abc\n1 .M N... 100644 x\n", "abc-dirty"),
        ("# branch.oid abc\n? tokitai_cli/new.py\n", "abc-dirty"),
        ("# branch.oid (initial)\n", "unknown"),
        ("", "unknown"),
    ],
)
def test_the_commit_is_marked_dirty(text: str, want: str) -> None:
    assert tool._read_status(text) == want


def test_the_commit_outside_a_checkout_or_without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "checkout", lambda: None)
    assert tool.begin_commit({})() == ""
    monkeypatch.setattr(resources, "checkout", lambda: Path("/"))
    assert tool.begin_commit({"PATH": "/nowhere"})() == "unknown"


def test_profiles_and_settings_that_were_not_tried_are_named() -> None:
    scalars = {
        "eps": ScalarArg(dtype="float32", value=1e-5),
        "width": ScalarArg(dtype="int32", value="n"),
    }
    spec = make_spec(scalars=scalars, defines={"TILE": 16}).spec
    ran = msgspec.structs.replace(samples.case(profile="uniform"), variant="only")
    never = msgspec.structs.replace(ran, profile="special", outputs=[])
    texts = [one.text for one in untried(spec, [ran, never])]
    assert texts == [
        "profiles of op only that were not tried: normal, constant, biased, cancelling, special",
        "settings of op only other than those tried (TILE = 16, eps = 1e-05)",
    ]
