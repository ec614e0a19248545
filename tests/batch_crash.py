"""Batches that die while they write, run in a process of their own.

python -m tests.batch_crash loop FOLDER         commit until killed; acknowledges on stdout
python -m tests.batch_crash points FOLDER       one folder per operation on the disk, FOLDER/N, in
                                                which a batch died just before, or half through it
python -m tests.batch_crash hold FOLDER [child] hold the folder until killed
python -m tests.batch_crash full FOLDER BYTES   commit with a limit on the size of files
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests import batch_samples as batches
from tests import evidence_samples as samples
from tokitai_cli.batch.folder import BatchFolder, Finished
from tokitai_cli.errors import StorageError

# What a writer does to the disk, one call a step.
STEPS = ("open", "pwrite", "fsync", "replace", "ftruncate")
GROUPS = ((0, 1), (2,), (1, 3))


def sample(number: int, log: str = "") -> Finished:
    """Case `number`, whose result says `log`."""
    record = batches.case(shape={"m": number})
    return batches.Sample(record=record, log=log).finished(number)


def begin(folder: BatchFolder) -> None:
    text = batches.SPEC_TEXT
    folder.begin(
        batches.begun([batches.entry()], 100),
        {batches.digest_of(text): text.encode()},
        {samples.SOURCE: batches.SOURCE},
    )


def acknowledge(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def scenario(path: Path, told: Callable[[str], None]) -> None:
    """Commits in groups, case 1 twice; says when each is done."""
    with BatchFolder.open(path) as folder:
        begin(folder)
        told("begun")
        for group, numbers in enumerate(GROUPS):
            folder.commit([sample(number, f"{group}") for number in numbers])
            told(f"{group}")
        folder.end(batches.ended())
        told("ended")


def loop(path: Path) -> None:
    with BatchFolder.open(path) as folder:
        begin(folder)
        acknowledge("begun")
        for number in range(0, 10**6, 3):
            folder.commit([sample(number + k, "x" * 5000) for k in range(3)])
            acknowledge(f"{number} {number + 1} {number + 2}")


def dying(point: int, patch: Callable[[str, Any], None]) -> None:
    """Arrange that the process dies at its disk operation number `point`; a write is half done then."""
    count = 0

    def wrapped(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            nonlocal count
            if count == point:
                if name == "pwrite":
                    real(args[0], args[1][: len(args[1]) // 2], args[2])
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1
            return real(*args, **named)

        return call

    for name in STEPS:
        patch(name, wrapped(name, getattr(os, name)))


def points(folder: Path) -> None:
    """Fork a batch for each operation, until one of them lives through all of its own."""
    for point in range(1000):
        told = folder / f"{point}.told"
        child = os.fork()
        if child == 0:
            with told.open("a", encoding="utf-8", buffering=1) as file:
                # From here on even the folder's own making may be what it dies of.
                dying(point, lambda name, call: setattr(os, name, call))
                scenario(folder / str(point), lambda text: print(text, file=file))
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == 0:
            return
        assert os.WTERMSIG(status) == signal.SIGKILL, status


def hold(path: Path, child: bool) -> None:
    with BatchFolder.open(path) as folder:
        begin(folder)
        if child:
            # Inherits all that programs inherit, and outlives this process.
            process = subprocess.Popen(["sleep", "60"], close_fds=False, stdout=subprocess.DEVNULL)
            acknowledge(f"{process.pid}")
        acknowledge("held")
        time.sleep(60)


def full(path: Path, most: int) -> None:
    """Commit until a file would grow beyond `most` bytes; then free the space and go on."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with BatchFolder.open(path) as folder:
        begin(folder)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
        for number in range(1000):
            try:
                folder.commit([sample(number)])
            except StorageError as error:
                acknowledge(f"full {error}")
                break
            acknowledge(f"{number}")
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        folder.commit([sample(5000)])
        acknowledge("5000")


if __name__ == "__main__":
    what, where, *rest = sys.argv[1:]
    match what:
        case "loop":
            loop(Path(where))
        case "points":
            points(Path(where))
        case "hold":
            hold(Path(where), bool(rest))
        case "full":
            full(Path(where), int(rest[0]))
