"""Children: bounded output, whole groups ended, and nothing left when the tool is killed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tokitai_cli.core import process
from tokitai_cli.core.process.captured import Capture

ENVIRONMENT = {"PATH": os.environ.get("PATH", "/usr/bin:/bin")}
ROOT = Path(__file__).resolve().parents[2]


def sh(script: str, *, timeout: float = 20.0, stdin: bytes | None = None) -> process.Completed:
    return process.run(["sh", "-c", script], env=ENVIRONMENT, timeout=timeout, stdin=stdin)


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_output_code_and_input() -> None:
    done = sh("cat; echo err >&2; exit 3", stdin=b"in" * 100_000)
    assert (done.returncode, done.stdout, done.stderr) == (3, "in" * 100_000, "err\n")
    assert not done.truncated
    assert not done.timed_out


def test_input_that_nobody_reads() -> None:
    assert sh("exit 0", stdin=b"x" * 1_000_000).returncode == 0


def test_the_environment_is_whole() -> None:
    names = {line.partition("=")[0] for line in sh("env").stdout.splitlines()}
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {"PATH", "TOKITAI_SUPERVISED"}


def test_a_program_that_takes_long_is_told_of() -> None:
    seconds: list[float] = []
    done = process.run(["sleep", "1.3"], env=ENVIRONMENT, timeout=20, waiting=seconds.append)
    assert (done.returncode, done.timed_out) == (0, False)
    assert len(seconds) == 1
    assert 1 <= seconds[0] < done.seconds
    stopped = process.run(["sleep", "60"], env=ENVIRONMENT, timeout=0.2, waiting=seconds.append)
    assert stopped.timed_out
    assert len(seconds) == 1


def test_a_signal_is_a_negative_code() -> None:
    done = sh("kill -SEGV $$")
    assert done.returncode == -signal.SIGSEGV
    assert process.signal_name(done.returncode) == "SIGSEGV (segmentation fault)"
    assert process.signal_name(3) == "exit code 3"
    assert process.signal_name(-64 - 100) == "signal 164"


@pytest.mark.parametrize("name", ["/nowhere/program", "no-such-program", "/etc/passwd"])
def test_a_program_that_cannot_be_started(name: str) -> None:
    done = process.run([name], env=ENVIRONMENT, timeout=5)
    assert done.returncode == 127
    assert done.stderr.startswith(f"cannot start {name}: ")


def test_a_limit_in_time_ends_the_group(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    done = sh(f"sleep 60 & echo $! > {note}; sleep 60", timeout=0.4)
    assert done.timed_out
    assert done.returncode == -signal.SIGKILL
    assert eventually(lambda: not alive(int(note.read_text())))


def test_a_grandchild_does_not_outlive_its_parent(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    done = sh(f"sleep 60 & echo $! > {note}; echo done")
    assert done.stdout == "done\n"
    assert eventually(lambda: not alive(int(note.read_text())))


def test_a_lot_of_output_keeps_its_ends() -> None:
    done = process.run(
        ["sh", "-c", "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo last"],
        env=ENVIRONMENT,
        timeout=20,
        max_output=1000,
    )
    assert done.truncated
    assert done.stdout.startswith("first\nxxx")
    assert done.stdout.endswith("xxxlast\n")
    assert len(done.stdout) < 1100


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 19, 20, 21, 55, 1000])
@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_capture_keeps_first_and_last(size: int, piece: int) -> None:
    data = bytes(ord("a") + index % 26 for index in range(size))
    capture = Capture(20)
    for start in range(0, size, piece):
        capture.add(data[start : start + piece])
    kept = capture.result()
    assert kept.total_bytes == size
    assert kept.truncated == (size > 20)
    if size <= 20:
        assert kept.text == data.decode()
    else:
        gap = f"\n[... {size - 20} bytes left out ...]\n"
        assert kept.text == data[:10].decode() + gap + data[-10:].decode()


def test_waiting_for_a_descriptor_drains_output() -> None:
    reading, writing = os.pipe()
    script = f"head -c 1000000 /dev/zero; echo answer > /dev/fd/{writing}; sleep 60"
    with process.Child(["sh", "-c", script], env=ENVIRONMENT, pass_fds=[writing]) as child:
        os.close(writing)
        assert child.wait_readable(reading, 20) == "ready"
        assert os.read(reading, 100) == b"answer\n"
        child.drain()
        assert child.captured().total_bytes == 1_000_000
        assert child.wait_readable(reading, 0.05) == "timeout"
        assert not child.wait(0.05)
    assert child.returncode == -signal.SIGKILL
    os.close(reading)


def test_a_child_that_ends_while_waited_for() -> None:
    reading, writing = os.pipe()
    with process.Child(["sh", "-c", "exit 7"], env=ENVIRONMENT) as child:
        assert child.wait_readable(reading, 20) == "exited"
        assert child.wait(1)
        assert child.returncode == 7
    os.close(reading)
    os.close(writing)


def test_killed_by_one_thread_while_another_waits_for_it() -> None:
    """Whoever reaps first, the other one finds an ended child, and no error."""
    for turn in range(40):
        with ThreadPoolExecutor(4) as pool:
            child = process.Child(["sh", "-c", "echo at work; exec sleep 60"], env=os.environ)
            waiting = [pool.submit(child.wait, 20) for _ in range(2)]
            time.sleep(turn % 4 * 1e-3)
            killing = [pool.submit(child.kill) for _ in range(2)]
            assert [one.result() for one in waiting] == [True, True]
            assert [one.result() for one in killing] == [None, None]
            assert child.returncode == -signal.SIGKILL


def test_without_process_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    assert sh("sleep 0.1; exit 4").returncode == 4
    reading, writing = os.pipe()
    with process.Child(["sh", "-c", "exit 7"], env=ENVIRONMENT) as child:
        assert child.wait_readable(reading, 20) == "exited"
    os.close(reading)
    os.close(writing)


def test_temporary_folders_and_the_end_of_all(tmp_path: Path) -> None:
    with process.temporary_folder(tmp_path) as folder:
        (folder / "file").write_text("x")
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()
    kept = process.make_temporary_folder(tmp_path)
    child = process.Child(["sleep", "60"], env=ENVIRONMENT)
    process.terminate_all()
    assert child.returncode == -signal.SIGKILL
    assert not kept.exists()
    with pytest.raises(FileNotFoundError):
        process.make_temporary_folder(tmp_path / "missing")
    with pytest.raises(OSError, match="temporary folders are not made in '/'"):
        process.make_temporary_folder(Path("/"))


def test_a_killed_supervisor_is_replaced(tmp_path: Path) -> None:
    code = """
    import os, sys, time
    from tokitai_cli.core import process
    from tokitai_cli.core.process.supervisor import supervisor
    child = process.Child(["sleep", "60"], env={"PATH": os.environ["PATH"]})
    os.kill(supervisor._process.pid, 9)
    supervisor._process.wait()
    folder = process.make_temporary_folder()
    print(child.pid, folder, flush=True)
    time.sleep(60)
    """
    with tool(code) as (started, words):
        started.kill()
        assert eventually(lambda: not alive(int(words[0])))
        assert eventually(lambda: not Path(words[1]).exists())


def test_a_tool_that_dies_before_it_says_anything_ends_no_process_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor looks for processes that carry the tool's mark; an empty one is in all of them."""
    from tokitai_cli.core.process import supervisor

    started: list[list[str]] = []

    def start(argv: list[str], **_: object) -> None:
        started.append(argv)
        raise MemoryError  # stands for the death of the tool

    monkeypatch.setattr(subprocess, "Popen", start)
    with pytest.raises(MemoryError):
        supervisor.Supervisor().mark()
    monkeypatch.undo()
    searched = tmp_path / "searched"
    (tmp_path / "grep").write_text(f'#!/bin/sh\necho "$2" >> {searched}\n')
    (tmp_path / "grep").chmod(0o700)
    subprocess.run(
        started[0], stdin=subprocess.DEVNULL, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=True
    )
    assert re.fullmatch(r"(TOKITAI_SUPERVISED=[0-9a-f]{32}\n){2}", searched.read_text())


