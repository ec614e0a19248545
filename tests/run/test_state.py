"""What outlives a launch: variables of the source, and workspaces that are zeroed once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.runs import KERNELS, run
from tests.support import make_case
from tokitai_cli.core.elf import variable_name
from tokitai_cli.core.model.device import WRITABLE
from tokitai_cli.core.model.evidence import CaseRecord, Evidence, FactRecord
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.devices.ptxas import ptxas_facts

LAUNCH = {"grid": ["ceil_div(n, 256)"], "block": [256], "args": ["x", "y", "n"]}
ONCE = {"grid": [1], "block": [1]}


def variant(*launches: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "source": str(KERNELS / "state.hip"),
        "oracle": "wrongs.py:copy",
        "inputs": {"x": {"dtype": "float32", "shape": ["n"]}},
        "outputs": {"y": {"dtype": "float32", "shape": ["n"]}},
        "checks": [{"metric": "bound"}],
        "launches": list(launches),
        **more,
    }


def spec_in(folder: Path) -> Path:
    variants = {
        "counts": variant({"kernel": "copies_and_counts", **LAUNCH}),
        "alone": variant({"kernel": "copies_where_none_counted", **LAUNCH}),
        "replays": variant(
            {"kernel": "replays", **LAUNCH}, {"kernel": "marks_filled", "args": [], **ONCE}
        ),
        "tires": variant({"kernel": "tires", **LAUNCH}),
        "copies": variant({"kernel": "copies", **LAUNCH}),
    }
    for init in ("zero", "zero-once"):
        variants[init] = variant(
            {"kernel": "copies_where_zero", **LAUNCH, "args": ["x", "y", "counter", "n"]},
            {"kernel": "raises", "args": ["counter"], **ONCE},
            workspaces={"counter": {"dtype": "int32", "shape": [1], "init": init}},
        )
    once = {"dtype": "float32", "shape": ["n"], "init": "zero-once"}
    variants["cached"] = variant(
        {"kernel": "replays_from", **LAUNCH, "args": ["x", "y", "cache", "counter", "n"]},
        {"kernel": "raises", "args": ["counter"], **ONCE},
        workspaces={
            "cache": {**once, "scratch": "x"},
            "counter": {**once, "dtype": "int32", "shape": [1]},
        },
    )
    document = {
        "schema": "tokitai/spec/v1",
        "op": "state",
        "title": "State",
        "params": {"n": {"default": 1000, "max": 2048}},
        "variants": variants,
        "profiles": {"normal": {}},
    }
    (folder / "wrongs.py").write_bytes((KERNELS / "wrongs.py").read_bytes())
    path = folder / "spec.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")  # JSON is YAML
    return path


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    folder = tmp_path_factory.mktemp("state")
    return run(spec_in(folder), folder)


def case_of(evidence: Evidence, name: str) -> CaseRecord:
    (case,) = (case for case in evidence.cases if case.variant == name)
    return case


@pytest.mark.slow
def test_variables_are_found_and_told(evidence: Evidence) -> None:
    (build,) = evidence.builds.values()
    (fact,) = (fact for fact in build.code_object if fact.name == WRITABLE)
    assert fact.value == "aside, filled, kept, launches, never_written"


@pytest.mark.slow
def test_a_case_starts_fresh_whatever_ran_before(evidence: Evidence) -> None:
    assert case_of(evidence, "counts").verdict is Verdict.VERIFIED
    assert case_of(evidence, "alone").verdict is Verdict.VERIFIED


@pytest.mark.slow
def test_an_answer_that_was_kept_is_none_to_other_inputs(evidence: Evidence) -> None:
    case = case_of(evidence, "replays")
    assert case.verdict is Verdict.REFUTED
    assert case.reason.startswith("in one more repetition, on other inputs (aside, filled, kept")
    assert case.reproduced
    for name in ("counts", "alone", "copies"):
        repeats = case_of(evidence, name).repeats
        assert repeats is not None
        assert (repeats.repetitions, repeats.other_inputs) == (2, 1)


@pytest.mark.slow
def test_state_lives_through_the_repetitions_of_a_case(tmp_path: Path, evidence: Evidence) -> None:
    assert case_of(evidence, "tires").verdict is Verdict.VERIFIED
    (longer,) = run(spec_in(tmp_path), tmp_path, variant=["tires"], repeat=6).cases
    assert longer.verdict is Verdict.REFUTED
    # The last thread counts the launch; a block that runs after it sees that in the same launch.
    assert re.search(r"in repetition [45]\b", longer.reason)


def test_what_is_kept_in_a_workspace_that_is_zeroed_once_is_no_answer_to_others(
    evidence: Evidence,
) -> None:
    cached = case_of(evidence, "cached")
    assert cached.verdict is Verdict.REFUTED
    assert "on other inputs (" in cached.reason
    assert "cache, counter outlive a launch)" in cached.reason


@pytest.mark.slow
def test_a_workspace_that_is_zeroed_once_keeps_what_a_launch_left(evidence: Evidence) -> None:
    assert case_of(evidence, "zero").verdict is Verdict.VERIFIED
    once = case_of(evidence, "zero-once")
    assert once.verdict is Verdict.REFUTED
    assert "in repetition 1" in once.reason


def test_variables_that_the_spec_fills_do_not_outlive_a_launch(evidence: Evidence) -> None:
    from tokitai_cli.core.model.spec import Buffer
    from tokitai_cli.run.device_session import lasting

    (build,) = evidence.builds.values()
    case = make_case()
    fact = FactRecord(name=WRITABLE, value="table, kept", source="symbols")
    record = msgspec.structs.replace(build, code_object=[fact])
    assert lasting(record, case) == ("table", "kept")
    table = {"table": Buffer(dtype="float32", shape=[4])}
    filled = msgspec.structs.replace(case.variant, symbols=table)
    spec = msgspec.structs.replace(case.loaded.spec, variants={case.variant_name: filled})
    loaded = msgspec.structs.replace(case.loaded, spec=spec)
    assert lasting(record, msgspec.structs.replace(case, loaded=loaded)) == ("kept",)
    assert lasting(msgspec.structs.replace(build, code_object=[]), case) == ()


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("kept", "kept"),
        ("_ZL6filled", "filled"),
        ("_ZN5space6inside4keptE", "kept"),
        ("_ZZ5tiresPKfPfiE8launches", "launches"),
        ("_ZZ1fI6__halfLi4EEvPT_E5count_0", "count"),
    ],
)
def test_names_of_variables(mangled: str, name: str) -> None:
    assert variable_name(mangled) == name


def test_ptxas_tells_global_memory_that_lasts() -> None:
    log = "ptxas info    : 0 bytes gmem\nptxas info    : 16392 bytes gmem, 16 bytes cmem[3]\n"
    assert [(fact.name, fact.value) for fact in ptxas_facts(log)] == [(WRITABLE, "16392 bytes")]
    assert ptxas_facts("ptxas info    : 0 bytes gmem\n") == ()
