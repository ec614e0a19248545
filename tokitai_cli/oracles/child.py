"""The process that runs a user's oracle. Started as a script: of the tool it imports `formula` alone,
where the oracle is a formula or asks for it.

Reads `request.json` and .npy files in the folder that is its one argument, calls the function and
writes .npy files and then `answer.json`. What the oracle prints goes to stdout. Where there is time it
is then asked again, with slices of its inputs zeroed, and `again.json` says what came of it.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

REQUEST = "request.json"
ANSWER = "answer.json"
AGAIN = "again.json"
MOST_TOLD = 100_000  # characters of what an oracle raised
WRONG = "wrong "
CHANGE = "change "
PARTS = (
    "reference",
    "error",
    "error_below",
    "error_above",
    "may_be_unwritten",
    "may_be_nan",
    "allowed",
    "low",
    "wrong",
    "error_probable",
    "changes",
    "replay",
)
# Elements of an output that are looked at when a slice is zeroed.
SAMPLE = 1 << 16


class FaultError(Exception):
    """What is wrong with the oracle, in words for its author."""


def main(folder: Path) -> None:
    """Serve the one request in `folder`."""
    start = time.monotonic()
    request = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    if (
        request["packages"] not in sys.path
    ):  # python -I has not read PYTHONPATH, where numpy may lie
        sys.path.append(request["packages"])
    sys.pycache_prefix = str(
        folder
    )  # nothing is written beside the oracle, nor old code read there
    sys.path += [request["tool"], str(Path(request["file"]).parent)]
    answer: dict[str, Any]
    try:
        answer = {"outputs": _serve(request, folder)}
        _refuse_unknown(request)
    except FaultError as fault:
        answer = {"failure": str(fault)[:MOST_TOLD]}
    _put(folder / ANSWER, answer)
    if "outputs" in answer:
        spent = time.monotonic() - start
        calls = 1 + len(request["slices"])
        if spent * calls < request["seconds"]:
            _put(folder / AGAIN, _ask_again(request, folder))


def _refuse_unknown(request: Mapping[str, Any]) -> None:
    """No module beside the oracle may have been loaded in a way that its digest does not follow."""
    folder = Path(request["file"]).parent
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and Path(file).parent == folder and str(Path(file)) not in request["modules"]:
            raise FaultError(
                f"loaded {Path(file).name} in a way that hides it; write `import {name}`"
            )


def _put(path: Path, content: Any) -> None:
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(json.dumps(content), encoding="utf-8")
    temporary.replace(path)


def _call(request: Mapping[str, Any], inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    file = Path(request["file"])
    function = _load(file, request["function"])
    if request["formula"]:
        return _by_formula(request, file, function, inputs)
    told = {"reduction": request["reduction"]} if _takes_reduction(function) else {}
    result = _guarded(file, lambda: function(request["params"], inputs, request["scalars"], **told))
    if not isinstance(result, Mapping):
        raise FaultError(f"returned {type(result).__name__}, not a dict of outputs")
    return result


def _by_formula(
    request: Mapping[str, Any], file: Path, function: Callable[..., Any], inputs: Mapping[str, Any]
) -> Mapping[str, Any]:
    from tokitai_cli.formula.oracle import Asked, answer, wanted_of

    wanted = wanted_of(request["formula"], str(file))
    asked = Asked(function, request["params"], dict(inputs), request["scalars"])
    found: Mapping[str, Any] = _guarded(file, lambda: answer(asked, wanted))
    return found


def _takes_reduction(function: Callable[..., Any]) -> bool:
    try:
        return "reduction" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _inputs(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    return {entry["name"]: _read(entry, folder) for entry in request["inputs"]}


def _ask_again(request: Mapping[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Ask for each slice; one that the oracle cannot do is left out. Nothing that it prints is kept."""
    silent = os.open(os.devnull, os.O_WRONLY)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    answers = []
    for number, (which, name, axis) in enumerate(request["slices"]):
        inputs = _inputs(request, folder)
        index = _zero(inputs[name], axis, which)
        with contextlib.suppress(Exception):  # zeros may be no input that the oracle is made for
            result = _call(request, inputs)
            files = {one: _sample(number, one, value, folder) for one, value in result.items()}
            answers.append({"slice": [which, name, axis], "index": index, "outputs": files})
    return answers


def _zero(array: Any, axis: int, which: str) -> int:
    """Set the last slice, or that of the largest sum of squares, to zero; returns its index."""
    import numpy as np

    moved = np.moveaxis(array, axis, 0)
    index: int = moved.shape[0] - 1
    if which == "heaviest":
        with np.errstate(all="ignore"):
            wide = moved.reshape(moved.shape[0], -1).astype(np.float64)
            index = int(np.argmax(np.square(np.where(np.isfinite(wide), wide, 0.0)).sum(axis=1)))
    moved[index] = 0
    return index


def _sample(number: int, name: str, value: Any, folder: Path) -> dict[str, Any]:
    import numpy as np

    reference = np.asarray(value["reference"] if isinstance(value, Mapping) else value)
    stride = max(1, reference.size // SAMPLE) | 1
    file = f"again-{number}-{len(name)}-{name}.npy"
    np.save(folder / file, reference.reshape(-1)[::stride], allow_pickle=False)
    return {"file": file, "stride": stride}


def _serve(request: Mapping[str, Any], folder: Path) -> dict[str, dict[str, str]]:
    result = _call(request, _inputs(request, folder))
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
    for part in parts:
        if part not in PARTS:
            raise FaultError(f"returned {part!r} of {name}; known: {', '.join(PARTS)}")
    for place, (part, array) in enumerate(flat(name, parts)):
        if not isinstance(array, np.ndarray):
            raise FaultError(f"{part} of {name} is {type(array).__name__}, not a numpy array")
        if array.dtype.kind not in "biuf":
            raise FaultError(f"{part} of {name} is not numeric but {array.dtype}")
        files[part] = f"output-{number}-{place}.npy"
        np.save(folder / files[part], np.ascontiguousarray(array), allow_pickle=False)
    return files


def flat(name: str, parts: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The parts that are given, each wrong output by its own name."""
    wrong = parts.get("wrong") or {}
    if not isinstance(wrong, Mapping) or not all(
        isinstance(one, str) and re.fullmatch("[a-z][a-z0-9-]{0,62}", one) for one in wrong
    ):
        raise FaultError(f"wrong of {name} is no dict of names such as 'last-term-dropped'")
    given = [
        (part, array)
        for part, array in parts.items()
        if part not in ("wrong", "changes") and (array is not None or part == "reference")
    ]
    given += [(CHANGE + words, array) for words, array in parts.get("changes", {}).items()]
    return [*given, *((WRONG + one, array) for one, array in wrong.items())]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)  # threads that the oracle left behind must not keep the answer waiting
