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

from tokitai_cli.core.version import __version__


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
