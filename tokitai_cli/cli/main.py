"""Entry point. It imports nothing that takes time, so that an interrupt finds it at its post."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as that of `typing`, which takes longer to import than all that is here
if TYPE_CHECKING:
    from typing import NoReturn

EXIT_INTERNAL_ERROR = 70
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """The tool was asked to end by SIGTERM or SIGHUP."""


def main(argv: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code (see docs/verdicts.md)."""
    try:
        from tokitai_cli.cli import ending

        code = ending.run(argv)
    except KeyboardInterrupt as stop:
        code = interrupted(stop)
    except Exception as error:  # noqa: BLE001 - not even what tells of an end can be loaded
        _say(f"internal error: {type(error).__name__}")
        code = EXIT_INTERNAL_ERROR
    sys.exit(code)


def interrupted(stop: KeyboardInterrupt) -> int:
    """Tell of an interrupt that no verb has told of, since none was at work; returns its exit code."""
    _say("interrupted")
    return EXIT_TERMINATED if isinstance(stop, Terminated) else EXIT_INTERRUPTED


def _say(line: str) -> None:
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # it is closed
        pass
