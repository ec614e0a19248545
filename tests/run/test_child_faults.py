"""Whatever a kernel's process does, the run ends with the right verdict and the rest is verified."""

from __future__ import annotations

import json
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.leftovers import Place
from tests.runs import KERNELS, tokitai
from tests.support import slow

# What a kernel's process does, the verdict, and what the reason must say.
FAULTS = {
    "writes_null": ("crashed", "SIGSEGV"),
    "never_ends": ("timed-out", "did not run within 5 s"),
    "aborts": ("crashed", "SIGABRT"),
    "leaves": ("crashed", "ended with exit code 0"),
    "is_killed": ("crashed", "SIGKILL (killed) without an answer (from outside: by a person, or "),
    "runs_out_of_memory": ("crashed", "bad_alloc"),
    "short_frame": ("crashed", "in the middle of a frame"),
    "garbage_frame": ("crashed", "broke the protocol"),
    "huge_frame": ("crashed", "a frame of 18446744073709551615 bytes"),
    "forged_frame": ("refuted", ""),
    "prints_for_ever": ("timed-out", "did not run within 5 s"),
    "leaves_a_process": ("verified", ""),
}


def spec_in(folder: Path, kernels: list[str]) -> Path:
    """One variant a kernel, in this order, all in one source; NAME_again is another of NAME."""
    variants = {
        kernel.replace("_", "-"): {
            "source": str(KERNELS / "children.hip"),
            "inputs": {"x": {"dtype": "int32", "shape": ["n"]}},
            "outputs": {"y": {"dtype": "int32", "shape": ["n"]}},
            "oracle": "wrongs.py:copy",
            "checks": [{"metric": "exact"}],
            "launches": [
                {"kernel": kernel.removesuffix("_again"), "grid": ["ceil_div(n, 64)"], "block": [64],
                 "args": ["x", "y", "n"]}
            ],
        }
        for kernel in kernels
    }  # fmt: skip
    document = {
        "schema": "tokitai/spec/v1",
        "op": "children",
        "title": "Children that go wrong",
        "params": {"n": {"default": 200}},
        "variants": variants,
        "profiles": {"indices": {"draw": {"kind": "index-uniform", "below": 1000}}},
    }
    (folder / "wrongs.py").write_bytes((KERNELS / "wrongs.py").read_bytes())
    path = folder / "spec.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def strict(text: str) -> dict[str, Any]:
    """Parsed JSON; NaN and Infinity are not JSON."""

    def refuse(token: str) -> None:
        raise ValueError(f"{token} is not JSON")

    found = json.loads(text, parse_constant=refuse)
    assert isinstance(found, dict)
    return found


def evidence_of(place: Place) -> dict[str, dict[str, Any]]:
    """Cases by variant, of the JSON that the run wrote."""
    evidence = strict((place.out / "children.json").read_text(encoding="utf-8"))
    return {case["variant"].replace("-", "_"): case for case in evidence["cases"]}


def verify(place: Place, spec: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return tokitai(
        *("verify", str(spec), "--device", "cpu", "--out", str(place.out), *words),
        cwd=place.work,
        env=place.environment,
    )


class Run:
    """One run over a right kernel, every fault, and a right kernel again."""

    def __init__(self, folder: Path) -> None:
        self.place = Place.under(folder)
        spec = spec_in(folder, ["right", *FAULTS])
        self.done = verify(self.place, spec, "--timeout", "5", "--json")
        self.clean = self.place.is_clean()
        self.cases = evidence_of(self.place)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp("children"))


@pytest.mark.parametrize("kernel", FAULTS)
def test_the_verdict_on_a_child_that_goes_wrong_case_24(kernel: str, whole: Run) -> None:
    verdict, words = FAULTS[kernel]
    case = whole.cases[kernel]
    assert case["verdict"] == verdict, case["reason"]
    assert words in case["reason"]


def test_the_run_around_them_is_whole(whole: Run) -> None:
    """Worst verdict, exit code, JSON on stdout and in the file, nothing left behind."""
    done = whole.done
    assert strict(done.stdout) == strict((whole.place.out / "children.json").read_text())
    assert done.returncode == 1  # the forged answer is refuted; else 5
    assert "Traceback" not in done.stderr
    assert whole.cases["right"]["verdict"] == "verified"
    assert len(whole.cases) == len(FAULTS) + 1
    assert whole.clean, (whole.place.processes(), whole.place.temporary())


@pytest.mark.slow
def test_gigabytes_of_output_are_counted_and_cut(tmp_path: Path) -> None:
    place = Place.under(tmp_path / "place")
    done = verify(place, spec_in(tmp_path, ["prints_gigabytes"]), "--json")
    assert done.returncode == 0, done.stderr
    evidence = strict(done.stdout)
    (log,) = evidence["volatile"]["kernel_logs"].values()
    left_out = re.search(r"\[\.\.\. (\d+) bytes left out \.\.\.\]", log)
    assert left_out is not None
    assert int(left_out[1]) > 2_000_000_000  # a gigabyte in each of two repetitions
    assert len(log) < 100_000
    assert len(done.stdout) < 1_000_000


