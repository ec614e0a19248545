"""How the tool ends where the machine has no more, or where nothing sensible was named."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.runs import tokitai
from tests.spec_example import write_example
from tokitai_cli.batch.index.index_files import CASES, read_cases
from tokitai_cli.build import cache, cache_store
from tokitai_cli.cli.main import main
from tokitai_cli.core.errors import EvidenceError, OracleError, lack_of
from tokitai_cli.core.process import Child
from tokitai_cli.evidence import read
from tokitai_cli.oracles.user import user_oracle
from tokitai_cli.run import inventory

LONG = "9" * 5000
ONE = ("--n", "100", "--profile", "normal", "--device", "cpu", "-q")


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example, in the folder that is the working one; faults are kept there too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return write_example(tmp_path)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with its artifact in the cache: a compiler needs more files and memory."""
    path = write_example(tmp_path_factory.mktemp("built"))
    assert tokitai("verify", path, *ONE, "--build-only", cwd=path.parent).returncode == 0
    return path


def limited(what: int, most: int, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """A command line under a resource limit; bytecode cut off by it would be left in the checkout."""
    return subprocess.run(
        [sys.executable, "-m", "tokitai_cli", *map(str, words)],
        preexec_fn=lambda: resource.setrlimit(what, (most, most)),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    "words",
    [
        ("verify", LONG),
        ("verify", f"{LONG}.yaml"),
        ("show", f"/{LONG}/spec.yaml"),
        ("report", LONG),
        ("merge", LONG),
        ("batch", LONG, "--device", "cpu"),
        ("batch", "spec.yaml", "--device", "cpu", "--out", LONG),
        ("batch", "spec.yaml", "-j", LONG),
        ("batch", "spec.yaml", "--gpu", LONG),
        ("batch", "spec.yaml", "--shard", f"1/{LONG}"),
        *(
            ("verify", "spec.yaml", *ONE, f"--{name}", LONG)
            for name in ("n", "seed", "repeat", "warmup", "timeout", "gpu", "warp-size")
        ),
        *(("verify", "spec.yaml", *ONE, f"--{name}", LONG) for name in ("name", "out", "arch")),
        ("verify", "spec.yaml", *ONE, "--name", "a\nb"),
        ("verify", "spec.yaml", *ONE, "--name", "a\u202eb"),
        ("verify", "spec.yaml", *ONE, "--out", "a\nb"),
        ("verify", "line\nbreak/spec.yaml", *ONE),
        ("batch", "line\nbreak", "--device", "cpu"),
        ("report", "pipe"),
        ("report", "/dev/zero"),
        ("verify", "pipe", *ONE),
    ],
    ids=lambda words: " ".join(words).replace("\n", "|")[:60],
)
def test_what_can_be_no_number_name_or_path_is_refused(
    words: tuple[str, ...],
    spec: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)
    if "line\nbreak" in words[1]:
        write_example(spec.parent / "line\nbreak")
    os.mkfifo("pipe")
    with pytest.raises(SystemExit) as end:
        main(list(words))
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert not Path("reports").exists()


@pytest.mark.parametrize("verb", ["verify", "batch"])
def test_a_working_folder_that_is_gone_is_said(verb: str, spec: Path) -> None:
    gone = spec.parent / "gone"
    gone.mkdir()
    code = (
        "import os, sys; os.rmdir(os.getcwd()); from tokitai_cli.cli.main import main;"
        "main(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, verb, spec, "--device", "cpu"],
        cwd=gone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: the working folder no longer exists\n")


@pytest.mark.parametrize("folder", ["/", "line\nbreak"])
def test_a_tmpdir_that_cannot_be_used_is_said(folder: str, spec: Path) -> None:
    Path("line\nbreak").mkdir()
    done = tokitai("verify", spec, *ONE, env={"TMPDIR": folder, "TOKITAI_CACHE": "/proc/nope"})
    assert done.returncode == 2
    assert "no folder for temporary files: temporary folders are not made in" in done.stderr


@pytest.mark.parametrize("words", [("doctor",), ("verify", "spec.yaml", *ONE), ("list",)])
def test_a_machine_that_is_read_only_is_told_in_one_line(
    words: tuple[str, ...],
    spec: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse() -> str:
        raise FileNotFoundError(2, "No usable temporary directory")

    def broken() -> None:
        raise TypeError("of the tool itself")

    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setenv("TOKITAI_CACHE", "/proc/nope")
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nope")
    monkeypatch.setattr(tempfile, "gettempdir", refuse)
    monkeypatch.setattr(inventory, "builtin_specs", broken)
    monkeypatch.setattr(cache_store, "_opened", {})
    with pytest.raises(SystemExit) as end:
        main(list(words))
    shown = capsys.readouterr().err
    if words == ("list",):  # a fault, and no place for its traceback
        assert end.value.code == 70
        assert shown == "internal error: TypeError: of the tool itself\n"
    else:
        assert end.value.code == 2
        assert "no folder for temporary files: No usable temporary directory" in shown


def test_a_cache_that_cannot_be_used_is_not_needed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOKITAI_CACHE", str(tmp_path / "line\nbreak"))
    found = cache.location()
    assert "cannot be used (temporary folders are not made in" in found.note
    assert found.folder.is_dir()


# --- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [5, 8, 11, 14])
def test_too_few_files_are_not_blamed_on_the_kernel(most: int, spec: Path, built: Path) -> None:
    done = limited(resource.RLIMIT_NOFILE, most, "verify", built, *ONE)
    assert done.returncode == 8
    assert "Too many open files" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("mebibytes", [20, 30, 60, 100, 137, 146])
def test_too_little_memory_is_never_refuted(mebibytes: int, spec: Path, built: Path) -> None:
    done = limited(resource.RLIMIT_AS, mebibytes << 20, "verify", built, *ONE)
    if done.returncode == 1 and "<frozen " in done.stderr:
        pytest.skip("Python itself cannot start in so little memory here")
    assert done.returncode in {2, 8, 70}  # and not 130: OpenBLAS interrupts where it gets no thread
    assert done.stderr or "memory" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("ctypes.CDLL(None).exit(1)", 70),  # as OpenBLAS does without memory
        ("raise KeyboardInterrupt", 130),
        ("return []", 0),
    ],
)
def test_a_library_that_ends_the_process_is_never_refuted(what: str, code: int) -> None:
    """And the exit handlers of Python run nevertheless, where it is the tool that ends."""
    program = (
        "import atexit, ctypes, sys\n"
        "from tokitai_cli.cli.main import main\n"
        "from tokitai_cli.run import inventory\n"
        "atexit.register(print, 'handled')\n"
        f"def specs():\n    {what}\n"
        "inventory.builtin_specs = specs\n"
        "sys.argv = ['tokitai', 'list', '--json']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert done.stdout.split() == ([] if code == 70 else ["handled"] if code else ["[]", "handled"])


def test_an_interrupt_that_openblas_makes_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("tokitai_cli.cli.app.build", interrupt)
    monkeypatch.setattr("threading.Thread.start", refuse)
    with pytest.raises(SystemExit) as end:
        main(["list"])
    assert end.value.code == 2
    assert capsys.readouterr().err == "error: can't start new thread\n"


def test_evidence_that_cannot_be_written_anywhere_is_said(spec: Path, built: Path) -> None:
    done = limited(resource.RLIMIT_FSIZE, 4096, "verify", built, *ONE)
    assert done.returncode == 2
    assert "vector-add.json: cannot be written: File too large" in done.stderr


def test_no_process_to_be_had_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(Exception, match="no process can be started: Resource temporarily") as error:
        Child(["true"], env={})
    assert error.value.exit_code == 8  # type: ignore[attr-defined]


def test_what_a_machine_lacks_is_found_behind_other_errors() -> None:
    outer = ValueError("the module cannot be read")
    outer.__cause__ = OSError(24, "Too many open files", "/a")
    assert lack_of(outer) == "/a: Too many open files"
    assert lack_of(MemoryError()) == "there is not enough memory"
    assert lack_of(PermissionError(13, "Permission denied", "/a")) == "/a: Permission denied"
    assert lack_of(FileNotFoundError(2, "No such file")) == ""
    assert lack_of(TypeError()) == ""


# --- reading of evidence -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["tokitai/evidence/v", "tokitai/batch/v"], ids=["evidence", "index"]
)
def test_a_version_of_many_digits_is_a_newer_one(kind: str, spec: Path) -> None:
    Path("e.json").write_text(json.dumps({"schema": kind + LONG}))
    done = tokitai("report", "e.json")
    assert done.returncode == 2
    assert "has the newer schema" in done.stderr


def test_a_key_that_stands_twice_behind_many_is_found_at_once(tmp_path: Path) -> None:
    keys = ",".join(f'"k{number}": 0' for number in range(200_000))
    path = tmp_path / "e.json"
    path.write_text(f'{{{keys}, "z": 1, "z": 2}}')
    start = time.process_time()
    with pytest.raises(EvidenceError, match="the key 'z' occurs twice in one object"):
        read(path)
    assert time.process_time() - start < 5  # 42 s for 60,000 where each is counted


def test_evidence_larger_than_memory_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    with path.open("wb") as file:
        file.truncate(1 << 42)
    with pytest.raises(EvidenceError, match="cannot be read: it is larger than"):
        read(path)


def test_a_pipe_for_the_cases_of_an_index_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / CASES)
    index: Any = SimpleNamespace(cases_file=CASES, counts={})
    with pytest.raises(EvidenceError, match=f"{CASES}: cannot be read: it is not a regular file"):
        list(read_cases(index, tmp_path / "index.json"))


@pytest.mark.parametrize(
    "body",
    ["raise ValueError('x\\n' * 10_000_000)", "return {'k' * 10_000_000: 1}"],
    ids=["raised", "named"],
)
def test_what_an_oracle_says_is_told_in_part(body: str, tmp_path: Path) -> None:
    from tokitai_cli import spec as spec_stage
    from tokitai_cli.spec import plan

    text = f"def vector_add(params, inputs, scalars):\n    {body}\n"
    loaded = spec_stage.load(write_example(tmp_path, oracle=text))
    case = plan.case_of(loaded, "main", {"n": 4}, "normal", 0)
    arrays = {name: np.zeros(4, np.float32) for name in ("a", "b")}
    with pytest.raises(OracleError, match=r"characters left out") as caught:
        user_oracle.expect(case, arrays)
    assert len(str(caught.value)) < 10_000
