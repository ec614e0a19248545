"""`sanitize` with a program that stands for compute-sanitizer, and reading its reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.devices.gpu import faults
from tests.devices.gpu.stand_in_device import StandIn
from tokitai_cli.cli import app
from tokitai_cli.core.errors import InadmissibleError, UsageError
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.devices import registry
from tokitai_cli.devices.sanitizers import compute_sanitizer
from tokitai_cli.run.run_options import run_options
from tokitai_cli.run.sanitizing import sanitize

REPORTS = Path(__file__).parent / "sanitizer_reports"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
# Writes the report that lies in $REPORTS under the tool's name, but only for children that are not the
# first of their tool where $LATER says so; then becomes the child.
PROGRAM = """#!/bin/sh
if [ "$1" = --version ]; then echo "Version 2025.3.0.0"; exit; fi
while [ "$1" != --log-file ]; do [ "$1" = --tool ] && tool=$2; shift; done
cp "{reports}/$tool" "$2"
shift 2
exec "$@"
"""
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"


def report(name: str) -> str:
    return (REPORTS / name).read_text(encoding="utf-8")


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the reports that the stand-in program gives, all clean; it is found by PATH."""
    folder = tmp_path / "reports"
    folder.mkdir()
    for tool in TOOLS:
        (folder / tool).write_text(CLEAN)
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "compute-sanitizer"
    program.write_text(PROGRAM.replace("{reports}", str(folder)))
    program.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setitem(registry._DEVICES, "cuda", StandIn(name="cuda"))
    return folder


def watch(folder: Path, *variants: str) -> Evidence:
    spec = faults.write_spec(folder)
    options = run_options(
        str(spec), device="cuda", variant=list(variants), out=folder / "out", verb="sanitize"
    )
    return sanitize(options).evidence


def test_a_clean_run_opens_the_gates(reports: Path, tmp_path: Path) -> None:
    evidence = watch(tmp_path, "right")
    assert evidence.verdict is Verdict.VERIFIED, evidence.reason
    (case,) = evidence.cases
    looked = {(look.kind, look.tool) for look in case.examined}
    kinds = ("memory", "shared-races", "initialisation", "barriers")
    assert {(k, f"compute-sanitizer {t}") for k, t in zip(kinds, TOOLS, strict=True)} <= looked
    gates = {gate.name: gate for gate in evidence.claims}
    assert gates["memory-safe"].supported
    race_free = gates["race-free-in-tested-schedules"]
    assert not race_free.supported
    assert "covers shared memory only" in race_free.reason
    texts = {one.text for one in evidence.non_claims}
    assert "races in global memory not tested" in texts
    assert "races not tested" not in texts
    facts = {fact.name: fact.value for fact in evidence.devices["cuda"].facts}
    assert facts["compute-sanitizer memcheck"] == "Version 2025.3.0.0"
    assert evidence.rerun.startswith("tokitai sanitize ")


@pytest.mark.parametrize(
    ("tool", "file", "kind"),
    [
        ("memcheck", "memcheck-read-past.txt", "invalid-read"),
        ("racecheck", "racecheck-reduction.txt", "race"),
        ("initcheck", "initcheck-workspace.txt", "uninitialised-read"),
        ("synccheck", "synccheck-divergent.txt", "barrier"),
    ],
)
def test_a_finding_refutes_and_closes_the_gate(
    reports: Path, tmp_path: Path, tool: str, file: str, kind: str
) -> None:
    (reports / tool).write_text(report(file))
    evidence = watch(tmp_path, "right")
    assert evidence.verdict is Verdict.REFUTED
    (case,) = evidence.cases
    assert kind in {one.kind for one in case.findings}
    assert {one.tool for one in case.findings} == {f"compute-sanitizer {tool}"}
    assert f"compute-sanitizer {tool}: " in case.reason
    gates = {gate.name: gate for gate in evidence.claims}
    assert not gates["memory-safe"].supported


def test_a_tool_that_does_not_work_proves_nothing(reports: Path, tmp_path: Path) -> None:
    (reports / "racecheck").write_text(report("device-not-supported.txt"))
    evidence = watch(tmp_path, "right")
    assert evidence.verdict is Verdict.INCONCLUSIVE
    assert "racecheck did not work" in evidence.reason
    assert "Device not supported" in evidence.reason
    (case,) = evidence.cases
    assert "shared-races" not in {look.kind for look in case.examined}


