"""A function of a user's file, in the process of its call: loaded, called, and its arrays read."""

from __future__ import annotations

import importlib.machinery
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType
from typing import Any

ANSWER = "answer.json"
MOST_TOLD = 100_000  # characters of what it raised
# Names of modules that were there before the file was run.
_BEFORE = set[str]()


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
        if kind in (
            "NoRuleError",
            "MissingError",
        ):  # the tool's own words to whoever wrote the formula
            raise FaultError(f"{place}{error}") from error
        raise FaultError(f"{place}raised {kind}{f': {error}' if str(error) else ''}") from error


def answer(request: Mapping[str, Any], folder: Path, work: Callable[[], dict[str, Any]]) -> bool:
    """Put what `work` gives, or what is wrong with the function, as the answer; whether it is one."""
    try:
        found = work()
        _refuse_unknown(request)
    except FaultError as fault:
        found = {"failure": str(fault)[:MOST_TOLD]}
    put(folder / ANSWER, found)
    return "failure" not in found


def _refuse_unknown(request: Mapping[str, Any]) -> None:
    """No module beside the oracle may have been loaded in a way that its digest does not follow."""
    start = str(Path(request["file"]).parent) + os.sep
    for name in sys.modules.keys() - _BEFORE:
        file = str(getattr(sys.modules[name], "__file__", None) or "")
        if not file.startswith(start) or file in request["modules"]:
            continue
        if os.sep not in (base := file.removeprefix(start)):
            raise FaultError(f"loaded {base} in a way that hides it; write `import {name}`")


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
