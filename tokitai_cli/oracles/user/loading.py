"""A function of a user's file, in the process of its call: loaded, called, and its arrays read."""

from __future__ import annotations

import contextlib
import importlib.machinery
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import CodeType
from typing import Any

ANSWER = "answer.json"
_CHANCE = "its result must depend on its inputs only"
MOST_TOLD = 100_000  # characters of what it raised
# Names of modules that were there before the file was run.
_BEFORE = set[str]()
# Folders of what is installed, and files whose code was run.
_INSTALLED: list[str] = []
_RUN: dict[str, None] = {}
# Files that the user's code opened to read, and to write.
_READ: dict[str, None] = {}
_WRITTEN: set[str] = set()
# Files of modules that the user's code imported, in whatever way.
_IMPORTED: dict[str, None] = {}
# The user's files of code, and what goes on without one of them.
_OWN: set[str] = set()
_IMPORTLIB = f"importlib{os.sep}__init__.py"
_SYSTEM = ("/dev/", "/proc/", "/sys/")
# Holds something until the function forks.
_FORKS = [False]


class FaultError(Exception):
    """What is wrong with the function or what it gave, in words for its author."""


class _Fresh(importlib.machinery.SourceFileLoader):
    """Reads a module's text anew: no old code is read beside it, and none written there."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def prepare(request: Mapping[str, Any]) -> None:
    """Let the file import what is installed, and then what lies beside it."""
    folder = str(Path(request["file"]).parent)
    installed = [f"{path}{os.sep}" for path in sys.path if path]

    def finder(path: str) -> importlib.machinery.FileFinder:
        place = f"{path}{os.sep}"
        inside = place.startswith(f"{folder}{os.sep}")
        if not inside or any(
            place.startswith(one) and len(one) > len(folder) + 1 for one in installed
        ):
            raise ImportError(path)
        return importlib.machinery.FileFinder(
            path,
            (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
            (_Fresh, importlib.machinery.SOURCE_SUFFIXES),
        )

    _BEFORE.update(sys.modules)
    _INSTALLED.extend(installed)
    _OWN.update((request["file"], *request["modules"]))
    sys.addaudithook(_see)
    # Of two processes only one may answer: the other one ends where it begins.
    os.register_at_fork(after_in_parent=_FORKS.clear, after_in_child=lambda: os._exit(0))
    sys.path_hooks.insert(0, finder)
    sys.path_importer_cache.pop(folder, None)
    sys.path.append(folder)


def load(file: Path, name: str) -> Callable[..., Any]:
    """The function `name` of the file, which is run for it. Raises FaultError."""
    space: dict[str, Any] = {"__name__": "oracle", "__file__": str(file)}

    def run() -> None:
        code = compile(file.read_bytes(), str(file), "exec")
        exec(code, space)  # noqa: S102 -- running the user's file is this process's purpose

    guarded(file, run)
    if not callable(space.get(name)):
        raise FaultError(f"{file.name} defines no function {name}")
    function: Callable[..., Any] = space[name]
    return function


def guarded(file: Path, function: Callable[..., Any], *args: Any) -> Any:
    """Call it; what it raises becomes a fault that names the last line of the user's file."""
    try:
        return function(*args)
    except BaseException as error:  # sys.exit and KeyboardInterrupt are faults too
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == str(file)
        ]
        if isinstance(error, SyntaxError) and error.filename == str(file):
            lines.append(error.lineno)
        place = f"{file.name}:{lines[-1]}: " if lines else ""
        kind = type(error).__name__
        if isinstance(error, FaultError):
            raise FaultError(f"{place}{error}") from error
        # The tool's own words to whoever wrote the formula.
        if kind in ("NoRuleError", "MissingError"):
            raise FaultError(f"{place}{error}") from error
        raise FaultError(f"{place}raised {kind}{f': {error}' if str(error) else ''}") from error


@contextlib.contextmanager
def without_chance() -> Iterator[None]:
    """Refuse random numbers that no seed decides. Raises FaultError."""
    import numpy as np

    seeded = list[object]()
    kept = np.random.default_rng, np.random.seed

    def default_rng(seed: Any = None) -> Any:
        if seed is None:
            raise FaultError(f"uses random numbers of default_rng() without a seed: {_CHANCE}")
        return kept[0](seed)

    def seed(*given: Any) -> None:
        seeded.extend(given)
        kept[1](*given)

    before = _state()
    np.random.default_rng, np.random.seed = default_rng, seed  # type: ignore[assignment]
    try:
        yield
    finally:
        np.random.default_rng, np.random.seed = kept
    if _state() != before and not seeded:
        raise FaultError(f"uses random numbers of numpy.random without a seed: {_CHANCE}")


