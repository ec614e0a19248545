"""Evidence of others: what is told of files that were changed, and what they can never do."""

from __future__ import annotations

import base64
import contextlib
import copy
import hashlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pytest

from tests import evidence_samples as samples
from tests.spec_example import write_example
from tokitai_cli import evidence as stage
from tokitai_cli import judge, report
from tokitai_cli.audit import consistency, origin, signature
from tokitai_cli.audit.checking import check
from tokitai_cli.audit.joined_claims import claims
from tokitai_cli.audit.keys import private as private_key
from tokitai_cli.audit.recheck import recheck
from tokitai_cli.audit.reproduce import reproduce
from tokitai_cli.audit.run_diff import diff
from tokitai_cli.audit.signature import attest
from tokitai_cli.audit.unpack import unpack
from tokitai_cli.cli.app import run
from tokitai_cli.core import native
from tokitai_cli.core.errors import EvidenceError, TokitaiError, UsageError
from tokitai_cli.core.model.device import TRAITS
from tokitai_cli.core.model.events import silent
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.evidence.encoding import sealed, tree_digest

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "docs/examples/dropped_term/spec.yaml"
SAMPLE = ROOT / "tests/older_evidence/v1/gemm-bw-quick.json"
Tree = dict[str, Any]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Evidence of a refuted kernel with its arrays, as a run wrote it."""
    folder = tmp_path_factory.mktemp("real")
    words = ["--device", "cpu", "--save-arrays", "--out", str(folder), "-q"]
    assert run(["verify", str(SPEC), *words]) == 1
    return folder / "dropped-term.json"


def changed(path: Path, folder: Path, change: Callable[[Tree], None]) -> Path:
    """The file with a change, and with the digest that belongs to it."""
    tree = json.loads(path.read_text("utf-8"))
    change(tree)
    tree["digest"] = tree_digest(tree)
    made = folder / path.name
    made.write_text(json.dumps(tree), "utf-8")
    return made


def faults(path: Path) -> str:
    answer = check(str(path))
    assert answer.exit_code == (not answer.fine)
    return "; ".join(one.text for one in answer.remarks if one.fault)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_evidence_of_every_verdict_agrees_with_itself(verdict: Verdict) -> None:
    found = samples.sample(verdict)
    told = [one for one in consistency.remarks(found, same=True) if one.fault]
    assert told == []


@pytest.mark.parametrize("path", [SAMPLE, ROOT / "tests/older_evidence/v1/refuted.json"])
def test_files_of_earlier_versions_are_checked(path: Path) -> None:
    assert faults(path) == ""


def test_a_run_checks_and_says_that_nothing_is_signed(real: Path) -> None:
    answer = check(str(real))
    assert answer.fine
    assert answer.remarks[-1].text.startswith("only running it again shows whether")
    assert "tokitai reproduce dropped-term.json" in answer.remarks[-1].text


def _output(tree: Tree) -> Tree:
    found: Tree = tree["cases"][0]["outputs"][0]
    return found


def _check(tree: Tree) -> Tree:
    found: Tree = _output(tree)["checks"][0]
    return found


CHANGES: dict[str, tuple[Callable[[Tree], None], str]] = {
    "verdict": (lambda tree: tree.update(verdict="verified"), "worst of its cases is refuted"),
    "case": (
        lambda tree: (
            tree.update(verdict="verified", counts={"verified": 1}),
            tree["cases"][0].update(verdict="verified"),
        )[0],
        "it says verified, but output grad_a did not pass",
    ),
    "counts": (lambda tree: tree.update(counts={"verified": 1}), "counts differ from those"),
    "claim": (
        lambda tree: tree["claims"][0].update(supported=True),
        "it claims numerical-agreement, but its records do not",
    ),
    "limit": (
        lambda tree: _output(tree)["checks"][0].update(limit=1e6),
        "has the limit 1000000.0, which the spec does not state",
    ),
    "passed": (
        lambda tree: _output(tree)["checks"][0].update(passed=True),
        "it says passed, with",
    ),
    "element": (
        lambda tree: _output(tree)["checks"][0]["worst"][0].update(error=1e-9),
        "is not that of",
    ),
    "value": (lambda tree: _check(tree).update(value=1.5), "its worst element gives"),
    "metrics": (
        lambda tree: _output(tree)["metrics"].update(over_bound=1.5),
        "the output's metrics 1.5",
    ),
    "exceeding": (
        lambda tree: _check(tree).update(exceeding=7, fraction=7 / _check(tree)["elements"]),
        "7 elements exceed it",
    ),
    "fraction": (lambda tree: _check(tree).update(fraction=1e-6), "are not the fraction"),
    "histogram": (
        lambda tree: _output(tree)["metrics"]["ulp_histogram"].update({"0": 10**6}),
        "does not count all elements",
    ),
    "exact": (
        lambda tree: _output(tree)["metrics"].update(exact_elements=3),
        "3 elements are exact",
    ),
    "max-ulp": (
        lambda tree: _output(tree)["metrics"].update(max_ulp=0.5),
        "max_ulp is 0.5, and the histogram has no element",
    ),
    "field": (lambda tree: tree["statements"][0].update(field="/nowhere"), "nothing is at"),
    "text": (
        lambda tree: next(iter(tree["sources"].values())).update(text="int x;\n"),
        "has another digest",
    ),
    "title": (
        lambda tree: tree["contract"].update(title="A better one"),
        "does not match the spec",
    ),
    "twice": (lambda tree: tree["cases"].append(tree["cases"][0]), "occurs twice"),
    "grid": (
        lambda tree: tree["cases"][0]["launches"][0].update(grid=[999, 1, 1]),
        "its launches are different from those of the spec",
    ),
    "input": (
        lambda tree: tree["cases"][0]["inputs"][0].update(dtype="float64"),
        "are different from those of the spec",
    ),
    "command": (lambda tree: tree.update(rerun="rm -rf /"), "is not a tokitai command"),
    "chained": (
        lambda tree: tree.update(rerun=tree["rerun"] + "; rm -rf /"),
        "not in the form that tokitai writes",
    ),
    "other-case": (
        lambda tree: tree["cases"][0].update(rerun="tokitai verify gemm-bw --seed 7"),
        "has a different seed",
    ),
    "id": (lambda tree: tree["cases"][0].update(profile="large"), "does not match what it is"),
    "no-thread": (
        lambda tree: tree["cases"][0]["launches"][0].update(block=[0, 1, 1]),
        "it launches product with no thread",
    ),
    "class": (
        lambda tree: tree["devices"]["cpu"].update(device_class="amd-gpu"),
        "the device cpu is of the class amd-gpu, and not host-simt",
    ),
    "build-of-another": (
        lambda tree: next(iter(tree["builds"].values())).update(device="rocm"),
        "a build is for the device rocm, which is not in it",
    ),
    "source-of-build": (
        lambda tree: next(iter(tree["builds"].values())).update(source_sha256="0" * 64),
        "a build for cpu is of a source that is not in it",
    ),
    "elements": (lambda tree: _output(tree).update(elements=1537), "and 1537 are counted"),
    "finite": (lambda tree: _output(tree).update(finite=9999), "finite is more than its 1536"),
    "index": (
        lambda tree: _check(tree)["worst"][0].update(index=[10, 99]),
        "there is no element [10, 99] in it",
    ),
    "bits": (
        lambda tree: _check(tree)["worst"][0].update(got_bits="0x2c2b"),
        "got at [10, 26] is 2.4707, and 0.0651245 by its bits",
    ),
    "no-bits": (
        lambda tree: _check(tree)["worst"][0].update(got_bits="0x12345"),
        "the bits at [10, 26] are those of no float16",
    ),
    "want": (
        lambda tree: _check(tree)["worst"][0].update(want_hex="0x1.0p+0"),
        "want at [10, 26] is 0.0325959, and 1 by its bits",
    ),
    "repetitions": (
        lambda tree: tree["cases"][0]["repeats"].update(repetitions=9),
        "it has 2 sentinels and 9 repetitions",
    ),
    "equal-bits": (
        lambda tree: _output(tree)["sha256"].__setitem__(1, "0" * 64),
        "say otherwise whether repetitions gave equal bits",
    ),
    "deterministic": (
        lambda tree: tree["cases"][0].update(deterministic=False),
        "the spec says otherwise of deterministic",
    ),
    "settings": (lambda tree: tree["settings"].update(repeat=9), "settings have repeat 9, and"),
    "strict": (lambda tree: tree["settings"].update(strict=True), "settings have strict True, and"),
    "left-out": (
        lambda tree: tree["left_out"].append(
            {"variant": "main", "shape": tree["cases"][0]["shape"], "requirement": "m > 999"}
        ),
        "which the spec takes",
    ),
    "range": (
        lambda tree: tree["cases"][0]["inputs"][0].update(smallest=9.0, largest=1.0),
        "is above its largest",
    ),
    "agreement": (
        lambda tree: tree["agreement"].append(
            {
                "op": "dropped-term",
                "variant": "main",
                "output": "grad_a",
                "devices": ["cpu", "gfx"],
                "unit": "ulp",
                "cases": 1,
                "equal_cases": 1,
                "elements": 9,
                "differing": 0,
                "largest": 0,
                "where": "",
            }
        ),
        "on which not all of its cases ran",
    ),
    "known-bug": (
        lambda tree: tree["cases"][0].update(known_bug="everybody knows"),
        "the spec has no such known bug",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_does_not_fit_is_told(real: Path, tmp_path: Path, name: str) -> None:
    change, words = CHANGES[name]
    assert words in faults(changed(real, tmp_path, change))


WORDS: dict[str, tuple[Callable[[Tree], None], str]] = {
    "reason": (lambda tree: tree.update(reason="all is well"), "do not give its reason"),
    "sentence": (lambda tree: tree["statements"].pop(0), "a sentence is missing"),
    "other-sentence": (
        lambda tree: tree["statements"][0].update(text="It is right on every GPU."),
        "its records do not support the sentence",
    ),
    "claim": (
        lambda tree: tree["claims"][0].update(reason="proved"),
        "has different words in this version",
    ),
    "non-claim": (
        lambda tree: tree.update(
            non_claims=[one for one in tree["non_claims"] if "shapes of" not in one["text"]]
        ),
        "a non-claim is missing",
    ),
}


@pytest.mark.parametrize("name", WORDS)
def test_words_that_the_records_do_not_give_are_faults_of_the_same_tool(
    real: Path, tmp_path: Path, name: str
) -> None:
    """Another version may have said it otherwise; this one did not."""
    change, words = WORDS[name]
    found = stage.read(changed(real, tmp_path, change))
    for same in (True, False):
        told = [one for one in consistency.remarks(found, same=same) if words in one.text]
        assert [one.fault for one in told] == [same] * len(told)
        assert told


def test_only_running_it_again_tells_of_a_whole_forgery(real: Path, tmp_path: Path) -> None:
    """What a lie tells alike in all places fits; the inputs that the case was drawn from show it."""

    def forge(tree: Tree) -> None:
        for one in tree["cases"][0]["inputs"]:
            one["sha256"] = hashlib.sha256(one["sha256"].encode()).hexdigest()

    path = changed(real, tmp_path, forge)
    assert faults(path) == ""
    answer, _ = reproduce(str(path), str(SPEC), silent, {"out": tmp_path / "again"})
    assert not answer.fine
    assert any("had other inputs" in one.text for one in answer.remarks if one.fault)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Evidence of several verified cases, with the arrays of each."""
    folder = tmp_path_factory.mktemp("many")
    words = ["--variant", "fwd", "--rows", "4,6", "--cols", "33", "--seed", "0,1"]
    more = ["--device", "cpu", "--save-all-arrays", "--out", str(folder), "-q"]
    run(["verify", "layernorm", *words, "--profile", "normal", *more])
    return folder / "layernorm.json"