@contextlib.contextmanager
def tool(code: str) -> Iterator[tuple[subprocess.Popen[bytes], list[str]]]:
    """A Python process that stands for the tool; yields it and the words of its first line."""
    started = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd="/",
    )
    try:
        assert started.stdout is not None
        yield started, started.stdout.readline().decode().split()
    finally:
        started.kill()
        started.wait()
        assert started.stdout is not None
        started.stdout.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_tool_that_dies_leaves_nothing(how: signal.Signals, tmp_path: Path) -> None:
    """The child, its own child, one that left the group, and the folder."""
    code = f"""
    import os, signal, time
    from pathlib import Path
    from tokitai_cli.core import process
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it,
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup this one
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT, signal.SIGHUP])
    folder = process.make_temporary_folder(Path({str(tmp_path)!r}))
    (folder / "sub").mkdir()
    script = "trap '' TERM INT HUP; sleep 60 & echo $!; setsid sleep 60 & echo $!; echo; sleep 60"
    child = process.Child(["sh", "-c", script], env={{"PATH": os.environ["PATH"]}})
    while child.captured().text.count("\\n") < 3:
        child.drain()
    print(folder, child.pid, *child.captured().text.split(), flush=True)
    time.sleep(60)
    """
    with tool(code) as (started, words):
        folder, pids = Path(words[0]), [int(word) for word in words[1:]]
        assert len(pids) == 3
        assert folder.exists()
        started.send_signal(how)
        started.wait(timeout=20)
        for pid in pids:
            assert eventually(lambda pid=pid: not alive(pid)), pid  # type: ignore[misc]
        assert eventually(lambda: not folder.exists())