def _state() -> tuple[bytes, int]:
    """State of numpy's global generator: its words, and the place in them."""
    import numpy as np

    state: Any = np.random.get_state(legacy=False)
    return state["state"]["key"].tobytes(), int(state["state"]["pos"])


def answer(request: Mapping[str, Any], folder: Path, work: Callable[[], dict[str, Any]]) -> bool:
    """Put what `work` gives, or what is wrong with the function, as the answer; whether it is one."""
    try:
        found = work()
        _refuse_unknown(request)
        _refuse_data(request, folder)
        if not _FORKS:
            raise FaultError("forks: it must run in one process and may not start others")
    except FaultError as fault:
        found = {"failure": str(fault)[:MOST_TOLD]}
    put(folder / ANSWER, found)
    return "failure" not in found


def _refuse_unknown(request: Mapping[str, Any]) -> None:
    """No code of the user's may have been run in a way that the oracle's digest does not follow.

    Looked at are the modules that are there, and each file whose code was run, in whatever way.
    """
    folder = str(Path(request["file"]).parent)
    known = {os.path.realpath(file) for file in (request["file"], *request["modules"])}
    loaded = {
        str(getattr(sys.modules[name], "__file__", None) or ""): name
        for name in sys.modules.keys() - _BEFORE
    }
    for file in dict.fromkeys([*_RUN, *loaded]):
        if not file.startswith(os.sep) or os.path.realpath(file) in known:
            continue
        if not _is_installed(file, folder):
            where = os.path.relpath(file, folder)
            name = loaded.get(file, Path(file).stem)
            hint = f"write `import {name}`" if os.sep not in where else (
                "modules must be next to it, or in packages there, and be imported by name"
            )  # fmt: skip
            raise FaultError(f"loaded {where} in a way that the tool cannot follow; {hint}")


def _refuse_data(request: Mapping[str, Any], folder: Path) -> None:
    """No file may have been read that the digest does not follow, and no package imported so."""
    known = {os.path.realpath(file) for file in (request["file"], *request["modules"])}
    own = str(Path(request["file"]).parent)
    for file in _READ:
        path = os.path.realpath(folder / file)
        if path in known or path in _WRITTEN or path.startswith((f"{folder}{os.sep}", *_SYSTEM)):
            continue
        if Path(path).is_file() and not _is_installed(path, own):
            raise FaultError(
                f"reads {os.path.relpath(path, own)}, which its digest does not include: "
                "name the file in quotes, next to it or in a folder below"
            )
    followed = {*request["imports"], *sys.stdlib_module_names}
    for file in _IMPORTED:
        inside = max((one for one in _INSTALLED if file.startswith(one)), key=len, default=file)
        first = file.removeprefix(inside).partition(os.sep)[0].partition(".")[0]
        if _is_installed(file, own) and first not in followed:
            raise FaultError(
                f"imports {first} in a way that the tool cannot follow; write `import {first}`"
            )


def _is_installed(file: str, folder: str) -> bool:
    """Whether a file is that of an installed package; the user's folder may hold such, or lie in one."""
    inside = file.startswith(f"{folder}{os.sep}")
    return any(
        file.startswith(one) and (not inside or len(one) > len(folder) + 1) for one in _INSTALLED
    )


def _see(event: str, given: tuple[Any, ...]) -> None:
    """Note the file of code that is run, and what the user's code opens and imports.

    Text that was made at run time has no file.
    """
    if event == "exec" and isinstance(name := getattr(given[0], "co_filename", None), str):
        _RUN[name] = None
        if _by_user(importing=True):
            _IMPORTED[name] = None
    elif event == "open" and isinstance(given[0], str | bytes) and _by_user():
        file = os.fsdecode(given[0])
        written = isinstance(mode := given[1], str) and mode[:1] in ("w", "x")
        (_WRITTEN.add(os.path.realpath(file)) if written else _READ.setdefault(file))


def _by_user(*, importing: bool = False) -> bool:
    """Whether the user's code does it, itself or by a function of a package; not what a package does
    while it is imported. importing: it imports, itself, by text of its own or by importlib.
    """
    frame: Any = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file in _OWN:
            return True
        through = file.startswith("<") or file.endswith(_IMPORTLIB)
        if importing is not through:
            return False
        frame = frame.f_back
    return False


def put(path: Path, content: Any) -> None:
    """Write JSON that is there whole or not at all."""
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(json.dumps(content), encoding="utf-8")
    temporary.replace(path)


def inputs_of(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The request's arrays, by name; fresh ones at every call."""
    return {entry["name"]: _read(entry, folder) for entry in request["inputs"]}


def _read(entry: Mapping[str, str], folder: Path) -> Any:
    import numpy as np

    array = np.load(folder / entry["file"], allow_pickle=False)
    if entry["dtype"] != array.dtype.name:
        import ml_dtypes

        return array.view(getattr(ml_dtypes, entry["dtype"]))
    return array
