"""The pytest plugin, in pytest runs of their own: what passes, fails, is expected, and is told."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.leftovers import Place, eventually
from tests.run.test_child_faults import spec_in
from tests.runs import KERNELS, derived_spec
from tests.support import slow

ROOT = Path(__file__).parents[2]
SPEC = "specs/products.yaml"
FAULTS = KERNELS / "gemm_faults.hip"
TWO = {"normal": {"draw": "normal"}, "constant": {"draw": "constant"}}
CASE = "gemm-bw/{}/m=64,n=64,k=64/{}/0@cpu"
PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]


def project(folder: Path, *, profiles: dict[str, Any] | None = None, **top: Any) -> Path:
    """A project with a test of its own and a folder of specs; all have one artifact."""
    for name in ("tests", "specs"):
        (folder / name).mkdir(parents=True)
    (folder / "tests" / "test_own.py").write_text("def test_own() -> None:\n    pass\n")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    kernels = ["plain", "last_term"]
    top.setdefault("params", {name: {"default": 64} for name in "mnk"})
    spec = derived_spec(
        folder / "specs", "gemm-bw", "grad-a", kernels, source=FAULTS, replay=False,
        profiles=profiles or {"normal": {"draw": "normal"}}, **top,
    )  # fmt: skip
    spec.rename(folder / SPEC)  # -k also looks at the names of files
    return folder


def environment(**more: str) -> dict[str, str]:
    # What the outer run says of itself is no business of the inner one.
    ours = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    return {**ours, "COLUMNS": "200", **more}


def run(
    folder: Path, *words: str, device: str = "cpu", every_plugin: bool = False
) -> subprocess.CompletedProcess[str]:
    """pytest over a project. every_plugin: those that are installed, as a user's runs have them."""
    env = environment() if every_plugin else environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    named = () if every_plugin else ("-p", "tokitai_cli.pytest_plugin", "-p", "xdist.plugin")
    return subprocess.run(
        [*PYTEST, *named, "--tokitai-device", device, *words],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def outcomes(
    folder: Path, *words: str, device: str = "cpu", every_plugin: bool = False
) -> dict[str, str]:
    """Outcome by the name of the test, as JUnit has it; no test may end in a traceback."""
    done = run(folder, *words, "--junit-xml", "junit.xml", device=device, every_plugin=every_plugin)
    assert "Traceback" not in done.stdout + done.stderr
    tree = ET.parse(folder / "junit.xml")
    found = {}
    for case in tree.iter("testcase"):
        child = next((one.tag for one in case if one.tag != "properties"), "passed")
        found[case.attrib["name"]] = child
    failed = {"failure", "error"} & set(found.values())
    assert done.returncode == (1 if failed else 0), done.stdout + done.stderr
    assert "error" not in found.values(), done.stdout
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project(tmp_path_factory.mktemp("plugin") / "project")


def test_a_right_kernel_passes_and_a_wrong_one_fails_beside_a_projects_own_tests(
    place: Path,
) -> None:
    assert outcomes(place, "--tokitai-specs", "specs", every_plugin=True) == {
        CASE.format("plain", "normal"): "passed",
        CASE.format("last-term", "normal"): "failure",
        "test_own": "passed",
    }


def test_a_failure_is_told_in_full_and_without_a_traceback(place: Path) -> None:
    done = run(place, "--tokitai-specs", "specs")
    assert done.returncode == 1
    _, _, told = done.stdout.partition("= FAILURES =")
    lines = told.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("refuted: grad_a["))
    worst, pattern, again, rerun = lines[first + 1 : first + 5]
    assert re.match(r"  grad_a\[\d+, \d+\]: got \S+, want \S+, error \S+, limit \S+ \(bound", worst)
    assert pattern.startswith("  pattern of grad_a: ")
    assert again == "  run again in a new process: the same result"
    assert rerun == (
        f"  run it again: tokitai verify {SPEC} --variant last-term --profile normal "
        "--m 64 --n 64 --k 64 --seed 0 --device cpu --repeat 2"
    )
    assert ".py:" not in told
    assert re.search(r"^FAILED \S+@cpu - Failed: refuted: grad_a\[", told, re.MULTILINE)
    assert "tokitai: 2 cases of 1 spec" in done.stdout
    assert done.stdout.count("not checked by a sanitizer") == 1


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["-m", "tokitai"], {CASE.format("plain", "normal"), CASE.format("last-term", "normal")}),
        slow(["-m", "not tokitai"], {"test_own"}),
        (["-k", "plain and normal"], {CASE.format("plain", "normal")}),
        slow(["-k", "own"], {"test_own"}),
        slow(
            ["tests"],
            {"test_own", CASE.format("plain", "normal"), CASE.format("last-term", "normal")},
        ),
    ],
    ids=["marked", "unmarked", "keyword", "own", "tests-alone"],
)
def test_selection_is_pytests_own(place: Path, words: list[str], names: set[str]) -> None:
    done = run(place, "--tokitai-specs", "specs", "--collect-only", "-q", *words)
    assert done.returncode == 0, done.stderr
    assert {line.rpartition("::")[2] for line in done.stdout.splitlines() if "::" in line} == names


