"""Folders that cannot serve a batch, and disks that fail it: told clearly, with nothing damaged."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import batch_samples as batches
from tests.batch.test_store import batch, newest
from tokitai_cli.batch.store import disk
from tokitai_cli.batch.store.database import Store
from tokitai_cli.batch.store.disk import FILE
from tokitai_cli.core.errors import StorageError

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def disk_faults(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment that preloads disk_faults.c."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no compiler")
    library = tmp_path_factory.mktemp("faults") / "disk_faults.so"
    source = Path(__file__).parents[1] / "disk_faults.c"
    words = [compiler, "-x", "c", "-shared", "-fPIC", "-O1", str(source), "-o", str(library)]
    subprocess.run([*words, "-ldl"], check=True)
    return {**os.environ, "LD_PRELOAD": str(library)}


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder whose syncs cost nothing: what a kill leaves does not depend on them."""
    place = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=place if place.is_dir() else None) as name:
        yield Path(name)


def crash(env: dict[str, str], *words: str | Path) -> str:
    """What `tests.batch_crash` prints."""
    argv = [sys.executable, "-m", "tests.batch_crash", *map(str, words)]
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_batch_at_a_time(tmp_path: Path) -> None:
    with Store.open(tmp_path):
        for _ in range(2):
            with pytest.raises(
                StorageError, match=f"in use by another batch: process {os.getpid()} on"
            ):
                Store.open(tmp_path)
    with Store.open(tmp_path):
        pass


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks(
    code: int, tmp_path: Path, disk_faults: dict[str, str]
) -> None:
    (told,) = crash(disk_faults, "lockless", tmp_path, str(code)).splitlines()
    assert told.startswith(str(tmp_path))
    assert "cannot be locked" in told
    assert "local disk" in told


def test_a_reader_is_not_kept_out_and_keeps_nobody_out(tmp_path: Path) -> None:
    with Store.open(batch(tmp_path, 0)) as store, Store.read(tmp_path) as reader:
        assert [done.number for done in reader.done()] == [0]
        reader.__exit__(None)
        store.end(batches.ended())
    with Store.read(tmp_path) as reader:
        assert reader.ended() == batches.ended()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (sqlite3.SQLITE_IOERR_LOCK, "cannot be locked .*local disk"),
        (sqlite3.SQLITE_PROTOCOL, "cannot be locked .*local disk"),
        (sqlite3.SQLITE_BUSY, "is read by another program"),
        (sqlite3.SQLITE_READONLY_ROLLBACK, "was killed while it wrote"),
        (sqlite3.SQLITE_IOERR_SHORT_READ, "cannot be read: odd words"),
    ],
)
def test_words_of_the_database(code: int, words: str, tmp_path: Path) -> None:
    error = sqlite3.OperationalError("odd words")
    error.sqlite_errorcode = code
    with pytest.raises(StorageError, match=words), disk.storage_errors(tmp_path / FILE, "read"):
        raise error


