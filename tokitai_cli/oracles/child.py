"""The process that runs a user's oracle. Started as a script: it imports nothing of the tool.

Reads `request.json` and .npy files in the folder that is its one argument, calls the function and
writes .npy files and, as its last act, `answer.json`. What the oracle prints goes to stdout.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

REQUEST = "request.json"
ANSWER = "answer.json"
PARTS = ("reference", "error", "may_be_unwritten", "low")


class FaultError(Exception):
    """What is wrong with the oracle, in words for its author."""


def main(folder: Path) -> None:
    """Serve the one request in `folder`."""
    request = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    if (
        request["packages"] not in sys.path
    ):  # python -I has not read PYTHONPATH, where numpy may lie
        sys.path.append(request["packages"])
    answer: dict[str, Any]
    try:
        answer = {"outputs": _serve(request, folder)}
    except FaultError as fault:
        answer = {"failure": str(fault)}
    temporary = folder / (ANSWER + ".part")
    temporary.write_text(json.dumps(answer), encoding="utf-8")
    temporary.replace(folder / ANSWER)


def _serve(request: Mapping[str, Any], folder: Path) -> dict[str, dict[str, str]]:
    file = Path(request["file"])
    function = _load(file, request["function"])
    inputs = {entry["name"]: _read(entry, folder) for entry in request["inputs"]}
    result = _guarded(file, function, request["params"], inputs, request["scalars"])
    if not isinstance(result, Mapping):
        raise FaultError(f"returned {type(result).__name__}, not a dict of outputs")
    outputs = {}
    for number, (name, value) in enumerate(result.items()):
        if not isinstance(name, str):
            raise FaultError(f"returned the key {name!r}, which is no output's name")
        outputs[name] = _write(number, name, value, folder)
    return outputs


def _load(file: Path, name: str) -> Callable[..., Any]:
    space: dict[str, Any] = {"__name__": "oracle", "__file__": str(file)}

    def run() -> None:
        code = compile(file.read_bytes(), str(file), "exec")
        exec(code, space)  # noqa: S102 -- running the user's file is this process's purpose

    _guarded(file, run)
    if not callable(space.get(name)):
        raise FaultError(f"{file.name} defines no function {name}")
    function: Callable[..., Any] = space[name]
    return function


def _guarded(file: Path, function: Callable[..., Any], *args: Any) -> Any:
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
        raise FaultError(f"{place}raised {kind}{f': {error}' if str(error) else ''}") from error


def _read(entry: Mapping[str, str], folder: Path) -> Any:
    import numpy as np

    array = np.load(folder / entry["file"], allow_pickle=False)
    if entry["dtype"] != array.dtype.name:
        import ml_dtypes

        return array.view(getattr(ml_dtypes, entry["dtype"]))
    return array


def _write(number: int, name: str, value: Any, folder: Path) -> dict[str, str]:
    import numpy as np

    parts = value if isinstance(value, Mapping) else {"reference": value}
    if "reference" not in parts:
        raise FaultError(f"returned no reference for {name}")
    files = {}
    for part, array in parts.items():
        if part not in PARTS:
            raise FaultError(f"returned {part!r} of {name}; known: {', '.join(PARTS)}")
        if array is None and part != "reference":
            continue
        if not isinstance(array, np.ndarray):
            raise FaultError(f"{part} of {name} is {type(array).__name__}, not a numpy array")
        if array.dtype.kind not in "biuf":
            raise FaultError(f"{part} of {name} is not numeric but {array.dtype}")
        files[part] = f"output-{number}-{part}.npy"
        np.save(folder / files[part], np.ascontiguousarray(array), allow_pickle=False)
    return files


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)  # threads that the oracle left behind must not keep the answer waiting
