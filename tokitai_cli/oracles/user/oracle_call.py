"""A call of an oracle: its answer, and where there is time what it says of inputs with slices zeroed.

What comes of the latter stands in `again.json`; nothing that it prints is kept.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tokitai_cli.oracles.user.loading import (
    FaultError,
    answer,
    guarded,
    inputs_of,
    load,
    put,
    without_chance,
)

AGAIN = "again.json"
WRONG = "wrong "
CHANGE = "change "
# In front of the names of arrays that are outputs which a kernel stored.
STORED = "stored "
PARTS = (
    "reference",
    "error",
    "error_below",
    "error_above",
    "may_be_unwritten",
    "may_be_nan",
    "unbounded",
    "allowed",
    "low",
    "wrong",
    "error_probable",
    "changes",
    "rows",
    "replay",
)
# Elements of an output that are looked at when a slice is zeroed.
SAMPLE = 1 << 16


def main(request: Mapping[str, Any], folder: Path) -> None:
    """Answer the request in `folder`."""
    start = time.monotonic()
    if answer(request, folder, lambda: {"outputs": _serve(request, folder)}):
        spent = time.monotonic() - start
        calls = 1 + len(request["slices"])
        if spent * calls < request["seconds"]:
            put(folder / AGAIN, _ask_again(request, folder))


def _call(request: Mapping[str, Any], inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    file = Path(request["file"])
    if request["formula"]:
        with without_chance():
            return _by_formula(request, file, load(file, request["function"]), inputs)
    function = load(file, request["function"])
    told = {"reduction": request["reduction"]} if _takes_reduction(function) else {}
    result = guarded(file, lambda: function(request["params"], inputs, request["scalars"], **told))
    if not isinstance(result, Mapping):
        raise FaultError(f"returned {type(result).__name__}, not a dict of outputs")
    return result


def _by_formula(
    request: Mapping[str, Any], file: Path, function: Callable[..., Any], inputs: Mapping[str, Any]
) -> Mapping[str, Any]:
    from tokitai_cli.oracles.variants import answer as answers
    from tokitai_cli.oracles.variants.request import FormulaCall, request_of

    drawn = {name: array for name, array in inputs.items() if not name.startswith(STORED)}
    stored = {name.removeprefix(STORED): inputs[name] for name in inputs.keys() - drawn.keys()}
    wanted = request_of(request["formula"], str(file), stored)
    asked = FormulaCall(function, request["params"], drawn, request["scalars"])
    found: Mapping[str, Any] = guarded(file, lambda: answers.answer(asked, wanted))
    return found


def _takes_reduction(function: Callable[..., Any]) -> bool:
    try:
        return "reduction" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _ask_again(request: Mapping[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Ask for each slice; one that the oracle cannot do is left out. Nothing that it prints is kept."""
    silent = os.open(os.devnull, os.O_WRONLY)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    answers = []
    for number, (which, name, axis) in enumerate(request["slices"]):
        inputs = inputs_of(request, folder)
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
    result = _call(request, inputs_of(request, folder))
    outputs = {}
    for number, (name, value) in enumerate(result.items()):
        if not isinstance(name, str):
            raise FaultError(f"returned the key {name!r}, which is no output's name")
        outputs[name] = _write(number, name, value, folder)
    return outputs


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
