"""How a command line ends: every ending becomes an exit code, and none a traceback."""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from tokitai_cli.cli.main import EXIT_INTERNAL_ERROR, Terminated, interrupted
from tokitai_cli.core import arena

EXIT_USAGE = 2
EXIT_BROKEN_PIPE = 141
# A run makes many objects that last and little garbage: frequent collections only cost time.
_GC_THRESHOLD = 50_000
# What writing to stdout fails with, where it is a file or a device: errors of files name the file.
_LOST = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
_ASKED_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Whether the process is the tool's, and whether its exit codes are.
_state = {"own": False, "answered": False}


def run(argv: Sequence[str] | None) -> int:
    """Run a command line, that of the process where it is None; returns its exit code.

    Does not return in a process whose `answer_for_libraries` was asked for: that ends here.
    """
    if argv is None:
        _use_utf8()
        _state["own"] = True
        gc.disable()  # what is loaded lasts
    code = _exit_code(sys.argv[1:] if argv is None else argv)
    try:
        _silence_lost_streams()
        for number in _ASKED_TO_END if argv is None else ():  # it is ending
            signal.signal(number, signal.SIG_IGN)
    except KeyboardInterrupt as stop:
        code = interrupted(stop)
    if _state["answered"]:
        _leave(code)
    return code


def collect_garbage() -> None:
    """From here on, all that is loaded left out: for the work of a verb that may be long.

    Freed memory is kept from here on too.
    """
    if _state["own"]:
        arena.allow()
        gc.freeze()
        gc.set_threshold(_GC_THRESHOLD)
        gc.enable()


def answer_for_libraries() -> None:
    """From here on a library that ends the process gives the code of a fault of the tool.

    OpenBLAS does so where it gets no memory, with exit code 1, which means refuted. The C library is
    told to end with another code whatever `exit` was called with; Python itself must not call it then.
    """
    if not _state["own"] or _state["answered"]:
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        register = getattr(library, "__cxa_atexit")
        register.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        end = ctypes.cast(library._exit, ctypes.c_void_p)
        _state["answered"] = register(end, EXIT_INTERNAL_ERROR, None) == 0


def _leave(code: int) -> NoReturn:
    """End the process as Python does, but for the C library's part of it."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        _silence_lost_streams()
    finally:
        os._exit(code)


def _exit_code(arguments: Sequence[str]) -> int:
    """Exit code of a command line, however it ends."""
    try:
        _open_standard_streams()
        signal.signal(signal.SIGTERM, _terminate)
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # nohup has it ignored
            signal.signal(signal.SIGHUP, _terminate)
        from tokitai_cli.cli import app

        # The launcher's, which knows of no verb, stays for imports: Python drops what is raised in them.
        if callable(signal.getsignal(signal.SIGINT)):
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return _flushed(app.run(arguments))
    except KeyboardInterrupt as stop:
        return _stopped(stop)
    except BrokenPipeError:
        return EXIT_BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the last resort: no traceback for a user
        if interrupt := _interrupt_behind(error):
            return _stopped(interrupt)
        try:
            return _told(error, arguments)
        except Exception:  # noqa: BLE001 - there is no memory, or no file can be opened, to tell more
            _say(f"internal error: {type(error).__name__}")
            return EXIT_INTERNAL_ERROR


def _told(error: Exception, arguments: Sequence[str]) -> int:
    """Tell what ended the tool: what the machine lacks, or else a fault of its own."""
    if isinstance(error, OSError) and error.errno in _LOST and error.filename is None:
        return _unwritable(error)
    from tokitai_cli.core.errors import lack_of

    if lack := lack_of(error):
        _say(f"error: {lack}")
        return EXIT_USAGE
    return _fault(error, arguments)


def _stopped(stop: KeyboardInterrupt) -> int:
    """Tell of an interrupt, or of what made OpenBLAS interrupt the process: it gets no thread."""
    if not isinstance(stop, Terminated):
        try:
            threading.Thread(target=int).start()
        except RuntimeError as error:
            _say(f"error: {error}")
            return EXIT_USAGE
    return interrupted(stop)


def _interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The interrupt that a library turned into an error of its own, as extension modules do."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


def _use_utf8() -> None:
    """Start again in UTF-8 mode where the locale says ASCII (LC_ALL=C with PYTHONUTF8=0).

    Paths would not be text there: neither a digest, nor a generated source, nor JSON could name
    them. Arguments keep their bytes.
    """
    if sys.getfilesystemencoding() != "utf-8" and not sys.flags.utf8_mode:
        with contextlib.suppress(OSError):
            os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606


def _open_standard_streams() -> None:
    """Open what the caller closed, so that no file of ours becomes stdout or stderr."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            with contextlib.suppress(OSError):
                while os.open(os.devnull, os.O_RDWR) < descriptor:
                    pass
            mode = "r" if descriptor == 0 else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


def _terminate(signum: int, frame: FrameType | None) -> None:
    """SIGTERM and SIGHUP end a run as an interrupt does, but with an exit code of their own."""
    raise Terminated


def _flushed(code: int) -> int:
    """Flush stdout now, so that a reader that went away is noticed here and not at shutdown."""
    sys.stdout.flush()
    return code


def _silence_lost_streams() -> None:
    """Point streams that cannot be flushed at nothing, or Python complains of them at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _say(*lines: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write("".join(f"{line}\n" for line in lines))
        sys.stderr.flush()


def _unwritable(error: OSError) -> int:
    _say(f"error: standard output cannot be written: {error.strerror or error}")
    return EXIT_USAGE


def _fault(error: Exception, arguments: Sequence[str]) -> int:
    """A fault of the tool: its traceback goes to a file, one line and the file's path to stderr."""
    from tokitai_cli.core.model.wording import error_line
    from tokitai_cli.run.faults import save_fault

    _say(f"internal error: {error_line(error)}")
    path = save_fault(error, arguments)
    if path is not None:
        _say(f"  log: {path}", "  a fault of tokitai: please report it with this log")
    return EXIT_INTERNAL_ERROR
