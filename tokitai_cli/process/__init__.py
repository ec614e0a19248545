"""Children of every kind: the only user of `subprocess`.

Every child leads a session and process group of its own, and a supervisor ends all of them, and
removes temporary folders, when the tool dies in any way (see `_supervisor`).
"""

from tokitai_cli.process._child import Child, signal_name
from tokitai_cli.process._folders import (
    make_temporary_folder,
    removable,
    remove_temporary_folder,
    temporary_base,
    temporary_folder,
    terminate_all,
)
from tokitai_cli.process._output import Captured
from tokitai_cli.process._run import Completed, run

__all__ = [
    "Captured",
    "Child",
    "Completed",
    "make_temporary_folder",
    "removable",
    "remove_temporary_folder",
    "run",
    "signal_name",
    "temporary_base",
    "temporary_folder",
    "terminate_all",
]