def test_wrong_outputs_of_some_cases_alone_are_not_missed_in_others(tmp_path: Path) -> None:
    """Slices are zeroed where there are several; another constant is tried where one is declared."""
    out = ["--device", "cpu", "--out", str(tmp_path), "-q"]
    assert run(["verify", str(write_example(tmp_path)), "--suite", "quick", *out]) == 0
    assert faults(tmp_path / "vector-add.json") == ""
    shapes = ["--variant", "fwd", "--rows", "8", "--cols", "1,33", "--profile", "normal"]
    run(["verify", "softmax", *shapes, *out])
    assert "other-constant" in (tmp_path / "softmax.json").read_text("utf-8")
    assert faults(tmp_path / "softmax.json") == ""


def _as_amd_gpu(tree: Tree) -> Tree:
    """The tree of a run on the cpu device, told as one on an AMD GPU in every word that names it."""
    text = json.dumps(tree)
    for old, new in (
        ('"device": "cpu"', '"device": "rocm"'),
        ("@cpu", "@rocm"),
        ("--device cpu", "--device rocm"),
        ("host-simt", "amd-gpu"),
        ("x86_64", "gfx942"),
    ):
        text = text.replace(old, new)
    made: Tree = json.loads(text)
    made["devices"] = {"rocm": made["devices"]["cpu"] | {"name": "rocm"}}
    return made


