"""Batches that die or meet a failing disk while they write, run in a process of their own.

python -m tests.batch_crash loop FOLDER         commit until killed; acknowledges on stdout
python -m tests.batch_crash points FOLDER       one folder per operation on the disk, FOLDER/N, in
                                                which a batch died just before, or half through it
python -m tests.batch_crash faults FOLDER CODE  every operation fails in turn with the errno CODE
python -m tests.batch_crash steps FOLDER        prints the operations of a second commit
python -m tests.batch_crash lockless FOLDER CODE  what is told where locks fail with the errno CODE
python -m tests.batch_crash hold FOLDER [child] hold the folder until killed
python -m tests.batch_crash full FOLDER BYTES   commit with a limit on the size of files

points, faults, steps and lockless want disk_faults.c in LD_PRELOAD.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests import batch_samples as batches
from tests import evidence_samples as samples
from tokitai_cli.batch.store.database import Store
from tokitai_cli.core.errors import StorageError
from tokitai_cli.core.model.batch_record import Done, Reply

GROUPS = ((0, 1), (2,), (1, 3))


def sample(number: int, log: str = "") -> tuple[Done, Reply]:
    """Case `number`, whose result says `log`."""
    record = batches.case(shape={"m": number})
    return batches.Sample(record=record, log=log).finished(number)


def begin(store: Store) -> None:
    text = batches.SPEC_TEXT
    store.begin(
        batches.begun([batches.entry()], 100),
        {batches.digest_of(text): text.encode()},
        {samples.SOURCE: batches.SOURCE},
    )


def acknowledge(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def fault(folder: Path, at: int, code: int = 0) -> None:
    """From operation `at` on all below `folder` fail with `code`, or kill where that is 0."""
    ctypes.CDLL(None).disk_fault(os.fsencode(folder), at, code)


def scenario(path: Path, told: Callable[[str], None]) -> None:
    """Commits in groups, case 1 twice; says when each is done."""
    with Store.open(path) as store:
        begin(store)
        told("begun")
        for group, numbers in enumerate(GROUPS):
            store.commit(sample(number, f"{group}") for number in numbers)
            told(f"{group}")
        store.end(batches.ended())
        told("ended")


def loop(path: Path) -> None:
    with Store.open(path) as store:
        begin(store)
        acknowledge("begun")
        for number in range(0, 10**6, 3):
            store.commit(sample(number + k, "x" * 5000) for k in range(3))
            acknowledge(f"{number} {number + 1} {number + 2}")


def points(folder: Path) -> None:
    """Fork a batch for each operation, until one of them lives through all of its own."""
    for point in range(1000):
        told = folder / f"{point}.told"
        child = os.fork()
        if child == 0:
            with told.open("a", encoding="utf-8", buffering=1) as file:
                path = folder / str(point)
                # From here on even the folder's own making may be what it dies of.
                fault(path, point)
                scenario(path, lambda text: print(text, file=file))
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == 0:
            return
        assert os.WTERMSIG(status) == signal.SIGKILL, status


def faults(path: Path, code: int) -> None:
    """Whatever fails, what was committed stays, and the batch can go on; prints what it was told."""
    with Store.open(path) as store:
        begin(store)
        store.commit([sample(0)])
        kept = {0}
        for calls in range(100):
            error: StorageError | None = None
            fault(path, calls, code)
            try:
                store.commit([sample(10 + calls), sample(40)])
            except StorageError as caught:
                error = caught
            finally:
                fault(path, -1)
            there = {done.number for done in store.done()}
            if error is None:
                assert {10 + calls, 40} <= there
                return
            acknowledge(str(error))
            # Where only the last sync failed the group is there, though nobody was promised it.
            assert there == kept or there == kept | {10 + calls, 40}, there
            store.commit([sample(1000 + calls)])
            kept = there | {1000 + calls}
            assert {done.number for done in store.done()} == kept
    raise AssertionError("it never came through")


def steps(path: Path) -> None:
    with Store.open(path) as store:
        begin(store)
        store.commit([sample(0)])
        fault(path, 1 << 20)
        store.commit([sample(1), sample(2)])
        log = ctypes.CDLL(None).disk_log
        log.restype = ctypes.c_char_p
        acknowledge(log().decode())


def lockless(path: Path, code: int) -> None:
    ctypes.CDLL(None).disk_without_locks(code)
    try:
        Store.open(path)
    except StorageError as error:
        acknowledge(str(error))


def hold(path: Path, child: bool) -> None:
    with Store.open(path) as store:
        begin(store)
        if child:
            # Inherits all that programs inherit, and outlives this process.
            process = subprocess.Popen(["sleep", "60"], close_fds=False, stdout=subprocess.DEVNULL)
            acknowledge(f"{process.pid}")
        acknowledge("held")
        time.sleep(60)


def full(path: Path, most: int) -> None:
    """Commit until a file would grow beyond `most` bytes; then free the space and go on."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with Store.open(path) as store:
        begin(store)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
        for number in range(1000):
            try:
                store.commit([sample(number)])
            except StorageError as error:
                acknowledge(f"full {error}")
                break
            acknowledge(f"{number}")
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        store.commit([sample(5000)])
        acknowledge("5000")


if __name__ == "__main__":
    what, where, *rest = sys.argv[1:]
    match what:
        case "loop":
            loop(Path(where))
        case "points":
            points(Path(where))
        case "faults":
            faults(Path(where), int(rest[0]))
        case "steps":
            steps(Path(where))
        case "lockless":
            lockless(Path(where), int(rest[0]))
        case "hold":
            hold(Path(where), bool(rest))
        case "full":
            full(Path(where), int(rest[0]))
