"""The command as it is installed: what meets Python while it starts is never a verdict."""

from __future__ import annotations

import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
import venv
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import tokitai_cli
from tokitai_cli.cli import main

Handler = Callable[[int, FrameType | None], Any] | int
LAUNCHER = Path(main.__file__).with_name("launcher.sh")


@pytest.fixture
def command(tmp_path: Path) -> Path:
    """The launcher beside an interpreter, as in the folder of an environment."""
    folder = tmp_path / "bin"
    folder.mkdir()
    python = folder / "python3"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', "utf-8")
    python.chmod(0o755)
    shutil.copy(LAUNCHER, folder / "tokitai")
    (folder / "tokitai").chmod(0o755)
    return folder / "tokitai"


def done(
    *words: str | Path, most: tuple[int, int] | None = None
) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        if most is not None:
            resource.setrlimit(most[0], (most[1], most[1]))

    return subprocess.run(
        words, preexec_fn=limit, capture_output=True, text=True, timeout=60, check=False
    )


def started(command: Path, on_interrupt: Handler) -> subprocess.Popen[str]:
    """The command at work, which inherits whether interrupts are ignored."""
    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        return subprocess.Popen(
            [command, "show", "softmax"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_was_typed_arrives(command: Path, tmp_path: Path) -> None:
    assert done(command, "--version").stdout.split() == ["tokitai", tokitai_cli.__version__]
    link = tmp_path / "a link"
    link.symlink_to(command)
    told = done(link, "show", "no 'such' $op *")
    assert told.returncode == 2
    assert "no 'such' $op *" in told.stderr


def test_it_finds_its_interpreter_by_a_link_to_its_folder_and_without_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "own")
    folder = tmp_path / "own" / "bin"
    shutil.copy(LAUNCHER, folder / "tokitai")
    (folder / "tokitai").chmod(0o755)
    packages = next((tmp_path / "own" / "lib").glob("python*/site-packages"))
    (packages / "seen.pth").write_text("\n".join(entry for entry in sys.path if entry), "utf-8")
    (tmp_path / "a link").symlink_to(folder)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert done(tmp_path / "a link" / "tokitai", "--version").returncode == 0
    monkeypatch.chdir(folder)
    assert done("/bin/sh", "tokitai", "--version").returncode == 0


def test_an_interrupt_while_python_starts_ends_in_one_line(command: Path) -> None:
    codes: Counter[int] = Counter()
    for milliseconds in range(0, 120, 3):
        with started(command, signal.default_int_handler) as tool:
            time.sleep(milliseconds / 1000)
            tool.send_signal(signal.SIGINT)
            said = tool.communicate()[1]
        codes[tool.returncode] += 1
        # The shell itself had not begun, or the work was done.
        assert said == ("interrupted\n" if tool.returncode == 130 else ""), milliseconds
    assert codes[130] > 5
    assert set(codes) <= {130, -signal.SIGINT, 0}


def test_an_interrupt_that_is_ignored_stays_so(command: Path) -> None:
    with started(command, signal.SIG_IGN) as tool:
        time.sleep(0.03)
        tool.send_signal(signal.SIGINT)
    assert tool.returncode == 0


@pytest.mark.parametrize("kind", [resource.RLIMIT_AS, resource.RLIMIT_DATA])
@pytest.mark.parametrize("mebibytes", [1, 6, 12, 20, 40, 70])
def test_too_little_memory_to_start_is_never_refuted(
    kind: int, mebibytes: int, command: Path
) -> None:
    told = done(command, "show", "softmax", most=(kind, mebibytes << 20))
    assert told.returncode != 1
    assert "Traceback" not in told.stderr
    assert told.returncode == 0 or told.stderr


@pytest.mark.parametrize("files", [3, 4, 8, 11, 12, 16])
def test_too_few_files_to_start_are_never_refuted(files: int, command: Path) -> None:
    told = done(command, "show", "softmax", most=(resource.RLIMIT_NOFILE, files))
    assert told.returncode != 1
    assert told.returncode == 0 or told.stderr


def test_an_interpreter_without_the_tool_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    venv.create(tmp_path / "bare")
    place = shutil.copy(LAUNCHER, tmp_path / "bare" / "bin" / "tokitai")
    told = done("/bin/sh", place, "--version")
    assert told.returncode == 70
    assert "cannot load tokitai: ModuleNotFoundError\n  PYTHON -m tokitai_cli" in told.stderr