def test_a_case_is_run_by_its_node_id_alone(place: Path) -> None:
    done = run(place, "--tokitai-specs", "specs", "--collect-only", "-q", "-k", "plain")
    (node,) = (line for line in done.stdout.splitlines() if "::" in line)
    found = outcomes(place, "--tokitai-specs", "specs", node)
    assert found == {CASE.format("plain", "normal"): "passed"}


@pytest.mark.parametrize("how", ["load", slow("loadgroup")])
def test_xdist_shares_the_cases_out(place: Path, how: str) -> None:
    words = ("--tokitai-specs", "specs", "-n", "2", "--dist", how)
    found = outcomes(place, *words, every_plugin=True)
    assert sorted(found.values()) == ["failure", "passed", "passed"]


CONFTEST = """
def pytest_collection_modifyitems(items):
    for item in items:
        for marker in item.iter_markers("xdist_group"):
            print(f"group: {marker.args[0]}")
"""


def test_cases_that_are_judged_together_are_a_group_of_xdists(tmp_path: Path) -> None:
    folder = project(tmp_path / "project", profiles=TWO)
    (folder / "conftest.py").write_text(CONFTEST)
    done = run(folder, "--tokitai-specs", "specs", "--collect-only", "-q", every_plugin=True)
    groups = re.findall(r"^group: (.*)$", done.stdout, re.MULTILINE)
    assert len(groups) == 4
    assert len(set(groups)) == 2
    # xdist takes what follows the last @ of a name that it has added the group to.
    assert not any("@" in group for group in groups)


@pytest.mark.parametrize(
    ("words", "collected"),
    [([], True), (["tests"], False), slow(["specs"], True), slow(["tests", "specs"], True)],
    ids=str,
)
def test_folders_of_the_configuration_are_collected_as_testpaths_are(
    words: list[str], collected: bool, tmp_path: Path
) -> None:
    folder = project(tmp_path / "project")
    (folder / "pytest.ini").write_text("[pytest]\ntestpaths = tests\ntokitai_specs = specs\n")
    done = run(folder, "--collect-only", "-q", *words)
    assert done.returncode == 0, done.stderr
    assert ("gemm-bw/plain" in done.stdout) is collected


@pytest.mark.parametrize(
    "words",
    [
        [".", "specs"],
        ["tests", "--tokitai-specs", "specs/products.yaml"],
        *map(slow, (["."], [], ["tests"])),
    ],
    ids=str,
)
def test_folders_that_overlap_hide_no_test_and_repeat_none(place: Path, words: list[str]) -> None:
    done = run(place, "--tokitai-specs", "specs", "--collect-only", "-q", *words)
    nodes = [line for line in done.stdout.splitlines() if "::" in line]
    assert len(nodes) == len(set(nodes)) == 3


