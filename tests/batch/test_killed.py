"""Batches that were killed while they wrote: nothing acknowledged is lost, nothing is half there."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import batch_crash, batch_samples
from tests.batch.test_storage import crash, disk_faults, memory
from tokitai_cli.batch.store.database import Store
from tokitai_cli.batch.store.disk import FILE
from tokitai_cli.core.errors import StorageError

__all__ = ["disk_faults", "memory"]

ROOT = Path(__file__).parents[2]


@contextmanager
def started(*words: str | Path) -> Iterator[subprocess.Popen[str]]:
    """`tests.batch_crash` at work; killed at the end if it still is."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.batch_crash", *map(str, words)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def check_whole(path: Path, acknowledged: set[int]) -> dict[int, str]:
    """Check what a killed batch left, and that the next one can go on; returns the logs of its cases."""
    with Store.open(path) as store:
        newest = list(store.newest())
        assert acknowledged <= {done.number for done in newest}
        logs = {}
        for done in newest:
            assert store.build(done.build).key == done.build
            assert store.device(done.device_record).name == "cpu"
            found, result = store.result(done.number)
            assert (found, result.record.shape) == (done, {"m": done.number})
            logs[done.number] = result.log
        batch_crash.begin(store)
        store.keep(newest)
        store.commit([batch_crash.sample(7000)])
    with Store.read(path) as store:
        assert store.damaged == 0
        assert {done.number for done in store.done()} == {*logs, 7000}
        assert store.spec(batch_samples.digest_of(batch_samples.SPEC_TEXT))
    return logs


def test_killed_at_each_operation_on_the_disk(memory: Path, disk_faults: dict[str, str]) -> None:
    crash(disk_faults, "points", memory)
    told = {int(path.stem): path.read_text().split() for path in memory.glob("*.told")}
    assert told.pop(max(told)) == ["begun", "0", "1", "2", "ended"]
    # Every group was interrupted at every one of its steps.
    assert len(told) > 100
    assert {len(words) for words in told.values()} == {0, 1, 2, 3, 4}
    for point, words in told.items():
        groups = [int(word) for word in words if word.isdigit()]
        logs = check_whole(
            memory / str(point), {n for group in groups for n in batch_crash.GROUPS[group]}
        )
        # Groups whole or not at all; case 1 is run twice, and is one or the other.
        assert set(logs) in [set(), {0, 1}, {0, 1, 2}, {0, 1, 2, 3}]
        assert logs.get(1, "") == ("2" if 3 in logs else "0" if logs else "")


def killed_soon(path: Path, seconds: float) -> set[int]:
    """Run a batch, kill it `seconds` after it has begun; the numbers that it acknowledged."""
    with started("loop", path) as process:
        assert said(process) == "begun"
        time.sleep(seconds)
        process.kill()
        assert process.stdout is not None
        lines = [line for line in process.stdout.read().splitlines(keepends=True) if "\n" in line]
    return {int(word) for line in lines for word in line.split()}


@pytest.mark.slow
def test_killed_at_any_time(memory: Path) -> None:
    chance = random.Random(6)
    for round_ in range(12):
        path = memory / f"{round_}"
        acknowledged = killed_soon(path, chance.uniform(0.0, 0.15))
        check_whole(path, acknowledged)


@pytest.mark.parametrize("child", [False, True], ids=["alone", "with-a-child"])
def test_the_lock_of_a_killed_batch_is_gone(child: bool, tmp_path: Path) -> None:
    with started("hold", tmp_path, *["child"] * child) as process:
        orphan = int(said(process)) if child else 0
        assert said(process) == "held"
        try:
            with pytest.raises(StorageError, match="is in use by another batch") as caught:
                Store.open(tmp_path)
            assert f"process {process.pid} on {socket.gethostname()}, since 2" in str(caught.value)
            assert "--out" in caught.value.hint
            # Whoever only reads is not kept out.
            with Store.read(tmp_path) as store:
                assert store.begun().total == 100
            process.kill()
            process.wait(10)
            with Store.open(tmp_path) as store:
                assert [*store.newest()] == []
            if child:
                os.kill(orphan, 0)
        finally:
            if child:
                os.kill(orphan, signal.SIGKILL)


@pytest.mark.parametrize("most", [30_000, 40_959, 40_961, 90_000])
def test_a_limit_on_the_size_of_files(most: int, tmp_path: Path) -> None:
    """A limit of the system: the write is cut short, and the next one fails."""
    with started("full", tmp_path, str(most)) as process:
        output, _ = process.communicate(timeout=30)
    *committed, full, last = output.splitlines()
    assert committed == [str(number) for number in range(len(committed))]
    assert f"{FILE}: cannot be written: File too large (free space there" in full
    assert "--resume" in full
    assert last == "5000"
    with Store.read(tmp_path) as store:
        assert [done.number for done in store.done()] == [*map(int, committed), 5000]
        assert [*store.newest()] == [*store.done()]


def fill(store: Store, committed: list[int]) -> None:
    for number in range(0, 400, 2):
        store.commit([batch_crash.sample(number), batch_crash.sample(number + 1)])
        committed += [number, number + 1]


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A real file system without room left: either all of a group is there or nothing of it."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a file system")
    try:
        committed: list[int] = []
        with Store.open(path / "out") as store:
            batch_crash.begin(store)
            with pytest.raises(StorageError, match="No space left on device") as caught:
                fill(store, committed)
            assert "free space" in caught.value.hint
            assert "--resume" in caught.value.hint
        assert committed
        with Store.read(path / "out") as store:
            assert [done.number for done in store.done()] == committed
            assert [*store.newest()] == [*store.done()]
        assert not list(path.glob("out/.*"))
    finally:
        subprocess.run(["umount", str(path)], check=True)
