"""Children of every kind: the only user of `subprocess`.

Every child leads a session and process group of its own, and a supervisor ends all of them, and
removes temporary folders, when the tool dies in any way (see `supervisor`).
"""

from tokitai_cli.core.process.captured import Captured
from tokitai_cli.core.process.child import Child, signal_name
from tokitai_cli.core.process.completed import Completed, begin, run
from tokitai_cli.core.process.folders import (
    make_temporary_folder,
    removable,
    remove_temporary_folder,
    temporary_base,
    temporary_folder,
    terminate_all,
)
from tokitai_cli.core.process.interrupts import undisturbed
from tokitai_cli.core.process.supervisor import kill_group

__all__ = [
    "Captured",
    "Child",
    "Completed",
    "begin",
    "kill_group",
    "make_temporary_folder",
    "removable",
    "remove_temporary_folder",
    "run",
    "signal_name",
    "temporary_base",
    "temporary_folder",
    "terminate_all",
    "undisturbed",
]
