"""Children of every kind: the only user of `subprocess`.

Every child leads a session and process group of its own, and a supervisor ends all of them, and
removes temporary folders, when the tool dies in any way (see `supervisor`).
"""

from tokitai_cli.process.child import Child, signal_name
from tokitai_cli.process.completed import Completed, begin, run
from tokitai_cli.process.folders import (
    make_temporary_folder,
    removable,
    remove_temporary_folder,
    temporary_base,
    temporary_folder,
    terminate_all,
)
from tokitai_cli.process.output import Captured

__all__ = [
    "Captured",
    "Child",
    "Completed",
    "begin",
    "make_temporary_folder",
    "removable",
    "remove_temporary_folder",
    "run",
    "signal_name",
    "temporary_base",
    "temporary_folder",
    "terminate_all",
]
