"""Folders that cannot serve a batch, and disks that fail it: told clearly, with nothing damaged."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import batch_samples as batches
from tests.batch_crash import sample
from tests.test_batch_folder import JOURNAL, batch, newest
from tokitai_cli.batch.folder import BatchFolder, case_file
from tokitai_cli.errors import StorageError
from tokitai_cli.model import encoding


def test_one_batch_at_a_time(tmp_path: Path) -> None:
    with BatchFolder.open(tmp_path):
        with pytest.raises(
            StorageError, match=f"in use by another batch: process {os.getpid()} on"
        ):
            BatchFolder.open(tmp_path)
        (tmp_path / "lock").write_text("nothing that says who")
        with pytest.raises(StorageError, match=r"in use by another batch \(wait for it"):
            BatchFolder.open(tmp_path)
    with BatchFolder.open(tmp_path):
        pass


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(StorageError, match="cannot be locked") as caught:
        BatchFolder.open(tmp_path)
    assert "local disk" in caught.value.mend


def foreign_journal(path: Path, content: bytes) -> Path:
    path.mkdir()
    (path / JOURNAL).write_bytes(content)
    return path


@pytest.mark.parametrize("content", [b'{"kind":"other"}\n', b"Dear diary,\n", b"\n", b"\0\1\2"])
def test_a_journal_of_something_else_is_left_alone(content: bytes, tmp_path: Path) -> None:
    path = foreign_journal(tmp_path / "out", content)
    for read in (BatchFolder.open, BatchFolder.read_only):
        with pytest.raises(StorageError, match="is no journal of a batch"):
            read(path)
    assert (path / JOURNAL).read_bytes() == content


def test_a_newer_journal_is_left_alone(tmp_path: Path) -> None:
    path = batch(tmp_path, 0) / JOURNAL
    newer = encoding.line(batches.begun([], 1)).replace(b"batch-journal/v1", b"batch-journal/v2")
    content = path.read_bytes() + newer.replace(b'"total"', b'"more":[1],"total"')
    path.write_bytes(content)
    for read in (BatchFolder.open, BatchFolder.read_only):
        with pytest.raises(
            StorageError, match="newer schema tokitai/batch-journal/v2; this"
        ) as caught:
            read(tmp_path)
        assert "install" in caught.value.mend
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", [None, b""])
def test_no_batch_to_read(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / JOURNAL).write_bytes(content)
    with pytest.raises(StorageError, match="is not the folder of a batch"):
        BatchFolder.read_only(tmp_path)
    with BatchFolder.open(tmp_path) as folder:
        assert folder.newest() == {}
        with pytest.raises(StorageError, match="no batch that has begun"):
            folder.begun()
    assert newest(batch(tmp_path, 3)) == {3}


def test_a_folder_that_is_only_read(tmp_path: Path) -> None:
    with BatchFolder.read_only(batch(tmp_path, 0)) as folder:
        with pytest.raises(ValueError, match="for reading alone"):
            folder.end(batches.ended())
        assert len(folder.done()) == 1


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("file", "it is no folder"),
        ("file/out", "Not a directory"),
        ("n" * 300, "File name too long"),
        ("loop/out", "Too many levels of symbolic links|it is no folder"),
        ("journal-is-a-folder", "is no journal of a batch"),
        ("lock-is-a-folder", "Is a directory"),
        ("/proc/out", "No such file or directory"),
    ],
)
def test_places_that_cannot_hold_a_batch(place: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "journal-is-a-folder" / JOURNAL).mkdir(parents=True)
    (tmp_path / "lock-is-a-folder" / "lock").mkdir(parents=True)
    with pytest.raises(StorageError, match=reason) as caught:
        BatchFolder.open(tmp_path / place)
    assert caught.value.mend
    assert caught.value.where is not None
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("code", "mend"),
    [
        (errno.EROFS, "can be written with --out"),
        (errno.EACCES, "can be written with --out"),
        (errno.ENOSPC, "free space"),
        (errno.EDQUOT, "free space"),
        (errno.EIO, "another disk"),
    ],
)
@pytest.mark.parametrize("call", ["open", "pwrite", "fsync", "replace", "ftruncate"])
def test_failures_of_the_disk(
    call: str, code: int, mend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails, and at whichever call: what was committed stays, and the batch can go on."""
    real = getattr(os, call)
    left = 0

    def failing(*args: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(code, os.strerror(code))
        return real(*args, **named)

    batch(tmp_path, 0)
    for calls in range(20):
        with (tmp_path / JOURNAL).open("ab") as file:
            file.write(b"torn")
        with BatchFolder.open(tmp_path) as folder:
            error: StorageError | None = None
            with monkeypatch.context() as patch:
                patch.setattr(os, call, failing)
                left = calls
                try:
                    folder.commit([sample(10 + calls), sample(40)])
                except StorageError as caught:
                    error = caught
            if error is None:
                break
            assert os.strerror(code) in str(error)
            assert mend in error.mend
            assert 0 in {done.number for done in folder.newest().values()}
            folder.commit([sample(70 + calls)])
        assert {0, 70 + calls} <= newest(tmp_path)
        assert not list(tmp_path.glob("*/.*.tmp"))
    assert 0 < calls < 19


def test_a_line_that_did_not_fit_is_cut_off_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch(tmp_path, 0)
    before = (tmp_path / JOURNAL).read_bytes()
    real = os.pwrite

    def half(descriptor: int, data: memoryview, offset: int) -> int:
        if offset < len(before):
            return real(descriptor, data, offset)
        real(descriptor, data[: len(data) // 2], offset)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with BatchFolder.open(tmp_path) as folder:
        monkeypatch.setattr(os, "pwrite", half)
        writes: list[Callable[[], None]] = [
            lambda: folder.commit([sample(1)]),
            lambda: folder.end(batches.ended()),
        ]
        for write in writes:
            with pytest.raises(StorageError, match=r"journal\.jsonl: cannot be written: No space"):
                write()
            assert (tmp_path / JOURNAL).read_bytes() == before
    assert newest(tmp_path) == {0}


def test_leftovers_go_but_only_from_a_batch(tmp_path: Path) -> None:
    mine = tmp_path / "sources" / ".notes.tmp"
    mine.parent.mkdir()
    mine.write_text("mine")
    with BatchFolder.open(tmp_path):
        assert mine.exists()
    batch(tmp_path, 0)
    left = tmp_path / "cases" / f".{case_file('x')}.tmp"
    left.write_bytes(b"half")
    assert newest(tmp_path) == {0}
    assert not left.exists()