@pytest.mark.parametrize(
    ("command", "compiler", "words"),
    [
        ([], "", "has the command of one for a device of class host-simt"),
        (["hipcc", "--offload-arch=gfx942"], "", "has a compiler that does not build for it: g++"),
        (["hipcc", "--offload-arch=gfx942"], "HIP version: 6.2", ""),
        (
            ["nvcc", "arch=compute_90,code=sm_90"],
            "HIP version: 6.2",
            "a device of class nvidia-gpu",
        ),
        (["hipcc"], "HIP version: 6.2", "has the command of one for an unknown device"),
    ],
)
def test_a_run_is_of_the_device_that_its_build_is_for(
    many: Path, command: list[str], compiler: str, words: str
) -> None:
    tree = _as_amd_gpu(json.loads(many.read_text("utf-8")))
    for build in tree["builds"].values():
        if command:
            build["command"] = command
        if compiler:
            build["compiler"]["version"] = compiler
    made = msgspec.convert(tree, Evidence)
    told = [one.text for one in origin.remarks(made, same=False) if one.fault]
    assert (words in "; ".join(told)) if words else told == []
    orders = [one for one in origin.remarks(made, same=True) if "do not exist on" in one.text]
    assert len(orders) == len(made.cases)


def test_every_device_has_marks() -> None:
    """What a build for each class is told by; a recipe's command has them."""
    assert {traits.device_class for traits in TRAITS.values()} == set(origin._MARKS)


def _other_status(tree: Tree) -> None:
    for group in tree["groups"]:
        group["status"] = "not-known" if group["status"] == "rejected" else "rejected"


def _no_group(tree: Tree) -> None:
    del tree["groups"][0]


def _new_group(tree: Tree) -> None:
    tree["groups"].append(tree["groups"][0] | {"kind": "a-new-kind"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_other_status, "is not-known in it, and rejected by its cases"),
        (_no_group, "it does not report the wrong output"),
        (_new_group, "no case tried the wrong output a-new-kind"),
    ],
)
def test_groups_of_wrong_outputs_are_those_of_the_cases(
    many: Path, tmp_path: Path, change: Callable[[Tree], None], words: str
) -> None:
    assert words in faults(changed(many, tmp_path, change))


def _believed(tree: Tree) -> None:
    """A refuted run told as a verified one."""
    tree.update(verdict="verified", counts={"verified": 1})
    tree["cases"][0].update(verdict="verified")
    for gate in tree["claims"]:
        gate["supported"] = gate["supported"] or gate["name"] == "numerical-agreement"


def test_what_check_refuses_comes_in_by_no_door(real: Path, tmp_path: Path) -> None:
    path = str(changed(real, tmp_path, _believed))
    assert run(["check", path]) == 1
    for words in (
        ["claims", path],
        ["claims", path, "--require", "numerical-agreement"],
        ["compare", path, path],
        ["diff", path, str(real)],
        ["diff", str(real), path],
        ["report", path],
        ["report", path, "--format", "intoto"],
    ):
        assert run(words) == 1, words
    assert run(["report", str(real), "--out", str(tmp_path / "page.md")]) == 0


