"""A case that fails is easy to work on: pattern, smallest shape, its arrays, a debugger's command."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.commands.test_wrong_kernels import TYPES, N
from tests.commands.test_wrong_kernels import spec_in as faults_in
from tests.runs import KERNELS, evidence_in, run, tokitai
from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.core.model.verdict import Verdict

PATTERNS = {
    "some_rows": ("rows", "whole rows 3, 9 (2 of 32)"),
    "some_columns": ("columns", "whole columns 5, 21 to 22 (3 of 100)"),
    "tile_edges": ("tile-edges", "tile 16: the last of each tile's columns"),
    "partial_tile": ("tile-edges", "the partial last tile of columns (100 = "),
    "tail": ("tail", "the last 70 of 3200 elements, from flat index 3130 (row 31, column 30)"),
    "every_element": ("every-element", "all 3200 elements"),
    "scattered": ("scattered", " of 3200 elements, in 32 of 32 rows and 100 of 100 columns"),
}


def spec_in(folder: Path) -> Path:
    variants = {
        kernel.replace("_", "-"): {
            "source": "patterns.hip",
            "inputs": {"x": {"dtype": "float32", "shape": ["m", "k"]}},
            "outputs": {"y": {"dtype": "float32", "shape": ["m", "k"]}},
            "oracle": "wrongs.py:copy",
            "checks": [{"metric": "bound"}],
            "launches": [
                {"kernel": kernel, "grid": ["ceil_div(k, 64)", "m"], "block": [64],
                 "args": ["x", "y", "m", "k"]}
            ],
        }
        for kernel in (*PATTERNS, "writes_null")
    }  # fmt: skip
    document = {
        "schema": "tokitai/spec/v1",
        "op": "patterns",
        "title": "Patterns of errors",
        "params": {"m": {"default": 32}, "k": {"default": 100}},
        "variants": variants,
        "profiles": {"normal": {}},
    }
    (folder / "wrongs.py").write_bytes((KERNELS / "wrongs.py").read_bytes())
    (folder / "own.hpp").write_bytes((KERNELS / "patterns.hip").read_bytes())
    (folder / "patterns.hip").write_text('#include "own.hpp"\n', encoding="utf-8")
    path = folder / "spec.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def patterns(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    folder = tmp_path_factory.mktemp("patterns")
    names = [name.replace("_", "-") for name in PATTERNS]
    return run(spec_in(folder), folder, variant=names)


@pytest.mark.parametrize("kernel", PATTERNS)
def test_the_pattern_of_the_error_is_named(kernel: str, patterns: Evidence) -> None:
    (case,) = (one for one in patterns.cases if one.variant == kernel.replace("_", "-"))
    pattern = case.outputs[0].pattern
    assert pattern is not None
    kind, detail = PATTERNS[kernel]
    assert (pattern.kind, detail in pattern.detail) == (kind, True), pattern
    assert kind in ("every-element", "scattered") or case.reason.endswith(f": {pattern.words}")


def test_the_evidence_has_the_texts_of_all_own_files(patterns: Evidence) -> None:
    texts = {one.path: one.text for one in patterns.sources.values()}
    assert texts == {
        "patterns.hip": '#include "own.hpp"\n',
        "wrongs.py": (KERNELS / "wrongs.py").read_text(encoding="utf-8"),
    }
    (build,) = patterns.builds.values()
    ((path, text),) = build.header_texts.items()
    assert Path(path).name == "own.hpp"
    assert hashlib.sha256(text.encode()).hexdigest() == build.headers[path]
    assert patterns.settings == Settings()


def test_a_sweep_names_the_smallest_shape_that_fails(tmp_path: Path) -> None:
    done = tokitai(
        *("verify", spec_in(tmp_path), "--device", "cpu", "--variant", "some-rows"),
        *("--m", "16:64:16", "--k", "48", "--out", tmp_path),
    )
    assert done.returncode == 1
    verdicts = {
        case["shape"]["m"]: case["verdict"] for case in evidence_in(tmp_path, "patterns")["cases"]
    }
    assert verdicts == {16: "verified", 32: "refuted", 48: "refuted", 64: "refuted"}
    assert (
        "smallest shape that fails: m=32,k=48, of some-rows on cpu (3 of 4 shapes fail)"
        in done.stdout
    )
    report = (tmp_path / "patterns.md").read_text(encoding="utf-8")
    assert "`some-rows` fails on cpu: `m=32,k=48` (3 of 4 shapes fail)." in report
    assert "Pattern of the failing elements: rows (whole rows 3, 9 (2 of 32))." in report


def loaded(folder: Path, case: CaseRecord) -> dict[str, NDArray[Any]]:
    return {one.name: np.load(folder / one.file) for one in case.saved_arrays}


def test_arrays_of_a_failing_case_are_kept_in_every_dtype(tmp_path: Path) -> None:
    names = [f"tail-{dtype}" for dtype in TYPES]
    evidence = run(faults_in(tmp_path), tmp_path, variant=names, save_arrays=True)
    assert len(evidence.cases) == len(TYPES)
    for case in evidence.cases:
        dtype = case.variant.removeprefix("tail-")
        arrays = loaded(tmp_path, case)
        assert set(arrays) >= {"in_x", "want_y", "got_y_0", "got_y_1"}
        # .npy has no bfloat16: float32 holds each of its values.
        kept = "float32" if dtype == "bfloat16" else dtype
        assert {arrays[name].dtype.name for name in ("in_x", "got_y_0", "got_y_1")} == {kept}
        assert arrays["want_y"].dtype.name == (
            kept if kept in ("int8", "uint64", "bool") else "float64"
        )
        assert all(array.shape == (N,) for array in arrays.values())
        manifest = {one.name: one for one in case.saved_arrays}
        (output,) = case.outputs
        assert output.sha256 == [manifest[f"got_y_{at}"].sha256 for at in (0, 1)]
        assert case.inputs[0].sha256 == manifest["in_x"].sha256
        assert (manifest["in_x"].dtype, manifest["in_x"].shape) == (dtype, [N])
        given, got = arrays["in_x"], arrays["got_y_1"]
        assert np.array_equal(got[: N - 64], given[: N - 64])
        assert np.array_equal(arrays["want_y"], given.astype(arrays["want_y"].dtype))
        assert arrays["got_y_0"][N - 64 :].tobytes() != got[N - 64 :].tobytes()


def test_verified_cases_keep_nothing(tmp_path: Path) -> None:
    evidence = run(faults_in(tmp_path), tmp_path, variant=["rounds"], save_arrays=True)
    assert evidence.verdict is Verdict.VERIFIED
    assert evidence.cases[0].saved_arrays == []
    assert not (tmp_path / "wrongs.arrays").exists()


def test_the_rerun_command_gives_the_same_case(tmp_path: Path, patterns: Evidence) -> None:
    case = patterns.cases[0]
    words = case.rerun.split()[1:]
    done = tokitai(*words, "--out", tmp_path, cwd=spec_in(tmp_path).parent)
    assert done.returncode == 1
    (again,) = evidence_in(tmp_path, "patterns")["cases"]
    assert (again["id"], again["reason"]) == (case.id, case.reason)
    assert [one["sha256"] for one in again["inputs"]] == [one.sha256 for one in case.inputs]


@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
@pytest.mark.parametrize(
    ("variant", "words"),
    [
        ("writes-null", ["SIGSEGV", "writes_null", "the line of the fault"]),
        ("some-rows", ["exited normally"]),
    ],
)
def test_the_debugger_runs_the_child_on_the_case(
    variant: str, words: list[str], tmp_path: Path
) -> None:
    """As printed, from the same folder, but without waiting for anybody's commands."""
    done = tokitai(
        *("verify", spec_in(tmp_path), "--device", "cpu", "--variant", variant, "--save-arrays"),
        *("--out", "my reports"),
        cwd=tmp_path,
    )
    (line,) = (line for line in done.stdout.splitlines() if "debug it:" in line)
    command = line.partition("debug it: ")[2]
    assert command.startswith("gdb -d ")
    batch = command.replace("gdb ", "gdb -batch ", 1)
    shown = subprocess.run(
        ["bash", "-c", batch], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    if "ptrace" in shown.stdout + shown.stderr:
        pytest.skip("processes may not be traced here")
    for word in words:
        assert word in shown.stdout, shown.stdout + shown.stderr
