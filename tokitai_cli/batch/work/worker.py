"""A worker process: reads tasks from a socket, answers each, and ends when the socket does.

Started as `python -m tokitai_cli.batch.work.worker DESCRIPTOR GPU`. The first message is the Setup; then
tasks and replies alternate, all in MessagePack, framed by `multiprocessing.connection`.
"""

from __future__ import annotations

import gc
import signal
import sys
from multiprocessing.connection import Connection

import msgspec

from tokitai_cli.batch.work.serve import CaseServer, lost
from tokitai_cli.core import arena
from tokitai_cli.core.model.batch_record import Reply, Setup, Task
from tokitai_cli.core.model.wording import error_line
from tokitai_cli.run.faults import save_fault

# Many objects that last and little garbage: frequent collections only cost time.
_GC_THRESHOLD = 50_000


def main(descriptor: int, gpu: int) -> None:
    """Serve tasks on `descriptor` until the other side closes it."""
    # Ctrl-C reaches the conductor, which decides what becomes of its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(_GC_THRESHOLD)
    arena.allow()
    connection: Connection[bytes, bytes] = Connection(descriptor)
    encoder = msgspec.msgpack.Encoder()
    tasks = msgspec.msgpack.Decoder(Task)
    try:
        setup = msgspec.msgpack.decode(connection.recv_bytes(), type=Setup)
        with CaseServer(setup, gpu=gpu) as server:
            while True:
                task = tasks.decode(connection.recv_bytes())
                connection.send_bytes(encoder.encode(_served(server, setup, task)))
    except (EOFError, ConnectionError):
        return


def _served(server: CaseServer, setup: Setup, task: Task) -> Reply:
    """Reply to a task; a fault of the tool outside of the case's own run is a reply too."""
    try:
        return server.serve(task)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other cases still count
        path = save_fault(error, [f"case {task.number} of a batch", task.variant, task.device])
        where = path or "could not be written"
        return lost(task, setup, f"a fault of tokitai, {error_line(error)}; log: {where}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