@pytest.mark.parametrize("data", [b'{"schema": "tokitai/evidence/v2", "na', b"\xef\xbb\xbf{}", b""])
def test_what_cannot_be_read_opens_no_claim(tmp_path: Path, data: bytes) -> None:
    stage.write(samples.sample(Verdict.VERIFIED), tmp_path / "good.json")
    (tmp_path / "list.json").write_text("[]", "utf-8")
    (tmp_path / "older/1").mkdir(parents=True)
    stage.write(samples.sample(Verdict.REFUTED), tmp_path / "older/1/good.json")
    words = ["claims", str(tmp_path), "--require", "numerical-agreement"]
    assert run(words) == 0
    (tmp_path / "cut.json").write_bytes(data)
    assert run(words) == 1
    assert run(words[:2]) == 1
    answer = claims([str(tmp_path)], ["numerical-agreement", "bitwise-reproducible"])
    assert [row[1:] for row in answer.grids[0].rows][:2] == [
        ("not supported", "1 of 2"),
        ("not supported", "0 of 2"),
    ]


def test_a_claim_is_what_its_records_open(tmp_path: Path) -> None:
    """Not what the file says: a gate that it keeps shut is open where its records open it."""
    made = samples.sample(Verdict.VERIFIED)
    gates = [msgspec.structs.replace(one, supported=False) for one in made.claims]
    stage.write(sealed(msgspec.structs.replace(made, claims=gates)), tmp_path / "a.json")
    assert run(["claims", str(tmp_path), "--require", "numerical-agreement"]) == 0


def _without_case(tree: Tree) -> None:
    gone = tree["cases"].pop()
    tree["counts"][gone["verdict"]] -= 1


def _without_mutants(tree: Tree) -> None:
    case = tree["cases"][0]
    case["mutants"] = [one for one in case["mutants"] if one["kind"] != "roll"]


def _without_claim(tree: Tree) -> None:
    del tree["claims"][0]


def _without_open(tree: Tree) -> None:
    tree["non_claims"] = [
        one for one in tree["non_claims"] if not one["text"].startswith(("shapes of", "not GPU"))
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_without_case, "was selected, but is missing"),
        (_without_mutants, "the wrong output roll of"),
        (_without_claim, "the claim numerical-agreement is missing"),
        (_without_open, "a non-claim is missing: shapes of"),
        (_without_open, "a non-claim of spec or device is missing: not GPU evidence"),
    ],
)
def test_what_was_taken_away_is_told(
    many: Path, tmp_path: Path, change: Callable[[Tree], None], words: str
) -> None:
    assert faults(many) == ""
    found = stage.read(changed(many, tmp_path, change))
    told = "; ".join(one.text for one in consistency.remarks(found, same=True) if one.fault)
    assert words in told


def test_accidental_damage_is_told_by_the_digest(real: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(real.read_text("utf-8").replace("2.470703125", "2.470703126"), "utf-8")
    assert "digest" in faults(path)
    path.write_text("{", "utf-8")
    assert run(["check", str(path)]) == 2


def keys(folder: Path, name: str) -> tuple[str, str]:
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    public = key.public_key().public_bytes(
        form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo
    )
    paths = (folder / f"{name}.pem", folder / f"{name}.pub.pem")
    for path, data in zip(paths, (private, public), strict=True):
        path.write_bytes(data)
    return str(paths[0]), str(paths[1])


def test_a_signature_tells_of_what_still_fits(real: Path, tmp_path: Path) -> None:
    path = tmp_path / real.name
    path.write_bytes(real.read_bytes())
    private, public = keys(tmp_path, "mine")
    _, other = keys(tmp_path, "other")
    envelope = path.with_name("dropped-term.dsse.json")
    assert attest(str(path), private, None).fine
    assert check(str(path), key=public).fine
    assert "was made with the key" in check(str(path), key=other).remarks[-1].text
    assert not check(str(path), key=other).fine

    def seconds(tree: Tree) -> None:
        tree["volatile"]["seconds"] = 0.001

    changed(real, tmp_path, seconds)
    assert check(str(path)).fine
    assert "the signed content is another file" in check(str(path), key=public).remarks[-1].text
    path.write_bytes(real.read_bytes())
    told = json.loads(envelope.read_text("utf-8"))
    changes: list[Tree] = [
        {"payload": told["payload"][:-8] + "AAAAAAA="},
        {"payloadType": "text/plain"},
        {"signatures": []},
        {"signatures": [{"sig": "AAAA", "keyid": ""}]},
    ]
    for change in changes:
        envelope.write_text(json.dumps(told | change), "utf-8")
        assert not check(str(path), key=public).fine
    envelope.unlink()
    assert not check(str(path), key=public).fine
    with pytest.raises(UsageError, match="not an ed25519 key"):
        check(str(path), key=str(path))


def test_keys_of_minisign_sign_and_verify(real: Path, tmp_path: Path) -> None:
    minisign = pytest.importorskip("minisign")
    pair, other = minisign.KeyPair.generate(), minisign.KeyPair.generate()
    files = {"key": pair.secret_key, "pub": pair.public_key, "other": other.public_key}
    for name, key in files.items():
        (tmp_path / name).write_bytes(bytes(key) + b"\n")
    path = tmp_path / real.name
    path.write_bytes(real.read_bytes())
    assert attest(str(path), str(tmp_path / "key"), None).fine
    assert check(str(path), key=str(tmp_path / "pub")).fine
    assert check(str(path), key=str(tmp_path / "key")).fine
    assert not check(str(path), key=str(tmp_path / "other")).fine
    with pytest.raises(UsageError, match="not an ed25519 key"):
        attest(str(path), str(tmp_path / "pub"), None)
    pair.secret_key.encrypt("secret", opslimit=32768, memlimit=1 << 24)
    (tmp_path / "locked").write_bytes(bytes(pair.secret_key) + b"\n")
    with pytest.raises(UsageError, match="has a password; minisign -C -W"):
        attest(str(path), str(tmp_path / "locked"), None)
    (tmp_path / "none").write_bytes(b"untrusted comment: nothing\nAAAA\n")
    with pytest.raises(UsageError, match="not an ed25519 key"):
        check(str(path), key=str(tmp_path / "none"))


def test_the_envelope_is_that_of_dsse(real: Path, tmp_path: Path) -> None:
    """Verified by the words of the protocol, with openssl's own key format."""
    from cryptography.hazmat.primitives import serialization

    private, public = keys(tmp_path, "mine")
    out = tmp_path / "x.json"
    assert attest(str(real), private, str(out)).fine
    told = json.loads(out.read_text("utf-8"))
    body = base64.b64decode(told["payload"])
    kind = told["payloadType"].encode()
    data = b" ".join([b"DSSEv1", str(len(kind)).encode(), kind, str(len(body)).encode(), body])
    key: Any = serialization.load_pem_public_key(Path(public).read_bytes())
    key.verify(base64.b64decode(told["signatures"][0]["sig"]), data)
    statement = json.loads(body)
    assert statement["predicateType"].endswith("/test-result/v0.1")
    assert statement["predicate"]["result"] == "FAILED"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("_type", "https://example.org/Statement/v9", "the signed content has the _type"),
        ("predicateType", "https://example.org/x", "the signed content has the predicateType"),
        (
            "predicate",
            {"result": "FAILED"},
            "contains facts about the run that the evidence does not",
        ),
    ],
)
def test_the_whole_of_a_signed_statement_is_that_of_the_evidence(
    real: Path, tmp_path: Path, key: str, value: object, words: str
) -> None:
    private, public = keys(tmp_path, "mine")
    path = tmp_path / real.name
    path.write_bytes(real.read_bytes())
    assert attest(str(path), private, None).fine
    envelope = path.with_name("dropped-term.dsse.json")
    told = json.loads(envelope.read_text("utf-8"))
    statement = json.loads(base64.b64decode(told["payload"])) | {key: value}
    payload = json.dumps(statement).encode()
    told["payload"] = base64.b64encode(payload).decode()
    sign = private_key(Path(private)).sign
    sig = sign(signature.pae(signature.PAYLOAD_TYPE, payload))
    told["signatures"][0]["sig"] = base64.b64encode(sig).decode()
    envelope.write_text(json.dumps(told), "utf-8")
    found = stage.read(path)
    remarks = signature.remarks(path, found, envelope, Path(public), same=True)
    assert words in "; ".join(one.text for one in remarks)


