"""What a run of the tool may have left behind: processes and temporary files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec


class Place(msgspec.Struct, frozen=True):
    """A folder that a run has to itself: temporary files, evidence, working folder, and the build
    cache where it is `own_cache`.
    """

    folder: Path
    own_cache: bool = False

    @classmethod
    def under(cls, folder: Path, *, own_cache: bool = False) -> Place:
        """Make the folders of a place."""
        for name in ("tmp", "out", "work"):
            (folder / name).mkdir(parents=True)
        return cls(folder, own_cache)

    @property
    def environment(self) -> dict[str, str]:
        """Variables that keep a run inside the place."""
        cache = {"TOKITAI_CACHE": str(self.folder / "cache")} if self.own_cache else {}
        state = str(self.folder / "state")
        return {**cache, "TMPDIR": str(self.folder / "tmp"), "XDG_STATE_HOME": state}

    @property
    def out(self) -> Path:
        """Folder of the evidence."""
        return self.folder / "out"

    @property
    def work(self) -> Path:
        """Working folder of the tool and its children."""
        return self.folder / "work"

    def processes(self, *names: str) -> list[int]:
        """Processes that work in the place or run a program of it; of those, the ones named."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                program, where = _about(entry)
                inside = str(self.folder) in program or str(self.folder) in where
                if inside and (not names or any(name in program for name in names)):
                    found.append(int(entry.name))
        return found

    def temporary(self) -> list[Path]:
        """Temporary files of the run, and of the cache where it is its own."""
        folders = (self.folder / "tmp", self.folder / "cache" / "tmp")
        return [path for folder in folders if folder.is_dir() for path in folder.iterdir()]

    def is_clean(self) -> bool:
        """Whether nothing is left, now or soon."""
        return eventually(lambda: not self.processes() and not self.temporary())


def eventually(holds: Callable[[], object], seconds: float = 20.0) -> bool:
    """Whether it holds within `seconds`."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _about(entry: Path) -> tuple[str, str]:
    """Command line and working folder of a process; empty where it is gone or a zombie."""
    try:
        return (entry / "cmdline").read_bytes().decode(errors="replace"), str(
            (entry / "cwd").readlink()
        )
    except OSError:
        return "", ""
