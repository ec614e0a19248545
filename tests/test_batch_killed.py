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
from tokitai_cli.batch.folder import BatchFolder, case_file
from tokitai_cli.batch.journal import Journal
from tokitai_cli.errors import StorageError
from tokitai_cli.model.batch import Done

ROOT = Path(__file__).parent.parent


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


def number_id(number: int) -> str:
    return batch_crash.sample(number).id


def check_whole(path: Path, acknowledged: set[int]) -> dict[str, Done]:
    """Check what a killed batch left, and that the next one can go on; returns its newest results."""
    with BatchFolder.open(path) as folder:
        newest = folder.newest()
        missing = {number_id(number) for number in acknowledged} - newest.keys()
        assert not missing
        for done in folder.done():
            if done.id in newest:
                assert folder.result(done).record.shape == {"m": done.number}
        for done in newest.values():
            assert folder.build(done.build).key == done.build
            assert folder.device(done.device).name == "cpu"
        batch_crash.begin(folder)
        folder.keep(list(newest.values()))
        folder.commit([batch_crash.sample(7000)])
    with BatchFolder.read_only(path) as folder:
        assert folder.ignored == 0
        assert {done.id for done in folder.done()} == {*newest, number_id(7000)}
        assert folder.spec(batch_samples.digest_of(batch_samples.SPEC_TEXT))
    assert not list(path.glob("*/.*.tmp"))
    return newest


@pytest.mark.slow
def test_killed_at_each_operation_on_the_disk(tmp_path: Path) -> None:
    with started("points", tmp_path) as process:
        assert process.wait(60) == 0
    told = {int(path.stem): path.read_text().split() for path in tmp_path.glob("*.told")}
    assert told.pop(max(told)) == ["begun", "0", "1", "2", "ended"]
    # Two groups at least were interrupted at every one of their steps.
    assert len(told) > 40
    assert {len(words) for words in told.values()} >= {0, 1, 2, 3, 4}
    for point, words in told.items():
        groups = [int(word) for word in words if word.isdigit()]
        acknowledged = {number for group in groups for number in batch_crash.GROUPS[group]}
        path = tmp_path / str(point)
        lines = list(Journal(path / "journal.jsonl", writable=False).entries())
        # Case 1 is run twice, and may have its new file with its old line: then it counts as unfinished.
        rerun = {1} if groups == [0, 1] else set()
        newest = check_whole(path, acknowledged - rerun)
        if number_id(1) in newest:
            logs = {
                entry.sha256 for entry in lines if isinstance(entry, Done) and entry.number == 1
            }
            assert newest[number_id(1)].sha256 in logs


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
def test_killed_at_any_time(tmp_path: Path) -> None:
    chance = random.Random(6)
    for round_ in range(12):
        path = tmp_path / f"{round_}"
        acknowledged = killed_soon(path, chance.uniform(0.0, 0.15))
        check_whole(path, acknowledged)


@pytest.mark.parametrize("child", [False, True], ids=["alone", "with-a-child"])
def test_the_lock_of_a_killed_batch_is_gone(child: bool, tmp_path: Path) -> None:
    with started("hold", tmp_path, *["child"] * child) as process:
        orphan = int(said(process)) if child else 0
        assert said(process) == "held"
        try:
            with pytest.raises(StorageError, match="is in use by another batch") as caught:
                BatchFolder.open(tmp_path)
            assert f"process {process.pid} on {socket.gethostname()}, since 2" in str(caught.value)
            assert "--out" in caught.value.mend
            # Whoever only reads is not kept out.
            with BatchFolder.read_only(tmp_path) as folder:
                assert folder.begun().total == 100
            process.kill()
            process.wait(10)
            with BatchFolder.open(tmp_path) as folder:
                assert folder.newest() == {}
            if child:
                os.kill(orphan, 0)
        finally:
            if child:
                os.kill(orphan, signal.SIGKILL)


@pytest.mark.parametrize("odd", [-1, 1, 300], ids=["at-its-end", "at-its-start", "within"])
def test_full_in_the_middle_of_the_journal(odd: int, tmp_path: Path) -> None:
    """A limit of the system on the size of files: the write is cut short, and the next one fails."""
    sizes = tmp_path / "sizes"
    with BatchFolder.open(sizes) as folder:
        batch_crash.begin(folder)
        first = (sizes / "journal.jsonl").stat().st_size
        folder.commit([batch_crash.sample(0)])
    line = (sizes / "journal.jsonl").stat().st_size - first
    # So many lines that the files of the cases are below the limit.
    lines = (sizes / "cases" / case_file(number_id(0))).stat().st_size // line + 1
    most = first + lines * line + odd
    path = tmp_path / "full"
    with started("full", path, str(most)) as process:
        output, _ = process.communicate(timeout=30)
    *committed, full, last = output.splitlines()
    assert committed == [str(number) for number in range(lines - (odd < 0))]
    assert "journal.jsonl: cannot be written: File too large (free space there" in full
    assert "--resume" in full
    assert last == "5000"
    with BatchFolder.read_only(path) as folder:
        assert folder.ignored == 0
        assert [done.number for done in folder.done()] == [*map(int, committed), 5000]
        assert len(folder.newest()) == len(committed) + 1


def fill(folder: BatchFolder, committed: list[int]) -> None:
    for number in range(0, 400, 2):
        folder.commit([batch_crash.sample(number), batch_crash.sample(number + 1)])
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
        with BatchFolder.open(path / "out") as folder:
            batch_crash.begin(folder)
            with pytest.raises(StorageError, match="No space left on device") as caught:
                fill(folder, committed)
            assert "free space" in caught.value.mend
            assert "--resume" in caught.value.mend
            assert not list(path.glob("out/*/.*.tmp"))
        assert committed
        with BatchFolder.read_only(path / "out") as folder:
            assert [done.number for done in folder.done()] == committed
            assert len(folder.newest()) == len(committed)
    finally:
        subprocess.run(["umount", str(path)], check=True)
