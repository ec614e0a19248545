"""Entry point: builds the command from its verbs and turns every ending into an exit code."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from tokitai_cli.errors import Terminated

EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143
EXIT_BROKEN_PIPE = 141


def main(argv: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code (see docs/verdicts.md)."""
    from tokitai_cli.cli.app import build

    arguments = sys.argv[1:] if argv is None else argv
    signal.signal(signal.SIGTERM, _terminate)
    code = 0
    try:
        build(arguments)(args=arguments, prog_name="tokitai")
    except SystemExit as end:
        code = _code_of(end)
    except Terminated:
        code = EXIT_TERMINATED
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        code = EXIT_BROKEN_PIPE
    sys.exit(_flush(code))


def _terminate(signum: int, frame: FrameType | None) -> None:
    """SIGTERM ends a run as an interrupt does, but with its own exit code."""
    raise Terminated


def _code_of(end: SystemExit) -> int:
    """Exit code; typer and rich turn a closed stdout into exit 1, which must not read as refuted."""
    if isinstance(end.__context__, BrokenPipeError):
        return EXIT_BROKEN_PIPE
    if isinstance(end.code, int):
        return end.code
    return 0 if end.code is None else 70


def _flush(code: int) -> int:
    """Flush stdout now, so that a reader that went away is noticed here and not at shutdown."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    return code