def test_what_does_not_fit_is_not_signed(real: Path, tmp_path: Path) -> None:
    path = changed(real, tmp_path, CHANGES["claim"][0])
    private, _ = keys(tmp_path, "mine")
    assert not attest(str(path), private, None).fine
    assert not path.with_name("dropped-term.dsse.json").exists()


def test_saved_arrays_are_judged_again_by_numpy(
    real: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    judging = judge.judge

    def asked(*given: Any, **more: Any) -> Any:
        seen.append(native.library())
        return judging(*given, **more)

    monkeypatch.setattr(judge, "judge", asked)
    with native.by(cast("native.Library", object())):
        recheck(str(real))
    assert seen
    assert set(seen) == {None}


def test_saved_arrays_are_judged_again(real: Path, tmp_path: Path) -> None:
    assert not recheck(str(real)).fine
    assert recheck(str(real), ["bound=1e9"]).fine
    (grid,) = recheck(str(real)).grids
    case = stage.read(real).cases[0]
    value = case.outputs[0].checks[0].value
    assert grid.rows[0][4] == f"{value:.6g}"
    for limit in ("bound", "bound=x", "bound=-1", "nothing=1", "exact=1", "bound=inf"):
        with pytest.raises(UsageError, match="--limit"):
            recheck(str(real), [limit])
    with pytest.raises(UsageError, match="no saved arrays"):
        recheck(str(SAMPLE))


def test_every_case_is_judged_again_where_all_arrays_were_saved(many: Path, tmp_path: Path) -> None:
    answer = recheck(str(many))
    assert answer.fine, answer.remarks
    assert "4 cases of 4 judged again" in answer.text
    (grid,) = answer.grids
    assert {"bound", "bound-chained"} <= {row[1] for row in grid.rows}
    assert not recheck(str(many), ["bound=0.01"]).fine
    for folder in many.parent.iterdir():
        if folder.is_dir():
            shutil.copytree(folder, tmp_path / folder.name)

    def lower(tree: Tree) -> None:
        _check(tree).update(value=0.125)
        _output(tree)["metrics"].update(over_bound=0.125)

    told = recheck(str(changed(many, tmp_path, lower)))
    assert not told.fine
    assert "the record says bound 0.125" in "; ".join(one.text for one in told.remarks)

    def one_alone(tree: Tree) -> None:
        for case in tree["cases"][1:]:
            case["saved_arrays"] = []

    told = recheck(str(changed(many, tmp_path, one_alone)))
    assert "3 cases without saved arrays" in "; ".join(one.text for one in told.remarks)


def test_arrays_that_are_not_those_that_were_saved_are_refused(real: Path, tmp_path: Path) -> None:
    saved = json.loads(real.read_text("utf-8"))["cases"][0]["saved_arrays"]
    got = next(one for one in saved if one["name"].startswith("got_"))

    def nothing(tree: Tree) -> None:
        pass

    def again(change: Callable[[Tree], None] = nothing) -> None:
        with pytest.raises(EvidenceError):
            recheck(str(changed(real, tmp_path, change)))

    again()  # the arrays are not beside it
    for one in saved:
        place = tmp_path / one["file"]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes((real.parent / one["file"]).read_bytes())
    assert not recheck(str(changed(real, tmp_path, nothing))).fine
    for name in ("../x.npy", "/etc/passwd", "a/../../x.npy", ""):
        again(lambda tree, name=name: tree["cases"][0]["saved_arrays"][0].update(file=name))  # type: ignore[misc]
    path = tmp_path / got["file"]
    np.save(path, np.load(path) * 2)
    again()
    np.save(path, np.array([{}]), allow_pickle=True)
    again()
    path.unlink()
    path.symlink_to(real.parent / got["file"])
    again()


def test_the_same_cases_run_again(real: Path, tmp_path: Path) -> None:
    words = ["--out", str(tmp_path), "-q"]
    assert run(["reproduce", str(real), str(SPEC), *words]) == 0
    assert (tmp_path / "dropped-term-reproduced.json").exists()

    def other(tree: Tree) -> None:
        tree["cases"][0]["inputs"][0]["sha256"] = "0" * 64

    assert run(["reproduce", str(changed(real, tmp_path, other)), str(SPEC), *words]) == 1
    assert run(["reproduce", str(real), "softmax", *words]) == 2
    assert run(["reproduce", str(real), *words]) == 2


def test_the_file_alone_is_run_again_where_that_is_asked_for(
    real: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "alone" / real.name
    path.parent.mkdir()
    path.write_bytes(real.read_bytes())
    assert run(["reproduce", str(path), "-q"]) == 2  # nothing of a file is run by itself
    assert "--run-authors-code" in capsys.readouterr().err
    assert run(["reproduce", str(path), "--run-authors-code", "-q"]) == 0
    said = capsys.readouterr().out
    assert "1 of 1 case gave the same result; bits equal in 1" in said
    assert "here: cpu (host-simt), " in said
    made = json.loads((tmp_path / "reports/dropped-term-reproduced.json").read_text("utf-8"))
    assert made["rerun"] == ("tokitai reproduce dropped-term.json --run-authors-code --device cpu")

    def without_text(tree: Tree) -> None:
        next(iter(tree["specs"].values()))["text"] = None

    gone = changed(real, tmp_path, without_text)
    assert run(["reproduce", str(gone), "--run-authors-code", "-q"]) == 2


def test_another_device_confirms_its_own_verdicts_alone(many: Path, tmp_path: Path) -> None:
    """Evidence that names a GPU, run again on the cpu device: told, with an exit code of its own."""
    tree = _as_amd_gpu(json.loads(many.read_text("utf-8")))
    tree["digest"] = tree_digest(tree)
    path = tmp_path / "gpu.json"
    path.write_text(json.dumps(tree), "utf-8")
    given: dict[str, Any] = {"device": "cpu", "out": str(tmp_path / "out")}
    answer, _ = reproduce(str(path), "layernorm", silent, given)
    assert answer.fine, answer.remarks
    assert answer.exit_code == 9
    assert answer.text == (
        "4 of 4 cases have the same verdict and inputs on cpu; this does not confirm rocm; "
        "bits equal in 4"
    )
    assert "no such case" not in str(answer.grids)
    for case in tree["cases"]:
        case["inputs"][0]["sha256"] = "0" * 64
    tree["digest"] = tree_digest(tree)
    path.write_text(json.dumps(tree), "utf-8")
    answer, _ = reproduce(str(path), "layernorm", silent, given)
    assert answer.exit_code == 1
    assert answer.text.startswith("0 of 4 cases have")


def test_a_recorded_command_or_flag_is_never_run(real: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    def hostile(tree: Tree) -> None:
        evil = f"touch {mark}"
        tree["rerun"] = evil
        tree["cases"][0].update(rerun=evil, debug=evil)
        tree["settings"]["arch"] = f"x; {evil}"
        for build in tree["builds"].values():
            build.update(command=["sh", "-c", evil], source=f"/dev/null; {evil}")
            build["compiler"]["path"] = "/bin/false"

    path = changed(real, tmp_path, hostile)
    assert run(["reproduce", str(path), str(SPEC), "--out", str(tmp_path / "o"), "-q"]) == 0
    assert not mark.exists()
    (build,) = json.loads((tmp_path / "o/dropped-term-reproduced.json").read_text())[
        "builds"
    ].values()
    assert not any("touch" in word for word in build["command"])


def test_unpacked_files_are_what_ran_and_lie_over_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    answer = unpack(str(SAMPLE), str(out))
    assert answer.fine
    tree = json.loads(SAMPLE.read_text("utf-8"))
    texts = {one["text"] for one in [*tree["specs"].values(), *tree["sources"].values()]}
    assert {path.read_text("utf-8") for path in out.rglob("*") if path.is_file()} == texts
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    with pytest.raises(UsageError, match="something in it"):
        unpack(str(SAMPLE), str(out))
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    specs = list(out.rglob("*.yaml"))
    assert run(["show", str(specs[0])]) == 0
    following = [one.text for one in answer.remarks if not one.fault]
    assert following == [f"next: tokitai reproduce {SAMPLE} {specs[0]}"]


@pytest.mark.parametrize(
    "name",
    [
        "../../../../../../../../../../x",
        "a/../../b",
        "..",
        "x/..",
        "/etc/x",
        "a\nb",
        "a" * 300,
        "~/x",
    ],
)
def test_unpacking_never_leaves_the_folder(real: Path, tmp_path: Path, name: str) -> None:
    def named(tree: Tree) -> None:
        next(iter(tree["sources"].values()))["path"] = name

    path = changed(real, tmp_path, named)
    out = tmp_path / "deep" / "out"
    try:
        unpack(str(path), str(out))
    except TokitaiError:
        assert not out.exists()
    inside = {one.resolve() for one in out.rglob("*")}
    assert all(one.is_relative_to(out) for one in inside)
    assert {one.name for one in tmp_path.iterdir()} <= {path.name, "deep"}


def test_runs_are_compared(tmp_path: Path) -> None:
    assert diff(str(SAMPLE), str(SAMPLE)).fine
    stage.write(samples.sample(Verdict.VERIFIED), tmp_path / "good.json")
    stage.write(samples.sample(Verdict.UNEXPECTED_PASS), tmp_path / "pass.json")
    worse = msgspec.structs.replace(samples.METRICS, max_ulp=0.75)
    parts = samples.parts([samples.case(outputs=[samples.output(metrics=worse)])])
    stage.write(stage.assemble(parts), tmp_path / "worse.json")
    told: set[tuple[str, ...]] = set()
    for name in ("pass", "worse"):
        answer = diff(str(tmp_path / "good.json"), str(tmp_path / f"{name}.json"))
        assert not answer.fine
        told |= {tuple(row) for grid in answer.grids for row in grid.rows}
    key = samples.case().key
    assert (key, "verdict", "verified", "unexpected-pass") in told
    assert (key, "max_ulp of grad_a", "0.5", "0.75") in told
    assert ("numerical-agreement", "claim", "supported", "not supported") in told


def test_claims_over_many_reports(real: Path, tmp_path: Path) -> None:
    for name, verdict in (("a", Verdict.VERIFIED), ("b", Verdict.VERIFIED), ("c", Verdict.REFUTED)):
        stage.write(samples.sample(verdict), tmp_path / f"{name}.json")
    (tmp_path / "other.json").write_text("{}", "utf-8")
    answer = claims([str(tmp_path)])
    assert answer.text == "3 reports"
    assert ("numerical-agreement", "not supported", "2 of 3") in map(tuple, answer.grids[0].rows)
    good = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    assert claims(good, ["numerical-agreement"]).fine
    assert not claims([str(tmp_path)], ["numerical-agreement"]).fine
    with pytest.raises(UsageError, match="no such claim"):
        claims(good, ["speed"])
    assert run(["claims", str(tmp_path), "--require", "numerical-agreement", "--json"]) == 1


WATCHED: dict[str, Any] = {"on": False, "folder": "", "seen": []}
RUNS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "os.system", "socket.connect",
        "exec", "import", "ctypes.dlopen", "pickle.find_class")  # fmt: skip


def _watch(event: str, given: tuple[Any, ...]) -> None:
    if not WATCHED["on"]:
        return
    if event in RUNS:
        WATCHED["seen"].append((event, str(given[0])[:100]))
    opens = event == "open" and isinstance(given[0], str) and isinstance(given[2], int)
    writes = opens and given[2] & (os.O_WRONLY | os.O_RDWR)
    if writes and not str(given[0]).startswith(WATCHED["folder"]):
        WATCHED["seen"].append((event, str(given[0])))


sys.addaudithook(_watch)


def mutants(tree: Tree, count: int, seed: int) -> Iterator[bytes]:
    """Files of strangers: bytes changed anywhere, and objects changed with a digest that fits."""
    draw = random.Random(seed)
    whole = json.dumps(tree).encode()
    values: list[Any] = [
        None, -1, 0, 1e308, 2**63, 10**40, "", "nan", "../x", "/etc/passwd", "\x00", "\ud800", [], {},
        True, "x" * 5000, [[]] * 50, {"a": {}},
    ]  # fmt: skip
    for number in range(count):
        if number % 3 == 0:
            data = bytearray(whole)
            for _ in range(draw.randint(1, 8)):
                at = draw.randrange(len(data))
                data[at : at + draw.randint(0, 3)] = draw.randbytes(draw.randint(0, 3))
            yield bytes(data[: draw.choice([len(data), draw.randrange(len(data))])])
            continue
        made = copy.deepcopy(tree)
        for _ in range(draw.randint(1, 4)):
            place: Any = made
            while isinstance(place, (dict, list)) and place:
                key = draw.choice(list(place) if isinstance(place, dict) else range(len(place)))
                inner = place[key]
                if not isinstance(inner, (dict, list)) or not inner or draw.random() < 0.1:
                    kept = [one for one in values if type(one) is type(inner)]
                    chosen = draw.choice(kept if kept and draw.random() < 0.7 else values)
                    place[key] = copy.deepcopy(chosen)
                    break
                place = inner
        with contextlib.suppress(TypeError, ValueError):
            made["digest"] = tree_digest(made)
        yield json.dumps(made).encode("utf-8", "backslashreplace")


@pytest.mark.parametrize("count", [pytest.param(150), pytest.param(10_000, marks=pytest.mark.slow)])
def test_fuzzed_files_do_nothing(
    real: Path, tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only errors of the tool or answers come; nothing is run, nothing written elsewhere."""
    monkeypatch.setattr(
        "tokitai_cli.core.resources.checkout", lambda: None
    )  # git is asked of its commit
    tree = json.loads(real.read_text("utf-8"))
    for build in tree["builds"].values():
        build["headers"] = {}
    path = tmp_path / "f.json"
    check(str(real))
    recheck(str(real))
    diff(str(real), str(real))
    out = tmp_path / "out"
    WATCHED.update(on=False, folder=str(tmp_path), seen=[])
    verbs: tuple[Callable[[int], object], ...] = (
        lambda number: check(str(path)),
        lambda number: unpack(str(path), str(out / str(number))),
        lambda number: recheck(str(path)),
        lambda number: diff(str(path), str(real)),
        lambda number: claims([str(path)]),
    )
    for number, data in enumerate(mutants(tree, count, seed=1)):
        path.write_bytes(data)
        WATCHED["on"] = True
        for verb in (verbs[0], verbs[1 + number % 4]):
            try:
                verb(number)
            except TokitaiError:
                pass
            except Exception as error:
                raise AssertionError(f"case {number}: {error!r:.300}") from error
            assert WATCHED["seen"] == [], number
        WATCHED["on"] = False
    assert {one.name for one in tmp_path.iterdir()} <= {"f.json", "out"}


def _burdened(tree: Tree, kind: str) -> None:
    """Change evidence so that reading it naively takes for ever, or fills the memory or the disk."""
    case, build = tree["cases"][0], next(iter(tree["builds"].values()))
    digest = next(iter(tree["specs"]))
    text = tree["specs"][digest]["text"]
    if kind == "text":
        tree["reason"] = case["reason"] = "<`|_*[\x1b\u202e" * 200_000
    elif kind == "line":
        tree["rerun"] = "tokitai verify x --m " + ",".join(map(str, range(300_000)))
    elif kind == "quotes":
        tree["rerun"] = "tokitai verify x " + "'" * 4_001
    elif kind == "histogram":
        _output(tree)["metrics"]["ulp_histogram"] = {str(at): 1 for at in range(200_000)}
    elif kind == "folders":
        names = [f"{at}/" * 30 + "x" for at in range(20_000)]
        build["header_texts"] = dict.fromkeys(names, "")
        build["headers"] = dict.fromkeys(names, hashlib.sha256(b"").hexdigest())
    else:
        text += {
            "aliases": "".join(
                f"\nl{at}: &l{at} [{', '.join([f'*l{at - 1}' if at else 'x'] * 9)}]"
                for at in range(10)
            ),
            "power": "\nparams: {m: {default: 9**9**9**9}}",
            "deep": "\nx: " + "[" * 100_000,
        }[kind]
        record = tree["specs"].pop(digest) | {"text": text, "bytes": len(text.encode())}
        tree["specs"][hashlib.sha256(text.encode()).hexdigest()] = record
        case["spec"] = next(iter(tree["specs"]))


BURDENS = ("text", "line", "quotes", "histogram", "folders", "aliases", "power", "deep", "nested")


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["check", "report", "diff", "unpack"])
@pytest.mark.parametrize("kind", [*BURDENS, "large"])
def test_no_file_takes_time_or_memory_without_bound(
    real: Path, tmp_path: Path, kind: str, verb: str
) -> None:
    path = tmp_path / "hostile.json"
    if kind == "nested":
        path.write_bytes(b"[" * 3_000_000)
    elif kind == "large":
        with path.open("wb") as file:
            file.truncate(300 << 20)
    else:
        changed(real, tmp_path, lambda tree: _burdened(tree, kind)).rename(path)
    more = {
        "report": ["--format", "md,html,csv,junit,sarif,intoto,latex", "--out", str(tmp_path)],
        "diff": [str(real)],
        "unpack": [str(tmp_path / "out")],
    }

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))

    done = subprocess.run(
        [sys.executable, "-m", "tokitai_cli", verb, str(path), *more.get(verb, [])],
        capture_output=True,
        preexec_fn=limited,
        check=False,
    )
    assert done.returncode in (0, 1, 2), done.stderr[-500:]
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("kind", ["line", "quotes", "folders"])
def test_a_burden_is_refused_in_words(real: Path, tmp_path: Path, kind: str) -> None:
    path = changed(real, tmp_path, lambda tree: _burdened(tree, kind))
    if kind == "folders":
        with pytest.raises(EvidenceError, match="more than 10000 files or folders"):
            unpack(str(path), str(tmp_path / "out"))
        assert not (tmp_path / "out").exists()
    else:
        assert "the command to repeat it is not a tokitai command" in faults(path)


def test_without_cryptography_a_signature_says_what_to_install(real: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from tokitai_cli.cli.app import run\n"
        f"sys.exit(run(['check', {str(real)!r}, '--key', {str(real)!r}]))"
    )
    path = tmp_path / "k.pem"
    path.write_text("x", "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", code.replace(f"'--key', {str(real)!r}", f"'--key', {str(path)!r}")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "tokitai[attest]" in done.stderr


def test_two_runs_give_the_same_files_but_for_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With SOURCE_DATE_EPOCH: what differs stands under `volatile`, and digests are equal."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    trees, files = [], []
    for name in ("a", "b"):
        out = tmp_path / name
        words = ["--m", "16", "--n", "16", "--k", "16", "--device", "cpu", "--out", str(out), "-q"]
        kinds = ["--format", "md,html,latex,csv,sarif,intoto,junit"]
        assert run(["verify", "gemm-bw", *words, *kinds]) == 0
        trees.append(json.loads((out / "gemm-bw.json").read_text("utf-8")))
        files.append({one.name: one.read_bytes() for one in out.iterdir()})
    assert trees[0]["digest"] == trees[1]["digest"]
    for name in ("gemm-bw.tex", "gemm-bw.sarif", "gemm-bw.intoto.json"):
        assert files[0][name] == files[1][name], name
    for name in (
        *("seconds", "case_times_ns", "stage_seconds", "build_seconds", "build_cached"),
        *("notes", "memory"),
    ):
        trees[1]["volatile"][name] = trees[0]["volatile"][name]
    assert trees[0] == trees[1]
    # Pages and tables of the second run, with the times of the first, are those of the first.
    for name in ("gemm-bw.md", "gemm-bw.html", "gemm-bw.csv", "gemm-bw.xml"):
        other = tmp_path / "other.json"
        other.write_text(json.dumps(trees[1]), "utf-8")
        kind = {".md": "md", ".html": "html", ".csv": "csv", ".xml": "junit"}[Path(name).suffix]
        assert report.render(stage.read(other), kind) == files[0][name], name
