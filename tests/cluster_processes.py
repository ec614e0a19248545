"""A scheduler and workers of Dask as processes of their own on 127.0.0.1, and batches on them."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tokitai_cli.batch.cluster import DaskExecutor, TlsFiles
from tokitai_cli.batch.select.batch_options import BatchOptions
from tokitai_cli.batch.select.collect import collect
from tokitai_cli.batch.select.collected import Collected
from tokitai_cli.batch.work.queue import TaskQueue
from tokitai_cli.core.model.batch_record import Reply
from tokitai_cli.core.model.settings import Settings

SECONDS = 120.0
# Specs unpacked where they were before are built no second time.
UNPACKED = Path(__file__).parent.parent / ".pytest_cache" / "unpacked"


# Idle processes of Dask look at themselves a hundred times a second.
_QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
}


class Processes:
    """Starts processes with logs in `folder`; all of them, and their children, end with the block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen[bytes]] = []

    def start(
        self, *words: str | Path, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a module of Python in a session of its own."""
        log = self.folder / f"log-{len(self.running)}.txt"
        UNPACKED.mkdir(parents=True, exist_ok=True)
        own = {"OPENBLAS_NUM_THREADS": "1", "TMPDIR": str(UNPACKED), **_QUIET}
        with log.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **own, **(env or {})},
                cwd=self.folder,
                start_new_session=True,
            )
        self.running.append(process)
        return process

    def scheduler(
        self, *words: str | Path, host: str = "127.0.0.1", env: Mapping[str, str] | None = None
    ) -> str:
        """Start a scheduler; returns its address."""
        told = self.folder / f"scheduler-{len(self.running)}.json"
        dashboard = ("--dashboard-address", "127.0.0.1:0")
        where = ("--host", host, "--port", "0", "--scheduler-file", told)
        self.start("distributed.cli.dask_scheduler", *where, *dashboard, *words, env=env)
        return str(waited(lambda: json.loads(told.read_text())["address"]))

    def worker(
        self, address: str, *words: str | Path, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a worker of one thread."""
        dashboard = ("--dashboard-address", "127.0.0.1:0")
        own = ("--nthreads", "1", "--local-directory", self.folder / "dask", *dashboard)
        kind = () if "--nanny" in words else ("--no-nanny",)
        return self.start("distributed.cli.dask_worker", address, *own, *kind, *words, env=env)

    def end(self) -> None:
        """Kill every session that was started."""
        for process in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(SECONDS)


@contextlib.contextmanager
def processes(folder: Path) -> Iterator[Processes]:
    """Processes that end with the block."""
    started = Processes(folder)
    try:
        yield started
    finally:
        started.end()


def waited(look: Callable[[], Any]) -> Any:
    """What `look` returns once it neither raises nor returns nothing."""
    deadline = time.monotonic() + SECONDS
    while True:
        with contextlib.suppress(OSError, ValueError, KeyError):
            if found := look():
                return found
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def collected(
    folder: Path, *, seeds: int = 1, device: str = "cpu", ops: Sequence[str] = ()
) -> Collected:
    """The quick cases of the specs in a folder, with `seeds` seeds."""
    return collect(
        BatchOptions(
            folders=(folder,),
            ops=tuple(ops),
            seeds=tuple(range(seeds)),
            device=device,
            settings=Settings(threads=1),
        )
    )


def waiting(cases: Collected) -> TaskQueue:
    """A queue of all cases."""
    return TaskQueue((case.task(), case.weight) for case in cases.cases)


def drive(
    executor: DaskExecutor,
    cases: Collected,
    seen: Callable[[int], None] = lambda count: None,
    queue: TaskQueue | None = None,
) -> list[Reply]:
    """Every reply of a batch, in the order in which they came; `seen` is told how many there are.

    `queue` is one that the executor was fed from before.
    """
    queue = waiting(cases) if queue is None else queue
    replies: list[Reply] = []
    deadline = time.monotonic() + SECONDS
    while queue or executor.running:
        assert time.monotonic() < deadline, f"{len(replies)} of {len(cases.cases)} in time"
        executor.feed(queue)
        came = executor.collect(1.0)
        for reply in came:
            queue.learned(cases.cases[reply.number].task(), (*reply.builds, *reply.devices))
        replies += came
        seen(len(replies))
    return replies


def tls_files(folder: Path) -> TlsFiles:
    """An authority and a certificate by it for 127.0.0.1, valid for a day."""
    folder.mkdir()
    authority = ec.generate_private_key(ec.SECP256R1())
    own = ec.generate_private_key(ec.SECP256R1())
    files = TlsFiles(folder / "ca.pem", folder / "cert.pem", folder / "key.pem")
    _certificate(files.ca, "authority", authority, authority)
    _certificate(files.cert, "everyone", own, authority)
    files.key.write_bytes(
        own.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


def _certificate(
    path: Path, name: str, key: ec.EllipticCurvePrivateKey, by: ec.EllipticCurvePrivateKey
) -> None:
    now = datetime.datetime.now(datetime.UTC)
    named = {
        one: x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, one)])
        for one in (name, "authority")
    }
    builder = (
        x509.CertificateBuilder()
        .subject_name(named[name])
        .issuer_name(named["authority"])
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=key is by, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
    )
    signed = builder.sign(by, hashes.SHA256())
    path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