def test_a_tool_killed_while_it_runs_a_compiler(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    code = f"""
    import os
    from tokitai_cli.core import process
    print("up", flush=True)
    script = "sleep 60 & echo $$ $! > {note}.new; mv {note}.new {note}; wait"
    process.run(["sh", "-c", script], env={{"PATH": os.environ["PATH"]}}, timeout=60)
    """
    with tool(code) as (started, _):
        assert eventually(note.exists)
        started.kill()
        for pid in map(int, note.read_text().split()):
            assert eventually(lambda pid=pid: not alive(pid)), pid  # type: ignore[misc]


def test_a_tool_that_ends_well_leaves_its_supervisor_to_end() -> None:
    code = """
    import os
    from tokitai_cli.core import process
    from tokitai_cli.core.process.supervisor import supervisor
    process.run(["true"], env={"PATH": os.environ["PATH"]}, timeout=5)
    print(supervisor._process.pid, flush=True)
    """
    with tool(code) as (started, words):
        assert started.wait(timeout=20) == 0
        assert eventually(lambda: not alive(int(words[0])))


def test_a_child_that_is_within_exec_does_not_outlive_an_orderly_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its environment, by which it is known, is empty for a moment: it is looked for once more."""
    from tokitai_cli.core.process import supervisor

    looked = tmp_path / "looked"
    grep = f'#!/bin/sh\n[ -e {looked} ] || {{ : > {looked}; exit 1; }}\nexec /usr/bin/grep "$@"\n'
    (tmp_path / "grep").write_text(grep)  # finds nothing the first time
    (tmp_path / "grep").chmod(0o700)
    script = supervisor._SCRIPT.replace("trap", f"PATH={tmp_path}:$PATH\ntrap", 1)
    code = f"""
    import os
    from tokitai_cli.core import process
    from tokitai_cli.core.process import supervisor
    supervisor._SCRIPT = {script!r}
    script = "setsid sleep 60 & echo $!; wait"
    child = process.Child(["sh", "-c", script], env={{"PATH": os.environ["PATH"]}})
    while not child.captured().text.endswith("\\n"):
        child.drain()
    pid = int(child.captured().text)
    while os.getpgid(pid) == child.pid:
        pass
    print(pid, flush=True)
    """
    with tool(code) as (started, words):
        assert started.wait(timeout=20) == 0
        assert eventually(lambda: not alive(int(words[0])))
        assert looked.exists()


def test_a_child_that_cannot_be_killed_is_left_in_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tokitai_cli.core.process import child as child_module

    monkeypatch.setattr(child_module, "kill_group", lambda group: None)
    monkeypatch.setattr(child_module, "_KILL_SECONDS", 0.2)
    child = process.Child(["/bin/sleep", "60"], env={})
    start = time.monotonic()
    child.kill()
    try:
        assert time.monotonic() - start < 5
        assert child.left_running
        assert child.returncode == -signal.SIGKILL
        assert os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        assert child.wait(0.1)  # nobody waits for it any more
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        os.waitpid(child.pid, 0)