def test_without_the_program_it_is_inadmissible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setattr(compute_sanitizer, "first_program", lambda candidates: None)
    with pytest.raises(InadmissibleError, match="no compute-sanitizer"):
        compute_sanitizer.sanitizers()


@pytest.mark.parametrize("device", ["rocm", "all"])
def test_devices_without_a_sanitizer_are_refused(
    device: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = app.run(["sanitize", "gemm-bw", "--device", device, "--out", str(tmp_path), "-q"])
    assert code == UsageError.exit_code
    assert "--device cpu" in capsys.readouterr().err


def test_an_invalid_read_is_read_with_place_and_thread() -> None:
    first, *others = compute_sanitizer.read_report(report("memcheck-read-past.txt"), "memcheck")
    assert (first.kind, first.kernel) == ("invalid-read", "reads_past")
    assert first.location.endswith("gpu_faults.hip:18")
    assert first.threads == "(0,0,0) in block (0,0,0)"
    assert "33,281 bytes after the nearest allocation" in first.message
    assert "0x" not in first.message
    assert "runtime-error" not in {one.kind for one in others}


@pytest.mark.parametrize(
    ("where", "wrapped"),
    [
        ("17,179,860,976 bytes after", "4 bytes past the end of"),
        ("17,179,869,180 bytes before", "4 bytes before"),
        ("4,294,967,290 bytes before", "1 byte before"),
        ("17,179,100,000 bytes after", ""),
        ("33,281 bytes after", ""),
    ],
)
def test_a_distance_of_2_to_the_32_elements_is_a_wrapped_index(where: str, wrapped: str) -> None:
    text = report("memcheck-read-past.txt").replace("33,281 bytes after", where)
    first, *_ = compute_sanitizer.read_report(text, "memcheck")
    assert ("a 32-bit index that wrapped around" in first.message) == bool(wrapped)
    assert f"2^32 elements of {wrapped}" in first.message or not wrapped


def test_the_form_of_older_releases_is_read() -> None:
    (finding, error) = compute_sanitizer.read_report(report("memcheck-2021.txt"), "memcheck")
    assert (finding.kind, finding.kernel) == ("invalid-write", "unaligned_kernel")
    assert finding.location == "memcheck_demo.cu:6"
    assert (error.kind, error.location) == ("runtime-error", "")
    assert "cudaErrorLaunchFailure" in error.message


def test_a_race_has_both_places_and_its_template_kernel() -> None:
    (race,) = compute_sanitizer.read_report(report("racecheck-reduction.txt"), "racecheck")
    assert (race.kind, race.kernel) == ("race", "row_sums<(bool)0>")
    assert [place.rpartition(":")[2] for place in race.location.split(", ")] == ["68", "65"]
    assert "Read access" in race.message
    assert "Write access" in race.message
    assert "0x" not in race.message


def test_reports_of_one_place_are_one_finding_with_a_count() -> None:
    text = report("memcheck-read-past.txt")
    (found,) = compute_sanitizer.read_report(text + text, "memcheck")
    assert found.count == 4


def test_an_inline_function_of_the_toolkit_is_told_at_the_kernels_own_line() -> None:
    (found,) = compute_sanitizer.read_report(report("memcheck-inline.txt"), "memcheck")
    assert (found.location, found.kernel, found.count) == ("a.cu:3", "k", 2)
    assert "Access is out of bounds" in found.message


@pytest.mark.parametrize("text", ["", "========= COMPUTE-SANITIZER\n", "no such tool"])
def test_a_log_without_a_summary_is_no_clean_bill(text: str) -> None:
    with pytest.raises(ValueError, match="no summary"):
        compute_sanitizer.read_report(text, "memcheck")


def test_a_clean_log_has_no_findings() -> None:
    assert compute_sanitizer.read_report(CLEAN, "memcheck") == ()
    clean = CLEAN.replace("ERROR SUMMARY: 0 errors", "RACECHECK SUMMARY: 0 hazards displayed")
    assert compute_sanitizer.read_report(clean, "racecheck") == ()