@pytest.mark.parametrize("content", [b"Dear diary,\n" * 100, b"\0\1\2", b"SQLite format 3\0"])
def test_a_file_of_something_else_is_left_alone(content: bytes, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(content)
    for read in (Store.open, Store.read):
        with pytest.raises(StorageError, match="is not a batch of tokitai"):
            read(tmp_path)
    assert (tmp_path / FILE).read_bytes() == content


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.execute("CREATE TABLE run (mine)")
    before = (tmp_path / FILE).read_bytes()
    for read in (Store.open, Store.read):
        with pytest.raises(StorageError, match="is not a batch of tokitai"):
            read(tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


@pytest.mark.parametrize(("version", "age"), [(2, "newer"), (0, "older")])
def test_another_form_is_left_alone(version: int, age: str, tmp_path: Path) -> None:
    batch(tmp_path, 0)
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.execute(f"PRAGMA user_version = {version}")
    before = (tmp_path / FILE).read_bytes()
    for read in (Store.open, Store.read):
        with pytest.raises(StorageError, match=f"has the {age} version {version}") as caught:
            read(tmp_path)
        assert "install" in caught.value.hint
    assert (tmp_path / FILE).read_bytes() == before


def test_a_journal_of_an_older_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text('{"kind":"begun"}\n')
    for read in (Store.open, Store.read):
        with pytest.raises(StorageError, match=r"older version .*journal\.jsonl.*another folder"):
            read(tmp_path)
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("content", [None, b""])
def test_no_batch_to_read(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / FILE).write_bytes(content)
    with pytest.raises(StorageError, match="is not the folder of a batch"):
        Store.read(tmp_path)
    with Store.open(tmp_path) as store:
        assert [*store.newest()] == []
        with pytest.raises(StorageError, match="no batch was started"):
            store.begun()
    assert newest(batch(tmp_path, 3)) == {3}


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    path = batch(tmp_path, *range(40)) / FILE
    data = bytearray(path.read_bytes())
    for page in range(1, len(data) // 4096):
        data[page * 4096 : page * 4096 + 100] = b"\xff" * 100
    path.write_bytes(data)
    with pytest.raises(StorageError, match=r"batch\.sqlite3: is damaged .*--out"):
        newest(tmp_path)


def test_a_batch_that_is_only_read(tmp_path: Path) -> None:
    with Store.read(batch(tmp_path, 0)) as store:
        with pytest.raises(ValueError, match="for reading only"):
            store.end(batches.ended())
        assert len([*store.done()]) == 1


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("file", "it is not a folder"),
        ("file/out", "Not a directory"),
        ("n" * 300, "File name too long"),
        ("loop/out", "Too many levels of symbolic links|it is not a folder"),
        ("batch-is-a-folder", "is not a batch of tokitai"),
        ("batch-is-a-pipe", "is not a batch of tokitai"),
        ("lock-is-a-folder", "Is a directory"),
        ("/proc/out", "No such file or directory"),
    ],
)
def test_places_that_cannot_hold_a_batch(place: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "batch-is-a-folder" / FILE).mkdir(parents=True)
    (tmp_path / "batch-is-a-pipe").mkdir()
    os.mkfifo(tmp_path / "batch-is-a-pipe" / FILE)
    (tmp_path / "lock-is-a-folder" / "lock").mkdir(parents=True)
    with pytest.raises(StorageError, match=reason) as caught:
        Store.open(tmp_path / place)
    assert caught.value.hint
    assert caught.value.where is not None
    assert (tmp_path / "file").read_text() == "mine"
    assert stat.S_ISFIFO((tmp_path / "batch-is-a-pipe" / FILE).stat().st_mode)


@pytest.mark.parametrize(
    ("code", "mend"),
    [
        (errno.EROFS, "a writable folder with --out"),
        (errno.ENOSPC, "free space"),
        (errno.EDQUOT, "free space"),
        (errno.EIO, "another disk"),
    ],
)
def test_failures_of_the_disk(
    code: int, mend: str, memory: Path, disk_faults: dict[str, str]
) -> None:
    """Whatever fails, and at whichever call: what was committed stays, and the batch can go on."""
    told = crash(disk_faults, "faults", memory / "out", str(code)).splitlines()
    assert len(told) > 20
    for line in told:
        assert f"{FILE}: cannot be written: {os.strerror(code)} (" in line
        assert mend in line


def test_what_is_on_disk_when(tmp_path: Path, disk_faults: dict[str, str]) -> None:
    """What would be lost is on disk before it is overwritten, and the end of it before the return."""
    steps = [tuple(line.split()) for line in crash(disk_faults, "steps", tmp_path).splitlines()]
    database, journal = (FILE,), (f"{FILE}-journal",)
    syncs = [place for place, (what, *_) in enumerate(filter(None, steps)) if what == "sync"]
    writes = [place for place, step in enumerate(steps) if step == ("write", *database)]
    assert any(steps[place] == ("sync", *journal) and place < writes[0] for place in syncs)
    assert ("sync", tmp_path.name) in steps[: writes[0]]
    assert steps[writes[-1] + 1 :][:3] == [
        ("sync", *database),
        ("cut", *journal),
        ("sync", *journal),
    ]
    assert len(syncs) <= 5
