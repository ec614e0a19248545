"""What runs on a worker of a Dask cluster: tasks in, replies out, both as bytes.

A server for cases is kept from task to task for each thread of the worker, with the child that serves
its kernels; servers end with the worker, or when the client says that its batch has ended.
"""

from __future__ import annotations

import atexit
import gc
import hashlib
import os
import socket
import threading
from collections import OrderedDict
from pathlib import Path

import msgspec

from tokitai_cli.batch.cluster import spec_archive
from tokitai_cli.batch.select.fingerprint import tool_digest
from tokitai_cli.batch.work.serve import CaseServer, lost
from tokitai_cli.core.errors import StorageError
from tokitai_cli.core.model.batch_record import Reply, Setup, Task
from tokitai_cli.core.model.wording import error_line
from tokitai_cli.core.version import __version__
from tokitai_cli.run.faults import save_fault

# Batches whose servers one thread keeps: each may hold a child, and a context on a GPU.
_MOST_KEPT = 2
# Many objects that last and little garbage: frequent collections only cost time.
_GC_THRESHOLD = 50_000
# At exit; children that are left end with the process in any case.
_EXIT_SECONDS = 1.0


class _ToolOf(msgspec.Struct):
    """What is read of a setup first: the rest may be of another version."""

    tool: str


class _Kept:
    """A server with the lock that its thread holds while it serves."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.server = CaseServer(setup)
        self.lock = threading.Lock()
        self.ended = False

    def serve(self, task: Task) -> Reply:
        """Reply to a task; a fault of the tool outside of the case's own run is a reply too."""
        with self.lock:
            try:
                return self.server.serve(task)
            except Exception as error:  # noqa: BLE001 - whatever it is, the other cases still count
                path = save_fault(error, [f"case {task.number}", task.variant, task.device])
                log = f"log on {socket.gethostname()}: {path or 'could not be written'}"
                return lost(task, self.setup, f"a fault of tokitai, {error_line(error)}; {log}")
            finally:
                if self.ended:
                    self.server.__exit__(None, None, None)

    def end(self, wait: float = -1) -> None:
        """End the child, once the case that is served is done; waits `wait` seconds for that."""
        self.ended = True
        if self.lock.acquire(timeout=wait):
            try:
                self.server.__exit__(None, None, None)
            finally:
                self.lock.release()


# Servers by thread, then by digest of the setup, the latest used last.
_SERVERS: dict[int, OrderedDict[str, _Kept]] = {}
_LOCK = threading.Lock()
_UNPACKED: dict[str, tuple[tuple[str, int, int, int], ...]] = {}


def describe() -> tuple[str, str, str]:
    """Host, version of the tool, and digest of its sources."""
    return socket.gethostname(), __version__, tool_digest()


def run_tasks(tasks: bytes, *, setup: bytes, archive: bytes) -> bytes:
    """Serve a list of Tasks with the archive of their spec, one after the other.

    Everything is MessagePack, the answer a list of Replies. A worker whose tool is not the client's, or
    that cannot unpack the archive, answers with one that refuses.
    """
    ours, theirs = tool_digest(), msgspec.msgpack.decode(setup, type=_ToolOf).tool
    if ours != theirs:
        return _refused(f"it has tokitai {__version__} ({ours[:12]}), the client has {theirs[:12]}")
    try:
        _unpack(archive)
        kept = _server(setup)
    except StorageError as error:
        return _refused(str(error))
    asked = msgspec.msgpack.decode(tasks, type=list[Task])
    before = gc.get_threshold()
    gc.set_threshold(_GC_THRESHOLD)
    try:
        return msgspec.msgpack.encode([kept.serve(task) for task in asked])
    finally:
        gc.set_threshold(*before)


def forget(setup: str) -> None:
    """End the servers of a batch, by the digest of its setup. Does not wait for cases that run."""
    with _LOCK:
        found = [held.pop(setup) for held in _SERVERS.values() if setup in held]
    # Called where the worker talks to the scheduler, which must not wait for a child to end.
    for kept in found:
        threading.Thread(target=kept.end, daemon=True).start()


def _unpack(data: bytes) -> None:
    digest = hashlib.sha256(data).hexdigest()
    place = spec_archive.folder() / digest
    if digest not in _UNPACKED or spec_archive.stamps(place) != _UNPACKED[digest]:
        _UNPACKED[digest] = spec_archive.stamps(spec_archive.unpack(data))


def _server(data: bytes) -> _Kept:
    """The calling thread's server for a setup."""
    digest = hashlib.sha256(data).hexdigest()
    with _LOCK:
        held = _SERVERS.setdefault(threading.get_ident(), OrderedDict())
        kept = held.get(digest)
        if kept is None:
            kept = held[digest] = _Kept(_here(msgspec.msgpack.decode(data, type=Setup)))
        held.move_to_end(digest)
        spare = [held.popitem(last=False)[1] for _ in range(len(held) - _MOST_KEPT)]
    for old in spare:
        old.end()
    return kept


def _here(setup: Setup) -> Setup:
    """The setup with paths of this machine instead of those below `spec_archive.folder()`."""
    base = spec_archive.folder()
    places = [
        msgspec.structs.replace(place, path=str(_below(base, place.path))) for place in setup.specs
    ]
    return msgspec.structs.replace(setup, specs=places)


def _below(base: Path, path: str) -> Path:
    found = Path(os.path.normpath(base / path))
    if not found.is_relative_to(base) or found == base:
        raise StorageError(f"a spec outside of its archive: {path!r}")
    return found


def _refused(reason: str) -> bytes:
    refused = f"the worker on {socket.gethostname()} cannot be used: {reason}"
    return msgspec.msgpack.encode([Reply(number=-1, refused=refused)])


def _end_all() -> None:
    with _LOCK:
        found = [kept for held in _SERVERS.values() for kept in held.values()]
        _SERVERS.clear()
    for kept in found:
        kept.end(_EXIT_SECONDS)


atexit.register(_end_all)