def test_a_folder_that_pytest_passes_by_is_told(place: Path) -> None:
    words = ["--tokitai-specs", "specs", "-o", "norecursedirs=specs", "--collect-only"]
    done = run(place, ".", *words)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "specs, or pytest is configured to ignore it" in done.stderr
    assert run(place, "tests", *words).returncode == 0  # then it is named as an argument of its own


def test_last_failed_runs_the_case_that_failed(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    words = ["-p", "cacheprovider", "--tokitai-specs", "specs"]
    assert len(outcomes(folder, *words)) == 3
    assert outcomes(folder, *words, "--lf") == {CASE.format("last-term", "normal"): "failure"}


# --- verdicts other than verified and refuted


def test_known_bugs_are_expected_and_their_passing_is_not(tmp_path: Path) -> None:
    bugs = [
        {"reason": "drops a term", "variant": "last-term"},
        {"reason": "was wrong once", "variant": "plain"},
    ]
    folder = project(tmp_path / "project", known_bugs=bugs)
    done = run(folder, "--tokitai-specs", "specs", "-rx")
    assert done.returncode == 1
    assert "1 failed, 1 passed, 1 xfailed" in done.stdout
    assert re.search(r"XFAIL \S+/last-term/\S+ - known bug, refuted: ", done.stdout)
    assert "unexpected-pass: passed, but is listed as a known bug: was wrong once" in done.stdout
    done = run(folder, "--tokitai-specs", "specs", "--runxfail")
    assert "2 failed, 1 passed" in done.stdout
    assert "expected-failure: known bug, refuted: " in done.stdout


def test_a_vacuous_group_fails_as_inconclusive(tmp_path: Path) -> None:
    folder = project(tmp_path / "project", profiles={"constant": {"draw": "constant"}})
    done = run(folder, "--tokitai-specs", "specs", "-k", "plain")
    assert done.returncode == 1
    assert re.search(
        r"^inconclusive: grad_a: no profile here distinguishes ", done.stdout, re.MULTILINE
    )


def test_another_case_of_the_group_settles_one_that_is_run_alone(tmp_path: Path) -> None:
    folder = project(tmp_path / "project", profiles=TWO)
    words = ["--tokitai-specs", "specs", "-k", "plain and constant"]
    assert outcomes(folder, *words) == {CASE.format("plain", "constant"): "passed"}
    # One that is refuted settles nothing.
    words = ["--tokitai-specs", "specs", "-k", "last and constant"]
    done = run(folder, *words)
    assert done.returncode == 1
    assert "passed" not in done.stdout


def test_a_device_that_is_not_there_fails_every_case(place: Path, tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.mkdir()
    done = subprocess.run(
        [*PYTEST, "--tokitai-specs", "specs", "--tokitai-device", "rocm"],
        cwd=place,
        env=environment(PATH=str(path), ROCM_PATH=str(path), HIPCC=""),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if Path("/dev/kfd").exists():
        pytest.skip("this machine has an AMD GPU")
    assert done.returncode == 1
    assert "2 failed, 1 passed" in done.stdout
    assert len(re.findall(r"^inadmissible: ", done.stdout, re.MULTILINE)) == 2
    assert "--tokitai-device (this one is rocm)" in done.stdout


def test_a_source_that_does_not_compile_shows_the_compilers_words(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    text = FAULTS.read_text(encoding="utf-8")
    (folder / "specs" / "broken.hip").write_text(f"{text}\nint broken = missing_name;\n")
    spec = folder / SPEC
    spec.write_text(re.sub(r"source: .*", "source: broken.hip", spec.read_text()))
    done = run(folder, "--tokitai-specs", "specs", "-k", "plain")
    assert done.returncode == 1
    assert re.search(r"^build-failed: ", done.stdout, re.MULTILINE)
    assert "missing_name" in done.stdout
    assert re.search(r"^  full log: /", done.stdout, re.MULTILINE)


# --- what cannot be collected


def test_a_fault_of_a_spec_is_a_collection_error_with_its_place(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    (folder / "specs" / "bad.yaml").write_text("schema: tokitai/spec/v1\nop: bad\nparms: {}\n")
    done = run(folder, "--tokitai-specs", "specs")
    assert done.returncode == 2
    assert "ERROR collecting specs/bad.yaml" in done.stdout
    assert re.search(r"bad\.yaml:3:1: parms: .*\(did you mean params\?", done.stdout)
    assert "Traceback" not in done.stdout
    assert ".py:" not in done.stdout


def test_other_yaml_and_results_of_batches_are_no_specs(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    spec = folder / SPEC
    (folder / "specs" / "compose.yaml").write_text("services: {}\n")
    results = folder / "specs" / "results" / "specs"
    results.mkdir(parents=True)
    (results.parent / "batch.sqlite3").touch()
    (results / "copy.yaml").write_bytes(spec.read_bytes())
    done = run(folder, "--tokitai-specs", "specs", "--collect-only", "-q", "-m", "tokitai")
    assert done.returncode == 0, done.stdout
    nodes = [line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line]
    assert nodes == [SPEC] * 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--tokitai-specs", "nowhere"], "nowhere is not there"),
        (["--tokitai-specs", "tests"], "no spec in "),
        (["--tokitai-specs", "specs", "--tokitai-suite", "nightly"], "has no suite nightly"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_no_case_at_all_is_an_error(place: Path, words: list[str], told: str) -> None:
    done = run(place, *words)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert told in done.stderr


@pytest.mark.slow
def test_a_worker_of_xdist_tells_it_by_a_test_that_fails(place: Path) -> None:
    words = ["--tokitai-specs", "specs", "--tokitai-suite", "nightly", "-n", "1"]
    done = run(place, *words)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "no case was selected: specs/products.yaml: has no suite nightly" in done.stdout


# --- processes, and the price of being installed


@pytest.mark.parametrize("words", [[], slow(["-n", "1"])], ids=["alone", "xdist"])
def test_an_interrupt_leaves_no_process(words: list[str], tmp_path: Path) -> None:
    place = Place.under(tmp_path / "place")
    spec_in(place.work, ["waits"])
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background jobs
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        [*PYTEST, "--tokitai-specs", ".", "--tokitai-device", "cpu", *words],
        cwd=place.work,
        env=environment(**place.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as tool:
        assert eventually((place.work / "running").exists, 60)
        tool.send_signal(signal.SIGINT)
        output, _ = tool.communicate(timeout=30)
    assert tool.returncode == pytest.ExitCode.INTERRUPTED, output
    assert eventually(lambda: not place.processes()), place.processes()
    # pytest keeps the folders of its last runs itself.
    assert not [path for path in place.temporary() if not path.name.startswith("pytest-of-")]


CODE = """
import sys
import pytest
before = set(sys.modules)
class Plugin:
    def pytest_unconfigure(self):
        sys.stderr.write("loaded: " + " ".join(set(sys.modules) - before))
sys.exit(pytest.main(["-p", "tokitai", "tests"], plugins=[Plugin()]))
"""


def test_a_run_without_specs_loads_nothing_of_the_tool(place: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=place,
        env=environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names = done.stderr.partition("loaded: ")[2].split()
    ours = {name for name in names if name.startswith("tokitai_cli")}
    version = {"tokitai_cli.core", "tokitai_cli.core.version"}
    assert ours == {"tokitai_cli", "tokitai_cli.pytest_plugin", *version}
    assert not {"msgspec", "numpy", "yaml"} & set(names)


def test_the_plugin_is_registered() -> None:
    project_file = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    points = project_file["project"]["entry-points"]["pytest11"]
    assert points == {"tokitai": "tokitai_cli.pytest_plugin"}