def test_a_null_write_an_endless_loop_and_a_right_kernel_case_24(tmp_path: Path) -> None:
    place = Place.under(tmp_path / "place")
    spec = spec_in(tmp_path, ["writes_null", "never_ends", "right"])
    done = verify(place, spec, "--timeout", "3")
    found = {name: case["verdict"] for name, case in evidence_of(place).items()}
    assert found == {"writes_null": "crashed", "never_ends": "timed-out", "right": "verified"}
    assert done.returncode == 5
    assert place.is_clean()


def test_a_kernel_that_does_not_compile_fails_alone(tmp_path: Path) -> None:
    """Variants share a build; those that can be built still share one."""
    place = Place.under(tmp_path / "place")
    spec = spec_in(tmp_path, ["right", "missing", "aborts", "right_again"])
    done = verify(place, spec)
    assert done.returncode == 5
    evidence = strict((place.out / "children.json").read_text(encoding="utf-8"))
    found = {case["variant"]: case["verdict"] for case in evidence["cases"]}
    assert found == {"right": "verified", "missing": "build-failed", "aborts": "crashed",
                     "right-again": "verified"}  # fmt: skip
    (failed,) = (case for case in evidence["cases"] if case["variant"] == "missing")
    assert "missing" in failed["reason"]
    # One that failed, one for the two before it or behind it, one for its neighbour.
    assert len(evidence["builds"]) == 3
    assert [bool(one["failed"]) for one in evidence["builds"].values()].count(True) == 1


def test_a_source_that_does_not_compile_is_tried_twice_at_most(tmp_path: Path) -> None:
    """Not once for each of its variants."""
    place = Place.under(tmp_path / "place")
    spec = spec_in(tmp_path, ["right", "aborts", "leaves", "right_again"])
    broken = tmp_path / "broken.hip"
    broken.write_text("#include <hip/hip_runtime.h>\nthis is no declaration;\n", encoding="utf-8")
    text = spec.read_text(encoding="utf-8").replace(str(KERNELS / "children.hip"), "broken.hip")
    spec.write_text(text, encoding="utf-8")
    done = verify(place, spec)
    assert done.returncode == 4
    assert done.stderr.count("building ") == 2
    cases = evidence_of(place).values()
    assert {case["verdict"] for case in cases} == {"build-failed"}
    assert all("broken.hip:2:" in case["reason"] for case in cases)


FAKE_CHILD = """#!{python}
import os, struct, sys
options = dict(word[2:].split("=") for word in sys.argv[1:] if word.startswith("--"))
response = int(options["response-fd"])
def frame(data): os.write(response, struct.pack("<Q", len(data)) + data)
{body}
"""
FAKE_COMPILER = """#!/bin/sh
case "$*" in *--version*) echo fake 1.0; exit 0;; *-print-prog-name*) echo none; exit 0;; esac
while [ $# -gt 0 ]; do
  case $1 in -MF) depfile=$2;; -o) output=$2;; -c) unit=yes;; esac
  shift
done
if [ -z "$unit" ]; then cp {artifact} "$output" && exec chmod 755 "$output"; fi
if [ -n "$depfile" ]; then echo "$output: " > "$depfile"; fi
echo | {compiler} -x c++ -c -o "$output" -
"""


@pytest.mark.parametrize(
    ("body", "verdict", "code", "words"),
    [
        ("sys.exit(0)", "crashed", 5, "ended with exit code 0"),
        slow("os.write(response, b'x')", "crashed", 5, "in the middle of a frame (1 of 8 bytes)"),
        slow("frame(bytes(range(256)))", "crashed", 5, "broke the protocol"),
        ("os.write(response, b'garbage!' * 100)", "crashed", 5, "broke the protocol"),
        slow("frame(b'tokitai-child 99 u64le')", "crashed", 5, "broke the protocol"),
        (
            "frame(b'tokitai-child 1 u64le\\nstatus=no-device\\nmessage=none here')",
            "inadmissible",
            3,
            "none here",
        ),
        slow("os.kill(os.getpid(), 11)", "crashed", 5, "SIGSEGV"),
    ],
)
def test_an_artifact_that_is_no_child_of_ours(
    body: str, verdict: str, code: int, words: str, tmp_path: Path
) -> None:
    place = Place.under(tmp_path / "place")
    artifact, compiler = tmp_path / "artifact", tmp_path / "fake-c++"
    artifact.write_text(FAKE_CHILD.format(python=sys.executable, body=body))
    compiler.write_text(
        FAKE_COMPILER.format(artifact=artifact, compiler=shutil.which("c++") or "g++")
    )
    for path in (artifact, compiler):
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    spec = spec_in(tmp_path, ["right"])
    done = tokitai(
        *("verify", spec, "--device", "cpu", "--out", place.out),
        cwd=place.work,
        env={**place.environment, "CXX": str(compiler)},
    )
    case = evidence_of(place)["right"]
    assert (case["verdict"], done.returncode) == (verdict, code), case["reason"]
    assert words in case["reason"]
    assert "Traceback" not in done.stderr
    assert place.is_clean()


def test_what_does_not_fit_this_machine_leaves_the_rest_alone(tmp_path: Path) -> None:
    place = Place.under(tmp_path / "place")
    done = verify(place, spec_in(tmp_path, ["right"]), "--n", f"200,{2**42},64")
    evidence = strict((place.out / "children.json").read_text(encoding="utf-8"))
    found = [case["verdict"] for case in evidence["cases"]]
    assert found == ["verified", "not-run", "verified"]
    assert "TiB" in evidence["cases"][1]["reason"]
    assert done.returncode == 8
