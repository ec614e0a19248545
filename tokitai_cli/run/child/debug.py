"""Files and a command line that run one case in a child under a debugger."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.harness import HarnessRequest
from tokitai_cli.run.child import frames
from tokitai_cli.run.child.memory_file import Memory
from tokitai_cli.run.child.memory_layout import lay_out

REQUEST_FILE = "request.bin"
MEMORY_FILE = "memory.bin"


def debug_command(
    command: Sequence[str],
    harness: HarnessRequest,
    case: Case,
    arrays: Mapping[str, NDArray[Any]],
    folder: Path,
    artifact: Path,
) -> str:
    """Save the case's request and memory in `folder`; return the shell command that runs it.

    artifact: the child's executable, whose folder has links to those of the sources.

    The child reads its one request from a file in place of a pipe, in natural order, and ends at
    the file's end. Raises OSError where `folder` cannot be written.
    """
    layout = lay_out(case, 1)
    memory = Memory()
    try:
        memory.reserve(layout.nbytes, case.id)
        memory.write(layout, arrays)
        folder.mkdir(parents=True, exist_ok=True)
        memory.image(layout.nbytes).tofile(folder / MEMORY_FILE)
    finally:
        memory.close()
    seeds = frames.schedule_seeds(1, 0)
    payload = frames.run_request(case, harness, layout, number=1, warmups=0, seeds=seeds)
    (folder / REQUEST_FILE).write_bytes(frames.LENGTH.pack(len(payload)) + payload)
    child = shlex.join([*command, "--request-fd=3", "--response-fd=4", "--memory-fd=5"])
    files = [shlex.quote(str(folder / name)) for name in (REQUEST_FILE, MEMORY_FILE)]
    sources = shlex.quote(str(artifact.parent))
    return f"gdb -d {sources} -ex run --args {child} 3<{files[0]} 4>/dev/null 5<>{files[1]}"
