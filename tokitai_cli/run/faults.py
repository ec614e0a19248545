"""Faults of the tool itself: kept in a file with their traceback, told in one line."""

from __future__ import annotations

import os
import platform
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import platformdirs

from tokitai_cli.core.model.wording import error_line
from tokitai_cli.core.version import __version__

_PACKAGE = Path(__file__).parents[1]


def fault_line(error: BaseException, what: Sequence[str]) -> str:
    """A fault of the tool that other work goes on beside: what it is, where, and its log.

    what: as of `save_fault`.
    """
    path = save_fault(error, what) or "could not be written"
    frames = traceback.extract_tb(error.__traceback__)
    own = [one for one in frames if _PACKAGE in Path(one.filename).parents]
    place = f", in {Path(own[-1].filename).relative_to(_PACKAGE)}:{own[-1].lineno}" if own else ""
    return f"a fault of tokitai, {error_line(error)}{place}; log: {path}"


def save_fault(error: BaseException, what: Sequence[str]) -> Path | None:
    """Write the traceback of `error` to a new file, readable by its owner only; returns its path.

    `what` is the command line or case. The file lies in the user's state folder, or in a temporary
    one where that cannot be written; None where neither can.
    """
    text = (
        f"tokitai {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"{list(what)}\n\n{''.join(traceback.format_exception(error))}"
    )
    name = f"fault-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-"
    for place in (lambda: platformdirs.user_state_path("tokitai") / "faults", tempfile.gettempdir):
        try:
            folder = Path(place())
            folder.mkdir(parents=True, exist_ok=True)
            descriptor, path = tempfile.mkstemp(prefix=name, suffix=".log", dir=folder)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            continue
        return Path(path)
    return None
