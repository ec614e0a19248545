"""The process that forks for each call of users' Python. Started as a script, with numpy loaded once.

Each request is the path of a folder with a `request.json` in it, ended by a zero byte. What stands
there is done in a fork, in a process group of its own, so that nothing of a call is left for the next
one. Answers are numbers of eight bytes: 0 when the process can take requests; then for each of them
the fork's process number, or what hinders it as a negative errno, and its exit code, negative for a
signal, when it ended and its group is gone. It stays unreaped until the next request, so that the tool
can end it by its number in the meantime; an empty request does nothing else.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import select
import signal
import struct
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

REQUEST = "request.json"
NUMBER = struct.Struct("<q")
END = b"\0"
# Between looks at a fork where the kernel has no process descriptors (Linux before 5.3).
_LOOK_SECONDS = 0.002


def serve(requests: int, answers: int) -> None:
    """Answer requests until their pipe is closed, which ends what runs then too."""
    _load()
    os.write(answers, NUMBER.pack(0))
    pid = 0
    while (folder := _next(requests)) is not None:
        if pid:
            os.waitpid(pid, 0)
            pid = 0
        if not folder:
            continue
        try:
            with warnings.catch_warnings():  # of threads: numpy's BLAS ends its own before a fork
                warnings.simplefilter("ignore")
                pid = os.fork()
        except OSError as error:
            pid = 0
            os.write(answers, NUMBER.pack(-(error.errno or 1)))
            continue
        if not pid:
            os.setpgid(0, 0)
            os.close(requests)
            os.close(answers)
            _answer(Path(os.fsdecode(folder)))
        with contextlib.suppress(OSError):  # it may have done so itself, and be gone
            os.setpgid(pid, pid)
        os.write(answers, NUMBER.pack(pid))
        ended = _ended(pid, requests)
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        if ended is None:
            return
        os.write(answers, NUMBER.pack(ended))


def _load() -> None:
    """Import what calls need, once for all of them."""
    import ml_dtypes  # noqa: F401
    import numpy as np

    from tokitai_cli.oracles.user import draw_call, loading, oracle_call  # noqa: F401
    from tokitai_cli.oracles.variants import answer as made_of_formulas  # noqa: F401

    # What these need is loaded by the first of them.
    np.random.seed()
    file = io.BytesIO()
    np.save(file, np.zeros(1))
    file.seek(0)
    np.load(file)
    gc.freeze()


def _next(requests: int) -> bytes | None:
    """The next folder, empty where none is asked for yet; None at the end of requests."""
    data = b""
    while not data.endswith(END):
        part = os.read(requests, 1 << 16)
        if not part:
            return None
        data += part
    return data.strip(END)  # an empty request may come with the next one


def _ended(pid: int, requests: int) -> int | None:
    """How the fork ended; None where the tool is gone before."""
    poll = select.poll()
    poll.register(requests, select.POLLHUP)
    try:
        descriptor = os.pidfd_open(pid)
    except (AttributeError, OSError):
        descriptor = -1
    else:
        poll.register(descriptor, select.POLLIN)
    try:
        while True:
            found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is not None:
                exited = found.si_code == os.CLD_EXITED
                return found.si_status if exited else -found.si_status
            ready = poll.poll(None if descriptor >= 0 else _LOOK_SECONDS * 1000)
            if any(number == requests for number, _ in ready):
                return None
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _answer(folder: Path) -> None:
    """Do what the folder's request says, and end; threads that were left behind do not matter."""
    code = 1
    try:
        os.chdir(folder)
        import numpy as np

        np.random.seed()  # else all calls would draw the same numbers
        from tokitai_cli.oracles.user import draw_call, loading, oracle_call

        request: dict[str, Any] = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
        loading.prepare(request)
        {"oracle": oracle_call.main, "draw": draw_call.main}[request["asks"]](request, folder)
        code = 0
    except BaseException:  # noqa: BLE001 - the process ends here, whatever it is
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    # python -I has not read PYTHONPATH, where numpy may lie.
    sys.path += [path for path in sys.argv[3:] if path not in sys.path]
    serve(int(sys.argv[1]), int(sys.argv[2]))
