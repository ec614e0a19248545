"""Parts of computations by forked processes: order, errors, and their end."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from multiprocessing import connection
from pathlib import Path

import numpy as np
import pytest

from tests.core.test_process import alive, eventually
from tokitai_cli.core import parallel, peak_memory, workers
from tokitai_cli.core.errors import NotRunError, SpecError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _may_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever threads pytest has."""
    monkeypatch.setattr(workers, "_may_fork", lambda: True)


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 200])
def test_results_come_in_the_order_of_the_parts(threads: int, count: int) -> None:
    def work(part: int) -> tuple[int, int]:
        time.sleep(0.001 * (part % 3))
        return part * part, os.getpid()

    with parallel.sharing(threads), workers.Workers() as some:
        squares = some.work(work)
        some.start()
        assert some.forked == (threads > 1)
        for _ in range(2):
            found = list(squares.in_order(range(count)))
            assert [square for square, _ in found] == [n * n for n in range(count)]
            assert threads == 1 or os.getpid() not in {pid for _, pid in found}


def test_arrays_are_shared_and_what_is_told_is_known() -> None:
    with parallel.sharing(3), workers.Workers() as some:
        array, told = some.floats(40), list[int]()

        def put(part: int) -> int:
            array[part] = part + told[-1]
            return parallel.threads()

        tell, work = some.work(told.append), some.work(put)
        some.start()
        for offset in (100, 200):
            tell.everywhere(offset)
            assert list(work.in_order(range(40))) == [1] * 40
            assert array.tolist() == [offset + part for part in range(40)]


@pytest.mark.parametrize("seconds", [0.0, 0.5])
def test_no_more_parts_are_begun_than_workers_have_at_hand(seconds: float) -> None:
    """However long the first one takes."""
    begun = list[int]()

    def parts() -> Iterator[int]:
        for part in range(100):
            begun.append(part)
            yield part

    def work(part: int) -> int:
        time.sleep(0.0 if part else seconds)
        return part

    with parallel.sharing(3), workers.Workers() as some:
        same: workers.Work[int, int] = some.work(work)
        some.start()
        results = same.in_order(parts())
        assert next(results) == 0
        assert len(begun) <= 14
        assert list(results) == list(range(1, 100))


class _OfItsOwn(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def test_what_work_raises_is_raised_in_its_place() -> None:
    def work(part: int) -> int:
        if part == 5:
            raise SpecError("five", hint="take another")
        if part == 7:
            raise _OfItsOwn(1, 2)
        return part

    with parallel.sharing(4), workers.Workers() as some:
        shared = some.work(work)
        some.start()
        results = shared.in_order(range(1000))
        assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
        with pytest.raises(SpecError, match=r"five \(take another\)"):
            next(results)
        # As itself where something has taught pickle to make it (tblib, which dask imports).
        with pytest.raises((RuntimeError, _OfItsOwn), match="1 and 2"):
            list(shared.in_order([7]))
        assert list(shared.in_order([1, 2])) == [1, 2]


def test_a_killed_worker_is_told_and_none_is_left() -> None:
    def work(part: int) -> int:
        if part == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        return os.getpid()

    pids = set[int]()

    def all_of() -> None:
        with parallel.sharing(3), workers.Workers() as some:
            shared = some.work(work)
            some.start()
            pids.update(shared.in_order([1, 2, 3]))
            list(shared.in_order(range(100)))

    with pytest.raises(NotRunError, match=r"ended too early \(signal 9\)"):
        all_of()
    assert len(pids) >= 2
    assert not any(map(alive, pids))


@pytest.mark.parametrize("files", range(4))
def test_without_files_there_are_fewer_workers(monkeypatch: pytest.MonkeyPatch, files: int) -> None:
    pipe, left = connection.Pipe, iter(range(files))

    def made() -> tuple[connection.Connection, connection.Connection]:
        if next(left, None) is None:
            raise OSError(errno.EMFILE, "Too many open files")
        return pipe()

    monkeypatch.setattr(connection, "Pipe", made)
    with parallel.sharing(3), workers.Workers() as some:
        shared: workers.Work[int, tuple[int, int]] = some.work(lambda part: (part, os.getpid()))
        some.start()
        found = list(shared.in_order(range(50)))
    assert [part for part, _ in found] == list(range(50))
    assert len({pid for _, pid in found}) == max(files, 1)
    assert (os.getpid() in {pid for _, pid in found}) == (files == 0)


def test_an_interrupt_while_workers_are_forked_is_raised_behind_it() -> None:
    # A hook of a fork, which Python runs in the process that forked, prints what is raised in it.
    text = """
        import os, signal
        from tokitai_cli.core import parallel, workers
        os.register_at_fork(after_in_parent=lambda: (signal.raise_signal(signal.SIGINT), len("")))
        try:
            with parallel.sharing(3), workers.Workers() as some:
                some.work(int)
                some.start()
                print("went on")
        except KeyboardInterrupt:
            print("interrupted")
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            print("no worker is left")
        """
    command = [sys.executable, "-c", textwrap.dedent(text)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == ["interrupted", "no worker is left"]
    assert not done.stderr


def test_memory_of_workers_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peak_memory, "_state", {"with workers": 0})
    held = list[np.ndarray]()

    def hold(_: int) -> None:
        held.append(np.ones(8 << 20, np.uint8))

    before = peak_memory.peak_resident()
    with parallel.sharing(2), workers.Workers() as some:
        work = some.work(hold)
        some.start()
        list(work.in_order(range(8)))
    assert 64 << 20 <= peak_memory.peak_resident() - before <= 256 << 20


def test_workers_end_with_the_tool(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    text = f"""
        import os, time
        from pathlib import Path
        from tokitai_cli.core import parallel, workers
        def work(part):
            with open({str(file)!r}, "a") as out:
                out.write(f"{{os.getpid()}}\\n")
            time.sleep(0.2)
        with parallel.sharing(3), workers.Workers() as some:
            shared = some.work(work)
            some.start()
            list(shared.in_order(range(1000)))
        """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(text)], cwd=ROOT) as tool:
        assert eventually(lambda: file.exists() and len(set(file.read_text().split())) == 3, 60)
        tool.kill()
    assert eventually(lambda: not any(alive(int(pid)) for pid in set(file.read_text().split())))
