"""`sanitize` on the cpu device: seeded faults are found, and right kernels have no finding."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.compilers import CLANG, has_sanitizers
from tests.devices.sanitizers import specs
from tokitai_cli.cli import app
from tokitai_cli.core import resources
from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.judged import FindingRecord
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.devices.cpu import CpuDevice
from tokitai_cli.devices.sanitizers import coverage, cpu_watch, source_lines
from tokitai_cli.devices.sanitizers.watch_log import element, read_log
from tokitai_cli.evidence import read
from tokitai_cli.run.inventory import builtin_specs
from tokitai_cli.run.run_options import run_options
from tokitai_cli.run.sanitizing import sanitize
from tokitai_cli.spec import find, load

DOCS = Path(__file__).parents[3] / "docs" / "sanitize.md"
OWN = ("guards", "repeats")  # tools of `verify`
# One of each kind, for every run of the tests.
FEW = (
    *("missing_barrier", "reused_reduction", "past_workspace", "past_by_ldg", "early_return"),
    *("blocks_race", "ticket", "plain_first", "unset_bins", "index_overflow", "far_past"),
    *("unset_register", "unset_lane", "unset_through_shared"),
)
# Faults that only the watch of values finds.
LOCALS = tuple(
    name
    for name in specs.kernels()
    if {kind for kind, _ in specs.marks(name)} == {"uninitialised-variable"}
)
WATCHING = CLANG if has_sanitizers(CLANG) else ""
# What is a warning alone, since GPUs of today take it.
WARNED = ("early_return", "divergent_barrier", "uneven_loop")
# What is found without a name is both of the others where they are there.
COMPILERS = (
    pytest.param("", id="found"),
    pytest.param(
        "g++",
        marks=[
            pytest.mark.slow,
            pytest.mark.skipif(not has_sanitizers("g++"), reason="no g++ with libasan"),
        ],
    ),
    pytest.param(
        CLANG,
        id="clang",
        marks=[
            pytest.mark.slow,
            pytest.mark.skipif(not WATCHING, reason="no clang++ with its rt"),
        ],
    ),
)


@pytest.fixture(scope="module", params=COMPILERS)
def compiler(request: pytest.FixtureRequest) -> str:
    """The compiler that CXX names; without one each check takes what it finds."""
    return str(request.param)


@contextlib.contextmanager
def named(compiler: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if compiler:
            patch.setenv("CXX", compiler)
        yield


def run(folder: Path, names: Sequence[str]) -> Evidence:
    spec = specs.write_spec(folder, names)
    options = run_options(str(spec), device="cpu", out=folder / "out", verb="sanitize")
    return sanitize(options).evidence


def lines(finding: FindingRecord) -> set[int]:
    return {int(number) for number in re.findall(r"faults\.hip:(\d+)", finding.location)}


def watched(case: CaseRecord) -> list[FindingRecord]:
    return [one for one in case.findings if one.tool not in OWN]


def unlike(evidence: Evidence) -> list[str]:
    """What is not found of what must be, and what is found in right kernels."""
    wrong = []
    for case in evidence.cases:
        name, _, faulty = case.variant.rpartition("-")
        found = watched(case)
        if faulty == "false":
            wrong += [f"{name}: {one.words}" for one in found if one.severity == "error"]
            continue
        for kind, line in specs.marks(name):
            if kind == "uninitialised-variable" and locals_missing(evidence):
                continue
            if not any(one.kind == kind and line in lines(one) for one in found):
                wrong.append(f"{name}: no {kind} at {line}, but {[one.words for one in found]}")
        if case.verdict is not Verdict.REFUTED and not (
            name in WARNED or (name in LOCALS and locals_missing(evidence))
        ):
            wrong.append(f"{name}: {case.verdict}")
    return wrong


def locals_missing(evidence: Evidence) -> bool:
    """Whether no compiler here watches local variables, and the evidence says so."""
    return any(one.text.startswith("locals not tested") for one in evidence.non_claims)


def test_structs_behind_pointers_are_watched(tmp_path: Path) -> None:
    spec = Path(__file__).parents[2] / "kernels" / "own" / "arguments" / "spec.yaml"
    options = run_options(
        str(spec), device="cpu", out=tmp_path, verb="sanitize",
        variant=["pointed", "pointed-written-behind"],
    )  # fmt: skip
    right, wrong = sanitize(options).evidence.cases
    assert (right.verdict, watched(right)) == (Verdict.VERIFIED, [])
    assert wrong.verdict is Verdict.REFUTED
    assert any(
        one.kind == "out-of-bounds" and "groups[44] of 40" in one.array for one in watched(wrong)
    )


@pytest.fixture(scope="module")
def few(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    with named(compiler):
        return run(tmp_path_factory.mktemp("few"), FEW)


def case_of(evidence: Evidence, name: str) -> CaseRecord:
    return next(case for case in evidence.cases if case.variant == f"{name}-true")


def test_faults_are_found_at_their_lines_and_right_kernels_have_none(
    few: Evidence, compiler: str
) -> None:
    assert unlike(few) == []
    assert locals_missing(few) == (compiler == "g++" or not WATCHING)


@pytest.mark.slow
def test_every_seeded_fault_is_found(
    compiler: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = list(specs.kernels())
    with named(compiler):
        evidence = run(tmp_path, names)
    found = unlike(evidence)
    missed = {text.partition(":")[0] for text in found}
    looked = len(names) - (len(LOCALS) if locals_missing(evidence) else 0)
    rate = f"{looked - len(missed)} of {looked} seeded faults are found at their lines"
    with capsys.disabled():
        print(f"\n{rate}")
    assert found == []
    assert len(names) >= 25
    assert len(LOCALS) >= 8
    # The rate of the docs is one with a clang beside.
    assert compiler or locals_missing(evidence) or rate in DOCS.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("op", sorted(loaded.spec.op for loaded in builtin_specs()))
def test_shipped_kernels_have_no_finding(op: str, compiler: str, tmp_path: Path) -> None:
    profiles = list(load(find(op)).spec.profiles)[:2]
    options = run_options(
        op, device="cpu", suite="quick", profile=profiles, out=tmp_path, verb="sanitize"
    )
    with named(compiler):
        evidence = sanitize(options).evidence
    # Two profiles alone cannot tell every wrong output.
    verdicts = {case.verdict for case in evidence.cases}
    assert verdicts <= {Verdict.VERIFIED, Verdict.VACUOUS, Verdict.INCONCLUSIVE}, evidence.reason
    assert [one.words for case in evidence.cases for one in case.findings] == []


def test_structs_lists_and_loops_of_the_host_are_watched(compiler: str, tmp_path: Path) -> None:
    spec = Path(__file__).parents[2] / "kernels" / "own" / "arguments" / "spec.yaml"
    options = run_options(str(spec), device="cpu", suite="quick", out=tmp_path, verb="sanitize")
    with named(compiler):
        evidence = sanitize(options).evidence
    wanted = ("struct", "functors", "list", "batch", "sort", "spread")  # the last two are loops
    right = {case.variant: case for case in evidence.cases if case.variant in wanted}
    assert set(right) == set(wanted)
    for case in right.values():
        assert case.verdict is Verdict.VERIFIED, case.reason
        assert not case.findings
        assert {"memory", "races", "initialisation"} <= {look.kind for look in case.examined}
    (written,) = [case for case in evidence.cases if case.variant == "list-written"]
    assert any(one.kind == "race" for one in watched(written))


def test_a_race_tells_both_places_threads_and_the_array(few: Evidence) -> None:
    (race,) = [one for one in watched(case_of(few, "missing_barrier")) if one.kind == "race"]
    assert re.fullmatch(r"faults\.hip:\d+, faults\.hip:\d+", race.location)
    assert re.fullmatch(r"shared tile\[\d+\]", race.array)
    assert race.threads.count("block (0,0,0), thread (") == 2
    assert race.count > 1
    assert race.kernel == "missing_barrier<true>"


def test_a_read_past_a_workspace_tells_its_element(few: Evidence) -> None:
    (found,) = watched(case_of(few, "past_workspace"))
    assert (found.tool, found.array) == ("AddressSanitizer", "ws[164] of 64 elements")
    assert "0x" not in found.message


def test_a_far_access_comes_as_a_signal_and_reads_alike(few: Evidence) -> None:
    (found,) = watched(case_of(few, "far_past"))
    assert (found.kind, found.array) == ("out-of-bounds", "x[100000000] of 64 elements")


def test_a_swap_that_makes_sure_is_only_a_warning(few: Evidence) -> None:
    right = next(case for case in few.cases if case.variant == "plain_first-false")
    (warning,) = watched(right)
    assert (warning.kind, warning.severity) == ("mixed-race", "warning")
    assert right.verdict is not Verdict.REFUTED
    gates = {gate.name: gate for gate in few.claims}
    assert not gates["race-free-in-tested-schedules"].supported


@functools.cache
def _sanitized(variant: str, folder: Path) -> Evidence:
    argv = [
        "sanitize",
        "gemm-bw",
        "--variant",
        variant,
        "--profile",
        "normal",
        "--profile",
        "exact-int",
    ]
    app.run([*argv, "--out", str(folder), "-q"])
    return read(folder / "gemm-bw-sanitize.json")


def test_a_clean_run_on_the_cpu_opens_the_gates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASAN_OPTIONS", "exitcode=0:detect_odr_violation=0:help=1")
    evidence = _sanitized("grad-a", tmp_path)
    assert evidence.verdict is Verdict.VERIFIED, evidence.reason
    gates = {gate.name: gate for gate in evidence.claims}
    assert gates["memory-safe"].supported
    assert gates["race-free-in-tested-schedules"].supported
    kinds = {look.kind for case in evidence.cases for look in case.examined}
    assert {"memory", "races", "initialisation", "barriers", "undefined", "schedules"} <= kinds
    assert all(case.repeats and case.repeats.repetitions == 8 for case in evidence.cases)
    assert all(not case.findings for case in evidence.cases)


def test_a_check_without_its_compiler_is_a_non_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_watch, "_prefix", lambda driver, check: None)
    evidence = _sanitized("grad-b", tmp_path)
    assert evidence.verdict is Verdict.VERIFIED, evidence.reason
    gates = {gate.name: gate for gate in evidence.claims}
    assert not gates["memory-safe"].supported
    assert gates["race-free-in-tested-schedules"].supported
    (text,) = [one.text for one in evidence.non_claims if one.text.startswith("memory not tested")]
    assert "-fsanitize=address" in text
    (text,) = [one.text for one in evidence.non_claims if one.text.startswith("locals not tested")]
    assert "-fsanitize=kernel-memory" in text


HALF = """#include <hip/hip_runtime.h>
__global__ void halfway(const float* x, float* y, float* ws, const int* k, int n) {
  const int t = threadIdx.x;
  if (n > 1000)
    y[t] = 0.0f;
  else
    y[t] = x[t];
}
__global__ void unused(float* y) { y[0] = 1.0f; }
"""


@pytest.mark.skipif(not coverage.gcov_of(["g++"]), reason="no gcov")
def test_what_no_case_executed_is_a_non_claim(tmp_path: Path) -> None:
    spec = specs.write_spec(tmp_path, ["past_by_one"])
    spec.write_text(re.sub(r"past_by_one<\w+>", "halfway", spec.read_text()))
    (tmp_path / "faults.hip").write_text(HALF)
    options = run_options(str(spec), device="cpu", out=tmp_path / "out", verb="sanitize")
    evidence = sanitize(options).evidence
    texts = {one.text for one in evidence.non_claims}
    assert "functions of faults.hip that no case executed: unused" in texts
    assert "lines of faults.hip that no case executed: 5" in texts
    assert "lines of faults.hip with a branch that no case took: 4" in texts


@pytest.mark.parametrize("verb", ["verify", "batch"])
def test_other_verbs_watch_too(verb: str, tmp_path: Path) -> None:
    spec = specs.write_spec(tmp_path, ["past_by_one"])
    out = tmp_path / "out"
    argv = [verb, str(spec), "--sanitize", "--device", "cpu", "--out", str(out), "-q"]
    assert app.run([*argv, "--variant", "past_by_one-true"]) == Verdict.REFUTED.exit_code
    (case,) = read(out / ("evidence" if verb == "batch" else "") / "faults.json").cases
    assert [one.array for one in watched(case)] == ["x[64] of 64 elements"]
    assert {"memory", "races"} <= {look.kind for look in case.examined}
    assert "--sanitize" in case.rerun


def test_a_device_that_nothing_watches_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for argv in (["verify", "gemm-bw"], ["batch", str(tmp_path)]):
        assert app.run([*argv, "--sanitize", "--device", "rocm", "-q"]) == 2
        assert "use --device cpu" in capsys.readouterr().err


def test_options_of_the_environment_change_nothing() -> None:
    (address,) = [
        one for one in cpu_watch.sanitizers(CpuDevice()) if one.tool == "AddressSanitizer"
    ]
    device = address.under(CpuDevice(), Path("/nowhere"))
    from tokitai_cli.core.model.settings import Settings

    options = device.launch_environment(Settings())["ASAN_OPTIONS"]
    assert "halt_on_error=0" in options
    assert "exitcode=1" in options


def fixed_addresses() -> bool:
    setarch = shutil.which("setarch")
    if setarch is None:
        return False
    return subprocess.run([setarch, "-R", "true"], check=False).returncode == 0


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("exit 0", []),
        pytest.param(
            "case $(cat /proc/self/personality) in *4????) exit 0;; esac; exit 66",
            ["-R"],
            marks=pytest.mark.skipif(not fixed_addresses(), reason="no setarch -R here"),
        ),
        ("exit 66", None),
    ],
)
def test_a_runtime_that_refuses_random_addresses_runs_at_fixed_ones_or_not_at_all(
    body: str, words: list[str] | None, tmp_path: Path
) -> None:
    driver = tmp_path / "g++"
    program = f"#!/bin/sh\n{body}\n"
    driver.write_text(
        f"#!/bin/sh\nwhile [ $1 != -o ]; do shift; done\ncat > $2 <<'E'\n{program}E\nchmod +x $2\n"
    )
    driver.chmod(0o755)
    prefix = cpu_watch._prefix((str(driver),), cpu_watch.ADDRESS)
    assert (None if prefix is None else list(prefix[1:])) == words


@pytest.mark.parametrize("text", ["", "program\t/nowhere\n", "no log\n"])
def test_a_log_without_a_case_is_no_clean_bill(text: str) -> None:
    with pytest.raises(ValueError, match="no case"):
        read_log(text, "tool")


def test_equal_findings_are_one_with_a_count() -> None:
    one = "finding\tkind=race\tmessage=words\tkernel=k\tcount=3\tlower=1\tfile=a.hip\tline=4\tframes=\n"
    (found,) = read_log(one + one.replace("lower=1", "lower=0"), "tool")
    assert (found.count, found.location, found.severity) == (6, "a.hip:4", "error")


@pytest.mark.parametrize(
    ("array", "words"),
    [
        ("buffer 1: byte 8 of 64, 4 at once", "b[4]"),
        ("buffer 0: byte 64 of 64, 4 at once", "a[16] of 16 elements"),
        ("buffer 0: byte -4 of 64, 4 at once", "a[-1] of 16 elements"),
        ("shared tile: byte 12 of 64, 4 at once", "shared tile[3]"),
        ("", ""),
    ],
)
def test_arrays_are_told_by_element(array: str, words: str) -> None:
    assert element(array, [("a", 4), ("b", 2)]) == words


@pytest.mark.skipif(not shutil.which("addr2line"), reason="no addr2line")
def test_places_of_the_tool_and_the_system_are_passed_over() -> None:
    header = str(resources.kernels_dir() / "host" / "tokitai_host" / "math.hpp")
    assert (
        source_lines.own([f"{header}:3", "/usr/include/c++/12/cmath:9", "/a/k.hip:7"])
        == "/a/k.hip:7"
    )
    assert source_lines.own([f"{header}:3"]) == f"{header}:3"
    assert source_lines.own([]) == ""
    assert json.dumps(source_lines.lines_of("/nowhere", ["10"])) == '{"10": []}'


def test_vector_types_have_the_name_of_the_line(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("int4 a = v[0];\nint4 b = w(float2{});\n")
    told = "misaligned access to 'const struct HIP_vector_type'"
    assert (
        source_lines.with_vectors(told, f"{tmp_path}/k.cu:1") == "misaligned access to 'const int4'"
    )
    assert (
        source_lines.with_vectors(told, f"{tmp_path}/k.cu:2")
        == "misaligned access to 'const float2 or int4'"
    )
    asks = f"{told}, which asks for 16 bytes"
    for line in (1, 2):
        named = source_lines.with_vectors(asks, f"{tmp_path}/k.cu:{line}")
        assert named == "misaligned access to 'const int4', which asks for 16 bytes"
    assert source_lines.with_vectors(told, "nowhere.cu:1") == "misaligned access to 'const vector'"
    assert source_lines.with_vectors("read of 4 bytes", "") == "read of 4 bytes"
